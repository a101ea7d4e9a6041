/* SPDX-License-Identifier: Apache-2.0 */
/* F16 and BF16 tensors. A call on halves has the bits of the same call on the floats that these
 * halves are, rounded once: so what is tested about floats holds for halves. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contract/variants.h"
#include "support/check.h"
#include "support/halves.h"

/* ---- one call ---- */

static void check_forward(const half_call *c, const test_problem *p, const locus_plan *plan)
{
    locus_error error = {""};
    const int64_t elements = locus_tensor_elements(&p->results[1].lse);
    locus_results to = p->results[1];
    const size_t bytes = locus_forward_workspace(plan);
    void *workspace = malloc(bytes + 1);
    to.out = c->out.view;
    to.lse.data = malloc((size_t)elements * sizeof(float) + 1);
    const locus_status status = locus_forward(plan, &c->in, &to, workspace, bytes, &error);
    CHECK(status == LOCUS_OK, "%s", error.text);
    CHECK(halves_are_rounded(&c->out, &p->results[1].out), "out is not that of floats, rounded");
    CHECK(elements == 0 ||
              !memcmp(to.lse.data, p->results[1].lse.data, (size_t)elements * sizeof(float)),
          "lse differs");
    free(to.lse.data);
    free(workspace);
}

/* But for the sign of a zero: a sum that was added to 0 has none. */
static int same_floats(const locus_tensor *a, const locus_tensor *b)
{
    const float *x = a->data, *y = b->data;
    int same = 1;
    for (int64_t i = 0; i < locus_tensor_elements(a); i++)
        same &= x[i] == y[i] || (isnan(x[i]) && isnan(y[i]));
    return same;
}

static void check_backward(const half_call *c, const test_problem *p, const locus_plan *plan)
{
    locus_error error = {""};
    const size_t bytes = locus_backward_workspace(plan);
    void *workspace = malloc(bytes + 1);
    locus_results dresults = test_problem_gradient(p, TEST_FLOAT);
    locus_tensors floats = p->grad[1];
    dresults.out = c->dout.view;
    /* gradients that stay floats go to memory of their own */
    locus_tensors grad = c->grad;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        locus_tensor *t = locus_tensor_at(&grad, i);
        if (t->rank != 0 && t->dtype == LOCUS_F32)
            t->data = calloc((size_t)locus_tensor_elements(t) + 1, sizeof(float));
    }
    const locus_status status =
        locus_backward(plan, &c->in, &p->results[1], &dresults, &grad, 0, workspace, bytes, &error);
    CHECK(status == LOCUS_OK, "%s", error.text);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *want = locus_tensor_at_const(&floats, i);
        locus_tensor *t = locus_tensor_at(&grad, i);
        if (t->rank == 0) continue;
        if (t->dtype == LOCUS_F32) {
            CHECK(same_floats(t, want), "grad.%s differs", locus_tensor_name(i));
            free(t->data);
        } else {
            CHECK(halves_are_rounded(&c->gradients[i], want),
                  "grad.%s is not that of floats, rounded", locus_tensor_name(i));
        }
    }
    free(workspace);
}

/* Three sequences, the second of them without queries. */
static void cut_sequences(test_problem *p, int64_t offsets[8])
{
    const int64_t Tq = p->in[1].q.shape[2], Tk = p->in[1].k.shape[2];
    const int64_t all[] = {0, Tq / 3, Tq / 3, Tq, 0, Tk / 3, Tk / 2, Tk};
    memcpy(offsets, all, sizeof all);
    p->in[1].q_offsets = locus_view(offsets, LOCUS_I64, 1, (const int64_t[]){4});
    p->in[1].k_offsets = locus_view(offsets + 4, LOCUS_I64, 1, (const int64_t[]){4});
}

/* Masks and dense biases cannot be with them, and TUPE has no rows below 0. */
static int may_be_ragged(const test_variant *v)
{
    const char *with = v->with != NULL ? v->with : "";
    return strncmp(with, "mask:", 5) != 0 && strstr(with, " mask:") == NULL &&
           strstr(with, "bias_dense") == NULL && strcmp(v->scheme, "tupe") != 0;
}

/* Numbers that are not finite, or are not in one of the types: too large, too small. */
static void put_special(test_problem *p)
{
    static const float special[] = {NAN, INFINITY, -INFINITY, 1e30f, 6e-8f, 1e6f, -0.0f, 1e-39f};
    float *const data[] = {p->in[1].q.data, p->in[1].k.data, p->in[1].v.data, p->dout[1].data};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 8; k++) data[i][101 * k + 37 * i] = special[(k + i) % 8];
}

/* In all types, or in one of the ways. */
enum { EACH = -1 };
static void test_same(const test_variant *v, const char *name, int only, test_spec shape)
{
    static const char *const isas[] = {NULL, "avx2", "generic"};
    int64_t offsets[8];
    static const char *const ways[] = {"F16", "BF16", "mixed"};
    for (int way = 0; way < 3; way++) {
        if (only != EACH && way != only) continue;
        if (!check_begin("half/%s/%s/%s", name, ways[way], v->name)) continue;
        test_problem *p = test_variant_problem(v, shape);
        locus_error error = {""};
        locus_plan *plan = NULL;
        half_call c;
        if (p == NULL) continue;
        if (strcmp(name, "ragged") == 0) cut_sequences(p, offsets);
        if (strstr(name, "special") != NULL) put_special(p);
        p->config.threads = 1 + (uint32_t)way;
        p->config.isa = isas[(way + shape.B) % 3];
        half_call_new(&c, p, way);
        CHECK(test_problem_run(p, TEST_FLOAT, 1, &error) == LOCUS_OK, "%s", error.text);
        if (CHECK(locus_plan_new(&plan, &p->config, &c.in, &error) == LOCUS_OK, "%s", error.text)) {
            check_forward(&c, p, plan);
            check_backward(&c, p, plan);
        }
        locus_plan_free(plan);
        half_call_free(&c);
        test_problem_free(p);
    }
}

/* ---- what is not allowed ---- */

static void expect_words(locus_status status, const locus_error *error, const char *words)
{
    CHECK(status != LOCUS_OK && strstr(error->text, words) != NULL, "\"%s\" does not say \"%s\"",
          error->text, words);
    CHECK(strchr(error->text, '\n') == NULL, "more than a line");
}

static void test_refused(void)
{
    if (!check_begin("half/refused")) return;
    test_problem *p = test_problem_new(&(test_spec){
        .scheme = "none", .level = LOCUS_ATTEND, .B = 1, .H = 1, .Tq = 9, .Tk = 9, .D = 4});
    locus_error error = {""};
    locus_plan *plan = NULL;
    half_call c;
    half_call_new(&c, p, 0);
    CHECK(locus_plan_new(&plan, &p->config, &p->in[1], &error) == LOCUS_OK, "%s", error.text);
    const size_t bytes = locus_backward_workspace(plan) + locus_forward_workspace(plan);
    void *workspace = malloc(bytes);
    const locus_results dresults = test_problem_gradient(p, TEST_FLOAT);
    locus_results results = p->results[1];
    locus_status status = locus_forward(plan, &c.in, &results, workspace, bytes, &error);
    expect_words(status, &error, "tensor q: found another type, expected F32");
    locus_tensors grad = p->grad[1];
    grad.k = c.grad.k;
    status =
        locus_backward(plan, &p->in[1], &results, &dresults, &grad, 0, workspace, bytes, &error);
    expect_words(status, &error, "tensor k: found another type, expected F32");
    results.lse.dtype = LOCUS_F16;
    status = locus_backward(plan, &p->in[1], &results, &dresults, &p->grad[1], 0, workspace, bytes,
                            &error);
    expect_words(status, &error, "tensor lse: found F16, expected F32");
    status = locus_forward(plan, &p->in[1], &results, workspace, bytes, &error);
    CHECK(status == LOCUS_OK, "%s", error.text); /* a half lse is good for whoever reads it */
    results.out.dtype = LOCUS_I64;
    status = locus_forward(plan, &p->in[1], &results, workspace, bytes, &error);
    expect_words(status, &error, "tensor out: found another type, expected F32, F16 or BF16");
    free(workspace);
    locus_plan_free(plan);
    half_call_free(&c);
    test_problem_free(p);
}

/* LOCUS_ACCUMULATE: the gradient that was there and the new one are added in float. */
static void test_accumulate(void)
{
    if (!check_begin("half/accumulate")) return;
    test_problem *p = test_problem_new(&(test_spec){.scheme = "shaw",
                                                    .level = LOCUS_ATTEND,
                                                    .B = 2,
                                                    .H = 2,
                                                    .Hk = 1,
                                                    .Tq = 20,
                                                    .Tk = 30,
                                                    .D = 6,
                                                    .settings = "clip_left=4 clip_right=4"});
    locus_error error = {""};
    locus_plan *plan = NULL;
    half_call c;
    half_call_new(&c, p, 1);
    CHECK(test_problem_run(p, TEST_FLOAT, 1, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_plan_new(&plan, &p->config, &c.in, &error) == LOCUS_OK, "%s", error.text);
    const size_t bytes = locus_backward_workspace(plan);
    void *workspace = malloc(bytes);
    locus_results dresults = test_problem_gradient(p, TEST_FLOAT);
    dresults.out = c.dout.view;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *want = locus_tensor_at_const(&p->grad[1], i);
        const locus_tensor *to = &c.gradients[i].view;
        for (int64_t x = 0; to->rank != 0 && x < locus_tensor_elements(to); x++) {
            ((uint16_t *)to->data)[halves_place(to, x)] = halves_from_float(0.7f, LOCUS_BF16);
            ((float *)want->data)[x] +=
                halves_to_float(halves_from_float(0.7f, LOCUS_BF16), LOCUS_BF16);
        }
    }
    const locus_status status = locus_backward(plan, &c.in, &p->results[1], &dresults, &c.grad,
                                               LOCUS_ACCUMULATE, workspace, bytes, &error);
    CHECK(status == LOCUS_OK, "%s", error.text);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        if (c.gradients[i].memory != NULL)
            CHECK(halves_are_rounded(&c.gradients[i], locus_tensor_at_const(&p->grad[1], i)),
                  "grad.%s", locus_tensor_name(i));
    free(workspace);
    locus_plan_free(plan);
    half_call_free(&c);
    test_problem_free(p);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_refused();
    test_accumulate();
    for (size_t i = 0; i < TEST_VARIANTS; i++) {
        const test_variant *v = &test_variants[i];
        const int one = (int)i % 3;
        test_same(v, "tiles", EACH, (test_spec){.B = 2, .H = 3, .Tq = 70, .Tk = 75, .D = 10});
        test_same(v, "rows", EACH,
                  (test_spec){.B = 2, .H = 4, .Hk = 2, .Tq = 1, .Tk = 150, .D = 32});
        test_same(v, "special", one, (test_spec){.B = 2, .H = 2, .Tq = 60, .Tk = 65, .D = 10});
        test_same(v, "special rows", one, (test_spec){.B = 2, .H = 4, .Tq = 4, .Tk = 140, .D = 32});
        if (may_be_ragged(v))
            test_same(v, "ragged", one, (test_spec){.B = 1, .H = 2, .Tq = 90, .Tk = 90, .D = 8});
        test_same(v, "few", one,
                  (test_spec){.B = 1, .H = 2, .Tq = 3, .Tk = 140, .D = 12, .Dv = 20});
    }
    /* several chunks of a head; tasks that share keys in two rounds */
    static const char *const cut[] = {"none", "rope-half",         "deberta",
                                      "t5",   "none-dense-shared", "table"};
    for (size_t i = 0; i < TEST_VARIANTS; i++)
        for (size_t k = 0; k < sizeof cut / sizeof *cut; k++) {
            const test_variant *v = &test_variants[i];
            if (strcmp(v->name, cut[k]) != 0) continue;
            test_same(v, "chunks", EACH, (test_spec){.B = 1, .H = 2, .Tq = 900, .Tk = 260, .D = 8});
            test_same(v, "rounds", EACH,
                      (test_spec){.B = 12, .H = 6, .Hk = 1, .Tq = 9, .Tk = 11, .D = 8});
        }
    return check_finish("contract/half");
}

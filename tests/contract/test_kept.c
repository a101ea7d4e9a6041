/* SPDX-License-Identifier: Apache-2.0 */
/* results.weights: what forward writes there, what backward makes of it, and who refuses it. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <locus/locus.h>

#include "contract/variants.h"
#include "support/check.h"
#include "support/judge.h"

enum { B = 2, H = 2, WIDTH = 8, GAP = 3 };

static const test_spec shapes[] = {
    {.B = B, .H = H, .Tq = 5, .Tk = 140, .D = WIDTH}, /* the rows path, two key tiles */
    {.B = B, .H = H, .Tq = 64, .Tk = 64, .D = WIDTH},
    {.B = B, .H = H, .Tq = 97, .Tk = 130, .D = 6, .Hk = 1},
    {.B = 1, .H = H, .Tq = 192, .Tk = 192, .D = WIDTH},
};

/* NaN where nobody writes; rows do not lie side by side. */
static locus_tensor new_weights(const test_problem *p)
{
    const int64_t shape[] = {p->spec.B, p->spec.H, p->spec.Tq, p->spec.Tk};
    locus_tensor weights = locus_view(NULL, LOCUS_F32, 4, shape);
    weights.stride[2] = p->spec.Tk + GAP;
    weights.stride[1] = p->spec.Tq * weights.stride[2];
    weights.stride[0] = p->spec.H * weights.stride[1];
    const int64_t count = p->spec.B * weights.stride[0];
    float *data = malloc((size_t)count * sizeof *data);
    if (data == NULL) exit(2);
    for (int64_t i = 0; i < count; i++) data[i] = NAN;
    weights.data = data;
    return weights;
}

static const float *weight_row(const locus_tensor *w, int64_t b, int64_t h, int64_t m)
{
    return (const float *)w->data + b * w->stride[0] + h * w->stride[1] + m * w->stride[2];
}

static double float_at(const locus_tensor *t, int64_t b, int64_t h, int64_t m)
{
    return (double)((const float *)t->data)[b * t->stride[0] + h * t->stride[1] + m * t->stride[2]];
}

/* Of a row: the weights sum to 1, less what the sink takes; without a table of values and dropout
 * they mix the values to out; nothing is written between rows. */
static void check_row(const test_problem *p, const locus_tensor *weights, int64_t b, int64_t h,
                      int64_t m)
{
    const float *row = weight_row(weights, b, h, m);
    const locus_tensor *v = &p->in[1].v, *out = &p->results[1].out, *sink = &p->in[1].sink;
    const double lse = float_at(&p->results[1].lse, b, h, m);
    const double sunk = sink->rank == 0 ? 0.0 : exp((double)((float *)sink->data)[h] - lse);
    const int mixes = p->in[1].rel_v.rank == 0 && p->config.dropout == 0.0;
    const int64_t kv = h / (p->spec.H / v->shape[1]);
    double sum = 0.0, mixed = 0.0;
    for (int64_t n = 0; n < p->spec.Tk; n++) {
        sum += (double)row[n];
        mixed += (double)row[n] * float_at(v, b, kv, n);
    }
    CHECK(fabs(sum - (lse == -INFINITY ? 0.0 : 1.0 - sunk)) < 1e-5, "row %d sums to %g", (int)m,
          sum);
    if (mixes)
        CHECK(fabs(mixed - float_at(out, b, h, m)) < 1e-5, "row %d mixes to %g", (int)m, mixed);
    for (int i = 0; i < GAP && m + 1 < p->spec.Tq; i++)
        CHECK(isnan(row[p->spec.Tk + i]), "row %d is too long", (int)m);
}

static void check_rows(const test_problem *p, const locus_tensor *weights)
{
    for (int64_t b = 0; b < p->spec.B; b++)
        for (int64_t h = 0; h < p->spec.H; h++)
            for (int64_t m = 0; m < p->spec.Tq; m++) check_row(p, weights, b, h, m);
}

static int same(const locus_tensor *a, const locus_tensor *b)
{
    return a->rank == 0 ||
           memcmp(a->data, b->data, (size_t)locus_tensor_elements(a) * sizeof(float)) == 0;
}

/* Threads and prepared tables change no bit, and forward gives what it gives without weights. */
static void check_bits(const test_variant *v, test_spec shape, const test_problem *kept)
{
    locus_error error = {{0}};
    for (int manner = 0; manner < 3; manner++) {
        test_problem *p = test_variant_problem(v, shape);
        locus_tensor weights = new_weights(p);
        p->config.threads = manner == 0 ? 3 : 1;
        if (manner != 2) p->results[1].weights = weights;
        CHECK(test_run(p, &(test_manner){.prepared = manner == 1, .forward_only = manner == 2},
                       &error) == LOCUS_OK,
              "%s", error.text);
        CHECK(same(&p->results[1].out, &kept->results[1].out), "out, manner %d", manner);
        CHECK(same(&p->results[1].lse, &kept->results[1].lse), "lse, manner %d", manner);
        for (size_t i = 0; manner != 2 && i < LOCUS_TENSOR_COUNT; i++)
            CHECK(same(locus_tensor_at_const(&p->grad[1], i),
                       locus_tensor_at_const(&kept->grad[1], i)),
                  "grad.%s, manner %d", locus_tensor_name(i), manner);
        free(weights.data);
        test_problem_free(p);
    }
}

static void check_variant(const test_variant *v, test_spec shape)
{
    if (!check_begin("kept/%d-%d/%s", (int)shape.Tq, (int)shape.Tk, v->name)) return;
    test_problem *p = test_variant_problem(v, shape);
    if (p == NULL) return;
    locus_tensor weights = p->results[1].weights = new_weights(p);
    test_judge(p, &(test_manner){.trust_oracle = 1});
    check_rows(p, &weights);
    check_bits(v, shape, p);
    free(weights.data);
    test_problem_free(p);
}

/* Backward reads them: with other weights come other gradients. With a softcap or a sink it needs
 * the scores, and computes the weights from those. */
static void check_read(void)
{
    static const char *const names[] = {"none", "none-softcap", "none-sink", "deberta"};
    for (size_t i = 0; i < TEST_VARIANTS; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            const test_variant *v = &test_variants[i];
            if (strcmp(v->name, names[k]) != 0 || !check_begin("kept/read/%s", v->name)) continue;
            test_problem *p = test_variant_problem(v, shapes[1]);
            locus_tensor weights = p->results[1].weights = new_weights(p);
            locus_error error = {{0}};
            locus_plan *plan = NULL;
            CHECK(test_problem_run(p, TEST_FLOAT, 1, &error) == LOCUS_OK, "%s", error.text);
            CHECK(locus_plan_new(&plan, &p->config, &p->in[1], &error) == LOCUS_OK, "-");
            const size_t bytes = locus_backward_workspace(plan);
            void *workspace = malloc(bytes);
            const locus_results dresults = test_problem_gradient(p, TEST_FLOAT);
            for (int64_t j = 0; j < B * weights.stride[0]; j++) ((float *)weights.data)[j] = 0.0f;
            CHECK(locus_backward(plan, &p->in[1], &p->results[1], &dresults, &p->grad[1], 0,
                                 workspace, bytes, &error) == LOCUS_OK,
                  "%s", error.text);
            double largest = 0.0;
            for (int64_t j = 0; j < locus_tensor_elements(&p->grad[1].v); j++)
                largest = fmax(largest, fabs(test_value(&p->grad[1].v, j)));
            CHECK((largest == 0.0) == (k == 0 || k == 3), "dv is up to %g", largest);
            free(workspace);
            free(weights.data);
            locus_plan_free(plan);
            test_problem_free(p);
        }
}

static void refuse(const char *name, test_spec shape, void (*change)(test_problem *),
                   const char *message)
{
    if (!check_begin("kept/refused/%s", name)) return;
    shape.B = B, shape.H = H, shape.D = WIDTH;
    test_problem *p = test_variant_problem(&test_variants[0], shape);
    locus_tensor weights = p->results[1].weights = new_weights(p);
    locus_error error = {{0}};
    if (change != NULL) change(p);
    const locus_status status = test_problem_run(p, TEST_FLOAT, 1, &error);
    CHECK((message == NULL) == (status == LOCUS_OK), "%s", error.text);
    if (message != NULL) CHECK(strcmp(error.text, message) == 0, "%s", error.text);
    free(weights.data);
    test_problem_free(p);
}

static void make_short(test_problem *p) { p->results[1].weights.shape[3]--; }
static void make_double(test_problem *p) { p->results[1].weights.dtype = LOCUS_F64; }
static void overlap_out(test_problem *p) { p->results[1].weights.data = p->results[1].out.data; }
static void overlap_dv(test_problem *p) { p->grad[1].v.data = p->results[1].weights.data; }
static void overlap_itself(test_problem *p) { p->results[1].weights.stride[2] = 3; }

static void check_refused(void)
{
    enum { MOST = LOCUS_KEPT_WEIGHTS };
    const test_spec some = {.Tq = 8, .Tk = 8};
    refuse("most", (test_spec){.Tq = MOST, .Tk = MOST}, NULL, NULL);
    refuse("queries", (test_spec){.Tq = MOST + 1, .Tk = 7}, NULL,
           "tensor weights: found 193 queries and 7 keys, expected at most 192 of each (longer "
           "calls keep none)");
    refuse("keys", (test_spec){.Tq = 7, .Tk = MOST + 1}, NULL,
           "tensor weights: found 7 queries and 193 keys, expected at most 192 of each (longer "
           "calls keep none)");
    refuse("shape", some, make_short,
           "tensor weights: found another shape than the plan was made for");
    refuse("type", some, make_double, "tensor weights: found another type, expected F32");
    refuse("out", some, overlap_out, "output weights overlaps out");
    refuse("dv", some, overlap_dv, "output v overlaps weights");
    refuse("itself", some, overlap_itself, "output weights overlaps itself");
}

/* They have no gradient, and the oracle does not give them. */
static void check_elsewhere(void)
{
    if (!check_begin("kept/refused/elsewhere")) return;
    const test_spec shape = {.B = B, .H = H, .Tq = 8, .Tk = 8, .D = WIDTH};
    test_problem *p = test_variant_problem(&test_variants[0], shape);
    locus_tensor weights = p->results[0].weights = new_weights(p);
    locus_error error = {{0}};
    CHECK(test_problem_run(p, TEST_ORACLE, 0, &error) == LOCUS_ERR_TENSOR, "oracle");
    CHECK(strcmp(error.text, "tensor weights: found, expected none (locus_explain has them)") == 0,
          "%s", error.text);
    locus_plan *plan = NULL;
    CHECK(locus_plan_new(&plan, &p->config, &p->in[1], &error) == LOCUS_OK, "%s", error.text);
    locus_results dresults = test_problem_gradient(p, TEST_FLOAT);
    dresults.weights = weights;
    const size_t bytes = locus_backward_workspace(plan);
    void *workspace = malloc(bytes);
    CHECK(locus_backward(plan, &p->in[1], &p->results[1], &dresults, &p->grad[1], 0, workspace,
                         bytes, &error) == LOCUS_ERR_TENSOR,
          "backward");
    CHECK(strcmp(error.text, "dresults.weights: weights have no gradient") == 0, "%s", error.text);
    free(workspace);
    locus_plan_free(plan);
    free(weights.data);
    test_problem_free(p);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t i = 0; i < TEST_VARIANTS; i++) check_variant(&test_variants[i], shapes[s]);
    check_read();
    check_refused();
    check_elsewhere();
    return check_finish("kept");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Bits that may not change: with the thread count, with the place in the batch, with the
 * layout in memory, with the rows that share a call. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contract/variants.h"
#include "support/check.h"

static int same_bits(const locus_tensor *a, const locus_tensor *b)
{
    const size_t bytes = (size_t)locus_tensor_elements(a) * sizeof(float);
    return bytes == 0 || memcmp(a->data, b->data, bytes) == 0;
}

static void run(test_problem *p)
{
    locus_error error = {{0}};
    const locus_status status = test_problem_run(p, TEST_FLOAT, 1, &error);
    CHECK(status == LOCUS_OK, "%s", error.text);
}

static void check_same(const test_problem *a, const test_problem *b, const char *what)
{
    CHECK(same_bits(&a->results[1].out, &b->results[1].out), "out differs: %s", what);
    CHECK(same_bits(&a->results[1].lse, &b->results[1].lse), "lse differs: %s", what);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *x = locus_tensor_at_const(&a->grad[1], i);
        CHECK(same_bits(x, locus_tensor_at_const(&b->grad[1], i)), "grad.%s differs: %s",
              locus_tensor_name(i), what);
    }
}

/* ---- threads ---- */

static void test_threads(const test_variant *v, const char *name, test_spec shape)
{
    static const uint32_t counts[] = {2, 3, 7};
    if (!check_begin("bits/%s/%s", name, v->name)) return;
    test_problem *one = test_variant_problem(v, shape);
    run(one);
    for (size_t i = 0; i < 3; i++) {
        test_problem *many = test_variant_problem(v, shape);
        many->config.threads = counts[i];
        run(many);
        check_same(one, many, counts[i] == 2 ? "2 threads" : counts[i] == 3 ? "3 threads" : "7");
        test_problem_free(many);
    }
    test_problem_free(one);
}

/* ---- tables packed before the call ---- */

static void clear(const locus_tensor *t)
{
    if (t->rank != 0) memset(t->data, 0, (size_t)locus_tensor_elements(t) * sizeof(float));
}

/* Twice on the same tables. */
static void run_prepared(const test_problem *p, const test_problem *plain)
{
    locus_error error = {{0}};
    locus_plan *plan = NULL;
    locus_tables *tables = NULL, *back = NULL;
    CHECK(locus_plan_new(&plan, &p->config, &p->in[1], &error) == LOCUS_OK, "%s", error.text);
    locus_tensors only = p->in[1];
    only.q.data = only.k.data = only.v.data = NULL; /* not read */
    only.mask.data = only.key_mask.data = only.bias_dense.data = NULL;
    CHECK(locus_tables_new(&tables, plan, &only, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_tables_new_backward(&back, plan, &only, &error) == LOCUS_OK, "%s", error.text);
    const size_t forward = locus_forward_workspace(plan), backward = locus_backward_workspace(plan);
    void *workspace = malloc(forward > backward ? forward : backward);
    const locus_results dresults = test_problem_gradient(p, TEST_FLOAT);
    for (int times = 0; times < 2; times++) {
        clear(&p->results[1].out);
        for (size_t t = 0; t < LOCUS_TENSOR_COUNT; t++)
            clear(locus_tensor_at_const(&p->grad[1], t));
        CHECK(locus_forward_prepared(plan, tables, &p->in[1], &p->results[1], workspace, forward,
                                     &error) == LOCUS_OK,
              "%s", error.text);
        CHECK(locus_backward_prepared(plan, back, &p->in[1], &p->results[1], &dresults, &p->grad[1],
                                      0, workspace, backward, &error) == LOCUS_OK,
              "%s", error.text);
        check_same(plain, p, times == 0 ? "prepared" : "prepared, again");
    }
    free(workspace);
    locus_tables_free(tables);
    locus_tables_free(back);
    locus_plan_free(plan);
}

/* A NaN and an infinity in each table: which of its rows are bad is found beforehand, too. */
static void spoil(const test_problem *p)
{
    const locus_tensors *in = &p->in[1];
    const locus_tensor *const tables[] = {&in->rel_k, &in->rel_q, &in->rel_v, &in->pos_k};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const int64_t elements = locus_tensor_elements(tables[i]);
        if (tables[i]->rank == 0 || elements == 0) continue;
        ((float *)tables[i]->data)[elements / 3] = (float)NAN;
        ((float *)tables[i]->data)[elements - 1] = (float)INFINITY;
    }
}

static void test_prepared_shape(const test_variant *v, test_spec shape, uint32_t threads, int bad)
{
    test_problem *plain = test_variant_problem(v, shape);
    if (plain == NULL) return;
    test_problem *prepared = test_variant_problem(v, shape);
    plain->config.threads = prepared->config.threads = threads;
    if (bad) {
        spoil(plain);
        spoil(prepared);
    }
    run(plain);
    run_prepared(prepared, plain);
    test_problem_free(plain);
    test_problem_free(prepared);
}

static void test_prepared(const test_variant *v)
{
    static const test_spec shapes[] = {
        {.B = 2, .H = 3, .Tq = 150, .Tk = 150, .D = 8},
        {.B = 1, .H = 3, .Tq = 3, .Tk = 90, .D = 8},
        {.B = 1, .H = 1, .Tq = 4200, .Tk = 40, .D = 128}, /* tables too large to pack backward */
    };
    if (!check_begin("bits/prepared/%s", v->name)) return;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint32_t threads = i < 2 ? 1 : 2; threads <= 2; threads++)
            for (int bad = 0; bad < (i < 2 ? 2 : 1); bad++)
                test_prepared_shape(v, shapes[i], threads, bad);
}

/* ---- batch position ---- */

/* Entry b of the batch of `to` = the only entry of `from`. */
static void copy_entry(const locus_tensor *from, const locus_tensor *to, int64_t b)
{
    const size_t bytes =
        (size_t)locus_tensor_elements(from) * (from->dtype == LOCUS_U8 ? 1 : sizeof(float));
    if (to->shape[0] == 1) b = 0;
    memcpy((char *)to->data + (size_t)b * bytes, from->data, bytes);
}

static int entry_is(const locus_tensor *alone, const locus_tensor *batch, int64_t b)
{
    const size_t bytes = (size_t)locus_tensor_elements(alone) * sizeof(float);
    return memcmp((const char *)batch->data + (size_t)b * bytes, alone->data, bytes) == 0;
}

static void test_batch(const test_variant *v)
{
    if (!check_begin("bits/batch/%s", v->name)) return;
    if (v->settings != NULL && strstr(v->settings, "dropout") != NULL) {
        check_skip("the dropout mask depends on the place in the batch");
        return;
    }
    test_problem *alone =
        test_variant_problem(v, (test_spec){.B = 1, .H = 2, .Tq = 70, .Tk = 70, .D = 8});
    test_problem *batch =
        test_variant_problem(v, (test_spec){.B = 3, .H = 2, .Tq = 70, .Tk = 70, .D = 8});
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *from = locus_tensor_at_const(&alone->in[1], i);
        const locus_tensor *to = locus_tensor_at_const(&batch->in[1], i);
        const int per_entry = locus_tensor_elements(from) != locus_tensor_elements(to);
        if (from->rank != 0) copy_entry(from, to, per_entry ? 1 : 0);
    }
    copy_entry(&alone->dout[1], &batch->dout[1], 1);
    if (alone->dlse[1].rank != 0) copy_entry(&alone->dlse[1], &batch->dlse[1], 1);
    run(alone);
    run(batch);
    CHECK(entry_is(&alone->results[1].out, &batch->results[1].out, 1), "out of entry 1");
    CHECK(entry_is(&alone->results[1].lse, &batch->results[1].lse, 1), "lse of entry 1");
    CHECK(entry_is(&alone->grad[1].q, &batch->grad[1].q, 1), "grad.q of entry 1");
    CHECK(entry_is(&alone->grad[1].k, &batch->grad[1].k, 1), "grad.k of entry 1");
    CHECK(entry_is(&alone->grad[1].v, &batch->grad[1].v, 1), "grad.v of entry 1");
    test_problem_free(alone);
    test_problem_free(batch);
}

/* ---- layout ---- */

/* The same tensor with the head axis inside, gaps between rows, and an odd address. */
static locus_tensor restride(const locus_tensor *t, float **memory, int copy)
{
    const int64_t B = t->shape[0], H = t->shape[1], T = t->shape[2], D = t->shape[3];
    const int64_t head = D + 3, row = H * head + 1;
    const size_t count = (size_t)(B * T * row + 8);
    *memory = malloc(count * sizeof **memory);
    for (size_t i = 0; i < count; i++) (*memory)[i] = (float)NAN;
    locus_tensor view = *t;
    view.data = *memory + 1;
    view.stride[0] = T * row;
    view.stride[1] = head;
    view.stride[2] = row;
    view.stride[3] = 1;
    for (int64_t at = 0; copy && at < B * H * T * D; at++) {
        const int64_t d = at % D, n = at / D % T, h = at / (D * T) % H, b = at / (D * T * H);
        ((float *)view.data)[b * T * row + n * row + h * head + d] = ((const float *)t->data)[at];
    }
    return view;
}

/* Copy a strided view back into dense memory; also checks that the gaps are untouched. */
static int gather_back(const locus_tensor *view, const float *memory, const locus_tensor *to)
{
    const int64_t B = view->shape[0], H = view->shape[1], T = view->shape[2], D = view->shape[3];
    size_t numbers = 0;
    for (int64_t at = 0; at < B * H * T * D; at++) {
        const int64_t d = at % D, n = at / D % T, h = at / (D * T) % H, b = at / (D * T * H);
        const float x =
            ((const float *)
                 view->data)[b * view->stride[0] + n * view->stride[2] + h * view->stride[1] + d];
        ((float *)to->data)[at] = x;
        numbers += x == x;
    }
    size_t written = 0;
    for (int64_t i = 0; i < B * T * view->stride[2] + 8; i++) written += memory[i] == memory[i];
    return written == numbers;
}

static void test_layout(const test_variant *v)
{
    const test_spec shape = {.B = 2, .H = 2, .Tq = 67, .Tk = 67, .D = 10};
    if (!check_begin("bits/layout/%s", v->name)) return;
    test_problem *dense = test_variant_problem(v, shape), *strided = test_variant_problem(v, shape);
    run(dense);
    locus_tensors *in = &strided->in[1], *grad = &strided->grad[1];
    const locus_tensors dense_grad = *grad;
    const locus_tensor dense_out = strided->results[1].out;
    float *memory[8];
    in->q = restride(&in->q, &memory[0], 1);
    in->k = restride(&in->k, &memory[1], 1);
    in->v = restride(&in->v, &memory[2], 1);
    strided->dout[1] = restride(&strided->dout[1], &memory[3], 1);
    const locus_tensor q = restride(&grad->q, &memory[4], 0), k = restride(&grad->k, &memory[5], 0);
    const locus_tensor w = restride(&grad->v, &memory[6], 0);
    const locus_tensor out = restride(&dense_out, &memory[7], 0);
    locus_plan *plan = NULL;
    locus_error error = {{0}};
    const locus_results dresults = test_problem_gradient(strided, TEST_FLOAT);
    grad->q = q, grad->k = k, grad->v = w, strided->results[1].out = out;
    CHECK(locus_plan_new(&plan, &strided->config, in, &error) == LOCUS_OK, "%s", error.text);
    const size_t bytes = locus_backward_workspace(plan) + locus_forward_workspace(plan);
    char *workspace = malloc(bytes + 8);
    CHECK(locus_forward(plan, in, &strided->results[1], workspace + 8, bytes, &error) == LOCUS_OK,
          "%s", error.text);
    CHECK(locus_backward(plan, in, &strided->results[1], &dresults, grad, 0, workspace + 8, bytes,
                         &error) == LOCUS_OK,
          "%s", error.text);
    CHECK(gather_back(&q, memory[4], &dense_grad.q), "gaps of grad.q were written");
    CHECK(gather_back(&k, memory[5], &dense_grad.k), "gaps of grad.k were written");
    CHECK(gather_back(&w, memory[6], &dense_grad.v), "gaps of grad.v were written");
    CHECK(gather_back(&out, memory[7], &dense_out), "gaps of out were written");
    *grad = dense_grad;
    strided->results[1].out = dense_out;
    check_same(dense, strided, "(B,T,H,D) with gaps");
    for (size_t i = 0; i < 8; i++) free(memory[i]);
    free(workspace);
    locus_plan_free(plan);
    test_problem_free(dense);
    test_problem_free(strided);
}

/* ---- one row alone ---- */

/* What is of queries, of one batch entry and head: row `row` alone. */
static void take_row(locus_tensors *in, int64_t row)
{
    locus_tensor *const rows[] = {&in->q, &in->pos_query, &in->gate};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i]->rank == 0) continue;
        rows[i]->data = (float *)rows[i]->data + row * rows[i]->stride[2];
        rows[i]->shape[2] = 1;
    }
}

/* T of 1,100 has key tiles that some rows of a query tile see from afar and others do not. */
static void test_row_alone(const test_variant *v, int64_t T)
{
    enum { D = 8 };
    if (!check_begin("bits/row/%d/%s", (int)T, v->name)) return;
    if (v->with != NULL || (v->settings != NULL && strstr(v->settings, "dropout") != NULL)) {
        check_skip("masks and dropout are indexed by the query row");
        return;
    }
    test_problem *all =
        test_variant_problem(v, (test_spec){.B = 1, .H = 1, .Tq = T, .Tk = T, .D = D});
    run(all);
    for (int64_t row = 0; row < T; row += T / 3) {
        test_problem *one =
            test_variant_problem(v, (test_spec){.B = 1, .H = 1, .Tq = 1, .Tk = T, .D = D});
        one->config = all->config;
        one->config.path = "tiles"; /* one row alone would choose another path */
        one->config.query_offset = row;
        one->in[1] = all->in[1];
        take_row(&one->in[1], row);
        locus_error error = {{0}};
        const locus_status status = test_problem_run(one, TEST_FLOAT, 0, &error);
        CHECK(status == LOCUS_OK, "%s", error.text);
        CHECK(memcmp(one->results[1].out.data, (float *)all->results[1].out.data + row * D,
                     D * sizeof(float)) == 0,
              "row %d alone differs", (int)row);
        test_problem_free(one);
    }
    test_problem_free(all);
}

/* Row by row, all of them on the path of few rows, over more keys than one split. */
static void test_few_alone(const test_variant *v)
{
    enum { ROWS = 8, T = 2200, D = 10 };
    if (!check_begin("bits/few-rows/%s", v->name)) return;
    if (v->with != NULL || (v->settings != NULL && strstr(v->settings, "dropout") != NULL)) {
        check_skip("masks and dropout are indexed by the query row");
        return;
    }
    test_problem *all =
        test_variant_problem(v, (test_spec){.B = 1, .H = 1, .Tq = ROWS, .Tk = T, .D = D});
    all->config.query_offset = T - ROWS;
    locus_error error = {{0}};
    CHECK(test_problem_run(all, TEST_FLOAT, 0, &error) == LOCUS_OK, "%s", error.text);
    for (int64_t row = 0; row < ROWS; row += 3) {
        test_problem *one =
            test_variant_problem(v, (test_spec){.B = 1, .H = 1, .Tq = 1, .Tk = T, .D = D});
        one->config = all->config;
        one->config.query_offset = T - ROWS + row;
        one->in[1] = all->in[1];
        take_row(&one->in[1], row);
        CHECK(test_problem_run(one, TEST_FLOAT, 0, &error) == LOCUS_OK, "%s", error.text);
        CHECK(memcmp(one->results[1].out.data, (float *)all->results[1].out.data + row * D,
                     D * sizeof(float)) == 0,
              "row %d alone differs", (int)row);
        test_problem_free(one);
    }
    test_problem_free(all);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t v = 0; v < TEST_VARIANTS; v += (check_sample() ? 3 : 1)) {
        test_threads(&test_variants[v], "threads",
                     (test_spec){.B = 2, .H = 2, .Hk = 1, .Tq = 330, .Tk = 330, .D = 8});
        /* keys beyond the second cache: tall tiles with one thread, low ones with more */
        test_threads(&test_variants[v], "threads-far-keys",
                     (test_spec){.B = 2, .H = 4, .Tq = 200, .Tk = 1030, .D = 128});
        test_threads(&test_variants[v], "threads-few-queries",
                     (test_spec){.B = 1, .H = 4, .Hk = 2, .Tq = 3, .Tk = 2200, .D = 8});
        test_prepared(&test_variants[v]);
        test_batch(&test_variants[v]);
        test_layout(&test_variants[v]);
        test_row_alone(&test_variants[v], 70);
        test_row_alone(&test_variants[v], 1100);
        test_few_alone(&test_variants[v]);
    }
    return check_finish("bits");
}

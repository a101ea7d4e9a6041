/* SPDX-License-Identifier: Apache-2.0 */
/* A call taken apart: blocks of query rows against blocks of keys, each a call of its own at its
 * place in the whole (query_offset, key_offset, first_query). Their results, joined by lse and
 * lse_low, and the sum of their gradients are those of the whole call, dropout included. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contract/variants.h"
#include "support/check.h"
#include "support/compare.h"
#include "support/judge.h"

enum { B = 2, H = 2, QUERIES = 37, KEYS = 37, WIDTH = 6 };

/* Rows [first, first + count) of axis `axis`. */
static locus_tensor rows_of(locus_tensor t, uint32_t axis, int64_t first, int64_t count)
{
    if (t.rank == 0) return t;
    t.data = (char *)t.data + (size_t)(first * t.stride[axis]) * locus_dtype_bytes(t.dtype);
    t.shape[axis] = count;
    return t;
}

typedef struct part {
    int64_t query, queries, key, keys;
} part;

static locus_tensors inputs_of(const locus_tensors *in, const part *p)
{
    locus_tensors some = *in;
    some.q = rows_of(in->q, 2, p->query, p->queries);
    some.pos_query = rows_of(in->pos_query, 2, p->query, p->queries);
    some.gate = rows_of(in->gate, 2, p->query, p->queries);
    some.k = rows_of(in->k, 2, p->key, p->keys);
    some.v = rows_of(in->v, 2, p->key, p->keys);
    some.key_mask = rows_of(in->key_mask, 1, p->key, p->keys);
    some.mask = rows_of(rows_of(in->mask, 2, p->query, p->queries), 3, p->key, p->keys);
    some.bias_dense = rows_of(rows_of(in->bias_dense, 2, p->query, p->queries), 3, p->key, p->keys);
    if (p->key > 0) some.sink = (locus_tensor){0}; /* it joins once */
    return some;
}

static locus_results results_of(const locus_results *r, const part *p)
{
    return (locus_results){.size = sizeof *r,
                           .out = rows_of(r->out, 2, p->query, p->queries),
                           .lse = rows_of(r->lse, 2, p->query, p->queries),
                           .lse_low = rows_of(r->lse_low, 2, p->query, p->queries)};
}

static locus_plan *plan_of(const test_problem *problem, const part *p, const locus_tensors *in)
{
    locus_config config = problem->config;
    locus_plan *plan;
    locus_error error = {""};
    const int64_t whole = config.query_offset == LOCUS_UNSET ? KEYS - QUERIES : config.query_offset;
    config.query_offset = whole + p->query;
    config.key_offset = p->key;
    config.first_query = p->query;
    if (!CHECK(locus_plan_new(&plan, &config, in, &error) == LOCUS_OK, "%s", error.text))
        return NULL;
    return plan;
}

static float *at(const locus_tensor *t, int64_t b, int64_t h, int64_t m)
{
    return (float *)t->data + b * t->stride[0] + h * t->stride[1] + m * t->stride[2];
}

/* One row of `more` into the row of `all`. */
static void join_row(float *out, float *lse, float *low, const float *more, double more_lse)
{
    const double old = (double)*lse + (double)*low, most = fmax(old, more_lse);
    if (more_lse == -INFINITY) return;
    const double sum = most + log(exp(old - most) + exp(more_lse - most));
    for (int64_t c = 0; c < WIDTH; c++)
        out[c] = (float)(exp(old - sum) * (double)out[c] + exp(more_lse - sum) * (double)more[c]);
    *lse = (float)sum;
    *low = (float)(sum - (double)*lse);
}

static void join(const locus_results *all, const locus_results *more, int64_t queries)
{
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t m = 0; m < queries; m++)
                join_row(at(&all->out, b, h, m), at(&all->lse, b, h, m), at(&all->lse_low, b, h, m),
                         at(&more->out, b, h, m),
                         (double)*at(&more->lse, b, h, m) + (double)*at(&more->lse_low, b, h, m));
}

static void forward_part(const test_problem *problem, const part *p, const locus_results *all)
{
    static float out[B * H * QUERIES * WIDTH], lse[B * H * QUERIES], low[B * H * QUERIES];
    const locus_tensors in = inputs_of(&problem->in[TEST_FLOAT], p);
    const int64_t shape[] = {B, H, p->queries};
    const locus_results more = {.size = sizeof more,
                                .out = locus_view_bhtd(out, B, H, p->queries, WIDTH),
                                .lse = locus_view(lse, LOCUS_F32, 3, shape),
                                .lse_low = locus_view(low, LOCUS_F32, 3, shape)};
    const locus_results rows = results_of(all, p);
    locus_plan *plan = plan_of(problem, p, &in);
    if (plan == NULL) return;
    const size_t bytes = locus_forward_workspace(plan);
    void *workspace = malloc(bytes);
    locus_error error = {""};
    CHECK(locus_forward(plan, &in, &more, workspace, bytes, &error) == LOCUS_OK, "%s", error.text);
    join(&rows, &more, p->queries);
    free(workspace);
    locus_plan_free(plan);
}

/* Gradients of whole tables are added to; those of rows are views. */
static locus_tensors gradients_of(const locus_tensors *grad, const part *p)
{
    locus_tensors some = inputs_of(grad, p);
    some.size = sizeof some;
    return some;
}

static void backward_part(const test_problem *problem, const part *p, const locus_results *all)
{
    const locus_tensors in = inputs_of(&problem->in[TEST_FLOAT], p);
    const locus_tensors grad = gradients_of(&problem->grad[TEST_FLOAT], p);
    const locus_results whole_gradient = test_problem_gradient(problem, TEST_FLOAT);
    const locus_results rows = results_of(all, p), drows = results_of(&whole_gradient, p);
    locus_plan *plan = plan_of(problem, p, &in);
    if (plan == NULL) return;
    const size_t bytes = locus_backward_workspace(plan);
    void *workspace = malloc(bytes);
    locus_error error = {""};
    CHECK(locus_backward(plan, &in, &rows, &drows, &grad, LOCUS_ACCUMULATE, workspace, bytes,
                         &error) == LOCUS_OK,
          "%s", error.text);
    free(workspace);
    locus_plan_free(plan);
}

static void for_parts(const test_problem *problem, const locus_results *all,
                      void (*run)(const test_problem *, const part *, const locus_results *))
{
    /* key parts begin on and off multiples of LOCUS_DROP_KEYS */
    static const int64_t query_cuts[] = {0, 1, 20, QUERIES}, key_cuts[] = {0, 3, 20, 30, KEYS};
    for (size_t i = 0; i + 1 < sizeof query_cuts / sizeof *query_cuts; i++)
        for (size_t j = 0; j + 1 < sizeof key_cuts / sizeof *key_cuts; j++) {
            const part p = {query_cuts[i], query_cuts[i + 1] - query_cuts[i], key_cuts[j],
                            key_cuts[j + 1] - key_cuts[j]};
            run(problem, &p, all);
        }
}

static void fill(const locus_tensor *t, float value)
{
    for (int64_t i = 0; i < locus_tensor_elements(t); i++) ((float *)t->data)[i] = value;
}

static void check_call(test_problem *p)
{
    static float low[B * H * QUERIES];
    locus_results all = p->results[TEST_FLOAT];
    locus_error error = {""};
    all.lse_low = locus_view(low, LOCUS_F32, 3, all.lse.shape);
    CHECK(test_problem_run(p, TEST_ORACLE, 1, &error) == LOCUS_OK, "%s", error.text);
    fill(&all.out, 0.0f);
    fill(&all.lse, -INFINITY);
    fill(&all.lse_low, 0.0f);
    for_parts(p, &all, forward_part);
    test_judge_tensor("out", &all.out, &p->results[TEST_ORACLE].out, 5e-6);
    test_judge_tensor("lse", &all.lse, &p->results[TEST_ORACLE].lse, 5e-6);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        fill(locus_tensor_at(&p->grad[TEST_FLOAT], i), 0.0f);
    for_parts(p, &all, backward_part);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *got = locus_tensor_at(&p->grad[TEST_FLOAT], i);
        if (got->rank > 0)
            test_judge_tensor(locus_tensor_name(i), got, locus_tensor_at(&p->grad[TEST_ORACLE], i),
                              2e-5);
    }
}

/* A query that counts among all its keys refuses a part that begins behind the first. */
static void check_counted(test_problem *p)
{
    locus_plan *plan = NULL;
    locus_error error = {""};
    p->config.key_offset = 3;
    p->config.query_offset = KEYS;
    const locus_status status = locus_plan_new(&plan, &p->config, &p->in[TEST_FLOAT], &error);
    CHECK(status == LOCUS_ERR_UNSUPPORTED && strstr(error.text, "key_offset") != NULL, "%d %s",
          (int)status, error.text);
    locus_plan_free(plan);
}

static void check_variants(void)
{
    for (size_t i = 0; i < TEST_VARIANTS; i++) {
        const test_spec shape = {.B = B, .H = H, .Tq = QUERIES, .Tk = KEYS, .D = WIDTH};
        if (!check_begin("parts/%s", test_variants[i].name)) continue;
        test_problem *p = test_variant_problem(&test_variants[i], shape);
        if (strcmp(test_variants[i].scheme, "cope") == 0)
            check_counted(p);
        else
            check_call(p);
        test_problem_free(p);
    }
}

/* Logits near 8,000, all of them floats: a float lse is off by up to 2e-4, lse_low has
 * the rest. */
static void check_large(void)
{
    const test_spec shape = {.B = B, .H = H, .Tq = QUERIES, .Tk = KEYS, .D = WIDTH};
    const test_variant dense = {.scheme = "none", .with = "bias_dense:BH"};
    if (!check_begin("parts/large logits")) return;
    test_problem *p = test_variant_problem(&dense, shape);
    const locus_tensor *q = &p->in[TEST_ORACLE].q, *bias = &p->in[TEST_ORACLE].bias_dense;
    for (int64_t i = 0; i < locus_tensor_elements(q); i++) test_set_value(q, i, 0.0);
    for (int64_t i = 0; i < locus_tensor_elements(bias); i++)
        test_set_value(bias, i, 8000.0 + floor(64.0 * test_value(bias, i)) / 64.0);
    test_problem_sync(p);
    check_call(p);
    test_problem_free(p);
}

/* The oracle and the kernels agree on a part alone, whose positions are not those of its rows. */
static void check_alone(void)
{
    static const char *const schemes[] = {"tupe", "fire", "none", "xpos", "table"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        const int is_tupe = strcmp(schemes[i], "tupe") == 0;
        const test_spec shape = {.B = B, .H = H, .Tq = 11, .Tk = is_tupe ? 11 : 29, .D = WIDTH};
        if (!check_begin("parts/alone/%s", schemes[i])) continue;
        test_problem *p = test_variant_problem(
            &(test_variant){.scheme = schemes[i],
                            .settings = i == 1 ? NULL : "causal=1 dropout=0.3 dropout_seed=5"},
            shape);
        p->config.key_offset = is_tupe ? 0 : 7;
        p->config.query_offset = p->config.key_offset + shape.Tk - shape.Tq;
        p->config.first_query = 3;
        p->config.first_batch = 9;
        test_judge(p, &(test_manner){.trust_oracle = 1});
        test_problem_free(p);
    }
}

static void check_refused(void)
{
    const test_spec shape = {.B = B, .H = H, .Tq = 5, .Tk = 5, .D = WIDTH};
    locus_plan *plan;
    locus_error error;
    if (!check_begin("parts/refused")) return;
    test_problem *p = test_variant_problem(&test_variants[0], shape);
    p->config.key_offset = -1;
    CHECK(locus_plan_new(&plan, &p->config, &p->in[TEST_FLOAT], &error) == LOCUS_ERR_OPTION &&
              strcmp(error.text, "key_offset: found -1, expected 0..2^31") == 0,
          "%s", error.text);
    p->config.key_offset = 0;
    p->config.first_query = ((int64_t)1 << 31) + 1;
    CHECK(locus_plan_new(&plan, &p->config, &p->in[TEST_FLOAT], &error) == LOCUS_ERR_OPTION, "-");
    test_problem_free(p);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    check_variants();
    check_large();
    check_alone();
    check_refused();
    return check_finish("parts");
}

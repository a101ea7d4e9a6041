/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged batches: each sequence has the bits of a call of its own, in both directions, with any
 * number of threads; the whole agrees with the oracle. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contract/variants.h"
#include "support/check.h"
#include "support/judge.h"

/* Queries and keys of each sequence. */
typedef struct lengths {
    const char *name;
    int64_t count;
    int64_t queries[12], keys[12];
} lengths;

static const lengths mixes[] = {
    /* both paths, shapes that come twice, tiles and their ends, empty ones */
    {"mixed", 11, {17, 1, 70, 0, 3, 70, 9, 0, 130, 8, 1}, {17, 33, 70, 5, 9, 70, 9, 0, 130, 8, 1}},
    {"causal-memory", 4, {20, 5, 50, 11}, {60, 140, 50, 12}},
    {"without-keys", 3, {4, 30, 2}, {0, 25, 1}},
    {"one", 1, {40}, {40}},
    /* several chunks of query rows, more keys than a split */
    {"long", 3, {1000, 3, 20}, {1000, 2200, 300}},
};

typedef struct batch {
    const lengths *mix;
    test_problem *problem;
    int64_t q_offsets[13], k_offsets[13];
} batch;

static int64_t sum(const int64_t *numbers, int64_t count)
{
    int64_t all = 0;
    for (int64_t i = 0; i < count; i++) all += numbers[i];
    return all;
}

static int64_t largest(const lengths *mix)
{
    int64_t most = 1;
    for (int64_t i = 0; i < mix->count; i++) {
        if (mix->queries[i] > most) most = mix->queries[i];
        if (mix->keys[i] > most) most = mix->keys[i];
    }
    return most;
}

static void begin_batch(const test_variant *v, const lengths *mix, test_spec shape, batch *b)
{
    shape.B = 1;
    shape.Tq = sum(mix->queries, mix->count);
    shape.Tk = sum(mix->keys, mix->count);
    shape.reach = largest(mix) + 1;
    b->mix = mix;
    b->problem = test_variant_problem(v, shape);
    b->q_offsets[0] = b->k_offsets[0] = 0;
    for (int64_t i = 0; i < mix->count; i++) {
        b->q_offsets[i + 1] = b->q_offsets[i] + mix->queries[i];
        b->k_offsets[i + 1] = b->k_offsets[i] + mix->keys[i];
    }
    const int64_t numbers[] = {mix->count + 1};
    for (int path = 0; path < TEST_PATHS; path++) {
        locus_tensors *in = &b->problem->in[path];
        in->q_offsets = locus_view(b->q_offsets, LOCUS_I64, 1, numbers);
        in->k_offsets = locus_view(b->k_offsets, LOCUS_I64, 1, numbers);
    }
}

/* ---- one sequence alone ---- */

/* Rows [first, first + count) of axis `axis`. */
static locus_tensor rows_of(locus_tensor t, uint32_t axis, int64_t first, int64_t count)
{
    if (t.rank == 0) return t;
    t.data = (char *)t.data + first * t.stride[axis] * (int64_t)locus_dtype_bytes(t.dtype);
    t.shape[axis] = count;
    return t;
}

static locus_tensor new_like(const locus_tensor *t)
{
    locus_tensor made = locus_view(NULL, LOCUS_F32, t->rank, t->shape);
    made.data = calloc((size_t)locus_tensor_elements(&made) + 1, sizeof(float));
    if (made.data == NULL) exit(2);
    return made;
}

/* The rows of `whole` from `first` on are those of `alone`, which is dense. */
static int same_rows(const locus_tensor *whole, int64_t first, const locus_tensor *alone)
{
    const int64_t rows = alone->shape[2], width = alone->rank == 4 ? alone->shape[3] : 1;
    for (int64_t h = 0; h < alone->shape[1]; h++) {
        const float *row =
            (const float *)whole->data + h * whole->stride[1] + first * whole->stride[2];
        const float *own = (const float *)alone->data + h * rows * width;
        if (memcmp(row, own, (size_t)(rows * width) * sizeof(float)) != 0) return 0;
    }
    return 1;
}

static locus_tensor *decays_of(locus_tensors *tensors)
{
    return locus_tensor_named(tensors, "log_decay");
}

static void check_alone(const batch *b, int64_t s)
{
    const test_problem *p = b->problem;
    const int64_t first = b->q_offsets[s], queries = b->mix->queries[s];
    const int64_t first_key = b->k_offsets[s], keys = b->mix->keys[s];
    locus_error error = {{0}};
    locus_tensors in = p->in[1], grad = {.size = sizeof grad};
    locus_results results = {.size = sizeof results}, dresults = {.size = sizeof dresults};
    in.q_offsets.rank = in.k_offsets.rank = 0;
    in.q = rows_of(in.q, 2, first, queries);
    in.pos_query = rows_of(in.pos_query, 2, first, queries);
    in.gate = rows_of(in.gate, 2, first, queries);
    in.k = rows_of(in.k, 2, first_key, keys);
    in.v = rows_of(in.v, 2, first_key, keys);
    in.key_mask = rows_of(in.key_mask, 1, first_key, keys);
    in.log_gate = rows_of(in.log_gate, 2, first_key, keys);
    *decays_of(&in) = rows_of(*decays_of(&in), 2, first_key, keys);
    dresults.out = rows_of(p->dout[1], 2, first, queries);
    dresults.lse = rows_of(p->dlse[1], 2, first, queries);
    results.out = new_like(&dresults.out);
    const int64_t lse[] = {1, results.out.shape[1], queries};
    const locus_tensor lse_shape = locus_view(NULL, LOCUS_F32, 3, lse);
    results.lse = new_like(&lse_shape);
    grad.q = new_like(&in.q);
    if (in.pos_query.rank != 0) grad.pos_query = new_like(&in.pos_query);
    if (in.gate.rank != 0) grad.gate = new_like(&in.gate);
    if (in.log_gate.rank != 0) grad.log_gate = new_like(&in.log_gate);
    if (decays_of(&in)->rank != 0) *decays_of(&grad) = new_like(decays_of(&in));
    grad.k = new_like(&in.k);
    grad.v = new_like(&in.v);
    locus_plan *plan = NULL;
    locus_config config = p->config;
    config.first_batch = s; /* for dropout */
    CHECK(locus_plan_new(&plan, &config, &in, &error) == LOCUS_OK, "%s", error.text);
    const size_t forward = locus_forward_workspace(plan), backward = locus_backward_workspace(plan);
    void *workspace = malloc(forward > backward ? forward : backward);
    CHECK(locus_forward(plan, &in, &results, workspace, forward, &error) == LOCUS_OK, "%s",
          error.text);
    CHECK(locus_backward(plan, &in, &results, &dresults, &grad, 0, workspace, backward, &error) ==
              LOCUS_OK,
          "%s", error.text);
    CHECK(same_rows(&p->results[1].out, first, &results.out), "out of sequence %d", (int)s);
    CHECK(same_rows(&p->results[1].lse, first, &results.lse), "lse of sequence %d", (int)s);
    CHECK(same_rows(&p->grad[1].q, first, &grad.q), "grad.q of sequence %d", (int)s);
    CHECK(in.pos_query.rank == 0 || same_rows(&p->grad[1].pos_query, first, &grad.pos_query),
          "grad.pos_query of sequence %d", (int)s);
    CHECK(in.gate.rank == 0 || same_rows(&p->grad[1].gate, first, &grad.gate),
          "grad.gate of sequence %d", (int)s);
    CHECK(in.log_gate.rank == 0 || same_rows(&p->grad[1].log_gate, first_key, &grad.log_gate),
          "grad.log_gate of sequence %d", (int)s);
    CHECK(decays_of(&in)->rank == 0 ||
              same_rows(decays_of((locus_tensors *)&p->grad[1]), first_key, decays_of(&grad)),
          "grad.log_decay of sequence %d", (int)s);
    CHECK(same_rows(&p->grad[1].k, first_key, &grad.k), "grad.k of sequence %d", (int)s);
    CHECK(same_rows(&p->grad[1].v, first_key, &grad.v), "grad.v of sequence %d", (int)s);
    void *const all[] = {workspace,           results.out.data,
                         results.lse.data,    grad.q.data,
                         grad.k.data,         grad.v.data,
                         grad.pos_query.data, grad.gate.data,
                         grad.log_gate.data,  decays_of(&grad)->data};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    locus_plan_free(plan);
}

/* ---- the whole ---- */

/* Everything that a call writes, one after another. */
static size_t copy_outputs(const test_problem *p, char *to)
{
    size_t used = 0;
    const locus_tensor *const results[] = {&p->results[1].out, &p->results[1].lse};
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT + 2; i++) {
        const locus_tensor *t = i < 2 ? results[i] : locus_tensor_at_const(&p->grad[1], i - 2);
        const size_t bytes = (size_t)locus_tensor_elements(t) * sizeof(float);
        if (to != NULL && bytes > 0) memcpy(to + used, t->data, bytes);
        used += bytes;
    }
    return used;
}

static void check_threads(const batch *b)
{
    static const uint32_t counts[] = {2, 3, 7};
    test_problem *p = b->problem;
    const size_t bytes = copy_outputs(p, NULL);
    char *one = malloc(bytes + 1), *many = malloc(bytes + 1);
    copy_outputs(p, one);
    for (size_t i = 0; i < 3; i++) {
        locus_error error = {{0}};
        p->config.threads = counts[i];
        CHECK(test_run(p, &(test_manner){.prepared = i == 1}, &error) == LOCUS_OK, "%s",
              error.text);
        copy_outputs(p, many);
        CHECK(memcmp(one, many, bytes) == 0, "%u threads give other bits", counts[i]);
    }
    free(one);
    free(many);
}

static int takes(const test_variant *v, const lengths *mix)
{
    const char *with = v->with != NULL ? v->with : "";
    /* neither can be with offsets; TUPE has no row for a negative position */
    if (strstr(with, "bias_dense") != NULL || strncmp(with, "mask", 4) == 0) return 0;
    return strcmp(v->scheme, "tupe") != 0 || strcmp(mix->name, "without-keys") != 0;
}

static void test_mix(const test_variant *v, const lengths *mix, const char *name, test_spec shape)
{
    if (!takes(v, mix) || !check_begin("ragged/%s/%s/%s", name, mix->name, v->name)) return;
    batch b;
    begin_batch(v, mix, shape, &b);
    b.problem->config.threads = 1;
    test_calm(b.problem);
    test_judge(b.problem, &(test_manner){.trust_oracle = 1});
    for (int64_t s = 0; s < mix->count; s++) check_alone(&b, s);
    check_threads(&b);
    test_judge(b.problem, &(test_manner){.trust_oracle = 1, .accumulate = 1});
    test_problem_free(b.problem);
}

/* ---- special values ---- */

/* What only a long sequence sees does not reach a short one: a NaN at a far distance, in a row of
 * another sequence. */
static void test_not_finite(const test_variant *v)
{
    static const lengths mix = {"nan", 3, {60, 12, 60}, {60, 12, 60}};
    if (!takes(v, &mix) || !check_begin("ragged/nan/%s", v->name)) return;
    batch b;
    begin_batch(v, &mix, (test_spec){.H = 2, .D = 8}, &b);
    const locus_tensors *in = &b.problem->in[1];
    ((float *)in->k.data)[8 * 3] = NAN;             /* a key of the first sequence   */
    ((float *)in->v.data)[8 * (60 + 12 + 5)] = NAN; /* a value of the last           */
    ((float *)b.problem->dout[1].data)[8 * 7] = NAN;
    if (in->bias.rank == 2) ((float *)in->bias.data)[0] = NAN;
    locus_error error = {{0}};
    b.problem->config.threads = 1;
    CHECK(test_run(b.problem, &(test_manner){0}, &error) == LOCUS_OK, "%s", error.text);
    for (int64_t s = 0; s < mix.count; s++) check_alone(&b, s);
    test_problem_free(b.problem);
}

/* ---- another seed ---- */

/* out of a plan made with `made`, reseeded to `seed` where the two differ. */
static locus_tensor dropped(const test_problem *p, const locus_tensors *in, uint64_t made,
                            uint64_t seed)
{
    locus_config config = p->config;
    locus_error error = {{0}};
    locus_plan *plan = NULL;
    locus_results results = p->results[1];
    results.out = new_like(&p->results[1].out);
    config.dropout_seed = made;
    CHECK(locus_plan_new(&plan, &config, in, &error) == LOCUS_OK, "%s", error.text);
    if (made != seed) locus_plan_reseed(plan, seed);
    const size_t bytes = locus_forward_workspace(plan);
    void *workspace = malloc(bytes);
    CHECK(locus_forward(plan, in, &results, workspace, bytes, &error) == LOCUS_OK, "%s",
          error.text);
    free(workspace);
    locus_plan_free(plan);
    return results.out;
}

static void test_reseed(int is_ragged)
{
    static const lengths mix = {"reseed", 3, {30, 7, 30}, {30, 7, 30}};
    static const test_variant variant = {"drops", "none", "dropout=0.5 dropout_seed=5", NULL, NULL};
    if (!check_begin("ragged/reseed/%s", is_ragged ? "sequences" : "whole")) return;
    batch b;
    begin_batch(&variant, &mix, (test_spec){.H = 2, .D = 8}, &b);
    locus_tensors in = b.problem->in[1];
    if (!is_ragged) in.q_offsets.rank = in.k_offsets.rank = 0;
    const locus_tensor want = dropped(b.problem, &in, 5, 5), other = dropped(b.problem, &in, 9, 9),
                       found = dropped(b.problem, &in, 9, 5);
    const size_t bytes = (size_t)locus_tensor_elements(&want) * sizeof(float);
    CHECK(memcmp(want.data, other.data, bytes) != 0, "two seeds drop the same");
    CHECK(memcmp(want.data, found.data, bytes) == 0, "another seed than the plan was given");
    free(want.data);
    free(other.data);
    free(found.data);
    test_problem_free(b.problem);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_reseed(0);
    test_reseed(1);
    for (size_t v = 0; v < TEST_VARIANTS; v += (check_sample() ? 3 : 1)) {
        const test_variant *variant = &test_variants[v];
        for (size_t m = 0; m < 4; m++)
            test_mix(variant, &mixes[m], "heads", (test_spec){.H = 2, .D = 8});
        test_mix(variant, &mixes[0], "grouped", (test_spec){.H = 4, .Hk = 2, .D = 6, .Dv = 10});
        if (v % 4 == 1)
            test_mix(variant, &mixes[4], "grouped", (test_spec){.H = 2, .Hk = 1, .D = 4});
        test_not_finite(variant);
    }
    return check_finish("ragged");
}

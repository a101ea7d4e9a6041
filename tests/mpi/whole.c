/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/whole.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/tensor.h"
#include "mpi/rows.h"
#include "support/compare.h"
#include "support/problem.h"

/* ---- one process ---- */

static locus_tensor dense(const locus_tensor *like, locus_dtype dtype)
{
    if (!locus_present(like)) return *like;
    const size_t elements = (size_t)locus_tensor_elements(like);
    return locus_view(calloc(elements + 1, locus_dtype_bytes(dtype)), dtype, like->rank,
                      like->shape);
}

static void make_up(const locus_tensor *t, uint64_t stream)
{
    for (int64_t i = 0; i < locus_tensor_elements(t); i++)
        ((float *)t->data)[i] = (float)(2.0 * test_uniform(stream, (uint64_t)i) - 1.0);
}

static int takes_gradient(const locus_config *config, size_t index)
{
    const size_t offset = offsetof(locus_tensors, q) + index * sizeof(locus_tensor);
    const locus_scheme_info *scheme = locus_scheme_find(config->scheme);
    const locus_tensor_info *t;
    for (size_t i = 0; (t = locus_common_tensor(i)) != NULL; i++)
        if (t->offset == offset) return (t->uses & LOCUS_USE_GRADIENT) != 0;
    for (size_t i = 0; (t = locus_scheme_tensor(scheme, i)) != NULL; i++)
        if (t->offset == offset) return (t->uses & LOCUS_USE_GRADIENT) != 0;
    return 0;
}

static locus_tensors gradients_like(const locus_config *config, const locus_tensors *in)
{
    locus_tensors grad = {.size = sizeof grad};
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        if (takes_gradient(config, i))
            *locus_tensor_at(&grad, i) = dense(locus_tensor_at_const(in, i), LOCUS_F32);
    return grad;
}

static locus_results results_like(const locus_tensors *in)
{
    const int64_t shape[] = {in->q.shape[0], in->q.shape[1], in->q.shape[2], in->v.shape[3]};
    const locus_tensor out = locus_view(NULL, LOCUS_F32, 4, shape);
    const locus_tensor lse = locus_view(NULL, LOCUS_F32, 3, shape);
    return (locus_results){.size = sizeof(locus_results),
                           .out = dense(&out, LOCUS_F32),
                           .lse = dense(&lse, LOCUS_F32),
                           .lse_low = dense(&lse, LOCUS_F32)};
}

static locus_status forward_and_backward(whole_call *c, const locus_plan *plan, locus_error *error)
{
    const size_t a = locus_forward_workspace(plan), b = locus_backward_workspace(plan);
    const size_t bytes = a > b ? a : b;
    void *workspace = malloc(bytes);
    locus_status status = locus_forward(plan, &c->in, &c->results, workspace, bytes, error);
    if (status == LOCUS_OK)
        status = locus_backward(plan, &c->in, &c->results, &c->dresults, &c->grad, 0, workspace,
                                bytes, error);
    free(workspace);
    return status;
}

locus_status whole_run(whole_call *c, locus_error *error)
{
    locus_plan *plan;
    c->config.threads = 1;
    const locus_status refused = locus_plan_new(&plan, &c->config, &c->in, error);
    if (refused != LOCUS_OK) return refused;
    c->results = results_like(&c->in);
    c->dresults = results_like(&c->in);
    c->grad = gradients_like(&c->config, &c->in);
    make_up(&c->dresults.out, 71);
    make_up(&c->dresults.lse, 72);
    free(c->dresults.lse_low.data);
    c->dresults.lse_low = (locus_tensor){0};
    const locus_tensor low = c->results.lse_low; /* one process finds its own way to large lse */
    c->results.lse_low = (locus_tensor){0};
    const locus_status status = forward_and_backward(c, plan, error);
    free(low.data);
    locus_plan_free(plan);
    return status;
}

static void free_results(locus_results *r)
{
    free(r->out.data);
    free(r->lse.data);
    free(r->lse_low.data);
}

static void free_tensors(locus_tensors *t)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) free(locus_tensor_at(t, i)->data);
}

void whole_free(whole_call *c)
{
    free_results(&c->results);
    free_results(&c->dresults);
    free_tensors(&c->grad);
}

/* ---- the rows of this rank ---- */

typedef struct held_rows {
    locus_mpi_rows run[2];
    int runs;
    int64_t count;
} held_rows;

static held_rows rows_held(const whole_spread *spread, int64_t rows)
{
    int rank, ranks;
    held_rows held;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    held.runs = locus_mpi_layout(spread->layout, rows, ranks, rank, held.run);
    if (spread->uneven && ranks > 1) {
        const int64_t each = rows / 5;
        held.run[0].first = rank == 0 ? 0 : (rank - 1) * each;
        held.run[0].count = rank == 0 ? 0 : rank < ranks - 1 ? each : rows - held.run[0].first;
    }
    held.count = held.run[0].count + (held.runs > 1 ? held.run[1].count : 0);
    return held;
}

/* A dense copy of the rows on one axis; `like` where a place for them is all that is wanted. */
static locus_tensor rows_copy(const locus_tensor *t, uint32_t axis, const held_rows *held)
{
    if (!locus_present(t)) return *t;
    const size_t bytes = ring_dense_bytes(t, t->dtype, axis, held->count);
    const locus_tensor copy = ring_dense_like(t, t->dtype, axis, held->count, calloc(bytes + 8, 1));
    for (int64_t i = 0, at = 0; i < held->runs; at += held->run[i++].count) {
        const locus_tensor to = ring_rows_of(&copy, axis, at, held->run[i].count);
        const locus_tensor from = ring_rows_of(t, axis, held->run[i].first, held->run[i].count);
        ring_copy(&to, &from);
    }
    return copy;
}

static locus_tensor whole_copy(const locus_tensor *t)
{
    const held_rows all = {.run = {{0, t->shape[0]}}, .runs = 1, .count = t->shape[0]};
    return rows_copy(t, 0, &all);
}

/* The axis of the tensor that counts queries or keys; -1: none. */
static int row_axis(const whole_call *c, const locus_tensors *all, const locus_tensor *t,
                    int *is_key)
{
    const uint32_t trailing = c->config.options.axes > 1 ? 2 : 1;
    *is_key = t == &all->k || t == &all->v || t == &all->key_mask || t == &all->k_positions;
    if (t == &all->q || t == &all->k || t == &all->v || t == &all->mask || t == &all->bias_dense ||
        t == &all->pos_query || t == &all->gate)
        return 2;
    if (t == &all->key_mask) return 1;
    if (t == &all->q_positions || t == &all->k_positions) return (int)(t->rank - trailing);
    return -1;
}

static locus_tensors part_of(const whole_call *c, const locus_tensors *all,
                             const held_rows *queries, const held_rows *keys)
{
    locus_tensors part = {.size = sizeof part};
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        int is_key;
        const locus_tensor *t = locus_tensor_at_const(all, i);
        const int axis = row_axis(c, all, t, &is_key);
        if (locus_present(t))
            *locus_tensor_at(&part, i) =
                axis < 0 ? whole_copy(t) : rows_copy(t, (uint32_t)axis, is_key ? keys : queries);
    }
    return part;
}

static locus_results results_part(const locus_results *r, const held_rows *queries)
{
    return (locus_results){.size = sizeof *r,
                           .out = rows_copy(&r->out, 2, queries),
                           .lse = rows_copy(&r->lse, 2, queries)};
}

locus_status whole_split(const whole_call *c, const whole_spread *spread, whole_part *part,
                         locus_error *error)
{
    const held_rows queries = rows_held(spread, c->in.q.shape[2]);
    const held_rows keys = rows_held(spread, c->in.k.shape[2]);
    const locus_mpi_options options = {.size = sizeof options,
                                       .layout = spread->layout,
                                       .block_rows = spread->block_rows};
    *part = (whole_part){.in = part_of(c, &c->in, &queries, &keys),
                         .grad = {.size = sizeof part->grad}};
    const locus_status status =
        locus_mpi_plan_new(&part->plan, MPI_COMM_WORLD, &c->config, &options, &part->in, error);
    if (status != LOCUS_OK) return status;
    part->grad = gradients_like(&c->config, &part->in);
    part->results = results_like(&part->in);
    part->dresults = results_part(&c->dresults, &queries);
    const size_t a = locus_mpi_forward_workspace(part->plan);
    const size_t b = locus_mpi_backward_workspace(part->plan);
    part->workspace_bytes = a > b ? a : b;
    part->workspace = malloc(part->workspace_bytes);
    return LOCUS_OK;
}

void whole_part_free(whole_part *part)
{
    free_tensors(&part->in);
    free_tensors(&part->grad);
    free_results(&part->results);
    free_results(&part->dresults);
    locus_mpi_plan_free(part->plan);
    free(part->workspace);
}

/* ---- comparison ---- */

typedef struct judgement {
    double worst;
    char *name;
    uint64_t *digest;
} judgement;

/* By the scale of the whole tensor, of which `want` is what this rank has. */
static void judge(judgement *j, const char *name, const locus_tensor *got, const locus_tensor *want,
                  const locus_tensor *all, double tolerance)
{
    double largest = 1.0;
    for (int64_t i = 0; i < locus_tensor_elements(all); i++) {
        const double value = fabs((double)((const float *)all->data)[i]);
        if (isfinite(value) && value > largest) largest = value;
    }
    comparison c = comparison_start(largest);
    for (int64_t i = 0; i < locus_tensor_elements(want); i++) {
        const float value = ((const float *)got->data)[i];
        uint32_t bits;
        comparison_add(&c, (double)value, (double)((const float *)want->data)[i]);
        memcpy(&bits, &value, sizeof bits);
        *j->digest = (*j->digest ^ bits) * 1099511628211u;
    }
    if (c.worst / tolerance <= j->worst) return;
    j->worst = c.worst / tolerance;
    strncpy(j->name, name, 31);
}

static void judge_all(judgement *j, const whole_call *c, const whole_spread *spread,
                      const whole_part *part)
{
    const held_rows queries = rows_held(spread, c->in.q.shape[2]);
    const held_rows keys = rows_held(spread, c->in.k.shape[2]);
    locus_results results = results_part(&c->results, &queries);
    locus_tensors grad = part_of(c, &c->grad, &queries, &keys);
    judge(j, "out", &part->results.out, &results.out, &c->results.out, 5e-6);
    judge(j, "lse", &part->results.lse, &results.lse, &c->results.lse, 5e-6);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        if (locus_present(locus_tensor_at(&grad, i)))
            judge(j, locus_tensor_name(i), locus_tensor_at_const(&part->grad, i),
                  locus_tensor_at(&grad, i), locus_tensor_at_const(&c->grad, i), 2e-5);
    free_results(&results);
    free_tensors(&grad);
}

double whole_compare(const whole_call *c, const whole_spread *spread, char name[32],
                     uint64_t *digest, locus_error *error)
{
    whole_part part;
    judgement j = {.worst = 0.0, .name = name, .digest = digest};
    name[0] = '\0';
    locus_status status = whole_split(c, spread, &part, error);
    if (status == LOCUS_OK)
        status = locus_mpi_forward(part.plan, &part.in, &part.results, part.workspace,
                                   part.workspace_bytes, error);
    if (status == LOCUS_OK)
        status = locus_mpi_backward(part.plan, &part.in, &part.results, &part.dresults, &part.grad,
                                    0, part.workspace, part.workspace_bytes, error);
    if (status == LOCUS_OK) judge_all(&j, c, spread, &part);
    whole_part_free(&part);
    return status == LOCUS_OK ? j.worst : -1.0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/ragged.h"

#include <stdlib.h>

#include "attention/gathered.h"
#include "attention/geometry.h"
#include "attention/lower.h"
#include "attention/rows_path.h"
#include "attention/tiles_path.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"

/* ---- the plan of a shape ---- */

static void cut_axis(locus_tensor *t, uint32_t axis, int64_t rows)
{
    if (t != NULL && locus_present(t)) t->shape[axis] = rows;
}

static locus_tensor *decays_of(const locus_call *call, locus_tensors *tensors)
{
    const size_t offset = call->scheme->log_decay;
    return offset != 0 ? (locus_tensor *)(void *)((char *)tensors + offset) : NULL;
}

/* Positions that the call brings: those of the sequence's rows. */
static void cut_positions(const locus_call *call, int64_t first, int64_t rows, locus_tensor *t)
{
    if (!locus_present(t)) return;
    const int64_t axes = locus_position_axes(call);
    t->data = (int64_t *)t->data + first * axes;
    t->shape[t->rank - (axes > 1 ? 2 : 1)] = rows;
}

static void cut_call(const locus_sequence *s, locus_call *call)
{
    const locus_tensor none = {.rank = 0};
    call->Tq = s->queries;
    call->Tk = s->keys;
    call->query_offset = s->query_offset;
    call->least = s->least;
    call->most = s->most;
    call->sequences = 0;
    call->q_offsets = call->k_offsets = none;
    cut_positions(call, s->first_query, s->queries, &call->q_positions);
    cut_positions(call, s->first_key, s->keys, &call->k_positions);
}

static locus_status new_shape(const locus_plan *whole, const locus_sequence *s, const char *path,
                              locus_plan **out, locus_error *error)
{
    locus_plan *plan = *out = locus_allocate(whole->allocator, 1, sizeof *plan);
    if (plan == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "plan: out of memory");
    plan->whole = whole;
    plan->call = whole->call;
    plan->shapes = whole->shapes;
    plan->kernels = whole->kernels;
    plan->allocator = whole->allocator;
    plan->threads = whole->threads;
    cut_call(s, &plan->call);
    cut_axis(&plan->shapes.q, 2, s->queries);
    cut_axis(&plan->shapes.k, 2, s->keys);
    cut_axis(&plan->shapes.v, 2, s->keys);
    cut_axis(&plan->shapes.pos_query, 2, s->queries);
    cut_axis(&plan->shapes.gate, 2, s->queries);
    cut_axis(&plan->shapes.key_mask, 1, s->keys);
    cut_axis(&plan->shapes.log_gate, 2, s->keys);
    cut_axis(decays_of(&plan->call, &plan->shapes), 2, s->keys);
    locus_gathered_shapes(whole, &plan->shapes);
    LOCUS_TRY(locus_lower(plan, &plan->shapes, error));
    plan->gathers = locus_gathers(plan, &plan->shapes);
    locus_choose_geometry(plan, path);
    return LOCUS_OK;
}

/* ---- sequences ---- */

/* Pairs, and what a row costs besides. */
static double work_of(const locus_sequence *s)
{
    return (double)(s->queries + LOCUS_PANEL) * (double)(s->keys + LOCUS_PANEL);
}

/* Those with most work first, so that threads end together; those of one shape in a row. */
static int compare_work(const void *left, const void *right)
{
    const locus_ragged_sequence *a = left, *b = right;
    const double a_work = work_of(&a->rows), b_work = work_of(&b->rows);
    if (a_work != b_work) return a_work > b_work ? -1 : 1;
    if (a->rows.queries != b->rows.queries) return a->rows.queries > b->rows.queries ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

static int same_shape(const locus_sequence *a, const locus_sequence *b)
{
    return a->queries == b->queries && a->keys == b->keys;
}

static int brings_positions(const locus_call *call)
{
    return locus_present(&call->q_positions) || locus_present(&call->k_positions);
}

static locus_status new_shapes(locus_plan *plan, const char *path, locus_error *error)
{
    locus_ragged *ragged = plan->ragged;
    const int alike = !brings_positions(&plan->call);
    for (int64_t i = 0; i < ragged->count; i++) {
        locus_ragged_sequence *s = &ragged->sequences[i];
        if (i == 0 || !alike || !same_shape(&s->rows, &s[-1].rows)) {
            locus_plan **shape = &ragged->shapes[ragged->shape_count++];
            LOCUS_TRY(new_shape(plan, &s->rows, path, shape, error));
        }
        s->plan = ragged->shapes[ragged->shape_count - 1];
    }
    return LOCUS_OK;
}

static int64_t forward_tasks(const locus_plan *plan)
{
    if (plan->call.Tq == 0 || plan->call.H == 0) return 0;
    return plan->rows_path ? locus_rows_path_tasks(plan) : locus_tiles_path_tasks(plan);
}

/* Chunks of a sequence's query tiles, and tasks of a unit: all sequences together give
 * TASKS_PER_THREAD units to each thread, or more where they are many; one thread takes each as a
 * whole. Forward, no cut changes a bit. */
static void cut_work(locus_plan *plan)
{
    locus_ragged *ragged = plan->ragged;
    double all = 0.0;
    for (int64_t i = 0; i < ragged->count; i++) all += work_of(&ragged->sequences[i].rows);
    for (int64_t i = 0; i < ragged->shape_count; i++) {
        locus_plan *shape = ragged->shapes[i];
        const locus_sequence rows = {.queries = shape->call.Tq, .keys = shape->call.Tk};
        const double share = all > 0.0 ? work_of(&rows) / all : 1.0;
        const double units = share * TASKS_PER_THREAD * (double)plan->threads;
        if (plan->threads == 1 || units < (double)shape->call.H) shape->forward_chunks = 1;
        const int64_t tasks = forward_tasks(shape);
        shape->unit_tasks = plan->threads == 1 || units <= 1.0
                                ? tasks
                                : max_i64(1, (int64_t)((double)tasks / units));
    }
}

static void number_work(locus_ragged *ragged)
{
    for (int64_t i = 0; i < ragged->count; i++) {
        locus_ragged_sequence *s = &ragged->sequences[i];
        const locus_plan *plan = s->plan;
        const int64_t tasks = forward_tasks(plan);
        s->first_unit = ragged->units;
        s->first_task = ragged->tasks;
        s->partial = ragged->partial;
        if (tasks == 0) continue;
        ragged->units += ceil_div(tasks, plan->unit_tasks);
        ragged->tasks += plan->call.H * plan->backward_chunks;
        ragged->partial += locus_rows_path_partial(plan);
    }
}

/* What all plans of shapes need of the whole: room around the biases. */
static void join_geometry(locus_plan *plan)
{
    const locus_ragged *ragged = plan->ragged;
    plan->rows_path = ragged->shape_count > 0;
    for (int64_t i = 0; i < ragged->shape_count; i++) {
        const locus_plan *shape = ragged->shapes[i];
        plan->rows_path &= shape->rows_path;
        plan->forward.distances = max_i64(plan->forward.distances, shape->forward.distances);
        plan->backward.distances = max_i64(plan->backward.distances, shape->backward.distances);
    }
}

locus_status locus_ragged_new(locus_plan *plan, const char *path, locus_error *error)
{
    const int64_t count = plan->call.sequences;
    locus_ragged *ragged = plan->ragged = locus_allocate(plan->allocator, 1, sizeof *ragged);
    if (ragged != NULL) {
        ragged->sequences =
            locus_allocate(plan->allocator, (size_t)count, sizeof *ragged->sequences);
        ragged->shapes = locus_allocate(plan->allocator, (size_t)count, sizeof *ragged->shapes);
    }
    if (ragged == NULL || ragged->sequences == NULL || ragged->shapes == NULL)
        return locus_fail(error, LOCUS_ERR_MEMORY, "plan: out of memory");
    ragged->count = count;
    for (int64_t i = 0; i < count; i++) {
        ragged->sequences[i].rows = locus_call_sequence(&plan->call, i);
        ragged->sequences[i].number = i;
    }
    qsort(ragged->sequences, (size_t)count, sizeof *ragged->sequences, compare_work);
    LOCUS_TRY(locus_lower(plan, &plan->shapes, error));
    plan->gathers = locus_gathers(plan, &plan->shapes);
    LOCUS_TRY(new_shapes(plan, path, error));
    cut_work(plan);
    number_work(ragged);
    join_geometry(plan);
    return LOCUS_OK;
}

void locus_ragged_free(locus_plan *plan)
{
    locus_ragged *ragged = plan->ragged;
    if (ragged == NULL) return;
    for (int64_t i = 0; i < ragged->shape_count; i++) {
        if (ragged->shapes[i] != NULL) locus_lower_free(ragged->shapes[i]);
        locus_release(plan->allocator, ragged->shapes[i]);
    }
    locus_release(plan->allocator, ragged->shapes);
    locus_release(plan->allocator, ragged->sequences);
    locus_release(plan->allocator, ragged);
}

size_t locus_ragged_most(const locus_plan *plan, size_t (*bytes)(const locus_plan *shape))
{
    size_t most = 0;
    for (int64_t i = 0; i < plan->ragged->shape_count; i++) {
        const size_t some = bytes(plan->ragged->shapes[i]);
        if (some > most) most = some;
    }
    return most;
}

/* ---- finding ---- */

/* The last sequence whose first number is at most `number`; those without work share theirs with
 * the one that follows. */
static const locus_ragged_sequence *find(const locus_ragged *ragged, int64_t number, int backward)
{
    int64_t low = 0, high = ragged->count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        const locus_ragged_sequence *s = &ragged->sequences[middle];
        if ((backward ? s->first_task : s->first_unit) <= number)
            low = middle;
        else
            high = middle;
    }
    return &ragged->sequences[low];
}

const locus_ragged_sequence *locus_ragged_unit(const locus_plan *plan, int64_t unit, int64_t *from,
                                               int64_t *to)
{
    const locus_ragged_sequence *s = find(plan->ragged, unit, 0);
    const int64_t each = s->plan->unit_tasks;
    *from = (unit - s->first_unit) * each;
    *to = min_i64(*from + each, forward_tasks(s->plan));
    return s;
}

const locus_ragged_sequence *locus_ragged_task(const locus_plan *plan, int64_t task)
{
    return find(plan->ragged, task, 1);
}

/* ---- views ---- */

static void cut_rows(locus_tensor *t, uint32_t axis, int64_t first, int64_t rows)
{
    if (t == NULL || !locus_present(t)) return;
    const int64_t bytes = (int64_t)locus_dtype_bytes(t->dtype);
    if (t->data != NULL) t->data = (char *)t->data + first * t->stride[axis] * bytes;
    t->shape[axis] = rows;
    t->stride[0] = 0; /* one batch entry, whatever its number */
}

void locus_ragged_tensors(const locus_ragged_sequence *sequence, const locus_tensors *all,
                          locus_tensors *own)
{
    const locus_sequence *s = &sequence->rows;
    *own = *all;
    cut_rows(&own->q, 2, s->first_query, s->queries);
    cut_rows(&own->k, 2, s->first_key, s->keys);
    cut_rows(&own->v, 2, s->first_key, s->keys);
    cut_rows(&own->pos_query, 2, s->first_query, s->queries);
    cut_rows(&own->gate, 2, s->first_query, s->queries);
    cut_rows(&own->key_mask, 1, s->first_key, s->keys);
    cut_rows(&own->log_gate, 2, s->first_key, s->keys);
    cut_rows(decays_of(&sequence->plan->call, own), 2, s->first_key, s->keys);
}

void locus_ragged_results(const locus_ragged_sequence *sequence, const locus_results *all,
                          locus_results *own)
{
    const locus_sequence *s = &sequence->rows;
    *own = *all;
    cut_rows(&own->out, 2, s->first_query, s->queries);
    cut_rows(&own->lse, 2, s->first_query, s->queries);
    cut_rows(&own->lse_low, 2, s->first_query, s->queries);
}

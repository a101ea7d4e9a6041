/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/reduce.h"

#include <string.h>

#include "attention/bias_parameters.h"
#include "attention/decay_spread.h"
#include "attention/ragged.h"
#include "core/parallel.h"

/* ---- zero ---- */

/* Walk the rows (last axis) of a tensor and zero them. */
static void zero_tensor(const locus_tensor *t)
{
    int64_t extent[LOCUS_MAX_RANK] = {1, 1, 1, 1}, stride[LOCUS_MAX_RANK] = {0, 0, 0, 0};
    const uint32_t shift = LOCUS_MAX_RANK - t->rank;
    const int64_t bytes = locus_is_half(t) ? 2 : 4;
    for (uint32_t i = 0; i < t->rank; i++) {
        extent[shift + i] = t->shape[i];
        stride[shift + i] = t->stride[i];
    }
    for (int64_t i = 0; i < extent[0]; i++)
        for (int64_t j = 0; j < extent[1]; j++)
            for (int64_t k = 0; k < extent[2]; k++) {
                const int64_t at = i * stride[0] + j * stride[1] + k * stride[2];
                memset((char *)t->data + at * bytes, 0, (size_t)(extent[3] * bytes));
            }
}

/* Of sequences without queries, which have no tasks. */
static void zero_unseen_keys(const locus_ragged *ragged, const locus_tensors *grad)
{
    for (int64_t i = 0; i < ragged->count; i++) {
        locus_tensors own;
        if (ragged->sequences[i].rows.queries > 0 || ragged->sequences[i].rows.keys == 0) continue;
        locus_ragged_tensors(&ragged->sequences[i], grad, &own);
        if (locus_present(&own.k)) zero_tensor(&own.k);
        if (locus_present(&own.v)) zero_tensor(&own.v);
    }
}

void locus_reduce_zero(const locus_backward_call *call)
{
    const locus_tensors *g = call->grad;
    const int tasks = locus_backward_tasks(call->plan) > 0 && call->plan->call.Tq > 0,
              own_keys = tasks && locus_heads_own_keys(call->plan, call->accumulate);
    if (call->plan->ragged != NULL) zero_unseen_keys(call->plan->ragged, g);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(g, i);
        if (((t == &g->q || t == &g->pos_query || t == &g->gate) && tasks) ||
            ((t == &g->k || t == &g->v) && own_keys) || t->dtype == LOCUS_F64)
            continue;
        if (tasks && locus_owned_by_heads(call, t)) continue;
        if (locus_present(t) && locus_tensor_elements(t) > 0) zero_tensor(t);
    }
}

/* ---- slots ---- */

/* Where rows of one kind of partial gradient go: partial row r to data + r row_stride, or to the
 * row that `rows` says. Rows that several shapes of a ragged batch add to have one number in all of
 * them, by which they are dealt out to threads: number + r step, or rows[r]. */
typedef struct target {
    float *data; /* of partial row `first` */
    int64_t row_stride;
    int64_t first, count;
    int64_t number, step;
    const int32_t *rows;
} target;

static target key_target(const locus_tensor *to, const backward_task *task, int64_t first_key,
                         int64_t count)
{
    return (
        target){locus_f32(to, task->b, task->kv, first_key), to->stride[2], 0, count, 0, 1, NULL};
}

/* Partial rows are entries of the table. */
static target table_target(const locus_plan *plan, const locus_tensor *to,
                           const backward_task *task)
{
    int64_t stride;
    float *entries = locus_table_entries(plan, to, task->h, &stride);
    const int shape = plan->whole != NULL;
    const int64_t last = plan->row_first + plan->row_count - 1;
    return (target){entries,
                    stride,
                    0,
                    plan->row_count,
                    !shape                 ? 0
                    : plan->table_descends ? last
                                           : plan->row_first,
                    shape && plan->table_descends ? -1 : 1,
                    shape ? plan->entry_row : NULL};
}

static target head_target(const locus_tensor *to, const backward_task *task)
{
    return (target){(float *)to->data + task->h * to->stride[0], 0, 0, 1, 0, 1, NULL};
}

/* Partial row r is row `first_position` + r of the tensor, if that has it. */
static target position_target(const locus_plan *plan, const locus_tensor *to,
                              const backward_task *task, int64_t first_position, int64_t count)
{
    const int64_t from = first_position < 0 ? -first_position : 0;
    const int64_t known = to->shape[1] - first_position;
    const int64_t end = count < known ? count : known;
    return (target){(float *)to->data + task->h * to->stride[0] +
                        (first_position + from) * to->stride[1],
                    to->stride[1],
                    from,
                    end > from ? end - from : 0,
                    plan->whole != NULL ? first_position : 0,
                    1,
                    NULL};
}

static void add_named_rows(const locus_kernels *kernels, locus_sums from, int64_t width,
                           const target *to, int64_t low, int64_t high)
{
    for (int64_t r = 0; r < to->count; r++)
        if (to->rows[r] >= low && to->rows[r] < high)
            kernels->add(to->data + to->rows[r] * to->row_stride, from.data + r * from.row_stride,
                         width);
}

/* Add the rows of a partial buffer whose numbers are low .. high - 1, as far as the target has
 * them. */
static void add_rows(const locus_kernels *kernels, locus_sums from, int64_t width, target to,
                     int64_t low, int64_t high)
{
    if (to.rows != NULL) {
        add_named_rows(kernels, from, width, &to, low, high);
        return;
    }
    const int64_t least = to.step > 0 ? low - to.number : to.number - high + 1;
    const int64_t begin = max_i64(least, to.first);
    const int64_t end = min_i64(least + (high - low), to.first + to.count);
    for (int64_t r = begin; r < end; r++)
        kernels->add(to.data + (r - to.first) * to.row_stride, from.data + r * from.row_stride,
                     width);
}

/* The key table and the table on the key side are one, and so are their partial rows. */
static int has_one_table(const locus_plan *plan)
{
    return plan->call.scheme->key_table == plan->call.scheme->query_table;
}

/* In a ragged batch: that of its sequence, whose keys begin with *first_key; *index becomes the
 * number of the task in it. */
static const locus_plan *plan_of_task(const locus_plan *whole, int64_t *index, int64_t *first_key)
{
    if (whole->ragged == NULL) return whole;
    const locus_ragged_sequence *s = locus_ragged_task(whole, *index);
    *index -= s->first_task;
    *first_key = s->rows.first_key;
    return s->plan;
}

/* Rows [low, high) of dk or dv of one task. */
typedef struct key_sums {
    const locus_backward_call *call;
    const locus_plan *plan;
    const backward_task *task;
    int64_t first_key, low, high;
} key_sums;

/* Tasks that share keys follow each other. In halves, their sums wait in floats until the last one
 * has been added; those of a single one do not. */
static void reduce_keys(const key_sums *k, locus_sums from, const locus_tensor *to, float *sums)
{
    const locus_plan *plan = k->plan;
    const backward_task *task = k->task;
    const int64_t width = from.row_stride, sharing = plan->call.H / plan->call.Hk;
    const int64_t chunks = plan->backward_chunks, chunk = task->index % chunks;
    const int first = task->h % sharing == 0 && chunk == 0;
    const int last = task->h % sharing == sharing - 1 && chunk == chunks - 1;
    if (!locus_is_half(to)) {
        add_rows(plan->kernels, from, width, key_target(to, task, k->first_key, plan->call.Tk),
                 k->low, k->high);
        return;
    }
    if (k->low >= k->high) return;
    const int64_t at = k->low * width, count = k->high - k->low;
    if (first && !last) memcpy(sums + at, from.data + at, (size_t)(count * width) * sizeof *sums);
    if (!first) plan->kernels->add(sums + at, from.data + at, count * width);
    if (last)
        locus_store_sums(plan, locus_rows_at(to, task->b, task->kv, k->first_key + k->low),
                         (first ? from.data : sums) + at, count, width, k->call->accumulate);
}

static void reduce_gates(const key_sums *k, const double *from, const locus_tensor *to)
{
    const int64_t first = k->first_key + k->plan->call.key_offset;
    double *sums = (double *)to->data + locus_offset(to, k->task->b, k->task->h, first, 0);
    for (int64_t n = k->low; n < k->high; n++) sums[n] -= from[n];
}

/* Rows [low, high): sums -= k dk, see decays.h. */
static void reduce_decays(const key_sums *k, locus_sums dk)
{
    const locus_backward_call *call = k->call;
    const locus_tensor *to = locus_log_decay(k->plan, call->grad);
    const int64_t D = dk.row_stride, first = k->first_key + k->plan->call.key_offset;
    const locus_rows keys =
        locus_rows_at(&call->in->k, k->task->b, k->task->kv, k->first_key + k->low);
    double *sums = (double *)to->data + locus_offset(to, k->task->b, k->task->h, first, 0);
    for (int64_t n = k->low; n < k->high; n++) {
        float key[LOCUS_MAX_WIDTH];
        locus_rows row = keys;
        row.data =
            (char *)keys.data + (n - k->low) * keys.stride * (keys.type == LOCUS_F32 ? 4 : 2);
        locus_load_rows(k->plan, key, row, 1, D);
        locus_decay_add_products(sums + n * D, -1.0, key, dk.data + n * D, D);
    }
}

/* Of two tables in a ragged batch, the entries of each go to the rows of their own. */
static void reduce_key_table(const locus_backward_call *call, const locus_plan *plan,
                             const backward_task *task, locus_sums from, int64_t low, int64_t high)
{
    const locus_kernels *k = plan->kernels;
    const int64_t width = from.row_stride;
    const locus_tensor *table = locus_key_table(plan, call->grad);
    const int two = plan->joined.rank != 0 && plan->whole != NULL;
    if (!two) {
        add_rows(k, from, width, table_target(plan, table, task), low, high);
        return;
    }
    const locus_tensor *const tables[] = {
        table, locus_tensor_slot(call->grad, plan->call.scheme->second_table)};
    for (int axis = 0; axis < 2; axis++) {
        const locus_place_axis *p = &plan->places[axis];
        const locus_sums own = {from.data + p->first * width, width};
        if (tables[axis] == NULL) continue;
        const locus_tensor *t = tables[axis];
        const target to = {t->rank == 3 ? locus_f32(t, task->h, 0, 0) : t->data,
                           t->stride[t->rank - 2],
                           0,
                           p->count,
                           0,
                           1,
                           plan->entry_row + p->first};
        add_rows(k, own, width, to, low, high);
    }
}

/* Rows [low, high) of one task's slot. */
static void reduce_task(const locus_backward_call *call, int64_t number, int64_t low, int64_t high)
{
    const locus_plan *whole = call->plan;
    int64_t index = call->first_task + number, first_key = 0;
    const locus_plan *plan = plan_of_task(whole, &index, &first_key);
    const locus_call *c = &plan->call;
    const locus_kernels *k = plan->kernels;
    const locus_tensors *g = call->grad;
    const backward_task task = locus_backward_task_at(plan, index, call->accumulate);
    locus_slot s;
    const locus_wanted wanted = locus_task_wanted(call, &task);
    locus_slot_carve(plan, &wanted, call->slots + (size_t)number * call->slot_bytes, &s);
    const key_sums keys = {call, plan, &task, first_key, low, min_i64(high, c->Tk)};
    if (wanted.log_decay) reduce_decays(&keys, s.k);
    if (s.k.data && locus_present(&g->k)) reduce_keys(&keys, s.k, &g->k, call->key_sums);
    if (s.v.data) reduce_keys(&keys, s.v, &g->v, call->value_sums);
    if (s.key_table.data) reduce_key_table(call, plan, &task, s.key_table, low, high);
    if (wanted.key_side_table && !has_one_table(plan))
        add_rows(k, s.key_side_table, c->D,
                 table_target(plan, locus_key_side_table(plan, g), &task), low, high);
    if (s.value_table.data)
        add_rows(k, s.value_table, c->Dv, table_target(plan, locus_value_table(plan, g), &task),
                 low, high);
    if (s.u) add_rows(k, (locus_sums){s.u, c->D}, c->D, head_target(&g->u, &task), low, high);
    if (s.w) add_rows(k, (locus_sums){s.w, c->D}, c->D, head_target(&g->w, &task), low, high);
    if (s.pos_q.data)
        add_rows(k, s.pos_q, c->D,
                 position_target(plan, &g->pos_q, &task, locus_position_row(plan, c->query_offset),
                                 c->Tq),
                 low, high);
    if (s.pos_k.data)
        add_rows(k, s.pos_k, c->D,
                 position_target(plan, &g->pos_k, &task, locus_position_row(plan, 0), c->Tk), low,
                 high);
    if (s.bias) {
        const int64_t start = locus_shape_start(plan),
                      end = min_i64(high, start + plan->table_span);
        double *total = call->bias_total + task.h * whole->table_span;
        for (int64_t z = max_i64(low, start); z < end; z++) total[z] += s.bias[z - start];
    }
    if (s.pair_bias && low == 0)
        for (int64_t x = 0; x < locus_bias_numbers(plan); x++) call->exact[x] += s.pair_bias[x];
    if (s.cls && low == 0) {
        for (int i = 0; i < CLS_ROWS; i++) call->cls_total[CLS_ROWS * task.h + i] += s.cls[i];
    }
    if (s.gate_sums) reduce_gates(&keys, s.gate_sums, &g->log_gate);
    if (s.sink && low == 0) call->sink_total[task.h] += *s.sink;
}

/* REDUCE_ROWS rows of every partial buffer, over all tasks of the round in order. */
static void reduce_rows(void *context, size_t index, uint32_t worker)
{
    const locus_backward_call *call = context;
    (void)worker;
    const int64_t low = (int64_t)index * REDUCE_ROWS;
    for (int64_t task = 0; task < call->round_tasks; task++)
        reduce_task(call, task, low, low + REDUCE_ROWS);
}

static int64_t row_numbers(const locus_plan *plan)
{
    int64_t rows = max_i64(plan->table_span, plan->row_count);
    if (plan->ragged == NULL) return max_i64(rows, max_i64(plan->call.Tk, plan->call.Tq));
    rows = max_i64(rows, plan->call.R);
    if (locus_present(&plan->shapes.pos_q)) rows = max_i64(rows, plan->shapes.pos_q.shape[1]);
    for (int64_t i = 0; i < plan->ragged->shape_count; i++) {
        const locus_call *shape = &plan->ragged->shapes[i]->call;
        rows = max_i64(rows, max_i64(shape->Tk, shape->Tq));
    }
    return rows;
}

void locus_reduce_round(const locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    if (call->slot_bytes == 0) return;
    const size_t pieces = (size_t)ceil_div(row_numbers(plan), REDUCE_ROWS);
    locus_parallel_for(plan->threads, pieces, reduce_rows, (void *)(uintptr_t)call);
}

/* ---- the bias and the reset ---- */

typedef struct pulled {
    const locus_backward_call *call;
    locus_tensors twins;
} pulled;

/* to[row] += the sums of its distances, in order. Neighbours mostly share a row, whose sum then
 * waits in a register instead of in memory. */
static void pull_back_rows(const locus_plan *plan, const double *by_z, double *to)
{
    for (int64_t z = 0; z < plan->table_span;) {
        const int32_t row = plan->bias_row[z];
        double sum = to[row * plan->call.H];
        for (; z < plan->table_span && plan->bias_row[z] == row; z++) sum += by_z[z];
        to[row * plan->call.H] = sum;
    }
}

static void pull_back_head(void *context, size_t head, uint32_t worker)
{
    const pulled *p = context;
    const locus_plan *plan = p->call->plan;
    const double *by_z = p->call->bias_total + (int64_t)head * plan->table_span;
    const int64_t h = (int64_t)head;
    (void)worker;
    if (plan->bias_row != NULL)
        pull_back_rows(plan, by_z, (double *)p->twins.bias.data + h);
    else
        plan->call.scheme->bias_grad(&plan->call, p->call->in, h, plan->table_top, 0,
                                     plan->table_span, by_z, &p->twins);
}

/* Heads that share a parameter add to it one after another: in one order, whatever the threads. */
static void pull_back(const locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    const uint32_t threads = locus_bias_is_shared(plan) ? 1 : plan->threads;
    pulled p = {call, locus_bias_twins(plan, call->exact)};
    locus_parallel_for(threads, (size_t)plan->call.H, pull_back_head, &p);
}

void locus_reduce_bias(const locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    const locus_tensors *g = call->grad;
    if (call->wanted.bias) pull_back(call);
    if (call->wanted.bias || call->wanted.pair_bias) {
        const locus_tensors twins = locus_bias_twins(plan, call->exact);
        locus_bias_add_twins(plan, g, &twins);
    }
    if (call->wanted.cls)
        for (int64_t h = 0; h < plan->call.H; h++)
            for (int64_t i = 0; i < g->cls.shape[0]; i++) {
                float *at = (float *)g->cls.data + locus_offset(&g->cls, i, h, 0, 0);
                *at = (float)((double)*at + call->cls_total[CLS_ROWS * h + i]);
            }
}

void locus_reduce_sink(const locus_backward_call *call)
{
    const locus_tensor *sink = &call->grad->sink;
    for (int64_t h = 0; h < call->plan->call.H; h++) {
        float *at = (float *)sink->data + locus_offset(sink, h, 0, 0, 0);
        *at = (float)((double)*at + call->sink_total[h]);
    }
}

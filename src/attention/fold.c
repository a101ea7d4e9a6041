/* SPDX-License-Identifier: Apache-2.0 */
/* Partial gradients of a round into the gradients, in the order of the units. */

#include <string.h>

#include "attention/backward.h"
#include "core/parallel.h"
#include "core/tensor.h"

enum { FOLD_ROWS = 256 }; /* rows of one folding task */

/* ---- zero ---- */

/* Walk the rows (last axis) of a tensor and zero them. */
static void zero_tensor(const locus_tensor *t)
{
    int64_t extent[LOCUS_MAX_RANK] = {1, 1, 1, 1}, stride[LOCUS_MAX_RANK] = {0, 0, 0, 0};
    const uint32_t shift = LOCUS_MAX_RANK - t->rank;
    for (uint32_t i = 0; i < t->rank; i++) {
        extent[shift + i] = t->shape[i];
        stride[shift + i] = t->stride[i];
    }
    for (int64_t i = 0; i < extent[0]; i++)
        for (int64_t j = 0; j < extent[1]; j++)
            for (int64_t k = 0; k < extent[2]; k++) {
                float *row = (float *)t->data + i * stride[0] + j * stride[1] + k * stride[2];
                memset(row, 0, (size_t)extent[3] * sizeof *row);
            }
}

void locus_fold_zero(const locus_backward_call *call)
{
    const locus_tensors *g = call->grad;
    const int units = locus_unit_count(call->plan) > 0 && call->plan->call.Tq > 0,
              own_keys = units && locus_heads_own_keys(call->plan, call->accumulate);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(g, i);
        if ((t == &g->q && units) || ((t == &g->k || t == &g->v) && own_keys)) continue;
        if (units && locus_owned_by_heads(call, t)) continue;
        if (locus_present(t) && locus_tensor_elements(t) > 0) zero_tensor(t);
    }
}

/* ---- slots ---- */

/* Where rows of one kind of partial gradient go. */
typedef struct target {
    float *data; /* of partial row `first` */
    int64_t row; /* stride */
    int64_t first, count;
} target;

static target key_target(const locus_tensor *to, const locus_unit *unit, int64_t count)
{
    return (target){(float *)to->data + unit->b * to->stride[0] + unit->kv * to->stride[1],
                    to->stride[2], 0, count};
}

/* Partial rows are entries of the table. */
static target table_target(const locus_plan *plan, const locus_tensor *to, const locus_unit *unit)
{
    int64_t stride;
    float *entries = locus_table_entries(plan, to, unit->h, &stride);
    return (target){entries, stride, 0, plan->row_count};
}

static target head_target(const locus_tensor *to, const locus_unit *unit)
{
    return (target){(float *)to->data + unit->h * to->stride[0], 0, 0, 1};
}

/* Partial row r is position first_position + r, of which [0, rows of the tensor) exist. */
static target place_target(const locus_tensor *to, const locus_unit *unit, int64_t first_position,
                           int64_t count)
{
    const int64_t from = first_position < 0 ? -first_position : 0;
    const int64_t known = to->shape[1] - first_position;
    const int64_t end = count < known ? count : known;
    return (target){(float *)to->data + unit->h * to->stride[0] +
                        (first_position + from) * to->stride[1],
                    to->stride[1], from, end > from ? end - from : 0};
}

/* Add rows [low, high) of a partial buffer, as far as the target has them. */
static void fold_rows(const locus_kernels *kernels, const float *from, int64_t width, target to,
                      int64_t low, int64_t high)
{
    if (from == NULL) return;
    const int64_t begin = low > to.first ? low : to.first;
    const int64_t end = high < to.first + to.count ? high : to.first + to.count;
    for (int64_t r = begin; r < end; r++)
        kernels->add(to.data + (r - to.first) * to.row, from + r * width, width);
}

static void fold_unit(const locus_backward_call *call, int64_t number, int64_t low, int64_t high)
{
    const locus_plan *plan = call->plan;
    const locus_call *c = &plan->call;
    const locus_kernels *k = plan->kernels;
    const locus_tensors *g = call->grad;
    const locus_unit unit = locus_unit_at(plan, call->first_unit + number, call->accumulate);
    locus_slot slot;
    const locus_wanted wanted = locus_unit_wanted(call, &unit);
    locus_slot_carve(plan, &wanted, call->slots + (size_t)number * call->slot_bytes, &slot);
    if (slot.k) fold_rows(k, slot.k, c->D, key_target(&g->k, &unit, c->Tk), low, high);
    if (slot.v) fold_rows(k, slot.v, c->Dv, key_target(&g->v, &unit, c->Tk), low, high);
    if (slot.key_table)
        fold_rows(k, slot.key_table, c->D, table_target(plan, locus_key_table(plan, g), &unit), low,
                  high);
    if (slot.query_table && slot.query_table != slot.key_table)
        fold_rows(k, slot.query_table, c->D, table_target(plan, locus_query_table(plan, g), &unit),
                  low, high);
    if (slot.value_table)
        fold_rows(k, slot.value_table, c->Dv, table_target(plan, locus_value_table(plan, g), &unit),
                  low, high);
    if (slot.u) fold_rows(k, slot.u, c->D, head_target(&g->u, &unit), low, high);
    if (slot.w) fold_rows(k, slot.w, c->D, head_target(&g->w, &unit), low, high);
    if (slot.pos_q)
        fold_rows(k, slot.pos_q, c->D, place_target(&g->pos_q, &unit, c->query_offset, c->Tq), low,
                  high);
    if (slot.pos_k)
        fold_rows(k, slot.pos_k, c->D, place_target(&g->pos_k, &unit, 0, c->Tk), low, high);
    if (slot.bias)
        for (int64_t z = low; z < high && z < plan->span; z++)
            call->bias_total[unit.h * plan->span + z] += slot.bias[z];
    if (slot.cls && low == 0) {
        call->cls_total[2 * unit.h] += slot.cls[0];
        call->cls_total[2 * unit.h + 1] += slot.cls[1];
    }
}

/* Task = a band of rows of every partial buffer, over all units of the round in order. */
static void fold_band(void *context, size_t index, uint32_t worker)
{
    const locus_backward_call *call = context;
    (void)worker;
    const int64_t low = (int64_t)index * FOLD_ROWS;
    for (int64_t unit = 0; unit < call->round_units; unit++)
        fold_unit(call, unit, low, low + FOLD_ROWS);
}

void locus_fold_round(const locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    int64_t rows = plan->span;
    if (plan->call.Tk > rows) rows = plan->call.Tk;
    if (plan->call.Tq > rows) rows = plan->call.Tq;
    if (plan->row_count > rows) rows = plan->row_count;
    const size_t bands = (size_t)((rows + FOLD_ROWS - 1) / FOLD_ROWS);
    locus_parallel_for(plan->threads, bands, fold_band, (void *)(uintptr_t)call);
}

/* ---- the bias and the reset ---- */

static void pull_back_head(void *context, size_t head, uint32_t worker)
{
    const locus_backward_call *call = context;
    const locus_plan *plan = call->plan;
    const double *by_z = call->bias_total + (int64_t)head * plan->span;
    const int64_t h = (int64_t)head;
    (void)worker;
    if (plan->bias_row != NULL) {
        double *to = (double *)call->exact.bias.data + h;
        for (int64_t z = 0; z < plan->span; z++) to[plan->bias_row[z] * plan->call.H] += by_z[z];
        return;
    }
    for (int64_t z = 0; z < plan->span; z++)
        plan->call.scheme->bias_grad(&plan->call, call->in, h, plan->call.most - z, by_z[z],
                                     &call->exact);
}

static void add_exact(const locus_tensor *to, const locus_tensor *from)
{
    if (!locus_present(to)) return;
    const int64_t columns = to->rank == 2 ? to->shape[1] : 1;
    for (int64_t i = 0; i < to->shape[0]; i++)
        for (int64_t j = 0; j < columns; j++) {
            float *at = (float *)to->data + locus_offset(to, i, j, 0, 0);
            *at = (float)((double)*at + ((const double *)from->data)[i * columns + j]);
        }
}

void locus_fold_bias(const locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    const locus_tensors *g = call->grad, *e = &call->exact;
    const locus_tensor *const pairs[][2] = {
        {&g->bias, &e->bias}, {&g->slopes, &e->slopes}, {&g->a, &e->a}, {&g->p, &e->p}};
    if (call->wanted.bias) {
        for (size_t i = 0; i < 4; i++)
            if (locus_present(pairs[i][1]))
                memset(pairs[i][1]->data, 0,
                       (size_t)locus_tensor_elements(pairs[i][1]) * sizeof(double));
        locus_parallel_for(plan->threads, (size_t)plan->call.H, pull_back_head,
                           (void *)(uintptr_t)call);
        for (size_t i = 0; i < 4; i++) add_exact(pairs[i][0], pairs[i][1]);
    }
    if (call->wanted.cls)
        for (int64_t h = 0; h < plan->call.H; h++)
            for (int64_t i = 0; i < 2; i++) {
                float *at = (float *)g->cls.data + locus_offset(&g->cls, i, h, 0, 0);
                *at = (float)((double)*at + call->cls_total[2 * h + i]);
            }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/gathered.h"

#include <string.h>

#include "attention/operand.h"
#include "core/parallel.h"

/* ---- what is gathered ---- */

/* The slot of the key table, there or not. */
static const locus_tensor *key_slot(const locus_plan *plan, const locus_tensors *in)
{
    const size_t offset = plan->call.scheme->key_table;
    if (offset >= sizeof *in) return NULL;
    return (const locus_tensor *)(const void *)((const char *)in + offset);
}

/* The entries of two tables are gathered in the place of the first. */
static const locus_tensor *second_table(const locus_plan *plan, const locus_tensors *in)
{
    return plan->joined.rank != 0 ? locus_tensor_slot(in, plan->call.scheme->second_table) : NULL;
}

static int joins(const locus_plan *plan, const locus_tensors *in, const locus_tensor *t)
{
    return plan->joined.rank != 0 && t == key_slot(plan, in) &&
           (locus_present(t) || second_table(plan, in) != NULL);
}

/* A relative table whose rows are not in the order of entries. */
static int is_jumping_table(const locus_plan *plan, const locus_tensors *in, const locus_tensor *t)
{
    if (plan->joined.rank != 0) return joins(plan, in, t);
    return plan->entry_row != NULL &&
           (t == locus_key_table(plan, in) || t == locus_key_side_table(plan, in) ||
            t == locus_value_table(plan, in));
}

static int is_converted(const locus_plan *plan, const locus_tensors *in, const locus_tensor *t)
{
    return locus_is_half(t) && t != &in->q && t != &in->k && t != &in->v && t != &in->bias_dense &&
           t != &in->pos_query && t != &in->gate && t != &in->log_gate &&
           t != locus_log_decay(plan, in);
}

/* The rows path reads a key table of any type where it is. */
static int is_read_in_place(const locus_plan *plan, const locus_tensors *in, const locus_tensor *t)
{
    return plan->rows_path && plan->whole == NULL && plan->ragged == NULL &&
           t == locus_key_table(plan, in) && t != locus_key_side_table(plan, in);
}

static int is_gathered(const locus_plan *plan, const locus_tensors *in, const locus_tensor *t,
                       locus_pass pass)
{
    if (is_jumping_table(plan, in, t)) return 1;
    if (!locus_present(t) || t == second_table(plan, in)) return 0;
    return is_converted(plan, in, t) && !(pass == LOCUS_FORWARD && is_read_in_place(plan, in, t));
}

int locus_gathers(const locus_plan *plan, const locus_tensors *shapes)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        if (is_gathered(plan, shapes, locus_tensor_at_const(shapes, i), LOCUS_BACKWARD)) return 1;
    return 0;
}

/* The shape of its floats: all of it, or the entries of each head. */
static locus_tensor gathered_view(const locus_plan *plan, const locus_tensors *in,
                                  const locus_tensor *t)
{
    if (joins(plan, in, t)) return plan->joined;
    locus_tensor view = locus_view(NULL, LOCUS_F32, t->rank, t->shape);
    if (!is_jumping_table(plan, in, t)) return view;
    view.shape[t->rank - 2] = plan->row_count;
    return locus_view(NULL, LOCUS_F32, t->rank, view.shape);
}

void locus_gathered_shapes(const locus_plan *plan, locus_tensors *shapes)
{
    const locus_tensors from = *shapes;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(&from, i);
        if (is_gathered(plan, &from, t, LOCUS_BACKWARD))
            *locus_tensor_at(shapes, i) = gathered_view(plan, &from, t);
    }
}

void locus_gather_carve(const locus_plan *plan, locus_pass pass, locus_arena *arena,
                        const locus_tensors *from, locus_tensors *gathered)
{
    if (!plan->gathers) return;
    *gathered = *from;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(from, i);
        if (!is_gathered(plan, from, t, pass)) continue;
        locus_tensor view = gathered_view(plan, from, t);
        view.data = locus_take_floats(arena, locus_tensor_elements(&view));
        *locus_tensor_at(gathered, i) = view;
        /* the gradients of entries meet in those of rows, which are rounded once */
        if (is_jumping_table(plan, from, t) && locus_is_half(t))
            locus_take_floats(arena, locus_tensor_elements(t));
        const locus_tensor *second = joins(plan, from, t) ? second_table(plan, from) : NULL;
        if (second != NULL && locus_is_half(second))
            locus_take_floats(arena, locus_tensor_elements(second));
    }
}

void locus_gather_keep(const locus_plan *plan, locus_pass pass, const locus_tensors *in,
                       const locus_tensors *kept, locus_tensors *gathered)
{
    *gathered = *in;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        if (is_gathered(plan, in, locus_tensor_at_const(in, i), pass))
            *locus_tensor_at(gathered, i) = *locus_tensor_at_const(kept, i);
}

/* ---- rows ---- */

static int64_t width_of(const locus_tensor *t) { return t->shape[t->rank - 1]; }

static int64_t rows_of(const locus_tensor *t)
{
    return width_of(t) > 0 ? locus_tensor_elements(t) / width_of(t) : 0;
}

/* Row `number` of all, counted along the leading axes. */
static locus_rows row_at(const locus_tensor *t, int64_t number)
{
    const int64_t bytes = locus_is_half(t) ? 2 : 4;
    int64_t at = 0;
    for (uint32_t axis = t->rank - 1; axis-- > 0;) {
        at += number % t->shape[axis] * t->stride[axis];
        number /= t->shape[axis];
    }
    return (locus_rows){(char *)t->data + at * bytes, 0, t->dtype};
}

/* The row of the caller's table that row `number` of the entries of all heads stands for; -1: none
 * does. */
static int64_t table_row(const locus_plan *plan, const locus_tensor *table, int64_t number)
{
    const int64_t head = number / plan->row_count, entry = number % plan->row_count;
    if (plan->entry_row[entry] < 0) return -1;
    const int64_t first = table->rank == 3 ? head * table->shape[1] : 0;
    return first + plan->entry_row[entry];
}

/* 1 when that table is the second of two. */
static int is_of_second(const locus_plan *plan, int64_t number)
{
    return plan->joined.rank != 0 && number % plan->row_count >= plan->places[1].first;
}

typedef struct copying {
    const locus_plan *plan;
    const locus_tensor *from, *second, *to; /* to: side by side */
    int jumps;
} copying;

static void copy_rows(void *context, size_t index, uint32_t worker)
{
    const copying *c = context;
    const int64_t width = width_of(c->to), first = (int64_t)index * REDUCE_ROWS;
    const int64_t end = min_i64(first + REDUCE_ROWS, rows_of(c->to));
    (void)worker;
    for (int64_t r = first; r < end; r++) {
        const locus_tensor *table = c->jumps && is_of_second(c->plan, r) ? c->second : c->from;
        const int64_t from = c->jumps ? table_row(c->plan, table, r) : r;
        float *to = (float *)c->to->data + r * width;
        if (from >= 0)
            locus_load_rows(c->plan, to, row_at(table, from), 1, width);
        else
            memset(to, 0, (size_t)width * sizeof *to);
    }
}

void locus_gather(const locus_plan *plan, locus_pass pass, const locus_tensors *in,
                  const locus_tensors *gathered)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(in, i);
        if (!is_gathered(plan, in, t, pass)) continue;
        copying c = {plan, t, second_table(plan, in), locus_tensor_at_const(gathered, i),
                     is_jumping_table(plan, in, t)};
        /* a sequence of a ragged batch has one thread */
        locus_parallel_for(plan->whole != NULL ? 1 : plan->threads,
                           (size_t)ceil_div(rows_of(c.to), REDUCE_ROWS), copy_rows, &c);
    }
}

/* ---- gradients ---- */

static void zero_floats(float *data, int64_t count)
{
    if (count > 0) memset(data, 0, (size_t)count * sizeof *data);
}

void locus_gather_zero(const locus_plan *plan, const locus_tensors *grad,
                       const locus_tensors *gathered)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(gathered, i);
        if (is_gathered(plan, grad, locus_tensor_at_const(grad, i), LOCUS_BACKWARD))
            zero_floats(t->data, locus_tensor_elements(t));
    }
}

/* The sums of the entries that are those of `to` meet in its rows, or in the floats of `room` for
 * halves, which begin as 0. */
static void add_entries(const locus_plan *plan, const locus_tensor *entries, int second,
                        const locus_tensor *to, float *room, int accumulate)
{
    if (!locus_present(to)) return;
    const int64_t width = width_of(to);
    const float *from = entries->data;
    locus_tensor rows = *to;
    if (locus_is_half(to)) {
        rows = locus_view(room, LOCUS_F32, to->rank, to->shape);
        zero_floats(rows.data, locus_tensor_elements(&rows));
    }
    for (int64_t r = 0; !accumulate && !locus_is_half(to) && r < rows_of(to); r++)
        zero_floats(row_at(to, r).data, width);
    for (int64_t r = 0; r < rows_of(entries); r++) {
        const int64_t row = is_of_second(plan, r) == second ? table_row(plan, to, r) : -1;
        if (row >= 0) plan->kernels->add(row_at(&rows, row).data, from + r * width, width);
    }
    for (int64_t r = 0; locus_is_half(to) && r < rows_of(to); r++)
        locus_store_sums(plan, row_at(to, r), row_at(&rows, r).data, 1, width, accumulate);
}

static void scatter_entries(const locus_plan *plan, const locus_tensor *entries,
                            const locus_tensors *grad, const locus_tensor *to, int accumulate)
{
    float *room = (float *)entries->data + locus_tensor_elements(entries);
    const locus_tensor *second = second_table(plan, grad);
    add_entries(plan, entries, 0, to, room, accumulate);
    if (locus_present(to) && locus_is_half(to)) room += locus_tensor_elements(to);
    if (second != NULL) add_entries(plan, entries, 1, second, room, accumulate);
}

void locus_scatter(const locus_plan *plan, const locus_tensors *gathered, const locus_tensors *grad,
                   int accumulate)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *from = locus_tensor_at_const(gathered, i);
        const locus_tensor *to = locus_tensor_at_const(grad, i);
        if (!is_gathered(plan, grad, to, LOCUS_BACKWARD)) continue;
        if (is_jumping_table(plan, grad, to)) {
            scatter_entries(plan, from, grad, to, accumulate);
            continue;
        }
        for (int64_t r = 0; r < rows_of(to); r++)
            locus_store_sums(plan, row_at(to, r), row_at(from, r).data, 1, width_of(to),
                             accumulate);
    }
}

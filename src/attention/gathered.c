/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/gathered.h"

#include <string.h>

#include "attention/operand.h"
#include "core/parallel.h"

/* ---- what is gathered ---- */

/* A relative table whose rows are not in the order of entries. */
static int is_jumping_table(const locus_plan *plan, const locus_tensors *in, const locus_tensor *t)
{
    return plan->entry_row != NULL &&
           (t == locus_key_table(plan, in) || t == locus_key_side_table(plan, in) ||
            t == locus_value_table(plan, in));
}

static int is_converted(const locus_tensors *in, const locus_tensor *t)
{
    return locus_is_half(t) && t != &in->q && t != &in->k && t != &in->v && t != &in->bias_dense;
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
    if (!locus_present(t)) return 0;
    if (is_jumping_table(plan, in, t)) return 1;
    return is_converted(in, t) && !(pass == LOCUS_FORWARD && is_read_in_place(plan, in, t));
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

/* The row of the caller's table that row `number` of the entries of all heads stands for. */
static int64_t table_row(const locus_plan *plan, const locus_tensor *table, int64_t number)
{
    const int64_t head = number / plan->row_count, entry = number % plan->row_count;
    return head * table->shape[table->rank - 2] + plan->entry_row[entry];
}

typedef struct copying {
    const locus_plan *plan;
    const locus_tensor *from, *to; /* to: side by side */
    int jumps;
} copying;

static void copy_rows(void *context, size_t index, uint32_t worker)
{
    const copying *c = context;
    const int64_t width = width_of(c->to), first = (int64_t)index * REDUCE_ROWS;
    const int64_t end = min_i64(first + REDUCE_ROWS, rows_of(c->to));
    (void)worker;
    for (int64_t r = first; r < end; r++) {
        const int64_t from = c->jumps ? table_row(c->plan, c->from, r) : r;
        locus_load_rows(c->plan, (float *)c->to->data + r * width, row_at(c->from, from), 1, width);
    }
}

void locus_gather(const locus_plan *plan, locus_pass pass, const locus_tensors *in,
                  const locus_tensors *gathered)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(in, i);
        if (!is_gathered(plan, in, t, pass)) continue;
        copying c = {plan, t, locus_tensor_at_const(gathered, i), is_jumping_table(plan, in, t)};
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

/* The sums of entries meet in the rows of the caller's floats, or in floats for those. */
static void add_entries(const locus_plan *plan, const locus_tensor *entries, const locus_tensor *to,
                        int accumulate)
{
    const int64_t width = width_of(to);
    const float *from = entries->data;
    locus_tensor rows = *to;
    if (locus_is_half(to)) {
        rows = locus_view((float *)entries->data + locus_tensor_elements(entries), LOCUS_F32,
                          to->rank, to->shape);
        zero_floats(rows.data, locus_tensor_elements(&rows));
    }
    for (int64_t r = 0; !accumulate && !locus_is_half(to) && r < rows_of(to); r++)
        zero_floats(row_at(to, r).data, width);
    for (int64_t r = 0; r < rows_of(entries); r++)
        plan->kernels->add(row_at(&rows, table_row(plan, to, r)).data, from + r * width, width);
    for (int64_t r = 0; locus_is_half(to) && r < rows_of(to); r++)
        locus_store_sums(plan, row_at(to, r), row_at(&rows, r).data, 1, width, accumulate);
}

void locus_scatter(const locus_plan *plan, const locus_tensors *gathered, const locus_tensors *grad,
                   int accumulate)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *from = locus_tensor_at_const(gathered, i);
        const locus_tensor *to = locus_tensor_at_const(grad, i);
        if (!is_gathered(plan, grad, to, LOCUS_BACKWARD)) continue;
        if (is_jumping_table(plan, grad, to)) {
            add_entries(plan, from, to, accumulate);
            continue;
        }
        for (int64_t r = 0; r < rows_of(to); r++)
            locus_store_sums(plan, row_at(to, r), row_at(from, r).data, 1, width_of(to),
                             accumulate);
    }
}

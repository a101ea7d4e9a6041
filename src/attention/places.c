/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/places.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"

/* Places stay so far from the ends of int32_t that no difference overflows. */
enum { MOST_PLACE = 1 << 29 };

/* A bias of any distance is a table while that has at most so many entries for a row. */
enum { ENTRIES_PER_ROW = 16, FEW_ENTRIES = 1 << 16 };

/* ---- ranges ---- */

static void find_range(locus_plan *plan, int axis)
{
    const locus_call *call = &plan->call;
    int64_t low = call->delta_low[axis], high = call->delta_high[axis], from, to;
    if (low > high) low = high = 0; /* no pair at all */
    if (axis == 0 && call->scheme->reach != NULL) {
        call->scheme->reach(call, &from, &to);
        low = min_i64(max_i64(low, from), to);
        high = min_i64(max_i64(high, from), to);
    }
    plan->places[axis].top = high;
    plan->places[axis].count = high - low + 1;
}

/* ---- places ---- */

/* The positions of all rows of one axis, those of queries first and less `top`: then a pair is
 * looked up at the position of its key less that of its query. */
typedef struct rows_of_axis {
    int64_t *position;
    int64_t queries, keys; /* of all batch entries that have positions of their own */
    int64_t query_entries, key_entries;
} rows_of_axis;

static int64_t entries_of(const locus_call *call, const locus_tensor *given)
{
    const uint32_t batched = locus_position_axes(call) > 1 ? 3 : 2;
    return locus_present(given) && given->rank == batched && given->shape[0] > 1 ? call->B : 1;
}

static int take_positions(const locus_plan *plan, int axis, rows_of_axis *rows)
{
    const locus_call *call = &plan->call;
    rows->query_entries = entries_of(call, &call->q_positions);
    rows->key_entries = entries_of(call, &call->k_positions);
    rows->queries = rows->query_entries * call->Tq;
    rows->keys = rows->key_entries * call->Tk;
    rows->position = locus_allocate(plan->allocator, (size_t)(rows->queries + rows->keys + 1),
                                    sizeof *rows->position);
    if (rows->position == NULL) return 0;
    for (int64_t i = 0; i < rows->queries; i++)
        rows->position[i] = locus_call_place(call, 0, i / call->Tq, i % call->Tq, axis,
                                             call->query_offset + i % call->Tq) -
                            plan->places[axis].top;
    for (int64_t i = 0; i < rows->keys; i++)
        rows->position[rows->queries + i] =
            locus_call_place(call, 1, i / call->Tk, i % call->Tk, axis, i % call->Tk);
    return 1;
}

static int compare(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

/* Where `position` comes to stand: the last of the sorted ones that is not above it. */
static int64_t moved(const int64_t *sorted, const int64_t *to, int64_t count, int64_t position)
{
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (sorted[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return to[low];
}

/* What is `reach` apart is beyond the table, so a gap that is wider may shrink to that. Positions
 * become places that begin with 0. Returns the greatest; -1: no memory. */
static int64_t shrink(const locus_plan *plan, rows_of_axis *rows, int64_t reach)
{
    const int64_t count = rows->queries + rows->keys;
    int64_t *sorted = locus_allocate(plan->allocator, (size_t)(2 * count + 1), sizeof *sorted);
    if (sorted == NULL) return -1;
    int64_t *to = sorted + count;
    for (int64_t i = 0; i < count; i++) sorted[i] = rows->position[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    for (int64_t i = 0; i < count; i++)
        to[i] = i == 0 ? 0 : to[i - 1] + min_i64(sorted[i] - sorted[i - 1], reach);
    const int64_t most = count > 0 ? to[count - 1] : 0;
    for (int64_t i = 0; i < count; i++)
        rows->position[i] = moved(sorted, to, count, rows->position[i]);
    locus_release(plan->allocator, sorted);
    return most;
}

static uint8_t kind_of(const int32_t *places)
{
    int rise = 1, stand = 1;
    for (int i = 1; i < LOCUS_LANES; i++) {
        rise &= places[i] == places[i - 1] + 1;
        stand &= places[i] == places[i - 1];
    }
    return rise ? LOCUS_PLACES_RISE : stand ? LOCUS_PLACES_STAND : LOCUS_PLACES_ANY;
}

static locus_status write_places(const locus_plan *plan, const rows_of_axis *rows,
                                 locus_place_axis *p)
{
    const int64_t Tq = plan->call.Tq, Tk = plan->call.Tk;
    const int64_t padded = ceil_div(Tk, LOCUS_LANES) * LOCUS_LANES;
    const size_t keys = (size_t)(rows->key_entries * padded);
    p->query = locus_allocate(plan->allocator, (size_t)rows->queries + 1, sizeof *p->query);
    p->key = locus_allocate(plan->allocator, keys + 1, sizeof *p->key);
    p->kinds = locus_allocate(plan->allocator, keys / LOCUS_LANES + 1, sizeof *p->kinds);
    if (p->query == NULL || p->key == NULL || p->kinds == NULL) return LOCUS_ERR_MEMORY;
    p->query_batch = rows->query_entries > 1 ? Tq : 0;
    p->key_batch = rows->key_entries > 1 ? padded : 0;
    p->kinds_batch = p->key_batch / LOCUS_LANES;
    for (int64_t i = 0; i < rows->queries; i++) p->query[i] = (int32_t)-rows->position[i];
    for (int64_t i = 0; i < rows->key_entries * padded; i++) {
        const int64_t n = min_i64(i % padded, Tk - 1);
        p->key[i] = (int32_t)rows->position[rows->queries + i / padded * Tk + n];
    }
    for (int64_t g = 0; g < (int64_t)keys / LOCUS_LANES; g++)
        p->kinds[g] = kind_of(p->key + g * LOCUS_LANES);
    return LOCUS_OK;
}

static locus_status lower_axis(locus_plan *plan, int axis, locus_error *error)
{
    locus_place_axis *p = &plan->places[axis];
    rows_of_axis rows = {0};
    if (!take_positions(plan, axis, &rows)) return LOCUS_ERR_MEMORY;
    const int64_t most = shrink(plan, &rows, p->count + 1);
    locus_status status = most < 0 ? LOCUS_ERR_MEMORY : LOCUS_OK;
    if (most > MOST_PLACE)
        status = locus_fail(error, LOCUS_ERR_UNSUPPORTED,
                            "tensor %s: found positions too many and too far apart for a table of "
                            "%" PRId64 " distances",
                            locus_present(&plan->call.q_positions) ? "q_positions" : "k_positions",
                            p->count);
    if (status == LOCUS_OK) status = write_places(plan, &rows, p);
    locus_release(plan->allocator, rows.position);
    return status;
}

locus_status locus_lower_places(locus_plan *plan, locus_error *error)
{
    const locus_call *call = &plan->call;
    const int axes = call->scheme->second_table != 0 ? 2 : 1;
    plan->late_bias = 1;
    for (int axis = 0; axis < axes; axis++) find_range(plan, axis);
    const int64_t few = max_i64(FEW_ENTRIES, ENTRIES_PER_ROW * (call->Tq + call->Tk));
    if (plan->has_bias && call->scheme->reach == NULL && plan->places[0].count > few) {
        plan->has_bias = 0;
        plan->has_pair_bias = 1;
    }
    plan->table_top = plan->places[0].top;
    plan->table_span = plan->places[0].count;
    plan->place_axes = axes;
    locus_status status = LOCUS_OK;
    if (plan->has_pair_bias || call->sequences > 0) return status; /* tables, if any, by sequence */
    for (int axis = 0; axis < axes && status == LOCUS_OK; axis++)
        status = lower_axis(plan, axis, error);
    return status;
}

void locus_places_free(locus_plan *plan)
{
    for (int axis = 0; axis < 2; axis++) {
        locus_release(plan->allocator, plan->places[axis].query);
        locus_release(plan->allocator, plan->places[axis].key);
        locus_release(plan->allocator, plan->places[axis].kinds);
    }
}

locus_status locus_lower_two_tables(locus_plan *plan)
{
    const locus_call *call = &plan->call;
    if (call->sequences > 0) return LOCUS_OK; /* each has its own */
    const int64_t first = plan->places[0].count, all = first + plan->places[1].count;
    plan->places[1].first = first;
    plan->row_count = all;
    plan->table_steps = 1;
    plan->entry_row = locus_allocate(plan->allocator, (size_t)all, sizeof *plan->entry_row);
    plan->index_memory = locus_allocate(plan->allocator, (size_t)all, sizeof *plan->index_memory);
    if (plan->entry_row == NULL || plan->index_memory == NULL) return LOCUS_ERR_MEMORY;
    plan->index = plan->index_memory;
    for (int64_t e = 0; e < all; e++) {
        const int second = e >= first;
        const int64_t delta = plan->places[second].top - (second ? e - first : e);
        plan->index[e] = (int32_t)e;
        plan->entry_row[e] = (int32_t)(second ? call->scheme->second_row(call, delta)
                                              : call->scheme->row(call, delta));
    }
    const locus_tensor *h = locus_tensor_slot(&plan->shapes, call->scheme->key_table);
    const locus_tensor *w = locus_tensor_slot(&plan->shapes, call->scheme->second_table);
    const int by_head = h->rank == 3 || w->rank == 3;
    const int64_t shape[] = {call->H, all, call->D};
    plan->joined = locus_view(NULL, LOCUS_F32, by_head ? 3 : 2, by_head ? shape : shape + 1);
    return LOCUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Positions that a call brings: numbers that take the places of a row's own wherever a scheme has
 * a distance. Which pairs there are stays with the rows' own positions. */
#include <inttypes.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* Distances of such positions stay far from the ends of int64_t, also as rows of a grid. */
static const int64_t most_position = (int64_t)1 << 31;

static int brings(const locus_call *call)
{
    return locus_present(&call->q_positions) || locus_present(&call->k_positions);
}

static locus_status check_numbers(const locus_tensor *t, const char *name, locus_error *error)
{
    for (int64_t i = 0; i < locus_tensor_elements(t); i++)
        if (locus_whole(t, i) < -most_position || locus_whole(t, i) > most_position)
            return locus_fail(error, LOCUS_ERR_TENSOR,
                              "tensor %s: found %" PRId64 " at %" PRId64 ", expected -2^31..2^31",
                              name, locus_whole(t, i), i);
    return LOCUS_OK;
}

/* ---- the very positions that rows have ---- */

/* How far the rows of one side stand from their own positions; 0: not all alike. */
static int find_shift(const locus_call *call, int is_key, int64_t *shift, int *known)
{
    for (int64_t s = 0; s < locus_sequence_count(call); s++) {
        const locus_sequence own = locus_call_sequence(call, s);
        const int64_t first = is_key ? own.first_key : own.first_query;
        const int64_t rows = is_key ? own.keys : own.queries;
        const int64_t origin = is_key ? 0 : own.query_offset;
        for (int64_t b = 0; b < call->B; b++)
            for (int64_t i = 0; i < rows; i++) {
                const int64_t by_index = origin + i + call->key_offset;
                const int64_t found =
                    locus_call_position(call, is_key, b, first + i, 0, origin + i) - by_index;
                if (!*known) *shift = found;
                *known = 1;
                if (found != *shift) return 0;
            }
    }
    return 1;
}

/* 1 where every distance is that of the rows. A bias that sees m, too, must see the same m. */
static int are_own(const locus_call *call)
{
    int64_t shift = 0;
    int known = call->scheme->bias_by_pair;
    return find_shift(call, 0, &shift, &known) && find_shift(call, 1, &shift, &known);
}

/* ---- which distances there are ---- */

/* The least and the greatest of the keys in a window whose ends only rise: ascending, and
 * descending, candidates. */
typedef struct window {
    int64_t *values; /* by key */
    int32_t *rising, *falling;
    int64_t rising_from, rising_to, falling_from, falling_to;
} window;

static void push_key(window *w, int64_t n)
{
    while (w->rising_to > w->rising_from && w->values[w->rising[w->rising_to - 1]] >= w->values[n])
        w->rising_to--;
    while (w->falling_to > w->falling_from &&
           w->values[w->falling[w->falling_to - 1]] <= w->values[n])
        w->falling_to--;
    w->rising[w->rising_to++] = (int32_t)n;
    w->falling[w->falling_to++] = (int32_t)n;
}

static void drop_keys(window *w, int64_t below)
{
    while (w->rising_from < w->rising_to && w->rising[w->rising_from] < below) w->rising_from++;
    while (w->falling_from < w->falling_to && w->falling[w->falling_from] < below)
        w->falling_from++;
}

/* Rows at position 0 of their own are served by `cls` in a scheme of two axes: they have no
 * distance. */
static int has_distance(const locus_call *call, int resets, int64_t position)
{
    return !resets || position + call->key_offset != 0;
}

static void range_of_sequence(locus_call *call, const locus_sequence *s, int64_t b, int axis,
                              int resets, window *w)
{
    w->rising_from = w->rising_to = w->falling_from = w->falling_to = 0;
    for (int64_t n = 0; n < s->keys; n++)
        w->values[n] = locus_call_position(call, 1, b, s->first_key + n, axis, n);
    int64_t next = 0;
    for (int64_t i = 0; i < s->queries; i++) {
        const int64_t m = s->query_offset + i, below = m - call->high;
        for (; next < s->keys && next <= m - call->low; next++)
            if (has_distance(call, resets, next)) push_key(w, next);
        drop_keys(w, below);
        if (w->rising_from == w->rising_to || !has_distance(call, resets, m)) continue;
        const int64_t p = locus_call_position(call, 0, b, s->first_query + i, axis, m);
        const int64_t low = p - w->values[w->falling[w->falling_from]];
        const int64_t high = p - w->values[w->rising[w->rising_from]];
        if (call->delta_low[axis] > call->delta_high[axis]) {
            call->delta_low[axis] = low;
            call->delta_high[axis] = high;
        }
        if (low < call->delta_low[axis]) call->delta_low[axis] = low;
        if (high > call->delta_high[axis]) call->delta_high[axis] = high;
    }
}

/* Of the pairs that causal and window let through, in every batch entry. */
static locus_status find_ranges(locus_call *call, int resets, const locus_allocator *allocator,
                                locus_error *error)
{
    const int axes = call->scheme->places;
    const size_t keys = (size_t)call->Tk + 1;
    window w = {.values = locus_allocate(allocator, keys, sizeof *w.values),
                .rising = locus_allocate(allocator, keys, 2 * sizeof *w.rising)};
    const int lacks = w.values == NULL || w.rising == NULL;
    if (!lacks) w.falling = w.rising + keys;
    for (int axis = 0; !lacks && axis < axes; axis++) {
        call->delta_low[axis] = 0;
        call->delta_high[axis] = -1;
        for (int64_t b = 0; b < call->B; b++)
            for (int64_t i = 0; i < locus_sequence_count(call); i++) {
                const locus_sequence s = locus_call_sequence(call, i);
                range_of_sequence(call, &s, b, axis, resets, &w);
            }
    }
    locus_release(allocator, w.values);
    locus_release(allocator, w.rising);
    return lacks ? locus_fail(error, LOCUS_ERR_MEMORY, "plan: out of memory") : LOCUS_OK;
}

locus_status locus_check_places(locus_call *call, const locus_tensors *shapes,
                                const locus_allocator *allocator, locus_error *error)
{
    call->delta_low[0] = call->least;
    call->delta_high[0] = call->most;
    if (call->scheme->places == 0 || !brings(call)) return LOCUS_OK;
    LOCUS_TRY(check_numbers(&call->q_positions, "q_positions", error));
    LOCUS_TRY(check_numbers(&call->k_positions, "k_positions", error));
    if (call->scheme->places == 1 && are_own(call)) {
        call->q_positions.rank = call->k_positions.rank = 0;
        return LOCUS_OK;
    }
    call->placed = 1;
    return find_ranges(call, call->scheme->places == 2 && locus_present(&shapes->cls), allocator,
                       error);
}

/* ---- what everybody asks ---- */

int64_t locus_call_place(const locus_call *call, int is_key, int64_t batch, int64_t row, int axis,
                         int64_t own)
{
    const int64_t first = locus_call_position(call, is_key, batch, row, axis, own);
    if (call->grid_width == 0) return first;
    return first * call->grid_width + locus_call_position(call, is_key, batch, row, 1, own);
}

locus_status locus_check_grid(const locus_call *call, int axis, const char *name, int64_t rows,
                              locus_error *error)
{
    const int64_t reach = (rows - 1) / 2;
    if (rows % 2 == 0)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found %" PRId64 " rows for axis %c, expected an odd number",
                          name, rows, "yx"[axis]);
    if (call->delta_low[axis] > call->delta_high[axis] ||
        (call->delta_low[axis] >= -reach && call->delta_high[axis] <= reach))
        return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_RANGE,
                      "tensor %s: found rows for distances -%" PRId64 "..%" PRId64
                      " on axis %c, expected %" PRId64 "..%" PRId64,
                      name, reach, reach, "yx"[axis], call -> delta_low[axis],
                      call -> delta_high[axis]);
}

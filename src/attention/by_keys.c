/* SPDX-License-Identifier: Apache-2.0 */
/* A table that meets the keys: DeBERTa's position to content, relative_key_query's second term.
 * Key j of a tile meets one entry with every row, a stretch of `rows` entries at most, which
 * moves upwards with j:
 *
 *        entries →   low ................ high
 *     key 0          [ met ............ ]
 *     key 1            [ met ............ ]       the products, folds and sums of the rest
 *     ...                                         are left out
 *
 * They lie by keys and are transposed on their way to the scores, and back. */

#include <string.h>

#include "attention/relative.h"
#include "attention/stretch.h"
#include "core/tensor.h"

enum { SOME = 6 }; /* rows of a register tile: of so many what one of them meets is computed */

static locus_strip key_strip(const locus_head *head, float *data)
{
    const locus_geometry *g = head->geometry;
    return (locus_strip){data, locus_strip_width(head->plan, g->rows, g->keys), 0, 0};
}

/* Key j meets entries first + from[j] .. first + to[j] - 1. */
typedef struct reach {
    int32_t from[MOST_KEYS], to[MOST_KEYS];
} reach;

static locus_stretch find_met(const locus_plan *plan, const locus_tile *tile, int64_t first,
                              reach *met)
{
    const locus_stretch s = locus_stretch_of(plan, tile->delta_00, tile->rows, tile->columns);
    for (int64_t j = 0; j < tile->columns; j++) {
        met->from[j] = (int32_t)(s.origin[j - (tile->rows - 1)] - first);
        met->to[j] = (int32_t)(s.origin[j] - first + 1);
    }
    return s;
}

/* ---- scores ---- */

locus_strip locus_products_by_keys(const locus_head *head, const locus_tile *tile,
                                   const locus_tensor *table)
{
    const locus_tensor *k = &head->in->k;
    reach met;
    const locus_stretch s = find_met(head->plan, tile, 0, &met);
    const locus_operand keys = {locus_f32(k, head->b, head->kv, tile->key),
                                k->stride[2],
                                tile->columns,
                                head->plan->call.D,
                                table,
                                head->worker->query_table_panels,
                                met.from,
                                met.to};
    locus_strip strip = key_strip(head, head->worker->key_strip);
    strip.first = strip.end = locus_panel_start(s.low);
    locus_strip_extend(head, &keys, s.high, &strip);
    return strip;
}

locus_slice locus_slice_by_keys(const locus_head *head, const locus_band *block,
                                const locus_strip *strip, locus_slice plus)
{
    const locus_plan *plan = head->plan;
    const locus_stretch s = locus_band_stretch(plan, block);
    const locus_slice slice = {head->worker->places, head->geometry->stride, NULL};
    const locus_column_table table = {strip->data + block->column * strip->width, strip->width,
                                      (int32_t)strip->first, s.origin, (float)plan->call.scale};
    float *to = head->worker->places;
    if (locus_is_far(plan, block)) {
        for (int64_t j = 0; j < block->columns; j++)
            to[j] = table.factor * table.data[j * table.row + (s.low - strip->first)];
        return (locus_slice){to, 0, plus.shift};
    }
    if (plan->table_steps) {
        plan->kernels->read_columns(to, slice.row, &table, plus.data, plus.row, block->rows,
                                    block->columns);
        return slice;
    }
    for (int64_t i = 0; i < block->rows; i++)
        for (int64_t j = 0; j < block->columns; j++)
            to[i * slice.row + j] =
                table.factor * table.data[j * table.row + s.origin[j - i] - table.first] +
                (plus.data != NULL ? plus.data[i * plus.row + j] : 0.0f);
    return slice;
}

/* ---- gradients ---- */

/* Keys as rows, LOCUS_LANES of them at a time, and queries backwards, so that entries ascend:
 * flipped[k][r] = T[rows - 1 - r][j + k]. */
static void fold_flipped(const locus_head *head, const locus_tile *tile, const float *T,
                         const locus_strip *strip)
{
    const locus_plan *plan = head->plan;
    const int64_t stride = head->geometry->stride, last = tile->rows - 1;
    const int64_t flipped_row = head->geometry->rows + LOCUS_LANES;
    float *flipped = head->worker->flipped;
    for (int64_t j = 0; j < tile->columns; j += LOCUS_LANES) {
        const int64_t count = locus_least(LOCUS_LANES, tile->columns - j);
        const int64_t first = j - last - tile->delta_00, at = locus_vector_start(first);
        const locus_fold_tile fold = {.y = strip->data + j * strip->width,
                                      .y_row = strip->width,
                                      .first = (int32_t)strip->first,
                                      .index = plan->index + plan->call.most + at,
                                      .x = flipped,
                                      .x_row = flipped_row,
                                      .rows = count,
                                      .width = tile->rows,
                                      .start = first - at,
                                      .slope = 1};
        plan->kernels->transpose(flipped, flipped_row, T + last * stride + j, -stride, tile->rows,
                                 count);
        plan->kernels->fold(&fold);
    }
}

static void fold_one_by_one(const locus_head *head, const locus_tile *tile, const float *T,
                            const locus_strip *strip)
{
    const int32_t *origin = head->plan->index + head->plan->call.most - tile->delta_00;
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = 0; j < tile->columns; j++)
            strip->data[j * strip->width + origin[j - i] - strip->first] +=
                T[i * head->geometry->stride + j];
}

/* strip[j][entry(i, j)] = factor times the sum of T[i][j], where key j meets it. */
static locus_strip fold_by_keys(const locus_head *head, const locus_tile *tile, const float *T,
                                float factor, reach *met)
{
    locus_strip strip = key_strip(head, head->worker->key_strip);
    const locus_stretch s = locus_stretch_of(head->plan, tile->delta_00, tile->rows, tile->columns);
    strip.first = s.low;
    strip.end = s.high + 1;
    find_met(head->plan, tile, s.low, met);
    /* What some keys meet, their neighbours' sums read as 0. */
    for (int64_t j = 0; j < tile->columns; j++)
        memset(strip.data + j * strip.width, 0,
               (size_t)(strip.end - strip.first) * sizeof *strip.data);
    (head->plan->table_steps ? fold_flipped : fold_one_by_one)(head, tile, T, &strip);
    for (int64_t j = 0; j < tile->columns; j++) {
        float *row = strip.data + j * strip.width + met->from[j];
        head->plan->kernels->scale(row, row, factor, met->to[j] - met->from[j]);
    }
    return strip;
}

/* to[j] += sum of strip[j][entry] entry */
static void add_to_keys(const locus_head *head, const locus_tile *tile, const locus_strip *strip,
                        const reach *met, const locus_block *entries, locus_sums to)
{
    for (int64_t j = 0; j < tile->columns; j += SOME) {
        const int64_t keys = locus_least(SOME, tile->columns - j);
        const int64_t from = met->from[j], end = met->to[j + keys - 1];
        const locus_strip part = {strip->data + j * strip->width + from, strip->width,
                                  strip->first + from, strip->first + end};
        locus_add_entries(head, entries, &part, keys, end - from, to.data + j * to.row, to.row,
                          head->plan->call.D);
    }
}

/* to[entry] += sum of strip[j][entry] k_j */
static void add_to_entries(const locus_head *head, const locus_tile *tile, const locus_strip *strip,
                           const reach *met, const locus_block *keys, locus_sums to)
{
    const int64_t D = head->plan->call.D, count = strip->end - strip->first;
    int64_t low = 0, high = 0; /* the keys that meet one of `some` entries */
    for (int64_t e = 0; e < count; e += SOME) {
        const int64_t some = locus_least(SOME, count - e);
        while (low < tile->columns && met->to[low] <= e) low++;
        while (high < tile->columns && met->from[high] < e + some) high++;
        head->plan->kernels->gemm(to.data + (strip->first + e) * to.row, to.row,
                                  strip->data + low * strip->width + e, 1, strip->width,
                                  keys->clean + low * keys->clean_row, keys->clean_row, some,
                                  high - low, D, 1);
    }
}

void locus_spread_by_keys(const locus_head *head, const locus_tile *tile, const float *T,
                          const locus_block *keys, locus_sums to_keys, locus_sums to_entries)
{
    const locus_plan *plan = head->plan;
    const locus_block entries =
        locus_entries(head, locus_query_table(plan, head->in), head->worker->query_table_bad);
    const locus_pair_view by_entry = locus_by_entry(head, tile);
    const int64_t D = plan->call.D;
    reach met;
    const locus_strip strip = fold_by_keys(head, tile, T, (float)plan->call.scale, &met);
    if (to_keys.data != NULL) {
        add_to_keys(head, tile, &strip, &met, &entries, to_keys);
        locus_patch(head, tile, T, to_keys.data, to_keys.row, locus_by_column(), &entries, by_entry,
                    D);
    }
    if (to_entries.data == NULL) return;
    add_to_entries(head, tile, &strip, &met, keys, to_entries);
    locus_patch(head, tile, T, to_entries.data, to_entries.row, by_entry, keys, locus_by_column(),
                D);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A table that meets the keys: DeBERTa's position to content, relative_key_query's second term.
 * Entry e of a tile meets every key at one distance or a few, a stretch of `rows` keys or so, which
 * moves upwards with e:
 *
 *        keys →      0 ................ columns - 1
 *     entry low      [ met ]
 *     entry low + 1  [ met ... ]
 *     ...               [ met ............ ]       the products, folds and sums of the rest
 *     entry high                     [ met ]       are left out
 *
 * They lie by entries, so that the packed keys serve here too; a row of the tile meets a diagonal
 * of them, see kernels/columns.inc.c. */

#include <string.h>

#include "attention/relative.h"
#include "attention/stretch.h"
#include "core/tensor.h"

enum {
    SOME = 6, /* rows of a register tile: of so many what one of them meets is computed */
    MOST_ENTRIES = MOST_ROWS + MOST_KEYS
};
_Static_assert(SOME == LOCUS_FOLD_MARGIN + 1, "what some read is written");

int64_t locus_key_strip_floats(const locus_plan *plan, const locus_geometry *g)
{
    const int64_t met = plan->table_steps ? g->rows + g->keys : plan->row_count;
    return (locus_least(met, plan->row_count) + 2 * LOCUS_FOLD_SLACK) * g->stride;
}

/* Behind the slack that fold_columns may write. */
static locus_strip key_strip(const locus_head *head, const locus_stretch *s)
{
    const int64_t row = head->geometry->stride;
    return (locus_strip){head->worker->key_strip + LOCUS_FOLD_SLACK * row, row, s->low,
                         s->high + 1};
}

/* Key j meets entries first + from[j] .. first + to[j] - 1. */
typedef struct reach {
    int32_t from[MOST_KEYS], to[MOST_KEYS];
} reach;

static void find_met(const locus_tile *tile, const locus_stretch *s, reach *met)
{
    for (int64_t j = 0; j < tile->columns; j++) {
        met->from[j] = (int32_t)(s->origin[j - (tile->rows - 1)] - s->low);
        met->to[j] = (int32_t)(s->origin[j] - s->low + 1);
    }
}

/* ---- scores ---- */

/* Of `count` entries from low + first on, the keys from[e] .. to[e] - 1 meet entry e. */
static void find_keys(const locus_tile *tile, const locus_stretch *s, int64_t first, int64_t count,
                      int32_t *from, int32_t *to)
{
    const int64_t columns = tile->columns, low = s->low + first;
    int64_t y = 1 - tile->rows; /* j - i */
    for (int64_t e = 0; e < count; e++) {
        while (y < columns && s->origin[y] < low + e) y++;
        from[e] = (int32_t)locus_most(y, 0);
        int64_t last = y;
        while (last + 1 < columns && s->origin[last + 1] <= low + e) last++;
        to[e] = (int32_t)locus_least(last + tile->rows, columns);
        y = last;
    }
}

locus_strip locus_products_by_keys(const locus_head *head, const locus_tile *tile,
                                   const locus_tensor *table)
{
    const locus_plan *plan = head->plan;
    const int64_t D = plan->call.D;
    const locus_stretch s = locus_stretch_of(plan, tile->delta_00, tile->rows, tile->columns);
    const locus_strip strip = key_strip(head, &s);
    int64_t stride;
    const float *entries = locus_table_entries(plan, table, head->h, &stride) + s.low * stride;
    for (int64_t e = 0; e < strip.end - strip.first; e += MOST_ENTRIES) {
        const int64_t count = locus_least(MOST_ENTRIES, strip.end - strip.first - e);
        int32_t from[MOST_ENTRIES], to[MOST_ENTRIES];
        find_keys(tile, &s, e, count, from, to);
        const locus_product_tile product = {.c = strip.data + e * strip.width,
                                            .c_row = strip.width,
                                            .a = entries + e * stride,
                                            .a_row = stride,
                                            .panels = head->worker->key_panels +
                                                      locus_panel_at(tile->key, D),
                                            .rows = count,
                                            .inner = D,
                                            .columns = tile->columns,
                                            .from = from,
                                            .to = to};
        plan->kernels->product(&product);
    }
    return strip;
}

locus_slice locus_slice_by_keys(const locus_head *head, const locus_band *block,
                                const locus_strip *strip, locus_slice plus)
{
    const locus_plan *plan = head->plan;
    const locus_stretch s = locus_band_stretch(plan, block);
    const locus_column_table table = {strip->data + block->column, strip->width,
                                      (int32_t)strip->first, s.origin, locus_row_scale(head)};
    float *to = head->worker->places;
    if (locus_is_far(plan, block)) {
        plan->kernels->scale(to, table.data + (s.low - strip->first) * table.row, table.factor,
                             block->columns);
        return (locus_slice){to, 0, plus.shift};
    }
    const locus_slice slice = {to, head->geometry->stride, NULL};
    plan->kernels->read_columns(to, slice.row, &table, plus.data, plus.row, block->rows,
                                block->columns);
    return slice;
}

/* ---- gradients ---- */

static void fold_one_by_one(const locus_tile *tile, const float *T, int64_t t_row,
                            const locus_column_table *table, int64_t entries)
{
    for (int64_t e = 0; e < entries; e++)
        memset(table->data + e * table->row, 0, (size_t)tile->columns * sizeof *table->data);
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = 0; j < tile->columns; j++)
            table->data[(table->index[j - i] - table->first) * table->row + j] +=
                T[i * t_row + j] * table->factor;
}

/* strip[entry(i, j)][j] = scale times the sum of T[i][j], where key j meets it, and 0 in the
 * neighbourhood. */
static locus_strip fold_by_keys(const locus_head *head, const locus_tile *tile, const float *T,
                                reach *met)
{
    const locus_plan *plan = head->plan;
    const locus_stretch s = locus_stretch_of(plan, tile->delta_00, tile->rows, tile->columns);
    const locus_strip strip = key_strip(head, &s);
    const locus_column_table table = {strip.data, strip.width, (int32_t)strip.first, s.origin,
                                      locus_row_scale(head)};
    const int64_t stride = head->geometry->stride;
    find_met(tile, &s, met);
    if (plan->table_steps)
        plan->kernels->fold_columns(T, stride, &table, tile->rows, tile->columns);
    else
        fold_one_by_one(tile, T, stride, &table, strip.end - strip.first);
    return strip;
}

/* to[j] += sum of strip[entry][j] entry */
static void add_to_keys(const locus_head *head, const locus_tile *tile, const locus_strip *strip,
                        const reach *met, const locus_block *entries, locus_sums to)
{
    for (int64_t j = 0; j < tile->columns; j += SOME) {
        const int64_t keys = locus_least(SOME, tile->columns - j);
        const int64_t from = met->from[j], end = met->to[j + keys - 1];
        const locus_weights weights = {strip->data + from * strip->width + j, 1, strip->width,
                                       strip->first + from};
        locus_add_entries(head, entries, &weights, keys, end - from, to.data + j * to.row, to.row,
                          head->plan->call.D);
    }
}

/* to[entry] += sum of strip[entry][j] k_j */
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
                                  strip->data + e * strip->width + low, strip->width, 1,
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
    const locus_strip strip = fold_by_keys(head, tile, T, &met);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/key_side.h"

#include <string.h>

#include "attention/placed.h"

enum { MAX_ENTRIES = MAX_TILE_ROWS + MAX_TILE_KEYS };
_Static_assert(LOCUS_FOLD_MARGIN == LOCUS_REGISTER_ROWS - 1,
               "fold margin must cover a register tile");

int64_t locus_key_strip_floats(const locus_plan *plan, const locus_geometry *g)
{
    const int64_t used = plan->table_steps ? g->rows + g->keys : plan->row_count;
    return (min_i64(used, plan->row_count) + 2 * LOCUS_FOLD_SLACK) * g->stride;
}

int64_t locus_key_band_floats(const locus_geometry *g)
{
    return min_i64(BAND_ROWS, g->rows) * g->stride;
}

/* Behind the slack that fold_columns may write. */
static locus_strip key_strip(const head_context *head, const locus_band *tile, float *room)
{
    const int64_t stride = head->geometry->stride;
    return (locus_strip){room + LOCUS_FOLD_SLACK * stride, stride, tile->low, tile->high + 1};
}

/* Key j uses entries first + from[j] .. first + to[j] - 1. */
typedef struct reach {
    int32_t from[MAX_TILE_KEYS], to[MAX_TILE_KEYS];
} reach;

static void find_used(const locus_band *tile, reach *used)
{
    for (int64_t j = 0; j < tile->columns; j++) {
        used->from[j] = (int32_t)(tile->origin[j - (tile->rows - 1)] - tile->low);
        used->to[j] = (int32_t)(tile->origin[j] - tile->low + 1);
    }
}

/* ---- scores ---- */

/* Of `count` entries from low + first on, the keys from[e] .. to[e] - 1 use entry e. */
static void find_keys(const locus_band *tile, int64_t first, int64_t count, int32_t *from,
                      int32_t *to)
{
    const int64_t columns = tile->columns, low = tile->low + first;
    int64_t y = 1 - tile->rows; /* j - i */
    for (int64_t e = 0; e < count; e++) {
        while (y < columns && tile->origin[y] < low + e) y++;
        from[e] = (int32_t)max_i64(y, 0);
        int64_t last = y;
        while (last + 1 < columns && tile->origin[last + 1] <= low + e) last++;
        to[e] = (int32_t)min_i64(last + tile->rows, columns);
        y = last;
    }
}

locus_strip locus_key_strip_products(const head_context *head, const locus_tile *tile,
                                     const locus_keys *keys, float *room)
{
    const locus_plan *plan = head->plan;
    const locus_band whole = locus_whole_tile(plan, tile);
    const locus_strip strip = key_strip(head, &whole, room);
    const int64_t D = plan->call.D, entries = strip.end - strip.first;
    int64_t stride;
    const float *table =
        locus_table_entries(plan, locus_key_side_table(plan, head->in), head->h, &stride);
    for (int64_t e = 0; e < entries; e += MAX_ENTRIES) {
        const int64_t count = min_i64(MAX_ENTRIES, entries - e);
        int32_t from[MAX_ENTRIES], to[MAX_ENTRIES];
        find_keys(&whole, e, count, from, to);
        const locus_product_tile product = {.c = strip.data + e * strip.row_stride,
                                            .c_stride = strip.row_stride,
                                            .a = table + (strip.first + e) * stride,
                                            .a_stride = stride,
                                            .panels = keys->panels + locus_panel_at(tile->key, D),
                                            .rows = count,
                                            .inner = D,
                                            .columns = tile->columns,
                                            .from = from,
                                            .to = to};
        plan->kernels->product(&product);
    }
    return strip;
}

void locus_key_strip_add(const head_context *head, const locus_band *segment,
                         const locus_strip *strip, float *room, locus_product_tile *product)
{
    const locus_kernels *kernels = head->plan->kernels;
    const locus_column_table table = {strip->data + segment->column, strip->row_stride,
                                      (int32_t)strip->first, segment->origin,
                                      locus_row_scale(head)};
    if (locus_has_one_entry(segment)) { /* product->shift stays */
        kernels->scale(room, table.data + (segment->low - strip->first) * table.row_stride,
                       table.factor, segment->columns);
        product->plus = room;
        product->plus_stride = 0;
        return;
    }
    const int64_t stride = head->geometry->stride;
    kernels->read_columns(room, stride, &table, product->plus, product->plus_stride, segment->rows,
                          segment->columns);
    product->plus = room;
    product->plus_stride = stride;
}

void locus_placed_key_side_add(const head_context *head, const locus_tile *tile, locus_keys *keys,
                               float *score)
{
    const locus_plan *plan = head->plan;
    const locus_tensor *table = locus_key_side_table(plan, head->in);
    int64_t stride, key_stride;
    const float *rows = locus_key_rows(head, keys, tile->key, tile->columns, &key_stride);
    const float *entries = locus_table_entries(plan, table, head->h, &stride);
    int32_t index[MAX_TILE_KEYS];
    for (int64_t i = 0; i < tile->rows; i++) {
        const int64_t from = tile->from[i], count = tile->to[i] - from;
        locus_placed_entries(head, tile, i, index);
        if (count > 0)
            plan->kernels->pair_dots(score + i * head->geometry->stride + from,
                                     rows + from * key_stride, key_stride, entries, stride,
                                     index + from, count, plan->call.D, (float)plan->call.scale);
    }
}

/* ---- gradients ---- */

static void fold_one_by_one(const locus_tile *tile, const float *T, int64_t t_stride,
                            const locus_column_table *table, int64_t entries)
{
    for (int64_t e = 0; e < entries; e++)
        memset(table->data + e * table->row_stride, 0, (size_t)tile->columns * sizeof *table->data);
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = 0; j < tile->columns; j++)
            table->data[(table->index[j - i] - table->first) * table->row_stride + j] +=
                T[i * t_stride + j] * table->factor;
}

/* strip[entry(i, j)][j] = scale times the sum of T[i][j], where key j uses it, and 0 in the
 * neighbourhood. */
static locus_strip fold_to_keys(const head_context *head, const locus_tile *tile, const float *T,
                                float *room, reach *used)
{
    const locus_plan *plan = head->plan;
    const locus_band whole = locus_whole_tile(plan, tile);
    const locus_strip strip = key_strip(head, &whole, room);
    const locus_column_table table = {strip.data, strip.row_stride, (int32_t)strip.first,
                                      whole.origin, locus_row_scale(head)};
    const int64_t stride = head->geometry->stride;
    find_used(&whole, used);
    if (plan->table_steps)
        plan->kernels->fold_columns(T, stride, &table, tile->rows, tile->columns);
    else
        fold_one_by_one(tile, T, stride, &table, strip.end - strip.first);
    return strip;
}

/* to[j] += sum of strip[entry][j] entry */
static void add_to_keys(const head_context *head, const locus_tile *tile, const locus_strip *strip,
                        const reach *used, const locus_operand *entries, locus_sums to)
{
    for (int64_t j = 0; j < tile->columns; j += LOCUS_REGISTER_ROWS) {
        const int64_t keys = min_i64(LOCUS_REGISTER_ROWS, tile->columns - j);
        const int64_t from = used->from[j], end = used->to[j + keys - 1];
        const locus_weights weights = {strip->data + from * strip->row_stride + j, 1,
                                       strip->row_stride, strip->first + from};
        locus_add_entries(head, entries, &weights, keys, end - from,
                          (locus_sums){to.data + j * to.row_stride, to.row_stride},
                          head->plan->call.D);
    }
}

/* to[entry] += sum of strip[entry][j] k_j */
static void add_to_entries(const head_context *head, const locus_tile *tile,
                           const locus_strip *strip, const reach *used, const locus_operand *keys,
                           locus_sums to)
{
    const int64_t D = head->plan->call.D, count = strip->end - strip->first;
    int64_t low = 0, high = 0; /* the keys that use one of the entries of a register tile */
    for (int64_t e = 0; e < count; e += LOCUS_REGISTER_ROWS) {
        const int64_t rows = min_i64(LOCUS_REGISTER_ROWS, count - e);
        while (low < tile->columns && used->to[low] <= e) low++;
        while (high < tile->columns && used->from[high] < e + rows) high++;
        head->plan->kernels->gemm(to.data + (strip->first + e) * to.row_stride, to.row_stride,
                                  strip->data + e * strip->row_stride + low, strip->row_stride, 1,
                                  keys->clean + low * keys->clean_stride, keys->clean_stride, rows,
                                  high - low, D, 1);
    }
}

/* to += factor row, where the row is finite; locus_patch adds the others. */
static void add_row(const locus_plan *plan, float *to, float factor, const float *row, int bad)
{
    const int64_t D = plan->call.D;
    if (!bad) plan->kernels->scale_rows(to, D, row, D, NULL, factor, 1, D, 1);
}

static void spread_placed(const head_context *head, const locus_tile *tile, const float *T,
                          const locus_key_side_gradients *g)
{
    const locus_plan *plan = head->plan;
    const locus_operand *keys = g->keys, *entries = g->entries;
    const float scale = locus_row_scale(head);
    int32_t index[MAX_TILE_KEYS];
    for (int64_t i = 0; i < tile->rows; i++) {
        locus_placed_entries(head, tile, i, index);
        for (int64_t j = tile->from[i]; j < tile->to[i]; j++) {
            const float factor = scale * T[i * head->geometry->stride + j];
            if (factor == 0.0f) continue;
            if (g->to_keys.data != NULL)
                add_row(plan, g->to_keys.data + j * g->to_keys.row_stride, factor,
                        entries->raw + index[j] * entries->raw_stride, entries->bad[index[j]]);
            if (g->to_entries.data != NULL)
                add_row(plan, g->to_entries.data + index[j] * g->to_entries.row_stride, factor,
                        keys->clean + j * keys->clean_stride, 0);
        }
    }
}

/* The pairs of the tile through its key strip. */
static void spread_strip(const head_context *head, const locus_tile *tile, const float *T,
                         const locus_key_side_gradients *g)
{
    reach used;
    const locus_strip strip = fold_to_keys(head, tile, T, g->key_strip, &used);
    if (g->to_keys.data != NULL) add_to_keys(head, tile, &strip, &used, g->entries, g->to_keys);
    if (g->to_entries.data != NULL)
        add_to_entries(head, tile, &strip, &used, g->keys, g->to_entries);
}

void locus_key_side_spread(const head_context *head, const locus_tile *tile, const float *T,
                           const locus_key_side_gradients *g)
{
    const locus_pair_view by_entry = locus_by_entry(head->plan, tile);
    const int64_t D = head->plan->call.D;
    if (head->plan->place_axes > 0)
        spread_placed(head, tile, T, g);
    else
        spread_strip(head, tile, T, g);
    if (g->to_keys.data != NULL)
        locus_patch(head, tile, T, g->to_keys, locus_by_column(), g->entries, by_entry, D);
    if (g->to_entries.data == NULL) return;
    locus_patch(head, tile, T, g->to_entries, by_entry, g->keys, locus_by_column(), D);
}

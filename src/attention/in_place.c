/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/in_place.h"

#include <string.h>

#include "attention/counted.h"
#include "attention/decays.h"
#include "attention/gates.h"
#include "attention/key_side.h"
#include "attention/late_bias.h"
#include "attention/lower.h"
#include "attention/placed.h"

/* Keys that are multiplied at a time where something is done to each: a core has room for few
 * requests to memory. */
enum { BURST = LOCUS_LANES };

void locus_in_place_carve(const locus_plan *plan, locus_arena *arena, locus_scores *scores)
{
    const locus_geometry *g = &plan->forward;
    const int positions = locus_present(&plan->shapes.pos_q);
    locus_scores_carve(plan, g, arena, scores);
    scores->pos_scores = locus_take_optional(arena, positions, (g->rows + LOCUS_LANES) * g->stride);
    scores->bias_room = locus_take_optional(arena, plan->has_bias, g->distances);
}

void locus_in_place_carve_own(const locus_plan *plan, locus_arena *arena, locus_scores *scores)
{
    scores->strips =
        locus_take_optional(arena, plan->index != NULL, locus_strips_floats(plan, &plan->forward));
}

/* ---- products ---- */

/* C = A . right rows + plus, as kernels->dots */
typedef struct dots {
    float *c;
    int64_t c_stride;
    const float *a;
    int64_t a_stride;
    locus_rows right;
    int64_t rows, columns, inner;
    const float *plus;
    int64_t plus_stride;
} dots;

static void multiply(const locus_scores *s, const dots *d)
{
    s->head->plan->kernels->dots(d->c, d->c_stride, d->a, d->a_stride, d->right.data,
                                 d->right.stride, d->right.type, d->rows, d->inner, d->columns,
                                 d->plus, d->plus_stride,
                                 locus_prefetch_due(s->prefetch, d->columns));
}

/* Keys [first, first + count) turned. */
static void turn_keys(const locus_scores *s, float *to, int64_t first, int64_t count)
{
    const locus_plan *plan = s->head->plan;
    const int64_t D = plan->call.D;
    locus_rows keys = locus_stored_keys(s->head, &s->head->in->k, first);
    if (keys.type != LOCUS_F32) {
        locus_load_rows(plan, to, keys, count, D);
        keys = (locus_rows){to, D, LOCUS_F32};
    }
    plan->kernels->turn(to, D, keys.data, keys.stride, locus_key_turns(plan, s->head->b, first),
                        plan->call.pairs, plan->call.options.pairing == LOCUS_PAIRING_INTERLEAVED,
                        1.0f, count, D, locus_prefetch_due(s->prefetch, count));
}

/* A few keys are turned and used at once, so that reading them goes on all the while. They stay
 * for the other heads that share them. */
static void multiply_turned(locus_scores *s, const dots *all, int64_t key)
{
    const int64_t D = s->head->plan->call.D;
    locus_keys *keys = s->keys;
    const int turned = keys->copied_first == key && keys->copied_count >= all->columns;
    for (int64_t c = 0; c < all->columns; c += BURST) {
        dots some = *all;
        some.c += c;
        some.columns = min_i64(BURST, all->columns - c);
        some.right = (locus_rows){keys->copies + c * D, D, LOCUS_F32};
        if (some.plus != NULL) some.plus += c;
        if (!turned) turn_keys(s, keys->copies + c * D, key + c, some.columns);
        multiply(s, &some);
    }
    keys->copied_first = key;
    keys->copied_count = all->columns;
}

/* One query that shares its keys with no other head has no use for turned keys. */
static int turns_in_passing(const locus_plan *plan, int64_t rows)
{
    const int64_t pairs = plan->call.pairs;
    return rows == 1 && plan->forward.group == 1 && 2 * pairs == plan->call.D &&
           pairs % LOCUS_LANES == 0;
}

static locus_rows decayed_keys(const locus_scores *s, int64_t key, int64_t count)
{
    int64_t stride;
    const float *rows = locus_key_rows(s->head, s->keys, key, count, &stride);
    return (locus_rows){(float *)(uintptr_t)rows, stride, LOCUS_F32};
}

/* The content product of a segment, plus what `product` adds. */
static void multiply_content(locus_scores *s, const locus_tile *tile, const locus_band *segment,
                             const float *content, const locus_product_tile *product)
{
    const locus_plan *plan = s->head->plan;
    const int64_t D = plan->call.D, stride = s->head->geometry->stride;
    const int64_t key = tile->key + segment->column;
    dots d = {.c = s->score + segment->first * stride + segment->column,
              .c_stride = stride,
              .a = content + segment->first * D,
              .a_stride = D,
              .right = locus_stored_keys(s->head, &s->head->in->k, key),
              .rows = segment->rows,
              .columns = segment->columns,
              .inner = D,
              .plus = product->plus,
              .plus_stride = product->plus_stride};
    if (plan->has_decay) d.right = decayed_keys(s, key, d.columns);
    if (plan->turn_key == NULL)
        multiply(s, &d);
    else if (turns_in_passing(plan, d.rows))
        plan->kernels->turn_dots(d.c, d.a, d.right.data, d.right.stride, d.right.type,
                                 locus_key_turns(plan, s->head->b, key), plan->call.pairs,
                                 plan->call.options.pairing == LOCUS_PAIRING_INTERLEAVED, d.columns,
                                 d.plus, locus_prefetch_due(s->prefetch, d.columns));
    else
        multiply_turned(s, &d, key);
    for (int64_t i = 0; product->shift != NULL && i < d.rows; i++)
        for (int64_t j = 0; j < d.columns; j++) d.c[i * stride + j] += product->shift[i];
}

/* Make the strip hold the products of the rows with the entries of the band. */
static void multiply_entries(const locus_scores *s, const locus_band *band, locus_strip *strip)
{
    const locus_plan *plan = s->head->plan;
    const locus_queries *q = s->queries;
    const locus_tensor *table = locus_key_table(plan, s->head->in);
    const int placed = locus_meets_every_entry(plan); /* every entry, once per query tile */
    const int64_t high = placed ? plan->row_count - 1 : band->high;
    if (placed && strip->end > 0) return;
    if (!placed) locus_strip_roll(plan->kernels, strip, locus_panel_start(band->low), band->rows);
    for (int64_t count; (count = locus_strip_missing(plan, strip, high)) > 0;) {
        multiply(s, &(dots){.c = strip->data + (strip->end - strip->first),
                            .c_stride = strip->row_stride,
                            .a = q->with_position + band->first * q->position_stride,
                            .a_stride = q->position_stride,
                            .inner = plan->key_width,
                            .right = locus_entry_rows(plan, table, s->head->h, strip->end),
                            .rows = band->rows,
                            .columns = count});
        locus_strip_grow(strip, count);
    }
    if (placed) locus_placed_expand(plan, strip, band->rows);
}

/* score[i][j] += scale k_j . entry(i, j) of a table on the key side */
static void add_key_side(const locus_scores *s, const locus_tile *tile)
{
    const head_context *head = s->head;
    const locus_plan *plan = head->plan;
    const locus_tensor *table = locus_key_side_table(plan, head->in);
    if (table == NULL) return;
    if (plan->place_axes > 0) {
        locus_placed_key_side_add(head, tile, s->keys, s->score);
        return;
    }
    int64_t stride, key_stride;
    const float *all_keys = locus_key_rows(head, s->keys, tile->key, tile->columns, &key_stride);
    const float *entries = locus_table_entries(plan, table, head->h, &stride);
    const int32_t *origin = plan->index + locus_z_of(plan, tile->delta_00);
    for (int64_t c = 0; c < tile->columns; c += BURST) {
        const int64_t count = min_i64(BURST, tile->columns - c);
        const float *keys = all_keys + c * key_stride;
        locus_prefetch_now(s->prefetch, BURST);
        for (int64_t i = 0; i < tile->rows; i++)
            plan->kernels->pair_dots(s->score + i * head->geometry->stride + c, keys, key_stride,
                                     entries, stride, origin + c - i, count, plan->call.D,
                                     (float)plan->call.scale);
    }
}

/* Keys that nobody sees may have no row in pos_k. */
static void multiply_positions(const locus_scores *s, const locus_tile *tile, const float *bias)
{
    const head_context *head = s->head;
    const locus_tensor *pos_k = &head->in->pos_k;
    const int64_t D = head->plan->call.D, stride = head->geometry->stride;
    const int64_t first = locus_position_row(head->plan, tile->key);
    const int64_t known = max_i64(0, min_i64(tile->columns, pos_k->shape[1] - first));
    multiply(s, &(dots){.c = s->pos_scores,
                        .c_stride = stride,
                        .a = s->queries->pos_q_rows,
                        .a_stride = D,
                        .right = locus_rows_at(pos_k, head->h, first, 0),
                        .rows = tile->rows,
                        .columns = known,
                        .inner = D,
                        .plus = bias,
                        .plus_stride = -1});
    for (int64_t i = 0; i < tile->rows; i++)
        memset(s->pos_scores + i * stride + known, 0,
               (size_t)(tile->columns - known) * sizeof *s->pos_scores);
}

/* ---- scores ---- */

/* What row 0 of the tile reads of the bias; row i reads it i floats before. */
static const float *tile_bias(const locus_scores *s, const locus_tile *tile)
{
    const locus_plan *plan = s->head->plan;
    if (s->bias != NULL || !plan->has_bias || plan->place_axes > 0)
        return locus_tile_bias(plan, s->bias, tile);
    const int64_t z_00 = locus_z_of(plan, tile->delta_00), first = z_00 - (tile->rows - 1);
    locus_lower_bias(plan, s->head->in, s->head->h, first, z_00 + tile->columns, s->bias_room);
    return s->bias_room + (z_00 - first);
}

static void score_with_tables(locus_scores *s, const locus_tile *tile, const float *content)
{
    const locus_plan *plan = s->head->plan;
    const int key_table = locus_key_table(plan, s->head->in) != NULL;
    const locus_band band = locus_whole_tile(plan, tile);
    locus_strip *strip = &s->key_strips[0];
    if (key_table) multiply_entries(s, &band, strip);
    if (locus_meets_every_entry(plan)) {
        locus_product_tile product = {0};
        multiply_content(s, tile, &band, content, &product);
        add_key_side(s, tile);
        return;
    }
    for (int64_t column = 0; column < tile->columns;) {
        const locus_band segment = locus_segment_at(plan, &band, column);
        locus_product_tile product = {0};
        if (key_table) locus_strip_add(plan, &segment, strip, s->strip_room, &product);
        multiply_content(s, tile, &segment, content, &product);
        column += segment.columns;
    }
    add_key_side(s, tile);
}

static void score_without_tables(locus_scores *s, const locus_tile *tile, const float *content)
{
    const locus_plan *plan = s->head->plan;
    locus_product_tile product = {.plus_stride = -1};
    if (plan->place_axes == 0 && !plan->late_bias) product.plus = tile_bias(s, tile);
    if (locus_present(&s->head->in->pos_q)) {
        multiply_positions(s, tile, product.plus);
        if (plan->has_reset) locus_reset_positions(s, tile);
        product.plus = s->pos_scores;
        product.plus_stride = s->head->geometry->stride;
    }
    const locus_band whole = locus_whole_tile(plan, tile);
    multiply_content(s, tile, &whole, content, &product);
}

static int in_place_scores(locus_scores *s, const locus_tile *tile)
{
    const int64_t keys = s->head->geometry->keys, number = tile->key / keys;
    if (s->head->plan->has_decay)
        s->keys->decay_ranges[number] = locus_decay_range_of(s->head, number * keys);
    const float *content = locus_content_rows(s, tile);
    if (s->steep)
        locus_steep_scores(s, tile);
    else if (s->head->plan->index != NULL)
        score_with_tables(s, tile, content);
    else
        score_without_tables(s, tile, content);
    if (s->head->plan->counts) locus_add_counted(s, tile);
    if (s->head->plan->late_bias) locus_add_late_bias(s, tile, tile_bias(s, tile));
    locus_tile_cap(s->head, tile, s->score, NULL);
    if (s->head->plan->has_log_gate) locus_add_gates(s, tile);
    locus_tile_mask(s->head, tile, s->score);
    return 0;
}

/* ---- values ---- */

/* Halves that are bad somewhere are copied twice, as they are and clean: `room` has place for both. */
static locus_operand stored_values(const locus_scores *s, const locus_tile *tile, float *room)
{
    const locus_plan *plan = s->head->plan;
    const int64_t Dv = plan->call.Dv, count = tile->columns;
    const uint8_t *bad = s->keys->value_bad + tile->key;
    locus_operand values = {.stored = locus_stored_keys(s->head, &s->head->in->v, tile->key),
                            .bad = bad};
    if (memchr(bad, 1, (size_t)count) != NULL) {
        float *raw = room + s->head->geometry->keys * Dv;
        locus_load_rows(plan, raw, values.stored, count, Dv);
        values = locus_operand_of(raw, Dv, count, Dv, bad, room);
    }
    values.of_weights = 1;
    return values;
}

static locus_operand in_place_values(const locus_scores *s, const locus_tile *tile, float *room)
{
    locus_find_bad_values(s->head, s->keys, tile->key, tile->columns);
    if (locus_is_half(&s->head->in->v)) return stored_values(s, tile, room);
    return locus_value_operand(s->head, s->keys, tile->key, tile->columns, room);
}

static void in_place_add_values(const locus_scores *s, const locus_tile *tile,
                                const locus_operand *values, float *out, const float *rescale)
{
    const locus_kernels *kernels = s->head->plan->kernels;
    const int64_t Dv = s->head->plan->call.Dv;
    const locus_rows clean = {(float *)(uintptr_t)values->clean, values->clean_stride, LOCUS_F32};
    const locus_rows rows = values->clean != NULL ? clean : values->stored;
    if (rescale == NULL) memset(out, 0, (size_t)(tile->rows * Dv) * sizeof *out);
    for (int64_t i = 0; rescale != NULL && i < tile->rows; i++)
        if (rescale[i] != 1.0f) kernels->scale(out + i * Dv, out + i * Dv, rescale[i], Dv);
    kernels->mix(out, Dv, s->score, s->head->geometry->stride, rows.data, rows.stride, rows.type,
                 tile->rows, tile->columns, Dv, locus_prefetch_due(s->prefetch, tile->columns));
}

const locus_path locus_in_place = {in_place_scores, in_place_values, in_place_add_values};

/* ---- what comes next ---- */

static int64_t entry_at(const locus_plan *plan, int64_t z)
{
    return plan->index[max_i64(0, min_i64(z, plan->span - 1))];
}

/* The entries of the head's own key table that a key tile uses beyond those of the tiles before. */
static void fetch_entries(const head_context *head, int64_t position, int64_t key, int64_t count,
                          locus_prefetch *prefetch)
{
    const locus_plan *plan = head->plan;
    const locus_tensor *table = locus_key_table(plan, head->in);
    const int shared = table != NULL && table->rank == 2 && plan->call.H > 1;
    if (table == NULL || shared || plan->span == 0 || locus_meets_every_entry(plan)) return;
    const int64_t z_00 = locus_z_of(plan, position - key);
    const int64_t low = entry_at(plan, z_00 - 1) + 1, high = entry_at(plan, z_00 + count - 1);
    locus_prefetch_rows_of(prefetch, locus_entry_rows(plan, table, head->h, low), high + 1 - low,
                           plan->key_width);
}

static void fetch_pos_k(const head_context *head, int64_t key, int64_t count,
                        locus_prefetch *prefetch)
{
    const locus_tensor *pos_k = &head->in->pos_k;
    const int64_t first = locus_position_row(head->plan, key);
    if (locus_present(pos_k))
        locus_prefetch_push(prefetch,
                            (locus_prefetch_rows){locus_f32(pos_k, head->h, first, 0),
                                                  pos_k->stride[1], head->plan->call.D,
                                                  min_i64(count, pos_k->shape[1] - first)});
}

/* Rows of the products of a tile. */
static int64_t tile_work(const head_context *head, int64_t heads, int64_t keys)
{
    const locus_plan *plan = head->plan;
    const int64_t products = 2 + locus_present(&head->in->pos_k) +
                             (locus_key_table(plan, head->in) != NULL) +
                             (locus_key_side_table(plan, head->in) != NULL);
    const int turns = plan->turn_key != NULL && !turns_in_passing(plan, plan->call.Tq);
    return keys * (heads * products + turns);
}

void locus_in_place_fetch(const head_context *heads, int64_t count, int64_t position, int64_t t,
                          locus_prefetch *prefetch)
{
    const locus_tensors *in = heads->in;
    const int64_t b = heads->b, kv = heads->kv, key = t * heads->geometry->keys;
    const int64_t end = min_i64(key + heads->geometry->keys, heads->plan->call.Tk);
    locus_prefetch_begin(prefetch);
    for (int64_t g = 0; g < count; g++) {
        fetch_entries(&heads[g], position, key, end - key, prefetch);
        fetch_pos_k(&heads[g], key, end - key, prefetch);
        if (g > 0) continue;
        locus_prefetch_add(prefetch, &in->k, b, kv, key, end);
        locus_prefetch_add(prefetch, &in->v, b, kv, key, end);
    }
    locus_prefetch_pace(prefetch, tile_work(heads, count, heads->geometry->keys));
}

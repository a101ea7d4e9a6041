/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/lower.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "attention/places.h"
#include "attention/powers.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/tensor.h"

/* A hook's row for every distance, by z = most - delta. */
static int32_t *rows_by_z(const locus_plan *plan,
                          int64_t (*row)(const locus_call *call, int64_t delta))
{
    int32_t *rows = locus_allocate(plan->allocator, (size_t)plan->table_span, sizeof *rows);
    for (int64_t z = 0; rows != NULL && z < plan->table_span; z++)
        rows[z] = (int32_t)row(&plan->call, plan->table_top - z);
    return rows;
}

static locus_status lower_bias_rows(locus_plan *plan)
{
    if (plan->whole != NULL)
        plan->bias_row = plan->whole->bias_row + locus_shape_start(plan);
    else
        plan->bias_row = rows_by_z(plan, plan->call.scheme->bias_row);
    return plan->bias_row != NULL ? LOCUS_OK : LOCUS_ERR_MEMORY;
}

/* The first z in [z, end] whose distance begins a vector. */
static int64_t next_vector(const locus_plan *plan, int64_t z, int64_t end)
{
    while (z < end && (plan->call.most - z) % LOCUS_LANES != 0) z++;
    return z;
}

/* Of a run [from, to) of consecutive entries, whole vectors; but nothing lies beyond the index. */
static void keep_run(locus_plan *plan, int64_t from, int64_t to)
{
    if (from > 0) from = next_vector(plan, from, to);
    if (to < plan->span) {
        const int64_t past = next_vector(plan, to, to + LOCUS_LANES);
        to = past == to ? to : past - LOCUS_LANES;
    }
    if (to - from < RUN_MIN || to - from <= plan->run_to - plan->run_from) return;
    plan->run_from = from;
    plan->run_to = to;
}

static void find_run(locus_plan *plan)
{
    const int32_t *index = plan->index;
    plan->run_from = plan->run_to = plan->table_span;
    if (plan->place_axes > 0) return; /* pairs of neighbours are not at neighbouring distances */
    for (int64_t from = 0, to; plan->table_steps && from < plan->span; from = to) {
        for (to = from + 1; to < plan->span && index[to] == index[to - 1] + 1;) to++;
        keep_run(plan, from, to);
    }
}

/* 1 when every distance has a row, and rows rise, or fall, with z: then entries are rows in one
 * order or the other. */
static int is_monotone(const int32_t *rows, int64_t span)
{
    int rises = 0, falls = 0;
    if (rows[0] < 0 || rows[span - 1] < 0) return 0;
    for (int64_t z = 1; z < span; z++) {
        rises |= rows[z] > rows[z - 1];
        falls |= rows[z] < rows[z - 1];
    }
    return !(rises && falls);
}

/* A map that jumps, or leaves distances without a row: every change of row is a new entry, so the
 * index ascends in steps of 1. */
static locus_status number_entries(locus_plan *plan)
{
    int32_t *index = plan->index;
    const int64_t span = plan->table_span;
    plan->entry_row = locus_allocate(plan->allocator, (size_t)span, sizeof *plan->entry_row);
    if (plan->entry_row == NULL) return LOCUS_ERR_MEMORY;
    plan->row_count = 0;
    for (int64_t z = 0; z < span; z++) {
        const int32_t row = index[z];
        if (z == 0 || plan->entry_row[plan->row_count - 1] != row)
            plan->entry_row[plan->row_count++] = row;
        index[z] = (int32_t)(plan->row_count - 1);
    }
    return LOCUS_OK;
}

/* From monotone rows by z to an ascending index. */
static void number_rows(locus_plan *plan)
{
    int32_t *index = plan->index;
    const int64_t span = plan->table_span;
    plan->table_descends = index[span - 1] < index[0];
    const int32_t first = plan->table_descends ? index[span - 1] : index[0];
    const int32_t last = plan->table_descends ? index[0] : index[span - 1];
    plan->row_first = first;
    plan->row_count = last - first + 1;
    for (int64_t z = 0; z < span; z++) {
        index[z] = plan->table_descends ? last - index[z] : index[z] - first;
        if (z > 0 && index[z] - index[z - 1] > 1) plan->table_steps = 0;
    }
}

/* The table row of every distance; a ragged batch asks once for all its shapes. */
static void ask_rows(const locus_plan *plan, int32_t *rows)
{
    const int32_t *known =
        plan->whole != NULL ? plan->whole->table_row + locus_shape_start(plan) : NULL;
    for (int64_t z = 0; z < plan->table_span; z++)
        rows[z] = known != NULL ? known[z]
                                : (int32_t)plan->call.scheme->row(&plan->call, plan->table_top - z);
}

/* Entries are the rows: which of them a pair uses is counted. */
static locus_status lower_counted(locus_plan *plan)
{
    const int64_t rows = plan->row_count = plan->table_span = plan->call.R;
    plan->table_top = rows - 1;
    plan->run_from = plan->run_to = rows;
    plan->index_memory =
        locus_allocate(plan->allocator, (size_t)(rows + 2 * INDEX_PAD), sizeof *plan->index);
    if (plan->index_memory == NULL) return LOCUS_ERR_MEMORY;
    plan->index = plan->index_memory + INDEX_PAD;
    for (int64_t z = -INDEX_PAD; z < rows + INDEX_PAD; z++)
        plan->index[z] = (int32_t)max_i64(0, min_i64(z, rows - 1));
    return LOCUS_OK;
}

static locus_status lower_index(locus_plan *plan)
{
    const int64_t span = plan->table_span;
    if (plan->counts) return lower_counted(plan);
    if (plan->call.scheme->second_table != 0) return locus_lower_two_tables(plan);
    if (plan->call.sequences > 0) {
        plan->table_row = rows_by_z(plan, plan->call.scheme->row);
        return plan->table_row != NULL ? LOCUS_OK : LOCUS_ERR_MEMORY;
    }
    int32_t *memory =
        locus_allocate(plan->allocator, (size_t)(span + 2 * INDEX_PAD), sizeof *memory);
    if (memory == NULL) return LOCUS_ERR_MEMORY;
    int32_t *index = memory + INDEX_PAD;
    plan->index_memory = memory;
    plan->index = index;
    plan->table_steps = 1;
    ask_rows(plan, index);
    if (span == 0) return LOCUS_OK;
    if (is_monotone(index, span))
        number_rows(plan);
    else
        LOCUS_TRY(number_entries(plan));
    find_run(plan);
    for (int64_t pad = 0; pad < INDEX_PAD; pad++) {
        index[-1 - pad] = index[0];
        index[span + pad] = index[span - 1];
    }
    return LOCUS_OK;
}

/* Positions that rotations see: those of the rows, or those that the call brings. */
typedef struct turn_side {
    int is_key;
    const locus_tensor *given; /* q_positions or k_positions, may be absent */
    int64_t first, rows;       /* position of row 0 without them */
    int64_t entries;           /* of the batch that have positions of their own, or 1 */
    float *table;              /* [entries][rows][2][pairs] */
} turn_side;

/* Tables that differ from one batch entry to the next. */
static int64_t turn_entries(const locus_call *call, const locus_tensor *given)
{
    const uint32_t batched = call->options.axes > 1 ? 3 : 2;
    return given->rank == batched ? call->B : 1;
}

static turn_side query_side(const locus_call *call)
{
    return (turn_side){.given = &call->q_positions,
                       .first = call->query_offset,
                       .rows = call->Tq,
                       .entries = turn_entries(call, &call->q_positions)};
}
static turn_side key_side(const locus_call *call)
{
    return (turn_side){.is_key = 1,
                       .given = &call->k_positions,
                       .rows = call->Tk,
                       .entries = turn_entries(call, &call->k_positions)};
}

static int brings_positions(const locus_call *call)
{
    return locus_present(&call->q_positions) || locus_present(&call->k_positions);
}

/* Of the position, what the gain of a row counts: steps inside its block. Positions that the call
 * brings have one origin instead. */
static int64_t gain_steps(const locus_plan *plan, int64_t position)
{
    if (brings_positions(&plan->call)) return position - plan->gain_origin;
    return position - plan->gain_block * locus_gain_block_of(plan, position);
}

/* What each pair turns and grows by at a step, asked once. */
enum { MAX_PAIRS = LOCUS_MAX_WIDTH / 2 };
typedef struct turn_rates {
    double frequency[MAX_PAIRS], log_gain[MAX_PAIRS];
    double steepest; /* |log_gain| */
} turn_rates;

static void ask_rates(const locus_call *call, turn_rates *rates)
{
    rates->steepest = 0.0;
    for (int64_t t = 0; t < call->pairs; t++) {
        call->scheme->turn(call, t, &rates->frequency[t], &rates->log_gain[t]);
        rates->steepest = fmax(rates->steepest, fabs(rates->log_gain[t]));
    }
}

/* The row of a side, `count` pairs: cos and sin, times the gain of a query, which keys are divided
 * by. Of a position below 0, the sine is the opposite (sign), and of steps below 0, the gain the
 * reciprocal (divides). */
static void write_turns(float *to, int64_t pairs, const locus_power_row *turn, double sign,
                        const locus_power_row *gain, int divides, int64_t count)
{
    double factor[POWER_PAIRS];
    float x[POWER_PAIRS], y[POWER_PAIRS];
    for (int t = 0; t < POWER_PAIRS; t++) factor[t] = 1.0;
    if (gain != NULL && divides)
        for (int t = 0; t < POWER_PAIRS; t++) factor[t] = 1.0 / gain->x[t];
    else if (gain != NULL)
        for (int t = 0; t < POWER_PAIRS; t++) factor[t] = gain->x[t];
    for (int t = 0; t < POWER_PAIRS; t++) {
        x[t] = (float)(factor[t] * turn->x[t]);
        y[t] = (float)(factor[t] * sign * turn->y[t]);
    }
    memcpy(to, x, (size_t)count * sizeof *to);
    memcpy(to + pairs, y, (size_t)count * sizeof *to);
}

/* What every position of some pairs, of one axis, turns and grows by. */
typedef struct turning {
    int64_t first, count, axis; /* pairs */
    int grows;
    locus_powers turn, growth;
} turning;

/* Of every position in turn: the tables of each side. */
static void turn_rows(const locus_plan *plan, const turn_side *sides, int count, int64_t entry,
                      turning *now)
{
    const locus_call *call = &plan->call;
    const int64_t rows = sides->rows;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t position =
            locus_call_position(call, sides->is_key, entry, row, now->axis, sides->first + row);
        const int64_t steps = now->grows ? gain_steps(plan, position) : 0;
        const locus_power_row *turn =
            locus_powers_at(&now->turn, position < 0 ? -position : position);
        const locus_power_row *gain =
            now->grows ? locus_powers_at(&now->growth, steps < 0 ? -steps : steps) : NULL;
        for (int s = 0; s < count; s++)
            write_turns(sides[s].table + 2 * (entry * rows + row) * call->pairs + now->first,
                        call->pairs, turn, position < 0 ? -1.0 : 1.0, gain,
                        sides[s].is_key != (steps < 0), now->count);
    }
}

/* The tables of `count` sides, which have the same positions. */
static void fill_turns(const locus_plan *plan, const turn_rates *rates, const turn_side *sides,
                       int count)
{
    const int64_t pairs = plan->call.pairs, run = pairs / plan->call.options.axes;
    turning now = {.grows = rates->steepest != 0.0};
    for (int64_t t = 0; t < pairs; t += now.count) {
        now.first = t;
        now.axis = t / run;
        now.count = min_i64(POWER_PAIRS, (now.axis + 1) * run - t);
        locus_powers_begin(&now.turn, rates->frequency + t, now.count, 0);
        locus_powers_begin(&now.growth, rates->log_gain + t, now.count, 1);
        for (int64_t entry = 0; entry < sides->entries; entry++)
            turn_rows(plan, sides, count, entry, &now);
    }
}

/* Both tables: at once, where queries and keys stand at the same positions. */
static locus_status make_turns(locus_plan *plan, const turn_rates *rates, const turn_side *queries,
                               const turn_side *keys)
{
    turn_side sides[2] = {*queries, *keys};
    for (int s = 0; s < 2; s++) {
        sides[s].table =
            locus_allocate(plan->allocator,
                           (size_t)(sides[s].entries * sides[s].rows * plan->call.pairs),
                           2 * sizeof(float));
        *(s == 0 ? &plan->turn_query : &plan->turn_key) = sides[s].table;
        if (sides[s].table == NULL) return LOCUS_ERR_MEMORY;
    }
    const int alike = !brings_positions(&plan->call) && queries->first == keys->first &&
                      queries->rows == keys->rows;
    fill_turns(plan, rates, sides, alike ? 2 : 1);
    if (!alike) fill_turns(plan, rates, sides + 1, 1);
    return LOCUS_OK;
}

/* The largest block over which no gain exceeds e^40. */
static int64_t choose_gain_block(const turn_rates *rates)
{
    int64_t block = MAX_TILE_KEYS;
    while (block > LOCUS_PANEL && (double)block * rates->steepest > 40.0) block /= 2;
    return block;
}

static void spread_of(const locus_call *call, const turn_side *side, int64_t *low, int64_t *high)
{
    for (int64_t i = 0; i < side->entries * side->rows; i++) {
        const int64_t row = i % side->rows;
        const int64_t p =
            locus_call_position(call, side->is_key, i / side->rows, row, 0, side->first + row);
        *low = min_i64(*low, p);
        *high = max_i64(*high, p);
    }
}

/* Positions that the call brings may lie anywhere, so no tile has a gain of its own: all rows
 * count from the middle, and positions so far apart that a factor would leave the range of a
 * float are refused. */
static locus_status lower_origin(locus_plan *plan, double steepest, locus_error *error)
{
    const locus_call *call = &plan->call;
    const turn_side queries = query_side(call), keys = key_side(call);
    int64_t low = INT64_MAX, high = INT64_MIN;
    spread_of(call, &queries, &low, &high);
    spread_of(call, &keys, &low, &high);
    if (low > high) return LOCUS_OK; /* no rows */
    plan->gain_origin = low + (high - low) / 2;
    const double most = 2.0 * 80.0 / steepest;
    if ((double)(high - low) <= most) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_UNSUPPORTED,
                      "tensor %s: found positions %" PRId64 " apart, expected at most %.0f",
                      locus_present(&call->q_positions) ? "q_positions" : "k_positions", high - low,
                      most);
}

/* Gains between blocks; columns that are not turned have none. */
static locus_status lower_gains(locus_plan *plan, const turn_rates *rates, locus_error *error)
{
    const locus_call *call = &plan->call;
    plan->gain_block = choose_gain_block(rates);
    if (rates->steepest == 0.0) return LOCUS_OK;
    if (brings_positions(call)) return lower_origin(plan, rates->steepest, error);
    const int64_t last_key = locus_gain_block_of(plan, call->Tk);
    const int64_t last_query = locus_gain_block_of(plan, call->query_offset + call->Tq);
    plan->least_block = locus_gain_block_of(plan, call->query_offset) - last_key;
    const int64_t blocks = last_query - plan->least_block + 1;
    plan->gain = locus_allocate(plan->allocator, (size_t)(blocks * call->D), sizeof *plan->gain);
    if (plan->gain == NULL) return LOCUS_ERR_MEMORY;
    for (int64_t i = 0; i < blocks * call->D; i++) plan->gain[i] = 1.0f;
    for (int64_t t = 0; t < call->pairs; t++) {
        int64_t first, second;
        locus_pair_columns(call, t, &first, &second);
        for (int64_t b = 0; b < blocks; b++) {
            const double steps = (double)((plan->least_block + b) * plan->gain_block);
            if (steps == 0.0) continue;
            const float gain = (float)exp(steps * rates->log_gain[t]);
            plan->gain[b * call->D + first] = plan->gain[b * call->D + second] = gain;
        }
    }
    return LOCUS_OK;
}

/* cos and sin for every position of every sequence. */
static locus_status lower_turns_of_all(locus_plan *plan)
{
    const locus_call *call = &plan->call;
    int64_t low = INT64_MAX, high = INT64_MIN, keys = 0;
    turn_rates rates;
    for (int64_t i = 0; i < call->sequences; i++) {
        const locus_sequence s = locus_call_sequence(call, i);
        keys = max_i64(keys, s.keys);
        if (s.queries == 0) continue;
        low = min_i64(low, s.query_offset);
        high = max_i64(high, s.query_offset + s.queries);
    }
    turn_side query_rows = query_side(call), key_rows = key_side(call);
    query_rows.first = plan->turn_first = low < high ? low : 0;
    query_rows.rows = low < high ? high - low : 0;
    key_rows.rows = keys;
    ask_rates(call, &rates);
    plan->gain_block = choose_gain_block(&rates);
    return make_turns(plan, &rates, &query_rows, &key_rows);
}

/* Those of a shape are among them. */
static void share_turns(locus_plan *plan)
{
    const locus_plan *whole = plan->whole;
    const int64_t rows = plan->call.Tq > 0 ? plan->call.query_offset - whole->turn_first : 0;
    plan->turn_query = whole->turn_query + 2 * plan->call.pairs * rows;
    plan->turn_key = whole->turn_key;
}

static int shares_turns(const locus_plan *plan)
{
    return plan->whole != NULL && !brings_positions(&plan->call);
}

static locus_status lower_turns(locus_plan *plan, locus_error *error)
{
    const locus_call *call = &plan->call;
    if (call->sequences > 0) return brings_positions(call) ? LOCUS_OK : lower_turns_of_all(plan);
    const turn_side queries = query_side(call), keys = key_side(call);
    turn_rates rates;
    ask_rates(call, &rates);
    const locus_status status = lower_gains(plan, &rates, error);
    if (status != LOCUS_OK) return status;
    if (shares_turns(plan)) {
        share_turns(plan);
        return LOCUS_OK;
    }
    plan->turn_query_batch = queries.entries > 1 ? 2 * call->pairs * call->Tq : 0;
    plan->turn_key_batch = keys.entries > 1 ? 2 * call->pairs * call->Tk : 0;
    return make_turns(plan, &rates, &queries, &keys);
}

static int has_tables(const locus_plan *plan, const locus_tensors *shapes)
{
    return locus_key_table(plan, shapes) != NULL || locus_key_side_table(plan, shapes) != NULL ||
           locus_value_table(plan, shapes) != NULL;
}

locus_status locus_lower(locus_plan *plan, const locus_tensors *shapes, locus_error *error)
{
    const locus_call *call = &plan->call;
    const locus_scheme *scheme = call->scheme;
    plan->span = call->least <= call->most ? call->most - call->least + 1 : 0;
    plan->table_top = call->most;
    plan->table_span = plan->span;
    plan->hides = plan->span < call->Tq + call->Tk - 1 || locus_present(&shapes->mask) ||
                  locus_present(&shapes->key_mask) || locus_present(&shapes->bias_dense) ||
                  call->dropout > 0.0;
    plan->own_query = locus_present(&shapes->pos_query);
    plan->counts = scheme->counts;
    plan->key_width = plan->own_query ? shapes->pos_query.shape[3] : call->D;
    plan->same_query_rows = scheme->turn == NULL && scheme->second_table == 0 && !scheme->counts &&
                            !locus_present(&shapes->u) && !locus_present(&shapes->w) &&
                            !plan->own_query;
    plan->has_reset = locus_present(&shapes->cls);
    const int biased =
        scheme->bias != NULL && (scheme->bias_row == NULL || locus_present(&shapes->bias));
    plan->has_bias = biased && !scheme->bias_by_pair;
    plan->has_pair_bias = biased && scheme->bias_by_pair;
    plan->has_gate = plan->has_bias && locus_present(&shapes->gate);
    plan->has_log_gate = locus_present(&shapes->log_gate);
    plan->has_decay = locus_log_decay(plan, shapes) != NULL;
    plan->late_bias =
        plan->has_pair_bias || plan->has_gate || (plan->has_bias && has_tables(plan, shapes));
    locus_status status = call->placed ? locus_lower_places(plan, error) : LOCUS_OK;
    if (status == LOCUS_OK && has_tables(plan, shapes)) status = lower_index(plan);
    if (status == LOCUS_OK && plan->has_bias && scheme->bias_row != NULL)
        status = lower_bias_rows(plan);
    if (status == LOCUS_OK && scheme->turn != NULL) status = lower_turns(plan, error);
    return status == LOCUS_ERR_MEMORY ? locus_fail(error, status, "plan: out of memory") : status;
}

void locus_lower_free(locus_plan *plan)
{
    locus_release(plan->allocator, plan->index_memory);
    locus_release(plan->allocator, plan->entry_row);
    locus_release(plan->allocator, plan->table_row);
    locus_release(plan->allocator, plan->gain);
    locus_places_free(plan);
    if (plan->whole == NULL) locus_release(plan->allocator, plan->bias_row);
    if (shares_turns(plan)) return;
    locus_release(plan->allocator, plan->turn_query);
    locus_release(plan->allocator, plan->turn_key);
}

void locus_lower_bias(const locus_plan *plan, const locus_tensors *in, int64_t head, int64_t from,
                      int64_t to, float *values)
{
    const locus_call *call = &plan->call;
    const float *column =
        plan->bias_row == NULL ? NULL : (const float *)in->bias.data + head * in->bias.stride[1];
    const int64_t low = max_i64(from, 0), high = min_i64(to, plan->table_span);
    for (int64_t z = from; z < min_i64(low, to); z++) values[z - from] = 0.0f;
    for (int64_t z = max_i64(high, from); z < to; z++) values[z - from] = 0.0f;
    if (column == NULL && call->scheme->bias_run != NULL && low < high) {
        call->scheme->bias_run(call, in, head, plan->table_top - low, 0, high - low,
                               values + (low - from));
        return;
    }
    for (int64_t z = low; z < high; z++)
        values[z - from] = column != NULL
                               ? column[plan->bias_row[z] * in->bias.stride[0]]
                               : (float)call->scheme->bias(call, in, head, plan->table_top - z, 0);
}

typedef struct bias_call {
    const locus_plan *plan;
    const locus_geometry *geometry;
    const locus_tensors *in;
    float *bias;
} bias_call;

static void lower_head(void *context, size_t head, uint32_t worker)
{
    const bias_call *call = context;
    (void)worker;
    const int64_t pad = call->geometry->distances;
    locus_lower_bias(call->plan, call->in, (int64_t)head, -pad, call->plan->table_span + pad,
                     call->bias + (int64_t)head * locus_bias_room(call->plan, call->geometry));
}

void locus_lower_biases(const locus_plan *plan, const locus_geometry *geometry,
                        const locus_tensors *in, float *bias)
{
    bias_call call = {plan, geometry, in, bias};
    if (plan->has_bias) locus_parallel_for(plan->threads, (size_t)plan->call.H, lower_head, &call);
}

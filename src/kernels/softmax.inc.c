/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax over tiles, there and back. */

/* The columns of a row that it sees, in whole vectors: `from` and `to` are multiples of VL. What
 * else is in the first and the last one becomes -inf. */
typedef struct seen_columns {
    int64_t from, to;
} seen_columns;

LOCUS_INLINE seen_columns see_columns(float *row, locus_seen seen, int64_t i, int64_t columns)
{
    const int64_t first = seen.from != NULL ? seen.from[i] : 0;
    const int64_t past = seen.to != NULL ? seen.to[i] : columns;
    const seen_columns whole = {first / VL * VL, (past + VL - 1) / VL * VL};
    if (first > whole.from) v_storen(row + whole.from, v_set1(-INFINITY), first - whole.from);
    if (whole.to > past) v_storen(row + past, v_set1(-INFINITY), whole.to - past);
    return whole;
}

/* The weights of the other columns. */
LOCUS_INLINE void clear_others(float *row, seen_columns seen, int64_t columns)
{
    for (int64_t c = 0; c < seen.from; c += VL) v_store(row + c, v_set1(0.0f));
    for (int64_t c = seen.to; c < columns; c += VL) v_store(row + c, v_set1(0.0f));
}

static inline float row_max(const float *row, int64_t padded)
{
    vf max = v_set1(-INFINITY), other = max;
    int64_t c = 0;
    for (; c + 2 * VL <= padded; c += 2 * VL) {
        max = v_max(v_load(row + c), max);
        other = v_max(v_load(row + c + VL), other);
    }
    for (; c < padded; c += VL) max = v_max(v_load(row + c), max);
    return v_greatest(v_max(other, max));
}

LOCUS_INLINE float seen_max(float *row, int64_t columns, locus_seen seen, int64_t i)
{
    const seen_columns at = see_columns(row, seen, i, columns);
    return row_max(row + at.from, at.to - at.from);
}

/* The largest score of each row, and e^(old max - new max) for all rows at once. */
LOCUS_INLINE void raise_max(float *S, int64_t stride, int64_t rows, int64_t columns,
                            locus_seen seen, const float *max_lanes, float *max, float *rescale)
{
    for (int64_t i = 0; i < rows; i++) {
        const float tile_max = max_lanes != NULL ? row_max(max_lanes + i * LOCUS_LANES, LOCUS_LANES)
                                                 : seen_max(S + i * stride, columns, seen, i);
        const float new_max = tile_max > max[i] ? tile_max : max[i];
        /* equal maxima, -inf and +inf among them, have factor 1 */
        rescale[i] = new_max == max[i] ? 0.0f : max[i] - new_max;
        max[i] = new_max;
    }
    for (int64_t i = 0; i < rows; i += VL) v_store(rescale + i, v_exp(v_load(rescale + i)));
}

/* Weights are summed by columns modulo SUM_COLUMNS. Those that a row does not see add 0. */
enum { SUM_COLUMNS = 2 * LOCUS_LANES, SUM_VECTORS = SUM_COLUMNS / VL };

/* SUM_COLUMNS columns from c on, or those of them that lie in `at`. */
LOCUS_INLINE void exponentiate_columns(float *row, int64_t c, vf minus, lane_sums total[2],
                                       seen_columns at, const int whole)
{
    LOCUS_UNROLL
    for (int k = 0; k < SUM_VECTORS; k++, c += VL) {
        if (!whole && (c < at.from || c >= at.to)) continue;
        const vf weight = v_exp(v_add(v_load(row + c), minus));
        vf *part = &total[k / PARTS].part[k % PARTS];
        *part = v_add(*part, weight);
        v_store(row + c, weight);
    }
}

/* S = e^(S - max) over the columns `at` of a row; returns their sum. */
LOCUS_INLINE float exponentiate(float *row, seen_columns at, float max)
{
    const vf minus = v_set1(-reference(max));
    lane_sums total[2] = {lanes_zero(), lanes_zero()};
    int64_t c = at.from / SUM_COLUMNS * SUM_COLUMNS;
    if (c < at.from) {
        exponentiate_columns(row, c, minus, total, at, 0);
        c += SUM_COLUMNS;
    }
    for (; c + SUM_COLUMNS <= at.to; c += SUM_COLUMNS)
        exponentiate_columns(row, c, minus, total, at, 1);
    if (c < at.to) exponentiate_columns(row, c, minus, total, at, 0);
    return lanes_sum(lanes_add(total[0], total[1]));
}

LOCUS_INLINE LOCUS_SOFTMAX_STEP(step_rows)
{
    raise_max(S, stride, rows, columns, seen, max_lanes, max, rescale);
    for (int64_t i = 0; i < rows; i++) {
        float *row = S + i * stride;
        const seen_columns at = see_columns(row, seen, i, columns);
        tile_sum[i] = exponentiate(row, at, max[i]);
        sum[i] = sum[i] * rescale[i] + tile_sum[i];
        clear_others(row, at, columns);
    }
}

/* Compiled for all columns too: short rows would feel the tests. */
static LOCUS_SOFTMAX_STEP(softmax_step)
{
    const locus_seen all = {NULL, NULL};
    if (seen.from == NULL)
        step_rows(S, stride, rows, columns, all, max_lanes, max, sum, rescale, tile_sum);
    else
        step_rows(S, stride, rows, columns, seen, max_lanes, max, sum, rescale, tile_sum);
}

/* Rows without a sum have max = -inf, so 0 will do for their logarithm. */
LOCUS_INLINE void end_rows(float *lse, float *factor, const float *max, const float *sum,
                           int64_t tail)
{
    const vf total = load_some(sum, tail), zero = v_set1(0.0f);
    const vf logarithm = v_unless_equal(total, zero, v_log(total));
    store_some(lse, v_add(load_some(max, tail), logarithm), tail);
    store_some(factor, v_unless_equal(total, zero, v_div(v_set1(1.0f), total)), tail);
}

static LOCUS_SOFTMAX_END(softmax_end)
{
    int64_t i = 0;
    for (; i + VL <= rows; i += VL) end_rows(lse + i, factor + i, max + i, sum + i, 0);
    if (i < rows) end_rows(lse + i, factor + i, max + i, sum + i, rows - i);
}

static LOCUS_SOFTMAX_FROM_LSE(softmax_from_lse)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = S + i * stride;
        const seen_columns at = see_columns(row, seen, i, columns);
        const vf minus = v_set1(-reference(lse[i])), times = v_set1(factor[i]);
        for (int64_t c = at.from; c < at.to; c += VL) {
            v_store(row + c, weight_from_lse(v_load(row + c), minus, times));
        }
        clear_others(row, at, columns);
    }
}

static LOCUS_SOFTMAX_GRAD(softmax_grad)
{
    for (int64_t i = 0; i < rows; i++) {
        float *grad = dP + i * stride;
        const float *weight = P + i * stride;
        const vf minus = v_set1(-row_dot[i]);
        for (int64_t c = 0; c < columns; c += VL) {
            v_store(grad + c, score_grad(v_load(weight + c), v_load(grad + c), minus));
        }
    }
}

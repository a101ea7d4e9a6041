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

static inline float row_greatest(const float *row, int64_t padded)
{
    vf greatest = v_set1(-INFINITY), other = greatest;
    int64_t c = 0;
    for (; c + 2 * VL <= padded; c += 2 * VL) {
        greatest = v_max(v_load(row + c), greatest);
        other = v_max(v_load(row + c + VL), other);
    }
    for (; c < padded; c += VL) greatest = v_max(v_load(row + c), greatest);
    return v_greatest(v_max(other, greatest));
}

LOCUS_INLINE float seen_greatest(float *row, int64_t columns, locus_seen seen, int64_t i)
{
    const seen_columns at = see_columns(row, seen, i, columns);
    return row_greatest(row + at.from, at.to - at.from);
}

/* The greatest score of each row, and e^(old top - new top) for all rows at once. */
LOCUS_INLINE void raise_tops(float *S, int64_t stride, int64_t rows, int64_t columns,
                             locus_seen seen, const float *greatest, float *top, float *carry)
{
    for (int64_t i = 0; i < rows; i++) {
        const float tile_top = greatest != NULL
                                   ? row_greatest(greatest + i * LOCUS_LANES, LOCUS_LANES)
                                   : seen_greatest(S + i * stride, columns, seen, i);
        const float new_top = tile_top > top[i] ? tile_top : top[i];
        /* equal tops, -inf and +inf among them, carry 1 */
        carry[i] = new_top == top[i] ? 0.0f : top[i] - new_top;
        top[i] = new_top;
    }
    for (int64_t i = 0; i < rows; i += VL) v_store(carry + i, v_exp(v_load(carry + i)));
}

/* S = e^(S - top) over one row; returns its sum. */
static inline float exponentiate(float *row, int64_t padded, float top)
{
    const vf minus = v_set1(-reference(top));
    vf total[4] = {v_set1(0.0f), v_set1(0.0f), v_set1(0.0f), v_set1(0.0f)};
    int64_t c = 0;
    for (; c + 4 * VL <= padded; c += 4 * VL)
        for (int k = 0; k < 4; k++) {
            const vf weight = v_exp(v_add(v_load(row + c + k * VL), minus));
            total[k] = v_add(total[k], weight);
            v_store(row + c + k * VL, weight);
        }
    for (; c < padded; c += VL) {
        const vf weight = v_exp(v_add(v_load(row + c), minus));
        total[0] = v_add(total[0], weight);
        v_store(row + c, weight);
    }
    return v_sum(v_add(v_add(total[0], total[1]), v_add(total[2], total[3])));
}

LOCUS_INLINE LOCUS_SOFTMAX_STEP(step_rows)
{
    raise_tops(S, stride, rows, columns, seen, greatest, top, carry);
    for (int64_t i = 0; i < rows; i++) {
        float *row = S + i * stride;
        const seen_columns at = see_columns(row, seen, i, columns);
        part[i] = exponentiate(row + at.from, at.to - at.from, top[i]);
        sum[i] = sum[i] * carry[i] + part[i];
        clear_others(row, at, columns);
    }
}

/* Compiled for all columns too: short rows would feel the tests. */
static LOCUS_SOFTMAX_STEP(softmax_step)
{
    const locus_seen all = {NULL, NULL};
    if (seen.from == NULL)
        step_rows(S, stride, rows, columns, all, greatest, top, sum, carry, part);
    else
        step_rows(S, stride, rows, columns, seen, greatest, top, sum, carry, part);
}

/* Rows without a sum have top = -inf, so 0 will do for their logarithm. */
LOCUS_INLINE void end_rows(float *lse, float *factor, const float *top, const float *sum,
                           int64_t tail)
{
    const vf total = load_some(sum, tail), zero = v_set1(0.0f);
    const vf logarithm = v_unless_equal(total, zero, v_log(total));
    store_some(lse, v_add(load_some(top, tail), logarithm), tail);
    store_some(factor, v_unless_equal(total, zero, v_div(v_set1(1.0f), total)), tail);
}

static LOCUS_SOFTMAX_END(softmax_end)
{
    int64_t i = 0;
    for (; i + VL <= rows; i += VL) end_rows(lse + i, factor + i, top + i, sum + i, 0);
    if (i < rows) end_rows(lse + i, factor + i, top + i, sum + i, rows - i);
}

static LOCUS_SOFTMAX_AGAIN(softmax_again)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = S + i * stride;
        const seen_columns at = see_columns(row, seen, i, columns);
        const vf minus = v_set1(-reference(top[i])), times = v_set1(factor[i]);
        for (int64_t c = at.from; c < at.to; c += VL) {
            v_store(row + c, weight_again(v_load(row + c), minus, times));
        }
        clear_others(row, at, columns);
    }
}

static LOCUS_SOFTMAX_GRAD(softmax_grad)
{
    for (int64_t i = 0; i < rows; i++) {
        float *grad = dP + i * stride;
        const float *weight = P + i * stride;
        const vf minus = v_set1(-delta[i]);
        for (int64_t c = 0; c < columns; c += VL) {
            v_store(grad + c, score_grad(v_load(weight + c), v_load(grad + c), minus));
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax over tiles, there and back. */

/* Columns are worked on in whole vectors: the slack behind the last one becomes -inf. */
static inline int64_t pad_row(float *row, int64_t columns)
{
    const int64_t padded = (columns + VL - 1) / VL * VL;
    for (int64_t c = columns; c < padded; c++) row[c] = -INFINITY;
    return padded;
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

/* The greatest score of each row, and e^(old top - new top) for all rows at once. */
static inline void raise_tops(const float *S, int64_t stride, int64_t rows, int64_t padded,
                              const float *greatest, float *top, float *carry)
{
    for (int64_t i = 0; i < rows; i++) {
        const float tile_top = greatest != NULL
                                   ? row_greatest(greatest + i * LOCUS_LANES, LOCUS_LANES)
                                   : row_greatest(S + i * stride, padded);
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

static LOCUS_SOFTMAX_STEP(softmax_step)
{
    int64_t padded = columns;
    for (int64_t i = 0; i < rows; i++) padded = pad_row(S + i * stride, columns);
    raise_tops(S, stride, rows, padded, greatest, top, carry);
    for (int64_t i = 0; i < rows; i++)
        sum[i] = sum[i] * carry[i] + exponentiate(S + i * stride, padded, top[i]);
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
        const int64_t padded = pad_row(row, columns);
        const vf minus = v_set1(-reference(top[i])), times = v_set1(factor[i]);
        for (int64_t c = 0; c < padded; c += VL) {
            v_store(row + c, weight_again(v_load(row + c), minus, times));
        }
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and log-softmax of whole rows, such as logits over a vocabulary. Rows end where they end:
 * nothing behind the last column is read or written. */

/* The first `tail` floats of x, -inf behind them; all VL where tail is 0. */
LOCUS_INLINE vf load_or_masked(const float *x, int64_t tail)
{
    float part[VL];
    if (tail == 0) return v_load(x);
    v_store(part, v_set1(-INFINITY));
    memcpy(part, x, (size_t)tail * sizeof(float));
    return v_load(part);
}

static LOCUS_EXP_SUM(exp_sum)
{
    vf greatest[2] = {v_set1(-INFINITY), v_set1(-INFINITY)};
    lane_sums total[2] = {lanes_zero(), lanes_zero()};
    int which = 0;
    for (int64_t c = 0; c < columns; c += VL, which = !which) {
        const vf a = load_or_masked(x + c, columns - c < VL ? columns - c : 0);
        greatest[which] = v_max(a, greatest[which]);
    }
    *top = v_greatest(v_max(greatest[0], greatest[1]));
    for (int64_t c = 0; c < columns; c += 2 * LOCUS_LANES) {
        LOCUS_UNROLL
        for (int k = 0; k < 2 * PARTS; k++) {
            const int64_t tail = part_tail(columns - c, k);
            if (tail < 0) continue;
            const vf a = load_or_masked(x + c + k * VL, tail);
            vf *part = &total[k / PARTS].part[k % PARTS];
            *part = v_add(*part, v_exp(v_sub(a, v_set1(*top))));
        }
    }
    *sum = lanes_sum(lanes_add(total[0], total[1]));
}

static LOCUS_EXP_ROW(exp_row)
{
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        const vf e = v_exp(v_sub(load_some(x + c, tail), v_set1(top)));
        store_some(y + c, v_mul(e, v_set1(factor)), tail);
    }
}

static LOCUS_SHIFT_ROW(shift_row)
{
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        const vf d = v_sub(load_some(x + c, tail), v_set1(top));
        store_some(y + c, v_sub(d, v_set1(rest)), tail);
    }
}

static LOCUS_SOFTMAX_ROW_GRAD(softmax_row_grad)
{
    lane_sums total[2] = {lanes_zero(), lanes_zero()};
    for (int64_t c = 0; c < columns; c += 2 * LOCUS_LANES) {
        LOCUS_UNROLL
        for (int k = 0; k < 2 * PARTS; k++) {
            const int64_t at = c + k * VL, tail = part_tail(columns - c, k);
            if (tail < 0) continue;
            const vf back = load_some(dy + at, tail);
            vf *part = &total[k / PARTS].part[k % PARTS];
            *part = logarithm ? v_add(*part, back) : v_fma(back, load_some(y + at, tail), *part);
        }
    }
    const vf sum = v_set1(lanes_sum(lanes_add(total[0], total[1])));
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        const vf back = load_some(dy + c, tail), at = load_some(y + c, tail);
        store_some(dx + c,
                   logarithm ? v_sub(back, v_mul(v_exp(at), sum)) : v_mul(at, v_sub(back, sum)),
                   tail);
    }
}

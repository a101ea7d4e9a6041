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
    vf total[2] = {v_set1(0.0f), v_set1(0.0f)};
    int which = 0;
    for (int64_t c = 0; c < columns; c += VL, which = !which) {
        const vf a = load_or_masked(x + c, columns - c < VL ? columns - c : 0);
        greatest[which] = v_max(a, greatest[which]);
    }
    *top = v_greatest(v_max(greatest[0], greatest[1]));
    for (int64_t c = 0; c < columns; c += VL, which = !which) {
        const vf a = load_or_masked(x + c, columns - c < VL ? columns - c : 0);
        total[which] = v_add(total[which], v_exp(v_sub(a, v_set1(*top))));
    }
    *sum = v_sum(v_add(total[0], total[1]));
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
    vf total[2] = {v_set1(0.0f), v_set1(0.0f)};
    int which = 0;
    for (int64_t c = 0; c < columns; c += VL, which = !which) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        const vf back = load_some(dy + c, tail);
        total[which] = logarithm ? v_add(total[which], back)
                                 : v_fma(back, load_some(y + c, tail), total[which]);
    }
    const vf sum = v_set1(v_sum(v_add(total[0], total[1])));
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        const vf back = load_some(dy + c, tail), at = load_some(y + c, tail);
        store_some(dx + c,
                   logarithm ? v_sub(back, v_mul(v_exp(at), sum)) : v_mul(at, v_sub(back, sum)),
                   tail);
    }
}

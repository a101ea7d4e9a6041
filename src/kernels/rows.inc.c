/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on single rows. */

static LOCUS_ADD(add)
{
    int64_t c = 0;
    for (; c + VL <= columns; c += VL) v_store(y + c, v_add(v_load(y + c), v_load(x + c)));
    for (; c < columns; c++) y[c] += x[c];
}

static LOCUS_SCALE(scale)
{
    const vf f = v_set1(factor);
    int64_t c = 0;
    for (; c + VL <= columns; c += VL) v_store(y + c, v_mul(v_load(y + c), f));
    for (; c < columns; c++) y[c] *= factor;
}

/* 0 times a row sums to 0, unless a NaN or an infinity makes it NaN. */
static LOCUS_BAD_ROWS(bad_rows)
{
    const vf zero = v_set1(0.0f);
    int any = 0;
    for (int64_t r = 0; r < count; r++) {
        const float *row = rows + r * row_stride;
        vf sum = zero, other = zero;
        int64_t c = 0;
        for (; c + 2 * VL <= width; c += 2 * VL) {
            sum = v_fma(v_load(row + c), zero, sum);
            other = v_fma(v_load(row + c + VL), zero, other);
        }
        for (; c + VL <= width; c += VL) sum = v_fma(v_load(row + c), zero, sum);
        if (c < width) sum = v_fma(v_loadn(row + c, width - c), zero, sum);
        bad[r] = (uint8_t)(v_sum(v_add(sum, other)) != 0.0f);
        any |= bad[r];
    }
    return any;
}

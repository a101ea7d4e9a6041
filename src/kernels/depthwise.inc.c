/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution over tokens, every channel by itself. A vector of channels is taken for
 * DEPTHWISE_ROWS rows at a time: each weight that is loaded serves them all. */

enum { DEPTHWISE_ROWS = 8 };

LOCUS_INLINE void depthwise_rows(float *y, int64_t y_row, const float *x, int64_t x_row,
                                 const float *w, int64_t w_row, vf start, int64_t taps,
                                 int64_t tail, const int rows)
{
    vf sum[DEPTHWISE_ROWS];
    for (int t = 0; t < rows; t++) sum[t] = start;
    for (int64_t k = 0; k < taps; k++) {
        const vf weight = load_some(w + k * w_row, tail);
        for (int t = 0; t < rows; t++)
            sum[t] = v_fma(weight, load_some(x + (t + k) * x_row, tail), sum[t]);
    }
    for (int t = 0; t < rows; t++) store_some(y + t * y_row, sum[t], tail);
}

static LOCUS_DEPTHWISE(depthwise)
{
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        const vf first = start != NULL ? load_some(start + c, tail) : v_set1(0.0f);
        int64_t t = 0;
#define AT(count)                                                                                  \
    depthwise_rows(y + t * y_row + c, y_row, x + t * x_row + c, x_row, w + c, w_row, first, taps,  \
                   tail, count)
        for (; t + DEPTHWISE_ROWS <= rows; t += DEPTHWISE_ROWS) AT(DEPTHWISE_ROWS);
        for (; t < rows; t++) AT(1);
#undef AT
    }
}

static LOCUS_PRODUCT_SUMS(product_sums)
{
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        vf total = v_set1(0.0f);
        for (int64_t i = 0; i < rows; i++)
            total = v_fma(load_some(a + i * a_row + c, tail), load_some(b + i * b_row + c, tail),
                          total);
        store_some(sum + c, v_add(load_some(sum + c, tail), total), tail);
    }
}

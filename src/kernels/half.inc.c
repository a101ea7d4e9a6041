/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of half precision from and to floats. */

LOCUS_INLINE void widen_row(float *to, const uint16_t *row, int64_t width, const locus_dtype type)
{
    int64_t c = 0;
    for (; c + VL <= width; c += VL) v_store(to + c, load_numbers(row + c, 0, type));
    if (c < width) v_storen(to + c, load_numbers(row + c, width - c, type), width - c);
}

static LOCUS_WIDEN(widen)
{
    for (int64_t r = 0; r < count; r++) {
        if (type == LOCUS_F16)
            widen_row(to + r * to_stride, rows + r * row_stride, width, LOCUS_F16);
        else
            widen_row(to + r * to_stride, rows + r * row_stride, width, LOCUS_BF16);
    }
}

LOCUS_INLINE void narrow_row(uint16_t *to, const float *row, int64_t width, const locus_dtype type)
{
    int64_t c = 0;
    for (; c + VL <= width; c += VL) store_half(to + c, v_load(row + c), 0, type);
    if (c < width) store_half(to + c, v_loadn(row + c, width - c), width - c, type);
}

static LOCUS_NARROW(narrow)
{
    for (int64_t r = 0; r < count; r++) {
        if (type == LOCUS_F16)
            narrow_row(to + r * to_stride, rows + r * row_stride, width, LOCUS_F16);
        else
            narrow_row(to + r * to_stride, rows + r * row_stride, width, LOCUS_BF16);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by register tiles of GEMM_ROWS x (GEMM_VECTORS VL): A is broadcast, B is
 * loaded along its rows, and each element of C stays one chain of v_fma in ascending
 * inner index, whatever tile or tail it falls into.
 *
 * `rows`, `vectors` and the switches are constants at every call, so that the loops unroll
 * into registers. The last columns, fewer than a vector, are `tail` lanes wide. */

LOCUS_INLINE vf load_some(const float *p, int64_t tail)
{
    return tail == 0 ? v_load(p) : v_loadn(p, tail);
}
LOCUS_INLINE void store_some(float *p, vf x, int64_t tail)
{
    if (tail == 0)
        v_store(p, x);
    else
        v_storen(p, x, tail);
}

LOCUS_INLINE void tile_product(float *C, int64_t c_row, const float *A, int64_t a_row,
                               int64_t a_column, const float *B, int64_t b_row, int64_t inner,
                               const float *start, int64_t start_row, const float *plus,
                               int64_t plus_row, float *greatest, int64_t tail, const int rows,
                               const int vectors)
{
    vf sum[GEMM_ROWS][GEMM_VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] =
                start != NULL ? load_some(start + i * start_row + v * VL, tail) : v_set1(0.0f);
    for (int64_t j = 0; j < inner; j++) {
        vf b[GEMM_VECTORS];
        for (int v = 0; v < vectors; v++) b[v] = load_some(B + j * b_row + v * VL, tail);
        for (int i = 0; i < rows; i++) {
            const vf a = v_set1(A[i * a_row + j * a_column]);
            for (int v = 0; v < vectors; v++) sum[i][v] = v_fma(a, b[v], sum[i][v]);
        }
    }
    for (int i = 0; i < rows; i++) {
        float *most = greatest != NULL ? greatest + i * LOCUS_LANES : NULL;
        vf top = most != NULL && tail == 0 ? v_load(most) : v_set1(0.0f);
        for (int v = 0; v < vectors; v++) {
            if (plus != NULL)
                sum[i][v] = v_add(sum[i][v], load_some(plus + i * plus_row + v * VL, tail));
            store_some(C + i * c_row + v * VL, sum[i][v], tail);
            top = v_max(sum[i][v], top);
        }
        if (most == NULL) continue;
        if (tail == 0) v_store(most, top);
        for (int64_t c = 0; c < tail; c++)
            if (C[i * c_row + c] > most[0]) most[0] = C[i * c_row + c];
    }
}

/* A band of rows over all columns of B. */
LOCUS_INLINE void row_band(float *C, int64_t c_row, const float *A, int64_t a_row, int64_t a_column,
                           const float *B, int64_t b_row, int64_t inner, int64_t columns,
                           const float *start, const float *plus, int64_t plus_row, float *greatest,
                           const int rows)
{
    int64_t c = 0;
#define AT(p) ((p) != NULL ? (p) + c : NULL)
    for (; c + GEMM_VECTORS * VL <= columns; c += GEMM_VECTORS * VL)
        tile_product(C + c, c_row, A, a_row, a_column, B + c, b_row, inner, AT(start), c_row,
                     AT(plus), plus_row, greatest, 0, rows, GEMM_VECTORS);
    for (; c + VL <= columns; c += VL)
        tile_product(C + c, c_row, A, a_row, a_column, B + c, b_row, inner, AT(start), c_row,
                     AT(plus), plus_row, greatest, 0, rows, 1);
    if (c < columns)
        tile_product(C + c, c_row, A, a_row, a_column, B + c, b_row, inner, AT(start), c_row,
                     AT(plus), plus_row, greatest, columns - c, rows, 1);
#undef AT
}

/* Bands of GEMM_ROWS rows, and one of what is left. */
LOCUS_INLINE void all_bands(float *C, int64_t c_row, const float *A, int64_t a_row,
                            int64_t a_column, const float *B, int64_t b_row, int64_t rows,
                            int64_t inner, int64_t columns, const int accumulate, const float *plus,
                            int64_t plus_row, float *greatest)
{
    int64_t i = 0;
#define BAND(count)                                                                                \
    row_band(C + i * c_row, c_row, A + i * a_row, a_row, a_column, B, b_row, inner, columns,       \
             accumulate ? C + i * c_row : NULL, plus != NULL ? plus + i * plus_row : NULL,         \
             plus_row, greatest != NULL ? greatest + i * LOCUS_LANES : NULL, count)
    for (; i + GEMM_ROWS <= rows; i += GEMM_ROWS) BAND(GEMM_ROWS);
    switch (rows - i) {
    case 1: BAND(1); break;
    case 2: BAND(2); break;
    case 3: BAND(3); break;
#if GEMM_ROWS > 4
    case 4: BAND(4); break;
    case 5: BAND(5); break;
#endif
    default: break;
    }
#undef BAND
}

static LOCUS_GEMM(gemm)
{
    if (accumulate)
        all_bands(C, c_row, A, a_row, a_column, B, b_row, rows, inner, columns, 1, NULL, 0, NULL);
    else
        all_bands(C, c_row, A, a_row, a_column, B, b_row, rows, inner, columns, 0, NULL, 0, NULL);
}

/* A panel is the transpose of LOCUS_PANEL rows: [width][LOCUS_PANEL]. */
LOCUS_INLINE void panel_products(float *C, int64_t c_row, const float *A, int64_t a_row,
                                 const float *panels, int64_t rows, int64_t inner, int64_t columns,
                                 const float *plus, int64_t plus_row, float *greatest)
{
    for (int64_t i = 0; greatest != NULL && i < rows * LOCUS_LANES; i++) greatest[i] = -INFINITY;
    for (int64_t c = 0; c < columns; c += LOCUS_PANEL) {
        const int64_t count = columns - c < LOCUS_PANEL ? columns - c : LOCUS_PANEL;
        all_bands(C + c, c_row, A, a_row, 1, panels + locus_panel_at(c, inner), LOCUS_PANEL, rows,
                  inner, count, 0, plus != NULL ? plus + c : NULL, plus_row, greatest);
    }
}

/* The four ways apart, so that each is compiled without the others' tests. */
static LOCUS_PRODUCT(product)
{
    if (plus != NULL && greatest != NULL)
        panel_products(C, c_row, A, a_row, panels, rows, inner, columns, plus, plus_row, greatest);
    else if (plus != NULL)
        panel_products(C, c_row, A, a_row, panels, rows, inner, columns, plus, plus_row, NULL);
    else if (greatest != NULL)
        panel_products(C, c_row, A, a_row, panels, rows, inner, columns, NULL, 0, greatest);
    else
        panel_products(C, c_row, A, a_row, panels, rows, inner, columns, NULL, 0, NULL);
}

/* Four right rows against one left row at a time. */
LOCUS_INLINE void four_dots(float *to, const float *a, const float *right, int64_t row_stride,
                            int64_t inner, const int count)
{
    vf sum[4];
    for (int k = 0; k < count; k++) sum[k] = v_set1(0.0f);
    int64_t j = 0;
    for (; j + VL <= inner; j += VL)
        for (int k = 0; k < count; k++)
            sum[k] = v_fma(v_load(a + j), v_load(right + k * row_stride + j), sum[k]);
    if (j < inner)
        for (int k = 0; k < count; k++)
            sum[k] = v_fma(v_loadn(a + j, inner - j),
                           v_loadn(right + k * row_stride + j, inner - j), sum[k]);
    for (int k = 0; k < count; k++) to[k] = v_sum(sum[k]);
}

static LOCUS_DOTS(dots)
{
    int64_t c = 0;
    for (; c + 4 <= columns; c += 4)
        for (int64_t i = 0; i < rows; i++)
            four_dots(C + i * c_row + c, A + i * a_row, right + c * row_stride, row_stride, inner,
                      4);
    for (; c < columns; c++)
        for (int64_t i = 0; i < rows; i++)
            four_dots(C + i * c_row + c, A + i * a_row, right + c * row_stride, row_stride, inner,
                      1);
    for (int64_t i = 0; plus != NULL && i < rows; i++)
        for (c = 0; c < columns; c++) C[i * c_row + c] += plus[i * plus_row + c];
}

/* Blocks of VL x VL in registers; what is left over one by one. */
static LOCUS_TRANSPOSE(transpose)
{
    for (int64_t r = 0; r < count; r += VL) {
        const int64_t some = count - r < VL ? count - r : VL;
        const float *from = rows + r * row_stride;
        int64_t c = 0;
        for (; some == VL && c + VL <= width; c += VL) {
            vf block[VL];
            for (int i = 0; i < VL; i++) block[i] = v_load(from + i * row_stride + c);
            v_transpose(block);
            for (int i = 0; i < VL; i++) v_store(to + (c + i) * to_row + r, block[i]);
        }
        for (; c < width; c++)
            for (int64_t i = 0; i < some; i++) to[c * to_row + r + i] = from[i * row_stride + c];
    }
}

static LOCUS_PACK(pack)
{
    for (int64_t r = 0; r < count; r += LOCUS_PANEL)
        transpose(panels + locus_panel_at(r, width), LOCUS_PANEL, rows + r * row_stride, row_stride,
                  count - r < LOCUS_PANEL ? count - r : LOCUS_PANEL, width);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* C (+)= A B by register tiles of GEMM_ROWS x (GEMM_VECTORS VL): A is broadcast, B is
 * loaded along its rows, and each element of C stays one chain of v_fma in ascending
 * inner index, whatever tile or tail it falls into. */

/* `rows`, `vectors` are constants at every call, so the loops unroll into registers. */
LOCUS_INLINE void tile_product(float *C, int64_t c_row, const float *A, int64_t a_row,
                               int64_t a_column, const float *B, int64_t b_row, int64_t inner,
                               int accumulate, const int rows, const int vectors)
{
    vf sum[GEMM_ROWS][GEMM_VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = accumulate ? v_load(C + i * c_row + v * VL) : v_set1(0.0f);
    for (int64_t j = 0; j < inner; j++) {
        vf b[GEMM_VECTORS];
        for (int v = 0; v < vectors; v++) b[v] = v_load(B + j * b_row + v * VL);
        for (int i = 0; i < rows; i++) {
            const vf a = v_set1(A[i * a_row + j * a_column]);
            for (int v = 0; v < vectors; v++) sum[i][v] = v_fma(a, b[v], sum[i][v]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) v_store(C + i * c_row + v * VL, sum[i][v]);
}

/* The last columns, fewer than a vector. */
LOCUS_INLINE void tail_product(float *C, int64_t c_row, const float *A, int64_t a_row,
                               int64_t a_column, const float *B, int64_t b_row, int64_t inner,
                               int64_t columns, int accumulate, const int rows)
{
    vf sum[GEMM_ROWS];
    for (int i = 0; i < rows; i++)
        sum[i] = accumulate ? v_loadn(C + i * c_row, columns) : v_set1(0.0f);
    for (int64_t j = 0; j < inner; j++) {
        const vf b = v_loadn(B + j * b_row, columns);
        for (int i = 0; i < rows; i++)
            sum[i] = v_fma(v_set1(A[i * a_row + j * a_column]), b, sum[i]);
    }
    for (int i = 0; i < rows; i++) v_storen(C + i * c_row, sum[i], columns);
}

LOCUS_INLINE void row_band(float *C, int64_t c_row, const float *A, int64_t a_row,
                           int64_t a_column, const float *B, int64_t b_row, int64_t inner,
                           int64_t columns, int accumulate, const int rows)
{
    int64_t c = 0;
    for (; c + GEMM_VECTORS * VL <= columns; c += GEMM_VECTORS * VL)
        tile_product(C + c, c_row, A, a_row, a_column, B + c, b_row, inner, accumulate, rows,
                     GEMM_VECTORS);
    for (; c + VL <= columns; c += VL)
        tile_product(C + c, c_row, A, a_row, a_column, B + c, b_row, inner, accumulate, rows, 1);
    if (c < columns)
        tail_product(C + c, c_row, A, a_row, a_column, B + c, b_row, inner, columns - c,
                     accumulate, rows);
}

static LOCUS_GEMM(gemm)
{
    int64_t i = 0;
    for (; i + GEMM_ROWS <= rows; i += GEMM_ROWS)
        row_band(C + i * c_row, c_row, A + i * a_row, a_row, a_column, B, b_row, inner, columns,
                 accumulate, GEMM_ROWS);
    for (; i < rows; i++)
        row_band(C + i * c_row, c_row, A + i * a_row, a_row, a_column, B, b_row, inner, columns,
                 accumulate, 1);
}

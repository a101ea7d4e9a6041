/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of rows as they lie, VL right rows at a time: the lanes of their sums are added
 * up together. Each sum runs in the same order, wherever its row stands. */

LOCUS_INLINE void add_products(vf *sum, const float *a, const float *b, int64_t width)
{
    int64_t j = 0;
    for (; j + VL <= width; j += VL) *sum = v_fma(v_load(a + j), v_load(b + j), *sum);
    if (j < width) *sum = v_fma(v_loadn(a + j, width - j), v_loadn(b + j, width - j), *sum);
}

/* Share i of so many of the rows to bring near. */
LOCUS_INLINE void fetch_share(const locus_ahead *all, int64_t i, int64_t shares)
{
    const int64_t from = i * all->count / shares, to = (i + 1) * all->count / shares;
    for (int64_t r = from; r < to; r++)
        for (int64_t c = 0; c < all->width; c += LOCUS_LANES)
            v_prefetch_far(all->rows + r * all->row + c);
}

/* The sums of VL right rows against one left row. */
LOCUS_INLINE vf dot_block(const float *a, const float *right, int64_t row_stride, int64_t inner)
{
    vf sum[VL];
    int64_t j = 0;
    LOCUS_UNROLL
    for (int k = 0; k < VL; k++) sum[k] = v_set1(0.0f);
    for (; j + VL <= inner; j += VL) {
        const vf left = v_load(a + j);
        LOCUS_UNROLL
        for (int k = 0; k < VL; k++)
            sum[k] = v_fma(left, v_load(right + k * row_stride + j), sum[k]);
    }
    if (j < inner) {
        const vf left = v_loadn(a + j, inner - j);
        LOCUS_UNROLL
        for (int k = 0; k < VL; k++)
            sum[k] = v_fma(left, v_loadn(right + k * row_stride + j, inner - j), sum[k]);
    }
    return v_sums(sum);
}

/* The same for the last rows, fewer than VL. */
LOCUS_INLINE vf dot_tail(const float *a, const float *right, int64_t row_stride, int64_t inner,
                         int64_t count)
{
    vf sum[VL];
    for (int64_t k = 0; k < VL; k++) {
        sum[k] = v_set1(0.0f);
        if (k < count) add_products(&sum[k], a, right + k * row_stride, inner);
    }
    return v_sums(sum);
}

static LOCUS_DOTS(dots)
{
    const int64_t blocks = (columns + VL - 1) / VL;
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        const float *from = right + c * row_stride;
        for (int64_t i = 0; i < rows; i++) {
            const float *left = A + i * a_row;
            fetch_share(&ahead, c / VL * rows + i, blocks * rows);
            vf score = tail == 0 ? dot_block(left, from, row_stride, inner)
                                 : dot_tail(left, from, row_stride, inner, tail);
            if (plus != NULL) score = v_add(score, load_some(plus + i * plus_row + c, tail));
            store_some(C + i * c_row + c, score, tail);
        }
    }
}

enum { MIX_STEP = 4 };

/* sum[v] += sum_j a[j] B[j], MIX_STEP rows of B with a share of what is ahead. */
LOCUS_INLINE void mix_vectors(float *C, const float *a, const float *B, int64_t b_row,
                              int64_t inner, const locus_ahead *ahead, int64_t tail,
                              const int vectors)
{
    vf sum[GEMM_VECTORS];
    for (int v = 0; v < vectors; v++) sum[v] = load_some(C + v * VL, tail);
    for (int64_t j = 0; j < inner; j++) {
        if (j % MIX_STEP == 0 && ahead->count > 0)
            fetch_share(ahead, j / MIX_STEP, (inner + MIX_STEP - 1) / MIX_STEP);
        const vf weight = v_set1(a[j]);
        for (int v = 0; v < vectors; v++)
            sum[v] = v_fma(weight, load_some(B + j * b_row + v * VL, tail), sum[v]);
    }
    for (int v = 0; v < vectors; v++) store_some(C + v * VL, sum[v], tail);
}

static LOCUS_MIX(mix)
{
    const locus_ahead nothing = {0};
    enum { BLOCK = 16 };
    for (int64_t j = 0; rows != 1 && j < inner; j += BLOCK) {
        fetch_share(&ahead, j / BLOCK, (inner + BLOCK - 1) / BLOCK);
        gemm(C, c_row, A + j, a_row, 1, B + j * b_row, b_row, rows,
             inner - j < BLOCK ? inner - j : BLOCK, columns, 1);
    }
    if (rows != 1) return;
    int64_t c = 0;
#define MIX(tail, vectors)                                                                         \
    mix_vectors(C + c, A, B + c, b_row, inner, c == 0 ? &ahead : &nothing, tail, vectors)
    for (; c + GEMM_VECTORS * VL <= columns; c += GEMM_VECTORS * VL) MIX(0, GEMM_VECTORS);
    for (; c + VL <= columns; c += VL) MIX(0, 1);
    if (c < columns) MIX(columns - c, 1);
#undef MIX
}

/* VL pairs of rows. */
LOCUS_INLINE vf pair_block(const float *X, int64_t x_row, const float *table, int64_t table_row,
                           const int32_t *index, int64_t width, int64_t count)
{
    vf sum[VL];
    LOCUS_UNROLL
    for (int k = 0; k < VL; k++) {
        sum[k] = v_set1(0.0f);
        if (k < count) add_products(&sum[k], X + k * x_row, table + index[k] * table_row, width);
    }
    return v_sums(sum);
}

static LOCUS_PAIR_DOTS(pair_dots)
{
    const vf times = v_set1(factor);
    int64_t c = 0;
    for (; c + VL <= count; c += VL) {
        const vf sums = pair_block(X + c * x_row, x_row, table, table_row, index + c, width, VL);
        v_store(y + c, v_fma(sums, times, v_load(y + c)));
    }
    if (c == count) return;
    const int64_t tail = count - c;
    const vf sums = pair_block(X + c * x_row, x_row, table, table_row, index + c, width, tail);
    v_storen(y + c, v_fma(sums, times, v_loadn(y + c, tail)), tail);
}

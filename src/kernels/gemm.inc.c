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

/* What becomes of the sums of a tile; see locus_product_tile. The pointers stand at its first
 * row and column. */
typedef struct finish {
    const float *plus;
    int64_t plus_row;
    float *greatest;
    const float *top, *factor;
    const float *weight, *delta;
} finish;

LOCUS_INLINE finish finish_at(finish f, int64_t row, int64_t column, int64_t c_row)
{
    if (f.plus != NULL) f.plus += row * f.plus_row + column;
    if (f.greatest != NULL) f.greatest += row * LOCUS_LANES;
    if (f.top != NULL) f.top += row;
    if (f.factor != NULL) f.factor += row;
    if (f.weight != NULL) f.weight += row * c_row + column;
    if (f.delta != NULL) f.delta += row;
    return f;
}

/* The greatest of a row is kept by lanes; that of a tail in lane 0. */
LOCUS_INLINE void finish_sums(float *C, vf *sum, int64_t c_row, finish f, const int i, int64_t tail,
                              const int vectors)
{
    const vf top = v_set1(f.top != NULL ? -reference(f.top[i]) : 0.0f);
    const vf factor = v_set1(f.factor != NULL ? f.factor[i] : 1.0f);
    const vf delta = v_set1(f.delta != NULL ? -f.delta[i] : 0.0f);
    float *most = f.greatest != NULL ? f.greatest + i * LOCUS_LANES : NULL;
    vf greatest = most != NULL && tail == 0 ? v_load(most) : v_set1(0.0f);
    for (int v = 0; v < vectors; v++) {
        if (f.plus != NULL)
            sum[v] = v_add(sum[v], load_some(f.plus + i * f.plus_row + v * VL, tail));
        if (f.top != NULL) sum[v] = weight_again(sum[v], top, factor);
        if (f.weight != NULL)
            sum[v] = score_grad(load_some(f.weight + i * c_row + v * VL, tail), sum[v], delta);
        store_some(C + v * VL, sum[v], tail);
        greatest = v_max(sum[v], greatest);
    }
    if (most == NULL) return;
    if (tail == 0) v_store(most, greatest);
    for (int64_t c = 0; c < tail; c++)
        if (C[c] > most[0]) most[0] = C[c];
}

LOCUS_INLINE void tile_product(float *C, int64_t c_row, const float *A, int64_t a_row,
                               int64_t a_column, const float *B, int64_t b_row, int64_t inner,
                               const float *start, finish f, int64_t tail, const int rows,
                               const int vectors)
{
    vf sum[GEMM_ROWS][GEMM_VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = start != NULL ? load_some(start + i * c_row + v * VL, tail) : v_set1(0.0f);
    for (int64_t j = 0; j < inner; j++) {
        vf b[GEMM_VECTORS];
        for (int v = 0; v < vectors; v++) b[v] = load_some(B + j * b_row + v * VL, tail);
        for (int i = 0; i < rows; i++) {
            const vf a = v_set1(A[i * a_row + j * a_column]);
            for (int v = 0; v < vectors; v++) sum[i][v] = v_fma(a, b[v], sum[i][v]);
        }
    }
    LOCUS_UNROLL
    for (int i = 0; i < rows; i++) finish_sums(C + i * c_row, sum[i], c_row, f, i, tail, vectors);
}

/* A band of rows over all columns of B. */
LOCUS_INLINE void row_band(float *C, int64_t c_row, const float *A, int64_t a_row, int64_t a_column,
                           const float *B, int64_t b_row, int64_t inner, int64_t columns,
                           const float *start, finish f, const int rows)
{
    int64_t c = 0;
#define TILE(tail, vectors)                                                                        \
    tile_product(C + c, c_row, A, a_row, a_column, B + c, b_row, inner,                            \
                 start != NULL ? start + c : NULL, finish_at(f, 0, c, c_row), tail, rows, vectors)
    for (; c + GEMM_VECTORS * VL <= columns; c += GEMM_VECTORS * VL) TILE(0, GEMM_VECTORS);
    for (; c + VL <= columns; c += VL) TILE(0, 1);
    if (c < columns) TILE(columns - c, 1);
#undef TILE
}

/* Rows to bring near, `each` of them with every band. */
typedef struct fetch {
    locus_ahead left;
    int64_t each;
} fetch;

LOCUS_INLINE fetch fetch_begin(locus_ahead rows, int64_t bands)
{
    return (fetch){rows, bands > 0 ? (rows.count + bands - 1) / bands : 0};
}

LOCUS_INLINE void fetch_some(fetch *f)
{
    for (int64_t r = 0; r < f->each && f->left.count > 0; r++, f->left.count--) {
        for (int64_t c = 0; c < f->left.width; c += LOCUS_LANES) v_prefetch_far(f->left.rows + c);
        f->left.rows += f->left.row;
    }
}

/* Bands of GEMM_ROWS rows, and one of what is left. */
LOCUS_INLINE void all_bands(float *C, int64_t c_row, const float *A, int64_t a_row,
                            int64_t a_column, const float *B, int64_t b_row, int64_t rows,
                            int64_t inner, int64_t columns, const int accumulate, finish f,
                            fetch *ahead)
{
    int64_t i = 0;
#define BAND(count)                                                                                \
    row_band(C + i * c_row, c_row, A + i * a_row, a_row, a_column, B, b_row, inner, columns,       \
             accumulate ? C + i * c_row : NULL, finish_at(f, i, 0, c_row), count)
    for (; i + GEMM_ROWS <= rows; i += GEMM_ROWS) {
        if (ahead != NULL) {
            fetch_some(&ahead[0]);
            fetch_some(&ahead[1]);
        }
        BAND(GEMM_ROWS);
    }
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
    const finish none = {0};
    if (accumulate)
        all_bands(C, c_row, A, a_row, a_column, B, b_row, rows, inner, columns, 1, none, NULL);
    else
        all_bands(C, c_row, A, a_row, a_column, B, b_row, rows, inner, columns, 0, none, NULL);
}

/* A panel is the transpose of LOCUS_PANEL rows: [width][LOCUS_PANEL]. */
LOCUS_INLINE void panel_products(const locus_product_tile *t, finish f)
{
    for (int64_t i = 0; f.greatest != NULL && i < t->rows * LOCUS_LANES; i++)
        f.greatest[i] = -INFINITY;
    const int64_t bands = t->rows / GEMM_ROWS * ((t->columns + LOCUS_PANEL - 1) / LOCUS_PANEL);
    fetch ahead[2] = {fetch_begin(t->ahead[0], bands), fetch_begin(t->ahead[1], bands)};
    for (int64_t c = 0; c < t->columns; c += LOCUS_PANEL) {
        const int64_t count = t->columns - c < LOCUS_PANEL ? t->columns - c : LOCUS_PANEL;
        all_bands(t->c + c, t->c_row, t->a, t->a_row, 1, t->panels + locus_panel_at(c, t->inner),
                  LOCUS_PANEL, t->rows, t->inner, count, 0, finish_at(f, 0, c, t->c_row), ahead);
    }
}

/* Each way is a function of its own: compiled without the others' tests, and small enough that
 * the compiler keeps its pointers in registers. */
#define PRODUCT_WAY(name, ...)                                                                     \
    static LOCUS_NOINLINE LOCUS_PRODUCT(name) { panel_products(t, (finish){__VA_ARGS__}); }
#define PLUS .plus = t->plus, .plus_row = t->plus_row
PRODUCT_WAY(product_sum, 0)
PRODUCT_WAY(product_sum_plus, PLUS)
PRODUCT_WAY(product_greatest, .greatest = t->greatest)
PRODUCT_WAY(product_greatest_plus, PLUS, .greatest = t->greatest)
PRODUCT_WAY(product_weight, .top = t->top, .factor = t->factor)
PRODUCT_WAY(product_weight_plus, PLUS, .top = t->top, .factor = t->factor)
PRODUCT_WAY(product_grad, .weight = t->weight, .delta = t->delta)
PRODUCT_WAY(product_grad_plus, PLUS, .weight = t->weight, .delta = t->delta)
#undef PLUS
#undef PRODUCT_WAY

static LOCUS_PRODUCT(product)
{
    const int plus = t->plus != NULL;
    if (t->greatest != NULL)
        (plus ? product_greatest_plus : product_greatest)(t);
    else if (t->top != NULL)
        (plus ? product_weight_plus : product_weight)(t);
    else if (t->weight != NULL)
        (plus ? product_grad_plus : product_grad)(t);
    else
        (plus ? product_sum_plus : product_sum)(t);
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

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
    const float *also_a, *also_b; /* more operands, whose products are summed behind the first */
    int64_t also_a_row;
    const float *plus;
    int64_t plus_row;
    const float *shift;
    float *greatest;
    const float *top, *factor; /* top NULL: the sums times factor */
    const float *weight, *delta;
} finish;

LOCUS_INLINE finish finish_at(finish f, int64_t row, int64_t column, int64_t c_row)
{
    if (f.also_a != NULL) f.also_a += row * f.also_a_row, f.also_b += column;
    if (f.plus != NULL) f.plus += row * f.plus_row + column;
    if (f.shift != NULL) f.shift += row;
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
    const vf shift = v_set1(f.shift != NULL ? f.shift[i] : 0.0f);
    const vf top = v_set1(f.top != NULL ? -reference(f.top[i]) : 0.0f);
    const vf factor = v_set1(f.factor != NULL ? f.factor[i] : 1.0f);
    const vf delta = v_set1(f.delta != NULL ? -f.delta[i] : 0.0f);
    float *most = f.greatest != NULL ? f.greatest + i * LOCUS_LANES : NULL;
    vf greatest = most != NULL && tail == 0 ? v_load(most) : v_set1(0.0f);
    for (int v = 0; v < vectors; v++) {
        if (f.plus != NULL) {
            const vf plus = load_some(f.plus + i * f.plus_row + v * VL, tail);
            sum[v] = v_add(sum[v], f.shift != NULL ? v_add(plus, shift) : plus);
        } else if (f.shift != NULL)
            sum[v] = v_add(sum[v], shift);
        if (f.top != NULL)
            sum[v] = weight_again(sum[v], top, factor);
        else if (f.factor != NULL)
            sum[v] = v_mul(sum[v], factor);
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

LOCUS_INLINE void sum_products(vf sum[GEMM_ROWS][GEMM_VECTORS], const float *A, int64_t a_row,
                               int64_t a_column, const float *B, int64_t b_row, int64_t inner,
                               int64_t tail, const int rows, const int vectors)
{
    for (int64_t j = 0; j < inner; j++) {
        vf b[GEMM_VECTORS];
        for (int v = 0; v < vectors; v++) b[v] = load_some(B + j * b_row + v * VL, tail);
        for (int i = 0; i < rows; i++) {
            const vf a = v_set1(A[i * a_row + j * a_column]);
            for (int v = 0; v < vectors; v++) sum[i][v] = v_fma(a, b[v], sum[i][v]);
        }
    }
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
    sum_products(sum, A, a_row, a_column, B, b_row, inner, tail, rows, vectors);
    if (f.also_a != NULL)
        sum_products(sum, f.also_a, a_row, a_column, f.also_b, b_row, inner, tail, rows, vectors);
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

/* Of the rows that are left, how many make the next band: one or two alone would wait for their
 * own sums, so they share with the band before. Four sizes: each is compiled for every way of a
 * product. */
LOCUS_INLINE int64_t band_rows(int64_t left)
{
    if (left > GEMM_ROWS + 2 || left == GEMM_ROWS) return GEMM_ROWS;
    return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

LOCUS_INLINE void all_bands(float *C, int64_t c_row, const float *A, int64_t a_row,
                            int64_t a_column, const float *B, int64_t b_row, int64_t rows,
                            int64_t inner, int64_t columns, const int accumulate, finish f,
                            fetch *ahead)
{
#define BAND(count)                                                                                \
    row_band(C + i * c_row, c_row, A + i * a_row, a_row, a_column, B, b_row, inner, columns,       \
             accumulate ? C + i * c_row : NULL, finish_at(f, i, 0, c_row), count)
    for (int64_t i = 0, count; i < rows; i += count) {
        count = band_rows(rows - i);
        if (ahead != NULL) {
            fetch_some(&ahead[0]);
            fetch_some(&ahead[1]);
        }
        switch (count) {
        case 1: BAND(1); break;
        case 2: BAND(2); break;
        case 4: BAND(4); break;
#if GEMM_ROWS > 4
        default: BAND(GEMM_ROWS); break;
#endif
        }
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

static LOCUS_GEMM_TIMES(gemm_times)
{
    const finish times = {.factor = factor};
    const int64_t bands = rows / GEMM_ROWS;
    fetch ahead_of[2] = {fetch_begin(ahead[0], bands), fetch_begin(ahead[1], bands)};
    all_bands(C, c_row, A, a_row, 1, B, b_row, rows, inner, columns, 0, times, ahead_of);
}

/* A panel is the transpose of LOCUS_PANEL rows: [width][LOCUS_PANEL]. */
LOCUS_INLINE void panel_products(const locus_product_tile *t, finish f)
{
    const int64_t kept = f.greatest != NULL && !t->greatest_so_far ? t->rows * LOCUS_LANES : 0;
    for (int64_t i = 0; i < kept; i += VL) v_store(f.greatest + i, v_set1(-INFINITY));
    const int64_t bands = t->rows / GEMM_ROWS * ((t->columns + LOCUS_PANEL - 1) / LOCUS_PANEL);
    fetch ahead[2] = {fetch_begin(t->ahead[0], bands), fetch_begin(t->ahead[1], bands)};
    for (int64_t c = 0; c < t->columns; c += LOCUS_PANEL) {
        const int64_t count = t->columns - c < LOCUS_PANEL ? t->columns - c : LOCUS_PANEL;
        const int64_t panel = locus_panel_at(c, t->inner);
        finish here = finish_at(f, 0, c, t->c_row);
        if (f.also_a != NULL) here.also_b = f.also_b + panel;
        all_bands(t->c + c, t->c_row, t->a, t->a_row, 1, t->panels + panel, LOCUS_PANEL, t->rows,
                  t->inner, count, 0, here, ahead);
    }
}

/* Of each panel, the bands of rows that want some of it; whole vectors of columns. */
LOCUS_INLINE void wanted_products(const locus_product_tile *t)
{
    const finish none = {0};
    for (int64_t c = 0; c < t->columns; c += LOCUS_PANEL) {
        const int64_t count = t->columns - c < LOCUS_PANEL ? t->columns - c : LOCUS_PANEL;
        const float *panel = t->panels + locus_panel_at(c, t->inner);
        for (int64_t i = 0, rows; i < t->rows; i += rows) {
            rows = band_rows(t->rows - i);
            const int64_t from = t->from[i] - t->before - c,
                          to = t->to[i + rows - 1] - t->before - c;
            const int64_t low = from > 0 ? from / VL * VL : 0;
            const int64_t end = (to + VL - 1) / VL * VL;
            const int64_t high = end < count ? end : count;
            if (low < high)
                all_bands(t->c + i * t->c_row + c + low, t->c_row, t->a + i * t->a_row, t->a_row, 1,
                          panel + low, LOCUS_PANEL, rows, t->inner, high - low, 0, none, NULL);
        }
    }
}

/* Each way is a function of its own: compiled without the others' tests, and small enough that
 * the compiler keeps its pointers in registers. */
#define PLUS .plus = t->plus, .plus_row = t->plus_row
#define SHIFT .shift = t->shift
#define ALSO .also_a = t->also_a, .also_b = t->also_panels, .also_a_row = t->a_row
#define PRODUCT_WAY(name, ...)                                                                     \
    static LOCUS_NOINLINE LOCUS_PRODUCT(name) { panel_products(t, (finish){__VA_ARGS__}); }
#define PRODUCT_WAYS(name, ...)                                                                    \
    PRODUCT_WAY(name, __VA_ARGS__)                                                                 \
    PRODUCT_WAY(name##_plus, PLUS, __VA_ARGS__)                                                    \
    PRODUCT_WAY(name##_shift, SHIFT, __VA_ARGS__)                                                  \
    PRODUCT_WAY(name##_both, PLUS, SHIFT, __VA_ARGS__)                                             \
    static const locus_product_fn name##_ways[4] = {name, name##_plus, name##_shift, name##_both};
PRODUCT_WAYS(product_sum, .greatest = NULL)
PRODUCT_WAYS(product_greatest, .greatest = t->greatest)
PRODUCT_WAYS(product_weight, .top = t->top, .factor = t->factor)
PRODUCT_WAYS(product_grad, .weight = t->weight, .delta = t->delta)
PRODUCT_WAY(product_sum_also, ALSO, PLUS)
PRODUCT_WAY(product_greatest_also, ALSO, PLUS, .greatest = t->greatest)
PRODUCT_WAY(product_weight_also, ALSO, PLUS, .top = t->top, .factor = t->factor)
#undef PRODUCT_WAYS
#undef PRODUCT_WAY
#undef ALSO
#undef SHIFT
#undef PLUS
static LOCUS_NOINLINE LOCUS_PRODUCT(product_wanted) { wanted_products(t); }

static LOCUS_PRODUCT(product)
{
    const int added = (t->plus != NULL) + 2 * (t->shift != NULL);
    if (t->also_a != NULL)
        (t->greatest != NULL ? product_greatest_also
         : t->top != NULL    ? product_weight_also
                             : product_sum_also)(t);
    else if (t->greatest != NULL)
        product_greatest_ways[added](t);
    else if (t->top != NULL)
        product_weight_ways[added](t);
    else if (t->weight != NULL)
        product_grad_ways[added](t);
    else if (t->from != NULL)
        product_wanted(t);
    else
        product_sum_ways[added](t);
}

/* VL columns of VL rows, or of the last `tail` rows, in registers. */
LOCUS_INLINE void transpose_block(float *to, int64_t to_row, const float *rows, int64_t row_stride,
                                  int64_t tail)
{
    vf block[VL];
    for (int i = 0; i < VL; i++)
        block[i] = tail == 0 || i < tail ? v_load(rows + i * row_stride) : v_set1(0.0f);
    v_transpose(block);
    for (int i = 0; i < VL; i++) store_some(to + i * to_row, block[i], tail);
}

/* The last columns, fewer than VL, one by one. */
static LOCUS_TRANSPOSE(transpose)
{
    for (int64_t r = 0; r < count; r += VL) {
        const int64_t some = count - r < VL ? count - r : VL;
        const float *from = rows + r * row_stride;
        int64_t c = 0;
        for (; some == VL && c + VL <= width; c += VL)
            transpose_block(to + c * to_row + r, to_row, from + c, row_stride, 0);
        for (; c + VL <= width; c += VL)
            transpose_block(to + c * to_row + r, to_row, from + c, row_stride, some);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by register tiles of GEMM_ROWS x (GEMM_VECTORS VL): A is broadcast, B is
 * loaded along its rows, and each element of C stays one chain of v_fma in ascending
 * inner index, whatever tile or tail it falls into.
 *
 * `rows`, `vectors` and the switches are constants at every call, so that the loops unroll
 * into registers. */

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
                               const float *start, const float *carry, finish f, int64_t tail,
                               const int rows, const int vectors)
{
    vf sum[GEMM_ROWS][GEMM_VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) {
            sum[i][v] = start != NULL ? load_some(start + i * c_row + v * VL, tail) : v_set1(0.0f);
            if (carry != NULL) sum[i][v] = v_mul(sum[i][v], v_set1(carry[i]));
        }
    sum_products(sum, A, a_row, a_column, B, b_row, inner, tail, rows, vectors);
    if (f.also_a != NULL)
        sum_products(sum, f.also_a, f.also_a_row, 1, f.also_b, b_row, inner, tail, rows, vectors);
    LOCUS_UNROLL
    for (int i = 0; i < rows; i++) finish_sums(C + i * c_row, sum[i], c_row, f, i, tail, vectors);
}

/* A band of rows over all columns of B. edges: parts of a register tile are compiled too, which
 * single vectors would not fill with sums. */
LOCUS_INLINE void row_band(float *C, int64_t c_row, const float *A, int64_t a_row, int64_t a_column,
                           const float *B, int64_t b_row, int64_t inner, int64_t columns,
                           const float *start, const float *carry, finish f, const int rows,
                           const int edges)
{
    int64_t c = 0;
#define TILE(tail, vectors)                                                                        \
    tile_product(C + c, c_row, A, a_row, a_column, B + c, b_row, inner,                            \
                 start != NULL ? start + c : NULL, carry, finish_at(f, 0, c, c_row), tail, rows,   \
                 vectors)
    for (; c + GEMM_VECTORS * VL <= columns; c += GEMM_VECTORS * VL) TILE(0, GEMM_VECTORS);
    if (edges && c + (GEMM_VECTORS - 1) * VL <= columns) {
        TILE(0, GEMM_VECTORS - 1);
        c += (GEMM_VECTORS - 1) * VL;
    } else if (edges && c + GEMM_VECTORS / 2 * VL <= columns) {
        TILE(0, GEMM_VECTORS / 2);
        c += GEMM_VECTORS / 2 * VL;
    }
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

/* Few instructions, for they stand between products: heads have rows of four lines, mostly. */
LOCUS_INLINE void fetch_row(const float *row, int64_t width)
{
    enum { LINES = 4 };
    if (width == LINES * LOCUS_LANES) {
        LOCUS_UNROLL
        for (int line = 0; line < LINES; line++) v_prefetch_far(row + line * LOCUS_LANES);
        return;
    }
    for (int64_t c = 0; c < width; c += LOCUS_LANES) v_prefetch_far(row + c);
}

LOCUS_INLINE void fetch_some(fetch *f)
{
    const int64_t count = f->each < f->left.count ? f->each : f->left.count;
    for (int64_t r = 0; r < count; r++) fetch_row(f->left.rows + r * f->left.row, f->left.width);
    f->left.rows += count * f->left.row;
    f->left.count -= count;
}

/* Of the rows that are left, how many make the next band: one or two alone would wait for their
 * own sums, so they share with the band before. Four sizes: each is compiled for every way of a
 * product. */
LOCUS_INLINE int64_t band_rows(int64_t left)
{
    if (left > GEMM_ROWS + 2 || left == GEMM_ROWS) return GEMM_ROWS;
    return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/* The columns that rows want; see locus_product_tile. Those of a band in whole vectors. */
typedef struct wanted {
    const int32_t *from, *to;
    int64_t before;
} wanted;

typedef struct stretch {
    int64_t from, to;
} stretch;

LOCUS_INLINE stretch wanted_columns(const wanted *w, int64_t row, int64_t rows, int64_t columns)
{
    if (w == NULL) return (stretch){0, columns};
    const int64_t first = w->from[row] - w->before, past = w->to[row + rows - 1] - w->before;
    const int64_t from = first > 0 ? first / VL * VL : 0;
    const int64_t to = (past + VL - 1) / VL * VL;
    return (stretch){from, past <= from ? from : to < columns ? to : columns};
}

LOCUS_INLINE void
all_bands(float *C, int64_t c_row, const float *A, int64_t a_row, int64_t a_column, const float *B,
          int64_t b_row, int64_t rows, int64_t inner, int64_t columns, const int accumulate,
          const float *carry, finish f, fetch *ahead, const wanted *w, const int edges)
{
#define BAND(count)                                                                                \
    row_band(C + i * c_row + some.from, c_row, A + i * a_row, a_row, a_column, B + some.from,      \
             b_row, inner, some.to - some.from, accumulate ? C + i * c_row + some.from : NULL,     \
             carry != NULL ? carry + i : NULL, finish_at(f, i, some.from, c_row), count, edges)
    for (int64_t i = 0, count; i < rows; i += count) {
        count = band_rows(rows - i);
        const stretch some = wanted_columns(w, i, count, columns);
        if (ahead != NULL) {
            fetch_some(&ahead[0]);
            fetch_some(&ahead[1]);
        }
        if (w != NULL && some.from >= some.to) continue;
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
        all_bands(C, c_row, A, a_row, a_column, B, b_row, rows, inner, columns, 1, NULL, none, NULL,
                  NULL, 1);
    else
        all_bands(C, c_row, A, a_row, a_column, B, b_row, rows, inner, columns, 0, NULL, none, NULL,
                  NULL, 1);
}

static LOCUS_GEMM_CARRY(gemm_carry)
{
    const finish none = {0};
    all_bands(C, c_row, A, a_row, 1, B, b_row, rows, inner, columns, 1, carry, none, NULL, NULL, 1);
}

static LOCUS_GEMM_TIMES(gemm_times)
{
    const finish times = {.factor = factor};
    const int64_t bands = rows / GEMM_ROWS;
    fetch ahead_of[2] = {fetch_begin(ahead[0], bands), fetch_begin(ahead[1], bands)};
    all_bands(C, c_row, A, a_row, 1, B, b_row, rows, inner, columns, 0, NULL, times, ahead_of, NULL,
              1);
}

/* A panel is the transpose of LOCUS_PANEL rows: [width][LOCUS_PANEL]. */
LOCUS_INLINE void panel_products(const locus_product_tile *t, finish f, const int chooses,
                                 const int edges)
{
    const int64_t kept = f.greatest != NULL && !t->greatest_so_far ? t->rows * LOCUS_LANES : 0;
    for (int64_t i = 0; i < kept; i += VL) v_store(f.greatest + i, v_set1(-INFINITY));
    const int64_t bands = t->rows / GEMM_ROWS * ((t->columns + LOCUS_PANEL - 1) / LOCUS_PANEL);
    fetch ahead[2] = {fetch_begin(t->ahead[0], bands), fetch_begin(t->ahead[1], bands)};
    for (int64_t c = 0; c < t->columns; c += LOCUS_PANEL) {
        const int64_t count = t->columns - c < LOCUS_PANEL ? t->columns - c : LOCUS_PANEL;
        const wanted some = {t->from, t->to, t->before + c};
        const int64_t panel = locus_panel_at(c, t->inner);
        finish here = finish_at(f, 0, c, t->c_row);
        if (f.also_a != NULL) here.also_b = f.also_b + panel;
        all_bands(t->c + c, t->c_row, t->a, t->a_row, 1, t->panels + panel, LOCUS_PANEL, t->rows,
                  t->inner, count, 0, NULL, here, ahead, chooses && t->from != NULL ? &some : NULL,
                  edges);
    }
}

/* Each way is a function of its own: compiled without the others' tests, and small enough that
 * the compiler keeps its pointers in registers. */
#define PLUS .plus = t->plus, .plus_row = t->plus_row
#define SHIFT .shift = t->shift
#define ALSO .also_a = t->also_a, .also_b = t->also_panels, .also_a_row = t->also_a_row
#define PRODUCT_WAY(name, chooses, edges, ...)                                                     \
    static LOCUS_NOINLINE LOCUS_PRODUCT(name)                                                      \
    {                                                                                              \
        panel_products(t, (finish){__VA_ARGS__}, chooses, edges);                                  \
    }
#define PRODUCT_WAYS(name, chooses, ...)                                                           \
    PRODUCT_WAY(name, chooses, chooses, __VA_ARGS__)                                               \
    PRODUCT_WAY(name##_plus, chooses, 0, PLUS, __VA_ARGS__)                                        \
    PRODUCT_WAY(name##_shift, chooses, 0, SHIFT, __VA_ARGS__)                                      \
    PRODUCT_WAY(name##_both, chooses, 0, PLUS, SHIFT, __VA_ARGS__)                                 \
    static const locus_product_fn name##_ways[4] = {name, name##_plus, name##_shift, name##_both};
PRODUCT_WAYS(product_sum, 1, .greatest = NULL)
PRODUCT_WAYS(product_greatest, 0, .greatest = t->greatest)
PRODUCT_WAYS(product_weight, 0, .top = t->top, .factor = t->factor)
PRODUCT_WAY(product_grad, 0, 0, .weight = t->weight, .delta = t->delta)
PRODUCT_WAY(product_grad_plus, 0, 0, PLUS, .weight = t->weight, .delta = t->delta)
PRODUCT_WAY(product_sum_also, 1, 0, ALSO, PLUS)
PRODUCT_WAY(product_greatest_also, 0, 0, ALSO, PLUS, .greatest = t->greatest)
PRODUCT_WAY(product_weight_also, 0, 0, ALSO, PLUS, .top = t->top, .factor = t->factor)
#undef PRODUCT_WAYS
#undef PRODUCT_WAY
#undef ALSO
#undef SHIFT
#undef PLUS

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
        (t->plus != NULL ? product_grad_plus : product_grad)(t);
    else
        product_sum_ways[added](t);
}

/* VL columns of VL rows, or of the last `tail` rows, in registers. */
LOCUS_INLINE void transpose_block(float *to, int64_t to_row, const float *rows, int64_t row_stride,
                                  int64_t tail, float factor)
{
    vf block[VL];
    for (int i = 0; i < VL; i++)
        block[i] = tail == 0 || i < tail ? v_mul(v_load(rows + i * row_stride), v_set1(factor))
                                         : v_set1(0.0f);
    v_transpose(block);
    for (int i = 0; i < VL; i++) store_some(to + i * to_row, block[i], tail);
}

/* to[c * to_row + r] = factor rows[r * row_stride + c] for r < count, c < width. The last columns,
 * fewer than VL, one by one. */
LOCUS_INLINE void transpose_rows(float *to, int64_t to_row, const float *rows, int64_t row_stride,
                                 int64_t count, int64_t width, float factor)
{
    for (int64_t r = 0; r < count; r += VL) {
        const int64_t some = count - r < VL ? count - r : VL;
        const float *from = rows + r * row_stride;
        int64_t c = 0;
        for (; some == VL && c + VL <= width; c += VL)
            transpose_block(to + c * to_row + r, to_row, from + c, row_stride, 0, factor);
        for (; c + VL <= width; c += VL)
            transpose_block(to + c * to_row + r, to_row, from + c, row_stride, some, factor);
        for (; c < width; c++)
            for (int64_t i = 0; i < some; i++)
                to[c * to_row + r + i] = from[i * row_stride + c] * factor;
    }
}

static LOCUS_PACK(pack)
{
    for (int64_t r = 0; r < count; r += LOCUS_PANEL)
        transpose_rows(panels + locus_panel_at(r, width), LOCUS_PANEL, rows + r * row_stride,
                       row_stride, count - r < LOCUS_PANEL ? count - r : LOCUS_PANEL, width,
                       factor);
}

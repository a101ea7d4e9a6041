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
    int64_t also_a_stride;
    const float *plus;
    int64_t plus_stride;
    const float *shift;
    float *max_lanes;
    const float *lse, *factor; /* lse NULL: the sums times factor */
    const float *weight, *row_dot;
} finish;

LOCUS_INLINE finish finish_at(finish f, int64_t row, int64_t column, int64_t c_stride)
{
    if (f.also_a != NULL) f.also_a += row * f.also_a_stride, f.also_b += column;
    if (f.plus != NULL) f.plus += row * f.plus_stride + column;
    if (f.shift != NULL) f.shift += row;
    if (f.max_lanes != NULL) f.max_lanes += row * LOCUS_LANES;
    if (f.lse != NULL) f.lse += row;
    if (f.factor != NULL) f.factor += row;
    if (f.weight != NULL) f.weight += row * c_stride + column;
    if (f.row_dot != NULL) f.row_dot += row;
    return f;
}

/* The maximum of a row is kept by lanes; that of a tail in lane 0. */
LOCUS_INLINE void finish_sums(float *C, vf *sum, int64_t c_stride, finish f, const int i,
                              int64_t tail, const int vectors)
{
    const vf shift = v_set1(f.shift != NULL ? f.shift[i] : 0.0f);
    const vf lse = v_set1(f.lse != NULL ? -reference(f.lse[i]) : 0.0f);
    const vf factor = v_set1(f.factor != NULL ? f.factor[i] : 1.0f);
    const vf row_dot = v_set1(f.row_dot != NULL ? -f.row_dot[i] : 0.0f);
    float *lanes = f.max_lanes != NULL ? f.max_lanes + i * LOCUS_LANES : NULL;
    vf max = lanes != NULL && tail == 0 ? v_load(lanes) : v_set1(0.0f);
    for (int v = 0; v < vectors; v++) {
        if (f.plus != NULL) {
            const vf plus = load_some(f.plus + i * f.plus_stride + v * VL, tail);
            sum[v] = v_add(sum[v], f.shift != NULL ? v_add(plus, shift) : plus);
        } else if (f.shift != NULL)
            sum[v] = v_add(sum[v], shift);
        if (f.lse != NULL)
            sum[v] = weight_from_lse(sum[v], lse, factor);
        else if (f.factor != NULL)
            sum[v] = v_mul(sum[v], factor);
        if (f.weight != NULL)
            sum[v] = score_grad(load_some(f.weight + i * c_stride + v * VL, tail), sum[v], row_dot);
        store_some(C + v * VL, sum[v], tail);
        max = v_max(sum[v], max);
    }
    if (lanes == NULL) return;
    if (tail == 0)
        v_store(lanes, max);
    else if (tail == VL)
        v_store(lanes, v_max(sum[0], v_load(lanes)));
    else
        for (int64_t c = 0; c < tail; c++)
            if (C[c] > lanes[0]) lanes[0] = C[c];
}

LOCUS_INLINE void sum_products(vf sum[GEMM_ROWS][GEMM_VECTORS], const float *A, int64_t a_stride,
                               int64_t a_column, const float *B, int64_t b_stride, int64_t inner,
                               int64_t tail, const int rows, const int vectors)
{
    for (int64_t j = 0; j < inner; j++) {
        vf b[GEMM_VECTORS];
        for (int v = 0; v < vectors; v++) b[v] = load_some(B + j * b_stride + v * VL, tail);
        for (int i = 0; i < rows; i++) {
            const vf a = v_set1(A[i * a_stride + j * a_column]);
            for (int v = 0; v < vectors; v++) sum[i][v] = v_fma(a, b[v], sum[i][v]);
        }
    }
}

/* Operands of one product, and what becomes of its sums. */
typedef struct product_of {
    float *c;
    int64_t c_stride;
    const float *a; /* A[i][j] at a[i * a_stride + j * a_column] */
    int64_t a_stride, a_column;
    const float *b;
    int64_t b_stride;
    int64_t inner;
    int accumulate;       /* sums start from C, else from 0         */
    const float *rescale; /* what C is multiplied by before, by row; NULL: nothing */
    finish f;
} product_of;

/* The same from row `row` and column `column` on. */
LOCUS_INLINE product_of product_at(product_of p, int64_t row, int64_t column)
{
    p.c += row * p.c_stride + column;
    p.a += row * p.a_stride;
    p.b += column;
    if (p.rescale != NULL) p.rescale += row;
    p.f = finish_at(p.f, row, column, p.c_stride);
    return p;
}

LOCUS_INLINE void tile_product(product_of p, int64_t tail, const int rows, const int vectors)
{
    vf sum[GEMM_ROWS][GEMM_VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) {
            sum[i][v] =
                p.accumulate ? load_some(p.c + i * p.c_stride + v * VL, tail) : v_set1(0.0f);
            if (p.rescale != NULL) sum[i][v] = v_mul(sum[i][v], v_set1(p.rescale[i]));
        }
    sum_products(sum, p.a, p.a_stride, p.a_column, p.b, p.b_stride, p.inner, tail, rows, vectors);
    if (p.f.also_a != NULL)
        sum_products(sum, p.f.also_a, p.f.also_a_stride, 1, p.f.also_b, p.b_stride, p.inner, tail,
                     rows, vectors);
    LOCUS_UNROLL
    for (int i = 0; i < rows; i++)
        finish_sums(p.c + i * p.c_stride, sum[i], p.c_stride, p.f, i, tail, vectors);
}

/* Lanes of a single vector where `left` columns are left, in a form from which the compiler sees
 * that they are not 0: whole vectors go the way of tails, so that it is compiled once. */
LOCUS_INLINE int64_t edge_lanes(int64_t left)
{
    return (int64_t)((uint64_t)(left < VL ? left - 1 : VL - 1) % VL) + 1;
}

/* The rows of a register tile over all columns of B. edges: parts of a register tile are compiled
 * too, which single vectors would not fill with sums. */
LOCUS_INLINE void row_tile(product_of p, int64_t columns, const int rows, const int edges)
{
    int64_t c = 0;
#define TILE(tail, vectors) tile_product(product_at(p, 0, c), tail, rows, vectors)
    for (; c + GEMM_VECTORS * VL <= columns; c += GEMM_VECTORS * VL) TILE(0, GEMM_VECTORS);
    if (edges && c + (GEMM_VECTORS - 1) * VL <= columns) {
        TILE(0, GEMM_VECTORS - 1);
        c += (GEMM_VECTORS - 1) * VL;
    } else if (edges && c + GEMM_VECTORS / 2 * VL <= columns) {
        TILE(0, GEMM_VECTORS / 2);
        c += GEMM_VECTORS / 2 * VL;
    }
    for (; c < columns; c += VL) TILE(edge_lanes(columns - c), 1);
#undef TILE
}

/* Rows to fetch, `each` of them with every register tile. */
typedef struct fetch {
    locus_prefetch_rows left;
    int64_t each;
} fetch;

LOCUS_INLINE fetch fetch_begin(locus_prefetch_rows rows, int64_t tiles)
{
    return (fetch){rows, tiles > 0 ? (rows.count + tiles - 1) / tiles : 0};
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
    for (int64_t r = 0; r < count; r++)
        fetch_row(f->left.rows + r * f->left.row_stride, f->left.width);
    f->left.rows += count * f->left.row_stride;
    f->left.count -= count;
}

/* Of the rows that are left, how many make the next register tile: one or two alone would wait for
 * their own sums, so they share with the tile before. Three sizes: each is compiled for every way of a
 * product. */
LOCUS_INLINE int64_t tile_rows(int64_t left)
{
    if (left > GEMM_ROWS + 2 || left == GEMM_ROWS) return GEMM_ROWS;
    return left >= 4 ? 4 : 1;
}

/* The columns that rows want; see locus_product_tile. Those of a register tile in whole vectors. */
typedef struct wanted {
    const int32_t *from, *to;
    int64_t before;
} wanted;

typedef struct column_range {
    int64_t from, to;
} column_range;

LOCUS_INLINE column_range wanted_columns(const wanted *w, int64_t row, int64_t rows,
                                         int64_t columns)
{
    if (w == NULL) return (column_range){0, columns};
    const int64_t first = w->from[row] - w->before, past = w->to[row + rows - 1] - w->before;
    const int64_t from = first > 0 ? first / VL * VL : 0;
    const int64_t to = (past + VL - 1) / VL * VL;
    return (column_range){from, past <= from ? from : to < columns ? to : columns};
}

/* All rows, a register tile of them at a time. */
LOCUS_INLINE void all_rows(product_of p, int64_t rows, int64_t columns, fetch *prefetch,
                           const wanted *w, const int edges)
{
#define ROWS(count) row_tile(product_at(p, i, some.from), some.to - some.from, count, edges)
    for (int64_t i = 0, count; i < rows; i += count) {
        count = tile_rows(rows - i);
        const column_range some = wanted_columns(w, i, count, columns);
        if (prefetch != NULL) {
            fetch_some(&prefetch[0]);
            fetch_some(&prefetch[1]);
        }
        if (w != NULL && some.from >= some.to) continue;
        switch (count) {
        case 1: ROWS(1); break;
        case 4: ROWS(4); break;
#if GEMM_ROWS > 4
        default: ROWS(GEMM_ROWS); break;
#endif
        }
    }
#undef ROWS
}

static LOCUS_GEMM(gemm)
{
    product_of p = {.c = C,
                    .c_stride = c_stride,
                    .a = A,
                    .a_stride = a_stride,
                    .a_column = a_column,
                    .b = B,
                    .b_stride = b_stride,
                    .inner = inner};
    if (accumulate) {
        p.accumulate = 1;
        all_rows(p, rows, columns, NULL, NULL, 1);
    } else
        all_rows(p, rows, columns, NULL, NULL, 1);
}

static LOCUS_GEMM_RESCALE(gemm_rescale)
{
    const product_of p = {.c = C,
                          .c_stride = c_stride,
                          .a = A,
                          .a_stride = a_stride,
                          .a_column = 1,
                          .b = B,
                          .b_stride = b_stride,
                          .inner = inner,
                          .accumulate = 1,
                          .rescale = rescale};
    all_rows(p, rows, columns, NULL, NULL, 1);
}

static LOCUS_GEMM_FACTOR(gemm_factor)
{
    const product_of p = {.c = C,
                          .c_stride = c_stride,
                          .a = A,
                          .a_stride = a_stride,
                          .a_column = 1,
                          .b = B,
                          .b_stride = b_stride,
                          .inner = inner,
                          .f = {.factor = factor}};
    const int64_t tiles = rows / GEMM_ROWS;
    fetch f[2] = {fetch_begin(prefetch[0], tiles), fetch_begin(prefetch[1], tiles)};
    all_rows(p, rows, columns, f, NULL, 1);
}

/* A panel is the transpose of LOCUS_PANEL rows: [width][LOCUS_PANEL]. */
LOCUS_INLINE void panel_products(const locus_product_tile *t, finish f, const int chooses,
                                 const int edges)
{
    const int64_t kept = f.max_lanes != NULL && !t->max_so_far ? t->rows * LOCUS_LANES : 0;
    for (int64_t i = 0; i < kept; i += VL) v_store(f.max_lanes + i, v_set1(-INFINITY));
    const int64_t tiles = t->rows / GEMM_ROWS * ((t->columns + LOCUS_PANEL - 1) / LOCUS_PANEL);
    fetch some[2] = {fetch_begin(t->prefetch[0], tiles), fetch_begin(t->prefetch[1], tiles)};
    for (int64_t c = 0; c < t->columns; c += LOCUS_PANEL) {
        const int64_t count = t->columns - c < LOCUS_PANEL ? t->columns - c : LOCUS_PANEL;
        const wanted w = {t->from, t->to, t->before + c};
        const int64_t panel = locus_panel_at(c, t->inner);
        product_of p = {.c = t->c + c,
                        .c_stride = t->c_stride,
                        .a = t->a,
                        .a_stride = t->a_stride,
                        .a_column = 1,
                        .b = t->panels + panel,
                        .b_stride = LOCUS_PANEL,
                        .inner = t->inner,
                        .f = finish_at(f, 0, c, t->c_stride)};
        if (f.also_a != NULL) p.f.also_b = f.also_b + panel;
        all_rows(p, t->rows, count, some, chooses && t->from != NULL ? &w : NULL, edges);
    }
}

/* Each way is a function of its own: compiled without the others' tests, and small enough that
 * the compiler keeps its pointers in registers. */
#define PLUS .plus = t->plus, .plus_stride = t->plus_stride
#define SHIFT .shift = t->shift
#define ALSO .also_a = t->also_a, .also_b = t->also_panels, .also_a_stride = t->also_a_stride
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
PRODUCT_WAYS(product_sum, 1, .max_lanes = NULL)
PRODUCT_WAYS(product_max, 0, .max_lanes = t->max_lanes)
PRODUCT_WAYS(product_weight, 0, .lse = t->lse, .factor = t->factor)
PRODUCT_WAY(product_grad, 0, 0, .weight = t->weight, .row_dot = t->row_dot)
PRODUCT_WAY(product_grad_plus, 0, 0, PLUS, .weight = t->weight, .row_dot = t->row_dot)
PRODUCT_WAY(product_sum_also, 1, 0, ALSO, PLUS)
PRODUCT_WAY(product_max_also, 0, 0, ALSO, PLUS, .max_lanes = t->max_lanes)
PRODUCT_WAY(product_weight_also, 0, 0, ALSO, PLUS, .lse = t->lse, .factor = t->factor)
#undef PRODUCT_WAYS
#undef PRODUCT_WAY
#undef ALSO
#undef SHIFT
#undef PLUS

static LOCUS_PRODUCT(product)
{
    const int added = (t->plus != NULL) + 2 * (t->shift != NULL);
    if (t->also_a != NULL)
        (t->max_lanes != NULL ? product_max_also
         : t->lse != NULL     ? product_weight_also
                              : product_sum_also)(t);
    else if (t->max_lanes != NULL)
        product_max_ways[added](t);
    else if (t->lse != NULL)
        product_weight_ways[added](t);
    else if (t->weight != NULL)
        (t->plus != NULL ? product_grad_plus : product_grad)(t);
    else
        product_sum_ways[added](t);
}

/* VL columns of VL rows, or of the last `tail` rows, in registers. */
LOCUS_INLINE void transpose_block(float *to, int64_t to_stride, const float *rows,
                                  int64_t row_stride, int64_t tail, float factor)
{
    vf block[VL];
    for (int i = 0; i < VL; i++)
        block[i] = tail == 0 || i < tail ? v_mul(v_load(rows + i * row_stride), v_set1(factor))
                                         : v_set1(0.0f);
    v_transpose(block);
    for (int i = 0; i < VL; i++) store_some(to + i * to_stride, block[i], tail);
}

/* to[c * to_stride + r] = factor rows[r * row_stride + c] for r < count, c < width. The last columns,
 * fewer than VL, one by one. */
LOCUS_INLINE void transpose_rows(float *to, int64_t to_stride, const float *rows,
                                 int64_t row_stride, int64_t count, int64_t width, float factor)
{
    for (int64_t r = 0; r < count; r += VL) {
        const int64_t some = count - r < VL ? count - r : VL;
        const float *from = rows + r * row_stride;
        int64_t c = 0;
        for (; some == VL && c + VL <= width; c += VL)
            transpose_block(to + c * to_stride + r, to_stride, from + c, row_stride, 0, factor);
        for (; c + VL <= width; c += VL)
            transpose_block(to + c * to_stride + r, to_stride, from + c, row_stride, some, factor);
        for (; c < width; c++)
            for (int64_t i = 0; i < some; i++)
                to[c * to_stride + r + i] = from[i * row_stride + c] * factor;
    }
}

static LOCUS_PACK(pack)
{
    for (int64_t r = 0; r < count; r += LOCUS_PANEL)
        transpose_rows(panels + locus_panel_at(r, width), LOCUS_PANEL, rows + r * row_stride,
                       row_stride, count - r < LOCUS_PANEL ? count - r : LOCUS_PANEL, width,
                       factor);
}

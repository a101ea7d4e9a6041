/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by register tiles of GEMM_ROWS x (GEMM_VECTORS VL): A is broadcast, B is
 * loaded along its rows, and each element of C stays one chain of v_fma in ascending
 * inner index, whatever tile or tail it falls into.
 *
 * `rows` and `vectors` are constants at every call, so that the loops unroll into registers. Whole
 * register tiles are compiled for every way in which a product ends; what is left at the edges of
 * an operand, smaller tiles, is compiled once and looks up what to do with its sums. */

/* What becomes of the sums of a tile; see locus_product_tile. */
enum {
    ADD_ALSO = 1, /* more operands, whose products are summed behind the first */
    ADD_PLUS = 2,
    ADD_SHIFT = 4,
    KEEP_MAX = 8,
    TO_WEIGHT = 16,
    TO_GRAD = 32,
    TIMES_FACTOR = 64
};

/* Operands of one product. */
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
} product_of;

/* The sums of `rows` rows by `vectors` vectors, one after another, that begin at `row` and
 * `column`. */
typedef struct finish finish;
#define FINISH_REST(name)                                                                          \
    void name(const product_of *p, const finish *f, int64_t row, int64_t column, vf *sums,         \
              int64_t tail, int rows, int vectors)
typedef FINISH_REST((*finish_rest_fn));

/* What the ends of a product take: pointers to the first row and column of the tile. Those that
 * belong to no end of this one mean nothing, but for also_a. */
struct finish {
    const float *also_a, *also_b; /* also_a NULL: none */
    int64_t also_a_stride;
    const float *plus;
    int64_t plus_stride;
    const float *shift;
    float *max_lanes;
    const float *lse, *factor;
    const float *weight, *row_dot;
    finish_rest_fn rest; /* of tiles that are no whole register tiles; NULL: sums are stored */
};

LOCUS_INLINE finish finish_at(const finish *f, int64_t row, int64_t column, int64_t c_stride,
                              const int ends)
{
    LOCUS_UNINITIALIZED finish at;
    at.rest = f->rest;
    at.also_a = NULL;
    if (ends & ADD_ALSO) {
        at.also_a = f->also_a + row * f->also_a_stride;
        at.also_a_stride = f->also_a_stride;
        at.also_b = f->also_b + column;
    }
    if (ends & ADD_PLUS) {
        at.plus = f->plus + row * f->plus_stride + column;
        at.plus_stride = f->plus_stride;
    }
    if (ends & ADD_SHIFT) at.shift = f->shift + row;
    if (ends & KEEP_MAX) at.max_lanes = f->max_lanes + row * LOCUS_LANES;
    if (ends & TO_WEIGHT) at.lse = f->lse + row;
    if (ends & (TO_WEIGHT | TIMES_FACTOR)) at.factor = f->factor + row;
    if (ends & TO_GRAD) {
        at.weight = f->weight + row * c_stride + column;
        at.row_dot = f->row_dot + row;
    }
    return at;
}

/* The sums of row i from column c on, which go to C. The maximum of a row is kept by lanes; that of a
 * tail in lane 0. */
LOCUS_INLINE void finish_sums(float *C, vf *sum, int64_t c_stride, const finish *f, int64_t i,
                              int64_t c, int64_t tail, const int vectors, const int ends)
{
    const vf shift = v_set1(ends & ADD_SHIFT ? f->shift[i] : 0.0f);
    const vf lse = v_set1(ends & TO_WEIGHT ? -reference(f->lse[i]) : 0.0f);
    const vf factor = v_set1(ends & (TO_WEIGHT | TIMES_FACTOR) ? f->factor[i] : 1.0f);
    const vf row_dot = v_set1(ends & TO_GRAD ? -f->row_dot[i] : 0.0f);
    float *lanes = ends & KEEP_MAX ? f->max_lanes + i * LOCUS_LANES : NULL;
    vf max = lanes != NULL && tail == 0 ? v_load(lanes) : v_set1(0.0f);
    for (int v = 0; v < vectors; v++) {
        if (ends & ADD_PLUS) {
            const vf plus = load_some(f->plus + i * f->plus_stride + c + v * VL, tail);
            sum[v] = v_add(sum[v], ends & ADD_SHIFT ? v_add(plus, shift) : plus);
        } else if (ends & ADD_SHIFT)
            sum[v] = v_add(sum[v], shift);
        if (ends & TO_WEIGHT)
            sum[v] = weight_from_lse(sum[v], lse, factor);
        else if (ends & TIMES_FACTOR)
            sum[v] = v_mul(sum[v], factor);
        if (ends & TO_GRAD) {
            const vf weight = load_some(f->weight + i * c_stride + c + v * VL, tail);
            sum[v] = score_grad(weight, sum[v], row_dot);
        }
        store_some(C + v * VL, sum[v], tail);
        max = v_max(sum[v], max);
    }
    if (lanes == NULL) return;
    if (tail == 0)
        v_store(lanes, max);
    else if (tail == VL)
        v_store(lanes, v_max(sum[0], v_load(lanes)));
    else
        for (int64_t k = 0; k < tail; k++)
            if (C[k] > lanes[0]) lanes[0] = C[k];
}

LOCUS_INLINE void sum_products(vf sum[GEMM_ROWS][GEMM_VECTORS], const float *A, int64_t a_stride,
                               int64_t a_column, const float *B, int64_t b_stride, int64_t inner,
                               int64_t tail, const int rows, const int vectors)
{
    for (int64_t j = 0; j < inner; j++) {
        LOCUS_UNINITIALIZED vf b[GEMM_VECTORS];
        for (int v = 0; v < vectors; v++) b[v] = load_some(B + j * b_stride + v * VL, tail);
        for (int i = 0; i < rows; i++) {
            const vf a = v_set1(A[i * a_stride + j * a_column]);
            for (int v = 0; v < vectors; v++) sum[i][v] = v_fma(a, b[v], sum[i][v]);
        }
    }
}

/* The same from row `row` and column `column` on. */
LOCUS_INLINE product_of product_at(product_of p, int64_t row, int64_t column)
{
    p.c += row * p.c_stride + column;
    p.a += row * p.a_stride;
    p.b += column;
    if (p.rescale != NULL) p.rescale += row;
    return p;
}

/* C and rescale of the tile. */
LOCUS_INLINE void start_sums(vf sum[GEMM_ROWS][GEMM_VECTORS], const product_of *p, const float *C,
                             const float *rescale, int64_t tail, const int rows, const int vectors)
{
#define EACH_SUM                                                                                   \
    for (int i = 0; i < rows; i++)                                                                 \
        for (int v = 0; v < vectors; v++)
#define BEFORE load_some(C + i * p->c_stride + v * VL, tail)
    if (!p->accumulate)
        EACH_SUM sum[i][v] = v_set1(0.0f);
    else if (rescale == NULL)
        EACH_SUM sum[i][v] = BEFORE;
    else
        EACH_SUM sum[i][v] = v_mul(BEFORE, v_set1(rescale[i]));
#undef BEFORE
#undef EACH_SUM
}

/* ---- whole register tiles ---- */

LOCUS_INLINE void whole_tile(product_of p, finish f, const int vectors, const int ends)
{
    LOCUS_UNINITIALIZED vf sum[GEMM_ROWS][GEMM_VECTORS];
    start_sums(sum, &p, p.c, p.rescale, 0, GEMM_ROWS, vectors);
    sum_products(sum, p.a, p.a_stride, p.a_column, p.b, p.b_stride, p.inner, 0, GEMM_ROWS, vectors);
    if (ends & ADD_ALSO)
        sum_products(sum, f.also_a, f.also_a_stride, 1, f.also_b, p.b_stride, p.inner, 0, GEMM_ROWS,
                     vectors);
    LOCUS_UNROLL
    for (int i = 0; i < GEMM_ROWS; i++)
        finish_sums(p.c + i * p.c_stride, sum[i], p.c_stride, &f, i, 0, 0, vectors, ends);
}

/* ---- the rest ---- */

LOCUS_INLINE void finish_rest(const product_of *p, const finish *f, int64_t row, int64_t column,
                              vf *sums, int64_t tail, int rows, int vectors, const int ends)
{
    float *C = p->c + row * p->c_stride + column;
    for (int64_t i = row; i < row + rows; i++, C += p->c_stride, sums += vectors)
        finish_sums(C, sums, p->c_stride, f, i, column, tail, vectors, ends);
}

LOCUS_INLINE void rest_tile(const product_of *p, const finish *f, int64_t row, int64_t column,
                            int64_t tail, const int rows, const int vectors)
{
    LOCUS_UNINITIALIZED vf sum[GEMM_ROWS][GEMM_VECTORS];
    float *C = p->c + row * p->c_stride + column;
    start_sums(sum, p, C, p->rescale != NULL ? p->rescale + row : NULL, tail, rows, vectors);
    sum_products(sum, p->a + row * p->a_stride, p->a_stride, p->a_column, p->b + column,
                 p->b_stride, p->inner, tail, rows, vectors);
    if (f->also_a != NULL)
        sum_products(sum, f->also_a + row * f->also_a_stride, f->also_a_stride, 1,
                     f->also_b + column, p->b_stride, p->inner, tail, rows, vectors);
    if (f->rest == NULL) {
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++)
                store_some(C + i * p->c_stride + v * VL, sum[i][v], tail);
        return;
    }
    LOCUS_UNINITIALIZED vf sums[GEMM_ROWS * GEMM_VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) sums[i * vectors + v] = sum[i][v];
    f->rest(p, f, row, column, sums, tail, rows, vectors);
}

/* Lanes of a single vector where `left` columns are left, in a form from which the compiler sees
 * that they are not 0: whole vectors go the way of tails, so that it is compiled once. */
LOCUS_INLINE int64_t edge_lanes(int64_t left)
{
    return (int64_t)((uint64_t)(left < VL ? left - 1 : VL - 1) % VL) + 1;
}

/* From column c on. Parts of a register tile are compiled too, which single vectors would not fill
 * with sums. */
#define REST_OF_ROWS(name, rows)                                                                   \
    static LOCUS_NOINLINE void name(const product_of *p, const finish *f, int64_t row, int64_t c,  \
                                    int64_t columns)                                               \
    {                                                                                              \
        for (; rows < GEMM_ROWS && c + GEMM_VECTORS * VL <= columns; c += GEMM_VECTORS * VL)       \
            rest_tile(p, f, row, c, 0, rows, GEMM_VECTORS);                                        \
        if (c + (GEMM_VECTORS - 1) * VL <= columns) {                                              \
            rest_tile(p, f, row, c, 0, rows, GEMM_VECTORS - 1);                                    \
            c += (GEMM_VECTORS - 1) * VL;                                                          \
        } else if (c + GEMM_VECTORS / 2 * VL <= columns) {                                         \
            rest_tile(p, f, row, c, 0, rows, GEMM_VECTORS / 2);                                    \
            c += GEMM_VECTORS / 2 * VL;                                                            \
        }                                                                                          \
        for (; c < columns; c += VL) rest_tile(p, f, row, c, edge_lanes(columns - c), rows, 1);    \
    }
REST_OF_ROWS(rest_of_1, 1)
REST_OF_ROWS(rest_of_4, 4)
#if GEMM_ROWS > 4
REST_OF_ROWS(rest_of_6, 6)
#endif
#undef REST_OF_ROWS

/* Of the rows that are left, how many make the next register tile: one or two alone would wait for
 * their own sums, so they share with the tile before. */
LOCUS_INLINE int64_t tile_rows(int64_t left)
{
    if (left > GEMM_ROWS + 2 || left == GEMM_ROWS) return GEMM_ROWS;
    return left >= 4 ? 4 : 1;
}

LOCUS_INLINE void rest_of_rows(const product_of *p, const finish *f, int64_t row, int64_t rows,
                               int64_t column, int64_t columns)
{
    switch (rows) {
    case 1: rest_of_1(p, f, row, column, columns); break;
    case 4: rest_of_4(p, f, row, column, columns); break;
#if GEMM_ROWS > 4
    default: rest_of_6(p, f, row, column, columns); break;
#endif
    }
}

/* ---- all rows and columns ---- */

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

/* All rows, a register tile of them at a time. The rest reads a copy of the operands, so that p can
 * stay in registers. */
LOCUS_INLINE void all_rows(product_of p, const finish *f, int64_t rows, int64_t columns,
                           fetch *prefetch, const wanted *w, const int ends)
{
    const product_of rest = p;
    for (int64_t i = 0, count; i < rows; i += count) {
        count = tile_rows(rows - i);
        const column_range some = wanted_columns(w, i, count, columns);
        if (prefetch != NULL) {
            fetch_some(&prefetch[0]);
            fetch_some(&prefetch[1]);
        }
        int64_t c = some.from;
#define WHOLE(vectors)                                                                             \
    whole_tile(product_at(p, i, c), finish_at(f, i, c, p.c_stride, ends), vectors, ends)
        if (count == GEMM_ROWS)
            for (; c + GEMM_VECTORS * VL <= some.to; c += GEMM_VECTORS * VL) WHOLE(GEMM_VECTORS);
        if (count == GEMM_ROWS && ends == 0) { /* strips have many of these */
            if (c + (GEMM_VECTORS - 1) * VL <= some.to) {
                WHOLE(GEMM_VECTORS - 1);
                c += (GEMM_VECTORS - 1) * VL;
            } else if (c + GEMM_VECTORS / 2 * VL <= some.to) {
                WHOLE(GEMM_VECTORS / 2);
                c += GEMM_VECTORS / 2 * VL;
            }
        }
#undef WHOLE
        if (c < some.to) rest_of_rows(&rest, f, i, count, c, some.to);
    }
}

static FINISH_REST(times_factor)
{
    finish_rest(p, f, row, column, sums, tail, rows, vectors, TIMES_FACTOR);
}

/* Every gemm; factor NULL: the sums as they are. */
static LOCUS_NOINLINE void multiply(const product_of *p, int64_t rows, int64_t columns,
                                    const float *factor, fetch *prefetch)
{
    LOCUS_UNINITIALIZED finish f;
    f.also_a = NULL;
    f.factor = factor;
    f.rest = factor != NULL ? times_factor : NULL;
    if (factor != NULL)
        all_rows(*p, &f, rows, columns, prefetch, NULL, TIMES_FACTOR);
    else
        all_rows(*p, &f, rows, columns, NULL, NULL, 0);
}

static LOCUS_GEMM(gemm)
{
    const product_of p = {C, c_stride, A, a_stride, a_column, B, b_stride, inner, accumulate, NULL};
    multiply(&p, rows, columns, NULL, NULL);
}

static LOCUS_GEMM_RESCALE(gemm_rescale)
{
    const product_of p = {C, c_stride, A, a_stride, 1, B, b_stride, inner, 1, rescale};
    multiply(&p, rows, columns, NULL, NULL);
}

static LOCUS_GEMM_FACTOR(gemm_factor)
{
    const product_of p = {C, c_stride, A, a_stride, 1, B, b_stride, inner, 0, NULL};
    const int64_t tiles = rows / GEMM_ROWS;
    fetch f[2] = {fetch_begin(prefetch[0], tiles), fetch_begin(prefetch[1], tiles)};
    multiply(&p, rows, columns, factor, f);
}

/* A panel is the transpose of LOCUS_PANEL rows: [width][LOCUS_PANEL]. */
LOCUS_INLINE void panel_products(const locus_product_tile *t, finish_rest_fn rest, const int ends)
{
    const finish all = {t->also_a,      t->also_panels, t->also_a_stride, t->plus,
                        t->plus_stride, t->shift,       t->max_lanes,     t->lse,
                        t->factor,      t->weight,      t->row_dot,       rest};
    const int chooses = (ends & ~(ADD_ALSO | ADD_PLUS | ADD_SHIFT)) == 0 && t->from != NULL;
    const int64_t kept = ends & KEEP_MAX && !t->max_so_far ? t->rows * LOCUS_LANES : 0;
    for (int64_t i = 0; i < kept; i += VL) v_store(t->max_lanes + i, v_set1(-INFINITY));
    const int64_t tiles = t->rows / GEMM_ROWS * ((t->columns + LOCUS_PANEL - 1) / LOCUS_PANEL);
    fetch some[2] = {fetch_begin(t->prefetch[0], tiles), fetch_begin(t->prefetch[1], tiles)};
    for (int64_t c = 0; c < t->columns; c += LOCUS_PANEL) {
        const int64_t count = t->columns - c < LOCUS_PANEL ? t->columns - c : LOCUS_PANEL;
        const wanted w = {t->from, t->to, t->before + c};
        const int64_t panel = locus_panel_at(c, t->inner);
        const product_of p = {t->c + c,          t->c_stride, t->a,     t->a_stride, 1,
                              t->panels + panel, LOCUS_PANEL, t->inner, 0,           NULL};
        finish f = finish_at(&all, 0, c, t->c_stride, ends);
        if (ends & ADD_ALSO) f.also_b = t->also_panels + panel;
        all_rows(p, &f, t->rows, count, some, chooses ? &w : NULL, ends);
    }
}

/* Each way is a function of its own: compiled without the others' tests, and small enough that
 * the compiler keeps its pointers in registers. */
#define PRODUCT_WAY(name, ends)                                                                    \
    static FINISH_REST(name##_rest)                                                                \
    {                                                                                              \
        finish_rest(p, f, row, column, sums, tail, rows, vectors, ends);                           \
    }                                                                                              \
    static LOCUS_NOINLINE LOCUS_PRODUCT(name)                                                      \
    {                                                                                              \
        panel_products(t, (ends) == 0 ? NULL : name##_rest, ends);                                 \
    }
#define PRODUCT_WAYS(name, ends)                                                                   \
    PRODUCT_WAY(name, ends)                                                                        \
    PRODUCT_WAY(name##_plus, (ends) | ADD_PLUS)                                                    \
    PRODUCT_WAY(name##_shift, (ends) | ADD_SHIFT)                                                  \
    PRODUCT_WAY(name##_both, (ends) | ADD_PLUS | ADD_SHIFT)                                        \
    static const locus_product_fn name##_ways[4] = {name, name##_plus, name##_shift, name##_both};
PRODUCT_WAYS(product_sum, 0)
PRODUCT_WAYS(product_max, KEEP_MAX)
PRODUCT_WAYS(product_weight, TO_WEIGHT)
PRODUCT_WAY(product_grad, TO_GRAD)
PRODUCT_WAY(product_grad_plus, TO_GRAD | ADD_PLUS)
PRODUCT_WAY(product_sum_also, ADD_ALSO | ADD_PLUS)
PRODUCT_WAY(product_max_also, ADD_ALSO | ADD_PLUS | KEEP_MAX)
PRODUCT_WAY(product_weight_also, ADD_ALSO | ADD_PLUS | TO_WEIGHT)
#undef PRODUCT_WAYS
#undef PRODUCT_WAY

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
    LOCUS_UNINITIALIZED vf block[VL];
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

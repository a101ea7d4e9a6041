/* SPDX-License-Identifier: Apache-2.0 */
/* Linear maps: the register tile of gemm over blocks of the inner index. A block of B, which
 * is LOCUS_INNER_BLOCK x LOCUS_PANEL, stays in the second cache while all rows go by, and the
 * next one is prefetched meanwhile. A and B come from there in time without prefetching: a
 * processor that looks a hundred cycles ahead asks early enough. */

/* ---- activations ---- */

/* x / (1 + e^-z), z of the sign of x: neither factor overflows, and -inf gives 0. */
static inline vf gate(vf x, vf z)
{
    const vf zero = v_set1(0.0f);
    const vf e = v_exp(v_sub(zero, v_max(v_sub(zero, z), z)));
    const vf below = v_max(v_set1(-1e4f), v_sub(zero, v_max(zero, v_sub(zero, x))));
    return v_div(v_add(v_max(zero, x), v_mul(below, e)), v_add(v_set1(1.0f), e));
}

/* x Phi(x) = max(0, x) - t q(t), t = |x|, q = erfc(t / sqrt 2) / 2 = e^(-t^2 / 2) r(t), where
 * r is a minimax polynomial in 1 / (1 + 0.3 t), relative error 4e-7 up to t = 14. */
static inline vf gelu(vf x)
{
    const vf zero = v_set1(0.0f), one = v_set1(1.0f);
    const vf t = v_sub(zero, v_max(v_set1(-1e4f), v_sub(zero, v_max(v_sub(zero, x), x))));
    const vf w = v_div(one, v_fma(t, v_set1(0.3f), one));
    vf r = v_set1(3.56745683e-2f);
    r = v_fma(r, w, v_set1(-1.57201841e-1f));
    r = v_fma(r, w, v_set1(2.06350729e-1f));
    r = v_fma(r, w, v_set1(-5.36805578e-2f));
    r = v_fma(r, w, v_set1(1.28559768e-1f));
    r = v_fma(r, w, v_set1(9.99140963e-2f));
    r = v_fma(r, w, v_set1(1.20753855e-1f));
    r = v_fma(r, w, v_set1(1.19629309e-1f));
    const vf e = v_exp(v_mul(v_mul(t, t), v_set1(-0.5f)));
    return v_sub(v_max(zero, x), v_mul(v_mul(t, e), v_mul(r, w)));
}

static inline vf activate(vf x, locus_activation activation)
{
    switch (activation) {
    case LOCUS_RELU: return v_max(v_set1(0.0f), x);
    case LOCUS_GELU: return gelu(x);
    case LOCUS_GELU_TANH: {
        const vf cubic = v_fma(v_mul(x, x), v_set1(0.0713548163f), v_set1(1.59576912f));
        return gate(x, v_mul(x, cubic));
    }
    case LOCUS_SILU: return gate(x, x);
    case LOCUS_IDENTITY: break;
    default: return v_activate(x, activation);
    }
    return x;
}

/* What becomes of one row of sums. */
static inline void finish_row(float *c, const float *residual, int64_t columns,
                              locus_activation activation)
{
    for (int64_t at = 0; at < columns; at += VL) {
        const int64_t tail = columns - at < VL ? columns - at : 0;
        vf x = activate(load_some(c + at, tail), activation);
        if (residual != NULL) x = v_add(x, load_some(residual + at, tail));
        store_some(c + at, x, tail);
    }
}

/* ---- products ---- */

/* A step is as many inner indices as floats in a cache line. */
enum { LINEAR_STEP = 16 };

/* What comes next: `count` rows of B, `share` of them with every step. They are prefetched or,
 * block not NULL, copied to it. Rows to be copied are prefetched only shortly before: they may
 * be a power of two apart and push one another out of the cache. */
typedef struct ahead {
    const float *at;
    int64_t row, count, columns, share;
    float *block, *to;
} ahead;
enum { LINEAR_SOON = 32 };

LOCUS_INLINE void prefetch_row(const float *row)
{
    for (int c = 0; c < LOCUS_PANEL; c += LINEAR_STEP) v_prefetch_far(row + c);
}

LOCUS_INLINE void copy_row(ahead *next)
{
    if (next->count > LINEAR_SOON) prefetch_row(next->at + LINEAR_SOON * next->row);
    for (int64_t c = 0; c < next->columns; c += VL) {
        const int64_t tail = next->columns - c < VL ? next->columns - c : 0;
        store_some(next->to + c, load_some(next->at + c, tail), tail);
    }
    next->to += LOCUS_PANEL;
}

LOCUS_INLINE void bring_share(ahead *next)
{
    for (int64_t n = 0; n < next->share && next->count > 0; n++, next->count--) {
        if (next->block == NULL)
            prefetch_row(next->at);
        else
            copy_row(next);
        next->at += next->row;
    }
}

/* What a block of all rows has in common. */
typedef struct inner_block {
    const locus_linear_tile *t;
    const float *a; /* rows as in t */
    const float *b; /* rows LOCUS_PANEL apart */
    int64_t inner;
    int64_t column, columns; /* the panel of C */
    const float *start;      /* what the sums are added to, [rows][columns]; NULL: 0 */
    int64_t start_row;
    int finish; /* the sums are complete with this block */
    ahead next;
} inner_block;

/* One inner index of a full register tile. */
LOCUS_INLINE void linear_index(vf sum[GEMM_ROWS][GEMM_VECTORS], const float *A, int64_t a_row,
                               const float *B, const int rows)
{
    vf b[GEMM_VECTORS];
    for (int v = 0; v < GEMM_VECTORS; v++) b[v] = v_load(B + v * VL);
    for (int i = 0; i < rows; i++) {
        const vf a = v_set1(A[i * a_row]);
        for (int v = 0; v < GEMM_VECTORS; v++) sum[i][v] = v_fma(a, b[v], sum[i][v]);
    }
}

/* The chains of a full register tile. Its C is prefetched a row with every step: all at once
 * would fill the queue of misses, and A and B wait behind it. */
LOCUS_INLINE void linear_tile(inner_block *k, float *C, const float *start, const float *A,
                              const float *B, const int rows, const int turned)
{
    const int64_t c_row = k->t->c_row, start_row = k->start_row, inner = k->inner;
    const int64_t a_row = turned ? 1 : k->t->a_row, a_column = turned ? k->t->a_column : 1;
    vf sum[GEMM_ROWS][GEMM_VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < GEMM_VECTORS; v++) sum[i][v] = v_set1(0.0f);
    const float *near = C;
    int64_t j = 0;
    for (; j + LINEAR_STEP <= inner; j += LINEAR_STEP) {
        bring_share(&k->next);
        if (j < rows * LINEAR_STEP)
            for (int c = 0; c < GEMM_VECTORS * VL; c += LINEAR_STEP) v_prefetch_far(near + c);
        near += c_row;
        for (int u = 0; u < LINEAR_STEP; u += 4, A += 4 * a_column, B += 4 * LOCUS_PANEL)
            for (int n = 0; n < 4; n++)
                linear_index(sum, A + n * a_column, a_row, B + n * LOCUS_PANEL, rows);
    }
    for (; j < inner; j++, A += a_column, B += LOCUS_PANEL) linear_index(sum, A, a_row, B, rows);
    if (start != NULL)
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < GEMM_VECTORS; v++)
                sum[i][v] = v_add(sum[i][v], v_load(start + i * start_row + v * VL));
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < GEMM_VECTORS; v++) v_store(C + i * c_row + v * VL, sum[i][v]);
}

/* The sums of rows i .. i + rows - 1 are complete and still in the first cache. */
static void finish_band(const inner_block *k, int64_t i, int64_t rows)
{
    const locus_linear_tile *t = k->t;
    for (const int64_t past = i + rows; i < past; i++)
        finish_row(t->c + i * t->c_row + k->column,
                   t->residual != NULL ? t->residual + i * t->residual_row + k->column : NULL,
                   k->columns, t->activation);
}

/* Rows i .. i + rows - 1 over the panel. */
LOCUS_INLINE void linear_band(inner_block *k, int64_t i, const int rows, const int turned)
{
    const locus_linear_tile *t = k->t;
    const float *a = k->a + i * t->a_row;
    const float *start = k->start != NULL ? k->start + i * k->start_row : NULL;
    float *C = t->c + i * t->c_row + k->column;
    int64_t c = 0;
#define AT(p) ((p) != NULL ? (p) + c : NULL)
    for (; c + GEMM_VECTORS * VL <= k->columns; c += GEMM_VECTORS * VL)
        linear_tile(k, C + c, AT(start), a, k->b + c, rows, turned);
    for (; c < k->columns; c += VL)
        tile_product(C + c, t->c_row, a, t->a_row, t->a_column, k->b + c, LOCUS_PANEL, k->inner,
                     NULL, NULL, (finish){.plus = AT(start), .plus_row = k->start_row},
                     k->columns - c < VL ? k->columns - c : 0, rows, 1);
#undef AT
    if (k->finish) finish_band(k, i, rows);
}

LOCUS_INLINE void linear_bands(inner_block *k, const int turned)
{
    const int64_t rows = k->t->rows;
    int64_t i = 0;
#define BAND(count) linear_band(k, i, count, turned)
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

/* Two functions, each compiled for its stride of 1. */
static LOCUS_NOINLINE void bands_as_is(inner_block *k) { linear_bands(k, 0); }
static LOCUS_NOINLINE void bands_turned(inner_block *k) { linear_bands(k, 1); }

/* Where the inner index `first` of the panel of column c begins. */
static inline const float *block_at(const locus_linear_tile *t, int64_t c, int64_t first)
{
    if (t->panels == NULL) return t->b + first * t->b_row + c;
    return t->panels + locus_panel_at(c, t->width) + (t->first + first) * LOCUS_PANEL;
}

/* The block at `first` of the panel of `column`, to be brought while `steps` go by. Beyond the
 * last column there is nothing to copy; panels may go on. */
static inline ahead ahead_at(const locus_linear_tile *t, int64_t column, int64_t first,
                             int64_t steps)
{
    ahead next = {.row = LOCUS_PANEL};
    if (t->panels == NULL && (t->copy == NULL || column >= t->columns)) return next;
    next.at = block_at(t, column, first);
    next.count = t->inner - first < LOCUS_INNER_BLOCK ? t->inner - first : LOCUS_INNER_BLOCK;
    next.share = (next.count + steps - 1) / steps;
    if (t->panels != NULL) return next;
    next.row = t->b_row;
    next.columns = t->columns - column < LOCUS_PANEL ? t->columns - column : LOCUS_PANEL;
    next.to = next.block = t->copy;
    return next;
}

/* The block after k, of this panel or of the next; copied to where k is not. */
static inline ahead ahead_of(const inner_block *k, int64_t past)
{
    const locus_linear_tile *t = k->t;
    const int64_t bands = (t->rows + GEMM_ROWS - 1) / GEMM_ROWS;
    const int64_t tiles = bands * (LOCUS_PANEL / (GEMM_VECTORS * VL));
    const int64_t steps = tiles * (k->inner / LINEAR_STEP) + 1;
    ahead next = past < t->inner ? ahead_at(t, k->column, past, steps)
                                 : ahead_at(t, k->column + LOCUS_PANEL, 0, steps);
    if (next.block != NULL && k->b == t->copy)
        next.to = next.block = t->copy + LOCUS_INNER_BLOCK * LOCUS_PANEL;
    return next;
}

/* Copy what is left of a block. */
static const float *arrived(ahead *next)
{
    next->share = next->count;
    bring_share(next);
    return next->block;
}

static inline void linear_panel(const locus_linear_tile *t, int64_t column, int64_t columns,
                                ahead *next)
{
    const int plain = t->residual == NULL && t->activation == LOCUS_IDENTITY;
    int64_t first = 0;
    do { /* once even where inner is 0 */
        const int64_t left = t->inner - first;
        inner_block k = {.t = t, .column = column, .columns = columns};
        k.inner = left < LOCUS_INNER_BLOCK ? left : LOCUS_INNER_BLOCK;
        k.a = t->a + first * t->a_column;
        k.b = next->block != NULL ? arrived(next) : block_at(t, column, first);
        if (t->resume || first > 0) {
            k.start = t->c + column;
            k.start_row = t->c_row;
        } else if (t->bias != NULL) {
            k.start = t->bias + column;
        }
        k.finish = left == k.inner && !plain;
        k.next = ahead_of(&k, first + k.inner);
        (t->a_column == 1 ? bands_as_is : bands_turned)(&k);
        *next = k.next;
        first += k.inner;
    } while (first < t->inner);
}

static LOCUS_LINEAR(linear)
{
    if (t->rows == 0) return;
    ahead next = ahead_at(t, 0, 0, 1);
    for (int64_t c = 0; c < t->columns; c += LOCUS_PANEL)
        linear_panel(t, c, t->columns - c < LOCUS_PANEL ? t->columns - c : LOCUS_PANEL, &next);
}

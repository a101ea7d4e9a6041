/* SPDX-License-Identifier: Apache-2.0 */
/* Products with rows in place, which come from memory. How many of them are on their way at
 * once is decided by how many the processor sees prefetch of the one it waits for: so rows are
 * read one after another, by few instructions, and the widths that heads have are known to the
 * compiler (`vectors` of a row; 0: any width). */

/* Lanes whose sum is a . b. */
LOCUS_INLINE vf row_products(const float *a, const void *b, int64_t width, const int vectors,
                             const locus_dtype type)
{
    lane_sums sum = lanes_zero();
    int64_t j = 0;
    LOCUS_UNROLL
    for (int v = 0; v < vectors; v++)
        sum.part[v % PARTS] =
            v_fma(v_load(a + v * VL), load_numbers(number_at(b, v * VL, type), 0, type),
                  sum.part[v % PARTS]);
    if (vectors > 0) return lanes_folded(sum);
    for (; j + LOCUS_LANES <= width; j += LOCUS_LANES) {
        LOCUS_UNROLL
        for (int p = 0; p < PARTS; p++)
            sum.part[p] = v_fma(v_load(a + j + p * VL),
                                load_numbers(number_at(b, j + p * VL, type), 0, type), sum.part[p]);
    }
    LOCUS_UNROLL
    for (int p = 0; j < width && p < PARTS; p++) {
        const int64_t at = j + p * VL, tail = part_tail(width - j, p);
        const vf x = load_part(a + at, tail);
        sum.part[p] =
            v_fma(x, tail < 0 ? x : load_numbers(number_at(b, at, type), tail, type), sum.part[p]);
    }
    return lanes_folded(sum);
}

/* Lane k is the sum of row k, VL floats, for k < count. */
static LOCUS_NOINLINE vf sum_lanes(const float *rows, int64_t count)
{
    LOCUS_UNINITIALIZED vf sum[VL];
    LOCUS_UNROLL
    for (int k = 0; k < VL; k++) sum[k] = k < count ? v_load(rows + k * VL) : v_set1(0.0f);
    return v_sums(sum);
}

enum { FETCH_ROWS = 4 }; /* with so many rows of a product, a share of what is prefetch */

/* The sums of VL right rows against one left row, of a width that the compiler knows; of any width
 * where VL is small. The lanes of all are added up together; each sum runs in the same order,
 * wherever its row stands. */
LOCUS_INLINE vf dot_block(const float *a, const void *right, int64_t row_stride, int64_t inner,
                          const int vectors, const locus_dtype type, fetch *prefetch)
{
    LOCUS_UNINITIALIZED vf sum[VL];
    LOCUS_UNROLL
    for (int k = 0; k < VL; k++) {
        if (k % FETCH_ROWS == 0) fetch_some(prefetch);
        sum[k] = row_products(a, number_at(right, k * row_stride, type), inner, vectors, type);
    }
    return v_sums(sum);
}

/* The same of `count` right rows, VL at most, of any width: one row is compiled, whose lanes wait in
 * memory for the others. */
LOCUS_INLINE vf dot_rows(const float *a, const void *right, int64_t row_stride, int64_t inner,
                         int64_t count, const locus_dtype type, fetch *prefetch)
{
    LOCUS_UNINITIALIZED float rows[VL * VL];
    for (int64_t k = 0; k < count; k++) {
        if (k % FETCH_ROWS == 0) fetch_some(prefetch);
        const void *row = number_at(right, k * row_stride, type);
        v_store(rows + k * VL, row_products(a, row, inner, 0, type));
    }
    return sum_lanes(rows, count);
}

LOCUS_INLINE void dots_of(float *C, int64_t c_stride, const float *A, int64_t a_stride,
                          const void *right, int64_t row_stride, int64_t rows, int64_t inner,
                          int64_t columns, const float *plus, int64_t plus_stride, fetch *prefetch,
                          const int vectors, const locus_dtype type)
{
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        const void *from = number_at(right, c * row_stride, type);
        for (int64_t i = 0; i < rows; i++) {
            const float *left = A + i * a_stride;
            vf score = (vectors > 0 || VL <= FETCH_ROWS) && tail == 0
                           ? dot_block(left, from, row_stride, inner, vectors, type, prefetch)
                           : dot_rows(left, from, row_stride, inner, tail == 0 ? VL : tail, type,
                                      prefetch);
            if (plus != NULL) score = v_add(score, load_some(plus + i * plus_stride + c, tail));
            store_some(C + i * c_stride + c, score, tail);
        }
    }
}

/* One function for each type: together they would be one that no compiler allots registers well. */
#define DOTS_OF(vectors)                                                                           \
    dots_of(C, c_stride, A, a_stride, right, row_stride, rows, inner, columns, plus, plus_stride,  \
            &f, vectors, TYPE)
#define DOTS(name)                                                                                 \
    static LOCUS_NOINLINE LOCUS_DOTS(name)                                                         \
    {                                                                                              \
        (void)type;                                                                                \
        fetch f = fetch_begin(prefetch, (columns + VL - 1) / VL * rows * (VL / FETCH_ROWS));       \
        if (inner == 4 * VL)                                                                       \
            DOTS_OF(4);                                                                            \
        else if (inner == 8 * VL)                                                                  \
            DOTS_OF(8);                                                                            \
        else                                                                                       \
            DOTS_OF(0);                                                                            \
    }
#define TYPE LOCUS_F32
DOTS(dots_f32)
#undef TYPE
#define TYPE LOCUS_F16
DOTS(dots_f16)
#undef TYPE
#define TYPE LOCUS_BF16
DOTS(dots_bf16)
#undef TYPE
#undef DOTS
#undef DOTS_OF

static LOCUS_DOTS(dots)
{
    const locus_dots_fn of_type = type == LOCUS_F32   ? dots_f32
                                  : type == LOCUS_F16 ? dots_f16
                                                      : dots_bf16;
    of_type(C, c_stride, A, a_stride, right, row_stride, type, rows, inner, columns, plus,
            plus_stride, prefetch);
}

/* (-x, x, -x, x, ...) */
LOCUS_INLINE vf alternating(float x)
{
    float lanes[VL];
    for (int k = 0; k < VL; k++) lanes[k] = k % 2 == 0 ? -x : x;
    return v_load(lanes);
}

/* Lanes whose sum is a . b turned: in the order of row_products, each product as in `turn`. */
LOCUS_INLINE vf turned_halves(const float *a, const void *b, const float *turn, int64_t pairs,
                              const locus_dtype type)
{
    lane_sums sum = lanes_zero();
    for (int64_t first = 0; first < pairs; first += LOCUS_LANES) {
        LOCUS_UNROLL
        for (int p = 0; p < PARTS; p++) {
            const int64_t t = first + p * VL;
            const vf x = load_numbers(number_at(b, t, type), 0, type);
            const vf y = load_numbers(number_at(b, pairs + t, type), 0, type);
            const vf cosine = v_load(turn + t), sine = v_load(turn + pairs + t);
            const vf turned = v_sub(v_mul(x, cosine), v_mul(y, sine));
            sum.part[p] = v_fma(v_load(a + t), turned, sum.part[p]);
        }
    }
    for (int64_t first = 0; first < pairs; first += LOCUS_LANES) {
        LOCUS_UNROLL
        for (int p = 0; p < PARTS; p++) {
            const int64_t t = first + p * VL;
            const vf x = load_numbers(number_at(b, t, type), 0, type);
            const vf y = load_numbers(number_at(b, pairs + t, type), 0, type);
            const vf cosine = v_load(turn + t), sine = v_load(turn + pairs + t);
            const vf turned = v_add(v_mul(y, cosine), v_mul(x, sine));
            sum.part[p] = v_fma(v_load(a + pairs + t), turned, sum.part[p]);
        }
    }
    return lanes_folded(sum);
}

LOCUS_INLINE vf turned_neighbours(const float *a, const void *b, const float *turn, int64_t pairs,
                                  vf sign, const locus_dtype type)
{
    lane_sums sum = lanes_zero();
    for (int64_t first = 0; first < pairs; first += LOCUS_LANES / 2) {
        LOCUS_UNROLL
        for (int p = 0; p < PARTS; p++) {
            const int64_t t = first + p * (VL / 2);
            const vf x = load_numbers(number_at(b, 2 * t, type), 0, type);
            const vf sine = v_mul(v_twice(turn + pairs + t), sign);
            const vf turned = v_add(v_mul(x, v_twice(turn + t)), v_mul(v_swap_pairs(x), sine));
            sum.part[p] = v_fma(v_load(a + 2 * t), turned, sum.part[p]);
        }
    }
    return lanes_folded(sum);
}

LOCUS_INLINE vf turned_products(const float *a, const void *row, const float *turn, int64_t pairs,
                                const int interleaved, const locus_dtype type)
{
    return interleaved ? turned_neighbours(a, row, turn, pairs, alternating(1.0f), type)
                       : turned_halves(a, row, turn, pairs, type);
}

/* As dot_block, for a number of pairs that the compiler knows. */
LOCUS_INLINE vf turn_block(const float *a, const void *right, int64_t row_stride, const float *turn,
                           const int64_t pairs, fetch *prefetch, const int interleaved,
                           const locus_dtype type)
{
    LOCUS_UNINITIALIZED vf sum[VL];
    LOCUS_UNROLL
    for (int k = 0; k < VL; k++) {
        if (k % FETCH_ROWS == 0) fetch_some(prefetch);
        sum[k] = turned_products(a, number_at(right, k * row_stride, type), turn + k * 2 * pairs,
                                 pairs, interleaved, type);
    }
    return v_sums(sum);
}

/* As dot_rows. */
LOCUS_INLINE vf turn_lanes(const float *a, const void *right, int64_t row_stride, const float *turn,
                           int64_t pairs, int64_t count, fetch *prefetch, const int interleaved,
                           const locus_dtype type)
{
    LOCUS_UNINITIALIZED float rows[VL * VL];
    for (int64_t k = 0; k < count; k++) {
        if (k % FETCH_ROWS == 0) fetch_some(prefetch);
        v_store(rows + k * VL, turned_products(a, number_at(right, k * row_stride, type),
                                               turn + k * 2 * pairs, pairs, interleaved, type));
    }
    return sum_lanes(rows, count);
}

/* The whole blocks of rows of 2 VL pairs; returns the columns they make. */
LOCUS_INLINE int64_t turn_blocks(float *C, const float *a, const void *right, int64_t row_stride,
                                 const float *turn, int64_t columns, const float *plus,
                                 fetch *prefetch, const int interleaved, const locus_dtype type)
{
    int64_t c = 0;
    for (; c + VL <= columns; c += VL) {
        vf score = turn_block(a, number_at(right, c * row_stride, type), row_stride,
                              turn + c * 4 * VL, 2 * VL, prefetch, interleaved, type);
        if (plus != NULL) score = v_add(score, v_load(plus + c));
        v_store(C + c, score);
    }
    return c;
}

/* What is left, from column c on. */
LOCUS_INLINE void turn_rest(float *C, const float *a, const void *right, int64_t row_stride,
                            const float *turn, int64_t pairs, int64_t c, int64_t columns,
                            const float *plus, fetch *prefetch, const int interleaved,
                            const locus_dtype type)
{
    for (; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        vf score =
            turn_lanes(a, number_at(right, c * row_stride, type), row_stride, turn + c * 2 * pairs,
                       pairs, tail == 0 ? VL : tail, prefetch, interleaved, type);
        if (plus != NULL) score = v_add(score, load_some(plus + c, tail));
        store_some(C + c, score, tail);
    }
}

#define TURN_DOTS(name)                                                                            \
    static LOCUS_NOINLINE int64_t name##_blocks(float *C, const float *a, const void *right,       \
                                                int64_t row_stride, const float *turn,             \
                                                int interleaved, int64_t columns,                  \
                                                const float *plus, fetch *f)                       \
    {                                                                                              \
        return interleaved                                                                         \
                   ? turn_blocks(C, a, right, row_stride, turn, columns, plus, f, 1, TYPE)         \
                   : turn_blocks(C, a, right, row_stride, turn, columns, plus, f, 0, TYPE);        \
    }                                                                                              \
    static LOCUS_NOINLINE LOCUS_TURN_DOTS(name)                                                    \
    {                                                                                              \
        (void)type;                                                                                \
        fetch f = fetch_begin(prefetch, (columns + FETCH_ROWS - 1) / FETCH_ROWS);                  \
        int64_t c = 0;                                                                             \
        if (pairs == 2 * VL)                                                                       \
            c = name##_blocks(C, a, right, row_stride, turn, interleaved, columns, plus, &f);      \
        if (interleaved)                                                                           \
            turn_rest(C, a, right, row_stride, turn, pairs, c, columns, plus, &f, 1, TYPE);        \
        else                                                                                       \
            turn_rest(C, a, right, row_stride, turn, pairs, c, columns, plus, &f, 0, TYPE);        \
    }
#define TYPE LOCUS_F32
TURN_DOTS(turn_dots_f32)
#undef TYPE
#define TYPE LOCUS_F16
TURN_DOTS(turn_dots_f16)
#undef TYPE
#define TYPE LOCUS_BF16
TURN_DOTS(turn_dots_bf16)
#undef TYPE
#undef TURN_DOTS

static LOCUS_TURN_DOTS(turn_dots)
{
    const locus_turn_dots_fn of_type = type == LOCUS_F32   ? turn_dots_f32
                                       : type == LOCUS_F16 ? turn_dots_f16
                                                           : turn_dots_bf16;
    of_type(C, a, right, row_stride, type, turn, pairs, interleaved, columns, plus, prefetch);
}

/* sum[v] += sum_j a[j] B[j]. */
LOCUS_INLINE void mix_vectors(float *C, const float *a, const void *B, int64_t b_stride,
                              int64_t inner, fetch *prefetch, int64_t tail, const int vectors,
                              const locus_dtype type)
{
    LOCUS_UNINITIALIZED vf sum[GEMM_VECTORS];
    int64_t j = 0;
    for (int v = 0; v < vectors; v++) sum[v] = load_some(C + v * VL, tail);
#define MIX_ROW(row)                                                                               \
    for (int v = 0; v < vectors; v++)                                                              \
    sum[v] = v_fma(v_set1(a[row]),                                                                 \
                   load_numbers(number_at(B, (row)*b_stride + v * VL, type), tail, type), sum[v])
    for (; j + FETCH_ROWS <= inner; j += FETCH_ROWS) {
        fetch_some(prefetch);
        LOCUS_UNROLL
        for (int r = 0; r < FETCH_ROWS; r++) MIX_ROW(j + r);
    }
    for (; j < inner; j++) MIX_ROW(j);
#undef MIX_ROW
    for (int v = 0; v < vectors; v++) store_some(C + v * VL, sum[v], tail);
}

LOCUS_INLINE void mix_row(float *C, const float *a, const void *B, int64_t b_stride, int64_t inner,
                          int64_t columns, fetch *prefetch, const locus_dtype type)
{
    fetch nothing = {0};
    int64_t c = 0;
#define MIX(tail, vectors)                                                                         \
    mix_vectors(C + c, a, number_at(B, c, type), b_stride, inner, c == 0 ? prefetch : &nothing,    \
                tail, vectors, type)
    for (; c + GEMM_VECTORS * VL <= columns; c += GEMM_VECTORS * VL) MIX(0, GEMM_VECTORS);
    for (; c + VL <= columns; c += VL) MIX(0, 1);
    if (c < columns) MIX(columns - c, 1);
#undef MIX
}

static LOCUS_NOINLINE LOCUS_MIX(mix_f32)
{
    enum { BLOCK = 16 };
    const float *right = B;
    const int64_t step = rows == 1 ? FETCH_ROWS : BLOCK;
    fetch f = fetch_begin(prefetch, (inner + step - 1) / step);
    (void)type;
    if (rows == 1) {
        mix_row(C, A, B, b_stride, inner, columns, &f, LOCUS_F32);
        return;
    }
    for (int64_t j = 0; j < inner; j += BLOCK) {
        fetch_some(&f);
        gemm(C, c_stride, A + j, a_stride, 1, right + j * b_stride, b_stride, rows,
             inner - j < BLOCK ? inner - j : BLOCK, columns, 1);
    }
}

static LOCUS_MIX(mix)
{
    if (type == LOCUS_F32) {
        mix_f32(C, c_stride, A, a_stride, B, b_stride, type, rows, inner, columns, prefetch);
        return;
    }
    fetch f = fetch_begin(prefetch, (inner + FETCH_ROWS - 1) / FETCH_ROWS * rows);
    for (int64_t i = 0; i < rows; i++) {
        if (type == LOCUS_F16)
            mix_row(C + i * c_stride, A + i * a_stride, B, b_stride, inner, columns, &f, LOCUS_F16);
        else
            mix_row(C + i * c_stride, A + i * a_stride, B, b_stride, inner, columns, &f,
                    LOCUS_BF16);
    }
}

/* y[c] += factor X_c . table_(index[c]) for VL pairs of rows of `vectors` vectors. */
LOCUS_INLINE void pair_block(float *y, const float *X, int64_t x_stride, const float *table,
                             int64_t table_stride, const int32_t *index, float factor,
                             const int vectors)
{
    LOCUS_UNINITIALIZED vf sum[VL];
    LOCUS_UNROLL
    for (int k = 0; k < VL; k++)
        sum[k] =
            row_products(X + k * x_stride, table + index[k] * table_stride, 0, vectors, LOCUS_F32);
    v_store(y, v_fma(v_sums(sum), v_set1(factor), v_load(y)));
}

static LOCUS_PAIR_DOTS(pair_dots)
{
    int64_t c = 0;
    for (; width == 4 * VL && c + VL <= count; c += VL)
        pair_block(y + c, X + c * x_stride, x_stride, table, table_stride, index + c, factor, 4);
    for (; c < count; c += VL) {
        const int64_t some = count - c < VL ? count - c : VL, tail = some < VL ? some : 0;
        LOCUS_UNINITIALIZED float rows[VL * VL];
        for (int64_t k = 0; k < some; k++)
            v_store(rows + k * VL,
                    row_products(X + (c + k) * x_stride, table + index[c + k] * table_stride, width,
                                 0, LOCUS_F32));
        store_some(y + c, v_fma(sum_lanes(rows, some), v_set1(factor), load_some(y + c, tail)),
                   tail);
    }
}

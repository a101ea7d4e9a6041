/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_KERNELS_KERNELS_H
#define LOCUS_KERNELS_KERNELS_H

/* The contracts of the kernels. A kernel never knows a scheme: it sees rows, tiles
 * and tables. One source per operation (NAME.inc.c), written against the vector
 * vocabulary of vec/<isa>.h and compiled once per isa/<isa>.c into a const table.
 *
 * The tile contract that everything hangs on:
 *     score tile  S[m][n] = products + position tile
 *     streaming softmax over the key tiles in ascending order
 *     out[m] = sum of the tiles' P V
 * Every output element is one chain of operations in ascending order of the inner
 * index, started from its old value, so it does not depend on how rows are grouped
 * into tiles or threads. The extents of a tile are the caller's; rows of a tile are
 * `stride` floats apart, a multiple of LOCUS_LANES. */

#include <locus/tensor.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/linear.h"

/* LOCUS_LANES: no vector is wider; tiles have room for this many floats behind their last column. */

/* Rows of a register tile: products are computed for so many rows at a time, and a caller that
 * leaves out what rows do not need does so by so many. */
#define LOCUS_REGISTER_ROWS 6

/* Right operands of products are packed into panels, whose layout is the kernels' own
 * business. Panels of `count` rows take locus_panel_floats floats, and row `first`, a
 * multiple of LOCUS_PANEL, begins at locus_panel_at. */
#define LOCUS_PANEL 64
static inline int64_t locus_panel_floats(int64_t count, int64_t width)
{
    return (count + LOCUS_PANEL - 1) / LOCUS_PANEL * LOCUS_PANEL * width;
}
static inline int64_t locus_panel_at(int64_t first, int64_t width) { return first * width; }

/* Pack `count` rows of `width` floats, row_stride apart, times factor. */
#define LOCUS_PACK(name)                                                                           \
    void name(float *panels, const float *rows, int64_t row_stride, int64_t count, int64_t width,  \
              float factor)
typedef LOCUS_PACK((*locus_pack_fn));

/* Rows that will be needed soon: a kernel fetches them into the second cache while it computes.
 * Only speed depends on it. */
typedef struct locus_prefetch_rows {
    const float *rows;
    int64_t row_stride, width, count;
} locus_prefetch_rows;

/* s = sum_j A[i][j] row_c[j] + (plus[i][c] + shift[i]) for i < rows, j < inner, c < columns, where
 * row_c are the rows packed in `panels`. At most one of max_lanes, lse and weight is not NULL:
 *     none       C = s
 *     max_lanes  C = s, and max_lanes receives LOCUS_LANES numbers per row, the maximum of which is
 *                that of C[i] (NaN aside)
 *     lse        C = e^(s - lse[i]) factor[i], as softmax_from_lse
 *     weight     C = weight[i][c] (s - row_dot[i]), as softmax_grad; rows c_stride apart
 * The rows `prefetch` are fetched meanwhile, some with every register tile. */
typedef struct locus_product_tile {
    float *c;
    int64_t c_stride;
    const float *a; /* A[i][j] at a[i * a_stride + j] */
    int64_t a_stride;
    const float *panels;
    int64_t rows, inner, columns;
    /* A second A and second rows, of the same extents, whose products are summed behind the first
     * ones; only with `plus`, not with shift or weight. NULL: none. */
    const float *also_a, *also_panels;
    int64_t also_a_stride;
    const float *plus; /* at plus[i * plus_stride + c], plus_stride of any sign; NULL: nothing */
    int64_t plus_stride;
    const float *shift; /* not with weight; NULL: nothing */
    float *max_lanes;
    int max_so_far; /* 1: `max_lanes` holds what the columns before these gave */
    const float *lse, *factor;
    const float *weight, *row_dot;
    /* Of row i the columns from[i] - before .. to[i] - before - 1 alone are wanted, from and to
     * ascending with i; the others hold anything. NULL: all. For sums that nothing more is done
     * with. */
    const int32_t *from, *to;
    int64_t before;
    locus_prefetch_rows prefetch[2];
} locus_product_tile;
#define LOCUS_PRODUCT(name) void name(const locus_product_tile *t)
typedef LOCUS_PRODUCT((*locus_product_fn));

/* C = s for few rows, with the right rows in place, row_stride numbers of `type` (F32, F16, BF16)
 * apart. The sums run in lanes: their bits are not those of `product`, but the same for every type
 * that holds the same numbers. So it is with all kernels that take a type. */
#define LOCUS_DOTS(name)                                                                           \
    void name(float *C, int64_t c_stride, const float *A, int64_t a_stride, const void *right,     \
              int64_t row_stride, locus_dtype type, int64_t rows, int64_t inner, int64_t columns,  \
              const float *plus, int64_t plus_stride, locus_prefetch_rows prefetch)
typedef LOCUS_DOTS((*locus_dots_fn));

/* C[c] = a . (row c turned) + plus[c], with the bits of `turn` and `dots` but without storing
 * the turned row. All columns belong to pairs, which are a multiple of LOCUS_LANES. */
#define LOCUS_TURN_DOTS(name)                                                                      \
    void name(float *C, const float *a, const void *right, int64_t row_stride, locus_dtype type,   \
              const float *turn, int64_t pairs, int interleaved, int64_t columns,                  \
              const float *plus, locus_prefetch_rows prefetch)
typedef LOCUS_TURN_DOTS((*locus_turn_dots_fn));

/* C[i][c] += sum_j A[i][j] B[j][c] for few rows, with the bits of gemm. */
#define LOCUS_MIX(name)                                                                            \
    void name(float *C, int64_t c_stride, const float *A, int64_t a_stride, const void *B,         \
              int64_t b_stride, locus_dtype type, int64_t rows, int64_t inner, int64_t columns,    \
              locus_prefetch_rows prefetch)
typedef LOCUS_MIX((*locus_mix_fn));

/* y[c] += factor X_c . table_(index[c]) for c < count: rows x_stride and table_stride apart, signed. */
#define LOCUS_PAIR_DOTS(name)                                                                      \
    void name(float *y, const float *X, int64_t x_stride, const float *table,                      \
              int64_t table_stride, const int32_t *index, int64_t count, int64_t width,            \
              float factor)
typedef LOCUS_PAIR_DOTS((*locus_pair_dots_fn));

/* C[i][c] = (accumulate ? C[i][c] : 0) + sum_j A[i][j] B[j][c]
 * for i < rows, j < inner, c < columns, j ascending. A is read at
 * A[i * a_stride + j * a_column]: both a matrix and its transpose will do. B and C are
 * row-major with unit column stride. C overlaps nothing. */
#define LOCUS_GEMM(name)                                                                           \
    void name(float *C, int64_t c_stride, const float *A, int64_t a_stride, int64_t a_column,      \
              const float *B, int64_t b_stride, int64_t rows, int64_t inner, int64_t columns,      \
              int accumulate)
typedef LOCUS_GEMM((*locus_gemm_fn));

/* C[i][c] = rescale[i] C[i][c] + sum_j A[i][j] B[j][c], as gemm after a multiplication. */
#define LOCUS_GEMM_RESCALE(name)                                                                   \
    void name(float *C, int64_t c_stride, const float *A, int64_t a_stride, const float *B,        \
              int64_t b_stride, int64_t rows, int64_t inner, int64_t columns,                      \
              const float *rescale)
typedef LOCUS_GEMM_RESCALE((*locus_gemm_rescale_fn));

/* C[i][c] = factor[i] sum_j A[i][j] B[j][c], each sum as gemm makes it. */
#define LOCUS_GEMM_FACTOR(name)                                                                    \
    void name(float *C, int64_t c_stride, const float *A, int64_t a_stride, const float *B,        \
              int64_t b_stride, int64_t rows, int64_t inner, int64_t columns, const float *factor, \
              const locus_prefetch_rows prefetch[2])
typedef LOCUS_GEMM_FACTOR((*locus_gemm_factor_fn));

/* bad[r] = 1 where row r holds a NaN or an infinity, else 0. Returns 1 if any is. */
#define LOCUS_BAD_ROWS(name)                                                                       \
    int name(uint8_t *bad, const void *rows, int64_t row_stride, locus_dtype type, int64_t count,  \
             int64_t width)
typedef LOCUS_BAD_ROWS((*locus_bad_rows_fn));

/* Rows of F16 or BF16 as floats, and floats rounded to them: to the nearest, ties to even, beyond the
 * largest to infinity. Strides in numbers. */
#define LOCUS_WIDEN(name)                                                                          \
    void name(float *to, int64_t to_stride, const uint16_t *rows, int64_t row_stride,              \
              locus_dtype type, int64_t count, int64_t width)
typedef LOCUS_WIDEN((*locus_widen_fn));
#define LOCUS_NARROW(name)                                                                         \
    void name(uint16_t *to, int64_t to_stride, locus_dtype type, const float *rows,                \
              int64_t row_stride, int64_t count, int64_t width)
typedef LOCUS_NARROW((*locus_narrow_fn));

/* Of row i of a tile the columns from[i] .. to[i] - 1 alone are seen. NULL: all. */
typedef struct locus_seen {
    const int32_t *from, *to;
} locus_seen;

/* One step of the streaming softmax on rows x columns scores. Those that are not
 * seen may hold anything and count as -inf.
 * Invariant over the keys seen so far:
 *     max[i] = max s,  sum[i] = sum e^(s - max[i]),  out[i] = sum e^(s - max[i]) v.
 * On return S holds e^(s - max), tile_sum[i] the sum of its row, and rescale[i] =
 * e^(old max - new max), by which the caller multiplies out[i] before it adds this tile. -inf scores
 * give exactly 0; a row of nothing but -inf keeps max = -inf, sum = 0, rescale = 1. NaN and +inf
 * make the row NaN. max, sum, rescale and tile_sum have room for LOCUS_LANES more rows. max_lanes is
 * what product found, or NULL. */
#define LOCUS_SOFTMAX_STEP(name)                                                                   \
    void name(float *S, int64_t stride, int64_t rows, int64_t columns, locus_seen seen,            \
              const float *max_lanes, float *max, float *sum, float *rescale, float *tile_sum)
typedef LOCUS_SOFTMAX_STEP((*locus_softmax_step_fn));

/* What is left of the streaming softmax: lse[i] = max[i] + ln sum[i], factor[i] = 1 / sum[i]; of
 * a row that saw nothing, sum 0 and max -inf, they are -inf and 0. A sum is 0, NaN, or at least
 * about 1 and finite. */
#define LOCUS_SOFTMAX_END(name)                                                                    \
    void name(float *lse, float *factor, const float *max, const float *sum, int64_t rows)
typedef LOCUS_SOFTMAX_END((*locus_softmax_end_fn));

/* y[i] = sum_c X[i][c] Y[i][c] for i < rows, c < width, each sum in the order in which
 * `product` would make it. */
#define LOCUS_ROW_DOTS(name)                                                                       \
    void name(float *y, const float *X, int64_t x_stride, const float *Y, int64_t y_stride,        \
              int64_t rows, int64_t width)
typedef LOCUS_ROW_DOTS((*locus_row_dots_fn));

/* S[i][j] = e^(S[i][j] - lse[i]) factor[i]; exactly 0 where S[i][j] is -inf or not seen. */
#define LOCUS_SOFTMAX_FROM_LSE(name)                                                               \
    void name(float *S, int64_t stride, int64_t rows, int64_t columns, locus_seen seen,            \
              const float *lse, const float *factor)
typedef LOCUS_SOFTMAX_FROM_LSE((*locus_softmax_from_lse_fn));

/* dS[i][j] = P[i][j] (dP[i][j] - row_dot[i]), written over dP; 0 where P is 0. */
#define LOCUS_SOFTMAX_GRAD(name)                                                                   \
    void name(float *dP, const float *P, int64_t stride, int64_t rows, int64_t columns,            \
              const float *row_dot)
typedef LOCUS_SOFTMAX_GRAD((*locus_softmax_grad_fn));

/* S[i] = cap tanh(S[i] / cap); slope[i] = 1 - tanh^2, unless slope is NULL. */
#define LOCUS_CAP(name) void name(float *S, float *slope, int64_t count, float cap)
typedef LOCUS_CAP((*locus_cap_fn));

/* dS[i] *= slope[i]; 0 where dS is 0, whatever the slope. */
#define LOCUS_CAP_GRAD(name) void name(float *dS, const float *slope, int64_t count)
typedef LOCUS_CAP_GRAD((*locus_cap_grad_fn));

/* Dropout of a tile: y[i][c] = x[i][c] factor where rule->row + i keeps key first + c, else 0, for
 * i < rows, c < columns; and so for `also` in place, if not NULL. first is a multiple of
 * LOCUS_DROP_KEYS; y may be x. Kept is what core/random.h says. */
enum { LOCUS_DROP_KEYS = 4 /* that share one call of Philox */ };
typedef struct locus_dropout {
    uint32_t key[2], row, head, batch, threshold;
    float factor;
} locus_dropout;
#define LOCUS_DROP(name)                                                                           \
    void name(float *y, const float *x, float *also, int64_t stride, int64_t rows, int64_t first,  \
              int64_t columns, const locus_dropout *rule)
typedef LOCUS_DROP((*locus_drop_fn));

/* Y[i][c] = X[i][index[c] - first] for i < rows, c < columns. index ascends in steps of 0 or 1
 * and is readable LOCUS_LANES beyond its end, as are the rows of X; Y has as much room behind its
 * last column. */
#define LOCUS_EXPAND(name)                                                                         \
    void name(float *Y, int64_t y_stride, const float *X, int64_t x_stride, int32_t first,         \
              const int32_t *index, int64_t rows, int64_t columns)
typedef LOCUS_EXPAND((*locus_expand_fn));

/* A table whose rows are entries and whose columns belong to the columns of a tile: pair (i, j)
 * uses table[index[j - i] - first][j]. index ascends. Rows of T and of the table have
 * LOCUS_LANES more columns.
 *     read_columns   T[i][j] = plus[i][j] + factor table[..][j], plus as in a product
 *     fold_columns   table[..][j] = factor (the sum of T[i][j] over the pairs that use it)
 * for i < rows, j < columns. Of every LOCUS_LANES columns counted from 0, fold_columns writes all
 * entries that one of them uses and LOCUS_FOLD_MARGIN more before and behind, 0 where no pair
 * does; perhaps some beyond, fewer than LOCUS_FOLD_SLACK in all. It needs an index of steps of 0
 * or 1, readable so far. */
#define LOCUS_FOLD_MARGIN (LOCUS_REGISTER_ROWS - 1)
#define LOCUS_FOLD_SLACK 32
typedef struct locus_column_table {
    float *data; /* entry `first` */
    int64_t row_stride;
    int32_t first;
    const int32_t *index;
    float factor;
} locus_column_table;
#define LOCUS_READ_COLUMNS(name)                                                                   \
    void name(float *T, int64_t t_stride, const locus_column_table *table, const float *plus,      \
              int64_t plus_stride, int64_t rows, int64_t columns)
typedef LOCUS_READ_COLUMNS((*locus_read_columns_fn));
#define LOCUS_FOLD_COLUMNS(name)                                                                   \
    void name(const float *T, int64_t t_stride, const locus_column_table *table, int64_t rows,     \
              int64_t columns)
typedef LOCUS_FOLD_COLUMNS((*locus_fold_columns_fn));

/* Y[i][index[start - i + j] - first] += X[i][j] for i < rows, j < width: the transpose of
 * expand. start - i is not negative, index is readable LOCUS_LANES beyond both ends and
 * ascends in steps of 0 or 1. What goes to one entry is summed by groups of LOCUS_LANES places
 * counted from index[0]. Places skip_from .. skip_to - 1 of the index, which begin and end with
 * groups, are left out. */
typedef struct locus_fold_tile {
    float *y;
    int64_t y_stride;
    int32_t first;
    const int32_t *index;
    const float *x;
    int64_t x_stride, rows, width, start;
    int64_t skip_from, skip_to;
} locus_fold_tile;
#define LOCUS_FOLD(name) void name(const locus_fold_tile *t)
typedef LOCUS_FOLD((*locus_fold_fn));

/* y[rows - 1 - i + j] += T[i][j] for i < rows, j < columns, rows of T t_stride apart. */
#define LOCUS_DIAGONALS(name)                                                                      \
    void name(float *y, const float *T, int64_t t_stride, int64_t rows, int64_t columns)
typedef LOCUS_DIAGONALS((*locus_diagonals_fn));

/* to[r] = rows[r] with its pairs turned, for r < count: with cosines in turn[0 .. pairs-1] and
 * sines behind them, (x, y) becomes (x cos - y sin, y cos + x sin); 2 pairs numbers of `turn` to a
 * row. Pair t is columns t and pairs + t, or 2t and 2t + 1 where interleaved; the columns behind
 * the pairs, up to `width`, stay. direction = -1 turns back. No zero is -0. `to` may be `rows`. */
#define LOCUS_TURN(name)                                                                           \
    void name(float *to, int64_t to_stride, const float *rows, int64_t row_stride,                 \
              const float *turn, int64_t pairs, int interleaved, float direction, int64_t count,   \
              int64_t width, locus_prefetch_rows prefetch)
typedef LOCUS_TURN((*locus_turn_fn));

/* rows[r][c] = rows[r][shift + c] for r < count, c < kept. */
#define LOCUS_SLIDE(name)                                                                          \
    void name(float *rows, int64_t row_stride, int64_t count, int64_t shift, int64_t kept)
typedef LOCUS_SLIDE((*locus_slide_fn));

/* y[c] += x[c] for c < columns. */
#define LOCUS_ADD(name) void name(float *y, const float *x, int64_t columns)
typedef LOCUS_ADD((*locus_add_fn));

/* y[c] += slope x[c] + shift. */
#define LOCUS_ADD_AFFINE(name)                                                                     \
    void name(float *y, const float *x, float slope, float shift, int64_t columns)
typedef LOCUS_ADD_AFFINE((*locus_add_affine_fn));

/* y[c] += (shift + x[c]) + (shift_low + low[c]): of sums in two parts, whose greater ones may cancel. */
#define LOCUS_ADD_SPLIT(name)                                                                      \
    void name(float *y, const float *x, const float *low, float shift, float shift_low,            \
              int64_t columns)
typedef LOCUS_ADD_SPLIT((*locus_add_split_fn));

/* sums[0] += sum_c t[c], sums[1] += sum_c t[c] x[c]; in floats by lanes, then in double. */
#define LOCUS_MOMENTS(name)                                                                        \
    void name(double sums[2], const float *t, const float *x, int64_t columns)
typedef LOCUS_MOMENTS((*locus_moments_fn));

/* y[c] += x[c], and -inf wherever x[c] is, whatever y[c] was. */
#define LOCUS_ADD_BIAS(name) void name(float *y, const float *x, int64_t columns)
typedef LOCUS_ADD_BIAS((*locus_add_bias_fn));

/* y[c] = factor x[c]; x may be y. */
#define LOCUS_SCALE(name) void name(float *y, const float *x, float factor, int64_t columns)
typedef LOCUS_SCALE((*locus_scale_fn));

/* to[r][c] = (resume ? to[r][c] : 0) + factor (rows[r][c] + shift[c]) for r < count, c < width;
 * shift NULL: 0. A sum that starts from 0 is never -0. `to` may be `rows`; to_stride may be 0, which
 * sums the rows. */
#define LOCUS_SCALE_ROWS(name)                                                                     \
    void name(float *to, int64_t to_stride, const float *rows, int64_t row_stride,                 \
              const float *shift, float factor, int64_t count, int64_t width, int resume)
typedef LOCUS_SCALE_ROWS((*locus_scale_rows_fn));

/* y[c] = (resume ? y[c] : 0) + x[c] gain[c]. */
#define LOCUS_MUL_GAIN(name)                                                                       \
    void name(float *y, const float *x, const float *gain, int64_t columns, int resume)
typedef LOCUS_MUL_GAIN((*locus_mul_gain_fn));

/* y[c] = (resume ? y[c] : 0) + x[c] e^(to[c] - from[c]), exponents up to 80; y may be x. What a
 * float cannot hold of an exponent counts, too. */
#define LOCUS_DECAY(name)                                                                          \
    void name(float *y, const float *x, const double *to, const double *from, int64_t columns,     \
              int resume)
typedef LOCUS_DECAY((*locus_decay_fn));

/* y[c] = 1 / (1 + e^-x[c]). */
#define LOCUS_SIGMOIDS(name) void name(float *y, const float *x, int64_t columns)
typedef LOCUS_SIGMOIDS((*locus_sigmoids_fn));

/* Places of LOCUS_LANES keys in a row: of no kind, each one above the one before, all the same. */
enum { LOCUS_PLACES_ANY, LOCUS_PLACES_RISE, LOCUS_PLACES_STAND };

/* y[j] += x[z_j], z_j = places[j] + shift cut to 0 .. last, for from <= j < to; with kinds[j /
 * LOCUS_LANES]. y is read and written, places and kinds are read, in whole groups of LOCUS_LANES:
 * what lies outside from .. to - 1 there may become anything. */
#define LOCUS_ADD_PLACES(name)                                                                     \
    void name(float *y, const float *x, const int32_t *places, const uint8_t *kinds,               \
              int32_t shift, int32_t last, int64_t from, int64_t to)
typedef LOCUS_ADD_PLACES((*locus_add_places_fn));

/* The transpose: y[z_j] += x[j] for from <= j < to, and nothing else. */
#define LOCUS_FOLD_PLACES(name)                                                                    \
    void name(float *y, const float *x, const int32_t *places, const uint8_t *kinds,               \
              int32_t shift, int32_t last, int64_t from, int64_t to)
typedef LOCUS_FOLD_PLACES((*locus_fold_places_fn));

#include "kernels/operators.h"

typedef struct locus_kernels {
    const char *isa;
    uint32_t cpu; /* LOCUS_CPU_ bits it needs */
    locus_pack_fn pack;
    locus_product_fn product;
    locus_dots_fn dots;
    locus_turn_dots_fn turn_dots;
    locus_mix_fn mix;
    locus_pair_dots_fn pair_dots;
    locus_row_dots_fn row_dots;
    locus_gemm_fn gemm;
    locus_gemm_rescale_fn gemm_rescale;
    locus_gemm_factor_fn gemm_factor;
    const locus_linear_kernels *linear;
    locus_bad_rows_fn bad_rows;
    locus_widen_fn widen;
    locus_narrow_fn narrow;
    locus_softmax_step_fn softmax_step;
    locus_softmax_end_fn softmax_end;
    locus_softmax_from_lse_fn softmax_from_lse;
    locus_softmax_grad_fn softmax_grad;
    locus_cap_fn cap;
    locus_cap_grad_fn cap_grad;
    locus_drop_fn drop;
    locus_expand_fn expand;
    locus_read_columns_fn read_columns;
    locus_fold_columns_fn fold_columns;
    locus_fold_fn fold;
    locus_diagonals_fn diagonals;
    locus_turn_fn turn;
    locus_slide_fn slide;
    locus_add_fn add;
    locus_add_bias_fn add_bias;
    locus_add_affine_fn add_affine;
    locus_add_split_fn add_split;
    locus_moments_fn moments;
    locus_scale_fn scale;
    locus_scale_rows_fn scale_rows;
    locus_mul_gain_fn mul_gain;
    locus_decay_fn decay;
    locus_sigmoids_fn sigmoid;
    locus_add_places_fn add_places;
    locus_fold_places_fn fold_places;
    locus_activate_rows_fn activate_rows;
    locus_activate_grad_fn activate_grad;
    locus_norm_rows_fn norm_rows;
    locus_norm_grad_fn norm_grad;
    locus_norm_parameter_grad_fn norm_parameter_grad;
    locus_exp_sum_fn exp_sum;
    locus_exp_row_fn exp_row;
    locus_shift_row_fn shift_row;
    locus_softmax_row_grad_fn softmax_row_grad;
    locus_depthwise_fn depthwise;
    locus_product_sums_fn product_sums;
} locus_kernels;

/* Tables of this build, worst first; NULL beyond the end. */
const locus_kernels *locus_kernels_at(uint32_t index);

/* The best table that the CPU offers below `ceiling` (NULL: none) and below the
 * environment variable LOCUS_ISA; NULL when one of the two names no table. */
const locus_kernels *locus_kernels_pick(const char *ceiling);

#endif

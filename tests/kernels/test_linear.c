/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of linear maps of every table that this CPU has, against the formulas in double. */

#include <float.h>
#include <math.h>
#include <string.h>

#include "operands.h"

enum { LARGE = 1 << 17, MOST_ROWS = 31, MOST_COLUMNS = 3 * LOCUS_RIGHT_COLUMNS };
static float rows_a[LARGE], rows_b[LARGE], sums[LARGE], old[LARGE];
static float gates[LARGE], added[LARGE], bias[LARGE], left[LARGE], right[LARGE];
static const float canary = -123456.0f;

static void clear(float *x)
{
    for (size_t i = 0; i < LARGE; i++) x[i] = canary;
}

static size_t written(const float *x)
{
    size_t count = LARGE;
    while (count > 0 && x[count - 1] == canary) count--;
    return count;
}

/* ---- packing ---- */

/* The rows of panel p of a block, as kernels/linear.h spreads them. */
static int64_t panel_rows(const locus_linear_kernels *k, int64_t rows, int64_t p)
{
    const int64_t panels = (rows + k->rows - 1) / k->rows;
    return rows / panels + (p < rows % panels);
}

static void check_pack_left(const locus_linear_kernels *k, int64_t rows, int64_t inner)
{
    const int64_t stride = inner + 3, column = rows + 2;
    clear(left);
    clear(right);
    k->pack_left_rows(left, rows_a, stride, rows, inner);
    for (int64_t first = 0, count; first < inner; first += count) { /* in pieces around TOGETHER */
        count = 1 + (first + rows) % 11;
        if (count > inner - first) count = inner - first;
        k->pack_left_columns(right, rows_a + first * column, column, rows, inner, first, count);
    }
    int wrong = 0;
    for (int64_t p = 0, row = 0, height; row < rows; p++, row += height) {
        height = panel_rows(k, rows, p);
        const float *by_rows = left + locus_left_floats(row, inner),
                    *by_columns = right + row * inner;
        for (int64_t i = 0; i < height; i++)
            for (int64_t j = 0; j < inner; j++) {
                const int64_t chunk = j / LOCUS_LANES * LOCUS_LANES;
                wrong += by_rows[chunk * height + i * LOCUS_LANES + j % LOCUS_LANES] !=
                         rows_a[(row + i) * stride + j];
                wrong += by_columns[j * height + i] != rows_a[j * column + row + i];
            }
    }
    CHECK(wrong == 0, "%d rows, inner %d: %d of the floats are not where they belong", (int)rows,
          (int)inner, wrong);
    CHECK(written(left) <= (size_t)locus_left_floats(rows, inner), "rows written beyond the end");
    CHECK(written(right) <= (size_t)(rows * inner), "columns written beyond the end");
}

static void check_pack_right(const locus_linear_kernels *k, int64_t inner, int64_t columns)
{
    const int64_t stride = inner * k->columns + 5, row = columns + 1, column = inner + 2;
    const int64_t panels = (columns + k->columns - 1) / k->columns;
    clear(left);
    clear(right);
    k->pack_right(left, stride, rows_b, row, 1, inner, columns);
    k->pack_right(right, stride, rows_b, 1, column, inner, columns);
    int wrong = 0;
    for (int64_t c = 0; c < panels * k->columns; c++)
        for (int64_t j = 0; j < inner; j++) {
            const int64_t at = c / k->columns * stride + j * k->columns + c % k->columns;
            wrong += left[at] != (c < columns ? rows_b[j * row + c] : 0.0f);
            wrong += right[at] != (c < columns ? rows_b[c * column + j] : 0.0f);
        }
    const size_t most = (size_t)(panels > 0 ? (panels - 1) * stride + inner * k->columns : 0);
    CHECK(wrong == 0, "inner %d, %d columns: %d of the floats are not where they belong",
          (int)inner, (int)columns, wrong);
    CHECK(written(left) <= most && written(right) <= most, "written beyond the end");
}

static void test_packing(const locus_kernels *table)
{
    const locus_linear_kernels *k = table->linear;
    const int64_t step = check_sample() ? 7 : 1;
    if (check_begin("kernels/%s/linear/pack_left", table->isa))
        for (int64_t rows = 1; rows <= MOST_ROWS; rows += step)
            for (int64_t inner = 0; inner <= 70; inner++) check_pack_left(k, rows, inner);
    if (check_begin("kernels/%s/linear/pack_right", table->isa))
        for (int64_t columns = 0; columns <= 2 * LOCUS_RIGHT_COLUMNS + 1; columns += step)
            for (int64_t inner = 0; inner <= 40; inner++) check_pack_right(k, inner, columns);
}

/* ---- products ---- */

static double activated(double s, locus_activation activation)
{
    switch (activation) {
    case LOCUS_RELU: return s < 0.0 ? 0.0 : s;
    case LOCUS_GELU: return 0.5 * s * erfc(-s / sqrt(2.0));
    case LOCUS_GELU_TANH: return s / (1.0 + exp(-1.5957691216057308 * (s + 0.044715 * s * s * s)));
    case LOCUS_SILU: return s / (1.0 + exp(-s));
    case LOCUS_TANH: return tanh(s);
    case LOCUS_SIGMOID: return 1.0 / (1.0 + exp(-s));
    case LOCUS_IDENTITY: break;
    }
    return s;
}

/* A is [rows][inner] and B [inner][columns], without gaps; `variant` switches all else. */
static locus_linear_tile tile_case(const locus_linear_kernels *k, int64_t rows, int64_t inner,
                                   int64_t columns, int variant)
{
    locus_linear_tile t = {.c = sums,
                           .c_row = columns + 3,
                           .left = left,
                           .left_columns = (variant & 1) != 0,
                           .left_row = inner,
                           .right = right,
                           .right_stride = inner * k->columns + (variant & 2 ? 8 : 0),
                           .rows = rows,
                           .inner = inner,
                           .columns = columns,
                           .resume = (variant & 4) != 0,
                           .bias = variant & 8 ? bias : NULL,
                           .finish = (variant & 16) != 0,
                           .activation = (locus_activation)(variant % 7),
                           .gate = variant & 32 ? gates : NULL,
                           .gate_row = columns + 1,
                           .residual = variant & 64 ? added : NULL,
                           .residual_row = columns + 2,
                           .next = rows_b,
                           .next_row = 40,
                           .next_width = 33,
                           .next_count = 9};
    if (t.left_columns) {
        for (int64_t j = 0; j < inner; j++) /* the column j of rows_a, made a row */
            for (int64_t i = 0; i < rows; i++) old[j * rows + i] = rows_a[i * inner + j];
        k->pack_left_columns(left, old, rows, rows, inner, 0, inner);
    } else {
        k->pack_left_rows(left, rows_a, inner, rows, inner);
        if (k->left_in_place) t.left = rows_a;
    }
    k->pack_right(right, t.right_stride, rows_b, columns, 1, inner, columns);
    fill(old, LARGE, 27);
    memcpy(sums, old, sizeof sums);
    return t;
}

static double tile_want(const locus_linear_tile *t, int64_t i, int64_t c, double *size)
{
    double s = t->resume         ? (double)old[i * t->c_row + c]
               : t->bias != NULL ? (double)t->bias[c]
                                 : 0.0;
    *size = fabs(s) + 1.0;
    for (int64_t j = 0; j < t->inner; j++) {
        const double term = (double)rows_a[i * t->inner + j] * (double)rows_b[j * t->columns + c];
        s += term;
        *size += fabs(term);
    }
    if (!t->finish) return s;
    s = activated(s, t->activation);
    if (t->gate != NULL) {
        s *= (double)t->gate[i * t->gate_row + c];
        *size *= fabs((double)t->gate[i * t->gate_row + c]);
    }
    if (t->residual != NULL) {
        s += (double)t->residual[i * t->residual_row + c];
        *size += fabs((double)t->residual[i * t->residual_row + c]);
    }
    return s;
}

static void check_tile(const locus_linear_kernels *k, int64_t rows, int64_t inner, int64_t columns,
                       int variant)
{
    const locus_linear_tile t = tile_case(k, rows, inner, columns, variant);
    k->multiply(&t);
    double worst = 0.0;
    int touched = 0;
    for (int64_t at = 0; at < (rows + 1) * t.c_row; at++) {
        const int64_t i = at / t.c_row, c = at % t.c_row;
        if (i >= rows || c >= columns) {
            touched |= memcmp(&sums[at], &old[at], sizeof *sums) != 0;
            continue;
        }
        double size = 0.0;
        const double error = fabs((double)sums[at] - tile_want(&t, i, c, &size)) / size;
        if (!(error <= worst)) worst = error; /* a NaN stays */
    }
    CHECK(worst <= ((double)inner + 8.0) * FLT_EPSILON, "%dx%dx%d variant %d: error %g", (int)rows,
          (int)inner, (int)columns, variant, worst);
    CHECK(!touched, "%dx%dx%d variant %d wrote outside", (int)rows, (int)inner, (int)columns,
          variant);
}

static void test_tiles(const locus_kernels *table)
{
    const locus_linear_kernels *k = table->linear;
    int variant = 0;
    if (check_begin("kernels/%s/linear/small", table->isa))
        for (int64_t rows = 0; rows <= 14; rows++)
            for (int64_t columns = 0; columns <= MOST_COLUMNS; columns += check_sample() ? 31 : 3)
                for (int64_t inner = 0; inner <= 36; inner += 5)
                    check_tile(k, rows, inner, columns, variant++ % 128);
    if (check_begin("kernels/%s/linear/block", table->isa))
        for (int64_t inner = k->inner - 1; inner <= k->inner; inner++)
            for (int n = 0; n < 128; n += check_sample() ? 13 : 1)
                check_tile(k, 1 + n % MOST_ROWS, inner, 1 + 7 * n % 140, n);
}

/* An element depends neither on the rows and columns next to it nor on how A was packed. */
static void test_chain(const locus_kernels *table)
{
    const locus_linear_kernels *k = table->linear;
    enum { ROWS = 29, INNER = 100, COLUMNS = 2 * LOCUS_RIGHT_COLUMNS };
    static float all[ROWS][COLUMNS];
    if (!check_begin("kernels/%s/linear/chain", table->isa)) return;
    locus_linear_tile t = tile_case(k, ROWS, INNER, COLUMNS, 8 + 16 + 3);
    t.c = &all[0][0];
    t.c_row = COLUMNS;
    k->multiply(&t);
    for (int64_t first = 0; first < ROWS; first++)
        for (int64_t rows = 1; rows <= ROWS - first && rows <= 13; rows++)
            for (int64_t columns = 1 + first; columns <= COLUMNS; columns += 37) {
                locus_linear_tile some = t;
                some.c = sums;
                some.rows = rows;
                some.columns = columns;
                some.left_columns = 0;
                k->pack_left_rows(left, rows_a + first * INNER, INNER, rows, INNER);
                some.left = k->left_in_place ? rows_a + first * INNER : left;
                k->multiply(&some);
                int same = 1;
                for (int64_t i = 0; i < rows; i++)
                    same &= memcmp(sums + i * COLUMNS, all[first + i],
                                   (size_t)columns * sizeof(float)) == 0;
                CHECK(same, "%d rows from %d on, %d columns", (int)rows, (int)first, (int)columns);
            }
}

static void test_activations(const locus_kernels *table)
{
    const locus_linear_kernels *k = table->linear;
    static const float special[] = {0.0f, INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 1e-30f};
    if (!check_begin("kernels/%s/linear/activations", table->isa)) return;
    for (int activation = LOCUS_RELU; activation <= LOCUS_SIGMOID; activation++)
        for (int n = 0; n < 4000; n++) {
            const float x = n < 7 ? special[n] : (float)(n - 2000) * 0.011f;
            float y = 1.0f;
            const locus_linear_tile t = {.c = &y,
                                         .c_row = 1,
                                         .left = left,
                                         .right = right,
                                         .rows = 1,
                                         .columns = 1,
                                         .bias = &x,
                                         .finish = 1,
                                         .activation = (locus_activation)activation};
            k->multiply(&t);
            const int limit = x == -INFINITY && activation <= LOCUS_SILU;
            const double want = limit ? 0.0 : activated((double)x, t.activation);
            const double size = activation <= LOCUS_SILU ? fabs((double)x) : 1.0;
            const int right_kind = isnan(want) ? isnan(y) != 0
                                   : isinf(want)
                                       ? (double)y == want
                                       : fabs((double)y - want) <= 8.0 * FLT_EPSILON * size;
            CHECK(right_kind, "activation %d of %g: %g, expected %g", activation, (double)x,
                  (double)y, want);
        }
}

static void fill_operands(const locus_kernels *table)
{
    float *const all[] = {rows_a, rows_b, gates, added, bias};
    (void)table;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fill(all[i], LARGE, 21 + i);
}

int main(int argc, char **argv)
{
    static const kernel_test tests[] = {fill_operands, test_packing,     test_tiles,
                                        test_chain,    test_activations, NULL};
    return test_kernels(argc, argv, "kernels/linear", tests);
}

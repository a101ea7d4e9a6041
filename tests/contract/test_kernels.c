/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation of every kernel table that this CPU has, against the formula in double. */

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "core/random.h"
#include "kernels/kernels.h"
#include "support/check.h"
#include "support/problem.h"

enum { KEYS = 64, ROOM = 96 * 160 }; /* KEYS: the row stride of tiles here */

static float A[ROOM], B[ROOM], C[ROOM], before[ROOM];

static void fill(float *x, size_t count, uint64_t stream)
{
    for (size_t i = 0; i < count; i++) x[i] = (float)(4.0 * test_uniform(stream, i) - 2.0);
}

/* ---- gemm ---- */

static void check_gemm(const locus_kernels *k, int64_t rows, int64_t inner, int64_t columns,
                       int transposed, int accumulate)
{
    const int64_t c_row = columns + 3, b_row = columns + 5;
    const int64_t a_row = transposed ? 1 : inner + 2, a_column = transposed ? rows + 1 : 1;
    memcpy(C, before, sizeof C);
    k->gemm(C, c_row, A, a_row, a_column, B, b_row, rows, inner, columns, accumulate);
    double worst = 0.0;
    int touched = 0;
    for (int64_t at = 0; at < (rows + 1) * c_row; at++) {
        const int64_t i = at / c_row, c = at % c_row;
        if (i >= rows || c >= columns) {
            touched |= memcmp(&C[at], &before[at], sizeof C[at]) != 0;
            continue;
        }
        double want = accumulate ? (double)before[at] : 0.0, size = fabs(want);
        for (int64_t j = 0; j < inner; j++) {
            const double term = (double)A[i * a_row + j * a_column] * (double)B[j * b_row + c];
            want += term;
            size += fabs(term);
        }
        const double error = fabs((double)C[at] - want) / (size + 1e-30);
        if (error > worst) worst = error;
    }
    CHECK(worst <= (double)(inner + 1) * FLT_EPSILON, "%dx%dx%d%s%s: error %g", (int)rows,
          (int)inner, (int)columns, transposed ? " transposed" : "",
          accumulate ? " accumulated" : "", worst);
    CHECK(!touched, "%dx%dx%d wrote outside", (int)rows, (int)inner, (int)columns);
}

static void test_gemm(const locus_kernels *k)
{
    const int64_t last = check_sample() ? 7 : 13;
    if (check_begin("kernels/%s/gemm/small", k->isa))
        for (int64_t rows = 0; rows <= last; rows++)
            for (int64_t columns = 0; columns <= (check_sample() ? 20 : 70); columns++)
                for (int64_t inner = 0; inner <= 5; inner++)
                    check_gemm(k, rows, inner, columns, (int)(rows + columns) % 2,
                               (int)(inner + columns) % 2);
    if (check_begin("kernels/%s/gemm/large", k->isa))
        for (int shape = 0; shape < 4; shape++)
            check_gemm(k, 64, 64, 64 + shape, shape % 2, shape / 2);
}

/* A row must not depend on the rows and columns beside it. */
static void test_gemm_chain(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/gemm/chain", k->isa)) return;
    static float alone[64];
    k->gemm(C, 64, A, 64, 1, B, 64, 64, 64, 64, 0);
    for (int64_t i = 0; i < 64; i++)
        for (int64_t c = 0; c < 64; c += 7) {
            k->gemm(alone, 64, A + i * 64, 64, 1, B + c, 64, 1, 64, 1, 0);
            CHECK(memcmp(alone, &C[i * 64 + c], sizeof *alone) == 0, "element %d %d", (int)i,
                  (int)c);
        }
}

/* gemm_times is gemm times the factor of the row, gemm_carry is gemm after that, bit by bit, and
 * both write nothing else. */
static void test_gemm_times(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/gemm/times", k->isa)) return;
    static float plain[ROOM];
    for (int64_t rows = 0; rows <= 20; rows++) {
        const int64_t inner = 3 * rows, columns = 5 + 4 * rows, row = columns + 3;
        const locus_ahead ahead[2] = {{B, 5, 20, rows}, {A, 7, 33, 2 * rows}};
        memcpy(plain, before, sizeof plain);
        memcpy(C, before, sizeof C);
        k->gemm(plain, row, A, inner + 2, 1, B, row, rows, inner, columns, 0);
        k->gemm_times(C, row, A, inner + 2, B, row, rows, inner, columns, A + 100, ahead);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < columns; c++) plain[i * row + c] *= A[100 + i];
        CHECK(!memcmp(C, plain, sizeof C), "%dx%dx%d", (int)rows, (int)inner, (int)columns);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < columns; c++) plain[i * row + c] *= A[100 + i];
        k->gemm(plain, row, A, inner + 2, 1, B, row, rows, inner, columns, 1);
        k->gemm_carry(C, row, A, inner + 2, B, row, rows, inner, columns, A + 100);
        CHECK(!memcmp(C, plain, sizeof C), "carry %dx%dx%d", (int)rows, (int)inner, (int)columns);
    }
}

/* ---- packing ---- */

/* The product with unit rows gives back what was packed, transposed. */
static void check_pack(const locus_kernels *k, int64_t count, int64_t width)
{
    static float panels[ROOM], unit[ROOM];
    const int64_t to_row = count + 3, row_stride = width + 2;
    memset(unit, 0, sizeof unit);
    for (int64_t i = 0; i < width; i++) unit[i * width + i] = 1.0f;
    memcpy(C, before, sizeof C);
    k->pack(panels, A, row_stride, count, width, 0.5f);
    k->product(&(locus_product_tile){.c = C,
                                     .c_row = to_row,
                                     .a = unit,
                                     .a_row = width,
                                     .panels = panels,
                                     .rows = width,
                                     .inner = width,
                                     .columns = count});
    for (int64_t at = 0; at < (width + 1) * to_row; at++) {
        const int64_t c = at / to_row, r = at % to_row;
        const float want = c < width && r < count ? 0.5f * A[r * row_stride + c] : before[at];
        CHECK(C[at] == want, "%dx%d at %d: %g, expected %g", (int)count, (int)width, (int)at,
              (double)C[at], (double)want);
    }
}

static void test_pack(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/pack", k->isa)) return;
    for (int64_t count = 0; count <= 140; count += check_sample() ? 7 : 3)
        for (int64_t width = 0; width <= 50; width++) check_pack(k, count, width);
}

/* ---- packed products ---- */

static void check_untouched(const locus_product_tile *tile)
{
    for (int64_t at = 0; at < tile->rows * tile->c_row; at++)
        if (at % tile->c_row >= tile->columns)
            CHECK(C[at] == before[at], "a finish wrote outside at %d", (int)at);
}

/* What a product does on its way out has the bits of the pass that would do it afterwards. C
 * holds the sums. */
static void check_finishes(const locus_kernels *k, locus_product_tile *tile)
{
    static float sums[ROOM], weight[ROOM];
    float top[16], factor[16], delta[16];
    for (int i = 0; i < 16; i++) {
        top[i] = i % 5 == 4 ? -INFINITY : 3.0f + (float)i; /* above every sum */
        factor[i] = i % 3 == 0 ? 0.25f : 1.0f;
        delta[i] = 0.1f * (float)i;
    }
    memcpy(sums, C, sizeof sums);
    tile->top = top;
    tile->factor = factor;
    k->product(tile);
    for (int64_t i = 0; i < tile->rows; i++) {
        float row[256];
        memcpy(row, sums + i * tile->c_row, (size_t)tile->columns * sizeof *row);
        k->softmax_again(row, 256, 1, tile->columns, (locus_seen){0}, &top[i], &factor[i]);
        CHECK(!memcmp(row, C + i * tile->c_row, (size_t)tile->columns * sizeof *row),
              "weights of row %d differ from softmax_again", (int)i);
    }
    check_untouched(tile);
    tile->top = tile->factor = NULL;
    if (tile->shift != NULL) return; /* weight and shift do not meet */
    for (int64_t at = 0; at < ROOM; at++) weight[at] = at % 7 == 0 ? 0.0f : before[at];
    tile->weight = weight;
    tile->delta = delta;
    k->product(tile);
    for (int64_t i = 0; i < tile->rows; i++) {
        float row[256], weights[256] = {0};
        memcpy(row, sums + i * tile->c_row, (size_t)tile->columns * sizeof *row);
        memcpy(weights, weight + i * tile->c_row, (size_t)tile->columns * sizeof *row);
        k->softmax_grad(row, weights, 256, 1, tile->columns, &delta[i]);
        CHECK(!memcmp(row, C + i * tile->c_row, (size_t)tile->columns * sizeof *row),
              "gradients of row %d differ from softmax_grad", (int)i);
    }
    check_untouched(tile);
}

/* Columns in two calls: the same bits, and one greatest of both. C and `whole` hold those of one
 * call. */
static void check_two_calls(const locus_kernels *k, locus_product_tile tile, const float *whole)
{
    static float want[ROOM];
    const float *panels = tile.panels, *plus = tile.plus;
    const int64_t columns = tile.columns;
    if (columns <= LOCUS_PANEL) return;
    memcpy(want, C, sizeof want);
    for (int part = 0; part < 2; part++) {
        const int64_t first = part * LOCUS_PANEL;
        tile.c = C + first;
        tile.panels = panels + locus_panel_at(first, tile.inner);
        tile.columns = part == 0 ? LOCUS_PANEL : columns - LOCUS_PANEL;
        tile.plus = plus != NULL ? plus + first : NULL;
        tile.greatest_so_far = part;
        k->product(&tile);
    }
    CHECK(!memcmp(C, want, sizeof want), "products in two calls differ");
    for (int64_t at = 0; tile.greatest != NULL && at < tile.rows * LOCUS_LANES; at++)
        CHECK(tile.greatest[at] == whole[at], "greatest of two calls differs at %d", (int)at);
}

/* Where only some columns are wanted, they have the bits of all. C holds those. */
static void check_wanted(const locus_kernels *k, locus_product_tile tile)
{
    static float want[ROOM];
    int32_t from[16], to[16];
    for (int64_t i = 0; i < tile.rows; i++) {
        from[i] = (int32_t)(i * tile.columns / 20); /* columns before the first: none */
        to[i] = (int32_t)(from[i] + tile.columns / 3 + i / 2);
    }
    memcpy(want, C, sizeof want);
    memcpy(C, before, sizeof C);
    tile.from = from;
    tile.to = to;
    tile.before = 3;
    k->product(&tile);
    for (int64_t at = 0; at < (tile.rows + 1) * tile.c_row; at++) {
        const int64_t i = at / tile.c_row, c = at % tile.c_row;
        if (i >= tile.rows || c >= tile.columns)
            CHECK(C[at] == before[at], "wanted columns: wrote outside at %d", (int)at);
        else if (c >= from[i] - 3 && c < to[i] - 3)
            CHECK(C[at] == want[at], "wanted column %d of row %d differs", (int)c, (int)i);
    }
    memcpy(C, want, sizeof want);
}

/* A second pair of operands goes on where the first ends: the bits of one pair twice as wide. */
static void check_also(const locus_kernels *k, locus_product_tile tile, int64_t b_row)
{
    static float both[ROOM], left[ROOM], right[ROOM], also[ROOM], want[ROOM];
    static float greatest[2][16 * LOCUS_LANES];
    const int64_t wide = 2 * tile.inner;
    float top[16], factor[16];
    for (int i = 0; i < 16; i++) top[i] = 3.0f, factor[i] = 0.5f + (float)i;
    for (int64_t i = 0; i < tile.rows; i++)
        for (int64_t j = 0; j < wide; j++)
            left[i * wide + j] = (j < tile.inner ? A : before)[i * tile.a_row + j % tile.inner];
    for (int64_t c = 0; c < tile.columns; c++)
        for (int64_t j = 0; j < wide; j++)
            right[c * wide + j] = (j < tile.inner ? B : A)[c * b_row + j % tile.inner];
    k->pack(also, A, b_row, tile.columns, tile.inner, 1.0f);
    k->pack(both, right, wide, tile.columns, wide, 1.0f);
    for (int way = 0; way < 3; way++) {
        locus_product_tile one = tile;
        one.also_a = one.also_panels = NULL;
        one.a = left;
        one.a_row = one.inner = wide;
        one.panels = both;
        one.greatest = way == 1 ? greatest[0] : NULL;
        one.top = way == 2 ? top : NULL;
        one.factor = way == 2 ? factor : NULL;
        locus_product_tile two = one;
        two.a = A;
        two.also_a = before;
        two.a_row = two.also_a_row = tile.a_row;
        two.inner = tile.inner;
        two.panels = tile.panels;
        two.also_panels = also;
        if (way == 1) two.greatest = greatest[1];
        memcpy(C, before, sizeof C);
        k->product(&one);
        memcpy(want, C, sizeof want);
        memcpy(C, before, sizeof C);
        k->product(&two);
        CHECK(!memcmp(C, want, sizeof want), "way %d: two pairs of operands differ from one", way);
    }
    CHECK(!memcmp(greatest[0], greatest[1], sizeof greatest[0]), "greatest of two pairs differs");
}

/* mix has the bits of gemm; pair_dots are sums of products, by a table that descends. */
static void check_few(const locus_kernels *k, int64_t rows, int64_t inner, int64_t columns)
{
    static float mixed[ROOM], want[ROOM];
    const int64_t row = columns + 3, a_row = inner + 2;
    memcpy(mixed, before, sizeof mixed);
    memcpy(want, before, sizeof want);
    k->mix(mixed, row, A, a_row, B, row, rows, inner, columns, (locus_ahead){B, 5, 20, columns});
    k->gemm(want, row, A, a_row, 1, B, row, rows, inner, columns, 1);
    CHECK(!memcmp(mixed, want, sizeof mixed), "mix of %dx%dx%d differs from gemm", (int)rows,
          (int)inner, (int)columns);
    int32_t index[160];
    for (int c = 0; c < 160; c++) index[c] = c / 3;
    const float *last = B + 60 * a_row;
    memcpy(mixed, before, sizeof mixed);
    k->pair_dots(mixed, A, a_row, last, -a_row, index, columns, inner, 0.5f);
    for (int64_t c = 0; c <= columns; c++) {
        double sum = (double)before[c];
        for (int64_t j = 0; j < inner && c < columns; j++)
            sum += 0.5 * (double)A[c * a_row + j] * (double)last[j - index[c] * a_row];
        CHECK(fabs((double)mixed[c] - sum) <= 1e-4, "pair_dots of %d at %d", (int)columns, (int)c);
    }
}

static void check_product(const locus_kernels *k, int64_t rows, int64_t inner, int64_t columns,
                          int64_t plus_row)
{
    static float panels[ROOM], greatest[16 * LOCUS_LANES];
    const int64_t c_row = columns + 3, b_row = inner + 1, a_row = inner + 2;
    const float *plus = plus_row != 0 ? before + 4096 : NULL;
    const float *shift = (rows + inner) % 2 ? before + 8000 : NULL;
    memcpy(C, before, sizeof C);
    k->pack(panels, B, b_row, columns, inner, 1.0f);
    locus_product_tile tile = {.c = C,
                               .c_row = c_row,
                               .a = A,
                               .a_row = a_row,
                               .panels = panels,
                               .rows = rows,
                               .inner = inner,
                               .columns = columns,
                               .plus = plus,
                               .plus_row = plus_row,
                               .shift = shift,
                               .greatest = columns % 2 ? greatest : NULL};
    k->product(&tile);
    double worst = 0.0;
    int touched = 0;
    for (int64_t at = 0; at < (rows + 1) * c_row; at++) {
        const int64_t i = at / c_row, c = at % c_row;
        if (i >= rows || c >= columns) {
            touched |= memcmp(&C[at], &before[at], sizeof C[at]) != 0;
            continue;
        }
        const double first = plus != NULL ? (double)plus[i * plus_row + c] : 0.0;
        const double second = shift != NULL ? (double)shift[i] : 0.0;
        double want = first + second, size = fabs(first) + fabs(second);
        for (int64_t j = 0; j < inner; j++) {
            const double term = (double)A[i * a_row + j] * (double)B[c * b_row + j];
            want += term;
            size += fabs(term);
        }
        worst = fmax(worst, fabs((double)C[at] - want) / (size + 1e-30));
    }
    CHECK(worst <= (double)(inner + 2) * FLT_EPSILON, "%dx%dx%d plus %d: error %g", (int)rows,
          (int)inner, (int)columns, (int)plus_row, worst);
    CHECK(!touched, "%dx%dx%d wrote outside", (int)rows, (int)inner, (int)columns);
    static float other[ROOM];
    memcpy(other, before, sizeof other);
    k->dots(other, c_row, A, a_row, B, b_row, rows, inner, columns, plus, plus_row,
            (locus_ahead){B, 3, 2, rows});
    for (int64_t at = 0; shift == NULL && at < (rows + 1) * c_row; at++)
        CHECK(fabsf(other[at] - C[at]) <= 1e-4f, "dots differ from the product at %d", (int)at);
    check_few(k, rows, inner, columns);
    for (int64_t i = 0; columns % 2 && i < rows; i++) {
        float found = -INFINITY, want = -INFINITY;
        for (int l = 0; l < LOCUS_LANES; l++) found = fmaxf(found, greatest[i * LOCUS_LANES + l]);
        for (int64_t c = 0; c < columns; c++) want = fmaxf(want, C[i * c_row + c]);
        CHECK(found == want, "greatest of row %d: %g, expected %g", (int)i, (double)found,
              (double)want);
    }
    float whole[16 * LOCUS_LANES];
    memcpy(whole, greatest, sizeof whole);
    check_two_calls(k, tile, whole);
    tile.greatest = NULL;
    check_wanted(k, tile);
    check_finishes(k, &tile);
    tile.weight = tile.delta = NULL;
    if (plus != NULL && shift == NULL && inner > 0 && columns * 2 * inner <= ROOM)
        check_also(k, tile, b_row);
}

static void test_product(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/product", k->isa)) return;
    for (int64_t rows = 0; rows <= 13; rows++)
        for (int64_t columns = 0; columns <= 140; columns += check_sample() ? 31 : 3)
            for (int64_t inner = 0; inner <= 20; inner += 5)
                check_product(k, rows, inner, columns, (rows + columns) % 3 - 1);
}

/* ---- linear ---- */

enum { LINEAR_ROOM = 1 << 18 };
static float lin_a[LINEAR_ROOM], lin_b[LINEAR_ROOM], packed[LINEAR_ROOM], sums[LINEAR_ROOM];
static float block_copy[2 * LOCUS_INNER_BLOCK * LOCUS_PANEL];

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

/* Everything that `variant` can switch, and where it reads. */
static locus_linear_tile linear_case(const locus_kernels *k, int64_t rows, int64_t inner,
                                     int64_t columns, int variant)
{
    locus_linear_tile t = {.c = sums, .c_row = columns + 3, .rows = rows, .inner = inner};
    t.columns = columns;
    t.a = lin_a;
    t.a_row = variant & 1 ? 1 : inner + 2;
    t.a_column = variant & 1 ? rows + 3 : 1;
    t.first = variant & 2 ? 5 : 0;
    t.width = inner + t.first + 2;
    t.resume = (variant & 4) != 0;
    t.bias = variant & 8 ? before : NULL;
    t.residual = variant & 16 ? before + 1000 : NULL;
    t.residual_row = columns + 1;
    t.activation = (locus_activation)(variant % 5);
    t.b = lin_b;
    t.b_row = LOCUS_PANEL;
    if (variant & 32) {
        k->pack(packed, lin_b, t.width, columns, t.width, 1.0f);
        t.panels = packed;
    } else if (columns > LOCUS_PANEL || variant & 16) {
        t.b_row = columns + 1;
        t.copy = block_copy;
    }
    return t;
}

static double linear_want(const locus_linear_tile *t, int64_t i, int64_t c, double old,
                          double *size)
{
    double s = t->resume ? old : t->bias != NULL ? (double)t->bias[c] : 0.0;
    *size = fabs(s);
    for (int64_t j = 0; j < t->inner; j++) {
        const float a = t->a[i * t->a_row + j * t->a_column];
        const float b =
            t->panels != NULL ? lin_b[c * t->width + t->first + j] : t->b[j * t->b_row + c];
        s += (double)a * (double)b;
        *size += fabs((double)a * (double)b);
    }
    const double r = t->residual != NULL ? (double)t->residual[i * t->residual_row + c] : 0.0;
    *size += fabs(r);
    return activated(s, t->activation) + r;
}

static void check_linear(const locus_kernels *k, int64_t rows, int64_t inner, int64_t columns,
                         int variant)
{
    const locus_linear_tile t = linear_case(k, rows, inner, columns, variant);
    const size_t bytes = (size_t)((rows + 1) * t.c_row) * sizeof(float);
    memcpy(sums, lin_a, bytes);
    k->linear(&t);
    double worst = 0.0;
    int touched = 0;
    for (int64_t at = 0; at < (rows + 1) * t.c_row; at++) {
        const int64_t i = at / t.c_row, c = at % t.c_row;
        if (i >= rows || c >= columns) {
            touched |= memcmp(&sums[at], &lin_a[at], sizeof *sums) != 0;
            continue;
        }
        double size = 0.0;
        const double want = linear_want(&t, i, c, (double)lin_a[at], &size);
        worst = fmax(worst, fabs((double)sums[at] - want) / (size + 1e-30));
    }
    /* chains of a block, the blocks, and a few operations of the activation */
    const double steps = (double)(inner < LOCUS_INNER_BLOCK ? inner : LOCUS_INNER_BLOCK);
    CHECK(worst <= (steps + (double)inner / LOCUS_INNER_BLOCK + 8.0) * FLT_EPSILON,
          "%dx%dx%d variant %d: error %g", (int)rows, (int)inner, (int)columns, variant, worst);
    CHECK(!touched, "%dx%dx%d wrote outside", (int)rows, (int)inner, (int)columns);
}

static void test_linear(const locus_kernels *k)
{
    int variant = 0;
    fill(lin_a, LINEAR_ROOM, 21);
    fill(lin_b, LINEAR_ROOM, 22);
    if (check_begin("kernels/%s/linear/small", k->isa))
        for (int64_t rows = 0; rows <= 14; rows++)
            for (int64_t columns = 0; columns <= 140; columns += check_sample() ? 31 : 3)
                for (int64_t inner = 0; inner <= 36; inner += 5)
                    check_linear(k, rows, inner, columns, variant++ % 64);
    if (check_begin("kernels/%s/linear/blocks", k->isa))
        for (int64_t inner = LOCUS_INNER_BLOCK - 1; inner <= 2 * LOCUS_INNER_BLOCK + 200;
             inner += check_sample() ? 391 : 43)
            for (int n = 0; n < 64; n += check_sample() ? 11 : 1)
                check_linear(k, 1 + (inner + n) % 70, inner, 1 + (3 * inner + 7 * n) % 140, n);
}

/* An element does not depend on the rows and columns beside it. */
static void test_linear_chain(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/linear/chain", k->isa)) return;
    for (int activation = LOCUS_IDENTITY; activation <= LOCUS_SILU; activation++) {
        locus_linear_tile t = linear_case(k, 31, LOCUS_INNER_BLOCK + 100, 64, 32 + 16 + 8);
        t.activation = (locus_activation)activation;
        k->linear(&t);
        for (int64_t i = 0; i < 31; i++)
            for (int64_t c = 1; c <= 64; c += 9) {
                static float alone[LOCUS_PANEL];
                locus_linear_tile one = t;
                one.c = alone;
                one.a += i * t.a_row;
                one.residual += i * t.residual_row;
                one.rows = 1;
                one.columns = c;
                k->linear(&one);
                CHECK(memcmp(alone, sums + i * t.c_row, (size_t)c * sizeof *alone) == 0,
                      "row %d, %d columns, activation %d", (int)i, (int)c, activation);
            }
    }
}

static void test_activations(const locus_kernels *k)
{
    static const float special[] = {0.0f, INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 1e-30f};
    if (!check_begin("kernels/%s/linear/activations", k->isa)) return;
    for (int activation = LOCUS_RELU; activation <= LOCUS_SILU; activation++)
        for (int n = 0; n < 4000; n++) {
            const float x = n < 7 ? special[n] : (float)(n - 2000) * 0.011f;
            float y = 1.0f;
            const locus_linear_tile t = {.c = &y,
                                         .c_row = 1,
                                         .b = lin_b,
                                         .rows = 1,
                                         .columns = 1,
                                         .bias = &x,
                                         .activation = (locus_activation)activation};
            k->linear(&t);
            const double want = x == -INFINITY ? 0.0 : activated((double)x, t.activation);
            const int right_kind =
                isnan(want)   ? isnan(y) != 0
                : isinf(want) ? (double)y == want
                              : fabs((double)y - want) <= 8.0 * FLT_EPSILON * fabs((double)x);
            CHECK(right_kind, "activation %d of %g: %g, expected %g", activation, (double)x,
                  (double)y, want);
        }
}

static void test_bad_rows(const locus_kernels *k)
{
    static const float strange[] = {NAN, INFINITY, -INFINITY};
    if (!check_begin("kernels/%s/bad_rows", k->isa)) return;
    for (int64_t width = 1; width <= 70; width++)
        for (int64_t at = 0; at < width; at++) {
            uint8_t bad[3];
            memcpy(C, before, sizeof C);
            C[2 * width + at] = strange[at % 3];
            CHECK(k->bad_rows(bad, C, width, 2, width) == 0, "finite rows");
            CHECK(k->bad_rows(bad, C, width, 3, width) == 1, "a bad row");
            CHECK(bad[0] == 0 && bad[1] == 0 && bad[2] == 1, "width %d at %d", (int)width, (int)at);
        }
}

/* ---- softmax ---- */

/* 2 ulp, plus |x| from the rounding of x log2 e. */
static void check_exp_row(const locus_kernels *k, float *row, int64_t count)
{
    static float S[KEYS];
    float top = 0.0f, factor = 1.0f;
    memcpy(S, row, (size_t)count * sizeof *S);
    k->softmax_again(S, KEYS, 1, count, (locus_seen){0}, &top, &factor);
    for (int64_t c = 0; c < count; c++) {
        const double want = exp((double)row[c]);
        const double ulp = want < FLT_MIN ? (double)FLT_MIN : want * FLT_EPSILON;
        CHECK(fabs((double)S[c] - want) <= (2.0 - (double)row[c]) * ulp,
              "e^%.9g: %.9g, expected %.9g", (double)row[c], (double)S[c], want);
    }
}

static void test_exp(const locus_kernels *k)
{
    float row[KEYS];
    if (check_begin("kernels/%s/exp/range", k->isa))
        for (int block = 0; block < (check_sample() ? 20 : 2000); block++) {
            for (int c = 0; c < KEYS; c++)
                row[c] = (float)(-100.0 * test_uniform((uint64_t)block, (uint64_t)c) *
                                 (block % 3 == 0   ? 1.0
                                  : block % 3 == 1 ? 0.01
                                                   : 0.1));
            check_exp_row(k, row, 1 + block % KEYS);
        }
    if (check_begin("kernels/%s/exp/special", k->isa)) {
        const float top = 0.0f, factor = 1.0f;
        float special[KEYS] = {0.0f, -INFINITY, NAN, -1e30f};
        k->softmax_again(special, KEYS, 1, 4, (locus_seen){0}, &top, &factor);
        CHECK(special[0] == 1.0f, "e^0 is %.9g", (double)special[0]);
        CHECK(special[1] == 0.0f && special[3] == 0.0f, "e^-inf, e^-1e30");
        CHECK(isnan(special[2]), "e^NaN is %g", (double)special[2]);
    }
}

/* lse = top + ln sum within 2 ulp of its parts; factor = 1 / sum. */
static void test_softmax_end(const locus_kernels *k)
{
    float top[KEYS], sum[KEYS], lse[KEYS + 1], factor[KEYS + 1];
    if (check_begin("kernels/%s/softmax/end", k->isa))
        for (int block = 0; block < (check_sample() ? 20 : 500); block++) {
            const int rows = block % (KEYS + 1);
            for (int i = 0; i < KEYS; i++) {
                const double u = test_uniform((uint64_t)block + 77, (uint64_t)i);
                top[i] = block % 2 ? A[i] * 20.0f : 0.0f;
                sum[i] = (float)exp(block % 3 ? 22.0 * u : 1e-3 * u);
            }
            lse[rows] = factor[rows] = 7.0f;
            k->softmax_end(lse, factor, top, sum, rows);
            for (int i = 0; i < rows; i++) {
                const double ln = log((double)sum[i]), want = (double)top[i] + ln;
                CHECK(fabs((double)lse[i] - want) <=
                          FLT_EPSILON * (0.5 * fabs(want) + 2.0 * fabs(ln)),
                      "%g + ln %.9g: %.9g, expected %.9g", (double)top[i], (double)sum[i],
                      (double)lse[i], want);
                CHECK(factor[i] == 1.0f / sum[i], "1 / %.9g", (double)sum[i]);
            }
            CHECK(lse[rows] == 7.0f && factor[rows] == 7.0f, "%d rows: wrote outside", rows);
        }
    if (check_begin("kernels/%s/softmax/end-special", k->isa)) {
        const float tops[3] = {-INFINITY, 2.5f, 1.0f}, totals[3] = {0.0f, 1.0f, NAN};
        k->softmax_end(lse, factor, tops, totals, 3);
        CHECK(lse[0] == -INFINITY && factor[0] == 0.0f, "an empty row: %g", (double)lse[0]);
        CHECK(lse[1] == 2.5f && factor[1] == 1.0f, "one key: %.9g", (double)lse[1]);
        CHECK(isnan(lse[2]) && isnan(factor[2]), "NaN: %g", (double)lse[2]);
    }
}

/* The streaming softmax in any cut equals the softmax of the whole row. */
static void test_streaming(const locus_kernels *k)
{
    for (int step = 1; step <= KEYS; step += 9) {
        if (!check_begin("kernels/%s/softmax/step%d", k->isa, step)) continue;
        float top[LOCUS_LANES] = {-INFINITY}, sum[LOCUS_LANES] = {0.0f}, carry[LOCUS_LANES],
              part[LOCUS_LANES];
        double out = 0.0, want_sum = 0.0, want_out = 0.0, want_top = -INFINITY;
        for (int at = 0; at < 200; at++) want_top = fmax(want_top, (double)A[at] * 20.0);
        for (int at = 0; at < 200; at += step) {
            float S[KEYS];
            const int count = at + step <= 200 ? step : 200 - at;
            for (int c = 0; c < count; c++) S[c] = A[at + c] * 20.0f;
            k->softmax_step(S, KEYS, 1, count, (locus_seen){0}, NULL, top, sum, carry, part);
            double row = 0.0;
            for (int c = 0; c < count; c++) row += (double)S[c];
            CHECK(fabs((double)part[0] - row) <= 1e-5 * row, "sum of a row: %g, expected %g",
                  (double)part[0], row);
            out *= (double)carry[0];
            for (int c = 0; c < count; c++) out += (double)S[c] * (double)B[at + c];
        }
        for (int at = 0; at < 200; at++) {
            const double p = exp((double)(A[at] * 20.0f) - want_top);
            want_sum += p;
            want_out += p * (double)B[at];
        }
        CHECK((double)top[0] == (double)(float)want_top, "top %g, expected %g", (double)top[0],
              want_top);
        CHECK(fabs((double)sum[0] - want_sum) < 1e-5 * want_sum, "sum %g, expected %g",
              (double)sum[0], want_sum);
        CHECK(fabs(out / (double)sum[0] - want_out / want_sum) < 1e-5, "out");
    }
}

static void test_softmax_special(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/softmax/special", k->isa)) return;
    float top[4 + LOCUS_LANES] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    float sum[4 + LOCUS_LANES] = {0}, carry[4 + LOCUS_LANES] = {0}, part[4 + LOCUS_LANES];
    static float S[4 * KEYS];
    for (int i = 0; i < 4 * KEYS; i++) S[i] = -INFINITY;
    S[KEYS + 1] = 2.0f;
    S[2 * KEYS + 2] = NAN;
    S[3 * KEYS] = INFINITY;
    k->softmax_step(S, KEYS, 4, 5, (locus_seen){0}, NULL, top, sum, carry, part);
    CHECK(top[0] == -INFINITY && sum[0] == 0.0f && carry[0] == 1.0f && S[0] == 0.0f,
          "a row of -inf: top %g sum %g carry %g", (double)top[0], (double)sum[0],
          (double)carry[0]);
    CHECK(top[1] == 2.0f && sum[1] == 1.0f && S[KEYS + 1] == 1.0f && S[KEYS] == 0.0f, "one score");
    CHECK(isnan(sum[2]), "NaN: sum %g", (double)sum[2]);
    CHECK(isnan(sum[3]), "+inf: sum %g", (double)sum[3]);
}

/* Columns that a row does not see may hold anything: they count as -inf. */
static void test_softmax_seen(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/softmax/seen", k->isa)) return;
    for (int32_t first = 0; first <= KEYS - 3; first += 3)
        for (int32_t past = first; past <= KEYS - 3; past += 2) {
            float S[KEYS], hidden[KEYS], again[KEYS], factor = 0.5f;
            float top[2][LOCUS_LANES] = {{-INFINITY}, {-INFINITY}}, sum[2][LOCUS_LANES] = {{0.0f}};
            float carry[LOCUS_LANES], part[LOCUS_LANES];
            for (int c = 0; c < KEYS; c++) {
                const int sees = c >= first && c < past;
                S[c] = again[c] = sees ? A[c] : NAN;
                hidden[c] = sees ? A[c] : -INFINITY;
            }
            const locus_seen seen = {&first, &past};
            k->softmax_step(S, KEYS, 1, KEYS - 3, seen, NULL, top[0], sum[0], carry, part);
            k->softmax_step(hidden, KEYS, 1, KEYS - 3, (locus_seen){0}, NULL, top[1], sum[1], carry,
                            part);
            k->softmax_again(again, KEYS, 1, KEYS - 3, seen, top[0], &factor);
            CHECK(top[0][0] == top[1][0], "%d to %d: top", first, past);
            CHECK(fabsf(sum[0][0] - sum[1][0]) <= 1e-5f * sum[1][0], "%d to %d: sum", first, past);
            for (int c = 0; c < KEYS - 3; c++) {
                CHECK(S[c] == hidden[c], "%d to %d: weight %d", first, past, c);
                CHECK(again[c] == factor * S[c], "%d to %d: weight %d again", first, past, c);
            }
        }
}

static void test_softmax_grad(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/softmax/grad", k->isa)) return;
    static float dP[KEYS], P[KEYS];
    for (int columns = 1; columns <= KEYS; columns++) {
        const float delta = 0.37f;
        for (int c = 0; c < KEYS; c++) {
            dP[c] = c % 5 == 0 ? NAN : A[c];
            P[c] = c % 5 == 0 || c >= columns ? 0.0f : B[c];
        }
        k->softmax_grad(dP, P, KEYS, 1, columns, &delta);
        for (int c = 0; c < columns; c++) {
            const float want = c % 5 == 0 ? 0.0f : P[c] * (A[c] - delta);
            CHECK(fabsf(dP[c] - want) <= 1e-6f, "column %d of %d", c, columns);
        }
    }
}

/* ---- tables ---- */

/* Indices as plans make them: exact, clipped, bucketed. kind 3 mixes them. */
static void make_index(int32_t *index, int count, int kind)
{
    for (int c = 0; c < count; c++) {
        const int step = kind == 0   ? 1
                         : kind == 1 ? c == count / 2
                         : kind == 2 ? c % 3 == 0
                                     : test_uniform(5, (uint64_t)(c / 9)) < 0.5;
        index[c] = c == 0 ? 7 : index[c - 1] + step;
    }
}

/* Entries that no row reaches hold -0: adding even 0 to them would show. */
static void check_fold(const locus_kernels *k, const int32_t *index, int width, int start,
                       int skip_from, int skip_to)
{
    enum { ROWS = 5, ROW = 200, FIRST = 3, ALL = (ROWS + 1) * ROW };
    static double want[ALL];
    static int reached[ALL];
    const locus_fold_tile fold = {.y = C + ROW / 2,
                                  .y_row = ROW,
                                  .first = FIRST,
                                  .index = index,
                                  .x = B,
                                  .x_row = width + 1,
                                  .rows = ROWS,
                                  .width = width,
                                  .start = start + ROWS - 1,
                                  .skip_from = skip_from,
                                  .skip_to = skip_to};
    memcpy(C, before, sizeof C);
    memset(reached, 0, sizeof reached);
    for (int at = 0; at < ALL; at++) want[at] = (double)before[at];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < width; j++) {
            const int place = (int)fold.start - i + j;
            if (place >= skip_from && place < skip_to) continue;
            const int at = ROW / 2 + i * ROW + index[place] - FIRST;
            want[at] += (double)B[i * fold.x_row + j];
            for (int r = 0; r < ROWS; r++) reached[at + (r - i) * ROW] = 1;
        }
    for (int at = 0; at < ALL; at++)
        if (!reached[at]) C[at] = -0.0f;
    k->fold(&fold);
    for (int at = 0; at < ALL; at++)
        CHECK(reached[at] ? fabs((double)C[at] - want[at]) < 1e-4 : C[at] == 0.0f && signbit(C[at]),
              "fold of %d from %d: place %d", width, start, at);
}

/* Sums where pairs meet, 0 between them and in the margin, nothing beyond the slack. */
static void check_fold_columns(const locus_kernels *k, const int32_t *index, int rows, int columns)
{
    enum { ROW = 64, SLACK = LOCUS_FOLD_SLACK, ALL = ROOM / ROW };
    static double want[ROOM];
    const int32_t least = index[1 - rows], most = index[columns - 1];
    const locus_column_table table = {C + SLACK * ROW, ROW, least, index, 0.3f};
    memcpy(C, before, sizeof C);
    memset(want, 0, sizeof want);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            want[(SLACK + index[j - i] - least) * ROW + j] += 0.3 * (double)B[i * (ROW + 1) + j];
    k->fold_columns(B, ROW + 1, &table, rows, columns);
    for (int row = 0; row < ALL; row++)
        for (int c = 0; c < ROW; c++) {
            const int at = row * ROW + c, block = c / LOCUS_LANES * LOCUS_LANES;
            const int entry = row - SLACK + least;
            const int written = entry >= index[block + 1 - rows] - LOCUS_FOLD_MARGIN &&
                                entry <= index[block + LOCUS_LANES - 1] + LOCUS_FOLD_MARGIN;
            const int outside = entry <= least - SLACK || entry >= most + SLACK;
            if (c < columns && written)
                CHECK(fabs((double)C[at] - want[at]) < 1e-4,
                      "fold_columns of %d x %d: entry %d, %d", rows, columns, entry, c);
            else if (outside)
                CHECK(C[at] == before[at], "fold_columns of %d x %d writes entry %d", rows, columns,
                      entry);
        }
}

static void test_diagonals(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/diagonals", k->isa)) return;
    for (int rows = 0; rows <= 50; rows += 1 + rows / 20)
        for (int columns = 0; columns <= 70; columns += check_sample() ? 9 : 1) {
            const int t_row = columns + 2, distances = rows > 0 ? rows + columns - 1 : 0;
            double want[128];
            for (int y = 0; y < 128; y++) want[y] = (double)before[y];
            for (int i = 0; i < rows; i++)
                for (int j = 0; j < columns; j++)
                    want[rows - 1 - i + j] += (double)A[i * t_row + j];
            memcpy(C, before, sizeof C);
            k->diagonals(C, A, t_row, rows, columns);
            for (int y = 0; y < 128; y++)
                CHECK(y < distances ? fabs((double)C[y] - want[y]) < 1e-4 : C[y] == before[y],
                      "%d x %d: diagonal %d", rows, columns, y);
        }
}

static void test_lookup(const locus_kernels *k)
{
    enum { MOST = 180, FIRST = 3, SIDE = 40 };
    int32_t index[MOST];
    for (int kind = 0; kind < 4; kind++) {
        if (!check_begin("kernels/%s/lookup/%d", k->isa, kind)) continue;
        make_index(index, MOST, kind);
        for (int n = 0; n <= 100; n++) {
            const int at = n % 11;
            const int skip = LOCUS_LANES * (n % 5);
            check_fold(k, index + LOCUS_LANES, n, at, 0, 0);
            check_fold(k, index + LOCUS_LANES, n, at, skip, INT_MAX);
            check_fold(k, index + LOCUS_LANES, n, at, INT_MIN, skip);
            check_fold(k, index + LOCUS_LANES, n, at, LOCUS_LANES, skip);
            memcpy(C, before, sizeof C);
            k->expand(C, MOST + LOCUS_LANES, A, MOST + 3, FIRST, index + at, 3, n);
            for (int i = 0; i < 3; i++)
                for (int c = 0; c < n; c++)
                    CHECK(C[i * (MOST + LOCUS_LANES) + c] ==
                              A[i * (MOST + 3) + index[at + c] - FIRST],
                          "expand of %d at %d, %d", n, i, c);
        }
        for (int rows = 0; rows <= SIDE; rows += 5)
            for (int columns = 0; columns <= SIDE; columns += 3) {
                const int32_t *origin = index + SIDE + LOCUS_LANES;
                int right = 1;
                const locus_column_table table = {A, SIDE + LOCUS_LANES, FIRST, origin, 0.3f};
                const float *plus = rows % 2 ? B : NULL;
                memcpy(C, before, sizeof C);
                k->read_columns(C, SIDE, &table, plus, SIDE + 1, rows, columns);
                for (int i = 0; i < SIDE; i++)
                    for (int j = 0; j < SIDE; j++) {
                        const float more =
                            table.factor * A[(origin[j - i] - FIRST) * table.row + j];
                        const float old = plus != NULL ? plus[i * (SIDE + 1) + j] : 0.0f;
                        right &= C[i * SIDE + j] ==
                                 (i < rows && j < columns ? old + more : before[i * SIDE + j]);
                    }
                CHECK(right, "read_columns of %d x %d", rows, columns);
                if (rows > 0 && columns > 0) check_fold_columns(k, origin, rows, columns);
            }
    }
}

static void test_slide(const locus_kernels *k)
{
    enum { ROW = 100, ROWS = 3 };
    if (!check_begin("kernels/%s/slide", k->isa)) return;
    for (int shift = 0; shift <= 40; shift++)
        for (int kept = 0; shift + kept <= ROW; kept += 3) {
            memcpy(C, before, sizeof C);
            k->slide(C, ROW, ROWS, shift, kept);
            int right = 1;
            for (int at = 0; at < (ROWS + 1) * ROW; at++)
                right &= C[at] == before[at < ROWS * ROW && at % ROW < kept ? at + shift : at];
            CHECK(right, "slide of %d by %d", kept, shift);
        }
}

static void test_turn(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/turn", k->isa)) return;
    for (int pairs = 0; pairs <= 40; pairs++)
        for (int interleaved = 0; interleaved < 2; interleaved++) {
            float rows[2 * 96], turned[96], *row = rows;
            k->turn(rows, 96, A, 100, B, pairs, interleaved, 1.0f, 2, 96, (locus_ahead){0});
            memcpy(turned, row, sizeof turned);
            for (int t = 0; t < pairs; t++) {
                const int x = interleaved ? 2 * t : t, y = interleaved ? 2 * t + 1 : pairs + t;
                const float *a = A + 100, *b = B + 2 * pairs;
                CHECK(fabsf(rows[96 + x] - (a[x] * b[t] - a[y] * b[pairs + t])) < 1e-5f,
                      "x of %d, second row", t);
            }
            for (int t = 0; t < pairs; t++) {
                const int x = interleaved ? 2 * t : t, y = interleaved ? 2 * t + 1 : pairs + t;
                CHECK(fabsf(row[x] - (A[x] * B[t] - A[y] * B[pairs + t])) < 1e-5f, "x of %d", t);
                CHECK(fabsf(row[y] - (A[y] * B[t] + A[x] * B[pairs + t])) < 1e-5f, "y of %d", t);
            }
            k->turn(row, 0, row, 0, B, pairs, interleaved, -1.0f, 1, 96, (locus_ahead){0});
            for (int t = 0; t < pairs; t++) { /* the transpose: cos^2 + sin^2 times the row */
                const int x = interleaved ? 2 * t : t;
                const float size = B[t] * B[t] + B[pairs + t] * B[pairs + t];
                CHECK(fabsf(row[x] - size * A[x]) < 1e-4f, "back, %d", t);
            }
            for (int c = 2 * pairs; c < 96; c++)
                CHECK(turned[c] == A[c], "column %d of %d pairs was touched", c, pairs);
        }
}

/* ---- dropout ---- */

/* turn_dots has the bits of turn and dots, and writes no further. */
static void test_turn_dots(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/turn_dots", k->isa)) return;
    enum { MOST = 37, ROW = 100 };
    static const int counts[] = {1, 15, 16, 17, MOST};
    static float turned[MOST * ROW];
    for (int n = 0; n < 5; n++)
        for (int pairs = 16; pairs <= 48; pairs += 16)
            for (int way = 0; way < 4; way++) {
                const int count = counts[n], interleaved = way % 2, width = 2 * pairs;
                const float *plus = way / 2 ? A + 50 : NULL;
                const locus_ahead ahead = {B, 5, 64, count};
                float got[MOST + 1], want[MOST + 1];
                got[count] = want[count] = 7.0f;
                k->turn(turned, ROW, A, ROW, B, pairs, interleaved, 1.0f, count, width,
                        (locus_ahead){0});
                k->dots(want, MOST, A + 3, 0, turned, ROW, 1, width, count, plus, 0, ahead);
                k->turn_dots(got, A + 3, A, ROW, B, pairs, interleaved, count, plus, ahead);
                CHECK(!memcmp(got, want, (size_t)(count + 1) * sizeof *got),
                      "turn_dots of %d rows of %d pairs differs", count, pairs);
            }
}

static void test_drop(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/drop", k->isa)) return;
    const uint64_t seed = 0x1234567890abcdefu;
    const locus_dropout rule = {.key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
                                .row = 77,
                                .head = 5,
                                .batch = 3,
                                .threshold = locus_dropout_threshold(0.3),
                                .factor = 1.5f};
    enum { ROWS = 6, STRIDE = 160 };
    for (int64_t columns = 0; columns <= 140; columns++)
        for (int rows = 0; rows <= ROWS; rows++) {
            const int64_t first = columns % 3 * 64;
            float y[ROWS * STRIDE], also[ROWS * STRIDE];
            int right = 1;
            memcpy(y, before, sizeof y);
            memcpy(also, B, sizeof also);
            k->drop(y, A, columns % 2 ? also : NULL, STRIDE, rows, first, columns, &rule);
            for (int64_t at = 0; at < ROWS * STRIDE; at++) {
                const int64_t r = at / STRIDE, c = at % STRIDE;
                const int inside = r < rows && c < columns;
                const int keeps = locus_dropout_keeps(seed, rule.threshold, 3, 5, 77 + (uint32_t)r,
                                                      (uint32_t)(first + c));
                right &= y[at] == (!inside ? before[at] : keeps ? A[at] * 1.5f : 0.0f);
                right &= also[at] == (!inside || columns % 2 == 0 ? B[at]
                                      : keeps                     ? B[at] * 1.5f
                                                                  : 0.0f);
            }
            CHECK(right, "%d rows of %d columns", rows, (int)columns);
        }
}

/* ---- rows ---- */

static void test_rows(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/rows", k->isa)) return;
    for (int64_t n = 0; n <= 70; n++) {
        memcpy(C, before, sizeof C);
        k->add(C, A, n);
        k->scale(C + 100, C + 100, 0.5f, n);
        float biased[80], bias[80];
        for (int c = 0; c < 80; c++) {
            biased[c] = c % 5 == 0 ? NAN : A[c];
            bias[c] = c % 3 == 0 ? -INFINITY : B[c];
        }
        k->add_bias(biased, bias, n);
        for (int c = 0; c < n; c++)
            CHECK(c % 3 == 0   ? biased[c] == -INFINITY
                  : c % 5 == 0 ? isnan(biased[c])
                               : biased[c] == A[c] + B[c],
                  "add_bias of %d at %d", (int)n, c);
        for (int64_t c = 0; c < 80; c++) {
            CHECK(C[c] == (c < n ? before[c] + A[c] : before[c]), "add of %d at %d", (int)n,
                  (int)c);
            CHECK(C[100 + c] == (c < n ? before[100 + c] * 0.5f : before[100 + c]),
                  "scale of %d at %d", (int)n, (int)c);
        }
    }
}

static void test_scale_rows(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/scale_rows", k->isa)) return;
    enum { COUNT = 3, TO = 80, FROM = 90 };
    for (int width = 0; width <= 70; width++)
        for (int way = 0; way < 4; way++) {
            const int resume = way & 1;
            const float *shift = way & 2 ? B : NULL;
            float expected[COUNT * TO];
            memcpy(C, before, sizeof C);
            memcpy(expected, before, sizeof expected);
            for (int r = 0; r < COUNT; r++)
                for (int c = 0; c < width; c++) {
                    float *at = &expected[r * TO + c], x = A[r * FROM + c];
                    x = (shift != NULL ? x + shift[c] : x) * 0.25f;
                    *at = (resume ? *at : 0.0f) + x;
                }
            k->scale_rows(C, TO, A, FROM, shift, 0.25f, COUNT, width, resume);
            CHECK(memcmp(C, expected, sizeof expected) == 0, "way %d of width %d", way, width);
        }
    float zero = -0.0f;
    k->scale_rows(&zero, 1, &zero, 1, NULL, 1.0f, 1, 1, 0);
    CHECK(!signbit(zero), "-0 stays");
}

static void test_fade(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/fade", k->isa)) return;
    for (int n = 0; n <= 70; n++)
        for (int resume = 0; resume < 2; resume++) {
            memcpy(C, before, sizeof C);
            k->fade(C, A, B, n, resume);
            for (int c = 0; c < 80; c++) {
                const float start = resume ? before[c] : 0.0f;
                const float expected = c < n ? fmaf(A[c], B[c], start) : before[c];
                CHECK(fabsf(C[c] - expected) <= 1e-6f, "fade of %d at %d", n, c);
            }
        }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    fill(A, ROOM, 11);
    fill(B, ROOM, 12);
    fill(before, ROOM, 13);
    for (uint32_t t = 0; locus_kernels_at(t) != NULL; t++) {
        const locus_kernels *k = locus_kernels_at(t);
        if ((k->cpu & ~locus_cpu_features()) != 0) {
            if (check_begin("kernels/%s", k->isa)) check_skip("%s: not on this CPU", k->isa);
            continue;
        }
        test_gemm(k);
        test_gemm_chain(k);
        test_gemm_times(k);
        test_pack(k);
        test_product(k);
        test_linear(k);
        test_linear_chain(k);
        test_activations(k);
        test_bad_rows(k);
        test_exp(k);
        test_softmax_end(k);
        test_streaming(k);
        test_softmax_special(k);
        test_softmax_seen(k);
        test_softmax_grad(k);
        test_drop(k);
        test_diagonals(k);
        test_lookup(k);
        test_slide(k);
        test_turn(k);
        test_turn_dots(k);
        test_rows(k);
        test_scale_rows(k);
        test_fade(k);
    }
    return check_finish("kernels");
}

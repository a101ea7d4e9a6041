/* SPDX-License-Identifier: Apache-2.0 */
/* Products with packed operands and what they do on their way out; dots, mix and pair_dots. */

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/operands.h"

static void check_untouched(const locus_product_tile *tile)
{
    for (int64_t at = 0; at < tile->rows * tile->c_stride; at++)
        if (at % tile->c_stride >= tile->columns)
            CHECK(C[at] == before[at], "a finish wrote outside at %d", (int)at);
}

/* What a product does on its way out has the bits of the pass that would do it afterwards. C
 * holds the sums. */
static void check_finishes(const locus_kernels *k, locus_product_tile *tile)
{
    static float sums[ROOM], weight[ROOM];
    float lse[16], factor[16], row_dot[16];
    for (int i = 0; i < 16; i++) {
        lse[i] = i % 5 == 4 ? -INFINITY : 3.0f + (float)i; /* above every sum */
        factor[i] = i % 3 == 0 ? 0.25f : 1.0f;
        row_dot[i] = 0.1f * (float)i;
    }
    memcpy(sums, C, sizeof sums);
    tile->lse = lse;
    tile->factor = factor;
    k->product(tile);
    for (int64_t i = 0; i < tile->rows; i++) {
        float row[256];
        memcpy(row, sums + i * tile->c_stride, (size_t)tile->columns * sizeof *row);
        k->softmax_from_lse(row, 256, 1, tile->columns, (locus_seen){0}, &lse[i], &factor[i]);
        CHECK(!memcmp(row, C + i * tile->c_stride, (size_t)tile->columns * sizeof *row),
              "weights of row %d differ from softmax_from_lse", (int)i);
    }
    check_untouched(tile);
    tile->lse = tile->factor = NULL;
    if (tile->shift != NULL) return; /* weight and shift do not meet */
    for (int64_t at = 0; at < ROOM; at++) weight[at] = at % 7 == 0 ? 0.0f : before[at];
    tile->weight = weight;
    tile->row_dot = row_dot;
    k->product(tile);
    for (int64_t i = 0; i < tile->rows; i++) {
        float row[256], weights[256] = {0};
        memcpy(row, sums + i * tile->c_stride, (size_t)tile->columns * sizeof *row);
        memcpy(weights, weight + i * tile->c_stride, (size_t)tile->columns * sizeof *row);
        k->softmax_grad(row, weights, 256, 1, tile->columns, &row_dot[i]);
        CHECK(!memcmp(row, C + i * tile->c_stride, (size_t)tile->columns * sizeof *row),
              "gradients of row %d differ from softmax_grad", (int)i);
    }
    check_untouched(tile);
}

/* Columns in two calls: the same bits, and one max_lanes of both. C and `whole` hold those of one
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
        tile.max_so_far = part;
        k->product(&tile);
    }
    CHECK(!memcmp(C, want, sizeof want), "products in two calls differ");
    for (int64_t at = 0; tile.max_lanes != NULL && at < tile.rows * LOCUS_LANES; at++)
        CHECK(tile.max_lanes[at] == whole[at], "max_lanes of two calls differs at %d", (int)at);
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
    for (int64_t at = 0; at < (tile.rows + 1) * tile.c_stride; at++) {
        const int64_t i = at / tile.c_stride, c = at % tile.c_stride;
        if (i >= tile.rows || c >= tile.columns)
            CHECK(C[at] == before[at], "wanted columns: wrote outside at %d", (int)at);
        else if (c >= from[i] - 3 && c < to[i] - 3)
            CHECK(C[at] == want[at], "wanted column %d of row %d differs", (int)c, (int)i);
    }
    memcpy(C, want, sizeof want);
}

/* A second pair of operands goes on where the first ends: the bits of one pair twice as wide. */
static void check_also(const locus_kernels *k, locus_product_tile tile, int64_t b_stride)
{
    static float both[ROOM], left[ROOM], right[ROOM], also[ROOM], want[ROOM];
    static float max_lanes[2][16 * LOCUS_LANES];
    const int64_t wide = 2 * tile.inner;
    float lse[16], factor[16];
    for (int i = 0; i < 16; i++) lse[i] = 3.0f, factor[i] = 0.5f + (float)i;
    for (int64_t i = 0; i < tile.rows; i++)
        for (int64_t j = 0; j < wide; j++)
            left[i * wide + j] = (j < tile.inner ? A : before)[i * tile.a_stride + j % tile.inner];
    for (int64_t c = 0; c < tile.columns; c++)
        for (int64_t j = 0; j < wide; j++)
            right[c * wide + j] = (j < tile.inner ? B : A)[c * b_stride + j % tile.inner];
    k->pack(also, A, b_stride, tile.columns, tile.inner, 1.0f);
    k->pack(both, right, wide, tile.columns, wide, 1.0f);
    for (int way = 0; way < 3; way++) {
        locus_product_tile one = tile;
        one.also_a = one.also_panels = NULL;
        one.a = left;
        one.a_stride = one.inner = wide;
        one.panels = both;
        one.max_lanes = way == 1 ? max_lanes[0] : NULL;
        one.lse = way == 2 ? lse : NULL;
        one.factor = way == 2 ? factor : NULL;
        locus_product_tile two = one;
        two.a = A;
        two.also_a = before;
        two.a_stride = two.also_a_stride = tile.a_stride;
        two.inner = tile.inner;
        two.panels = tile.panels;
        two.also_panels = also;
        if (way == 1) two.max_lanes = max_lanes[1];
        memcpy(C, before, sizeof C);
        k->product(&one);
        memcpy(want, C, sizeof want);
        memcpy(C, before, sizeof C);
        k->product(&two);
        CHECK(!memcmp(C, want, sizeof want), "way %d: two pairs of operands differ from one", way);
    }
    CHECK(!memcmp(max_lanes[0], max_lanes[1], sizeof max_lanes[0]),
          "max_lanes of two pairs differs");
}

/* mix has the bits of gemm; pair_dots are sums of products, by a table that descends. */
static void check_few(const locus_kernels *k, int64_t rows, int64_t inner, int64_t columns)
{
    static float mixed[ROOM], want[ROOM];
    const int64_t row = columns + 3, a_stride = inner + 2;
    memcpy(mixed, before, sizeof mixed);
    memcpy(want, before, sizeof want);
    k->mix(mixed, row, A, a_stride, B, row, LOCUS_F32, rows, inner, columns,
           (locus_prefetch_rows){B, 5, 20, columns});
    k->gemm(want, row, A, a_stride, 1, B, row, rows, inner, columns, 1);
    CHECK(!memcmp(mixed, want, sizeof mixed), "mix of %dx%dx%d differs from gemm", (int)rows,
          (int)inner, (int)columns);
    int32_t index[160];
    for (int c = 0; c < 160; c++) index[c] = c / 3;
    const float *last = B + 60 * a_stride;
    memcpy(mixed, before, sizeof mixed);
    k->pair_dots(mixed, A, a_stride, last, -a_stride, index, columns, inner, 0.5f);
    for (int64_t c = 0; c <= columns; c++) {
        double sum = (double)before[c];
        for (int64_t j = 0; j < inner && c < columns; j++)
            sum += 0.5 * (double)A[c * a_stride + j] * (double)last[j - index[c] * a_stride];
        CHECK(fabs((double)mixed[c] - sum) <= 1e-4, "pair_dots of %d at %d", (int)columns, (int)c);
    }
}

static void check_product(const locus_kernels *k, int64_t rows, int64_t inner, int64_t columns,
                          int64_t plus_stride)
{
    static float panels[ROOM], max_lanes[16 * LOCUS_LANES];
    const int64_t c_stride = columns + 3, b_stride = inner + 1, a_stride = inner + 2;
    const float *plus = plus_stride != 0 ? before + 4096 : NULL;
    const float *shift = (rows + inner) % 2 ? before + 8000 : NULL;
    memcpy(C, before, sizeof C);
    k->pack(panels, B, b_stride, columns, inner, 1.0f);
    locus_product_tile tile = {.c = C,
                               .c_stride = c_stride,
                               .a = A,
                               .a_stride = a_stride,
                               .panels = panels,
                               .rows = rows,
                               .inner = inner,
                               .columns = columns,
                               .plus = plus,
                               .plus_stride = plus_stride,
                               .shift = shift,
                               .max_lanes = columns % 2 ? max_lanes : NULL};
    k->product(&tile);
    double worst = 0.0;
    int touched = 0;
    for (int64_t at = 0; at < (rows + 1) * c_stride; at++) {
        const int64_t i = at / c_stride, c = at % c_stride;
        if (i >= rows || c >= columns) {
            touched |= memcmp(&C[at], &before[at], sizeof C[at]) != 0;
            continue;
        }
        const double first = plus != NULL ? (double)plus[i * plus_stride + c] : 0.0;
        const double second = shift != NULL ? (double)shift[i] : 0.0;
        double want = first + second, size = fabs(first) + fabs(second);
        for (int64_t j = 0; j < inner; j++) {
            const double term = (double)A[i * a_stride + j] * (double)B[c * b_stride + j];
            want += term;
            size += fabs(term);
        }
        worst = fmax(worst, fabs((double)C[at] - want) / (size + 1e-30));
    }
    CHECK(worst <= (double)(inner + 2) * FLT_EPSILON, "%dx%dx%d plus %d: error %g", (int)rows,
          (int)inner, (int)columns, (int)plus_stride, worst);
    CHECK(!touched, "%dx%dx%d wrote outside", (int)rows, (int)inner, (int)columns);
    static float other[ROOM];
    memcpy(other, before, sizeof other);
    k->dots(other, c_stride, A, a_stride, B, b_stride, LOCUS_F32, rows, inner, columns, plus,
            plus_stride, (locus_prefetch_rows){B, 3, 2, rows});
    for (int64_t at = 0; shift == NULL && at < (rows + 1) * c_stride; at++)
        CHECK(fabsf(other[at] - C[at]) <= 1e-4f, "dots differ from the product at %d", (int)at);
    check_few(k, rows, inner, columns);
    for (int64_t i = 0; columns % 2 && i < rows; i++) {
        float found = -INFINITY, want = -INFINITY;
        for (int l = 0; l < LOCUS_LANES; l++) found = fmaxf(found, max_lanes[i * LOCUS_LANES + l]);
        for (int64_t c = 0; c < columns; c++) want = fmaxf(want, C[i * c_stride + c]);
        CHECK(found == want, "max_lanes of row %d: %g, expected %g", (int)i, (double)found,
              (double)want);
    }
    float whole[16 * LOCUS_LANES];
    memcpy(whole, max_lanes, sizeof whole);
    check_two_calls(k, tile, whole);
    tile.max_lanes = NULL;
    check_wanted(k, tile);
    check_finishes(k, &tile);
    tile.weight = tile.row_dot = NULL;
    if (plus != NULL && shift == NULL && inner > 0 && columns * 2 * inner <= ROOM)
        check_also(k, tile, b_stride);
}

static void test_product(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/product", k->isa)) return;
    for (int64_t rows = 0; rows <= 13; rows++)
        for (int64_t columns = 0; columns <= 140; columns += check_sample() ? 31 : 3)
            for (int64_t inner = 0; inner <= 20; inner += 5)
                check_product(k, rows, inner, columns, (rows + columns) % 3 - 1);
}

int main(int argc, char **argv)
{
    static const kernel_test tests[] = {test_product, NULL};
    return test_kernels(argc, argv, "kernels/product", tests);
}

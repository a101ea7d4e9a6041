/* SPDX-License-Identifier: Apache-2.0 */
/* Products, and packing. */

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/operands.h"

static void check_gemm(const locus_kernels *k, int64_t rows, int64_t inner, int64_t columns,
                       int transposed, int accumulate)
{
    const int64_t c_stride = columns + 3, b_stride = columns + 5;
    const int64_t a_stride = transposed ? 1 : inner + 2, a_column = transposed ? rows + 1 : 1;
    memcpy(C, before, sizeof C);
    k->gemm(C, c_stride, A, a_stride, a_column, B, b_stride, rows, inner, columns, accumulate);
    double worst = 0.0;
    int touched = 0;
    for (int64_t at = 0; at < (rows + 1) * c_stride; at++) {
        const int64_t i = at / c_stride, c = at % c_stride;
        if (i >= rows || c >= columns) {
            touched |= memcmp(&C[at], &before[at], sizeof C[at]) != 0;
            continue;
        }
        double want = accumulate ? (double)before[at] : 0.0, size = fabs(want);
        for (int64_t j = 0; j < inner; j++) {
            const double term =
                (double)A[i * a_stride + j * a_column] * (double)B[j * b_stride + c];
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

/* gemm_factor is gemm times the factor of the row, gemm_rescale is gemm after that, bit by bit, and
 * both write nothing else. */
static void test_gemm_times(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/gemm/times", k->isa)) return;
    static float plain[ROOM];
    for (int64_t rows = 0; rows <= 20; rows++) {
        const int64_t inner = 3 * rows, columns = 5 + 4 * rows, row = columns + 3;
        const locus_prefetch_rows prefetch[2] = {{B, 5, 20, rows}, {A, 7, 33, 2 * rows}};
        memcpy(plain, before, sizeof plain);
        memcpy(C, before, sizeof C);
        k->gemm(plain, row, A, inner + 2, 1, B, row, rows, inner, columns, 0);
        k->gemm_factor(C, row, A, inner + 2, B, row, rows, inner, columns, A + 100, prefetch);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < columns; c++) plain[i * row + c] *= A[100 + i];
        CHECK(!memcmp(C, plain, sizeof C), "%dx%dx%d", (int)rows, (int)inner, (int)columns);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < columns; c++) plain[i * row + c] *= A[100 + i];
        k->gemm(plain, row, A, inner + 2, 1, B, row, rows, inner, columns, 1);
        k->gemm_rescale(C, row, A, inner + 2, B, row, rows, inner, columns, A + 100);
        CHECK(!memcmp(C, plain, sizeof C), "rescale %dx%dx%d", (int)rows, (int)inner, (int)columns);
    }
}

/* ---- packing ---- */

/* The product with unit rows gives back what was packed, transposed. */
static void check_pack(const locus_kernels *k, int64_t count, int64_t width)
{
    static float panels[ROOM], unit[ROOM];
    const int64_t to_stride = count + 3, row_stride = width + 2;
    memset(unit, 0, sizeof unit);
    for (int64_t i = 0; i < width; i++) unit[i * width + i] = 1.0f;
    memcpy(C, before, sizeof C);
    k->pack(panels, A, row_stride, count, width, 0.5f);
    k->product(&(locus_product_tile){.c = C,
                                     .c_stride = to_stride,
                                     .a = unit,
                                     .a_stride = width,
                                     .panels = panels,
                                     .rows = width,
                                     .inner = width,
                                     .columns = count});
    for (int64_t at = 0; at < (width + 1) * to_stride; at++) {
        const int64_t c = at / to_stride, r = at % to_stride;
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

int main(int argc, char **argv)
{
    static const kernel_test tests[] = {test_gemm, test_gemm_chain, test_gemm_times, test_pack,
                                        NULL};
    return test_kernels(argc, argv, "kernels/gemm", tests);
}

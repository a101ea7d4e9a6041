/* SPDX-License-Identifier: Apache-2.0 */
/* Rotations. */

#include <math.h>
#include <string.h>

#include "kernels/operands.h"

static void test_turn(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/turn", k->isa)) return;
    for (int pairs = 0; pairs <= 40; pairs++)
        for (int interleaved = 0; interleaved < 2; interleaved++) {
            float rows[2 * 96], turned[96], *row = rows;
            k->turn(rows, 96, A, 100, B, pairs, interleaved, 1.0f, 2, 96, (locus_prefetch_rows){0});
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
            k->turn(row, 0, row, 0, B, pairs, interleaved, -1.0f, 1, 96, (locus_prefetch_rows){0});
            for (int t = 0; t < pairs; t++) { /* the transpose: cos^2 + sin^2 times the row */
                const int x = interleaved ? 2 * t : t;
                const float size = B[t] * B[t] + B[pairs + t] * B[pairs + t];
                CHECK(fabsf(row[x] - size * A[x]) < 1e-4f, "back, %d", t);
            }
            for (int c = 2 * pairs; c < 96; c++)
                CHECK(turned[c] == A[c], "column %d of %d pairs was touched", c, pairs);
        }
}

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
                const locus_prefetch_rows ahead = {B, 5, 64, count};
                float got[MOST + 1], want[MOST + 1];
                got[count] = want[count] = 7.0f;
                k->turn(turned, ROW, A, ROW, B, pairs, interleaved, 1.0f, count, width,
                        (locus_prefetch_rows){0});
                k->dots(want, MOST, A + 3, 0, turned, ROW, LOCUS_F32, 1, width, count, plus, 0,
                        ahead);
                k->turn_dots(got, A + 3, A, ROW, LOCUS_F32, B, pairs, interleaved, count, plus,
                             ahead);
                CHECK(!memcmp(got, want, (size_t)(count + 1) * sizeof *got),
                      "turn_dots of %d rows of %d pairs differs", count, pairs);
            }
}

int main(int argc, char **argv)
{
    static const kernel_test tests[] = {test_turn, test_turn_dots, NULL};
    return test_kernels(argc, argv, "kernels/turn", tests);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups by an index, folds, sums along diagonals, and strips that slide. */

#include <limits.h>
#include <math.h>
#include <string.h>

#include "kernels/operands.h"

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
                                  .y_stride = ROW,
                                  .first = FIRST,
                                  .index = index,
                                  .x = B,
                                  .x_stride = width + 1,
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
            want[at] += (double)B[i * fold.x_stride + j];
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
            const int t_stride = columns + 2, distances = rows > 0 ? rows + columns - 1 : 0;
            double want[128];
            for (int y = 0; y < 128; y++) want[y] = (double)before[y];
            for (int i = 0; i < rows; i++)
                for (int j = 0; j < columns; j++)
                    want[rows - 1 - i + j] += (double)A[i * t_stride + j];
            memcpy(C, before, sizeof C);
            k->diagonals(C, A, t_stride, rows, columns);
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
                            table.factor * A[(origin[j - i] - FIRST) * table.row_stride + j];
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

int main(int argc, char **argv)
{
    static const kernel_test tests[] = {test_diagonals, test_lookup, test_slide, NULL};
    return test_kernels(argc, argv, "kernels/tables", tests);
}

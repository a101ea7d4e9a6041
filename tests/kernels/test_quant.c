/* SPDX-License-Identifier: Apache-2.0 */
/* Products of integers, every table, against sums in 64 bits: extreme values, every height and width (QL)
 * of a tile, bits alike on all instruction sets. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "core/random.h"
#include "kernels/quant_row.h"
#include "support/check.h"

enum { MOST_INPUTS = 400, MOST_PADDED = 512, PANEL = LOCUS_QUANT_PANEL, EXTREMES = 5, PAD = 3 };

static const char *const kind_names[LOCUS_QUANT_KINDS] = {"i16", "w8", "h8"};

typedef struct setup {
    locus_quant_kind kind;
    int64_t inputs, padded, rows, columns, panels, groups;
    int32_t a[LOCUS_QUANT_ROWS][MOST_PADDED]; /* integers of rows: of H x for H8 */
    int32_t w[LOCUS_QUANT_COLUMNS][MOST_PADDED];
    float x[LOCUS_QUANT_ROWS][MOST_PADDED];
    uint8_t weights[LOCUS_QUANT_COLUMNS * MOST_PADDED * 2];
    float scales[LOCUS_QUANT_COLUMNS * MOST_PADDED / 64];
    float bias[LOCUS_QUANT_COLUMNS];
} setup;

static uint64_t state;
static uint32_t next_random(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}
static int32_t between(int32_t low, int32_t high)
{
    return low + (int32_t)(next_random() % (uint32_t)(high - low + 1));
}

/* 0: random; 1: all at the upper end; 2: all at the lower; 3: turns; 4: rows up, weights down. */
static int32_t extreme(int how, int32_t least, int32_t most, int64_t k, int is_weight)
{
    switch (how) {
    case 0: return between(least, most);
    case 1: return most;
    case 2: return least;
    case 3: return k % 2 == 0 ? most : least;
    default: return is_weight ? least : most;
    }
}

/* Weights of 16 bits at the bound: sum |n| 16383 < 2^31 in a group; every other column has it in
 * four weights of 32767. */
static int32_t pair_weight(int how, int64_t column, int64_t k)
{
    if (column % 2 == 0) return extreme(how, -1023, 1023, k, 1);
    const int32_t sign = extreme(how, -1, 1, k, 1) < 0 ? -1 : 1;
    return k % 128 < 4 ? sign * 32766 : 0;
}

static void store_weight(setup *s, int64_t c, int64_t k, int32_t n)
{
    uint8_t *panel = s->weights + c / PANEL * locus_quant_panel_bytes(s->kind, s->padded);
    const int64_t o = c % PANEL;
    const int16_t pair = (int16_t)n;
    s->w[c][k] = n;
    if (s->kind == LOCUS_QUANT_I16)
        memcpy(panel + (k / 2 * PANEL + o) * 4 + k % 2 * 2, &pair, sizeof pair);
    else if (s->kind == LOCUS_QUANT_W8)
        panel[(k / 2 * PANEL + o) * 2 + k % 2] = (uint8_t)(int8_t)n;
    else
        panel[(k / 4 * PANEL + o) * 4 + k % 4] = (uint8_t)(n + 128);
}

/* Rows of floats whose integers are known: the largest of a row is the largest there is. */
static void fill_rows(setup *s, int how)
{
    const int32_t most = s->kind == LOCUS_QUANT_H8 ? LOCUS_QUANT_H8_MOST : LOCUS_QUANT_I16_MOST;
    const int64_t count = s->kind == LOCUS_QUANT_H8 ? s->padded : s->inputs;
    memset(s->a, 0, sizeof s->a);
    for (int64_t i = 0; i < s->rows; i++) {
        for (int64_t k = 0; k < count; k++) s->a[i][k] = extreme(how, -most, most, k, 0);
        s->a[i][0] = how == 2 ? -most : most;
        for (int64_t k = 0; k < s->padded; k++) s->x[i][k] = (float)s->a[i][k];
        for (int64_t k = 0; s->kind == LOCUS_QUANT_H8 && k < s->padded; k += LOCUS_QUANT_BLOCK) {
            quant_transform(s->x[i] + k); /* H H = 128: its transform is a */
            for (int64_t j = k; j < k + LOCUS_QUANT_BLOCK; j++) s->x[i][j] /= LOCUS_QUANT_BLOCK;
        }
    }
}

static setup *new_setup(locus_quant_kind kind, int64_t inputs, int64_t rows, int64_t columns,
                        int how)
{
    setup *s = calloc(1, sizeof *s);
    if (s == NULL) exit(2);
    *s = (setup){.kind = kind, .inputs = inputs, .rows = rows, .columns = columns};
    s->padded = locus_quant_padded(inputs);
    if (kind == LOCUS_QUANT_H8) s->inputs = s->padded;
    s->groups = locus_quant_groups(kind, s->padded);
    s->panels = (columns + PANEL - 1) / PANEL;
    fill_rows(s, how);
    for (int64_t c = 0; c < s->panels * PANEL; c++)
        for (int64_t k = 0; k < s->padded; k++)
            store_weight(s, c, k,
                         kind == LOCUS_QUANT_I16 ? pair_weight(how, c, k)
                                                 : extreme(how, -128, 127, k, 1));
    for (int64_t i = 0; i < s->panels * PANEL * s->groups; i++)
        s->scales[i] = (float)between(1, 1000) * 0x1p-14f;
    for (int64_t c = 0; c < columns; c++) s->bias[c] = (float)between(-1000, 1000) * 0x1p-3f;
    return s;
}

/* The formula, sums in 64 bits; `most` becomes the largest of them. */
static float expected(const setup *s, int64_t i, int64_t c, int biased, float r, int64_t *most)
{
    const int64_t group = s->padded / s->groups;
    const float *scales = s->scales + c / PANEL * PANEL * s->groups + c % PANEL;
    float total = 0.0f;
    for (int64_t g = 0; g < s->groups; g++) {
        int64_t sum = 0;
        for (int64_t k = g * group; k < (g + 1) * group; k++)
            sum += (int64_t)s->a[i][k] * (int64_t)s->w[c][k];
        if (llabs(sum) > *most) *most = llabs(sum);
        const float part = (float)sum * scales[g * PANEL];
        total = total + part;
    }
    const float scaled = total * r;
    return biased ? scaled + s->bias[c] : scaled;
}

/* Quantize the rows and multiply them by the columns; y has PAD numbers more in a row. */
static void multiply(const locus_quant_kernels *q, const setup *s, int biased, float *y,
                     float r[LOCUS_QUANT_ROWS])
{
    const int64_t bytes = locus_quant_row_bytes(s->padded);
    uint8_t *integers = aligned_alloc(64, (size_t)((LOCUS_QUANT_ROWS * bytes + 63) / 64 * 64));
    float *room = malloc((size_t)s->padded * sizeof *room);
    int32_t start[LOCUS_QUANT_ROWS];
    if (integers == NULL || room == NULL) exit(2);
    memset(integers, 0x55, (size_t)(LOCUS_QUANT_ROWS * bytes));
    for (int64_t i = 0; i < s->rows; i++)
        r[i] = q->row[s->kind](integers + i * bytes, &start[i], room, s->x[i], s->inputs);
    const locus_quant_tile t = {.y = y,
                                .y_row = s->columns + PAD,
                                .rows = s->rows,
                                .columns = s->columns,
                                .x = integers,
                                .x_row = bytes,
                                .x_scale = r,
                                .x_start = start,
                                .weights = s->weights,
                                .scales = s->scales,
                                .bias = biased ? s->bias : NULL,
                                .padded = s->padded};
    q->multiply[s->kind](&t);
    free(room), free(integers);
}

static void check_tile(const locus_quant_kernels *q, locus_quant_kind kind, int64_t inputs,
                       int64_t rows, int64_t columns, int how, int64_t *most)
{
    setup *s = new_setup(kind, inputs, rows, columns, how);
    float y[LOCUS_QUANT_ROWS * (LOCUS_QUANT_COLUMNS + PAD)], r[LOCUS_QUANT_ROWS];
    const int biased = (int)(inputs % 2);
    for (size_t i = 0; i < sizeof y / sizeof *y; i++) y[i] = -77.0f;
    multiply(q, s, biased, y, r);
    for (int64_t i = 0; i < rows; i++) {
        CHECK(r[i] == 1.0f, "scale of row %d: %a", (int)i, (double)r[i]);
        for (int64_t c = 0; c < columns; c++) {
            const float want = expected(s, i, c, biased, r[i], most);
            const float got = y[i * (columns + PAD) + c];
            CHECK(!memcmp(&want, &got, sizeof want), "[%d, %d] of %d x %d x %d: %a, expected %a",
                  (int)i, (int)c, (int)rows, (int)columns, (int)inputs, (double)got, (double)want);
        }
        for (int64_t c = columns; c < columns + PAD; c++)
            CHECK(y[i * (columns + PAD) + c] == -77.0f, "written behind row %d", (int)i);
    }
    free(s);
}

static void test_tiles(const locus_quant_kernels *q)
{
    static const int64_t inputs[] = {1, 7, 64, 127, 128, 129, 300, MOST_INPUTS};
    for (int kind = 0; kind < LOCUS_QUANT_KINDS; kind++) {
        int64_t most = 0;
        if (!check_begin("kernels/%s/quant/%s/tiles", q->isa, kind_names[kind])) continue;
        for (int how = 0; how < EXTREMES; how++)
            for (size_t n = 0; n < sizeof inputs / sizeof *inputs; n++)
                for (int64_t rows = 1; rows <= LOCUS_QUANT_ROWS; rows++)
                    for (int64_t c = 1 + how; c <= LOCUS_QUANT_COLUMNS; c += 7)
                        check_tile(q, (locus_quant_kind)kind, inputs[n], rows, c, how, &most);
        check_tile(q, (locus_quant_kind)kind, MOST_INPUTS, 6, LOCUS_QUANT_COLUMNS, 1, &most);
        CHECK(kind != LOCUS_QUANT_I16 || most > INT64_C(2145000000),
              "sums reach %lld alone, not the bound", (long long)most);
        CHECK(most <= INT32_MAX, "sums of %lld do not fit", (long long)most);
    }
}

/* Rows of any floats have the integers and scales that portable C gives them: the same products. */
static void test_rows(const locus_quant_kernels *q)
{
    const locus_quant_kernels *plain = locus_quant_kernels_at(0);
    for (int kind = 0; kind < LOCUS_QUANT_KINDS; kind++) {
        if (!check_begin("kernels/%s/quant/%s/rows", q->isa, kind_names[kind])) continue;
        for (int64_t inputs = 1; inputs <= MOST_INPUTS; inputs += 13) {
            setup *s = new_setup((locus_quant_kind)kind, inputs, 6, 33, 0);
            float y[2][6 * (33 + PAD)], r[2][LOCUS_QUANT_ROWS];
            s->inputs = inputs;
            for (int64_t i = 0; i < 6; i++)
                for (int64_t k = 0; k < s->padded; k++)
                    s->x[i][k] = k < inputs ? ldexpf((float)between(-9999, 9999), between(-30, 30))
                                            : NAN; /* not read */
            memset(y, 0, sizeof y);
            multiply(q, s, 1, y[0], r[0]);
            multiply(plain, s, 1, y[1], r[1]);
            CHECK(!memcmp(r[0], r[1], sizeof r[0]), "scales differ from portable C");
            CHECK(!memcmp(y[0], y[1], sizeof y[0]), "products differ from portable C");
            free(s);
        }
    }
}

/* What cannot be quantized says so; zeros have scale 0. */
static void test_refused(const locus_quant_kernels *q)
{
    static const float special[] = {(float)NAN, (float)INFINITY, -(float)INFINITY, 1e31f, 1e-31f};
    for (int kind = 0; kind < LOCUS_QUANT_KINDS; kind++) {
        if (!check_begin("kernels/%s/quant/%s/refused", q->isa, kind_names[kind])) continue;
        for (int which = 0; which < 6; which++)
            for (int64_t inputs = 1; inputs < 150; inputs += 37) {
                float x[MOST_PADDED] = {0}, room[MOST_PADDED];
                uint8_t integers[2 * MOST_PADDED + 64];
                int32_t start = 7;
                if (which < 5) x[inputs - 1] = special[which];
                memset(integers, 0x55, sizeof integers);
                const float r = q->row[kind](integers, &start, room, x, inputs);
                int zeros = start == 0;
                for (int64_t k = 0; k < locus_quant_padded(inputs); k++) zeros &= integers[k] == 0;
                CHECK(zeros, "integers of a row of %g are not 0", (double)x[inputs - 1]);
                CHECK(which < 5 ? isnan(r) : r == 0.0f, "scale of %g: %g", (double)x[inputs - 1],
                      (double)r);
            }
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (uint32_t i = 0; locus_quant_kernels_at(i) != NULL; i++) {
        const locus_quant_kernels *q = locus_quant_kernels_at(i);
        if ((q->cpu & ~locus_cpu_integer_features()) != 0) {
            if (check_begin("kernels/%s/quant", q->isa)) check_skip("not on this CPU");
            continue;
        }
        test_tiles(q);
        test_rows(q);
        test_refused(q);
    }
    return check_finish("kernels/quant");
}

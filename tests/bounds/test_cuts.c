/* SPDX-License-Identifier: Apache-2.0 */
/* Every constant that cuts attention into pieces (constants.txt), crossed by one in both
 * directions at two of its multiples, by every scheme, against the oracle. */

#include <inttypes.h>
#include <locus/runtime.h>
#include <stdio.h>
#include <string.h>

#include "bounds/constants.h"
#include "contract/variants.h"
#include "support/check.h"
#include "support/judge.h"
#include "support/views.h"

/* What a constant counts. */
typedef enum axis { QUERIES, KEYS, WIDTH, VALUE_WIDTH, BATCH, HEADS, SHARING } axis;

typedef struct cut {
    const char *name; /* as in constants.txt                                    */
    axis axis;        /* the extent that takes value * times * {1, 2} + {-1, 0, 1} */
    int64_t times;
    test_spec shape;    /* the other extents                                      */
    const char *scheme; /* NULL: all take their turns                             */
    const char *path;   /* NULL: by the shapes                                    */
    int forward_only;
} cut;

/* clang-format off */
static const cut cuts[] = {
    /* the rows path */
    {"attention/ROWS_PATH_QUERIES", QUERIES, 1, {.B = 1, .H = 2, .Tk = 70, .D = 4}, NULL, NULL, 0},
    {"attention/ROWS_PATH_QUERIES", QUERIES, 1, {.B = 2, .H = 2, .Tk = 200, .D = 4}, NULL, "rows", 1},
    {"attention/ROWS_PATH_KEYS", KEYS, 1, {.B = 1, .H = 2, .Tq = 3, .D = 6}, NULL, NULL, 1},
    {"attention/SPLIT_KEYS", KEYS, 1, {.B = 1, .H = 1, .Tq = 2, .D = 4}, NULL, NULL, 1},
    {"attention/SHARED_SPLIT_KEYS", KEYS, 1, {.B = 2, .H = 2, .Tq = 1, .D = 4}, NULL, NULL, 1},
    {"attention/MAX_SPLITS", KEYS, 1024, {.B = 1, .H = 2, .Tq = 1, .D = 2}, "rope", NULL, 1},
    {"attention/MAX_GROUP", SHARING, 1, {.B = 1, .Tq = 2, .Tk = 150, .D = 4}, NULL, NULL, 1},
    {"attention/BURST", KEYS, 1, {.B = 1, .H = 1, .Tq = 2, .D = 5, .Dv = 18}, NULL, NULL, 1},
    /* tiles */
    {"attention/SHORT_KEYS", KEYS, 1, {.B = 1, .H = 1, .Tq = 75, .D = 4}, NULL, NULL, 0},
    {"attention/SHORT_ROWS", QUERIES, 1, {.B = 1, .H = 1, .Tk = 100, .D = 4}, NULL, NULL, 0},
    {"attention/FORWARD_KEYS", KEYS, 1, {.B = 1, .H = 1, .Tq = 50, .D = 4}, NULL, NULL, 0},
    {"attention/FORWARD_ROWS", QUERIES, 1, {.B = 1, .H = 1, .Tk = 300, .D = 4}, NULL, NULL, 0},
    {"attention/BAND_ROWS", QUERIES, 1, {.B = 1, .H = 1, .Tk = 70, .D = 4}, NULL, NULL, 0},
    {"attention/KEY_SIDE_TILE", QUERIES, 1, {.B = 1, .H = 1, .Tk = 250, .D = 4}, "deberta", NULL, 0},
    {"attention/KEY_SIDE_TILE", KEYS, 1, {.B = 1, .H = 1, .Tq = 100, .D = 4}, "relative_key_query", NULL, 0},
    {"attention/MAX_TILE_ROWS", QUERIES, 1, {.B = 1, .H = 1, .Tk = 200, .D = 4}, NULL, NULL, 0},
    {"attention/UNFETCHED", QUERIES, 1, {.B = 1, .H = 2, .Tk = 20, .D = 4}, NULL, NULL, 0},
    {"attention/UNFETCHED", KEYS, 1, {.B = 2, .H = 2, .Tq = 20, .D = 4}, NULL, NULL, 0},
    {"attention/RUN_MIN", KEYS, 1, {.B = 1, .H = 1, .Tq = 70, .D = 4}, NULL, NULL, 0},
    /* backward */
    {"attention/BACKWARD_ROWS", QUERIES, 1, {.B = 1, .H = 1, .Tk = 60, .D = 4}, NULL, NULL, 0},
    {"attention/BACKWARD_KEYS", KEYS, 1, {.B = 1, .H = 1, .Tq = 100, .D = 4}, NULL, NULL, 0},
    {"attention/BACKWARD_GAIN_KEYS", KEYS, 1, {.B = 1, .H = 1, .Tq = 100, .D = 4}, "xpos", NULL, 0},
    {"attention/GROUP_KEYS", KEYS, 1, {.B = 1, .H = 1, .Tq = 200, .D = 2}, NULL, NULL, 0},
    {"attention/MAX_GROUP", QUERIES, 96, {.B = 1, .H = 1, .Tk = 800, .D = 2}, "none", NULL, 0},
    {"attention/CHUNK_ROWS", QUERIES, 1, {.B = 1, .H = 1, .Tk = 21, .D = 4}, NULL, NULL, 0},
    {"attention/BACKWARD_TASKS", HEADS, 1, {.B = 1, .Hk = 1, .Tq = 390, .Tk = 9, .D = 4}, "t5", NULL, 0},
    {"attention/MAX_SLOTS", BATCH, 1, {.H = 1, .Tq = 4, .Tk = 9, .D = 4}, NULL, NULL, 0},
    {"attention/MAX_SLOTS", HEADS, 1, {.B = 1, .Hk = 1, .Tq = 4, .Tk = 9, .D = 4}, NULL, NULL, 0},
    {"attention/REDUCE_ROWS", KEYS, 1, {.B = 2, .H = 2, .Hk = 1, .Tq = 11, .D = 4}, NULL, NULL, 0},
    {"attention/REDUCE_ROWS", QUERIES, 1, {.B = 1, .H = 2, .Hk = 1, .Tk = 23, .D = 4}, NULL, NULL, 0},
    /* kernels */
    {"kernels/LOCUS_LANES", KEYS, 1, {.B = 1, .H = 1, .Tq = 15, .D = 4}, NULL, NULL, 0},
    {"kernels/LOCUS_LANES", WIDTH, 1, {.B = 1, .H = 2, .Tq = 13, .Tk = 20}, NULL, NULL, 0},
    {"kernels/LOCUS_LANES", VALUE_WIDTH, 1, {.B = 1, .H = 2, .Tq = 13, .Tk = 20, .D = 4}, NULL, NULL, 0},
    {"kernels/LOCUS_LANES", WIDTH, 1, {.B = 1, .H = 2, .Tq = 2, .Tk = 20}, NULL, NULL, 0},
    {"kernels/LOCUS_LANES", VALUE_WIDTH, 1, {.B = 1, .H = 2, .Tq = 2, .Tk = 20, .D = 4}, NULL, NULL, 0},
    {"kernels/LOCUS_PANEL", KEYS, 1, {.B = 1, .H = 1, .Tq = 20, .D = 6}, NULL, NULL, 0},
    {"kernels/LOCUS_PANEL", WIDTH, 1, {.B = 1, .H = 1, .Tq = 14, .Tk = 17}, NULL, NULL, 0},
    {"kernels/LOCUS_PANEL", VALUE_WIDTH, 1, {.B = 1, .H = 1, .Tq = 14, .Tk = 17, .D = 4}, NULL, NULL, 0},
    {"kernels/VL", KEYS, 1, {.B = 1, .H = 1, .Tq = 9, .D = 4}, NULL, NULL, 0},
    {"kernels/SUM_COLUMNS", KEYS, 1, {.B = 1, .H = 1, .Tq = 9, .D = 4}, NULL, NULL, 0},
    {"kernels/GEMM_ROWS", QUERIES, 1, {.B = 1, .H = 1, .Tk = 30, .D = 4}, NULL, "tiles", 0},
    {"kernels/LOCUS_REGISTER_ROWS", QUERIES, 1, {.B = 1, .H = 1, .Tk = 40, .D = 6}, NULL, "tiles", 0},
    {"kernels/GEMM_VECTORS", KEYS, 16, {.B = 1, .H = 1, .Tq = 10, .D = 4}, NULL, NULL, 0},
    {"kernels/BLOCK", WIDTH, 1, {.B = 1, .H = 1, .Tq = 3, .Tk = 33}, NULL, NULL, 0},
    {"kernels/VL", KEYS, 2, {.B = 1, .H = 1, .Tq = 9, .D = 4}, "shaw", NULL, 0}, /* DROP_COLUMNS */
    {"kernels/GEMM_ROWS", QUERIES, 1, {.B = 1, .H = 1, .Tk = 30, .D = 4}, "shaw", NULL, 0}, /* DROP_ROWS */
    {"schemes/FAR", KEYS, 1, {.B = 1, .H = 2, .Tq = 2, .D = 2}, "kerple", NULL, 0},
    {"schemes/RUN", KEYS, 17, {.B = 1, .H = 2, .Tq = 2, .D = 2}, "kerple", NULL, 0},
};
/* clang-format on */

static void set_extent(test_spec *shape, axis which, int64_t value)
{
    int64_t *const extents[] = {&shape->Tq, &shape->Tk, &shape->D, &shape->Dv,
                                &shape->B,  &shape->H,  &shape->H};
    *extents[which] = value;
    if (which == SHARING) shape->Hk = 1;
}

static const char *isa_of(size_t number)
{
    size_t count = 0;
    while (locus_isa_name(count) != NULL && locus_isa_available(locus_isa_name(count))) count++;
    return locus_isa_name(number % count);
}

static void judge(const cut *c, const test_variant *v, test_spec shape, const char *isa)
{
    test_problem *p = test_variant_problem(v, shape);
    if (p == NULL) return; /* an odd width that is turned, TUPE with more queries than keys */
    if (check_begin("bounds/%s/%s/%s/B%" PRId64 "H%" PRId64 "q%" PRId64 "k%" PRId64 "d%" PRId64
                    "v%" PRId64,
                    c->name, v->name, isa, p->spec.B, p->spec.H, p->spec.Tq, p->spec.Tk, p->spec.D,
                    p->spec.Dv)) {
        p->config.isa = isa;
        p->config.path = c->path;
        test_calm(p);
        test_judge(p, &(test_manner){.forward_only = c->forward_only});
    }
    test_problem_free(p);
}

/* A quarter of the variants each time, another one at the next place. */
static void cross_value(const cut *c, int64_t value, size_t place)
{
    for (int64_t multiple = 1; multiple <= 2; multiple++)
        for (int64_t step = -1; step <= 1; step++, place++) {
            test_spec shape = c->shape;
            set_extent(&shape, c->axis, multiple * value + step);
            const size_t stride = c->scheme != NULL ? 1
                                  : check_sample()  ? 16
                                  : check_full()    ? 1
                                                    : 4;
            for (size_t i = place % stride; i < TEST_VARIANTS; i += stride)
                if (c->scheme == NULL || strcmp(test_variants[i].scheme, c->scheme) == 0)
                    judge(c, &test_variants[i], shape, isa_of(place + i));
        }
}

static void cross(const cut *c, size_t number)
{
    int64_t values[8];
    const size_t count = constant_values(c->name, values, 8);
    for (size_t i = 0; i < count; i++) cross_value(c, values[i] * c->times, number + i);
}

/* Tall tiles of TALL_ROWS rows where the keys and values of a head are more than L2_FLOATS floats
 * and there are TASKS_PER_THREAD tiles for each thread. That is much work: few cases, forward,
 * against the oracle alone. */
static void test_tall(void)
{
    const int64_t D = 128, keys = constant_value("attention/L2_FLOATS") / (2 * D);
    static const test_variant variants[] = {{"none", "none", "causal=1", NULL, NULL},
                                            {"shaw", "shaw", "clip_left=9 clip_right=70", NULL,
                                             NULL}};
    if (check_sample()) return;
    for (int64_t step = 0; step <= 1; step++)
        for (size_t v = 0; v < 2; v++) {
            if (!check_begin("bounds/tall/%s/k%" PRId64, variants[v].name, keys + step)) continue;
            test_problem *p = test_variant_problem(
                &variants[v], (test_spec){.B = 2, .H = 4, .Tq = 193, .Tk = keys + step, .D = D});
            test_judge(p, &(test_manner){.forward_only = 1, .trust_oracle = 1});
            test_problem_free(p);
        }
}

/* A head's copied keys stay up to KEPT_KEY_FLOATS, a table stays packed up to PACKED_TABLE_FLOATS:
 * both are crossed by their number of rows. */
static void test_kept(void)
{
    const int64_t D = 256, keys = constant_value("attention/KEPT_KEY_FLOATS") / D;
    const int64_t rows = constant_value("attention/PACKED_TABLE_FLOATS") / 512;
    if (check_sample()) return;
    for (int64_t step = -1; step <= 1; step++)
        if (check_begin("bounds/kept-keys/k%" PRId64, keys + step)) {
            const test_variant plain = {"none", "none", NULL, NULL, NULL};
            test_problem *p = test_variant_problem(
                &plain, (test_spec){.B = 1, .H = 2, .Hk = 1, .Tq = 12, .Tk = keys + step, .D = D});
            /* heads inside tokens: rows far apart are copied */
            test_views *views = test_views_new(p, TEST_VIEWS_GAPS, (uint64_t)(step + 5));
            test_judge(p, &(test_manner){.trust_oracle = 1});
            test_problem_free(p);
            test_views_free(views);
        }
    for (int64_t step = -64; step <= 64; step += 64)
        if (check_begin("bounds/packed-table/%" PRId64, rows + step)) {
            char settings[64];
            snprintf(settings, sizeof settings, "clip_left=%" PRId64 " clip_right=%" PRId64,
                     (rows + step) / 2, (rows + step) / 2 - 1);
            const test_variant wide = {"shaw", "shaw", settings, NULL, "rel_v"};
            test_problem *p = test_variant_problem(
                &wide, (test_spec){.B = 1, .H = 1, .Tq = 60, .Tk = 700, .D = 512, .Dv = 4});
            test_judge(p, &(test_manner){.trust_oracle = 1});
            test_problem_free(p);
        }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_tall();
    test_kept();
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) cross(&cuts[i], i);
    return check_finish("bounds/cuts");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Masks that hide whole tiles, panels and rows, which attention leaves out: against the oracle. */

#include <stdlib.h>
#include <string.h>

#include "attention/cuts.h"
#include "contract/variants.h"
#include "support/check.h"
#include "support/judge.h"

/* Is pair (m, n) of head h shown? */
typedef int (*pattern)(int64_t m, int64_t n, int64_t h);

static int documents(int64_t m, int64_t n, int64_t h) { return h < 9 && m / 64 == n / 64; }
/* of odd lengths, so that register tiles and panels hold the ends of two */
static int odd_documents(int64_t m, int64_t n, int64_t h) { return h < 9 && m / 71 == n / 71; }
/* ranges that fall with the row */
static int backwards(int64_t m, int64_t n, int64_t h) { return h < 9 && m / 70 + n / 70 == 4; }
/* a hole in the middle of rows and of columns, and rows that see one far key */
static int holes(int64_t m, int64_t n, int64_t h)
{
    if (m % 97 == 5) return n == 299;
    return (m < 100 || m > 150) && (n < 64 || n > 192 + 30 * h);
}
static int nothing(int64_t m, int64_t n, int64_t h) { return m == 17 && n == 200 && h == 0; }

static const struct {
    const char *name;
    pattern shown;
} patterns[] = {{"documents", documents},
                {"odd-documents", odd_documents},
                {"backwards", backwards},
                {"holes", holes},
                {"nothing", nothing}};

static const test_variant masked[] = {
    {"none", "none", NULL, "mask:1H", NULL},
    {"causal", "none", "causal=1", "mask:11", NULL},
    {"window-key-mask", "none", "window_left=80 window_right=30", "mask:B1 key_mask", NULL},
    {"dropout-sink", "none", "dropout=0.2 dropout_seed=5", "mask:11 sink dlse", NULL},
    {"dense", "none", "softcap=3", "mask:11 bias_dense:11", NULL},
    {"t5", "t5", "buckets=16 max_distance=40", "mask:11", NULL},
    {"shaw", "shaw", "clip_left=70 clip_right=90", "mask:1H", NULL},
    {"deberta", "deberta", "span=8 buckets=8 max_distance=20", "mask:11", NULL},
    {"transformer_xl", "transformer_xl", NULL, "mask:11", NULL},
    {"tupe", "tupe", NULL, "mask:11", NULL},
    {"rope", "rope", "pairing=half", "mask:BH", NULL},
    /* of the default base: with scale_base=64, logits of keys 272 to the right are 3.5^(272/64) = 206
     * times as large, and so is what rounding adds to them; out is then off by 6.3e-6 (tolerance
     * 5e-6), by the same bits without a mask */
    {"xpos", "xpos", NULL, "mask:11", NULL},
    {"fire", "fire", "causal=1", "mask:11", NULL},
};

static void fill(const test_problem *p, pattern shown)
{
    const locus_tensor *mask = &p->in[0].mask;
    const int64_t Tq = p->spec.Tq, Tk = p->spec.Tk;
    for (int64_t i = 0; i < locus_tensor_elements(mask); i++)
        ((uint8_t *)mask->data)[i] = (uint8_t)shown(i / Tk % Tq, i % Tk, i / Tk / Tq);
}

/* Around the ends of tiles, which masks make MASK_ROWS rows high, MASK_KEY_SIDE_TILE with a table on
 * the key side; and long enough for groups of query tiles and several key tiles. */
static const struct {
    int64_t queries, keys;
    int all; /* patterns and variants; else some of them */
} sizes[] = {{300, 300, 1},
             {7, 300, 1},
             {MASK_ROWS - 1, SHORT_KEYS + 1, 0},
             {2 * MASK_ROWS + 1, SHORT_KEYS, 0},
             {MASK_KEY_SIDE_TILE + 1, 3 * MASK_KEY_SIDE_TILE - 1, 0},
             {2 * MASK_KEY_SIDE_TILE, 2 * MASK_KEY_SIDE_TILE + 1, 0},
             {GROUP_KEYS + 100, GROUP_KEYS + 100, 0}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void test_hidden(size_t variant, size_t which, size_t size)
{
    const int64_t queries = sizes[size].queries, keys = sizes[size].keys;
    if (!sizes[size].all && (variant + which + size) % 4 != 0) return;
    if (!check_begin("hidden/%s/%s/%d-%d", patterns[which].name, masked[variant].name, (int)queries,
                     (int)keys))
        return;
    const int64_t heads = queries > 400 ? 1 : 2;
    test_problem *p = test_variant_problem(
        &masked[variant], (test_spec){.B = heads, .H = heads, .Tq = queries, .Tk = keys, .D = 8});
    if (p == NULL) return; /* TUPE with more queries than keys */
    fill(p, patterns[which].shown);
    test_judge(p, &(test_manner){0});
    test_problem_free(p);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t v = 0; v < sizeof masked / sizeof *masked; v += (check_sample() ? 3 : 1))
        for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++)
            for (size_t size = 0; size < (check_sample() ? 2 : SIZES); size++)
                test_hidden(v, k, size);
    return check_finish("hidden");
}

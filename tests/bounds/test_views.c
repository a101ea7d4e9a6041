/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on views of every kind: axes in any order, gaps, masks with steps, strides of 0,
 * offsets beyond 2^31; and what the mask of each batch entry hides. Against the oracle, which
 * sees dense tensors. */

#include <locus/runtime.h>
#include <math.h>

#include "contract/variants.h"
#include "support/check.h"
#include "support/judge.h"
#include "support/views.h"

static void judge(test_problem *p, int kind, uint64_t seed, test_manner manner)
{
    test_views *views = test_views_new(p, kind, seed);
    if (views == NULL) {
        check_skip("the system gives no sparse address space");
    } else {
        test_judge(p, &manner);
        const char *damaged = test_views_damaged(views);
        CHECK(damaged == NULL, "memory beside %s was written", damaged);
    }
    test_problem_free(p);
    test_views_free(views);
}

/* A variant with whatever masks and dense bias it does not have itself. */
static test_variant with_masks(const test_variant *v, size_t number)
{
    static const char *const with[] = {"key_mask",
                                       "mask:BH",
                                       "mask:1H key_mask",
                                       "mask:B1",
                                       "bias_dense:B1 mask:11",
                                       "bias_dense:1H key_mask"};
    test_variant masked = *v;
    if (v->with == NULL) masked.with = with[number % 6];
    return masked;
}

static const char *isa_of(size_t number)
{
    size_t count = 0;
    while (locus_isa_name(count) != NULL && locus_isa_available(locus_isa_name(count))) count++;
    return locus_isa_name(number % count);
}

static void test_gaps(const test_variant *v, size_t number)
{
    static const test_spec shapes[] = {
        {.B = 3, .H = 4, .Hk = 2, .Tq = 21, .Tk = 37, .D = 6, .Dv = 5},
        {.B = 2, .H = 2, .Tq = 3, .Tk = 150, .D = 18},
        {.B = 2, .H = 2, .Hk = 1, .Tq = 101, .Tk = 205, .D = 8},
        {.B = 1, .H = 2, .Tq = 60, .Tk = 600, .D = 4},
    };
    for (size_t i = 0; i < 4; i++)
        for (int kind = TEST_VIEWS_GAPS; kind <= TEST_VIEWS_BROADCAST; kind++) {
            const char *isa = isa_of(number + i);
            if (!check_begin("bounds/views/%s/%s/%d-%s", v->name, isa, (int)i,
                             kind == TEST_VIEWS_GAPS ? "gaps" : "broadcast"))
                continue;
            const test_variant masked = with_masks(v, number + i);
            test_problem *p = test_variant_problem(&masked, shapes[i]);
            p->config.isa = isa;
            judge(p, kind, 100 * number + i + 1,
                  (test_manner){.prepared = (number + i) % 2,
                                .accumulate = i % 2,
                                .misalign = 8 * ((number + i) % 8)});
        }
}

static void test_apart(const test_variant *v, size_t number)
{
    if (!check_begin("bounds/views/%s/far", v->name)) return;
    const test_variant masked = with_masks(v, number);
    judge(test_variant_problem(
              &masked, (test_spec){.B = 2, .H = 2, .Tq = number % 2 ? 12 : 3, .Tk = 13, .D = 4}),
          TEST_VIEWS_FAR, number + 7, (test_manner){0});
}

/* Batch entry b hides the keys n with (n + b) % 3 == 0 and holds NaN there. */
static void test_hidden(const test_variant *v, const char *with, size_t number)
{
    const test_spec shape = {.B = 3, .H = 2, .Tq = number % 2 ? 30 : 4, .Tk = 70, .D = 6};
    test_variant masked = *v;
    masked.with = with;
    if (v->with != NULL || !check_begin("bounds/hidden/%s/%s", v->name, with)) return;
    test_problem *p = test_variant_problem(&masked, shape);
    for (int64_t i = 0; i < shape.B * shape.H * shape.Tq * shape.Tk; i++) {
        const int64_t n = i % shape.Tk, b = i / (shape.H * shape.Tq * shape.Tk);
        const uint8_t seen = (n + b) % 3 != 0;
        if (p->in[0].mask.rank != 0) ((uint8_t *)p->in[0].mask.data)[i] = seen;
        if (p->in[0].key_mask.rank != 0)
            ((uint8_t *)p->in[0].key_mask.data)[b * shape.Tk + n] = seen;
        if (p->in[0].bias_dense.rank != 0 && !seen)
            test_set_value(&p->in[0].bias_dense, i, (double)-INFINITY);
    }
    for (int64_t i = 0; i < shape.B * shape.H * shape.Tk * shape.D; i++) {
        const int64_t n = i / shape.D % shape.Tk, b = i / (shape.D * shape.Tk * shape.H);
        if ((n + b) % 3 != 0) continue;
        test_set_value(&p->in[0].k, i, (double)NAN);
        test_set_value(&p->in[0].v, i, (double)NAN);
    }
    test_problem_sync(p);
    p->config.isa = isa_of(number);
    judge(p, TEST_VIEWS_GAPS, number + 11, (test_manner){0});
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t i = 0; i < TEST_VARIANTS; i += check_sample() ? 3 : 1) {
        const test_variant *v = &test_variants[i];
        test_gaps(v, i);
        test_apart(v, i);
        test_hidden(v, "key_mask", i);
        test_hidden(v, "mask:BH", i);
        test_hidden(v, "bias_dense:BH", i + 1);
    }
    return check_finish("bounds/views");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Attention against the oracle: every scheme, every kernel table, both directions, over
 * lengths and widths with every kind of tail. A case such as
 *     attention/generic/deberta/q33k70d16
 * can be pasted as the argument to run it alone. */

#include <locus/runtime.h>

#include "contract/variants.h"
#include "support/check.h"
#include "support/judge.h"

static void check_shape(const test_variant *v, const char *isa, test_spec shape)
{
    test_problem *p = test_variant_problem(v, shape);
    if (p == NULL) return;
    p->config.isa = isa;
    if (check_begin("attention/%s/%s/q%dk%dd%d", isa, v->name, (int)shape.Tq, (int)shape.Tk,
                    (int)shape.D))
        test_judge(p, &(test_manner){.trust_oracle = isa != locus_isa_name(0)});
    test_problem_free(p);
}

/* Padding as batches have it: whole tiles and panels at the end that no query sees. */
static void check_padded(const test_variant *v, const char *isa)
{
    static const int64_t lengths[] = {1, 100, 260, 384};
    const test_spec shape = {.B = 4, .H = 1, .Tq = 390, .Tk = 390, .D = 4};
    test_variant padded = *v;
    if (v->with != NULL) return;
    padded.with = "key_mask";
    if (!check_begin("attention/%s/%s/padded", isa, v->name)) return;
    test_problem *p = test_variant_problem(&padded, shape);
    for (int64_t b = 0; b < shape.B; b++)
        for (int64_t n = 0; n < shape.Tk; n++)
            ((uint8_t *)p->in[0].key_mask.data)[b * shape.Tk + n] = n < lengths[b];
    p->config.isa = isa;
    test_judge(p, &(test_manner){.trust_oracle = isa != locus_isa_name(0)});
    test_problem_free(p);
}

/* Lengths that meet the edges of the tiles and their tails. */
static void check_lengths(const test_variant *v, const char *isa)
{
    static const int64_t lengths[] = {0, 1, 2, 5, 17, 63, 64, 65, 70, 130};
    const size_t count = sizeof lengths / sizeof *lengths;
    const int64_t step = check_sample() ? 3 : 1;
    for (size_t i = 0; i < count; i += (size_t)step)
        for (size_t j = 0; j < count; j += (size_t)step)
            check_shape(v, isa,
                        (test_spec){.B = 1, .H = 2, .Tq = lengths[i], .Tk = lengths[j], .D = 6});
}

/* Several tiles of every geometry, and positions beyond its blocks. */
static void check_long(const test_variant *v, const char *isa)
{
    check_shape(v, isa, (test_spec){.B = 1, .H = 1, .Tq = 410, .Tk = 410, .D = 4});
    if (check_sample()) return;
    check_shape(v, isa, (test_spec){.B = 1, .H = 1, .Tq = 1100, .Tk = 1100, .D = 2});
    check_shape(v, isa, (test_spec){.B = 1, .H = 1, .Tq = 60, .Tk = 1300, .D = 4});
    check_shape(v, isa, (test_spec){.B = 1, .H = 4, .Hk = 2, .Tq = 5, .Tk = 2100, .D = 4});
}

static void check_all_lengths(const test_variant *v, const char *isa)
{
    static const int64_t widths[] = {2, 16, 64};
    for (size_t d = 0; d < 3; d++)
        for (int64_t q = 0; q <= 70; q++)
            for (int64_t k = 0; k <= 70; k++)
                check_shape(v, isa, (test_spec){.B = 1, .H = 1, .Tq = q, .Tk = k, .D = widths[d]});
}

static void check_widths(const test_variant *v, const char *isa)
{
    static const int64_t large[] = {80, 96, 111, 112, 127, 128, 129, 160, 192, 255, 256, 1024};
    const int64_t step = check_sample() ? 23 : check_full() ? 1 : 5;
    for (int64_t d = 1; d <= 70; d += step) {
        check_shape(v, isa, (test_spec){.B = 1, .H = 2, .Tq = 19, .Tk = 19, .D = d});
        check_shape(
            v, isa,
            (test_spec){.B = 2, .H = 4, .Hk = 2, .Tq = 7, .Tk = 66, .D = d, .Dv = d / 2 + 1});
    }
    for (size_t i = 0; i < sizeof large / sizeof *large; i += (size_t)(check_full() ? 1 : 4))
        check_shape(v, isa, (test_spec){.B = 1, .H = 1, .Tq = 9, .Tk = 13, .D = large[i]});
    /* one query, whose keys are turned in passing */
    for (int64_t d = 32; d <= 64; d += 32)
        check_shape(v, isa, (test_spec){.B = 1, .H = 2, .Tq = 1, .Tk = 150, .D = d});
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t t = 0; locus_isa_name(t) != NULL; t++) {
        const char *isa = locus_isa_name(t);
        if (!locus_isa_available(isa)) {
            if (check_begin("attention/%s", isa)) check_skip("%s: not on this CPU", isa);
            continue;
        }
        for (size_t v = 0; v < TEST_VARIANTS; v++) {
            if (check_full())
                check_all_lengths(&test_variants[v], isa);
            else
                check_lengths(&test_variants[v], isa);
            check_widths(&test_variants[v], isa);
            check_long(&test_variants[v], isa);
            if (!check_sample() || v % 3 == 0) check_padded(&test_variants[v], isa);
        }
    }
    return check_finish("attention");
}

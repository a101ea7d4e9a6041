/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on the far side of what cuts it into pieces: splits of keys and of queries, rounds
 * of partial buffers, indices beyond 8, 16 and 24 bits. Every scheme, both directions, against
 * the oracle. */

#include <inttypes.h>
#include <locus/runtime.h>
#include <stdio.h>
#include <string.h>

#include "contract/variants.h"
#include "support/check.h"
#include "support/judge.h"

/* One of the tables of this machine, another one for each case. */
static const char *turn_isa(void)
{
    static size_t turn;
    size_t count = 0;
    while (locus_isa_name(count) != NULL && locus_isa_available(locus_isa_name(count))) count++;
    return locus_isa_name(turn++ % count);
}

static void judge(const test_variant *v, const char *what, test_spec shape, test_manner manner)
{
    char settings[128];
    /* queries from position 0 on where there are more of them than keys: TUPE has no others */
    snprintf(settings, sizeof settings, "%s%s", v->settings != NULL ? v->settings : "",
             shape.Tq > shape.Tk ? " query_offset=0" : "");
    shape.scheme = v->scheme;
    shape.level = LOCUS_ATTEND;
    shape.settings = settings;
    shape.with = v->with;
    shape.without = v->without;
    shape.seed = 3;
    const char *isa = turn_isa();
    if (!check_begin("bounds/%s/%s/%s/q%" PRId64 "k%" PRId64, what, v->name, isa, shape.Tq,
                     shape.Tk))
        return;
    test_problem *p = test_problem_new(&shape);
    p->config.isa = isa;
    p->config.threads = shape.Dv == 0 ? 1 : 2;
    test_calm(p);
    test_judge(p, &manner);
    test_problem_free(p);
}

static int is_turned(const test_variant *v)
{
    return strcmp(v->scheme, "rope") == 0 || strcmp(v->scheme, "xpos") == 0;
}

/* The keys of few queries are cut at multiples of 4,096, or of 1,024 where KV heads share what
 * depends on positions; into 64 pieces at most. */
static void test_key_splits(const test_variant *v)
{
    const test_manner forward = {.forward_only = 1};
    judge(v, "key-splits", (test_spec){.B = 1, .H = 1, .Tq = 1, .Tk = 16600, .D = 4}, forward);
    judge(v, "key-splits", (test_spec){.B = 1, .H = 2, .Tq = 3, .Tk = 4100, .D = 4}, forward);
    judge(v, "key-splits", (test_spec){.B = 2, .H = 4, .Hk = 2, .Tq = 2, .Tk = 5121, .D = 2},
          forward);
    if (is_turned(v))
        judge(v, "most-key-splits", (test_spec){.B = 1, .H = 2, .Tq = 1, .Tk = 66600, .D = 2},
              forward);
}

/* Backward, queries are cut at multiples of 384, into 8 pieces at most per batch and head. */
static void test_query_splits(const test_variant *v)
{
    static const int64_t rows[] = {384, 385, 768, 769, 1153, 1537, 3073};
    const size_t step = check_sample() ? 4 : 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i += step)
        judge(v, "query-splits",
              (test_spec){.B = 1, .H = 1 + (int64_t)i % 2, .Tq = rows[i], .Tk = 19, .D = 4},
              (test_manner){0});
}

/* 64 partial buffers at most make a round; fewer where they fill 32 MB. */
static void test_rounds(const test_variant *v)
{
    static const int64_t heads[][2] = {{8, 8}, {5, 13}, {3, 43}};
    const size_t step = check_sample() ? 2 : 1;
    for (size_t i = 0; i < 3; i += step)
        judge(v, "rounds",
              (test_spec){.B = heads[i][0], .H = heads[i][1], .Hk = 1, .Tq = 5, .Tk = 9, .D = 4},
              (test_manner){0});
    judge(v, "rounds-own-keys", (test_spec){.B = 13, .H = 5, .Tq = 5, .Tk = 9, .D = 4},
          (test_manner){0});
}

/* Heads that share keys, more than one split: nobody owns a gradient alone. */
static void test_accumulate(const test_variant *v)
{
    const test_manner add = {.accumulate = 1};
    judge(v, "accumulate", (test_spec){.B = 2, .H = 4, .Hk = 2, .Tq = 390, .Tk = 30, .D = 4}, add);
    judge(v, "accumulate", (test_spec){.B = 1, .H = 1, .Tq = 390, .Tk = 30, .D = 4}, add);
    judge(v, "accumulate", (test_spec){.B = 1, .H = 3, .Tq = 50, .Tk = 230, .D = 4}, add);
    judge(v, "accumulate", (test_spec){.B = 5, .H = 13, .Tq = 5, .Tk = 9, .D = 4}, add);
}

/* Batch entries, heads, queries and keys are words of dropout's counter. */
static void test_dropout(void)
{
    static const test_variant dropped = {"dropout", "none", "dropout=0.4 dropout_seed=5", NULL,
                                         NULL};
    static const test_spec shapes[] = {
        {.B = 260, .H = 1, .Tq = 3, .Tk = 7, .D = 2},
        {.B = 1, .H = 260, .Tq = 3, .Tk = 7, .D = 2},
        {.B = 1, .H = 1, .Tq = 65600, .Tk = 5, .D = 2},
        {.B = 1, .H = 1, .Tq = 2, .Tk = 65600, .D = 2},
        {.B = 1, .H = 1, .Tq = 12, .Tk = 65600, .D = 2},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        judge(&dropped, "words", shapes[i], (test_manner){0});
}

/* Partial buffers of 17 MB, LOCUS_PARTIAL_BYTES for all: one at a time. Splits whose partial results
 * are more than LITTLE floats are joined by all threads. 262,145 keys: the 64 splits are longer than 4,096. */
static void test_large(void)
{
    static const test_variant plain = {"none", "none", NULL, NULL, NULL};
    if (check_sample()) return;
    judge(&plain, "one-slot", (test_spec){.B = 1, .H = 2, .Hk = 1, .Tq = 2, .Tk = 33000, .D = 64},
          (test_manner){0});
    for (int64_t width = 62; width <= 63; width++) /* two threads, 2^16 floats and more */
        judge(&plain, "joined",
              (test_spec){.B = 4, .H = 16, .Tq = 8, .Tk = 4097, .D = 2, .Dv = width},
              (test_manner){.forward_only = 1, .trust_oracle = 1});
    judge(&plain, "most-key-splits", (test_spec){.B = 1, .H = 1, .Tq = 1, .Tk = 262600, .D = 2},
          (test_manner){.forward_only = 1});
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t i = 0; i < TEST_VARIANTS; i += check_sample() ? 3 : 1) {
        const test_variant *v = &test_variants[i];
        test_key_splits(v);
        test_query_splits(v);
        test_rounds(v);
        test_accumulate(v);
    }
    test_dropout();
    test_large();
    return check_finish("bounds/far");
}

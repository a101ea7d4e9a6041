/* SPDX-License-Identifier: Apache-2.0 */

/* The manners of an explainer: refusals, memory, bits. */

#include <stdint.h>
#include <string.h>

#include <locus/explain.h>

#include "explain/problems.h"
#include "layer/specs.h"
#include "support/allocator.h"
#include "support/check.h"

static void test_refusals(void)
{
    if (!check_begin("manners/refusals")) return;
    const test_spec shape = {.B = 2, .H = 2, .Tq = 5, .Tk = 8, .D = 4};
    test_problem *p = variant_problem("t5", shape);
    locus_explainer *e = explainer_of(p);
    double numbers[64];
    locus_error error = {""};
    const locus_explain_block good = {.size = sizeof good, .queries = 5, .keys = 8};
    const locus_explain_block bad[] = {
        {.queries = 5, .keys = 8},
        {.size = sizeof good, .batch = 2, .queries = 5, .keys = 8},
        {.size = sizeof good, .head = -1, .queries = 5, .keys = 8},
        {.size = sizeof good, .query = 1, .queries = 5, .keys = 8},
        {.size = sizeof good, .queries = INT64_MAX, .keys = 8},
        {.size = sizeof good, .queries = 5, .key = 8, .keys = 1},
        {.size = sizeof good, .queries = 5, .keys = -1},
    };
    const locus_explained into = {.size = sizeof into, .score = numbers};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        error.text[0] = '\0';
        CHECK(locus_explain(e, &bad[i], &into, &error) == LOCUS_ERR_ARGUMENT &&
                  error.text[0] != '\0',
              "block %zu passed", i);
    }
    locus_explain_block part = good;
    part.keys = 7;
    const locus_explained weights = {.size = sizeof weights, .weight = numbers};
    CHECK(locus_explain(e, &part, &weights, &error) == LOCUS_ERR_ARGUMENT,
          "weights of a part of the keys without lse");
    CHECK(locus_explain_lse(e, &good, NULL, &error) == LOCUS_ERR_ARGUMENT, "no room for lse");
    locus_explainer_free(e);

    p->config.scheme = "nothing";
    CHECK(locus_explainer_new(&e, LOCUS_ATTEND, &p->config, &p->in[0], &error) ==
                  LOCUS_ERR_SCHEME &&
              e == NULL,
          "unknown scheme");
    p->config.scheme = "t5";
    CHECK(locus_explainer_new(&e, 3, &p->config, &p->in[0], &error) == LOCUS_ERR_ARGUMENT,
          "both levels at once");
    p->in[0].bias.data = NULL;
    CHECK(locus_explainer_new(&e, LOCUS_ATTEND, &p->config, &p->in[0], &error) ==
              LOCUS_ERR_ARGUMENT,
          "a tensor without data");
    locus_explainer_free(NULL);
    test_problem_free(p);
}

static void test_no_memory(void)
{
    for (size_t i = 0; i < LAYER_SPECS; i++) {
        if (!check_begin("manners/no memory/%s/%zu", layer_specs[i].scheme, i)) continue;
        test_problem *p = layer_problem(i);
        for (size_t k = 1;; k++) {
            test_allocator memory;
            locus_explainer *e = NULL;
            test_allocator_init(&memory);
            memory.fail_at = k;
            p->config.allocator = &memory.interface;
            const locus_status status =
                locus_explainer_new(&e, LOCUS_LAYER, &p->config, &p->in[TEST_FLOAT], NULL);
            CHECK(status == (memory.failures > 0 ? LOCUS_ERR_MEMORY : LOCUS_OK), "status %d",
                  (int)status);
            CHECK((e != NULL) == (status == LOCUS_OK), "an explainer beside a failure");
            locus_explainer_free(e);
            CHECK(memory.live_blocks == 0 && memory.misuse == 0, "leak at allocation %zu", k);
            if (memory.failures == 0) break;
        }
        test_problem_free(p);
    }
}

/* Blocks of any form and any number of threads give the same bits, and whole rows the same
 * weights as parts with lse. */
static void test_bits(void)
{
    enum { Q = 13, K = 29, SIZE = Q * K };
    static double whole[TERMS * SIZE], weight[SIZE], part[TERMS], alone, lse[Q];
    for (size_t v = 0; v < TEST_VARIANTS; v++) {
        if (!check_begin("manners/bits/%s", test_variants[v].name)) continue;
        const test_spec shape = {.B = 1, .H = 2, .Tq = Q, .Tk = K, .D = 4};
        test_problem *p = test_variant_problem(&test_variants[v], shape);
        locus_error error = {""};
        locus_explain_block block = {.size = sizeof block, .head = 1, .queries = Q, .keys = K};
        p->config.threads = 3;
        locus_explainer *many = explainer_of(p);
        p->config.threads = 1;
        locus_explainer *one = explainer_of(p);
        locus_explained into = {.size = sizeof into, .terms = whole, .weight = weight};
        locus_explainer_info info = {.size = sizeof info};
        locus_explainer_describe(one, &info);
        int same = locus_explain(many, &block, &into, &error) == LOCUS_OK &&
                   locus_explain_lse(one, &block, lse, &error) == LOCUS_OK;
        for (int64_t at = 0; same && at < SIZE; at++) {
            const locus_explain_block pair = {.size = sizeof pair,
                                              .head = 1,
                                              .query = at / K,
                                              .queries = 1,
                                              .key = at % K,
                                              .keys = 1};
            into = (locus_explained){
                .size = sizeof into, .terms = part, .lse = lse + at / K, .weight = &alone};
            same = locus_explain(one, &pair, &into, &error) == LOCUS_OK && alone == weight[at];
            for (size_t t = 0; same && t < info.terms; t++)
                same = part[t] == whole[(int64_t)t * SIZE + at];
        }
        CHECK(same, "%s", error.text[0] != '\0' ? error.text : "bits differ");
        locus_explainer_free(many);
        locus_explainer_free(one);
        test_problem_free(p);
    }
}

/* O(n): at 4,096 tokens a few times the inputs, and nothing while pairs are evaluated. */
static void test_memory(void)
{
    static const char *const names[] = {"t5",   "transformer_xl", "deberta",
                                        "tupe", "rope-half",      "xpos"};
    enum { T = 4096, D = 16 };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!check_begin("manners/memory/%s", names[i])) continue;
        const test_spec shape = {.B = 1, .H = 1, .Tq = T, .Tk = T, .D = D};
        test_problem *p = variant_problem(names[i], shape);
        test_allocator memory;
        test_allocator_init(&memory);
        p->config.allocator = &memory.interface;
        locus_explainer *e = NULL;
        locus_error error = {""};
        static double lse[8], weight[8 * T];
        const locus_explain_block block = {
            .size = sizeof block, .query = T - 8, .queries = 8, .keys = T};
        const locus_explained into = {.size = sizeof into, .lse = lse, .weight = weight};
        CHECK(locus_explainer_new(&e, LOCUS_ATTEND, &p->config, &p->in[TEST_FLOAT], &error) ==
                  LOCUS_OK,
              "%s", error.text);
        const size_t calls = memory.calls;
        CHECK(locus_explain_lse(e, &block, lse, &error) == LOCUS_OK &&
                  locus_explain(e, &block, &into, &error) == LOCUS_OK,
              "%s", error.text);
        CHECK(memory.calls == calls, "a compute call allocated");
        CHECK(memory.peak_bytes < (size_t)12 * T * D * sizeof(double), "%zu bytes",
              memory.peak_bytes);
        locus_explainer_free(e);
        test_problem_free(p);
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_refusals();
    test_no_memory();
    test_bits();
    test_memory();
    return check_finish("explain-manners");
}

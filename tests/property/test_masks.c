/* SPDX-License-Identifier: Apache-2.0 */

/* Which pairs take part: masks that say the same give the same, what is masked does not
 * matter, and a row does not depend on its neighbours. Asked of the oracle and of the
 * float path. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "property/ways.h"

enum { MASKED_TQ = 7, MASKED_TK = 10 };
static const uint8_t seen_keys[MASKED_TK] = {1, 0, 1, 1, 0, 0, 1, 1, 1, 0};

/* Hide the same keys from every query in one of three ways. */
static void hide_keys(test_problem *p)
{
    if (p->in[0].key_mask.rank != 0) set_key_mask(p, seen_keys);
    for (int64_t i = 0; i < MASKED_TQ * MASKED_TK; i++) {
        const uint8_t here = seen_keys[i % MASKED_TK];
        if (p->in[0].mask.rank != 0) ((uint8_t *)p->in[0].mask.data)[i] = here;
        if (p->in[0].bias_dense.rank != 0 && !here)
            test_set_value(&p->in[0].bias_dense, i, (double)-INFINITY);
    }
    test_problem_sync(p);
}

/* What a masked key holds does not reach a single bit of the results. */
static void masked_keys_do_not_matter(const struct way *way, int path, const char *by)
{
    int64_t rows[MASKED_TK];
    test_problem *clean = make(way, MASKED_TQ, MASKED_TK, "", by);
    test_problem *dirty = make(way, MASKED_TQ, MASKED_TK, "", by);
    for (int64_t n = 0; n < MASKED_TK; n++) rows[n] = seen_keys[n] ? n : -1;
    copy_rows(&dirty->in[0].k, &clean->in[0].k, rows, (double)NAN);
    copy_rows(&dirty->in[0].v, &clean->in[0].v, rows, (double)INFINITY);
    hide_keys(clean);
    hide_keys(dirty);
    if (run(clean, path, 1) && run(dirty, path, 1)) {
        CHECK(same_bits(&clean->results[path].out, &dirty->results[path].out), "out differs");
        CHECK(same_bits(&clean->results[path].lse, &dirty->results[path].lse), "lse differs");
        for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
            const locus_tensor *c = locus_tensor_at_const(&clean->grad[path], i);
            CHECK(c->rank == 0 || same_bits(c, locus_tensor_at_const(&dirty->grad[path], i)),
                  "gradient of %s differs", locus_tensor_name(i));
        }
    }
    test_problem_free(clean);
    test_problem_free(dirty);
}

/* Causal, window, mask and -inf in bias_dense are four ways to say the same. */
static void masks_agree(const struct way *way, int path)
{
    enum { TQ = 6, TK = 9, OFFSET = TK - TQ };
    test_problem *p[3] = {
        make(way, TQ, TK, "causal=1 window_left=4", "bias_dense:11"),
        make(way, TQ, TK, "", "bias_dense:11 mask:11"),
        make(way, TQ, TK, "", "bias_dense:11"),
    };
    for (int64_t i = 0; i < TQ * TK; i++) {
        const int64_t rho = i % TK - (i / TK + OFFSET);
        const int seen = rho <= 0 && rho >= -4;
        ((uint8_t *)p[1]->in[0].mask.data)[i] = (uint8_t)seen;
        if (!seen) test_set_value(&p[2]->in[0].bias_dense, i, (double)-INFINITY);
    }
    test_problem_sync(p[2]);
    int ran = 1;
    for (int x = 0; x < 3; x++) ran &= run(p[x], path, 1);
    for (int x = 1; ran && x < 3; x++) {
        agree_results(p[x], p[0], path);
        for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
            const locus_tensor *want = locus_tensor_at_const(&p[0]->grad[path], i);
            if (want->rank != 0)
                agree(locus_tensor_at_const(&p[x]->grad[path], i), want, gradient_tolerance[path],
                      locus_tensor_name(i));
        }
    }
    for (int x = 0; x < 3; x++) test_problem_free(p[x]);
}

/* A query alone, at its place, gives the row that it gives among the others. */
static void rows_stand_alone(const struct way *way, int path)
{
    enum { T = 8 };
    test_problem *all = make(way, T, T, "causal=1", "");
    int ran = run(all, path, 0);
    for (int64_t m = 0; ran && m < T; m++) {
        char settings[64];
        const int64_t rows[1] = {m};
        snprintf(settings, sizeof settings, "causal=1 query_offset=%d", (int)m);
        test_problem *one = make(way, 1, T, settings, "");
        copy_values(one, all);
        copy_rows(&one->in[0].q, &all->in[0].q, rows, 0.0);
        test_problem_sync(one);
        ran = run(one, path, 0);
        locus_tensor want = one->in[path].q;
        copy_rows(&want, &all->results[path].out, rows, 0.0);
        if (ran) agree(&one->results[path].out, &want, result_tolerance[path], "out");
        test_problem_free(one);
    }
    test_problem_free(all);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (int path = 0; path < TEST_PATHS; path++)
        for (size_t i = 0; i < WAYS; i++) {
            if (begin("masked-keys", &ways[i], path)) {
                masked_keys_do_not_matter(&ways[i], path, "key_mask");
                masked_keys_do_not_matter(&ways[i], path, "mask:11");
                masked_keys_do_not_matter(&ways[i], path, "bias_dense:11");
            }
            if (begin("masks-agree", &ways[i], path)) masks_agree(&ways[i], path);
            if (begin("rows-alone", &ways[i], path)) rows_stand_alone(&ways[i], path);
        }
    return check_finish("property/masks");
}

/* SPDX-License-Identifier: Apache-2.0 */

/* What must hold without any reference: the traits that schemes claim and the identities
 * of attention. Every property is asked of the oracle and of the float path. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/random.h"
#include "property/ways.h"

/* ---- traits ---- */

/* The same tokens `shift` places later: `shift` keys that nobody sees stand before them. */
static void shifted(const struct way *way, int path, int64_t shift, int expected)
{
    enum { TQ = 6, TK = 9, OFFSET = 2 };
    char settings[64];
    int64_t rows[TK + REACH];
    uint8_t mask[TK + REACH];
    test_problem *here = make(way, TQ, TK, "query_offset=2 window_left=7", "");
    snprintf(settings, sizeof settings, "window_left=7 query_offset=%d", OFFSET + (int)shift);
    test_problem *there = make(way, TQ, TK + shift, settings, "key_mask");
    copy_values(there, here);
    for (int64_t n = 0; n < TK + shift; n++) rows[n] = n - shift, mask[n] = (uint8_t)(n >= shift);
    copy_rows(&there->in[0].k, &here->in[0].k, rows, (double)NAN);
    copy_rows(&there->in[0].v, &here->in[0].v, rows, (double)NAN);
    set_key_mask(there, mask);
    test_problem_sync(there);
    if (run(here, path, 1) && run(there, path, 1)) {
        if (expected)
            agree_results(there, here, path);
        else {
            const comparison c =
                compare_tensors(&there->results[path].out, &here->results[path].out);
            CHECK(c.worst > 1e-3, "positions do not matter");
        }
        static const char *const same[] = {"q", "rel_k",  "rel_q", "rel_v", "u",
                                           "w", "slopes", "a",     "p",     "bias"};
        for (size_t i = 0; expected && i < sizeof same / sizeof *same; i++) {
            const size_t index = (size_t)locus_tensor_index(same[i]);
            const locus_tensor *want = locus_tensor_at_const(&here->grad[path], index);
            if (want->rank != 0)
                agree(locus_tensor_at_const(&there->grad[path], index), want,
                      gradient_tolerance[path], same[i]);
        }
    }
    test_problem_free(here);
    test_problem_free(there);
}

/* Time reversed: with distances that count without their sign, the result is reversed. */
static void mirrored(const struct way *way, int path)
{
    enum { T = 9 };
    int64_t rows[T];
    test_problem *p = make(way, T, T, "", ""), *r = make(way, T, T, "", "");
    for (int64_t n = 0; n < T; n++) rows[n] = T - 1 - n;
    copy_rows(&r->in[0].q, &p->in[0].q, rows, 0.0);
    copy_rows(&r->in[0].k, &p->in[0].k, rows, 0.0);
    copy_rows(&r->in[0].v, &p->in[0].v, rows, 0.0);
    test_problem_sync(r);
    if (run(p, path, 0) && run(r, path, 0)) {
        locus_tensor back = r->in[path].q; /* as scratch: D = Dv */
        copy_rows(&back, &r->results[path].out, rows, 0.0);
        agree(&back, &p->results[path].out, result_tolerance[path], "out");
    }
    test_problem_free(p);
    test_problem_free(r);
}

/* ---- softmax ---- */

/* v = 1 makes every output the sum of its weights. */
static void weights_sum_to_one(const struct way *way, int path)
{
    test_problem *p = make(way, 8, 11, "causal=1", "mask:B1 key_mask");
    const int64_t values = locus_tensor_elements(&p->in[0].v);
    for (int64_t i = 0; i < values; i++) test_set_value(&p->in[0].v, i, 1.0);
    for (int64_t i = 0; i < locus_tensor_elements(&p->in[0].rel_v); i++)
        test_set_value(&p->in[0].rel_v, i, 0.0);
    test_problem_sync(p);
    int empty = 0;
    if (run(p, path, 0))
        for (int64_t row = 0; row < locus_tensor_elements(&p->results[path].lse); row++) {
            const int dead = test_value(&p->results[path].lse, row) == (double)-INFINITY;
            empty += dead;
            for (int64_t d = 0; d < p->spec.Dv; d++) {
                const double sum = test_value(&p->results[path].out, row * p->spec.Dv + d);
                CHECK(fabs(sum - (dead ? 0.0 : 1.0)) <= (dead   ? 0.0
                                                         : path ? 1e-6
                                                                : 1e-14),
                      "row %" PRId64 ": weights sum to %.17g", row, sum);
            }
        }
    CHECK(empty == 4, "%d rows see nothing, expected one per batch entry and head", empty);
    test_problem_free(p);
}

/* Softmax does not see a constant: the gradients of a row of logits sum to 0. So do those
 * of k over the keys, unless k meets positions. */
static void gradients_sum_to_zero(const struct way *way, int path)
{
    const uint32_t terms = locus_scheme_find(way->scheme)->terms;
    test_problem *p = make(way, 7, 10, "", "bias_dense mask:11");
    const double tolerance = path ? 1e-5 : 1e-13;
    if (run(p, path, 1)) {
        const locus_tensor *ds = &p->grad[path].bias_dense, *dk = &p->grad[path].k;
        double largest = 0.0;
        for (int64_t row = 0; row < locus_tensor_elements(ds) / 10; row++) {
            double sum = 0.0;
            for (int64_t n = 0; n < 10; n++) {
                sum += test_value(ds, row * 10 + n);
                largest = fmax(largest, fabs(test_value(ds, row * 10 + n)));
            }
            CHECK(fabs(sum) <= tolerance, "row %" PRId64 ": ds sums to %g", row, sum);
        }
        CHECK(largest > 0.01, "all gradients are tiny");
        const uint32_t bound = LOCUS_TERM_ROTATION | LOCUS_TERM_POSITION_CONTENT;
        for (int64_t i = 0; (terms & bound) == 0 && i < blocks(dk); i++)
            for (int64_t d = 0; d < p->spec.D; d++) {
                double sum = 0.0;
                for (int64_t n = 0; n < 10; n++) sum += test_value(dk, place(dk, i, n, d));
                CHECK(fabs(sum) <= tolerance, "column %" PRId64 ": dk sums to %g", d, sum);
            }
    }
    test_problem_free(p);
}

/* Attention over some keys and over the rest, merged by their lse, is attention. */
static void split_and_merge(const struct way *way, int path)
{
    enum { TK = 13 };
    test_problem *p[3];
    int ran = 1;
    for (int part = 0; part < 3; part++) { /* all, some, the rest */
        uint8_t mask[TK];
        p[part] = make(way, 6, TK, "", "key_mask");
        for (uint64_t n = 0; n < TK; n++)
            mask[n] = part == 0 || (test_uniform(5, n) < 0.5) == (part == 1);
        set_key_mask(p[part], mask);
        ran &= run(p[part], path, 0);
    }
    const int64_t Dv = p[0]->spec.Dv;
    for (int64_t row = 0; ran && row < locus_tensor_elements(&p[0]->results[path].lse); row++) {
        const double one = test_value(&p[1]->results[path].lse, row);
        const double two = test_value(&p[2]->results[path].lse, row);
        const double both = test_value(&p[0]->results[path].lse, row);
        const double merged = fmax(one, two) + log1p(exp(-fabs(one - two)));
        CHECK(fabs(merged - both) <= result_tolerance[path] * (1.0 + fabs(both)),
              "row %" PRId64 ": merged lse %.17g, whole %.17g", row, merged, both);
        for (int64_t d = row * Dv; d < (row + 1) * Dv; d++) {
            const double out = exp(one - merged) * test_value(&p[1]->results[path].out, d) +
                               exp(two - merged) * test_value(&p[2]->results[path].out, d);
            const double whole = test_value(&p[0]->results[path].out, d);
            CHECK(fabs(out - whole) <= 2.0 * result_tolerance[path],
                  "row %" PRId64 ": merged %.17g, whole %.17g", row, out, whole);
        }
    }
    for (int part = 0; part < 3; part++) test_problem_free(p[part]);
}

/* ---- single schemes ---- */

static void keys_permute(int path)
{
    static const int64_t order[] = {3, 7, 0, 5, 1, 8, 2, 6, 4};
    const struct way *none = &ways[0];
    if (!begin("permute-keys", none, path)) return;
    test_problem *p = make(none, 5, 9, "", ""), *r = make(none, 5, 9, "", "");
    copy_rows(&r->in[0].k, &p->in[0].k, order, 0.0);
    copy_rows(&r->in[0].v, &p->in[0].v, order, 0.0);
    test_problem_sync(r);
    if (run(p, path, 0) && run(r, path, 0)) agree_results(r, p, path);
    test_problem_free(p);
    test_problem_free(r);
}

/* Pairs (t, t + 3) turned as `half` are pairs (2t, 2t + 1) turned as `interleaved`. */
static void rope_pairings(int path)
{
    static const struct way half = {"rope", "half", "pairing=half", ""};
    static const struct way interleaved = {"rope", "pairs", "pairing=interleaved", ""};
    static const int64_t column[] = {0, 3, 1, 4, 2, 5};
    if (!begin("half-is-interleaved", &half, path)) return;
    test_problem *p = make(&half, 9, 9, "", ""), *r = make(&interleaved, 9, 9, "", "");
    const locus_tensor *from[] = {&p->in[0].q, &p->in[0].k}, *to[] = {&r->in[0].q, &r->in[0].k};
    for (int which = 0; which < 2; which++)
        for (int64_t i = 0; i < locus_tensor_elements(to[which]); i++)
            test_set_value(to[which], i, test_value(from[which], i - i % 6 + column[i % 6]));
    test_problem_sync(r);
    if (run(p, path, 0) && run(r, path, 0)) agree_results(r, p, path);
    test_problem_free(p);
    test_problem_free(r);
}

/* Sum of |gradient| of row `row` of a [..., rows, columns] tensor. */
static double row_weight(const locus_tensor *t, int64_t row)
{
    double sum = 0.0;
    for (int64_t i = 0; i < blocks(t); i++)
        for (int64_t d = 0; d < t->shape[t->rank - 1]; d++)
            sum += fabs(test_value(t, place(t, i, row, d)));
    return sum;
}

/* Both ways, T5 keeps a bucket for distance 0 to the right, which no pair has. */
static void t5_dead_bucket(int path)
{
    static const struct way t5 = {"t5", "32-128", "buckets=32 max_distance=128", ""};
    if (!begin("dead-bucket", &t5, path)) return;
    test_problem *p = make(&t5, 30, 30, "", "");
    if (run(p, path, 1)) {
        const locus_tensor *bias = &p->grad[path].bias;
        CHECK(row_weight(bias, 16) == 0.0, "bucket 16 got %g", row_weight(bias, 16));
        CHECK(row_weight(bias, 0) > 0.0 && row_weight(bias, 17) > 0.0 && row_weight(bias, 1) > 0.0,
              "its neighbours got nothing");
    }
    test_problem_free(p);
}

/* DeBERTa's row 0 needs a distance beyond max_distance - 1 to the right. */
static void deberta_dead_row(int path, int64_t T, int dead)
{
    static const struct way deberta = {"deberta", "8-12", "span=8 buckets=8 max_distance=12", ""};
    if (!check_begin("property/dead-row/deberta/T%" PRId64 "/%s", T, test_path_name(path))) return;
    test_problem *p = make(&deberta, T, T, "", "");
    if (run(p, path, 1)) {
        const double weight =
            row_weight(&p->grad[path].rel_k, 0) + row_weight(&p->grad[path].rel_q, 0);
        CHECK((weight == 0.0) == dead, "row 0 got %g", weight);
        CHECK(row_weight(&p->grad[path].rel_k, 1) > 0.0, "row 1 got nothing");
    }
    test_problem_free(p);
}

/* Two heads that share keys and values are two heads with copies of them. */
static void heads_share(int path)
{
    if (!check_begin("property/grouped-heads/none/%s", test_path_name(path))) return;
    test_spec spec = {.scheme = "none",
                      .level = LOCUS_ATTEND,
                      .B = 2,
                      .H = 4,
                      .Hk = 2,
                      .Tq = 5,
                      .Tk = 7,
                      .D = 6,
                      .settings = "causal=1",
                      .seed = 3};
    test_problem *grouped = test_problem_new(&spec);
    spec.Hk = 4;
    test_problem *copied = test_problem_new(&spec);
    copy_values(copied, grouped);
    const locus_tensor *to[] = {&copied->in[0].k, &copied->in[0].v};
    const locus_tensor *from[] = {&grouped->in[0].k, &grouped->in[0].v};
    for (int which = 0; which < 2; which++)
        for (int64_t i = 0; i < 8; i++)
            for (int64_t x = 0; x < 42; x++)
                test_set_value(to[which], i * 42 + x, test_value(from[which], i / 2 * 42 + x));
    test_problem_sync(copied);
    if (run(grouped, path, 0) && run(copied, path, 0)) agree_results(copied, grouped, path);
    test_problem_free(grouped);
    test_problem_free(copied);
}

/* v = identity shows the weights: each is dropped, or divided by 1 - p, as Philox says. */
static void dropout_shows(int path)
{
    enum { T = 6 }; /* = D */
    static const uint32_t key[2] = {77, 5};
    const struct way *none = &ways[0];
    if (!begin("dropout", none, path)) return;
    test_problem *p = make(none, T, T, "", "");
    test_problem *d = make(none, T, T, "dropout=0.25 dropout_seed=21474836557", "");
    for (int64_t i = 0; i < locus_tensor_elements(&p->in[0].v); i++) {
        const double one = i / T % T == i % T ? 1.0 : 0.0;
        test_set_value(&p->in[0].v, i, one);
        test_set_value(&d->in[0].v, i, one);
    }
    test_problem_sync(p);
    test_problem_sync(d);
    if (run(p, path, 0) && run(d, path, 0)) {
        CHECK(same_bits(&p->results[path].lse, &d->results[path].lse), "lse differs");
        for (uint32_t i = 0; i < 4 * T * T; i++) {
            const uint32_t n = i % T, m = i / T % T, h = i / T / T % 2, b = i / T / T / 2;
            const uint32_t counter[4] = {n / 4, m, h, b};
            uint32_t words[4];
            locus_philox(key, counter, words);
            const double factor = words[n % 4] >= 1u << 30 ? 1.0 / 0.75 : 0.0;
            const double want = factor * test_value(&p->results[path].out, i);
            const double got = test_value(&d->results[path].out, i);
            CHECK(fabs(got - want) <= result_tolerance[path], "m %u n %u: %g, expected %g", m, n,
                  got, want);
        }
    }
    test_problem_free(p);
    test_problem_free(d);
}

/* In a layer, too: memory that nobody sees shifts the rest. */
static void layer_shifted(const struct way *way, int path)
{
    enum { T = 4, M = 3, SHIFT = 5 };
    char settings[128] = "";
    snprintf(settings, sizeof settings, "%s",
             strcmp(way->scheme, "transformer_xl") == 0 ? "table=half" : way->settings);
    test_spec spec = {.scheme = way->scheme,
                      .level = LOCUS_LAYER,
                      .B = 2,
                      .H = 2,
                      .Tq = T,
                      .Tk = M + T,
                      .D = 6,
                      .E = 5,
                      .settings = settings,
                      .without = way->without,
                      .reach = REACH,
                      .seed = 4};
    test_problem *here = test_problem_new(&spec);
    spec.Tk += SHIFT;
    spec.with = "key_mask";
    test_problem *there = test_problem_new(&spec);
    int64_t rows[M + SHIFT];
    uint8_t mask[M + T + SHIFT];
    copy_values(there, here);
    for (int64_t n = 0; n < M + SHIFT; n++) rows[n] = n - SHIFT;
    for (int64_t n = 0; n < M + T + SHIFT; n++) mask[n] = (uint8_t)(n >= SHIFT);
    copy_rows(&there->in[0].memory, &here->in[0].memory, rows, 3.0);
    set_key_mask(there, mask);
    test_problem_sync(there);
    if (run(here, path, 1) && run(there, path, 1)) {
        agree_results(there, here, path);
        agree(&there->grad[path].x, &here->grad[path].x, gradient_tolerance[path], "grad.x");
        agree(&there->grad[path].w_k, &here->grad[path].w_k, gradient_tolerance[path], "grad.w_k");
    }
    test_problem_free(here);
    test_problem_free(there);
}

/* ---- all ---- */

static void check_way(const struct way *way, int path)
{
    const uint32_t traits = locus_scheme_find(way->scheme)->traits;
    const int relative = (traits & LOCUS_TRAIT_RELATIVE) != 0;
    if (begin("shift", way, path)) {
        shifted(way, path, 1, relative);
        shifted(way, path, 13, relative);
    }
    if (relative && begin("shift-layer", way, path)) layer_shifted(way, path);
    if ((traits & LOCUS_TRAIT_SYMMETRIC) != 0 && begin("mirror", way, path)) mirrored(way, path);
    if (begin("weights-sum-to-one", way, path)) weights_sum_to_one(way, path);
    if (begin("gradients-sum-to-zero", way, path)) gradients_sum_to_zero(way, path);
    if (begin("split-merge", way, path)) split_and_merge(way, path);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (int path = 0; path < TEST_PATHS; path++) {
        for (size_t i = 0; i < WAYS; i++) check_way(&ways[i], path);
        keys_permute(path);
        rope_pairings(path);
        t5_dead_bucket(path);
        deberta_dead_row(path, 12, 1);
        deberta_dead_row(path, 13, 0);
        heads_share(path);
        dropout_shows(path);
    }
    return check_finish("property");
}

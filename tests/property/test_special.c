/* SPDX-License-Identifier: Apache-2.0 */

/* Values that are not numbers, and calls that hold none: NaN reaches exactly the rows that
 * see it, +inf is NaN in its row, logits of -inf weigh nothing, empty calls give empty
 * results. Asked of the oracle and of the float path. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "property/ways.h"

/* ---- NaN and infinity in what is seen ---- */

enum { T = 9, WHERE = 4 };

/* Is some element of row i of [rows][width] NaN? Of all rows: which, as bits. */
static unsigned nan_rows(const locus_tensor *t, int64_t block, int64_t rows, int64_t width)
{
    unsigned found = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < width; d++)
            if (isnan(test_value(t, (block * rows + i) * width + d))) found |= 1u << i;
    return found;
}

/* Put `value` into row WHERE of batch 0, head 0 of one of q, k, v; causal, so that rows
 * below WHERE do not see it. */
static void one_bad_row(const struct way *way, int path, const char *name, double value,
                        unsigned expected)
{
    test_problem *clean = make(way, T, T, "causal=1", ""), *bad = make(way, T, T, "causal=1", "");
    const size_t index = (size_t)locus_tensor_index(name);
    const locus_tensor *t = locus_tensor_at_const(&bad->in[0], index);
    test_set_value(t, place(t, 0, WHERE, 1), value);
    test_problem_sync(bad);
    if (run(clean, path, 0) && run(bad, path, 0)) {
        const locus_tensor *out = &bad->results[path].out, *was = &clean->results[path].out;
        for (int64_t block = 0; block < 4; block++) {
            const unsigned found = nan_rows(out, block, T, bad->spec.Dv);
            CHECK(found == (block == 0 ? expected : 0u),
                  "head %" PRId64 ": NaN in rows %x, expected %x", block, found,
                  block == 0 ? expected : 0u);
        }
        for (int64_t i = 0; i < locus_tensor_elements(out); i++) {
            const int64_t row = i / bad->spec.Dv;
            if (row < T && (expected >> row & 1u) != 0) continue;
            CHECK(test_value(out, i) == test_value(was, i), "row %" PRId64 " changed", row);
        }
    }
    test_problem_free(clean);
    test_problem_free(bad);
}

static void bad_values(const struct way *way, int path)
{
    const unsigned row = 1u << WHERE, later = (1u << T) - row;
    if (begin("nan-q", way, path)) one_bad_row(way, path, "q", (double)NAN, row);
    if (begin("nan-k", way, path)) one_bad_row(way, path, "k", (double)NAN, later);
    if (begin("nan-v", way, path)) one_bad_row(way, path, "v", (double)NAN, later);
}

/* D = 1, q = 1: the logits are c k. */
static test_problem *make_scalar(const double *keys, int64_t count, double value)
{
    test_problem *p = test_problem_new(&(test_spec){.scheme = "none",
                                                    .level = LOCUS_ATTEND,
                                                    .B = 1,
                                                    .H = 1,
                                                    .Tq = 1,
                                                    .Tk = count,
                                                    .D = 1,
                                                    .seed = 2});
    test_set_value(&p->in[0].q, 0, 1.0);
    for (int64_t n = 0; n < count; n++) {
        test_set_value(&p->in[0].k, n, keys[n]);
        test_set_value(&p->in[0].v, n, value * (double)(n + 1));
    }
    test_problem_sync(p);
    return p;
}

static void check_scalar(const char *name, int path, const double *keys, int64_t count, double out,
                         double lse)
{
    if (!check_begin("property/special/%s/%s", name, test_path_name(path))) return;
    test_problem *p = make_scalar(keys, count, 1.0);
    if (run(p, path, 0)) {
        const double o = test_value(&p->results[path].out, 0);
        const double l = test_value(&p->results[path].lse, 0);
        CHECK(isnan(out) ? isnan(o) : fabs(o - out) <= 1e-6 * (1.0 + fabs(out)),
              "out %g, expected %g", o, out);
        CHECK(isnan(lse) ? isnan(l) : l == lse || fabs(l - lse) <= 1e-6 * (1.0 + fabs(lse)),
              "lse %g, expected %g", l, lse);
    }
    test_problem_free(p);
}

/* A table of -inf: pairs that are seen and weigh nothing. */
static void all_biases_minus_inf(int path)
{
    static const struct way t5 = {"t5", "minus-inf", "buckets=8 max_distance=9", ""};
    if (!begin("special", &t5, path)) return;
    test_problem *p = make(&t5, 5, 6, "", "");
    for (int64_t i = 0; i < locus_tensor_elements(&p->in[0].bias); i++)
        test_set_value(&p->in[0].bias, i, (double)-INFINITY);
    test_problem_sync(p);
    if (run(p, path, 1)) {
        const locus_tensor *zeros[] = {&p->results[path].out, &p->grad[path].q, &p->grad[path].k,
                                       &p->grad[path].v, &p->grad[path].bias};
        for (size_t t = 0; t < sizeof zeros / sizeof *zeros; t++)
            for (int64_t i = 0; i < locus_tensor_elements(zeros[t]); i++)
                CHECK(test_value(zeros[t], i) == 0.0, "tensor %zu of out, q, k, v, bias: %g", t,
                      test_value(zeros[t], i));
        for (int64_t i = 0; i < locus_tensor_elements(&p->results[path].lse); i++)
            CHECK(test_value(&p->results[path].lse, i) == (double)-INFINITY, "lse %g",
                  test_value(&p->results[path].lse, i));
    }
    test_problem_free(p);
}

static void scalars(int path)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    check_scalar("all-minus-inf", path, (const double[]){-inf, -inf, -inf}, 3, 0.0, -inf);
    check_scalar("one-plus-inf", path, (const double[]){0.0, inf, 1.0}, 3, nan, nan);
    check_scalar("one-huge", path, (const double[]){0.0, 3e38, -3e38}, 3, 2.0, (double)3e38f);
    check_scalar("equal-huge", path, (const double[]){-3e38, -3e38}, 2, 1.5, -(double)3e38f);
    check_scalar("far-apart", path, (const double[]){80.0, -80.0, 79.0}, 3,
                 (1.0 + 3.0 * exp(-1.0)) / (1.0 + exp(-1.0)), 80.0 + log1p(exp(-1.0)));
    check_scalar("no-keys", path, (const double[]){0.0}, 0, 0.0, -inf);
}

/* ---- nothing to do ---- */

static void empty_call(int path, int64_t B, int64_t H, int64_t Tq, int64_t Tk, int64_t D,
                       int64_t width)
{
    if (!check_begin("property/empty/B%dH%dT%dx%dD%dv%d/%s", (int)B, (int)H, (int)Tq, (int)Tk,
                     (int)D, (int)width, test_path_name(path)))
        return;
    test_spec spec = {.scheme = "none",
                      .level = LOCUS_ATTEND,
                      .B = B,
                      .H = H,
                      .Hk = H,
                      .Tq = Tq,
                      .Tk = Tk,
                      .D = D,
                      .Dv = width,
                      .settings = "scale=1",
                      .seed = 6};
    test_problem *p = test_problem_new(&spec);
    if (run(p, path, 1)) {
        for (int64_t i = 0; i < locus_tensor_elements(&p->results[path].lse); i++)
            CHECK(Tk > 0 || test_value(&p->results[path].lse, i) == (double)-INFINITY,
                  "a row without keys has lse %g", test_value(&p->results[path].lse, i));
        for (int64_t i = 0; i < locus_tensor_elements(&p->results[path].out); i++)
            CHECK(Tk > 0 || test_value(&p->results[path].out, i) == 0.0, "it has an output");
        for (int64_t i = 0; i < locus_tensor_elements(&p->grad[path].q); i++)
            CHECK(Tk > 0 || test_value(&p->grad[path].q, i) == 0.0, "it has a gradient");
        for (int64_t i = 0; i < locus_tensor_elements(&p->grad[path].k); i++)
            CHECK(Tq > 0 || test_value(&p->grad[path].k, i) == 0.0,
                  "a key without queries has one");
    }
    test_problem_free(p);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (int path = 0; path < TEST_PATHS; path++) {
        for (size_t i = 0; i < WAYS; i++) bad_values(&ways[i], path);
        scalars(path);
        all_biases_minus_inf(path);
        empty_call(path, 2, 2, 0, 5, 3, 3);
        empty_call(path, 2, 2, 5, 0, 3, 3);
        empty_call(path, 0, 2, 5, 5, 3, 3);
        empty_call(path, 2, 0, 5, 5, 3, 3);
        empty_call(path, 0, 0, 0, 0, 1, 1);
        empty_call(path, 1, 1, 4, 4, 0, 3);
    }
    return check_finish("property/special");
}

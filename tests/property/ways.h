/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_PROPERTY_WAYS_H
#define LOCUS_TESTS_PROPERTY_WAYS_H

/* The ways of using schemes that every property is tried on, and what the tests of
 * properties share. */

#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/compare.h"
#include "support/problem.h"

/* One line per way of using a scheme in attend. */
static const struct way {
    const char *scheme, *name, *settings, *without;
} ways[] = {
    {"none", "plain", "", ""},
    {"shaw", "both", "clip_left=3 clip_right=2", ""},
    {"relative_key", "plain", "", ""},
    {"relative_key_query", "plain", "", ""},
    {"transformer_xl", "plain", "delta_min=0", ""},
    {"transformer_xl", "clamp", "delta_min=0 clamp=4", ""},
    {"t5", "both-ways", "buckets=8 max_distance=9 scale=0.5", ""},
    {"t5", "one-way", "buckets=6 max_distance=9 bidirectional=0", ""},
    {"tupe", "relative", "buckets=8 max_distance=9", "cls"},
    {"tupe", "cls", "", "bias"},
    {"deberta", "both", "span=5", ""},
    {"deberta", "buckets", "span=6 buckets=6 max_distance=10", ""},
    {"alibi", "slopes", "", ""},
    {"alibi", "published", "", "slopes"},
    {"kerple", "log", "form=log", ""},
    {"kerple", "power", "form=power", ""},
    {"rope", "half", "pairing=half", ""},
    {"rope", "interleaved", "pairing=interleaved width=4", ""},
    {"xpos", "plain", "", ""},
    {"xpos", "strong", "scale_base=8", ""},
};
enum { WAYS = sizeof ways / sizeof *ways, REACH = 30 };

/* [0]: oracle, [1]: float; sums that are reordered, angles that move. */
static const double result_tolerance[] = {1e-12, 5e-6}, gradient_tolerance[] = {1e-11, 2e-5};

static inline test_problem *make(const struct way *way, int64_t Tq, int64_t Tk,
                                 const char *settings, const char *with)
{
    char all[256];
    snprintf(all, sizeof all, "%s%s%s", way->settings, way->settings[0] != '\0' ? " " : "",
             settings);
    return test_problem_new(&(test_spec){
        .scheme = way->scheme,
        .level = LOCUS_ATTEND,
        .B = 2,
        .H = 2,
        .Tq = Tq,
        .Tk = Tk,
        .D = 6,
        .settings = all,
        .with = with,
        .without = way->without,
        .reach = REACH,
        .seed = 11,
    });
}

static inline int run(test_problem *p, int path, int gradients)
{
    locus_error error = {""};
    return CHECK(test_problem_run(p, path, gradients, &error) == LOCUS_OK, "%s: %s", p->spec.scheme,
                 error.text);
}

static inline void agree(const locus_tensor *got, const locus_tensor *want, double tolerance,
                         const char *what)
{
    char text[256] = "";
    const comparison c = compare_tensors(got, want);
    const int good =
        comparison_passes(&c, (size_t)locus_tensor_elements(want), tolerance, text, sizeof text);
    CHECK(good, "%s: %s", what, text);
}

static inline void agree_results(const test_problem *got, const test_problem *want, int path)
{
    agree(&got->results[path].out, &want->results[path].out, result_tolerance[path], "out");
    agree(&got->results[path].lse, &want->results[path].lse, result_tolerance[path], "lse");
}

/* Copy every tensor of `from` that has the same number of elements in `to`. */
static inline void copy_values(test_problem *to, const test_problem *from)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(&to->in[0], i);
        const locus_tensor *f = locus_tensor_at_const(&from->in[0], i);
        const int64_t elements = locus_tensor_elements(t);
        if (elements != locus_tensor_elements(f) || t->dtype != LOCUS_F64) continue;
        memcpy(t->data, f->data, (size_t)elements * sizeof(double));
    }
    const int64_t douts = locus_tensor_elements(&to->dout[0]);
    if (douts == locus_tensor_elements(&from->dout[0]))
        memcpy(to->dout[0].data, from->dout[0].data, (size_t)douts * sizeof(double));
    test_problem_sync(to);
}

/* Element [i][n][d] of a tensor whose last two axes are rows and columns. */
static inline int64_t place(const locus_tensor *t, int64_t i, int64_t n, int64_t d)
{
    return (i * t->shape[t->rank - 2] + n) * t->shape[t->rank - 1] + d;
}

static inline int64_t blocks(const locus_tensor *t)
{
    const int64_t block = t->shape[t->rank - 2] * t->shape[t->rank - 1];
    return block == 0 ? 0 : locus_tensor_elements(t) / block;
}

/* Row n of `to` = row from_row(n) of `from`; a negative number fills with `filler`. */
static inline void copy_rows(const locus_tensor *to, const locus_tensor *from, const int64_t *rows,
                             double filler)
{
    for (int64_t i = 0; i < blocks(to); i++)
        for (int64_t n = 0; n < to->shape[to->rank - 2]; n++)
            for (int64_t d = 0; d < to->shape[to->rank - 1]; d++)
                test_set_value(to, place(to, i, n, d),
                               rows[n] < 0 ? filler : test_value(from, place(from, i, rows[n], d)));
}

static inline void set_key_mask(test_problem *p, const uint8_t *mask)
{
    for (int64_t b = 0; b < p->spec.B; b++)
        memcpy((uint8_t *)p->in[0].key_mask.data + b * p->spec.Tk, mask, (size_t)p->spec.Tk);
}

static inline int begin(const char *property, const struct way *way, int path)
{
    return check_begin("property/%s/%s/%s/%s", property, way->scheme, way->name,
                       test_path_name(path));
}

static inline int same_bits(const locus_tensor *a, const locus_tensor *b)
{
    const size_t bytes = a->dtype == LOCUS_F64 ? sizeof(double) : sizeof(float);
    return memcmp(a->data, b->data, (size_t)locus_tensor_elements(a) * bytes) == 0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */

/* Which terms a call has, each against its formula written out here. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <locus/explain.h>

#include "core/tensor.h"
#include "explain/problems.h"
#include "layer/specs.h"
#include "support/check.h"

/* ---- which terms there are ---- */

static const struct {
    const char *variant, *terms;
} expected[] = {
    {"none", "content"},
    {"none-dense", "content bias_dense"},
    {"shaw", "content content-position"},
    {"shaw-values", "content"},
    {"relative_key", "content content-position"},
    {"relative_key_query", "content content-position position-content"},
    {"transformer_xl", "content content-position u.k w.r"},
    {"t5", "content bias"},
    {"tupe", "content position-position"},
    {"tupe-bias-cls", "content position-position bias cls"},
    {"deberta", "content content-position position-content"},
    {"deberta-c2p", "content content-position"},
    {"deberta-p2c", "content position-content"},
    {"alibi", "content bias"},
    {"alibi-fixed", "content bias"},
    {"kerple-log", "content bias"},
    {"rope-half", "rotation"},
    {"xpos", "rotation"},
};

static void check_names(const test_problem *p, const char *wanted)
{
    char found[256] = "";
    locus_explainer *e = explainer_of(p);
    locus_explainer_info info = {.size = sizeof info};
    if (e == NULL) return;
    locus_explainer_describe(e, &info);
    for (size_t t = 0; t < info.terms; t++) {
        const locus_explainer_term *term = locus_explainer_term_at(e, t);
        CHECK(term->formula[0] != '\0' &&
                  (term->place != 0 || strcmp(term->name, "bias_dense") == 0),
              "%s has no formula or no place", term->name);
        strcat(strcat(found, found[0] != '\0' ? " " : ""), term->name);
    }
    CHECK(strcmp(found, wanted) == 0, "terms are \"%s\", expected \"%s\"", found, wanted);
    CHECK(locus_explainer_term_at(e, info.terms) == NULL, "a term beyond the last");
    locus_explainer_free(e);
}

static void test_names(void)
{
    const test_spec shape = {.B = 1, .H = 2, .Tq = 9, .Tk = 9, .D = 4};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        if (!check_begin("terms/names/%s", expected[i].variant)) continue;
        test_problem *p = variant_problem(expected[i].variant, shape);
        if (CHECK(p != NULL, "no such variant")) check_names(p, expected[i].terms);
        test_problem_free(p);
    }
    for (size_t i = 0; i < LAYER_SPECS; i++) {
        const char *scheme = layer_specs[i].scheme;
        if (strcmp(scheme, "sinusoidal") != 0 && strcmp(scheme, "learned") != 0) continue;
        if (!check_begin("terms/names/layer/%s/%zu", scheme, i)) continue;
        test_problem *p = layer_problem(i);
        check_names(p, "content content-position position-content position-position");
        test_problem_free(p);
    }
}

/* ---- their values ---- */

/* Element d of the row of a tensor of any rank. */
static double element(const locus_tensor *t, int64_t i, int64_t j, int64_t k, int64_t d)
{
    if (t->rank == 2) return locus_get(t, i, d, 0, 0);
    return t->rank == 3 ? locus_get(t, i, j, d, 0) : locus_get(t, i, j, k, d);
}

static double dot(const locus_tensor *a, int64_t a0, int64_t a1, int64_t a2, const locus_tensor *b,
                  int64_t b0, int64_t b1, int64_t b2)
{
    double sum = 0.0;
    for (int64_t d = 0; d < a->shape[a->rank - 1]; d++)
        sum += element(a, a0, a1, a2, d) * element(b, b0, b1, b2, d);
    return sum;
}

static void expect(const double *terms, size_t count, const double *wanted, int64_t m, int64_t n)
{
    for (size_t t = 0; t < count; t++)
        CHECK(fabs(terms[t] - wanted[t]) <= 1e-12 * fmax(1.0, fabs(wanted[t])),
              "term %zu of (%d, %d) is %.17g, expected %.17g", t, (int)m, (int)n, terms[t],
              wanted[t]);
}

/* The terms of one pair. */
static void explain_one(const locus_explainer *e, int64_t b, int64_t h, int64_t i, int64_t n,
                        double *terms)
{
    const locus_explain_block block = {
        .size = sizeof block, .batch = b, .head = h, .query = i, .queries = 1, .key = n, .keys = 1};
    const locus_explained into = {.size = sizeof into, .terms = terms};
    locus_error error = {""};
    CHECK(locus_explain(e, &block, &into, &error) == LOCUS_OK, "%s", error.text);
}

/* Transformer-XL's (a) to (d): q.k, q.r, u.k, w.r, row = m - n - delta_min. */
static void test_transformer_xl(void)
{
    if (!check_begin("terms/values/transformer_xl")) return;
    const test_spec shape = {.B = 2, .H = 2, .Tq = 5, .Tk = 8, .D = 4};
    test_problem *p = variant_problem("transformer_xl", shape);
    const locus_tensors *in = &p->in[TEST_ORACLE];
    locus_explainer *e = explainer_of(p);
    for (int64_t i = 0; i < 5; i++)
        for (int64_t n = 0; n < 8; n++) {
            double terms[TERMS];
            const int64_t row = 3 + i - n - p->config.options.delta_min;
            const double c = 0.5;
            const double wanted[] = {c * dot(&in->q, 1, 1, i, &in->k, 1, 1, n),
                                     c * dot(&in->q, 1, 1, i, &in->rel_k, 1, row, 0),
                                     c * dot(&in->u, 1, 0, 0, &in->k, 1, 1, n),
                                     c * dot(&in->w, 1, 0, 0, &in->rel_k, 1, row, 0)};
            explain_one(e, 1, 1, i, n, terms);
            expect(terms, 4, wanted, i, n);
        }
    locus_explainer_free(e);
    test_problem_free(p);
}

/* TUPE with cls: row 0 and column 0 have it instead of both position terms. */
static void test_tupe(void)
{
    if (!check_begin("terms/values/tupe")) return;
    const test_spec shape = {.B = 1, .H = 2, .Tq = 4, .Tk = 4, .D = 2};
    test_problem *p = variant_problem("tupe-bias-cls", shape);
    const locus_tensors *in = &p->in[TEST_ORACLE];
    locus_explainer *e = explainer_of(p);
    const locus_options *o = &p->config.options;
    for (int64_t m = 0; m < 4; m++)
        for (int64_t n = 0; n < 4; n++) {
            double terms[TERMS];
            const double c = 0.5; /* 1 / sqrt(2 D) */
            const int64_t bucket =
                locus_t5_bucket(n - m, o->buckets, o->max_distance, (int)o->bidirectional);
            const int reset = m == 0 || n == 0;
            const double wanted[] = {c * dot(&in->q, 0, 1, m, &in->k, 0, 1, n),
                                     reset ? 0.0
                                           : c * dot(&in->pos_q, 1, m, 0, &in->pos_k, 1, n, 0),
                                     reset ? 0.0 : locus_get(&in->bias, bucket, 1, 0, 0),
                                     reset ? locus_get(&in->cls, m == 0 ? 0 : 1, 1, 0, 0) : 0.0};
            explain_one(e, 0, 1, m, n, terms);
            expect(terms, 4, wanted, m, n);
        }
    locus_explainer_free(e);
    test_problem_free(p);
}

/* W row + b of head h, column d; `row` has E numbers. */
static double projected(const locus_tensor *w, const locus_tensor *b, const double *row,
                        int64_t column)
{
    double sum = b != NULL && locus_present(b) ? locus_get(b, column, 0, 0, 0) : 0.0;
    for (int64_t e = 0; e < w->shape[1]; e++) sum += locus_get(w, column, e, 0, 0) * row[e];
    return sum;
}

/* The four terms of an embedded input, biases with the content, x with its factor. */
static void test_input(size_t i)
{
    test_problem *p = layer_problem(i);
    const locus_tensors *in = &p->in[TEST_ORACLE];
    const locus_options *o = &p->config.options;
    const int64_t E = p->spec.E, D = p->spec.D, T = p->spec.Tq, b = p->spec.B - 1, h = 1;
    const int learned = strcmp(p->spec.scheme, "learned") == 0;
    locus_explainer *e = explainer_of(p);
    for (int64_t m = 0; m < T; m++)
        for (int64_t n = 0; n < T; n++) {
            double terms[TERMS], wanted[4] = {0.0}, x[2][64], q[2][64];
            const int64_t at[] = {m, n};
            for (int side = 0; side < 2; side++) {
                locus_sinusoid(o->table, E, o->first_position + at[side], q[side]);
                for (int64_t c = 0; c < E; c++) {
                    if (learned) q[side][c] = locus_get(&in->pos, at[side], c, 0, 0);
                    x[side][c] =
                        (learned ? 1.0 : o->x_scale) * locus_get(&in->x, b, at[side], c, 0);
                }
            }
            for (int64_t d = h * D; d < (h + 1) * D; d++) {
                const double qx = projected(&in->w_q, &in->b_q, x[0], d);
                const double qp = projected(&in->w_q, NULL, q[0], d);
                const double kx = projected(&in->w_k, &in->b_k, x[1], d);
                const double kp = projected(&in->w_k, NULL, q[1], d);
                const double c = 1.0 / sqrt((double)D);
                wanted[0] += c * qx * kx;
                wanted[1] += c * qx * kp;
                wanted[2] += c * qp * kx;
                wanted[3] += c * qp * kp;
            }
            explain_one(e, b, h, m, n, terms);
            expect(terms, 4, wanted, m, n);
        }
    locus_explainer_free(e);
    test_problem_free(p);
}

static void test_inputs(void)
{
    for (size_t i = 0; i < LAYER_SPECS; i++) {
        const char *scheme = layer_specs[i].scheme;
        if (strcmp(scheme, "sinusoidal") != 0 && strcmp(scheme, "learned") != 0) continue;
        if (check_begin("terms/values/layer/%s/%zu", scheme, i)) test_input(i);
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_names();
    test_transformer_xl();
    test_tupe();
    test_inputs();
    return check_finish("explain-terms");
}

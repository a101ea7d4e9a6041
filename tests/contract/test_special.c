/* SPDX-License-Identifier: Apache-2.0 */
/* Special values: rows that see nothing, NaN and infinity in every operand, masked content,
 * huge and tiny logits, the caller's floating-point state. */

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "contract/variants.h"
#include "support/check.h"
#include "support/compare.h"
#include "support/special.h"

enum { T = 70, D = 6, ROW = 66, KEY = 3 };

static test_problem *make(const test_variant *v)
{
    return test_variant_problem(v, (test_spec){.B = 1, .H = 1, .Tq = T, .Tk = T, .D = D});
}

static void run(test_problem *p, int path)
{
    locus_error error = {{0}};
    const locus_status status = test_problem_run(p, path, 1, &error);
    CHECK(status == LOCUS_OK, "%s: %s", test_path_name(path), error.text);
}

/* A NaN or an infinity in one element of one input: exactly the rows that see it. */
static void test_value_in(const test_variant *v, const char *name, int64_t element, double value,
                          const char *what)
{
    test_problem *p = make(v);
    const int index = locus_tensor_index(name);
    const locus_tensor *t =
        strcmp(name, "dout") == 0 ? &p->dout[0] : locus_tensor_at_const(&p->in[0], (size_t)index);
    if (locus_tensor_elements(t) > element && check_begin("special/%s/%s/%s", what, v->name, name))
        test_special_value(p, name, element, value);
    test_problem_free(p);
}

/* ---- dropout ---- */

static int row_is_zero(const locus_tensor *t, int64_t row)
{
    for (int64_t c = 0; c < D; c++)
        if (test_value(t, row * D + c) != 0.0) return 0;
    return 1;
}

/* A row whose pairs are all dropped has out 0, but NaN where its lse is NaN: what a row of NaN gives
 * does not depend on the dice. */
static void test_all_dropped(void)
{
    static const test_variant variant = {"dropped", "none",
                                         "window_left=1 window_right=1 dropout=0.7 dropout_seed=5",
                                         NULL, NULL};
    if (!check_begin("special/all-dropped")) return;
    test_problem *p = make(&variant);
    run(p, TEST_ORACLE);
    int64_t row = T - 1;
    while (row > 0 && !row_is_zero(&p->results[0].out, row)) row--;
    if (CHECK(row > 0, "no row of this seed is dropped as a whole")) {
        test_special_value(p, "q", row * D, (double)NAN);
        CHECK(isnan(test_value(&p->results[1].out, row * D)), "out of a row of NaN");
    }
    test_problem_free(p);
}

/* The other pairs of a key of NaN are kept, with a weight that underflows to 0: only dropping hides a
 * NaN. */
static void test_underflow_is_not_dropped(void)
{
    static const test_variant variant = {"kept", "none", "dropout=0.5 dropout_seed=5", NULL, NULL};
    if (!check_begin("special/underflow-is-not-dropped")) return;
    test_problem *p = make(&variant);
    for (int64_t c = 0; c < D; c++) {
        test_set_value(&p->in[0].q, ROW * D + c, c == 0 ? 1.0 : 0.0);
        test_set_value(&p->in[0].k, KEY * D + c, c == 0 ? -1e4 : 0.0);
    }
    int64_t nan_rows = 0;
    test_special_value(p, "v", KEY * D, (double)NAN);
    for (int64_t i = 0; i < T; i++) nan_rows += isnan(test_value(&p->results[1].out, i * D)) != 0;
    CHECK(nan_rows > 0 && nan_rows < T, "%d rows keep the key of NaN", (int)nan_rows);
    test_problem_free(p);
}

/* ---- masked content ---- */

static void fill_row(const locus_tensor *t, int64_t row, double value)
{
    for (int64_t c = 0; c < D; c++) test_set_value(t, row * D + c, value);
}

/* What a masked key holds must not change a bit of any result. */
static void test_masked(const char *what, double value)
{
    static const test_variant variant = {"masked", "shaw", "clip_left=4 clip_right=4", "key_mask",
                                         NULL};
    if (!check_begin("special/masked/%s", what)) return;
    test_problem *plain = make(&variant), *odd = make(&variant);
    ((uint8_t *)plain->in[0].key_mask.data)[KEY] = 0;
    ((uint8_t *)odd->in[0].key_mask.data)[KEY] = 0;
    fill_row(&odd->in[0].k, KEY, value);
    fill_row(&odd->in[0].v, KEY, value);
    test_problem_sync(odd);
    run(plain, TEST_FLOAT);
    run(odd, TEST_FLOAT);
    const size_t bytes = T * D * sizeof(float);
    CHECK(memcmp(plain->results[1].out.data, odd->results[1].out.data, bytes) == 0, "out");
    CHECK(memcmp(plain->grad[1].q.data, odd->grad[1].q.data, bytes) == 0, "grad.q");
    CHECK(memcmp(plain->grad[1].k.data, odd->grad[1].k.data, bytes) == 0, "grad.k");
    CHECK(memcmp(plain->grad[1].v.data, odd->grad[1].v.data, bytes) == 0, "grad.v");
    CHECK(memcmp(plain->grad[1].rel_k.data, odd->grad[1].rel_k.data, 9 * D * 4) == 0, "rel_k");
    CHECK(memcmp(plain->grad[1].rel_v.data, odd->grad[1].rel_v.data, 9 * D * 4) == 0, "rel_v");
    test_problem_free(plain);
    test_problem_free(odd);
}

/* Causal: key T-1 is seen by the last query alone. */
static void test_causal_future(double value, const char *what)
{
    static const test_variant variant = {"future", "none", "causal=1", NULL, NULL};
    if (!check_begin("special/future/%s", what)) return;
    test_problem *plain = make(&variant), *odd = make(&variant);
    fill_row(&odd->in[0].k, T - 1, value);
    fill_row(&odd->in[0].v, T - 1, value);
    test_problem_sync(odd);
    run(plain, TEST_FLOAT);
    run(odd, TEST_FLOAT);
    const float *a = plain->results[1].out.data, *b = odd->results[1].out.data;
    CHECK(memcmp(a, b, (T - 1) * D * sizeof *a) == 0, "a query saw the future");
    CHECK(isnan(b[(T - 1) * D]), "the last query must see it");
    test_problem_free(plain);
    test_problem_free(odd);
}

/* ---- rows that see nothing ---- */

static int all_zero(const locus_tensor *t, int64_t from, int64_t count)
{
    static const float zero = 0.0f;
    for (int64_t i = from; i < from + count; i++)
        if (memcmp((const float *)t->data + i, &zero, sizeof zero) != 0) return 0;
    return 1;
}

static void test_empty_rows(const test_variant *v)
{
    test_variant masked = *v;
    masked.with = "mask:BH";
    if (!check_begin("special/empty/%s", v->name)) return;
    test_problem *p = make(&masked);
    memset((uint8_t *)p->in[0].mask.data + ROW * T, 0, T);
    run(p, TEST_FLOAT);
    CHECK(all_zero(&p->results[1].out, ROW * D, D), "out of an empty row");
    CHECK(((const float *)p->results[1].lse.data)[ROW] == -INFINITY, "lse of an empty row");
    CHECK(all_zero(&p->grad[1].q, ROW * D, D), "grad.q of an empty row");
    memset(p->in[0].mask.data, 0, T * T);
    run(p, TEST_FLOAT);
    CHECK(all_zero(&p->results[1].out, 0, T * D), "out of an empty call");
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *grad = locus_tensor_at_const(&p->grad[1], i);
        CHECK(all_zero(grad, 0, locus_tensor_elements(grad)), "grad.%s of an empty call",
              locus_tensor_name(i));
    }
    test_problem_free(p);
}

/* ---- ranges of logits ---- */

static void test_logits(const char *what, double q_scale, double tolerance)
{
    static const test_variant variant = {"logits", "none", NULL, NULL, NULL};
    if (!check_begin("special/logits/%s", what)) return;
    test_problem *p = make(&variant);
    for (int64_t i = 0; i < T * D; i++)
        test_set_value(&p->in[0].q, i, test_value(&p->in[0].q, i) * q_scale);
    test_problem_sync(p);
    run(p, TEST_ORACLE);
    run(p, TEST_FLOAT);
    char text[160];
    const comparison out = compare_tensors(&p->results[1].out, &p->results[0].out);
    CHECK(comparison_passes(&out, T * D, tolerance, text, sizeof text), "out: %s", text);
    const comparison dv = compare_tensors(&p->grad[1].v, &p->grad[0].v);
    CHECK(comparison_passes(&dv, T * D, 4 * tolerance, text, sizeof text), "grad.v: %s", text);
    test_problem_free(p);
}

static void test_infinities(void)
{
    static const test_variant variant = {"infinite", "none", NULL, NULL, NULL};
    if (check_begin("special/inf/value")) {
        test_problem *p = make(&variant);
        test_set_value(&p->in[0].v, KEY * D, (double)INFINITY);
        test_problem_sync(p);
        run(p, TEST_FLOAT);
        const float *out = p->results[1].out.data;
        int right = 1;
        for (int64_t i = 0; i < T; i++) right &= isinf(out[i * D]) && isfinite(out[i * D + 1]);
        CHECK(right, "an infinite value reaches its column in every row, and no other");
        test_problem_free(p);
    }
    if (check_begin("special/inf/query")) {
        test_problem *p = make(&variant);
        test_set_value(&p->in[0].q, ROW * D, (double)INFINITY);
        test_problem_sync(p);
        run(p, TEST_FLOAT);
        const float *out = p->results[1].out.data;
        int right = 1;
        for (int64_t i = 0; i < T; i++) right &= (isnan(out[i * D]) != 0) == (i == ROW);
        CHECK(right, "a +inf logit makes its row NaN, and no other");
        test_problem_free(p);
    }
}

static int all_finite(const locus_tensor *t)
{
    int finite = 1;
    for (int64_t i = 0; i < locus_tensor_elements(t); i++)
        finite &= isfinite(test_value(t, i)) != 0;
    return finite;
}

/* Nothing is masked, but an infinite query makes every logit of its row -inf: the row sees
 * nothing, and its infinity and dout reach nobody. */
static void test_hides_itself(void)
{
    static const test_variant variant = {"infinite", "none", NULL, NULL, NULL};
    if (!check_begin("special/inf/hides-itself")) return;
    test_problem *p = make(&variant);
    for (int64_t j = 0; j < T; j++) test_set_value(&p->in[0].k, j * D, 1.0);
    test_set_value(&p->in[0].q, ROW * D, -(double)INFINITY);
    test_set_value(&p->dout[0], ROW * D, (double)INFINITY);
    test_problem_sync(p);
    run(p, TEST_FLOAT);
    const locus_tensors *grad = &p->grad[1];
    CHECK(((const float *)p->results[1].lse.data)[ROW] == -INFINITY, "lse of the row");
    CHECK(all_zero(&p->results[1].out, ROW * D, D), "out of the row");
    CHECK(all_zero(&grad->q, ROW * D, D), "dq of the row");
    CHECK(all_finite(&grad->q) && all_finite(&grad->k) && all_finite(&grad->v),
          "the row reaches other gradients");
    test_problem_free(p);
}

/* ---- the caller's floating-point state ---- */

static void test_float_state(void)
{
    static const test_variant variant = {"state", "t5", NULL, NULL, NULL};
    if (!check_begin("special/float-state")) return;
    test_problem *nearest = make(&variant), *upward = make(&variant);
    run(nearest, TEST_FLOAT);
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    upward->config.threads = 2;
    run(upward, TEST_FLOAT);
    CHECK(fegetround() == FE_UPWARD, "the rounding mode was changed");
    fesetround(FE_TONEAREST);
    volatile float tiny = 1e-38f;
    tiny *= 0.01f;
    CHECK(tiny != 0.0f, "denormals are flushed after the call");
    CHECK(memcmp(nearest->results[1].out.data, upward->results[1].out.data,
                 T * D * sizeof(float)) == 0,
          "the caller's rounding mode changed the result");
    test_problem_free(nearest);
    test_problem_free(upward);
}

int main(int argc, char **argv)
{
    static const char *const inputs[] = {"q",     "k",      "v", "dout", "rel_k",     "rel_q",
                                         "rel_v", "u",      "w", "bias", "pos_q",     "pos_k",
                                         "cls",   "slopes", "a", "p",    "bias_dense"};
    if (!check_args(argc, argv)) return 2;
    for (size_t v = 0; v < TEST_VARIANTS; v += (check_sample() ? 3 : 1)) {
        for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
            const int64_t late = i < 4 ? ROW * D + 5 : 7;
            test_value_in(&test_variants[v], inputs[i], 0, (double)NAN, "nan");
            test_value_in(&test_variants[v], inputs[i], late, (double)NAN, "nan");
            test_value_in(&test_variants[v], inputs[i], late, (double)INFINITY, "inf");
            test_value_in(&test_variants[v], inputs[i], late, -(double)INFINITY, "minus-inf");
        }
        if (test_variants[v].with == NULL) test_empty_rows(&test_variants[v]);
    }
    test_masked("nan", (double)NAN);
    test_masked("inf", (double)INFINITY);
    test_masked("huge", 3e38);
    test_causal_future((double)NAN, "nan");
    test_causal_future((double)INFINITY, "inf");
    test_logits("tiny", 1e-30, 5e-6);
    test_logits("equal", 0.0, 5e-6);
    test_logits("large", 100.0, 1e-4);
    test_logits("denormal-weights", 40.0, 5e-5);
    test_infinities();
    test_all_dropped();
    test_underflow_is_not_dropped();
    test_hides_itself();
    test_float_state();
    return check_finish("special");
}

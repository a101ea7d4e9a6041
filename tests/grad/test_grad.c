/* SPDX-License-Identifier: Apache-2.0 */

/* Gradients of every scheme, tensor by tensor, at both levels. With L = sum(out * dout),
 *     dL/dx  ~  (L(x + eps) - L(x - eps)) / (2 eps)        in double, by the oracle
 * is held against the oracle's own gradient and against the library's float one. The
 * differences see nothing but forward passes, so a wrong backward formula can not hide. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/compare.h"
#include "support/problem.h"

/* Relative to max(1, largest |gradient| of the tensor). The oracle's differences have an
 * error of about eps^2 (third derivative) + 1e-16 / eps; floats that of golden files. */
static const double step = 1e-6, oracle_tolerance = 1e-7, float_tolerance = 2e-5;

/* What a scheme is tried with: its own variants ... */
typedef struct variant {
    const char *scheme, *name, *settings, *without;
} variant;

static const variant attend_variants[] = {
    {"none", "plain", "", ""},
    {"sinusoidal", "plain", "", ""},
    {"learned", "plain", "", ""},
    {"shaw", "both", "clip_left=3 clip_right=2", ""},
    {"shaw", "rel_k-only", "clip_left=2 clip_right=4", "rel_v"},
    {"shaw", "rel_v-only", "clip_left=2 clip_right=2", "rel_k"},
    {"shaw", "clip-zero", "clip_left=0 clip_right=0", ""},
    {"relative_key", "plain", "", ""},
    {"relative_key_query", "plain", "", ""},
    {"transformer_xl", "plain", "delta_min=0", ""},
    {"transformer_xl", "clamp", "delta_min=0 clamp=3", ""},
    {"t5", "both-ways", "buckets=8 max_distance=6", ""},
    {"t5", "one-way", "buckets=6 max_distance=7 bidirectional=0", ""},
    {"t5", "scaled", "buckets=4 max_distance=5 scale=0.4", ""},
    {"tupe", "absolute", "", "bias cls"},
    {"tupe", "relative", "buckets=8 max_distance=6", "cls"},
    {"tupe", "absolute-cls", "", "bias"},
    {"tupe", "relative-cls", "buckets=8 max_distance=6", ""},
    {"deberta", "both", "span=4", ""},
    {"deberta", "buckets", "span=6 buckets=6 max_distance=7", ""},
    {"deberta", "c2p-only", "span=3", "rel_q"},
    {"deberta", "p2c-only", "span=4 buckets=4 max_distance=6", "rel_k"},
    {"alibi", "slopes", "", ""},
    {"alibi", "published", "", "slopes"},
    {"kerple", "log", "form=log", ""},
    {"kerple", "power", "form=power", ""},
    {"rope", "half", "pairing=half", ""},
    {"rope", "interleaved", "pairing=interleaved base=100", ""},
    {"rope", "half-partial", "pairing=half width=4 theta_scale=0.25", ""},
    {"rope", "interleaved-partial", "pairing=interleaved width=2", ""},
    {"xpos", "plain", "", ""},
    {"xpos", "strong", "scale_base=4 base=50", ""},
};

static const variant layer_variants[] = {
    {"none", "plain", "", ""},
    {"none", "bare", "", "w_o b_o b_q b_k b_v"},
    {"sinusoidal", "paper", "table=paper", ""},
    {"sinusoidal", "t2t", "table=t2t first_position=2 x_scale=2.5", ""},
    {"sinusoidal", "half", "table=half first_position=100", "b_k"},
    {"learned", "plain", "", ""},
    {"shaw", "both", "clip_left=3 clip_right=2", ""},
    {"relative_key", "plain", "", ""},
    {"relative_key_query", "plain", "", "b_q b_k b_v b_o"},
    {"transformer_xl", "half", "table=half", "b_q b_k b_v b_o"},
    {"transformer_xl", "paper", "table=paper clamp=3", ""},
    {"t5", "both-ways", "buckets=8 max_distance=6", "b_q b_k b_v b_o"},
    {"tupe", "absolute", "", "bias cls b_pq b_pk"},
    {"tupe", "relative-cls", "buckets=8 max_distance=6", ""},
    {"deberta", "own", "span=4", ""},
    {"deberta", "shared", "span=4 buckets=4 max_distance=6", "w_rk w_rq b_rk b_rq"},
    {"deberta", "c2p-shared", "span=3 p2c=0", "w_rk w_rq b_rk b_rq"},
    {"deberta", "p2c-own", "span=3 c2p=0", "w_rk b_rk"},
    {"deberta", "mixed", "span=3", "w_rk b_rk b_rq"},
    {"alibi", "slopes", "", ""},
    {"kerple", "log", "form=log", ""},
    {"kerple", "power", "form=power", ""},
    {"rope", "half", "pairing=half", ""},
    {"rope", "interleaved", "pairing=interleaved width=4", ""},
    {"xpos", "plain", "", ""},
};

/* ... each in these circumstances. */
typedef struct circumstance {
    const char *name, *settings, *with;
    int64_t Tq, Tk, Hk, Dv;
} circumstance;

static const circumstance attend_circumstances[] = {
    {"full", "", "", 7, 7, 2, 0},
    {"causal", "causal=1", "", 7, 7, 2, 0},
    {"window", "window_left=2 window_right=1", "", 8, 8, 2, 0},
    {"masks", "", "key_mask mask:B1", 6, 6, 2, 0},
    {"dense", "", "bias_dense mask:11", 5, 6, 2, 0},
    {"dense-shared", "causal=1", "bias_dense:1H", 6, 6, 2, 0},
    {"dense-heads", "", "bias_dense:B1 key_mask", 6, 5, 2, 0},
    {"grouped", "", "", 5, 5, 1, 0},
    {"narrow", "", "", 5, 5, 2, 3},
    {"wide", "", "", 4, 5, 2, 9},
    {"cross", "", "", 3, 9, 2, 0},
    {"decode", "causal=1", "", 1, 8, 1, 0},
    {"offset", "query_offset=2 causal=1", "", 5, 5, 2, 0},
    {"dropout", "dropout=0.3 dropout_seed=81985529216486895", "", 7, 7, 2, 0},
    {"dropout-causal", "dropout=0.3 dropout_seed=7 causal=1", "key_mask", 6, 8, 1, 4},
};

static const circumstance layer_circumstances[] = {
    {"full", "", "", 6, 6, 0, 0},
    {"causal", "causal=1", "", 6, 6, 0, 0},
    {"memory", "causal=1", "", 4, 7, 0, 0},
    {"memory-both", "", "key_mask", 4, 7, 0, 0},
    {"window", "window_left=2 window_right=2", "mask:1H", 6, 6, 0, 0},
    {"dense", "", "bias_dense:11 key_mask", 5, 5, 0, 0},
    {"dropout", "dropout=0.3 dropout_seed=99", "", 5, 5, 0, 0},
};

/* ---- one tensor ---- */

/* The difference quotient of element i. */
static double difference(test_problem *p, const locus_tensor *t, int64_t i, locus_error *error)
{
    const double saved = test_value(t, i);
    double loss[2] = {(double)NAN, (double)NAN};
    for (int side = 0; side < 2; side++) {
        test_set_value(t, i, saved + (side == 0 ? step : -step));
        if (test_problem_run(p, TEST_ORACLE, 0, error) == LOCUS_OK)
            loss[side] = test_problem_loss(p);
    }
    test_set_value(t, i, saved);
    return (loss[0] - loss[1]) / (2.0 * step);
}

/* A sampled run looks at some elements of a large tensor, at least a few. */
static int64_t stride_of(int64_t elements)
{
    return check_sample() && elements > 12 ? elements / 12 | 1 : 1;
}

static void check_tensor(test_problem *p, size_t index, int float_ran)
{
    const locus_tensor *t = locus_tensor_at_const(&p->in[TEST_ORACLE], index);
    const locus_tensor *exact = locus_tensor_at_const(&p->grad[TEST_ORACLE], index);
    const locus_tensor *rough = locus_tensor_at_const(&p->grad[TEST_FLOAT], index);
    const int64_t elements = locus_tensor_elements(t), stride = stride_of(elements);
    const double scale = comparison_scale_f64(exact->data, (size_t)elements);
    comparison by_oracle = comparison_start(scale), by_float = comparison_start(scale);
    size_t expected = 0;
    locus_error error = {"nothing went wrong"};
    char text[256];
    for (int64_t i = 0; i < elements; i += stride, expected++) {
        const double want = difference(p, t, i, &error);
        comparison_add(&by_oracle, test_value(exact, i), want);
        comparison_add(&by_float, test_value(rough, i), want);
    }
    const int good = comparison_passes(&by_oracle, expected, oracle_tolerance, text, sizeof text);
    CHECK(good, "oracle's gradient against differences: %s (%s)", text, error.text);
    if (!float_ran) return;
    const int close = comparison_passes(&by_float, expected, float_tolerance, text, sizeof text);
    CHECK(close, "float gradient against differences: %s", text);
    const comparison all = compare_tensors(rough, exact);
    const int whole = comparison_passes(&all, (size_t)elements, float_tolerance, text, sizeof text);
    CHECK(whole, "float gradient against the oracle's: %s", text);
}

/* ---- one problem ---- */

static void check_results(test_problem *p)
{
    char text[256];
    const comparison out = compare_tensors(&p->results[1].out, &p->results[0].out);
    const size_t outs = (size_t)locus_tensor_elements(&p->results[0].out);
    const int out_good = comparison_passes(&out, outs, 5e-6, text, sizeof text);
    CHECK(out_good, "out: %s", text);
    const comparison lse = compare_tensors(&p->results[1].lse, &p->results[0].lse);
    const size_t rows = (size_t)locus_tensor_elements(&p->results[0].lse);
    const int lse_good = comparison_passes(&lse, rows, 5e-6, text, sizeof text);
    CHECK(lse_good, "lse: %s", text);
}

static void check_problem(const test_spec *spec, const char *name)
{
    test_problem *p = test_problem_new(spec);
    const char *level = spec->level == LOCUS_LAYER ? "layer" : "attend";
    locus_error error = {""};
    int oracle_ran = 0, float_ran = 0;
    if (check_begin("grad/%s/%s/%s/%s/out", spec->scheme, level, p->shape, name)) {
        oracle_ran = CHECK(test_problem_run(p, TEST_ORACLE, 1, &error) == LOCUS_OK, "oracle: %s",
                           error.text);
        float_ran =
            CHECK(test_problem_run(p, TEST_FLOAT, 1, &error) == LOCUS_OK, "float: %s", error.text);
        if (oracle_ran && float_ran) check_results(p);
    }
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        if (locus_tensor_at_const(&p->grad[0], i)->rank == 0) continue;
        if (!check_begin("grad/%s/%s/%s/%s/%s", spec->scheme, level, p->shape, name,
                         locus_tensor_name(i)))
            continue;
        if (!oracle_ran) /* the filter left /out out */
            oracle_ran = CHECK(test_problem_run(p, TEST_ORACLE, 1, &error) == LOCUS_OK,
                               "oracle: %s", error.text);
        if (!float_ran)
            float_ran = CHECK(test_problem_run(p, TEST_FLOAT, 1, &error) == LOCUS_OK, "float: %s",
                              error.text);
        if (oracle_ran) check_tensor(p, i, float_ran);
    }
    test_problem_free(p);
}

/* ---- the grid ---- */

static void combine(const variant *v, const circumstance *c, uint32_t level, uint64_t seed)
{
    char settings[256], name[96];
    const int embeds = strcmp(v->scheme, "sinusoidal") == 0 || strcmp(v->scheme, "learned") == 0;
    const int turns = strcmp(v->scheme, "rope") == 0 || strcmp(v->scheme, "xpos") == 0;
    if (level == LOCUS_LAYER && embeds && c->Tk != c->Tq) return; /* they take no memory */
    if (strcmp(v->scheme, "tupe") == 0 && c->Tk < c->Tq) return;  /* no rows before position 0 */
    snprintf(settings, sizeof settings, "%s %s", v->settings, c->settings);
    snprintf(name, sizeof name, "%s-%s", v->name, c->name);
    check_problem(
        &(test_spec){
            .scheme = v->scheme,
            .level = level,
            .B = 2,
            .H = 2,
            .Hk = c->Hk,
            .Tq = c->Tq,
            .Tk = c->Tk,
            .D = turns ? 6 : 5,
            .Dv = c->Dv,
            .E = level == LOCUS_LAYER ? 7 : 0,
            .settings = settings + strspn(settings, " "),
            .with = c->with,
            .without = v->without,
            .seed = seed,
        },
        name);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    const size_t stride = check_sample() ? 3 : 1; /* coprime to both counts */
    size_t at = 0;
    for (size_t v = 0; v < COUNT(attend_variants); v++)
        for (size_t c = 0; c < COUNT(attend_circumstances); c++)
            if (at++ % stride == v % stride || c == 0)
                combine(&attend_variants[v], &attend_circumstances[c], LOCUS_ATTEND, at);
    for (size_t v = 0; v < COUNT(layer_variants); v++)
        for (size_t c = 0; c < COUNT(layer_circumstances); c++)
            if (at++ % stride == v % stride || c == 0)
                combine(&layer_variants[v], &layer_circumstances[c], LOCUS_LAYER, at);
    return check_finish("grad");
}

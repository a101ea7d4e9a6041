/* SPDX-License-Identifier: Apache-2.0 */
/* Calls drawn at random, always the same ones: every scheme with options of any size, extents
 * around the constants that cut work (cuts.h), grouped heads, offsets, windows, masks, dropout,
 * views, threads, paths and tables, held to the oracle and the oracle to the formulas. What no list
 * of cases thought of meets here: two boundaries at once, a stride beside a mask beside a window. */

#include <inttypes.h>
#include <locus/runtime.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "attention/cuts.h"
#include "support/check.h"
#include "support/judge.h"
#include "support/views.h"

typedef struct draw {
    uint64_t number, drawn;
} draw;

static double uniform(draw *d) { return test_uniform(1000003 + d->number, d->drawn++); }
static int64_t below(draw *d, int64_t limit) { return (int64_t)(uniform(d) * (double)limit); }
static int chance(draw *d, int64_t of) { return below(d, of) == 0; }

#define PICK(d, list) ((list)[below(d, (int64_t)(sizeof(list) / sizeof *(list)))])

/* ---- extents ---- */

/* A multiple of a constant, less one, as it is, or one more; or a small number. */
static int64_t near_cut(draw *d, const int64_t *cuts, size_t count, int64_t most)
{
    const int64_t value = cuts[below(d, (int64_t)count)] * (1 + below(d, 3)) - 1 + below(d, 3);
    return chance(d, 3) || value > most ? 1 + below(d, 40) : value;
}

static int64_t queries(draw *d)
{
    static const int64_t cuts[] = {ROWS_PATH_QUERIES,  FORWARD_ROWS,  SHORT_ROWS,
                                   BACKWARD_ROWS,      KEY_SIDE_TILE, CHUNK_ROWS,
                                   LOCUS_REGISTER_ROWS};
    return near_cut(d, cuts, sizeof cuts / sizeof *cuts, 800);
}

static int64_t keys(draw *d)
{
    static const int64_t cuts[] = {LOCUS_LANES,  LOCUS_PANEL,   ROWS_PATH_KEYS,
                                   SHORT_KEYS,   BACKWARD_KEYS, BACKWARD_GAIN_KEYS,
                                   FORWARD_KEYS, GROUP_KEYS,    SHARED_SPLIT_KEYS};
    return near_cut(d, cuts, sizeof cuts / sizeof *cuts, 2100);
}

static int64_t width(draw *d)
{
    static const int64_t cuts[] = {4, 8, LOCUS_LANES, 32, LOCUS_PANEL};
    return near_cut(d, cuts, sizeof cuts / sizeof *cuts, 130);
}

/* Costs of a call in multiply-adds; the longest extent is halved until it is small. */
static void shrink(test_spec *s)
{
    while (s->B * s->H * s->Tq * s->Tk * (s->D + s->Dv) > 4000000) {
        if (s->B > 1)
            s->B--;
        else if (s->H > s->Hk && s->Hk > 1)
            s->H = s->Hk;
        else if (s->D + s->Dv > 24)
            s->D = (s->D + 3) / 4 * 2, s->Dv = (s->Dv + 1) / 2;
        else if (s->Tq > s->Tk)
            s->Tq = (s->Tq + 1) / 2;
        else
            s->Tk = (s->Tk + 1) / 2;
    }
}

static test_spec draw_shape(draw *d)
{
    test_spec s = {.level = LOCUS_ATTEND, .B = 1 + below(d, 3), .Tq = queries(d), .Tk = keys(d)};
    s.Hk = 1 + below(d, 3);
    s.H = s.Hk * (1 + below(d, 3));
    s.D = width(d);
    s.Dv = chance(d, 2) ? s.D : width(d);
    shrink(&s);
    return s;
}

/* ---- settings ---- */

typedef struct settings {
    char text[256];
    size_t used;
} settings;

static void add(settings *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(settings *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    s->used += (size_t)vsnprintf(s->text + s->used, sizeof s->text - s->used, format, arguments);
    va_end(arguments);
    s->text[s->used++] = ' ';
    s->text[s->used] = '\0';
}

static void add_buckets(draw *d, settings *s, int may_be_odd)
{
    const int64_t buckets = 2 * (2 + below(d, 30));
    add(s, "buckets=%" PRId64, buckets);
    add(s, "max_distance=%" PRId64, buckets + 1 + below(d, 3) * below(d, 400));
    if (may_be_odd) add(s, "bidirectional=%d", chance(d, 2));
}

static void draw_options(draw *d, const char *scheme, settings *s, int64_t D)
{
    static const int64_t clips[] = {0, 1, 2, 15, 31, 32, 33, 63, 64, 65, 130, 700};
    if (strcmp(scheme, "shaw") == 0) {
        add(s, "clip_left=%" PRId64, PICK(d, clips));
        add(s, "clip_right=%" PRId64, PICK(d, clips));
    } else if (strcmp(scheme, "transformer_xl") == 0) {
        if (chance(d, 2)) add(s, "clamp=%" PRId64, 1 + PICK(d, clips));
    } else if (strcmp(scheme, "t5") == 0 || strcmp(scheme, "tupe") == 0) {
        add_buckets(d, s, 1);
    } else if (strcmp(scheme, "deberta") == 0) {
        const int64_t span = 2 * (1 + below(d, 40));
        add(s, "span=%" PRId64, span);
        if (chance(d, 2)) {
            add(s, "buckets=%" PRId64, span);
            add(s, "max_distance=%" PRId64, span / 2 + 2 + below(d, 300));
        }
    } else if (strcmp(scheme, "kerple") == 0) {
        add(s, "form=%s", chance(d, 2) ? "log" : "power");
    } else if (strcmp(scheme, "rope") == 0) {
        add(s, "pairing=%s", chance(d, 2) ? "half" : "interleaved");
        if (chance(d, 3)) add(s, "width=%" PRId64, 2 * (1 + below(d, D / 2)));
        if (chance(d, 3)) add(s, "base=%d", 100 + (int)below(d, 5000));
        if (chance(d, 3)) add(s, "theta_scale=%g", 0.125 * (double)(1 + below(d, 16)));
    } else if (strcmp(scheme, "xpos") == 0) {
        add(s, "scale_base=%d", 512 + (int)below(d, 4000));
    }
}

static void draw_config(draw *d, settings *s, const test_spec *shape, int absolute)
{
    static const int64_t windows[] = {0, 1, 5, 16, 63, 64, 65, 200};
    if (chance(d, 3)) add(s, "causal=1");
    if (chance(d, 3)) add(s, "window_left=%" PRId64, PICK(d, windows));
    if (chance(d, 3)) add(s, "window_right=%" PRId64, PICK(d, windows));
    const int64_t from = absolute ? 0 : -shape->Tq - 5;
    if (absolute || chance(d, 3))
        add(s, "query_offset=%" PRId64,
            from + below(d, shape->Tk + (absolute ? 5 : shape->Tq) + 10));
    if (chance(d, 4)) add(s, "scale=%g", (uniform(d) * 2 - 0.5) / sqrt((double)shape->D));
    if (chance(d, 4)) {
        add(s, "dropout=%g", 0.05 + 0.9 * uniform(d));
        add(s, "dropout_seed=%" PRIu64, (uint64_t)(uniform(d) * 0x1p53) << 11 | d->number);
    }
}

/* ---- masks ---- */

/* Batch entries hide their first keys, their last ones, every second one, or any. */
static void draw_key_mask(draw *d, const test_problem *p)
{
    const int64_t Tk = p->spec.Tk;
    for (int64_t b = 0; p->in[0].key_mask.rank != 0 && b < p->spec.B; b++) {
        const int64_t kind = below(d, 5), cut = below(d, Tk + 1);
        for (int64_t n = 0; n < Tk; n++)
            ((uint8_t *)p->in[0].key_mask.data)[b * Tk + n] =
                (uint8_t)(kind == 0   ? n >= cut
                          : kind == 1 ? n < cut
                          : kind == 2 ? (n + cut) % 2
                          : kind == 3 ? 1
                                      : !chance(d, 3));
    }
}

/* Some rows of the mask see a part only, some nothing, some all. */
static void draw_mask(draw *d, const locus_tensor *mask)
{
    for (int64_t row = 0; mask->rank != 0 && row < locus_tensor_elements(mask) / mask->shape[3];
         row++) {
        const int64_t kind = below(d, 6), cut = below(d, mask->shape[3] + 1);
        for (int64_t n = 0; n < mask->shape[3] && kind < 5; n++)
            ((uint8_t *)mask->data)[row * mask->shape[3] + n] = (uint8_t)(kind == 0   ? n >= cut
                                                                          : kind == 1 ? n < cut
                                                                          : kind < 4  ? 1
                                                                                      : 0);
    }
}

/* NaN where the key mask of a batch entry hides a key from all. */
static void spoil_hidden(const test_problem *p)
{
    const locus_tensors *in = &p->in[0];
    for (int64_t i = 0; i < locus_tensor_elements(&in->k) + locus_tensor_elements(&in->v); i++) {
        const int is_key = i < locus_tensor_elements(&in->k);
        const locus_tensor *t = is_key ? &in->k : &in->v;
        const int64_t at = is_key ? i : i - locus_tensor_elements(&in->k);
        const int64_t n = at / t->shape[3] % t->shape[2],
                      b = at / (t->shape[3] * t->shape[2] * t->shape[1]);
        if (!((const uint8_t *)in->key_mask.data)[b * p->spec.Tk + n])
            test_set_value(t, at, (double)NAN);
    }
}

static void hide_some(draw *d, const locus_tensor *dense)
{
    for (int64_t i = 0; i < locus_tensor_elements(dense); i++)
        if (chance(d, 9)) test_set_value(dense, i, (double)-INFINITY);
}

/* ---- one call ---- */

static const char *const schemes[] = {"none", "shaw",    "relative_key", "relative_key_query",
                                      "rope", "t5",      "tupe",         "transformer_xl",
                                      "xpos", "deberta", "alibi",        "kerple"};

static const char *draw_without(draw *d, const char *scheme, const test_spec *s)
{
    if (strcmp(scheme, "shaw") == 0) return PICK(d, ((const char *const[]){"", "rel_k", "rel_v"}));
    if (strcmp(scheme, "deberta") == 0)
        return PICK(d, ((const char *const[]){"", "rel_k", "rel_q"}));
    if (strcmp(scheme, "tupe") == 0)
        return PICK(d, ((const char *const[]){"", "bias", "cls", "bias cls"}));
    /* published slopes are steep: logits of hundreds lose digits */
    return strcmp(scheme, "alibi") == 0 && s->Tq + s->Tk < 150 && chance(d, 2) ? "slopes" : "";
}

static const char *draw_gradient(draw *d, const test_problem *p)
{
    const size_t first = (size_t)below(d, LOCUS_TENSOR_COUNT);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const size_t index = (first + i) % LOCUS_TENSOR_COUNT;
        if (locus_tensor_at_const(&p->grad[1], index)->rank != 0) return locus_tensor_name(index);
    }
    return NULL;
}

static const char *draw_isa(draw *d)
{
    size_t count = 0;
    while (locus_isa_name(count) != NULL && locus_isa_available(locus_isa_name(count))) count++;
    return locus_isa_name((size_t)below(d, (int64_t)count));
}

/* Gradients of an eighth: tolerances are absolute below 1, and sums of thousands of terms that
 * cancel keep their rounding errors below them. */
static void lower_dout(test_problem *p)
{
    for (int64_t i = 0; i < locus_tensor_elements(&p->dout[0]); i++)
        test_set_value(&p->dout[0], i, test_value(&p->dout[0], i) / 8);
}

static void run(draw *d, test_problem *p)
{
    p->config.isa = draw_isa(d);
    p->config.threads = 1 + (uint32_t)below(d, 3);
    p->config.path = PICK(d, ((const char *const[]){NULL, NULL, "tiles", "rows"}));
    draw_key_mask(d, p);
    draw_mask(d, &p->in[0].mask);
    if (p->in[0].bias_dense.rank != 0 && chance(d, 2)) hide_some(d, &p->in[0].bias_dense);
    if (p->in[0].key_mask.rank != 0 && chance(d, 2)) spoil_hidden(p);
    lower_dout(p);
    test_calm(p);                                   /* and takes all of it to the float side */
    const int spoilt = p->in[0].key_mask.rank != 0; /* broadcast views would move the NaN */
    const int kind = !spoilt && chance(d, 3) ? TEST_VIEWS_BROADCAST : TEST_VIEWS_GAPS;
    test_views *views = chance(d, 5) ? NULL : test_views_new(p, kind, d->number + 77);
    const test_manner manner = {.forward_only = chance(d, 4),
                                .accumulate = chance(d, 3),
                                .prepared = chance(d, 3),
                                .only = chance(d, 4) ? draw_gradient(d, p) : NULL,
                                .misalign = 8 * (size_t)below(d, 8)};
    test_judge(p, &manner);
    const char *damaged = views != NULL ? test_views_damaged(views) : NULL;
    CHECK(damaged == NULL, "memory beside %s was written", damaged);
    test_problem_free(p);
    test_views_free(views);
}

static void one_call(uint64_t number)
{
    static const char *const with[] = {"",
                                       "",
                                       "key_mask",
                                       "mask:BH",
                                       "mask:11",
                                       "mask:1H key_mask",
                                       "mask:B1",
                                       "bias_dense:BH",
                                       "bias_dense:1H key_mask",
                                       "bias_dense:B1 mask:1H",
                                       "bias_dense:11"};
    draw d = {.number = number};
    test_spec shape = draw_shape(&d);
    settings text = {.used = 0};
    shape.scheme = PICK(&d, schemes);
    const int turns = strcmp(shape.scheme, "rope") == 0 || strcmp(shape.scheme, "xpos") == 0;
    if (turns) shape.D += shape.D % 2;
    if (strcmp(shape.scheme, "t5") == 0 && shape.D > 32) shape.D = 32; /* its scale is 1 */
    draw_options(&d, shape.scheme, &text, shape.D);
    draw_config(&d, &text, &shape, strcmp(shape.scheme, "tupe") == 0);
    shape.settings = text.text;
    shape.with = PICK(&d, with);
    shape.without = draw_without(&d, shape.scheme, &shape);
    shape.seed = number + 1;
    if (!check_begin("bounds/random/%" PRIu64 "/%s/B%" PRId64 "H%" PRId64 "k%" PRId64 "q%" PRId64
                     "k%" PRId64 "d%" PRId64 "v%" PRId64 "/%s%s%s",
                     number, shape.scheme, shape.B, shape.H, shape.Hk, shape.Tq, shape.Tk, shape.D,
                     shape.Dv, text.text, shape.with, shape.without))
        return;
    run(&d, test_problem_new(&shape));
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    const uint64_t count = check_sample() ? 150 : check_full() ? 20000 : 1200;
    for (uint64_t number = 0; number < count; number++) one_call(number);
    return check_finish("bounds/random");
}

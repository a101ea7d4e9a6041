/* SPDX-License-Identifier: Apache-2.0 */
/* Positions that a call brings: every scheme that has a distance, held to the oracle and to naive.h
 * on both paths; what moves all of them or none changes nothing; and what is refused. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locus/locus.h>

#include "support/check.h"
#include "support/judge.h"

/* A scheme, and options that leave no distance without a row. */
typedef struct placed {
    const char *scheme, *settings, *without;
} placed;

static const placed schemes[] = {
    {"shaw", "clip_left=3 clip_right=2", NULL},
    {"relative_key", "", NULL},
    {"relative_key_query", "", NULL},
    {"transformer_xl", "clamp=4", NULL},
    {"transformer_xl", "", NULL},
    {"t5", "buckets=8 max_distance=16", NULL},
    {"tupe", "buckets=8 max_distance=16", NULL},
    {"tupe", "buckets=8 max_distance=16", "cls"},
    {"deberta", "span=8 buckets=8 max_distance=12", NULL},
    {"deberta", "span=4", "rel_q"},
    {"alibi", "", NULL},
    {"kerple", "form=log", NULL},
    {"kerple", "form=power", NULL},
    {"distance", "", NULL},
    {"table", "", "rel_q"},
    {"table", "", NULL},
    {"fire", "causal=1", NULL},
    {"sam", "", NULL},
    {"swin", "", NULL},
    {"swin", "", "cls"},
};

typedef struct shape {
    int64_t B, H, Hk, Tq, Tk, D;
    const char *settings, *with;
} shape;

/* The rows path, one tile, several tiles of queries and keys in both directions; beside masks,
 * windows, shared heads, dropout, cap and sink. */
static const shape shapes[] = {
    {1, 2, 2, 1, 40, 8, "", "q_positions k_positions"},
    {2, 2, 1, 5, 150, 6, "softcap=2", "q_positions k_positions sink"},
    {2, 2, 2, 9, 9, 5, "causal=1", "q_positions k_positions key_mask"},
    {1, 2, 1, 70, 70, 8, "window_left=30 window_right=9 dropout=0.3", "k_positions mask:11"},
    {1, 1, 1, 100, 530, 4, "", "q_positions k_positions bias_dense:11"},
};

static int is_grid(const char *scheme)
{
    return strcmp(scheme, "sam") == 0 || strcmp(scheme, "swin") == 0;
}

static test_problem *new_problem(const placed *s, const shape *at, char *settings, size_t room)
{
    const char *gap = s->settings[0] != '\0' && at->settings[0] != '\0' ? " " : "";
    snprintf(settings, room, "%s%s%s", s->settings, gap, at->settings);
    return test_problem_new(&(test_spec){.scheme = s->scheme,
                                         .level = LOCUS_ATTEND,
                                         .B = at->B,
                                         .H = at->H,
                                         .Hk = at->Hk,
                                         .Tq = at->Tq,
                                         .Tk = at->Tk,
                                         .D = at->D,
                                         .settings = settings,
                                         .with = at->with,
                                         .without = s->without,
                                         .reach = at->Tk + at->Tq});
}

static void check_judged(void)
{
    for (size_t x = 0; x < sizeof schemes / sizeof *schemes; x++)
        for (size_t y = 0; y < sizeof shapes / sizeof *shapes; y++) {
            const placed *s = &schemes[x];
            char settings[128];
            if (!check_begin("contract/places/%s-%zu/%zu", s->scheme, x, y)) continue;
            test_problem *p = new_problem(s, &shapes[y], settings, sizeof settings);
            test_calm(p);
            test_judge(p, &(test_manner){0});
            test_judge(p, &(test_manner){.accumulate = 1, .prepared = 1});
            test_problem_free(p);
        }
}

/* ---- identities ---- */

static void move(const locus_tensor *t, int64_t by)
{
    for (int64_t i = 0; i < locus_tensor_elements(t); i++) ((int64_t *)t->data)[i] += by;
}

static void set_own(const locus_tensor *t, int64_t first)
{
    for (int64_t i = 0; i < locus_tensor_elements(t); i++) ((int64_t *)t->data)[i] = first + i;
}

static int same_bits(const locus_tensor *a, const locus_tensor *b)
{
    return memcmp(a->data, b->data, (size_t)locus_tensor_elements(a) * sizeof(float)) == 0;
}

/* The results of two problems, and those gradients that both have. */
static void check_same(test_problem *a, test_problem *b)
{
    locus_error error = {""};
    const int ran = test_problem_run(a, TEST_FLOAT, 1, &error) == LOCUS_OK &&
                    test_problem_run(b, TEST_FLOAT, 1, &error) == LOCUS_OK;
    if (!CHECK(ran, "%s", error.text)) return;
    CHECK(same_bits(&a->results[1].out, &b->results[1].out), "out has other bits");
    CHECK(same_bits(&a->results[1].lse, &b->results[1].lse), "lse has other bits");
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *x = locus_tensor_at(&a->grad[1], i);
        if (x->rank != 0)
            CHECK(same_bits(x, locus_tensor_at(&b->grad[1], i)), "grad.%s has other bits",
                  locus_tensor_name(i));
    }
}

/* A number added to all positions, and 0 .. n - 1, which are those of the rows. */
static void check_identities(void)
{
    for (size_t x = 0; x < sizeof schemes / sizeof *schemes; x++) {
        const placed *s = &schemes[x];
        const shape at = {2, 2, 2, 60, 60, 8, "", "q_positions k_positions"};
        const shape bare = {2, 2, 2, 60, 60, 8, "", NULL};
        char settings[128];
        if (strcmp(s->scheme, "fire") != 0 &&
            check_begin("contract/places/shift/%s-%zu", s->scheme, x)) {
            test_problem *a = new_problem(s, &at, settings, sizeof settings);
            test_problem *b = new_problem(s, &at, settings, sizeof settings);
            move(&b->in[1].q_positions, -1000000007);
            move(&b->in[1].k_positions, -1000000007);
            check_same(a, b);
            test_problem_free(a);
            test_problem_free(b);
        }
        if (!is_grid(s->scheme) && check_begin("contract/places/own/%s-%zu", s->scheme, x)) {
            test_problem *a = new_problem(s, &at, settings, sizeof settings);
            test_problem *b = new_problem(s, &bare, settings, sizeof settings);
            set_own(&a->in[1].q_positions, 0);
            set_own(&a->in[1].k_positions, 0);
            check_same(a, b);
            test_problem_free(a);
            test_problem_free(b);
        }
    }
}

/* One line of pixels is one axis. */
static void check_one_line(void)
{
    if (!check_begin("contract/places/one-line")) return;
    enum { T = 70, H = 2 };
    char settings[128];
    const shape at = {1, H, H, T, T, 8, "", ""};
    const placed swin = {"swin", "", "cls"}, distance = {"distance", "", NULL};
    test_problem *a = new_problem(&swin, &at, settings, sizeof settings);
    test_problem *b = new_problem(&distance, &at, settings, sizeof settings);
    const locus_tensor *wide = &b->in[1].bias;
    const int64_t R = wide->shape[1], extents[] = {1, R, H};
    float *bias = malloc((size_t)(R * H) * sizeof *bias);
    float *grad = malloc((size_t)(R * H) * sizeof *grad);
    if (bias == NULL || grad == NULL) exit(2);
    for (int64_t r = 0; r < R; r++)
        for (int64_t h = 0; h < H; h++) bias[r * H + h] = ((const float *)wide->data)[h * R + r];
    a->in[1].bias = locus_view(bias, LOCUS_F32, 3, extents);
    a->grad[1].bias = locus_view(grad, LOCUS_F32, 3, extents);
    for (int64_t i = 0; i < T; i++)
        for (int side = 0; side < 2; side++) {
            const locus_tensor *t = side == 0 ? &a->in[1].q_positions : &a->in[1].k_positions;
            ((int64_t *)t->data)[2 * i] = 3;
            ((int64_t *)t->data)[2 * i + 1] = i;
        }
    locus_error error = {""};
    const int ran = test_problem_run(a, TEST_FLOAT, 1, &error) == LOCUS_OK &&
                    test_problem_run(b, TEST_FLOAT, 1, &error) == LOCUS_OK;
    if (CHECK(ran, "%s", error.text)) {
        test_judge_tensor("out", &a->results[1].out, &b->results[1].out, 1e-6);
        test_judge_tensor("grad.q", &a->grad[1].q, &b->grad[1].q, 1e-5);
    }
    free(bias);
    free(grad);
    test_problem_free(a);
    test_problem_free(b);
}

/* ---- how far positions may lie apart ---- */

/* A bias of any distance is a table for max(FEW_ENTRIES, ENTRIES_PER_ROW (Tq + Tk)) distances, and is
 * asked for every pair beyond that. */
static void check_span(int64_t span, int64_t rows)
{
    char settings[32];
    const shape at = {1, 1, 1, rows, rows, 4, "", "q_positions k_positions"};
    const placed alibi = {"alibi", "", NULL};
    if (!check_begin("contract/places/span/%lld", (long long)span)) return;
    test_problem *p = new_problem(&alibi, &at, settings, sizeof settings);
    for (int side = 0; side < 2; side++)
        for (int64_t i = 0; i < rows; i++) {
            const locus_tensor *t = side == 0 ? &p->in[1].q_positions : &p->in[1].k_positions;
            ((int64_t *)t->data)[i] = i * 37 % 5 == 3 ? span / 2 : i;
        }
    for (int x = 0; x < 2; x++)
        for (int64_t i = 0; i < locus_tensor_elements(&p->in[x].slopes); i++)
            if (x == 0)
                ((double *)p->in[x].slopes.data)[i] = 0x1p-12;
            else
                ((float *)p->in[x].slopes.data)[i] = 0x1p-12f;
    test_judge(p, &(test_manner){0});
    test_problem_free(p);
}

/* MOST_PLACE: places are counted in 32 bits, gaps no wider than the table left in between. */
static void check_far_places(int64_t rows, int fits)
{
    enum { CLIP = 1 << 20 };
    if (!check_begin("contract/places/far/%lld", (long long)rows)) return;
    const shape at = {1, 1, 1, 1, rows, 1, "", "k_positions"};
    const placed shaw = {"shaw", "clip_left=1048576 clip_right=1048576", "rel_v"};
    char settings[64];
    test_problem *p = new_problem(&shaw, &at, settings, sizeof settings);
    for (int64_t i = 0; i < rows; i++)
        ((int64_t *)p->in[1].k_positions.data)[i] = (2 * i - rows) * 3 * CLIP;
    ((int64_t *)p->in[1].k_positions.data)[0] = CLIP; /* near the query: the whole table */
    ((int64_t *)p->in[1].k_positions.data)[1] = -CLIP;
    locus_error error = {""};
    locus_plan *plan = NULL;
    const locus_status status = locus_plan_new(&plan, &p->config, &p->in[1], &error);
    CHECK(fits ? status == LOCUS_OK : status == LOCUS_ERR_UNSUPPORTED, "found %d: %s", (int)status,
          error.text);
    locus_plan_free(plan);
    test_problem_free(p);
}

/* MAX_SINUSOIDS: what a layer makes itself. */
static void check_sinusoids(int64_t last, int fits)
{
    if (!check_begin("contract/places/sinusoids/%lld", (long long)last)) return;
    test_problem *p = test_problem_new(&(test_spec){.scheme = "transformer_xl",
                                                    .level = LOCUS_LAYER,
                                                    .B = 1,
                                                    .H = 1,
                                                    .Tq = 2,
                                                    .Tk = 2,
                                                    .D = 2,
                                                    .E = 2,
                                                    .settings = "table=half",
                                                    .with = "k_positions"});
    ((int64_t *)p->in[1].k_positions.data)[0] = 1;
    ((int64_t *)p->in[1].k_positions.data)[1] = -last;
    int64_t rows[2];
    locus_error error = {""};
    const locus_status status =
        locus_call_rows(LOCUS_LAYER, &p->config, &p->in[1], 0, 2, rows, NULL, &error);
    CHECK(fits ? status == LOCUS_OK : status == LOCUS_ERR_RANGE, "found %d: %s", (int)status,
          error.text);
    test_problem_free(p);
}

static void check_limits(void)
{
    const int64_t few = 1 << 16;
    check_span(few - 2, 40);
    check_span(few, 40);
    check_span(few + 2, 40);
    check_span(2 * few + 4, 40);
    check_span(16 * 2 * 2060 - 2, 2060);
    check_span(16 * 2 * 2060 + 2, 2060);
    check_far_places(200, 1);
    check_far_places(300, 0);
    check_sinusoids((1 << 20) - 3, 1);
    check_sinusoids((1 << 20) - 2, 0);
}

/* ---- refusals ---- */

static void check_refused(const placed *s, const char *with, int64_t by, const char *wanted)
{
    char settings[128];
    const shape at = {1, 2, 2, 8, 8, 4, "", with};
    if (!check_begin("contract/places/refused/%s", wanted)) return;
    test_problem *p = new_problem(s, &at, settings, sizeof settings);
    locus_error error = {""};
    locus_plan *plan = NULL;
    move(&p->in[1].q_positions, by);
    const locus_status status = locus_plan_new(&plan, &p->config, &p->in[1], &error);
    CHECK(status != LOCUS_OK && strstr(error.text, wanted) != NULL, "found \"%s\", expected \"%s\"",
          error.text, wanted);
    locus_plan_free(plan);
    test_problem_free(p);
}

static void check_refusals(void)
{
    const char *both = "q_positions k_positions";
    const placed relative = {"relative_key", "", NULL}, t5 = {"t5", "", NULL};
    const placed none = {"none", "", NULL}, sam = {"sam", "", NULL}, swin = {"swin", "", NULL};
    check_refused(&relative, both, 1000, "tensor rel_k: found");
    check_refused(&t5, both, (int64_t)1 << 31, /* most_position */
                  "expected -2^31..2^31");
    check_refused(&sam, "", 50, "tensor rel_h: found rows for distances");
    check_refused(&swin, "", 50, "tensor bias: found rows for distances");
    if (check_begin("contract/places/refused/scheme none")) {
        char settings[8];
        const shape at = {1, 1, 1, 3, 3, 4, "", NULL};
        const int64_t own[] = {0, 1, 2}, three[] = {3};
        test_problem *p = new_problem(&none, &at, settings, sizeof settings);
        locus_error error = {""};
        locus_plan *plan = NULL;
        p->in[1].q_positions = locus_view((void *)(uintptr_t)own, LOCUS_I64, 1, three);
        CHECK(locus_plan_new(&plan, &p->config, &p->in[1], &error) != LOCUS_OK &&
                  strstr(error.text, "q_positions is not known to scheme none") != NULL,
              "found \"%s\"", error.text);
        test_problem_free(p);
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    check_judged();
    check_identities();
    check_one_line();
    check_limits();
    check_refusals();
    return check_finish("contract/places");
}

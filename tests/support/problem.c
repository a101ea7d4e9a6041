/* SPDX-License-Identifier: Apache-2.0 */
#include "support/problem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locus/layer.h>
#include <locus/oracle.h>

#include "core/shape.h"

enum { ALIGNMENT = 64, FEATURES = 5 };

/* The streams of dout and dlse: behind those of `own`, so that a later field of locus_tensors leaves
 * every number as it was. Its own is beyond them. */
enum { DOUT_STREAM = 62, DLSE_STREAM };
static uint64_t stream_of(size_t index) { return index < DOUT_STREAM ? index : index + 2; }

static void nonsense(const test_problem *p, const char *what, const char *text)
{
    fprintf(stderr, "test problem %s (%s): %s %s\n", p->spec.scheme,
            p->spec.settings != NULL ? p->spec.settings : "", what, text);
    exit(2);
}

/* ---- memory ---- */

static void *take(test_problem *p, size_t bytes)
{
    const size_t padded = (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *block = aligned_alloc(ALIGNMENT, padded);
    if (block == NULL) nonsense(p, "no memory for", "a tensor");
    memset(block, 0, padded);
    *(void **)(void *)block = p->newest;
    p->newest = block;
    return block + ALIGNMENT;
}

void test_problem_free(test_problem *problem)
{
    if (problem == NULL) return;
    for (void *block = problem->newest; block != NULL;) {
        void *next = *(void **)block;
        free(block);
        block = next;
    }
    free(problem);
}

/* ---- values ---- */

double test_uniform(uint64_t stream, uint64_t index)
{
    /* splitmix64 */
    uint64_t z = stream * 0x9E3779B97F4A7C15u + (index + 1) * 0xD1342543DE82EF95u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

double test_value(const locus_tensor *tensor, int64_t index)
{
    return tensor->dtype == LOCUS_F64 ? ((const double *)tensor->data)[index]
                                      : (double)((const float *)tensor->data)[index];
}

void test_set_value(const locus_tensor *tensor, int64_t index, double value)
{
    if (tensor->dtype == LOCUS_F64)
        ((double *)tensor->data)[index] = value;
    else
        ((float *)tensor->data)[index] = (float)value;
}

/* The range of values that makes sense for a tensor. */
static void range_of(const test_problem *p, const char *name, double *low, double *high)
{
    const int is_weight = name[0] == 'w' && name[1] == '_';
    const double weight = p->spec.E > 0 ? 1.7 / sqrt((double)p->spec.E) : 1.0;
    *low = is_weight ? -weight : -1.5;
    *high = is_weight ? weight : 1.5;
    if (strcmp(name, "slopes") == 0) *low = 0.05, *high = 0.5;
    if (strcmp(name, "a") == 0) *low = 0.2, *high = 1.2;
    if (strcmp(name, "p") == 0) *low = 0.2, *high = 1.4;
    if (strcmp(name, "log_decay") == 0) *low = -0.3, *high = 0.1;
}

static void fill(test_problem *p, uint64_t stream, const char *name, const locus_tensor *t)
{
    double low, high;
    range_of(p, name, &low, &high);
    const int64_t elements = locus_tensor_elements(t);
    for (int64_t i = 0; i < elements; i++) {
        const double u = test_uniform(p->spec.seed * 64 + stream, (uint64_t)i);
        /* every other head forgets so fast that no tile has one reference for all */
        const int steep = strcmp(name, "log_decay") == 0 &&
                          i / (t->shape[2] * t->shape[3]) % t->shape[1] % 2 == 1;
        test_set_value(t, i, (double)(float)((low + (high - low) * u) * (steep ? 12.0 : 1.0)));
    }
}

/* About a quarter of the pairs are masked. Row 0 of `mask` sees nothing. */
static void fill_mask(const test_problem *p, size_t index, const char *name, const locus_tensor *t)
{
    const int64_t elements = locus_tensor_elements(t), Tk = p->spec.Tk, Tq = p->spec.Tq;
    for (int64_t i = 0; i < elements; i++) {
        const int dead_row = strcmp(name, "mask") == 0 && Tk > 0 && i / Tk % Tq == 0;
        const double u = test_uniform(p->spec.seed * 64 + index, (uint64_t)i);
        ((uint8_t *)t->data)[i] = (uint8_t)(!dead_row && u < 0.75);
    }
}

/* ---- settings ---- */

static const char *const config_keys[] = {"causal", "window_left", "window_right", "query_offset",
                                          "scale",  "dropout",     "dropout_seed", "softcap"};

static int set_config(locus_config *c, const char *key, const char *value)
{
    size_t which = 0;
    while (which < 8 && strcmp(config_keys[which], key) != 0) which++;
    switch (which) {
    case 0: c->causal = (uint32_t)strtoul(value, NULL, 10); return 1;
    case 1: c->window_left = strtoll(value, NULL, 10); return 1;
    case 2: c->window_right = strtoll(value, NULL, 10); return 1;
    case 3: c->query_offset = strtoll(value, NULL, 10); return 1;
    case 4: c->scale = strtod(value, NULL); return 1;
    case 5: c->dropout = strtod(value, NULL); return 1;
    case 7: c->softcap = strtod(value, NULL); return 1;
    case 6: c->dropout_seed = strtoull(value, NULL, 10); return 1;
    default: return 0;
    }
}

static void read_settings(test_problem *p)
{
    const char *text = p->spec.settings != NULL ? p->spec.settings : "";
    while (*text != '\0') {
        char key[32], value[32];
        int used = 0;
        locus_error error;
        if (sscanf(text, " %31[a-z_0-9]=%31[^ ] %n", key, value, &used) != 2)
            nonsense(p, "can not read", text);
        if (!set_config(&p->config, key, value) &&
            locus_options_set(&p->config.options, p->spec.scheme, p->spec.level, key, value,
                              &error) != LOCUS_OK)
            nonsense(p, "option", error.text);
        text += used;
    }
}

/* ---- shapes ---- */

static int64_t offset_of(const test_problem *p)
{
    return p->config.query_offset != LOCUS_UNSET ? p->config.query_offset : p->spec.Tk - p->spec.Tq;
}

/* The farthest distance of any pair, or spec.reach. */
static int64_t reach_of(const test_problem *p)
{
    if (p->spec.reach > 0) return p->spec.reach;
    const int64_t first = llabs(offset_of(p) - (p->spec.Tk - 1));
    const int64_t last = llabs(offset_of(p) + p->spec.Tq - 1);
    return first > last ? first : last;
}

static int has_option(const test_problem *p, const char *name)
{
    const locus_scheme_info *scheme = locus_scheme_find(p->spec.scheme);
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++)
        if (strcmp(o->name, name) == 0) return 1;
    return 0;
}

/* Rows of the relative tables. Also fixes delta_min, which goes with them. */
static int64_t rows_of(test_problem *p)
{
    locus_options *o = &p->config.options;
    if (has_option(p, "clip_left")) return o->clip_left + o->clip_right + 1;
    if (has_option(p, "span")) return 2 * o->span;
    /* shorter than the distances: nothing is added beyond */
    if (strcmp(p->spec.scheme, "inkling") == 0) return reach_of(p) / 2 + 1;
    if (strcmp(p->spec.scheme, "cope") == 0) return reach_of(p) / 4 + 1;
    if (has_option(p, "delta_min")) o->delta_min = -reach_of(p);
    return 2 * reach_of(p) + 1;
}

/* Rows of pixels, where positions have two axes. */
enum { GRID_WIDTH = 5 };

static locus_extents extents_of(test_problem *p)
{
    const test_spec *s = &p->spec;
    return (locus_extents){
        .B = s->B,
        .H = s->H,
        .Hk = s->Hk,
        .Tq = s->Tq,
        .Tk = s->Tk,
        .D = s->D,
        .Dv = s->Dv,
        .E = s->E,
        .T = s->Tq,
        .M = s->Tk - s->Tq,
        .HD = s->H * s->D,
        .HF = s->H * FEATURES,
        .R = rows_of(p),
        .Ry = 2 * (reach_of(p) / GRID_WIDTH) + 3,
        .Rx = 2 * GRID_WIDTH + 1,
        .S1 = 2,
        .pairs = s->D / 2,
        .axes = 1,
        .buckets = p->config.options.buckets,
    };
}

/* ---- lists of words ---- */

/* The text after word `name` in "a b:11 c" (":11 c"), or NULL. */
static const char *find_word(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at != NULL && *at != '\0';) {
        const size_t word = strcspn(at, " :");
        if (word == length && memcmp(at, name, length) == 0) return at + word;
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return NULL;
}

/* ---- building ---- */

static void make_pair(test_problem *p, locus_tensor *wide, locus_tensor *narrow, uint32_t rank,
                      const int64_t *shape)
{
    const locus_tensor view = locus_view(NULL, LOCUS_F64, rank, shape);
    const size_t elements = (size_t)locus_tensor_elements(&view);
    *wide = locus_view(take(p, elements * sizeof(double)), LOCUS_F64, rank, shape);
    *narrow = locus_view(take(p, elements * sizeof(float)), LOCUS_F32, rank, shape);
}

/* Positions beyond every row, where a shape says "at least". */
static int64_t positions_of(const test_problem *p)
{
    return (reach_of(p) + 1 > p->spec.Tk ? reach_of(p) + 1 : p->spec.Tk) + 1;
}

/* Gates of every position. */
static int64_t gates_of(const test_problem *p)
{
    const int64_t past = offset_of(p) + p->spec.Tq;
    return past > p->spec.Tk ? past : p->spec.Tk;
}

/* Positions of rows, in no order and some of them more than once, but as near as those of the rows;
 * of two axes, pixels in the order of the rows. */
static void fill_positions(const test_problem *p, const locus_tensor *t, int is_key)
{
    const int64_t axes = t->rank > 1 ? 2 : 1, most = p->spec.Tk > 0 ? p->spec.Tk : 1;
    for (int64_t i = 0; i < t->shape[0]; i++) {
        const int64_t own = is_key ? i : llabs(offset_of(p)) + i;
        int64_t *to = (int64_t *)t->data + i * axes;
        if (axes == 1) {
            to[0] = own * 7 % most / 2 * 2;
            continue;
        }
        to[0] = own % most / GRID_WIDTH;
        to[1] = own % most % GRID_WIDTH;
    }
}

/* One row per distance, in no order. */
static void fill_map(const locus_tensor *t)
{
    for (int64_t i = 0; i < t->shape[0]; i++) ((int64_t *)t->data)[i] = 3 * i % t->shape[0];
}

/* Masks and maps: the same memory on both sides, no gradient. */
static void make_whole(test_problem *p, size_t index, const locus_tensor_info *info,
                       locus_dtype dtype, uint32_t rank, const int64_t *shape)
{
    const locus_tensor view = locus_view(NULL, dtype, rank, shape);
    const size_t bytes = (size_t)locus_tensor_elements(&view) * locus_dtype_bytes(dtype);
    const locus_tensor made = locus_view(take(p, bytes), dtype, rank, shape);
    if (dtype == LOCUS_U8)
        fill_mask(p, index, info->name, &made);
    else if (strstr(info->name, "_positions") != NULL)
        fill_positions(p, &made, info->name[0] == 'k');
    else
        fill_map(&made);
    *locus_tensor_at(&p->in[TEST_ORACLE], index) = made;
    *locus_tensor_at(&p->in[TEST_FLOAT], index) = made;
}

static void make_tensor(test_problem *p, const locus_tensor_info *info, const char *choice)
{
    const size_t index = (size_t)locus_tensor_index(info->name);
    locus_tensor *wide = locus_tensor_at(&p->in[TEST_ORACLE], index);
    locus_tensor *narrow = locus_tensor_at(&p->in[TEST_FLOAT], index);
    const locus_extents extents = extents_of(p);
    const int is_map = (info->dtypes >> LOCUS_I64 & 1u) != 0;
    int64_t shape[LOCUS_MAX_RANK];
    uint32_t rank = 0;
    const int64_t other = is_map                                ? 2 * reach_of(p) + 1
                          : locus_shape_names(info->shape, "N") ? gates_of(p)
                                                                : FEATURES;
    if (!locus_shape_make(&extents, info->shape, other, shape, &rank))
        nonsense(p, "shape", info->shape);
    const char *at_least = strstr(info->shape, ">=T");
    if (at_least != NULL) shape[at_least == info->shape ? 0 : 1] = positions_of(p);
    for (uint32_t axis = 0; choice != NULL && choice[0] == ':' && axis < 2; axis++)
        if (choice[1 + axis] == '1') shape[axis] = 1;
    if ((info->dtypes & 1u << LOCUS_F32) == 0) {
        make_whole(p, index, info, is_map ? LOCUS_I64 : LOCUS_U8, rank, shape);
        return;
    }
    make_pair(p, wide, narrow, rank, shape);
    fill(p, stream_of(index), info->name, wide);
    if ((info->uses & LOCUS_USE_GRADIENT) == 0) return;
    make_pair(p, locus_tensor_at(&p->grad[TEST_ORACLE], index),
              locus_tensor_at(&p->grad[TEST_FLOAT], index), rank, shape);
}

/* Common tensors that stand for something beside the call itself: only when asked for. */
static int is_extra(const locus_tensor_info *info)
{
    static const char *const usual[] = {"w_o", "b_q", "b_k", "b_v", "b_o"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(info->name, usual[i]) == 0) return 0;
    return !info->required;
}

static void make_one(test_problem *p, const locus_tensor_info *info, int extra)
{
    const char *choice = find_word(p->spec.with, info->name);
    if ((info->levels & p->spec.level) == 0) return;
    if (strcmp(info->name, "memory") == 0) {
        if (p->spec.Tk > p->spec.Tq) make_tensor(p, info, NULL);
    } else if (extra) {
        if (choice != NULL) make_tensor(p, info, choice);
    } else if (info->required || find_word(p->spec.without, info->name) == NULL) {
        make_tensor(p, info, NULL);
    }
}

static void make_tensors(test_problem *p)
{
    const locus_scheme_info *scheme = locus_scheme_find(p->spec.scheme);
    const locus_tensor_info *info;
    for (size_t i = 0; (info = locus_common_tensor(i)) != NULL; i++)
        make_one(p, info, is_extra(info));
    for (size_t i = 0; (info = locus_scheme_tensor(scheme, i)) != NULL; i++)
        make_one(p, info,
                 (info->uses & (LOCUS_USE_PLAN | LOCUS_USE_QUERY)) != 0 && !info->required);
}

static void make_results(test_problem *p)
{
    const test_spec *s = &p->spec;
    const int64_t width = p->in[0].w_o.rank != 0 ? s->E : s->H * s->D;
    const int64_t attend[] = {s->B, s->H, s->Tq, s->Dv}, layer[] = {s->B, s->Tq, width};
    const int is_layer = s->level == LOCUS_LAYER;
    const uint32_t rank = is_layer ? 3 : 4;
    const int64_t *shape = is_layer ? layer : attend;
    make_pair(p, &p->results[0].out, &p->results[1].out, rank, shape);
    make_pair(p, &p->results[0].lse, &p->results[1].lse, 3, attend);
    make_pair(p, &p->dout[0], &p->dout[1], rank, shape);
    fill(p, DOUT_STREAM, "dout", &p->dout[0]);
    if (find_word(s->with, "dlse") == NULL) return;
    make_pair(p, &p->dlse[0], &p->dlse[1], 3, attend);
    fill(p, DLSE_STREAM, "dlse", &p->dlse[0]);
}

static void describe(test_problem *p)
{
    const test_spec *s = &p->spec;
    int used = snprintf(p->shape, sizeof p->shape, "B%" PRId64 "H%" PRId64, s->B, s->H);
    const struct {
        int shown;
        const char *mark;
        int64_t value;
    } parts[] = {
        {s->Hk != s->H, "k", s->Hk},  {1, "T", s->Tq},
        {s->Tk != s->Tq, "x", s->Tk}, {1, "D", s->D},
        {s->Dv != s->D, "v", s->Dv},  {s->E != 0, "E", s->E},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].shown)
            used += snprintf(p->shape + used, sizeof p->shape - (size_t)used, "%s%" PRId64,
                             parts[i].mark, parts[i].value);
}

test_problem *test_problem_new(const test_spec *spec)
{
    test_problem *p = calloc(1, sizeof *p);
    if (p == NULL) exit(2);
    p->spec = *spec;
    if (p->spec.Hk == 0) p->spec.Hk = p->spec.H;
    if (p->spec.Dv == 0) p->spec.Dv = p->spec.D;
    if (locus_config_init(&p->config, spec->scheme) != LOCUS_OK)
        nonsense(p, "no scheme", spec->scheme);
    p->config.heads = (uint32_t)spec->H;
    p->config.threads = 1;
    if ((locus_scheme_find(spec->scheme)->traits & LOCUS_TRAIT_CAUSAL) != 0) p->config.causal = 1;
    read_settings(p);
    for (int path = 0; path < TEST_PATHS; path++) {
        p->in[path].size = sizeof p->in[path];
        p->grad[path].size = sizeof p->grad[path];
        p->results[path].size = sizeof p->results[path];
    }
    make_tensors(p);
    make_results(p);
    describe(p);
    test_problem_sync(p);
    return p;
}

static void sync_tensor(const locus_tensor *wide, const locus_tensor *narrow)
{
    const int64_t elements = wide->dtype != LOCUS_F64 ? 0 : locus_tensor_elements(wide);
    for (int64_t i = 0; i < elements; i++) {
        test_set_value(narrow, i, test_value(wide, i));
        test_set_value(wide, i, test_value(narrow, i));
    }
}

void test_problem_sync(test_problem *problem)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        sync_tensor(locus_tensor_at_const(&problem->in[0], i),
                    locus_tensor_at_const(&problem->in[1], i));
    sync_tensor(&problem->dout[0], &problem->dout[1]);
    sync_tensor(&problem->dlse[0], &problem->dlse[1]);
}

/* ---- running ---- */

static void poison(const locus_tensor *t)
{
    const int64_t elements = locus_tensor_elements(t);
    for (int64_t i = 0; i < elements; i++) test_set_value(t, i, (double)NAN);
}

locus_results test_problem_gradient(const test_problem *problem, int path)
{
    return (locus_results){.size = sizeof(locus_results),
                           .out = problem->dout[path],
                           .lse = problem->dlse[path]};
}

static locus_status run_attend(test_problem *p, int gradients, locus_error *error)
{
    const locus_results dresults = test_problem_gradient(p, TEST_FLOAT);
    locus_plan *plan = NULL;
    locus_status status = locus_plan_new(&plan, &p->config, &p->in[1], error);
    if (status != LOCUS_OK) return status;
    const size_t forward = locus_forward_workspace(plan);
    const size_t backward = gradients ? locus_backward_workspace(plan) : 0;
    void *workspace =
        aligned_alloc(ALIGNMENT, ((forward > backward ? forward : backward) + ALIGNMENT) /
                                     ALIGNMENT * ALIGNMENT);
    if (workspace == NULL) nonsense(p, "no memory for", "a workspace");
    status = locus_forward(plan, &p->in[1], &p->results[1], workspace, forward, error);
    if (status == LOCUS_OK && gradients)
        status = locus_backward(plan, &p->in[1], &p->results[1], &dresults, &p->grad[1], 0,
                                workspace, backward, error);
    free(workspace);
    locus_plan_free(plan);
    return status;
}

static locus_status run_layer(test_problem *p, int gradients, locus_error *error)
{
    const locus_results dresults = test_problem_gradient(p, TEST_FLOAT);
    locus_layer *layer = NULL;
    locus_status status = locus_layer_new(&layer, &p->config, &p->in[1], error);
    if (status != LOCUS_OK) return status;
    const size_t forward = locus_layer_forward_workspace(layer);
    const size_t backward = locus_layer_backward_workspace(layer);
    const size_t kept = locus_layer_saved_bytes(layer);
    const size_t most = forward > backward ? forward : backward;
    void *workspace = aligned_alloc(ALIGNMENT, (most + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    void *saved = aligned_alloc(ALIGNMENT, (kept + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    if (workspace == NULL || saved == NULL) nonsense(p, "no memory for", "a workspace");
    status = locus_layer_forward(layer, &p->in[1], &p->results[1], saved, kept, workspace, forward,
                                 error);
    if (status == LOCUS_OK && gradients)
        status = locus_layer_backward(layer, &p->in[1], &dresults, &p->grad[1], 0, saved, kept,
                                      workspace, backward, error);
    free(saved);
    free(workspace);
    locus_layer_free(layer);
    return status;
}

locus_status test_problem_run(test_problem *problem, int path, int gradients, locus_error *error)
{
    test_problem *p = problem;
    const locus_results dresults = test_problem_gradient(p, TEST_ORACLE);
    poison(&p->results[path].out);
    poison(&p->results[path].lse);
    for (size_t i = 0; gradients && i < LOCUS_TENSOR_COUNT; i++)
        poison(locus_tensor_at_const(&p->grad[path], i));
    if (path == TEST_ORACLE)
        return locus_oracle(p->spec.level, &p->config, &p->in[0], &p->results[0],
                            gradients ? &dresults : NULL, gradients ? &p->grad[0] : NULL, error);
    return p->spec.level == LOCUS_LAYER ? run_layer(p, gradients, error)
                                        : run_attend(p, gradients, error);
}

const char *test_path_name(int path) { return path == TEST_ORACLE ? "oracle" : "float"; }

double test_problem_loss(const test_problem *problem)
{
    const locus_tensor *out = &problem->results[0].out;
    const int64_t elements = locus_tensor_elements(out);
    double loss = 0.0;
    for (int64_t i = 0; i < elements; i++)
        loss += test_value(out, i) * test_value(&problem->dout[0], i);
    const locus_tensor *lse = &problem->results[0].lse, *dlse = &problem->dlse[0];
    const int64_t rows = locus_tensor_elements(dlse);
    for (int64_t i = 0; i < rows; i++)
        if (test_value(lse, i) != -INFINITY) loss += test_value(lse, i) * test_value(dlse, i);
    return loss;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <locus/problem.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/shape.h"
#include "core/size.h"
#include "core/tensor.h"

/* A problem and what it owns: one block per tensor, and dout. */
typedef struct made_problem {
    locus_problem problem; /* first: what the caller sees */
    locus_problem_request request;
    locus_config config;
    locus_tensors in;
    void *blocks[LOCUS_TENSOR_COUNT + 1];
    size_t block_count;
} made_problem;

/* ---- numbers ---- */

/* splitmix64: eight lines, the same on every machine. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Uniform in [0, 1), 24 bits: exact in float. */
static double next_uniform(uint64_t *state)
{
    return (double)(next_random(state) >> 40) / 16777216.0;
}

static uint64_t mix(uint64_t seed, uint64_t value)
{
    uint64_t state = seed ^ (value + 1) * 0xD1B54A32D192ED03u;
    return next_random(&state);
}

static uint64_t seed_of(uint64_t seed, const char *name)
{
    for (; *name != '\0'; name++) seed = mix(seed, (unsigned char)*name);
    return seed;
}

/* Mean 0, standard deviation `spread`; uniform, so that no libm enters the numbers. */
static void fill_row(float *row, int64_t count, uint64_t seed, double spread)
{
    for (int64_t i = 0; i < count; i++)
        row[i] = (float)((2.0 * next_uniform(&seed) - 1.0) * 1.7320508 * spread);
}

/* ---- options ---- */

/* Values for options that have no default, or whose default hides what the scheme does
 * at these lengths. Two sizes: a sentence, and something to measure. */
static const struct {
    const char *name, *small, *large;
} option_values[] = {
    {"clip_left", "4", "16"},      {"clip_right", "4", "16"},   {"buckets", "8", "32"},
    {"max_distance", "16", "128"}, {"span", "8", "32"},         {"form", "log", "log"},
    {"table", "half", "half"},     {"pairing", "half", "half"},
};

static const char *value_of(const locus_problem_request *request, const char *name, char *buffer,
                            size_t capacity)
{
    for (const locus_problem_setting *s = request->settings; s != NULL && s->name != NULL; s++)
        if (strcmp(s->name, name) == 0) return s->value;
    if (strcmp(name, "delta_min") == 0) {
        snprintf(buffer, capacity, "%" PRId64, request->causal ? 0 : 1 - request->T);
        return buffer;
    }
    if (strcmp(name, "bidirectional") == 0) return request->causal ? "0" : "1";
    for (size_t i = 0; i < sizeof option_values / sizeof *option_values; i++)
        if (strcmp(option_values[i].name, name) == 0)
            return request->T < 64 ? option_values[i].small : option_values[i].large;
    return NULL;
}

static locus_status set_options(made_problem *p, const locus_scheme_info *scheme,
                                locus_error *error)
{
    char buffer[32];
    const locus_problem_request *r = &p->request;
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++) {
        const char *value = value_of(r, o->name, buffer, sizeof buffer);
        if (value == NULL || (o->levels & r->level) == 0) continue;
        LOCUS_TRY(
            locus_options_set(&p->config.options, r->scheme, r->level, o->name, value, error));
    }
    return LOCUS_OK;
}

/* ---- shapes ---- */

static int has_option(const locus_scheme_info *scheme, const char *name)
{
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++)
        if (strcmp(o->name, name) == 0) return 1;
    return 0;
}

/* Distances that the call has. */
static int64_t distances(const made_problem *p)
{
    return p->request.causal ? p->request.T : 2 * p->request.T - 1;
}

/* Rows of the relative tables, told by the options that bound them. */
static int64_t table_rows(const made_problem *p, const locus_scheme_info *scheme)
{
    const locus_options *o = &p->config.options;
    if (has_option(scheme, "clip_left")) return o->clip_left + o->clip_right + 1;
    if (has_option(scheme, "span")) return 2 * o->span;
    if (has_option(scheme, "delta_min")) return distances(p);
    /* counted positions: as many as the paper has */
    if (strcmp(scheme->name, "cope") == 0) return p->request.T < 64 ? 8 : 64;
    return 2 * p->request.T - 1;
}

/* Rows of pixels, as square as T allows. */
static int64_t grid_width(const made_problem *p)
{
    int64_t width = 1;
    while (width * width < p->request.T) width++;
    return width;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
/* Extents that no call knows (the features of a learned function, the length of a map). */
static int64_t features(const made_problem *p) { return p->request.T < 64 ? 8 : 16; }

static locus_extents extents_of(const made_problem *p, const locus_scheme_info *scheme)
{
    const locus_problem_request *r = &p->request;
    return (locus_extents){
        .B = r->B,
        .H = r->H,
        .Hk = r->H,
        .Tq = r->T,
        .Tk = r->T,
        .T = r->T,
        .D = r->D,
        .Dv = r->D,
        .E = r->E,
        .M = 0,
        .HD = r->H * r->D,
        .HF = r->H * features(p),
        .R = table_rows(p, scheme),
        .Ry = 2 * ceil_div(r->T, grid_width(p)) - 1,
        .Rx = 2 * grid_width(p) - 1,
        .S1 = 2,
        .pairs = r->D / 2,
        .axes = 1,
        .buckets = p->config.options.buckets,
    };
}

/* ---- tensors ---- */

static void *new_block(made_problem *p, int64_t count, size_t bytes)
{
    void *block = NULL;
    if (count >= 0) block = locus_allocate(p->request.allocator, (size_t)count + 1, bytes);
    if (block != NULL) p->blocks[p->block_count++] = block;
    return block;
}

/* FNV-1a: equal tokens have equal numbers, in any sentence. */
static uint32_t number_of(const char *token)
{
    uint32_t hash = 2166136261u;
    for (; *token != '\0'; token++) hash = (hash ^ (unsigned char)*token) * 16777619u;
    return hash;
}

/* Rows that stand for tokens: the same token, the same row. */
static void fill_tokens(const made_problem *p, locus_tensor *t, uint64_t seed)
{
    const int64_t T = p->request.T, width = t->shape[t->rank - 1];
    const int64_t rows = locus_tensor_elements(t) / (width > 0 ? width : 1);
    for (int64_t i = 0; i < rows; i++) {
        const uint64_t token =
            p->request.tokens != NULL ? number_of(p->request.tokens[i % T]) : (uint64_t)(i % T);
        fill_row((float *)t->data + i * width, width, mix(mix(seed, (uint64_t)(i / T)), token),
                 1.0);
    }
}

static void fill(const made_problem *p, locus_tensor *t, const char *name)
{
    const uint64_t seed = seed_of(p->request.seed, name);
    const int64_t count = locus_tensor_elements(t);
    float *data = t->data;
    if (strcmp(name, "q") == 0 || strcmp(name, "k") == 0 || strcmp(name, "v") == 0 ||
        strcmp(name, "x") == 0) {
        fill_tokens(p, t, seed);
    } else if (strcmp(name, "slopes") == 0) {
        for (int64_t i = 0; i < count; i++) data[i] = (float)locus_alibi_slope(i, count);
    } else if (strcmp(name, "a") == 0 || strcmp(name, "p") == 0) {
        uint64_t state = seed; /* KERPLE's two are positive */
        for (int64_t i = 0; i < count; i++) data[i] = (float)(0.25 + next_uniform(&state));
    } else if (strncmp(name, "log_", 4) == 0) {
        uint64_t state = seed; /* gates forget */
        for (int64_t i = 0; i < count; i++) data[i] = (float)(-0.25 * next_uniform(&state));
    } else if (strncmp(name, "w_", 2) == 0) {
        fill_row(data, count, seed, 1.0 / sqrt((double)t->shape[t->rank - 1]));
    } else {
        fill_row(data, count, seed, 0.5);
    }
}

/* Can so many numbers be counted at all? */
static int fits(const int64_t *shape, uint32_t rank)
{
    uint64_t extents[LOCUS_MAX_RANK], count = 0;
    for (uint32_t i = 0; i < rank; i++) extents[i] = (uint64_t)shape[i];
    return locus_product_u64(&count, extents, rank) && count <= INT64_MAX / sizeof(double);
}

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "out of memory");
}

/* One row per distance, in order: the map of the scheme `table`. */
static void fill_rows(locus_tensor *t)
{
    for (int64_t i = 0; i < t->shape[0]; i++) ((int64_t *)t->data)[i] = i;
}

/* Pixels in the order of the rows, or the positions of the rows themselves. */
static void fill_positions(const made_problem *p, locus_tensor *t)
{
    const int64_t axes = t->rank > 1 ? t->shape[t->rank - 1] : 1, width = grid_width(p);
    int64_t *to = t->data;
    for (int64_t i = 0; i < t->shape[0]; i++) {
        to[i * axes] = axes > 1 ? i / width : i;
        if (axes > 1) to[i * axes + 1] = i % width;
    }
}

static locus_status add_tensor(made_problem *p, const locus_scheme_info *scheme,
                               const locus_tensor_info *info, int own, locus_error *error)
{
    int64_t shape[LOCUS_MAX_RANK];
    uint32_t rank = 0;
    const locus_extents extents = extents_of(p, scheme);
    const int is_map = (info->dtypes & 1u << LOCUS_I64) != 0;
    const int64_t other = is_map                                ? distances(p)
                          : locus_shape_names(info->shape, "N") ? p->request.T
                                                                : features(p);
    if (!locus_shape_make(&extents, info->shape, other, shape, &rank))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "tensor %s: shape \"%s\" is not understood",
                          info->name, info->shape);
    locus_tensor *tensor = (locus_tensor *)(void *)((char *)&p->in + info->offset);
    if (locus_present(tensor)) return LOCUS_OK; /* declared and common */
    if (!fits(shape, rank)) return no_memory(error);
    *tensor = locus_view(NULL, is_map ? LOCUS_I64 : LOCUS_F32, rank, shape);
    tensor->data = new_block(p, locus_tensor_elements(tensor), locus_dtype_bytes(tensor->dtype));
    if (tensor->data == NULL) return no_memory(error);
    if (is_map && strstr(info->name, "_positions") != NULL)
        fill_positions(p, tensor);
    else if (is_map)
        fill_rows(tensor);
    else
        fill(p, tensor, info->name);
    p->problem.parameters += own && !is_map ? locus_tensor_elements(tensor) : 0;
    return LOCUS_OK;
}

/* What every call may have and none must (masks, memory, dense biases, offsets, sinks), and what
 * takes the place of something else, stays away unless it is asked for. */
static int is_extra(const locus_problem_request *request, const locus_tensor_info *info, int own)
{
    const int replaces =
        own && (info->uses & (LOCUS_USE_PLAN | LOCUS_USE_QUERY)) != 0 && !info->required;
    const int gates = (info->uses & LOCUS_USE_QUERY) != 0;
    const int optional = !own && !info->required && (gates || strncmp(info->name, "b_", 2) != 0) &&
                         strcmp(info->name, "w_o") != 0;
    if (request->with != NULL && strcmp(request->with, info->name) == 0) return 0;
    if (request->without != NULL && strcmp(request->without, info->name) == 0) return 1;
    return replaces || optional;
}

static locus_status add_common(made_problem *p, const locus_scheme_info *scheme, locus_error *error)
{
    const locus_tensor_info *t;
    for (size_t i = 0; (t = locus_common_tensor(i)) != NULL; i++)
        if ((t->levels & p->request.level) != 0 && !is_extra(&p->request, t, 0))
            LOCUS_TRY(add_tensor(p, scheme, t, 0, error));
    return LOCUS_OK;
}

static locus_status add_own(made_problem *p, const locus_scheme_info *scheme, locus_error *error)
{
    const locus_tensor_info *t;
    for (size_t i = 0; (t = locus_scheme_tensor(scheme, i)) != NULL; i++)
        if ((t->levels & p->request.level) != 0 && !is_extra(&p->request, t, 1))
            LOCUS_TRY(add_tensor(p, scheme, t, 1, error));
    return LOCUS_OK;
}

static locus_status add_results(made_problem *p, locus_error *error)
{
    const locus_problem_request *r = &p->request;
    locus_problem *out = &p->problem;
    const int64_t heads[] = {r->B, r->H, r->T, r->D}, model[] = {r->B, r->T, r->E};
    if (!fits(r->level == LOCUS_LAYER ? model : heads, r->level == LOCUS_LAYER ? 3 : 4))
        return no_memory(error);
    out->out = r->level == LOCUS_LAYER ? locus_view(NULL, LOCUS_F32, 3, model)
                                       : locus_view(NULL, LOCUS_F32, 4, heads);
    out->lse = locus_view(NULL, LOCUS_F32, 3, heads);
    if (r->given != NULL) return LOCUS_OK;
    out->dout = out->out;
    out->dout.data = new_block(p, locus_tensor_elements(&out->dout), sizeof(float));
    if (out->dout.data == NULL) return no_memory(error);
    fill_row(out->dout.data, locus_tensor_elements(&out->dout), seed_of(r->seed, "dout"), 1.0);
    return LOCUS_OK;
}

static locus_status build(made_problem *p, locus_error *error)
{
    const locus_scheme_info *scheme = locus_scheme_find(p->request.scheme);
    if (scheme == NULL) {
        char quoted[160];
        const char *name = p->request.scheme;
        return locus_fail(error, LOCUS_ERR_SCHEME, "scheme \"%s\" is unknown",
                          locus_escape(quoted, sizeof quoted, name, strlen(name)));
    }
    LOCUS_TRY(locus_config_init(&p->config, scheme->name));
    p->config.heads = (uint32_t)p->request.H;
    if ((scheme->traits & LOCUS_TRAIT_CAUSAL) != 0) p->request.causal = 1;
    p->config.causal = p->request.causal;
    p->config.allocator = p->request.allocator;
    p->in.size = sizeof p->in;
    if (p->request.given != NULL) {
        const locus_tensors *given = p->request.given;
        locus_tensors copy;
        LOCUS_TRY(locus_adopt_tensors(&given, &copy, "given", error));
        p->in = *given;
    }
    LOCUS_TRY(set_options(p, scheme, error));
    LOCUS_TRY(add_common(p, scheme, error));
    LOCUS_TRY(add_own(p, scheme, error));
    return add_results(p, error);
}

/* Products of any two of them fit. */
static locus_status check_extents(const locus_problem_request *r, locus_error *error)
{
    enum { MOST = 1 << 30 };
    const int64_t extents[] = {r->B, r->H, r->T, r->D, r->level == LOCUS_LAYER ? r->E : 1};
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
        if (extents[i] < 1 || extents[i] > MOST)
            return locus_fail(error, LOCUS_ERR_ARGUMENT,
                              "problem: %c: found %" PRId64 ", expected 1 to %d", "BHTDE"[i],
                              extents[i], MOST);
    return LOCUS_OK;
}

locus_status locus_problem_new(locus_problem **problem, const locus_problem_request *request,
                               locus_error *error)
{
    locus_problem_request own = {.size = 0};
    if (problem == NULL || request == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "locus_problem_new: expected a problem and a request");
    *problem = NULL;
    LOCUS_ADOPT(request, own, "request", error);
    if (request->scheme == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_problem_new: expected a scheme");
    LOCUS_TRY(check_extents(request, error));
    made_problem *p = locus_allocate(request->allocator, 1, sizeof *p);
    if (p == NULL) return no_memory(error);
    p->request = *request;
    p->problem.level = request->level;
    p->problem.config = &p->config;
    p->problem.in = &p->in;
    const locus_status status = build(p, error);
    if (status == LOCUS_OK)
        *problem = &p->problem;
    else
        locus_problem_free(&p->problem);
    return status;
}

void locus_problem_free(locus_problem *problem)
{
    made_problem *p = (made_problem *)(void *)problem; /* its first member */
    if (p == NULL) return;
    const locus_allocator *allocator = p->request.allocator;
    for (size_t i = 0; i < p->block_count; i++) locus_release(allocator, p->blocks[i]);
    locus_release(allocator, p);
}

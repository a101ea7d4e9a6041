/* SPDX-License-Identifier: Apache-2.0 */
#include <locus/problem.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"

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

static locus_status set_options(locus_problem *p, const locus_scheme_info *scheme,
                                locus_error *error)
{
    char buffer[32];
    const locus_problem_request *r = &p->request;
    for (const locus_option_info *o = scheme->options; o->name != NULL; o++) {
        const char *value = value_of(r, o->name, buffer, sizeof buffer);
        if (value == NULL || (o->levels & r->level) == 0) continue;
        const locus_status status =
            locus_options_set(&p->config.options, r->scheme, r->level, o->name, value, error);
        if (status != LOCUS_OK) return status;
    }
    return LOCUS_OK;
}

/* ---- shapes ---- */

static int has_option(const locus_scheme_info *scheme, const char *name)
{
    for (const locus_option_info *o = scheme->options; o->name != NULL; o++)
        if (strcmp(o->name, name) == 0) return 1;
    return 0;
}

/* Rows of the relative tables, told by the options that bound them. */
static int64_t table_rows(const locus_problem *p, const locus_scheme_info *scheme)
{
    const locus_options *o = &p->config.options;
    if (has_option(scheme, "clip_left")) return o->clip_left + o->clip_right + 1;
    if (has_option(scheme, "span")) return 2 * o->span;
    if (has_option(scheme, "delta_min") && p->request.causal) return p->request.T;
    return 2 * p->request.T - 1;
}

static int64_t extent(const locus_problem *p, const locus_scheme_info *scheme, const char *token)
{
    const locus_problem_request *r = &p->request;
    const struct {
        const char *token;
        int64_t value;
    } known[] = {
        {"B", r->B},
        {"H", r->H},
        {"Hk", r->H},
        {"Tq", r->T},
        {"Tk", r->T},
        {"T", r->T},
        {"D", r->D},
        {"Dv", r->D},
        {"E", r->E},
        {"M", 0},
        {"HD", r->H * r->D},
        {"R", table_rows(p, scheme)},
        {"2", 2},
        {"1", 1},
        {"buckets", p->config.options.buckets},
    };
    if (strncmp(token, ">=", 2) == 0 || strncmp(token, "1|", 2) == 0) token += 2;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].token, token) == 0) return known[i].value;
    return -1;
}

/* "H R D" into numbers; 0 when a token is not known. */
static int read_shape(const locus_problem *p, const locus_scheme_info *scheme, const char *text,
                      int64_t *shape, uint32_t *rank)
{
    *rank = 0;
    while (*text != '\0') {
        char token[16];
        const size_t length = strcspn(text, " ");
        if (length == 0 || length >= sizeof token || *rank >= LOCUS_MAX_RANK) return 0;
        memcpy(token, text, length);
        token[length] = '\0';
        shape[*rank] = extent(p, scheme, token);
        if (shape[*rank] < 0) return 0;
        ++*rank;
        text += length;
        text += strspn(text, " ");
    }
    return *rank > 0;
}

/* ---- tensors ---- */

static float *new_floats(locus_problem *p, int64_t count)
{
    void *block = NULL;
    if (count >= 0) block = locus_allocate(p->request.allocator, (size_t)count + 1, sizeof(float));
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
static void fill_tokens(const locus_problem *p, locus_tensor *t, uint64_t seed)
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

static void fill(const locus_problem *p, locus_tensor *t, const char *name)
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
    } else if (strncmp(name, "w_", 2) == 0) {
        fill_row(data, count, seed, 1.0 / sqrt((double)t->shape[1]));
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

static locus_status add_tensor(locus_problem *p, const locus_scheme_info *scheme,
                               const locus_tensor_info *info, int own, locus_error *error)
{
    int64_t shape[LOCUS_MAX_RANK];
    uint32_t rank = 0;
    const int index = locus_tensor_index(info->name);
    if (index < 0 || !read_shape(p, scheme, info->shape, shape, &rank))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "tensor %s: shape \"%s\" is not understood",
                          info->name, info->shape);
    locus_tensor *tensor = locus_tensor_at(&p->in, (size_t)index);
    if (tensor->rank != 0) return LOCUS_OK; /* declared and common */
    if (!fits(shape, rank)) return no_memory(error);
    *tensor = locus_view(NULL, LOCUS_F32, rank, shape);
    tensor->data = new_floats(p, locus_tensor_elements(tensor));
    if (tensor->data == NULL) return no_memory(error);
    fill(p, tensor, info->name);
    p->parameters += own ? locus_tensor_elements(tensor) : 0;
    return LOCUS_OK;
}

/* Masks, memory and dense biases stay away, unless they are asked for. */
static int is_extra(const locus_problem_request *request, const char *name)
{
    static const char *const extras[] = {"bias_dense", "key_mask", "mask", "memory"};
    if (request->with != NULL && strcmp(request->with, name) == 0) return 0;
    if (request->without != NULL && strcmp(request->without, name) == 0) return 1;
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++)
        if (strcmp(extras[i], name) == 0) return 1;
    return 0;
}

static locus_status add_tensors(locus_problem *p, const locus_scheme_info *scheme,
                                const locus_tensor_info *list, locus_error *error)
{
    for (const locus_tensor_info *t = list; t->name != NULL; t++) {
        if ((t->levels & p->request.level) == 0 || is_extra(&p->request, t->name)) continue;
        const locus_status status = add_tensor(p, scheme, t, list == scheme->tensors, error);
        if (status != LOCUS_OK) return status;
    }
    return LOCUS_OK;
}

static locus_status add_results(locus_problem *p, locus_error *error)
{
    const locus_problem_request *r = &p->request;
    const int64_t heads[] = {r->B, r->H, r->T, r->D}, model[] = {r->B, r->T, r->E};
    if (!fits(r->level == LOCUS_LAYER ? model : heads, r->level == LOCUS_LAYER ? 3 : 4))
        return no_memory(error);
    p->out = r->level == LOCUS_LAYER ? locus_view(NULL, LOCUS_F32, 3, model)
                                     : locus_view(NULL, LOCUS_F32, 4, heads);
    p->lse = locus_view(NULL, LOCUS_F32, 3, heads);
    if (r->given != NULL) return LOCUS_OK;
    p->dout = p->out;
    p->dout.data = new_floats(p, locus_tensor_elements(&p->dout));
    if (p->dout.data == NULL) return no_memory(error);
    fill_row(p->dout.data, locus_tensor_elements(&p->dout), seed_of(r->seed, "dout"), 1.0);
    return LOCUS_OK;
}

static locus_status build(locus_problem *p, locus_error *error)
{
    const locus_scheme_info *scheme = locus_scheme_find(p->request.scheme);
    if (scheme == NULL) {
        char quoted[160];
        const char *name = p->request.scheme;
        return locus_fail(error, LOCUS_ERR_SCHEME, "scheme \"%s\" is unknown",
                          locus_escape(quoted, sizeof quoted, name, strlen(name)));
    }
    locus_status status = locus_config_init(&p->config, p->request.scheme);
    if (status != LOCUS_OK) return status;
    p->config.heads = (uint32_t)p->request.H;
    p->config.causal = p->request.causal;
    p->config.allocator = p->request.allocator;
    if (p->request.given != NULL) p->in = *p->request.given;
    status = set_options(p, scheme, error);
    if (status == LOCUS_OK) status = add_tensors(p, scheme, locus_common_tensors(), error);
    if (status == LOCUS_OK) status = add_tensors(p, scheme, scheme->tensors, error);
    return status == LOCUS_OK ? add_results(p, error) : status;
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

locus_status locus_problem_build(locus_problem *p, const locus_problem_request *request,
                                 locus_error *error)
{
    if (p == NULL || request == NULL || request->scheme == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "locus_problem_build: expected a problem, a request and its scheme");
    memset(p, 0, sizeof *p);
    LOCUS_TRY(check_extents(request, error));
    p->request = *request;
    const locus_status status = build(p, error);
    if (status != LOCUS_OK) locus_problem_free(p);
    return status;
}

void locus_problem_free(locus_problem *p)
{
    if (p == NULL) return;
    for (size_t i = 0; i < p->block_count; i++) locus_release(p->request.allocator, p->blocks[i]);
    memset(p, 0, sizeof *p);
}

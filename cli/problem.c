/* SPDX-License-Identifier: Apache-2.0 */
#include "problem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "terms.h"

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

static const char *value_of(const problem_request *request, const char *name, char *buffer,
                            size_t capacity)
{
    for (const problem_setting *s = request->settings; s != NULL && s->name != NULL; s++)
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

static locus_status set_options(problem *p, const locus_scheme_info *scheme, locus_error *error)
{
    char buffer[32];
    const problem_request *r = &p->request;
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
static int64_t table_rows(const problem *p, const locus_scheme_info *scheme)
{
    const locus_options *o = &p->config.options;
    if (has_option(scheme, "clip_left")) return o->clip_left + o->clip_right + 1;
    if (has_option(scheme, "span")) return 2 * o->span;
    if (has_option(scheme, "delta_min") && p->request.causal) return p->request.T;
    return 2 * p->request.T - 1;
}

static int64_t extent(const problem *p, const locus_scheme_info *scheme, const char *token)
{
    const problem_request *r = &p->request;
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
static int read_shape(const problem *p, const locus_scheme_info *scheme, const char *text,
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

static float *new_floats(problem *p, int64_t count)
{
    void *block = count >= 0 ? calloc((size_t)count + 1, sizeof(float)) : NULL;
    if (block != NULL) p->blocks[p->block_count++] = block;
    return block;
}

/* Rows that stand for words: the same word, the same row. */
static void fill_words(const problem *p, locus_tensor *t, uint64_t seed)
{
    const int64_t T = p->request.T, width = t->shape[t->rank - 1];
    const int64_t rows = locus_tensor_elements(t) / (width > 0 ? width : 1);
    for (int64_t i = 0; i < rows; i++) {
        const uint64_t word =
            p->request.words != NULL ? p->request.words[i % T] : (uint64_t)(i % T);
        fill_row((float *)t->data + i * width, width, mix(mix(seed, (uint64_t)(i / T)), word), 1.0);
    }
}

static void fill(const problem *p, locus_tensor *t, const char *name)
{
    const uint64_t seed = seed_of(p->request.seed, name);
    const int64_t count = locus_tensor_elements(t);
    float *data = t->data;
    if (strcmp(name, "q") == 0 || strcmp(name, "k") == 0 || strcmp(name, "v") == 0 ||
        strcmp(name, "x") == 0) {
        fill_words(p, t, seed);
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

static locus_status add_tensor(problem *p, const locus_scheme_info *scheme,
                               const locus_tensor_info *info, locus_error *error)
{
    int64_t shape[LOCUS_MAX_RANK];
    uint32_t rank = 0;
    const int index = locus_tensor_index(info->name);
    if (index < 0 || !read_shape(p, scheme, info->shape, shape, &rank)) {
        snprintf(error->text, sizeof error->text, "tensor %s: shape \"%s\" is not understood",
                 info->name, info->shape);
        return LOCUS_ERR_ARGUMENT;
    }
    locus_tensor *tensor = locus_tensor_at(&p->in, (size_t)index);
    if (tensor->rank != 0) return LOCUS_OK; /* declared and common */
    *tensor = locus_view(NULL, LOCUS_F32, rank, shape);
    tensor->data = new_floats(p, locus_tensor_elements(tensor));
    if (tensor->data == NULL) return LOCUS_ERR_MEMORY;
    fill(p, tensor, info->name);
    if (tensor_is_own(info)) p->parameters += locus_tensor_elements(tensor);
    return LOCUS_OK;
}

/* Masks, memory and dense biases stay away, unless they are asked for. */
static int is_extra(const problem_request *request, const char *name)
{
    static const char *const extras[] = {"bias_dense", "key_mask", "mask", "memory"};
    if (request->with != NULL && strcmp(request->with, name) == 0) return 0;
    if (request->without != NULL && strcmp(request->without, name) == 0) return 1;
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++)
        if (strcmp(extras[i], name) == 0) return 1;
    return 0;
}

static locus_status add_tensors(problem *p, const locus_scheme_info *scheme,
                                const locus_tensor_info *list, locus_error *error)
{
    for (const locus_tensor_info *t = list; t->name != NULL; t++) {
        if ((t->levels & p->request.level) == 0 || is_extra(&p->request, t->name)) continue;
        const locus_status status = add_tensor(p, scheme, t, error);
        if (status != LOCUS_OK) return status;
    }
    return LOCUS_OK;
}

static locus_status add_results(problem *p)
{
    const problem_request *r = &p->request;
    const int64_t heads[] = {r->B, r->H, r->T, r->D}, model[] = {r->B, r->T, r->E};
    p->out = r->level == LOCUS_LAYER ? locus_view(NULL, LOCUS_F32, 3, model)
                                     : locus_view(NULL, LOCUS_F32, 4, heads);
    p->lse = locus_view(NULL, LOCUS_F32, 3, heads);
    if (r->given != NULL) return LOCUS_OK;
    p->dout = p->out;
    p->dout.data = new_floats(p, locus_tensor_elements(&p->dout));
    if (p->dout.data == NULL) return LOCUS_ERR_MEMORY;
    fill_row(p->dout.data, locus_tensor_elements(&p->dout), seed_of(r->seed, "dout"), 1.0);
    return LOCUS_OK;
}

static locus_status build(problem *p, locus_error *error)
{
    const locus_scheme_info *scheme = locus_scheme_find(p->request.scheme);
    if (scheme == NULL) return LOCUS_ERR_SCHEME;
    locus_status status = locus_config_init(&p->config, p->request.scheme);
    if (status != LOCUS_OK) return status;
    p->config.heads = (uint32_t)p->request.H;
    p->config.causal = p->request.causal;
    if (p->request.given != NULL) p->in = *p->request.given;
    status = set_options(p, scheme, error);
    if (status == LOCUS_OK) status = add_tensors(p, scheme, locus_common_tensors(), error);
    if (status == LOCUS_OK) status = add_tensors(p, scheme, scheme->tensors, error);
    return status == LOCUS_OK ? add_results(p) : status;
}

locus_status problem_build(problem *p, const problem_request *request, locus_error *error)
{
    memset(p, 0, sizeof *p);
    p->request = *request;
    const locus_status status = build(p, error);
    if (status != LOCUS_OK) problem_free(p);
    return status;
}

void problem_free(problem *p)
{
    for (size_t i = 0; i < p->block_count; i++) free(p->blocks[i]);
    memset(p, 0, sizeof *p);
}

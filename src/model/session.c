/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <locus/generate.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "model/run.h"

struct locus_session {
    const locus_model *model;
    const model_description *layers; /* that continue the rows */
    locus_model_pass *pass;          /* of the decoder, with `cache` */
    model_cache cache;
    int64_t *text, *slot, *past, *taken; /* [rows] */
    int64_t *source_offsets;
    int32_t *ids; /* [slots][capacity] of a model that may read its text again; else NULL */
    float *source;
    void *workspace;
    size_t workspace_bytes;
};

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "session: out of memory");
}

/* ---- memory ---- */

/* `count` of four extents, as floats. NULL: no memory. */
static float *floats_of(const locus_session *s, const uint64_t *extents, size_t count)
{
    uint64_t all = 0;
    size_t size = 0;
    if (!locus_product_u64(&all, extents, count) || !locus_to_size(&size, all)) return NULL;
    return locus_allocate(s->model->allocator, size, sizeof(float));
}

/* 1: where a text becomes long, all of its tokens turn by other frequencies. */
static int reads_again(const locus_session *s) { return s->layers->rope.kind == MODEL_ROPE_LONG; }

static locus_status grow_ids(locus_session *s, int64_t capacity, locus_error *error)
{
    const model_cache *c = &s->cache;
    const uint64_t extents[] = {(uint64_t)c->rows, (uint64_t)capacity};
    int32_t *ids = (int32_t *)floats_of(s, extents, 2);
    if (ids == NULL) return no_memory(error);
    for (int64_t r = 0; s->ids != NULL && r < c->rows; r++)
        memcpy(ids + r * capacity, s->ids + r * c->capacity, (size_t)c->capacity * sizeof *ids);
    locus_release(s->model->allocator, s->ids);
    s->ids = ids;
    return LOCUS_OK;
}

/* Room for `tokens` tokens of every row; what is there stays. */
static locus_status grow_cache(locus_session *s, int64_t tokens, locus_error *error)
{
    model_cache *c = &s->cache;
    const model_description *d = s->layers;
    const int64_t width = model_kv_width(d), blocks = d->layers * c->rows;
    int64_t capacity = c->capacity > 0 ? c->capacity : 32;
    if (tokens <= c->capacity) return LOCUS_OK;
    while (capacity < tokens) capacity *= 2;
    const uint64_t extents[] = {(uint64_t)blocks, (uint64_t)capacity, (uint64_t)width};
    float *kv = floats_of(s, extents, 3);
    if (kv == NULL) return no_memory(error);
    for (int64_t b = 0; c->kv != NULL && b < blocks; b++)
        memcpy(kv + b * capacity * width, c->kv + b * c->capacity * width,
               (size_t)(c->capacity * width) * sizeof(float));
    locus_release(s->model->allocator, c->kv);
    c->kv = kv;
    const locus_status status = reads_again(s) ? grow_ids(s, capacity, error) : LOCUS_OK;
    if (status == LOCUS_OK) c->capacity = capacity;
    return status;
}

static locus_status grow_workspace(locus_session *s, size_t bytes, locus_error *error)
{
    if (bytes <= s->workspace_bytes) return LOCUS_OK;
    locus_release(s->model->allocator, s->workspace);
    s->workspace_bytes = 0;
    s->workspace = locus_allocate(s->model->allocator, bytes + bytes / 2, 1);
    if (s->workspace == NULL) return no_memory(error);
    s->workspace_bytes = bytes + bytes / 2;
    return LOCUS_OK;
}

static locus_status build(locus_session *s, int64_t rows, locus_error *error)
{
    const locus_allocator *a = s->model->allocator;
    const size_t count = (size_t)rows;
    s->text = locus_allocate(a, count, sizeof *s->text);
    s->slot = locus_allocate(a, count, sizeof *s->slot);
    s->past = locus_allocate(a, count, sizeof *s->past);
    s->taken = locus_allocate(a, 3 * count, sizeof *s->taken);
    if (s->text == NULL || s->slot == NULL || s->past == NULL || s->taken == NULL)
        return no_memory(error);
    for (int64_t r = 0; r < rows; r++) s->slot[r] = r;
    s->cache = (model_cache){.rows = rows, .past = s->past, .slot = s->slot, .text = s->text};
    return model_pass_make(&s->pass, s->model, &s->cache, s->model->stack_count - 1, 1, rows,
                           error);
}

locus_status locus_session_new(locus_session **out, const locus_model *model, int64_t rows,
                               locus_error *error)
{
    if (out == NULL || model == NULL || rows < 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "session: NULL or negative argument");
    *out = NULL;
    if (model_last_stack(model)->head != LOCUS_MODEL_GENERATE)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "session: the model has no decoder (model_type %s)", model->family->type);
    locus_session *s = locus_allocate(model->allocator, 1, sizeof *s);
    if (s == NULL) return no_memory(error);
    s->model = model;
    s->layers = model_last_stack(model);
    const locus_status status = build(s, rows, error);
    if (status != LOCUS_OK) {
        locus_session_free(s);
        return status;
    }
    *out = s;
    return LOCUS_OK;
}

void locus_session_free(locus_session *s)
{
    if (s == NULL) return;
    const locus_allocator *a = s->model->allocator;
    void *const blocks[] = {s->cache.kv,       s->text,   s->slot,      s->past, s->taken,
                            s->source_offsets, s->source, s->workspace, s->ids};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) locus_release(a, blocks[i]);
    locus_model_pass_free(s->pass);
    locus_release(a, s);
}

/* ---- the encoder ---- */

/* k and v of every layer of the decoder, from the last states of the encoder. */
static locus_status project_source(locus_session *s, const float *states, int64_t tokens,
                                   locus_error *error)
{
    const model_description *d = s->layers;
    const uint64_t extents[] = {(uint64_t)d->layers, (uint64_t)tokens,
                                (uint64_t)(2 * d->heads * d->head_dim)};
    const int64_t block = tokens * 2 * d->heads * d->head_dim;
    s->source = floats_of(s, extents, 3);
    if (s->source == NULL) return no_memory(error);
    const program *p = &s->model->program;
    LOCUS_TRY(grow_workspace(s, (size_t)locus_linear_workspace(&p->linear), error));
    for (int i = p->first_op[1], l = 0; i < p->first_op[2]; i++)
        if (p->ops[i].once)
            map_rows(p, &p->ops[i], s->source + l++ * block, states, tokens, s->workspace);
    s->cache.source = s->source;
    s->cache.source_tokens = tokens;
    return LOCUS_OK;
}

/* All layers where the caller wants them, the last one in any case. */
static locus_status encode(locus_session *s, const locus_model_pass *pass, const int32_t *ids,
                           float *const *hidden, float *states, locus_error *error)
{
    const int64_t layers = s->model->stacks[0].layers;
    float **all = locus_allocate(s->model->allocator, (size_t)layers + 1, sizeof *all);
    if (all == NULL) return no_memory(error);
    for (int64_t i = 0; hidden != NULL && i < layers; i++) all[i] = hidden[i];
    all[layers] = states;
    const locus_model_batch batch = {.size = sizeof batch, .ids = ids};
    const locus_model_results results = {.size = sizeof results, .hidden = all};
    locus_status status = grow_workspace(s, locus_model_workspace(pass), error);
    if (status == LOCUS_OK)
        status =
            locus_model_forward(pass, &batch, &results, s->workspace, s->workspace_bytes, error);
    if (status == LOCUS_OK && hidden != NULL && hidden[layers] != NULL)
        memcpy(hidden[layers], states,
               (size_t)(pass->tokens[0] * s->model->stacks[0].width) * sizeof(float));
    locus_release(s->model->allocator, all);
    return status;
}

static locus_status read_texts(locus_session *s, const int32_t *ids, const int64_t *offsets,
                               int64_t texts, float *const *hidden, locus_error *error)
{
    const locus_allocator *a = s->model->allocator;
    locus_model_pass *pass = NULL;
    LOCUS_TRY(locus_model_pass_new(&pass, s->model, offsets, texts, error));
    const uint64_t extents[] = {(uint64_t)pass->tokens[0], (uint64_t)s->model->stacks[0].width};
    float *states = floats_of(s, extents, 2);
    locus_release(a, s->source_offsets); /* of a call that failed */
    s->source_offsets = locus_allocate(a, (size_t)texts + 1, sizeof *s->source_offsets);
    locus_status status = states != NULL && s->source_offsets != NULL ? LOCUS_OK : no_memory(error);
    if (status == LOCUS_OK) {
        memcpy(s->source_offsets, offsets, ((size_t)texts + 1) * sizeof *offsets);
        s->cache.source_offsets = s->source_offsets;
        status = encode(s, pass, ids, hidden, states, error);
    }
    if (status == LOCUS_OK) status = project_source(s, states, pass->tokens[0], error);
    locus_release(a, states);
    locus_model_pass_free(pass);
    return status;
}

locus_status locus_session_read(locus_session *s, const int32_t *ids, const int64_t *offsets,
                                int64_t texts, float *const *hidden, locus_error *error)
{
    if (s == NULL || offsets == NULL || texts < 1)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "session: NULL argument or no text");
    if (s->model->stack_count < 2 || s->source != NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "session: %s",
                          s->source != NULL ? "it has read its texts" : "the model has no encoder");
    if (s->cache.rows % texts != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "session: found %" PRId64 " texts, expected a divisor of its %" PRId64
                          " rows",
                          texts, s->cache.rows);
    for (int64_t r = 0; r < s->cache.rows; r++) s->text[r] = r / (s->cache.rows / texts);
    return read_texts(s, ids, offsets, texts, hidden, error);
}

/* ---- the decoder ---- */

static void keep_ids(locus_session *s, const int32_t *ids, const int64_t *offsets)
{
    for (int64_t r = 0; r < s->cache.rows; r++)
        memcpy(s->ids + s->slot[r] * s->cache.capacity + s->past[r], ids + offsets[r],
               (size_t)(offsets[r + 1] - offsets[r]) * sizeof *ids);
}

/* The tokens of rows that become long with this step, and where they begin. Their past is 0 until
 * they are read again; before[] is what it was. Returns how many tokens. */
static int64_t take_back(locus_session *s, const int64_t *offsets, int64_t *before, int64_t *again,
                         int32_t *ids)
{
    const int64_t trained = s->layers->rope.trained;
    again[0] = 0;
    for (int64_t r = 0; r < s->cache.rows; r++) {
        const int64_t past = s->past[r], all = past + offsets[r + 1] - offsets[r];
        const int64_t count = past <= trained && all > trained ? past : 0;
        before[r] = past;
        again[r + 1] = again[r] + count;
        if (ids == NULL || count == 0) continue;
        memcpy(ids + again[r], s->ids + s->slot[r] * s->cache.capacity,
               (size_t)count * sizeof *ids);
        s->past[r] = 0;
    }
    return again[s->cache.rows];
}

static locus_status run_again(locus_session *s, const int32_t *ids, const int64_t *again,
                              locus_error *error)
{
    const locus_model_batch batch = {.size = sizeof batch, .ids = ids};
    const locus_model_results nothing = {.size = sizeof nothing};
    LOCUS_TRY(model_pass_set(s->pass, again, NULL, error));
    LOCUS_TRY(grow_workspace(s, locus_model_workspace(s->pass), error));
    return locus_model_forward(s->pass, &batch, &nothing, s->workspace, s->workspace_bytes, error);
}

/* Where longrope's other frequencies begin to hold, they hold for the tokens before, too, and for all
 * that the layers made of them. */
static locus_status read_again(locus_session *s, const int64_t *offsets, locus_error *error)
{
    const locus_allocator *a = s->model->allocator;
    int64_t *before = s->taken, *again = before + s->cache.rows; /* of 3 rows: one more fits */
    LOCUS_TRY(model_check_offsets(offsets, s->cache.rows, error));
    const int64_t tokens = take_back(s, offsets, before, again, NULL);
    if (tokens == 0) return LOCUS_OK;
    int32_t *ids = locus_allocate(a, (size_t)tokens, sizeof *ids);
    if (ids == NULL) return no_memory(error);
    (void)take_back(s, offsets, before, again, ids);
    s->cache.stretched = 1;
    const locus_status status = run_again(s, ids, again, error);
    s->cache.stretched = 0;
    memcpy(s->past, before, (size_t)s->cache.rows * sizeof *s->past);
    locus_release(a, ids);
    return status;
}

locus_status locus_session_step(locus_session *s, const int32_t *ids, const int64_t *offsets,
                                const locus_model_results *results, locus_error *error)
{
    int64_t longest = 0;
    if (s == NULL || offsets == NULL || results == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "session: NULL argument");
    if (s->layers->cross && s->source == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "session: the encoder has read no text yet");
    if (s->ids != NULL && s->cache.rows > 0) LOCUS_TRY(read_again(s, offsets, error));
    LOCUS_TRY(model_pass_set(s->pass, offsets, NULL, error));
    for (int64_t r = 0; r < s->cache.rows; r++) {
        const int64_t all = s->past[r] + offsets[r + 1] - offsets[r];
        if (all > longest) longest = all;
    }
    LOCUS_TRY(grow_cache(s, longest, error));
    LOCUS_TRY(grow_workspace(s, locus_model_workspace(s->pass), error));
    const locus_model_batch batch = {.size = sizeof batch, .ids = ids};
    LOCUS_TRY(
        locus_model_forward(s->pass, &batch, results, s->workspace, s->workspace_bytes, error));
    if (s->ids != NULL) keep_ids(s, ids, offsets);
    for (int64_t r = 0; r < s->cache.rows; r++) s->past[r] += offsets[r + 1] - offsets[r];
    return LOCUS_OK;
}

static void copy_slot(locus_session *s, int64_t to, int64_t from, int64_t tokens)
{
    const model_cache *c = &s->cache;
    const model_description *d = s->layers;
    const int64_t width = model_kv_width(d), row = c->capacity * width;
    if (tokens == 0) return; /* before the first step there is no cache */
    for (int64_t l = 0; l < d->layers; l++)
        memcpy(c->kv + (l * c->rows + to) * row, c->kv + (l * c->rows + from) * row,
               (size_t)(tokens * width) * sizeof(float));
    if (s->ids != NULL)
        memcpy(s->ids + to * c->capacity, s->ids + from * c->capacity,
               (size_t)tokens * sizeof *s->ids);
}

/* The first row that goes on from another takes its slot; the others copy it to slots that nobody
 * goes on from. */
locus_status locus_session_reorder(locus_session *s, const int64_t *from, locus_error *error)
{
    if (s == NULL || from == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "session: NULL argument");
    const int64_t rows = s->cache.rows;
    int64_t *taken = s->taken, *slot = taken + rows, *past = slot + rows, free_slot = 0;
    for (int64_t r = 0; r < rows; r++)
        if (from[r] < 0 || from[r] >= rows || s->text[from[r]] != s->text[r])
            return locus_fail(error, LOCUS_ERR_ARGUMENT,
                              "session: row %" PRId64 " cannot go on from row %" PRId64, r,
                              from[r]);
    memset(taken, 0, (size_t)rows * sizeof *taken);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t old = s->slot[from[r]];
        slot[r] = taken[old] ? -1 : old;
        past[r] = s->past[from[r]];
        taken[old] = 1;
    }
    for (int64_t r = 0; r < rows; r++) {
        if (slot[r] >= 0) continue;
        while (taken[free_slot]) free_slot++;
        taken[free_slot] = 1;
        slot[r] = free_slot;
        copy_slot(s, free_slot, s->slot[from[r]], past[r]);
    }
    memcpy(s->slot, slot, (size_t)rows * sizeof *slot);
    memcpy(s->past, past, (size_t)rows * sizeof *past);
    return LOCUS_OK;
}

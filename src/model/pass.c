/* SPDX-License-Identifier: Apache-2.0 */
#include "model/pass.h"

#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"

/* ---- workspace ---- */

typedef struct carver {
    unsigned char *base;
    uint64_t at;
    int failed;
} carver;

static void *carve(carver *c, int64_t rows, int64_t width, size_t bytes)
{
    const uint64_t extents[] = {(uint64_t)rows, (uint64_t)width, bytes};
    uint64_t size = 0;
    void *place = c->base != NULL ? c->base + c->at : NULL;
    if (!locus_product_u64(&size, extents, 3) || !locus_pad_u64(&size, size, LOCUS_ALIGNMENT) ||
        !locus_add_u64(&c->at, c->at, size))
        c->failed = 1;
    return place;
}

int model_pass_carve(const locus_model_pass *p, void *base, pass_work *w)
{
    const model_description *d = &p->model->description;
    const int64_t N = p->tokens, A = d->heads * d->head_dim, sequences = p->ragged.sequences;
    carver c = {.base = base};
    uint64_t convolution = 0;
    *w = (pass_work){.h = carve(&c, N, d->width, sizeof(float))};
    w->other = carve(&c, N, d->width, sizeof(float));
    if (d->norm_first || d->conformer) w->sum = carve(&c, N, d->width, sizeof(float));
    if (d->norm_first && d->cross) w->between = carve(&c, N, d->width, sizeof(float));
    if (d->taps > 0) w->first = carve(&c, N, d->width, sizeof(float));
    if (p->model->embedding_map.packed.outputs > 0)
        w->narrow = carve(&c, N, d->embedding_width, sizeof(float));
    w->qkv = carve(&c, N, model_qkv_width(d), sizeof(float));
    if (d->turned_input || (p->cache != NULL && d->rope.base > 0.0))
        w->turns = carve(&c, N, d->head_dim, sizeof(float));
    w->heads = carve(&c, N, A, sizeof(float));
    w->inner = carve(&c, N, d->feed_forward, sizeof(float));
    if (d->gated) w->gate = carve(&c, N, d->feed_forward, sizeof(float));
    if (d->head == LOCUS_MODEL_CLASSIFY || d->head == LOCUS_MODEL_GENERATE)
        w->firsts = carve(&c, sequences, d->width, sizeof(float));
    if (d->head == LOCUS_MODEL_CLASSIFY) w->pooled = carve(&c, sequences, d->width, sizeof(float));
    if (p->model->narrow.packed.outputs > 0)
        w->narrowed = carve(&c, N > sequences ? N : sequences, d->embedding_width, sizeof(float));
    if (model_has_fill(d)) w->fill = carve(&c, N, d->embedding_width, sizeof(float));
    if (d->conformer) w->glu = carve(&c, N, d->width, sizeof(float));
    if (d->turned_input) w->turned = carve(&c, N, d->width, sizeof(float));
    if (d->memory > 0) {
        w->before = carve(&c, d->memory, 3 * A, sizeof(float));
        w->kv = carve(&c, d->memory + p->longest, 2 * A, sizeof(float));
    }
    if (p->model->trainable != NULL && d->clusters > 0)
        w->words = carve(&c, d->vocabulary, d->width, sizeof(float));
    if (p->model->trainable != NULL && d->relative_norm)
        w->relative = carve(&c, d->relative_rows, d->width, sizeof(float));
    if (p->model->trainable != NULL && d->to_position)
        w->relative_k = carve(&c, d->relative_rows, A, sizeof(float));
    if (p->model->trainable != NULL && d->from_position)
        w->relative_q = carve(&c, d->relative_rows, A, sizeof(float));
    if (d->distances) w->distances = carve(&c, p->distance_rows, A, sizeof(float));
    if (d->segments) w->pairs = carve(&c, d->heads, p->longest * p->longest, sizeof(float));
    w->lse = carve(&c, d->heads, p->together ? N : p->longest, sizeof(float));
    w->position = carve(&c, N, 1, sizeof(int32_t));
    for (size_t i = 0; i < p->plan_count; i++) {
        const size_t bytes = locus_forward_workspace(p->plans[i].plan);
        if (bytes > w->attention_bytes) w->attention_bytes = bytes;
    }
    w->attention = carve(&c, 1, (int64_t)w->attention_bytes, 1);
    if (d->taps > 0) {
        const locus_convolution f = model_convolution(p->model);
        if (!locus_convolution_workspace(&convolution, &f, p->longest)) c.failed = 1;
        w->convolution = carve(&c, 1, (int64_t)convolution, 1);
    }
    if (d->forward_taps > 1) {
        const locus_convolution in = model_taps_in(p->model, &p->model->layers[0]);
        const locus_convolution out = model_taps_out(p->model, &p->model->layers[0]);
        uint64_t other = 0;
        if (!locus_convolution_workspace(&convolution, &in, p->longest) ||
            !locus_convolution_workspace(&other, &out, p->longest))
            c.failed = 1;
        w->convolution = carve(&c, 1, (int64_t)(convolution > other ? convolution : other), 1);
    }
    w->linear = carve(&c, 1, (int64_t)locus_linear_workspace(&p->model->linear), 1);
    return !c.failed && locus_to_size(&w->bytes, c.at + LOCUS_ALIGNMENT);
}

/* ---- plans ---- */

locus_tensor model_pass_offsets(const locus_model_pass *p)
{
    return locus_view(p->offsets, LOCUS_I64, 1, (const int64_t[]){p->ragged.sequences + 1});
}

/* Whether one call can attend in all sequences: nothing lies before their tokens, no score depends
 * on types, and all turn by the same frequencies. */
static int goes_together(const locus_model_pass *p)
{
    const model_description *d = &p->model->description;
    const int stretched = d->rope.kind == MODEL_ROPE_DYNAMIC && p->longest > d->rope.trained;
    return p->longest < p->tokens && p->cache == NULL && d->memory == 0 && !d->segments &&
           !stretched;
}

/* q, k and v as the executor has them; data is not read. */
static locus_tensors shapes_of(const locus_model_pass *p, const pass_plan *like)
{
    const model_description *d = &p->model->description;
    const int64_t D = d->head_dim, kv_heads = like->cross ? d->heads : d->kv_heads;
    locus_tensors t = {.size = sizeof t};
    if (!like->cross) t = p->model->layers[0].tables;
    t.q = locus_view_bthd(NULL, 1, like->queries, d->heads, D);
    t.k = t.v = locus_view_bthd(NULL, 1, like->keys, kv_heads, D);
    if (p->cache != NULL) t.frequencies = (locus_tensor){.rank = 0}; /* keys are turned before */
    if (like->all) t.q_offsets = t.k_offsets = model_pass_offsets(p);
    return t;
}

static locus_status make_plan(const locus_model_pass *p, pass_plan *made, locus_error *error)
{
    const locus_model *m = p->model;
    const model_description *d = &m->description;
    const int turned = p->cache != NULL && d->rope.base > 0.0;
    float frequency[MODEL_MOST_PAIRS];
    locus_config config;
    LOCUS_TRY(model_attention_config(m, made->cross || turned ? "none" : d->scheme, &config));
    if (d->distances) config.options.delta_min = model_first_distance(p);
    if (made->cross && d->cross_unscaled) config.scale = 1.0;
    if (made->cross) config.causal = 0;
    locus_tensors shapes = shapes_of(p, made);
    if (d->rope.kind == MODEL_ROPE_DYNAMIC && shapes.frequencies.rank != 0) {
        model_rope_frequencies(d, made->all ? p->longest : made->keys, frequency);
        shapes.frequencies.data = frequency;
    }
    if (d->distances) shapes.rel_k = model_distance_table(p, NULL);
    if (made->pairs)
        shapes.bias_dense = locus_view(NULL, LOCUS_F32, 4,
                                       (const int64_t[]){1, d->heads, made->queries, made->keys});
    return locus_plan_new(&made->plan, &config, &shapes, error);
}

static locus_status add_plan(locus_model_pass *p, const pass_plan *like, size_t *index,
                             locus_error *error)
{
    for (size_t i = 0; i < p->plan_count; i++) {
        const pass_plan *other = &p->plans[i];
        if (other->queries != like->queries || other->keys != like->keys ||
            other->cross != like->cross || other->pairs != like->pairs || other->all || like->all)
            continue;
        *index = i;
        return LOCUS_OK;
    }
    p->plans[p->plan_count] = *like;
    LOCUS_TRY(make_plan(p, &p->plans[p->plan_count], error));
    *index = p->plan_count++;
    return LOCUS_OK;
}

/* The plans of sequence s: its own, behind it that with pairs of two types where the model knows
 * them, and that of an encoder's states. */
static locus_status add_plans(locus_model_pass *p, int64_t s, locus_error *error)
{
    const model_cache *c = p->cache;
    const int64_t length = p->offsets[s + 1] - p->offsets[s];
    const int64_t past = c != NULL ? c->past[s] : 0;
    if (length == 0) return LOCUS_OK;
    LOCUS_TRY(add_plan(
        p, &(pass_plan){.queries = length, .keys = past + length + p->model->description.memory},
        &p->plan_of[s], error));
    if (p->model->description.segments) {
        size_t behind;
        LOCUS_TRY(add_plan(p, &(pass_plan){.queries = length, .keys = past + length, .pairs = 1},
                           &behind, error));
    }
    if (!p->model->description.cross) return LOCUS_OK;
    const int64_t *text = c->source_offsets + c->text[s];
    return add_plan(p, &(pass_plan){.queries = length, .keys = text[1] - text[0], .cross = 1},
                    &p->cross_plan_of[s], error);
}

static locus_status check_lengths(locus_model_pass *p, const int64_t *offsets, locus_error *error)
{
    const int64_t most = p->model->description.most_tokens;
    if (offsets[0] != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "offsets: found %" PRId64 " first, expected 0",
                          offsets[0]);
    p->longest = 0;
    for (int64_t s = 0; s < p->ragged.sequences; s++) {
        const int64_t length = offsets[s + 1] - offsets[s];
        const int64_t all = length + (p->cache != NULL ? p->cache->past[s] : 0);
        if (length < 0 || all > (int64_t)1 << 20)
            return locus_fail(error, LOCUS_ERR_ARGUMENT,
                              "sequence %" PRId64 ": found %" PRId64
                              " tokens, expected 0 to 1048576",
                              s, length < 0 ? length : all);
        if (most > 0 && all > most)
            return locus_fail(error, LOCUS_ERR_RANGE,
                              "sequence %" PRId64 ": found %" PRId64
                              " tokens, the model takes at most %" PRId64,
                              s, all, most);
        if (length > p->longest) p->longest = length;
    }
    p->tokens = offsets[p->ragged.sequences];
    return LOCUS_OK;
}

static void free_plans(locus_model_pass *p)
{
    for (size_t i = 0; i < p->plan_count; i++) locus_plan_free(p->plans[i].plan);
    p->plan_count = 0;
}

locus_status model_pass_set(locus_model_pass *p, const int64_t *offsets, locus_error *error)
{
    const size_t count = (size_t)p->ragged.sequences;
    pass_work work;
    LOCUS_TRY(check_lengths(p, offsets, error));
    memcpy(p->offsets, offsets, (count + 1) * sizeof *offsets);
    const int64_t rows = p->distance_rows;
    LOCUS_TRY(model_distances_new(p, error));
    if (p->plan_count + 2 * count > p->plan_room || p->distance_rows != rows)
        free_plans(p); /* those of lengths gone by */
    p->together = goes_together(p);
    if (p->together)
        LOCUS_TRY(add_plan(p, &(pass_plan){.queries = p->tokens, .keys = p->tokens, .all = 1},
                           &p->plan_of[0], error));
    for (int64_t s = 0; s < p->ragged.sequences && !p->together; s++)
        LOCUS_TRY(add_plans(p, s, error));
    if (!model_pass_carve(p, NULL, &work))
        return locus_fail(error, LOCUS_ERR_MEMORY,
                          "model: these lengths need more memory than a machine can address");
    p->bytes = work.bytes;
    return LOCUS_OK;
}

enum { SPARE_PLANS = 64 }; /* of lengths that come again */

locus_status model_pass_make(locus_model_pass **out, const locus_model *model, model_cache *cache,
                             int64_t sequences, locus_error *error)
{
    const size_t count = (size_t)sequences;
    *out = NULL;
    locus_model_pass *p = locus_allocate(model->allocator, 1, sizeof *p);
    if (p == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    p->model = model;
    p->cache = cache;
    p->ragged.sequences = sequences;
    p->plan_room = 2 * count + SPARE_PLANS;
    p->offsets = locus_allocate(model->allocator, count + 1, sizeof *p->offsets);
    p->plans = locus_allocate(model->allocator, p->plan_room, sizeof *p->plans);
    p->plan_of = locus_allocate(model->allocator, count + 1, sizeof *p->plan_of);
    p->cross_plan_of = locus_allocate(model->allocator, count + 1, sizeof *p->cross_plan_of);
    p->ragged.offsets = p->offsets;
    *out = p;
    if (p->offsets != NULL && p->plans != NULL && p->plan_of != NULL && p->cross_plan_of != NULL)
        return LOCUS_OK;
    locus_model_pass_free(p);
    *out = NULL;
    return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
}

void locus_model_pass_free(locus_model_pass *p)
{
    if (p == NULL) return;
    free_plans(p);
    locus_model_pass_free(p->decoder);
    locus_release(p->model->allocator, p->decoder_rows);
    locus_release(p->model->allocator, p->plans);
    locus_release(p->model->allocator, p->offsets);
    locus_release(p->model->allocator, p->plan_of);
    locus_release(p->model->allocator, p->sinusoid);
    locus_release(p->model->allocator, p->cross_plan_of);
    locus_release(p->model->allocator, p);
}

size_t locus_model_workspace(const locus_model_pass *pass) { return pass->bytes; }

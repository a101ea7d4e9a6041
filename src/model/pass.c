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

static float *carve_floats(carver *c, int64_t rows, int64_t width)
{
    return carve(c, rows, width, sizeof(float));
}

/* Rows of hidden states. */
static void carve_states(const locus_model_pass *p, carver *c, pass_work *w)
{
    const model_description *d = &p->model->description;
    const int64_t N = p->tokens;
    w->h = carve_floats(c, N, d->width);
    w->other = carve_floats(c, N, d->width);
    if (d->norm_first || d->conformer) w->sum = carve_floats(c, N, d->width);
    if (d->norm_first && d->cross) w->between = carve_floats(c, N, d->width);
    if (d->taps > 0) w->first = carve_floats(c, N, d->width);
    if (p->model->embedding_map.packed.outputs > 0)
        w->narrow = carve_floats(c, N, d->embedding_width);
    if (d->conformer) w->glu = carve_floats(c, N, d->width);
    if (d->turned_input) w->turned = carve_floats(c, N, d->width);
    w->inner = carve_floats(c, N, d->feed_forward);
    if (d->gated) w->gate = carve_floats(c, N, d->feed_forward);
    w->position = carve(c, N, 1, sizeof(int32_t));
}

static void carve_attention(const locus_model_pass *p, carver *c, pass_work *w)
{
    const model_description *d = &p->model->description;
    const int64_t N = p->tokens, A = d->heads * d->head_dim;
    w->qkv = carve_floats(c, N, model_qkv_width(d));
    if (d->turned_input || (p->cache != NULL && d->rope.base > 0.0))
        w->turns = carve_floats(c, N, d->head_dim);
    w->heads = carve_floats(c, N, A);
    if (d->memory > 0) {
        w->before = carve_floats(c, d->memory, 3 * A);
        w->kv = carve_floats(c, d->memory + p->longest, 2 * A);
    }
    if (d->distances) w->distances = carve_floats(c, p->distance_rows, A);
    if (d->segments) w->pairs = carve_floats(c, d->heads, p->longest * p->longest);
    w->lse = carve_floats(c, d->heads, p->together ? N : p->longest);
    for (size_t i = 0; i < p->plan_count; i++) {
        const size_t bytes = locus_forward_workspace(p->plans[i].plan);
        if (bytes > w->attention_bytes) w->attention_bytes = bytes;
    }
    w->attention = carve(c, 1, (int64_t)w->attention_bytes, 1);
}

/* What a model that trains makes anew in every pass, because its parameters move. */
static void carve_trainable(const locus_model_pass *p, carver *c, pass_work *w)
{
    const model_description *d = &p->model->description;
    const int64_t A = d->heads * d->head_dim;
    if (d->clusters > 0) w->words = carve_floats(c, d->vocabulary, d->width);
    if (d->relative_norm) w->relative = carve_floats(c, d->relative_rows, d->width);
    if (d->to_position) w->relative_k = carve_floats(c, d->relative_rows, A);
    if (d->from_position) w->relative_q = carve_floats(c, d->relative_rows, A);
}

static void carve_head(const locus_model_pass *p, carver *c, pass_work *w)
{
    const model_description *d = &p->model->description;
    const int64_t N = p->tokens, sequences = p->ragged.sequences;
    if (d->head == LOCUS_MODEL_CLASSIFY || d->head == LOCUS_MODEL_GENERATE)
        w->firsts = carve_floats(c, sequences, d->width);
    if (d->head == LOCUS_MODEL_CLASSIFY) w->pooled = carve_floats(c, sequences, d->width);
    if (p->model->narrow.packed.outputs > 0)
        w->narrowed = carve_floats(c, N > sequences ? N : sequences, d->embedding_width);
    if (model_has_fill(d)) w->fill = carve_floats(c, N, d->embedding_width);
}

/* Convolutions run one after the other: the largest of what they need. */
static void carve_convolution(const locus_model_pass *p, carver *c, pass_work *w)
{
    const locus_model *m = p->model;
    locus_convolution all[3];
    size_t count = 0;
    uint64_t most = 0;
    if (m->description.taps > 0) all[count++] = model_convolution(m);
    if (m->description.forward_taps > 1) {
        all[count++] = model_taps_in(m, &m->layers[0]);
        all[count++] = model_taps_out(m, &m->layers[0]);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        if (!locus_convolution_workspace(&bytes, &all[i], p->longest)) c->failed = 1;
        if (bytes > most) most = bytes;
    }
    if (count > 0) w->convolution = carve(c, 1, (int64_t)most, 1);
}

int model_pass_carve(const locus_model_pass *p, void *base, pass_work *w)
{
    carver c = {.base = base};
    *w = (pass_work){.bytes = 0};
    carve_states(p, &c, w);
    carve_attention(p, &c, w);
    if (p->model->trainable != NULL) carve_trainable(p, &c, w);
    carve_head(p, &c, w);
    carve_convolution(p, &c, w);
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
    LOCUS_TRY(model_check_offsets(offsets, p->ragged.sequences, error));
    p->longest = 0;
    for (int64_t s = 0; s < p->ragged.sequences; s++) {
        const int64_t length = offsets[s + 1] - offsets[s];
        const int64_t all = length + (p->cache != NULL ? p->cache->past[s] : 0);
        if (!model_is_length(all))
            return locus_fail(error, LOCUS_ERR_ARGUMENT,
                              "sequence %" PRId64 ": found %" PRId64 " tokens, expected 0 to %d", s,
                              all, MODEL_MOST_TOKENS);
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

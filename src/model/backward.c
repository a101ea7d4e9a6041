/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backward.h"

#include <string.h>

#include "core/error.h"
#include "nn/activation.h"

/* ---- where gradients lie ---- */

/* The gradient of what the executor has at `place`; NULL: nobody asks for it. */
static float *twin(const back *b, const float *place)
{
    const uintptr_t p = (uintptr_t)place;
    if (place == NULL) return NULL;
    if (p >= b->tape->base && p < b->tape->base + b->tape->base_bytes)
        return (float *)(void *)(b->w.twin + (p - b->tape->base));
    return model_gradient_of(&b->parameters, place);
}

static void add(const back *b, float *to, const float *from, int64_t count)
{
    if (to != NULL) b->m->workers.kernels->add(to, from, count);
}

/* The gradient of what entry e wrote, and 0 in its place. NULL: none came. */
static float *take_given(const back *b, const tape_entry *e)
{
    const int64_t count = e->rows * e->width;
    if (e->y == b->tape->logits) /* a map writes them, and changes no gradient of its own */
        return (float *)(uintptr_t)b->gradients->logits;
    if (e->y == b->tape->embedding) return b->gradients->embedding != NULL ? b->w.embedding : NULL;
    float *dy = twin(b, e->y);
    if (dy == NULL) return NULL;
    memcpy(b->w.given, dy, (size_t)count * sizeof(float));
    memset(dy, 0, (size_t)count * sizeof(float));
    return b->w.given;
}

static locus_rows rows_of(const float *data, int64_t rows, int64_t width)
{
    return (locus_rows){(float *)(uintptr_t)data, rows, width};
}

static locus_row_batch batch_of(const float *data, int64_t rows, int64_t width)
{
    return (locus_row_batch){.data = (float *)(uintptr_t)data,
                             .batches = 1,
                             .rows = rows,
                             .batch_stride = rows * width,
                             .row_stride = width};
}

/* ---- operators ---- */

/* g of y = activation(z) gate + residual becomes that of z, in g. */
static void bend_back(const back *b, const tape_entry *e, float *g)
{
    const int64_t count = e->rows * e->width;
    const locus_rows dy = rows_of(g, e->rows, e->width), z = rows_of(e->kept_z, e->rows, e->width);
    const locus_rows gate = rows_of(e->kept_gate, e->rows, e->width);
    const locus_rows dgate = rows_of(b->w.other, e->rows, e->width);
    add(b, twin(b, e->residual), g, count);
    if (e->kept_z == NULL) return;
    locus_activation_backward(&b->m->workers, e->activation, &dy, e->gate != NULL ? &dgate : NULL,
                              &dy, &z, e->gate != NULL ? &gate : NULL, e->width);
    if (e->gate != NULL) add(b, twin(b, e->gate), b->w.other, count);
}

static void map_back(const back *b, const tape_entry *e, float *g)
{
    const model_map *map = &e->of.map;
    float *dx = twin(b, e->x), *dw = model_gradient_of(&b->parameters, map->weight.data);
    float *db = map->bias.rank != 0 ? model_gradient_of(&b->parameters, map->bias.data) : NULL;
    bend_back(b, e, g);
    const locus_row_batch dz = batch_of(g, e->rows, e->width);
    const locus_row_batch x = batch_of(e->kept_x, e->rows, e->x_width);
    const locus_row_batch to = batch_of(dx, e->rows, e->x_width);
    locus_tensor weight = map->weight, bias = map->bias;
    weight.data = dw;
    bias.data = db;
    locus_linear f = b->m->linear;
    f.weight = &map->weight;
    f.workspace = b->w.linear;
    locus_linear_backward(&f, &dz, &x,
                          &(locus_linear_grad){.x = dx != NULL ? &to : NULL,
                                               .weight = dw != NULL ? &weight : NULL,
                                               .bias = db != NULL ? &bias : NULL,
                                               .add_x = 1,
                                               .add_parameters = 1});
}

/* x of a norm may be the numbers that the caller gave in place of tokens. */
static float *norm_twin(const back *b, const tape_entry *e)
{
    float *dx = twin(b, e->x);
    return dx != NULL || !e->of_input ? dx : b->gradients->input;
}

static void norm_back(const back *b, const tape_entry *e, const float *g)
{
    float *to = norm_twin(b, e);
    const locus_rows dx = rows_of(to, e->rows, e->width), dy = rows_of(g, e->rows, e->width);
    const locus_rows x = rows_of(e->kept_x, e->rows, e->width);
    const locus_norm_grad grad = {.x = to != NULL ? &dx : NULL,
                                  .gain = twin(b, e->of.norm.gain),
                                  .shift = twin(b, e->of.norm.shift),
                                  .add_x = 1,
                                  .add_parameters = 1};
    locus_norm_backward(&b->m->workers, &e->of.norm, &grad, &dy, &x, b->w.norm);
}

static void embed_back(const back *b, const tape_entry *e, const float *g)
{
    const locus_rows dy = rows_of(g, e->rows, e->width);
    for (int64_t i = 0; i < e->of.embed.count; i++) {
        float *table = twin(b, e->of.embed.term[i].table);
        if (table != NULL)
            locus_embedding_backward(&b->m->workers, table, &e->of.embed.term[i], &dy, e->width);
    }
    if (e->of_input && !e->decoder) add(b, b->gradients->input, g, e->rows * e->width);
}

/* ---- attention ---- */

static void set_twins(const back *b, const locus_tensors *in, locus_tensors *grad)
{
    static const char *const never[] = {"frequencies", "rows", "q_offsets", "k_offsets"};
    *grad = *in;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        locus_tensor *tensor = locus_tensor_at(grad, i);
        if (tensor->rank == 0) continue;
        int asked = 1;
        for (size_t n = 0; n < sizeof never / sizeof *never; n++)
            asked &= strcmp(locus_tensor_name(i), never[n]) != 0;
        tensor->data = asked ? twin(b, tensor->data) : NULL;
        if (tensor->data == NULL) *tensor = (locus_tensor){.rank = 0};
    }
}

/* q, k and v of the executor are columns of the same rows, which gradients must not be: they are made
 * one behind the other, then added where they belong. */
static void part(locus_tensor *tensor, float **room)
{
    const int64_t count = locus_tensor_elements(tensor);
    *tensor = locus_view_bthd(*room, 1, tensor->shape[2], tensor->shape[1], tensor->shape[3]);
    memset(*room, 0, (size_t)count * sizeof(float));
    *room += count;
}

static void add_part(const back *b, const locus_tensor *in, const locus_tensor *from)
{
    const int64_t width = from->shape[1] * from->shape[3];
    float *to = twin(b, in->data);
    const float *row = from->data;
    for (int64_t i = 0; to != NULL && i < from->shape[2]; i++)
        add(b, to + i * in->stride[2], row + i * width, width);
}

static locus_status attend_back(const back *b, const tape_entry *e, float *g)
{
    const tape_attention *a = &e->of.attend;
    const int64_t D = a->in->v.shape[3], heads = e->width / D;
    locus_tensors in = *a->kept, grad;
    float *room = b->w.parts;
    set_twins(b, a->in, &grad);
    part(&grad.q, &room);
    part(&grad.k, &room);
    part(&grad.v, &room);
    if (a->types != NULL) {
        in.bias_dense = model_segment_again(&b->m->description, a, b->w.pairs);
        memset(grad.bias_dense.data, 0, (size_t)(heads * e->rows * e->rows) * sizeof(float));
    }
    const locus_results results = {
        .size = sizeof results,
        .out = locus_view_bthd((float *)(uintptr_t)e->kept_x, 1, e->rows, heads, D),
        .lse = locus_view(a->lse, LOCUS_F32, 3, (const int64_t[]){1, heads, e->rows})};
    const locus_results dresults = {.size = sizeof dresults,
                                    .out = locus_view_bthd(g, 1, e->rows, heads, D)};
    LOCUS_TRY(locus_backward(a->plan, &in, &results, &dresults, &grad, LOCUS_ACCUMULATE,
                             b->w.attention, b->w.attention_bytes, b->error));
    add_part(b, &a->in->q, &grad.q);
    add_part(b, &a->in->k, &grad.k);
    add_part(b, &a->in->v, &grad.v);
    if (a->types != NULL)
        model_segment_back(&b->m->description, a, grad.bias_dense.data, twin(b, a->in->q.data),
                           twin(b, a->layer->segment_bias), twin(b, a->layer->segment));
    return LOCUS_OK;
}

/* ---- convolutions ---- */

static void convolve_back(const back *b, const tape_entry *e, float *g)
{
    const locus_rows dz = rows_of(g, e->rows, e->width);
    const locus_rows x = rows_of(e->kept_x, e->rows, e->x_width);
    const locus_rows dx = rows_of(b->w.other, e->rows, e->x_width);
    locus_convolution f = e->of.convolve;
    bend_back(b, e, g);
    f.workspace = b->w.convolution;
    f.packed = NULL;
    const locus_convolution_grad grad = {
        .x = &dx, .weight = twin(b, f.weight), .bias = twin(b, f.bias), .add_parameters = 1};
    locus_convolution_backward(&f, &grad, &dz, &x, &b->tape->pass->ragged);
    add(b, twin(b, e->x), b->w.other, e->rows * e->x_width);
}

static void depth_back(const back *b, const tape_entry *e, const float *g)
{
    const locus_depthwise *f = &e->of.depth;
    const locus_rows dy = rows_of(g, e->rows, e->width), x = rows_of(e->kept_x, e->rows, e->width);
    const locus_rows dx = rows_of(b->w.other, e->rows, e->width);
    const locus_depthwise_grad grad = {
        .x = &dx, .weight = twin(b, f->weight), .bias = twin(b, f->bias), .add_parameters = 1};
    locus_depthwise_backward(&b->m->workers, f, &grad, &dy, &x, &b->tape->pass->ragged);
    add(b, twin(b, e->x), b->w.other, e->rows * e->width);
}

/* ---- rows ---- */

/* The gradient of a turn is the turn back: by the same cosines and the sines of the other sign. */
static void turn_back(const back *b, const tape_entry *e, const float *g)
{
    const int64_t pairs = e->of.turn.pairs, D = 2 * pairs, heads = e->width / D;
    float *dx = twin(b, e->x);
    for (int64_t i = 0; i < e->rows; i++)
        for (int64_t h = 0; h < heads; h++) {
            const float *from = g + i * e->width + h * D, *c = e->of.turn.turns + i * D;
            float *to = dx + i * e->width + h * D;
            for (int64_t t = 0; t < pairs; t++) {
                to[t] += from[t] * c[t] + from[t + pairs] * c[t + pairs];
                to[t + pairs] += from[t + pairs] * c[t] - from[t] * c[t + pairs];
            }
        }
}

static void copy_back(const back *b, const tape_entry *e)
{
    float *dy = twin(b, e->y), *dx = twin(b, e->x);
    for (int64_t i = 0; i < e->rows; i++) {
        float *row = dy + i * e->y_stride;
        if (dx != NULL) add(b, dx + i * e->x_stride, row, e->width);
        memset(row, 0, (size_t)e->width * sizeof(float));
    }
}

static void pool_back(const back *b, const tape_entry *e, const float *g)
{
    const locus_ragged *tokens = &b->tape->pass->ragged;
    const int64_t N = tokens->offsets[tokens->sequences];
    const locus_rows dy = rows_of(g, e->rows, e->width), dx = rows_of(b->w.other, N, e->width);
    const locus_rows x = rows_of(e->kept_x, N, e->width);
    locus_pooling_backward(&b->m->workers, e->of.pool, &dx, &dy, &x, tokens, e->width);
    add(b, twin(b, e->x), b->w.other, N * e->width);
}

static void activate_back(const back *b, const tape_entry *e, float *g)
{
    bend_back(b, e, g);
    add(b, twin(b, e->x), g, e->rows * e->width);
}

static void give_back(const back *b, const tape_entry *e)
{
    const float *const *given = e->decoder ? b->gradients->decoder_hidden : b->gradients->hidden;
    if (given != NULL && given[e->of.give] != NULL)
        add(b, twin(b, e->y), given[e->of.give], e->rows * e->width);
}

static locus_status step_back(const back *b, const tape_entry *e)
{
    if (e->rows == 0) return LOCUS_OK;
    if (e->kind == TAPE_GIVE || e->kind == TAPE_COPY) {
        e->kind == TAPE_GIVE ? give_back(b, e) : copy_back(b, e);
        return LOCUS_OK;
    }
    float *g = take_given(b, e);
    if (g == NULL) return LOCUS_OK;
    const locus_rows rows = rows_of(g, e->rows, e->width);
    const locus_rows x = rows_of(e->kept_x, e->rows, e->width);
    switch (e->kind) {
    case TAPE_EMBED: embed_back(b, e, g); break;
    case TAPE_NORM: norm_back(b, e, g); break;
    case TAPE_MAP: map_back(b, e, g); break;
    case TAPE_ATTEND: return attend_back(b, e, g);
    case TAPE_CONVOLVE: convolve_back(b, e, g); break;
    case TAPE_DEPTH: depth_back(b, e, g); break;
    case TAPE_ACTIVATE: activate_back(b, e, g); break;
    case TAPE_TURN: turn_back(b, e, g); break;
    case TAPE_POOL: pool_back(b, e, g); break;
    default: locus_unit_backward(&b->m->workers, &rows, &rows, &x, e->width); break;
    }
    return LOCUS_OK;
}

locus_status model_back_run(const back *b)
{
    for (size_t i = b->tape->count; i-- > 0;) LOCUS_TRY(step_back(b, &b->tape->entries[i]));
    model_gather(&b->parameters);
    return LOCUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tape.h"

#include <string.h>

#include "core/memory.h"
#include "core/size.h"
#include "nn/activation.h"

/* ---- memory ---- */

/* Bytes that stay; NULL while counting. */
static void *take(model_tape *t, uint64_t bytes)
{
    uint64_t padded = 0;
    void *place = t->memory != NULL ? t->memory + t->at : NULL;
    if (!locus_pad_u64(&padded, bytes, LOCUS_ALIGNMENT) || !locus_add_u64(&t->at, t->at, padded)) {
        t->failed = 1;
        return NULL;
    }
    if (t->counting) return NULL;
    if (t->at > t->bytes) t->failed = 1;
    return t->failed ? NULL : place;
}

static float *take_floats(model_tape *t, int64_t count)
{
    return take(t, (uint64_t)count * sizeof(float));
}

/* In the executor's workspace: it will be written again. */
static int passes(const model_tape *t, const void *place)
{
    const uintptr_t p = (uintptr_t)place;
    return p >= t->base && p < t->base + t->base_bytes;
}

static int overlap(const tape_copy *c, const float *from, int64_t count)
{
    return (uintptr_t)from < (uintptr_t)(c->from + c->count) &&
           (uintptr_t)(from + count) > (uintptr_t)c->from;
}

/* y is written: what was kept of it is another value. */
static void wrote(model_tape *t, const float *y, int64_t count)
{
    size_t left = 0;
    for (size_t i = 0; i < t->copy_count; i++)
        if (!overlap(&t->copies[i], y, count)) t->copies[left++] = t->copies[i];
    t->copy_count = left;
    if (count > t->largest && passes(t, y)) t->largest = count;
}

/* Where the value of x is kept, if it is. Parameters and the like stay where they are. */
static const float *kept_of(const model_tape *t, const float *x, int64_t count)
{
    if (x == NULL || !passes(t, x)) return x;
    for (size_t i = 0; i < t->copy_count; i++) {
        const tape_copy *c = &t->copies[i];
        if ((uintptr_t)x >= (uintptr_t)c->from &&
            (uintptr_t)(x + count) <= (uintptr_t)(c->from + c->count))
            return c->kept != NULL ? c->kept + (x - c->from) : x;
    }
    return NULL;
}

/* What is needed again goes to the end of the list. */
static const float *keep(model_tape *t, const float *x, int64_t count)
{
    for (size_t i = 0; i + 1 < t->copy_count; i++) {
        const tape_copy c = t->copies[i];
        if (c.from != x) continue;
        memmove(t->copies + i, t->copies + i + 1, (t->copy_count - i - 1) * sizeof c);
        t->copies[t->copy_count - 1] = c;
        break;
    }
    const float *kept = kept_of(t, x, count);
    if (kept != NULL || x == NULL) return kept;
    float *copy = take_floats(t, count);
    if (copy != NULL) memcpy(copy, x, (size_t)count * sizeof(float));
    if (t->copy_count == TAPE_COPIES) { /* the oldest goes */
        memmove(t->copies, t->copies + 1, (TAPE_COPIES - 1) * sizeof *t->copies);
        t->copy_count--;
    }
    t->copies[t->copy_count++] = (tape_copy){x, count, copy};
    return copy;
}

static void push(model_tape *t, const tape_entry *entry)
{
    if (entry->rows > t->most_rows) t->most_rows = entry->rows;
    if (!t->counting && t->count == t->room) t->failed = 1;
    if (t->failed) return;
    if (!t->counting) t->entries[t->count] = *entry;
    t->count++;
}

/* ---- operators ---- */

static locus_row_batch batch_of(const float *data, int64_t rows, int64_t width)
{
    return (locus_row_batch){.data = (float *)(uintptr_t)data,
                             .batches = 1,
                             .rows = rows,
                             .batch_stride = rows * width,
                             .row_stride = width};
}

static void add_to(const locus_model *m, float *y, const float *x, int64_t count)
{
    if (x != NULL) m->workers.kernels->add(y, x, count);
}

static void map_forward(const locus_model *m, void *workspace, const model_map *map, float *y,
                        const float *x, int64_t rows, const float *residual)
{
    const locus_row_batch to = batch_of(y, rows, map->packed.outputs);
    const locus_row_batch from = batch_of(x, rows, map->packed.inputs);
    const locus_row_batch plus = batch_of(residual, rows, map->packed.outputs);
    const locus_linear_end end = {.residual = residual != NULL ? &plus : NULL};
    locus_linear f = m->linear;
    f.weight = &map->weight;
    f.bias = map->bias.rank != 0 ? &map->bias : NULL;
    f.workspace = workspace;
    locus_linear_forward(&f, &to, &from, &end);
}

void model_tape_map(const locus_model *m, void *workspace, const model_map *map, float *y,
                    const float *x, int64_t rows, const model_end *end)
{
    model_tape *t = m->tape;
    const int64_t outputs = map->packed.outputs, inputs = map->packed.inputs;
    tape_entry e = {.kind = TAPE_MAP,
                    .y = y,
                    .x = x,
                    .rows = rows,
                    .width = outputs,
                    .x_width = inputs,
                    .of = {.map = *map}};
    float *z = y;
    e.kept_x = keep(t, x, rows * inputs);
    if (end != NULL) {
        e.activation = end->activation;
        e.gate = end->gate;
        e.residual = end->residual;
        e.kept_gate = keep(t, end->gate, rows * outputs);
    }
    const int bent = e.activation != LOCUS_IDENTITY || e.gate != NULL;
    if (bent) e.kept_z = z = take_floats(t, rows * outputs);
    if (!t->counting && z != NULL) {
        map_forward(m, workspace, map, z, x, rows, bent ? NULL : e.residual);
        const locus_rows to = {y, rows, outputs}, from = {z, rows, outputs};
        const locus_rows gate = {(float *)(uintptr_t)e.gate, rows, outputs};
        if (bent)
            locus_activation_forward(&m->workers, e.activation, &to, &from,
                                     e.gate != NULL ? &gate : NULL, outputs);
        if (bent) add_to(m, y, e.residual, rows * outputs);
    }
    push(t, &e);
    wrote(t, y, rows * outputs);
}

void model_tape_norm(const locus_model *m, const locus_norm_rule *rule, float *y, const float *x,
                     int64_t rows)
{
    model_tape *t = m->tape;
    const locus_rows to = {y, rows, rule->width};
    const locus_rows from = {(float *)(uintptr_t)x, rows, rule->width};
    const tape_entry e = {.kind = TAPE_NORM,
                          .y = y,
                          .x = x,
                          .rows = rows,
                          .width = rule->width,
                          .kept_x = keep(t, x, rows * rule->width),
                          .of = {.norm = *rule},
                          .of_input = x == t->features};
    if (!t->counting) locus_norm_forward(&m->workers, rule, &to, &from);
    push(t, &e);
    wrote(t, y, rows * rule->width);
}

void model_tape_embed(const locus_model *m, const locus_rows *y, const locus_embedding *terms,
                      int64_t count, int64_t width, int input)
{
    model_tape *t = m->tape;
    tape_entry e = {.kind = TAPE_EMBED, .y = y->data, .rows = y->count, .width = width};
    e.of.embed.count = count;
    e.of_input = input;
    e.decoder = m->encoder != NULL;
    for (int64_t i = 0; i < count; i++) {
        e.of.embed.term[i] = terms[i];
        if (terms[i].id == NULL) continue;
        int32_t *id = take(t, (uint64_t)y->count * sizeof *id);
        if (id != NULL) memcpy(id, terms[i].id, (size_t)y->count * sizeof *id);
        e.of.embed.term[i].id = id;
    }
    if (!t->counting) locus_embedding_forward(&m->workers, y, terms, count, width);
    push(t, &e);
    wrote(t, y->data, y->count * width);
}

/* ---- attention ---- */

void model_tape_hold(const locus_model *m, const float *buffer, int64_t count)
{
    if (m->tape != NULL) (void)keep(m->tape, buffer, count);
}

/* The same tensors with values that stay. Scores of pairs are made again on the way back. */
static void keep_tensors(model_tape *t, locus_tensors *kept)
{
    kept->bias_dense = (locus_tensor){.rank = 0};
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        locus_tensor *tensor = locus_tensor_at(kept, i);
        if (tensor->rank == 0 || tensor->data == NULL) continue;
        tensor->data = (void *)(uintptr_t)kept_of(t, tensor->data, 1);
        if (tensor->data == NULL) t->failed = 1; /* the executor did not hold it */
    }
}

locus_status model_tape_attend(const locus_model *m, const locus_plan *plan,
                               const locus_tensors *in, const locus_results *results,
                               const model_layer *layer, const int32_t *types, void *workspace,
                               size_t bytes, locus_error *error)
{
    model_tape *t = m->tape;
    const locus_tensor *out = &results->out;
    const int64_t heads = out->shape[1], length = out->shape[2], width = heads * out->shape[3];
    tape_entry e = {.kind = TAPE_ATTEND,
                    .y = out->data,
                    .rows = length,
                    .width = width,
                    .of = {.attend = {.plan = plan, .length = length}}};
    locus_results own = *results;
    tape_attention *a = &e.of.attend;
    a->in = take(t, sizeof *in);
    a->kept = take(t, sizeof *in);
    a->lse = take_floats(t, heads * length);
    int32_t *kinds = types != NULL ? take(t, (uint64_t)length * sizeof *types) : NULL;
    if (types != NULL) a->layer = layer;
    a->types = kinds;
    const int64_t parts = locus_tensor_elements(&in->q) + locus_tensor_elements(&in->k) +
                          locus_tensor_elements(&in->v);
    if (parts > t->most_parts) t->most_parts = parts;
    locus_status status = LOCUS_OK;
    if (a->in != NULL && a->kept != NULL && a->lse != NULL) {
        *a->in = *a->kept = *in;
        if (kinds != NULL) memcpy(kinds, types, (size_t)length * sizeof *types);
        keep_tensors(t, a->kept);
        own.lse = locus_view(a->lse, LOCUS_F32, 3, (const int64_t[]){1, heads, length});
        status = locus_forward(plan, in, &own, workspace, bytes, error);
    }
    push(t, &e);
    wrote(t, out->data, length * width);
    return status;
}

void model_tape_attended(const locus_model *m, const float *out, int64_t count)
{
    model_tape *t = m->tape;
    if (t == NULL) return;
    (void)keep(t, out, count);
    for (size_t i = t->attended; i < t->count && !t->counting && !t->failed; i++)
        if (t->entries[i].kind == TAPE_ATTEND)
            t->entries[i].kept_x = kept_of(t, t->entries[i].y, 1);
    t->attended = t->count;
}

/* ---- convolutions ---- */

void model_tape_convolve(const locus_model *m, const locus_convolution *f, const locus_rows *y,
                         const locus_rows *x, const locus_rows *residual,
                         const locus_ragged *tokens)
{
    model_tape *t = m->tape;
    tape_entry e = {.kind = TAPE_CONVOLVE,
                    .y = y->data,
                    .x = x->data,
                    .rows = y->count,
                    .width = f->outputs,
                    .x_width = f->inputs,
                    .activation = f->activation,
                    .residual = residual != NULL ? residual->data : NULL,
                    .of = {.convolve = *f}};
    const int bent = f->activation != LOCUS_IDENTITY;
    float *z = bent ? take_floats(t, y->count * f->outputs) : y->data;
    e.kept_x = keep(t, x->data, x->count * f->inputs);
    if (bent) e.kept_z = z;
    if (!t->counting && z != NULL) {
        const locus_rows to = {z, y->count, f->outputs};
        locus_convolution plain = *f;
        plain.activation = LOCUS_IDENTITY;
        locus_convolution_forward(&plain, &to, x, bent ? NULL : residual, tokens);
        if (bent) locus_activation_forward(&m->workers, f->activation, y, &to, NULL, f->outputs);
        if (bent) add_to(m, y->data, e.residual, y->count * f->outputs);
    }
    push(t, &e);
    wrote(t, y->data, y->count * f->outputs);
}

void model_tape_depth(const locus_model *m, const locus_depthwise *f, const locus_rows *y,
                      const locus_rows *x, const locus_ragged *tokens)
{
    model_tape *t = m->tape;
    const tape_entry e = {.kind = TAPE_DEPTH,
                          .y = y->data,
                          .x = x->data,
                          .rows = y->count,
                          .width = f->width,
                          .kept_x = keep(t, x->data, x->count * f->width),
                          .of = {.depth = *f}};
    if (!t->counting) locus_depthwise_forward(&m->workers, f, y, x, tokens);
    push(t, &e);
    wrote(t, y->data, y->count * f->width);
}

/* ---- rows ---- */

void model_tape_activate(const locus_model *m, locus_activation activation, const locus_rows *y,
                         int64_t width)
{
    model_tape *t = m->tape;
    const tape_entry e = {.kind = TAPE_ACTIVATE,
                          .y = y->data,
                          .x = y->data,
                          .rows = y->count,
                          .width = width,
                          .activation = activation,
                          .kept_z = keep(t, y->data, y->count * width)};
    if (!t->counting) locus_activation_forward(&m->workers, activation, y, y, NULL, width);
    push(t, &e);
    wrote(t, y->data, y->count * width);
}

void model_tape_turn(const locus_model *m, float *y, const float *x, const float *turns,
                     int64_t rows)
{
    model_tape *t = m->tape;
    const int64_t D = m->description.head_dim, width = m->description.heads * D;
    const tape_entry e = {.kind = TAPE_TURN,
                          .y = y,
                          .x = x,
                          .rows = rows,
                          .width = width,
                          .of = {.turn = {keep(t, turns, rows * D), D / 2}}};
    if (!t->counting)
        for (int64_t h = 0; h < m->description.heads; h++)
            m->workers.kernels->turn(y + h * D, width, x + h * D, width, turns, D / 2, 0, 1.0f,
                                     rows, D, (locus_prefetch_rows){.rows = NULL});
    push(t, &e);
    wrote(t, y, rows * width);
}

void model_tape_copy(const locus_model *m, float *y, int64_t y_stride, const float *x,
                     int64_t x_stride, int64_t rows, int64_t width)
{
    model_tape *t = m->tape;
    const tape_entry e = {.kind = TAPE_COPY,
                          .y = y,
                          .x = x,
                          .rows = rows,
                          .width = width,
                          .y_stride = y_stride,
                          .x_stride = x_stride};
    if (!t->counting)
        for (int64_t i = 0; i < rows; i++)
            memcpy(y + i * y_stride, x + i * x_stride, (size_t)width * sizeof(float));
    push(t, &e);
    if (rows > 0) wrote(t, y, (rows - 1) * y_stride + width);
}

void model_tape_pool(const locus_model *m, locus_pooling pooling, const locus_rows *y,
                     const locus_rows *x, const locus_ragged *tokens, int64_t width)
{
    model_tape *t = m->tape;
    tape_entry e = {.kind = TAPE_POOL,
                    .y = y->data,
                    .x = x->data,
                    .rows = y->count,
                    .width = width,
                    .of = {.pool = pooling}};
    if (pooling == LOCUS_POOL_MAX) e.kept_x = keep(t, x->data, x->count * width);
    if (!t->counting) locus_pooling_forward(&m->workers, pooling, y, x, tokens, width);
    push(t, &e);
    wrote(t, y->data, y->count * width);
}

void model_tape_unit(const locus_model *m, const locus_rows *y, int64_t width)
{
    model_tape *t = m->tape;
    tape_entry e = {
        .kind = TAPE_UNIT, .y = y->data, .x = y->data, .rows = y->count, .width = width};
    float *kept = take_floats(t, y->count * width);
    if (kept != NULL) memcpy(kept, y->data, (size_t)(y->count * width) * sizeof(float));
    e.kept_x = kept;
    if (!t->counting) locus_unit_forward(&m->workers, y, y, width);
    push(t, &e);
}

void model_tape_give(const locus_model *m, const float *h, int64_t rows, int64_t width,
                     int64_t which)
{
    const tape_entry e = {.kind = TAPE_GIVE,
                          .y = (float *)(uintptr_t)h,
                          .rows = rows,
                          .width = width,
                          .decoder = m->encoder != NULL,
                          .of = {.give = which}};
    push(m->tape, &e);
}

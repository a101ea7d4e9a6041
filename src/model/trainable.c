/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trainable.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory for the weights");
}

locus_status model_trainable_new(model_trainable **out, int64_t room,
                                 const locus_allocator *allocator, locus_error *error)
{
    model_trainable *t = locus_allocate(allocator, 1, sizeof *t);
    *out = t;
    if (t == NULL) return no_memory(error);
    t->texts.allocator = allocator;
    t->tensors.item_bytes = sizeof(trainable_tensor);
    t->blocks.item_bytes = sizeof(trainable_block);
    t->moves.item_bytes = sizeof(trainable_move);
    t->folds.item_bytes = sizeof(trainable_fold);
    t->room = room;
    t->values = locus_allocate(allocator, (size_t)room, sizeof(float));
    return t->values != NULL ? LOCUS_OK : no_memory(error);
}

void model_trainable_free(model_trainable *t)
{
    if (t == NULL) return;
    const locus_allocator *allocator = t->texts.allocator;
    locus_list *const lists[] = {&t->tensors, &t->blocks, &t->moves, &t->folds};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) locus_list_clear(lists[i], allocator);
    locus_arena_clear(&t->texts);
    locus_release(allocator, t->values);
    locus_release(allocator, t);
}

/* ---- tensors ---- */

static const trainable_tensor *find(const model_trainable *t, const char *name)
{
    for (size_t i = 0; i < t->tensors.count; i++) {
        const trainable_tensor *item = locus_list_at(&t->tensors, i);
        if (strcmp(item->name, name) == 0) return item;
    }
    return NULL;
}

static locus_status add(model_trainable *t, const locus_file_tensor *stored, int64_t count,
                        locus_error *error)
{
    if (stored->rank > LOCUS_MAX_RANK || count > t->room - t->count)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "tensor %s: found %" PRIu32 " axes, expected at most %d to train it",
                          stored->name, stored->rank, LOCUS_MAX_RANK);
    trainable_tensor *item = locus_list_push(&t->tensors, t->texts.allocator);
    char *name = locus_arena_copy(&t->texts, stored->name, strlen(stored->name));
    if (item == NULL || name == NULL) return no_memory(error);
    *item = (trainable_tensor){.name = name, .rank = stored->rank, .at = t->count, .count = count};
    for (uint32_t i = 0; i < stored->rank; i++) item->shape[i] = (int64_t)stored->shape[i];
    t->count += count;
    return LOCUS_OK;
}

locus_status model_trainable_place(model_trainable *t, model_checkpoint *c, model_slot slot,
                                   int64_t layer, float **to, locus_error *error)
{
    LOCUS_TRY(model_checkpoint_check(c, slot, layer, error));
    const locus_file_tensor *stored = model_checkpoint_tensor(c, slot, layer);
    const trainable_tensor *item = find(t, stored->name);
    if (item != NULL) {
        *to = t->values + item->at;
        return LOCUS_OK;
    }
    *to = t->values + t->count;
    LOCUS_TRY(add(t, stored, model_slot_elements(c->description, slot), error));
    return model_checkpoint_read_stored(c, slot, layer, *to, error);
}

/* ---- copies ---- */

locus_status model_trainable_block(model_trainable *t, float *data, int64_t count,
                                   locus_error *error)
{
    trainable_block *block = locus_list_push(&t->blocks, t->texts.allocator);
    if (block == NULL) return no_memory(error);
    *block = (trainable_block){.data = data, .count = count, .at = t->arranged};
    t->arranged += count;
    return LOCUS_OK;
}

locus_status model_trainable_move(model_trainable *t, const trainable_move *move,
                                  locus_error *error)
{
    trainable_move *item = locus_list_push(&t->moves, t->texts.allocator);
    if (item == NULL) return no_memory(error);
    *item = *move;
    return LOCUS_OK;
}

locus_status model_trainable_fold(model_trainable *t, const trainable_fold *fold,
                                  locus_error *error)
{
    trainable_fold *item = locus_list_push(&t->folds, t->texts.allocator);
    if (item == NULL) return no_memory(error);
    *item = *fold;
    return LOCUS_OK;
}

static void move(const trainable_move *m)
{
    for (int64_t i = 0; i < m->extent[0]; i++)
        for (int64_t j = 0; j < m->extent[1]; j++) {
            const float *from = m->from + i * m->from_stride[0] + j * m->from_stride[1];
            float *to = m->to + i * m->to_stride[0] + j * m->to_stride[1];
            for (int64_t k = 0; k < m->extent[2]; k++)
                to[k * m->to_stride[2]] = from[k * m->from_stride[2]] / m->divisor;
        }
}

/* dfrom += dto / divisor */
static void move_back(const trainable_move *m, float *dfrom, const float *dto)
{
    for (int64_t i = 0; i < m->extent[0]; i++)
        for (int64_t j = 0; j < m->extent[1]; j++) {
            float *to = dfrom + i * m->from_stride[0] + j * m->from_stride[1];
            const float *from = dto + i * m->to_stride[0] + j * m->to_stride[1];
            for (int64_t k = 0; k < m->extent[2]; k++)
                to[k * m->from_stride[2]] += from[k * m->to_stride[2]] / m->divisor;
        }
}

static double deviation(const trainable_fold *f, int64_t channel)
{
    return sqrt((double)f->variance[channel] + f->epsilon);
}

static void fold(const trainable_fold *f)
{
    for (int64_t c = 0; c < f->width; c++) {
        const double factor = (double)f->gain[c] / deviation(f, c);
        for (int64_t k = 0; k < f->taps; k++)
            f->to[k * f->width + c] = (float)((double)f->weight[c * f->taps + k] * factor);
        f->to_shift[c] = (float)((double)f->shift[c] - (double)f->mean[c] * factor);
    }
}

static void fold_back(const trainable_fold *f, const trainable_gradients *g)
{
    const float *taps = model_gradient_of(g, f->to), *shift = model_gradient_of(g, f->to_shift);
    float *dweight = model_gradient_of(g, f->weight), *dgain = model_gradient_of(g, f->gain);
    float *dshift = model_gradient_of(g, f->shift);
    for (int64_t c = 0; c < f->width; c++) {
        const double factor = (double)f->gain[c] / deviation(f, c);
        double sum = -(double)f->mean[c] * (double)shift[c];
        for (int64_t k = 0; k < f->taps; k++) {
            const double tap = (double)taps[k * f->width + c];
            dweight[c * f->taps + k] += (float)(tap * factor);
            sum += tap * (double)f->weight[c * f->taps + k];
        }
        dgain[c] += (float)(sum / deviation(f, c));
        dshift[c] += shift[c];
    }
}

void model_arrange(const model_trainable *t)
{
    for (size_t i = 0; i < t->moves.count; i++) move(locus_list_at(&t->moves, i));
    for (size_t i = 0; i < t->folds.count; i++) fold(locus_list_at(&t->folds, i));
}

/* ---- gradients ---- */

static int holds(const float *data, int64_t count, const float *place)
{
    return (uintptr_t)place >= (uintptr_t)data && (uintptr_t)place < (uintptr_t)(data + count);
}

float *model_gradient_of(const trainable_gradients *g, const float *place)
{
    for (int s = 0; s < 2 && g->stack[s] != NULL; s++) {
        const model_trainable *t = g->stack[s];
        if (holds(t->values, t->count, place)) return g->tensors[s] + (place - t->values);
        for (size_t i = 0; i < t->blocks.count; i++) {
            const trainable_block *b = locus_list_at(&t->blocks, i);
            if (holds(b->data, b->count, place)) return g->copies[s] + b->at + (place - b->data);
        }
    }
    return NULL;
}

void model_gather(const trainable_gradients *g)
{
    for (int s = 0; s < 2 && g->stack[s] != NULL; s++) {
        const model_trainable *t = g->stack[s];
        for (size_t i = 0; i < t->moves.count; i++) {
            const trainable_move *m = locus_list_at(&t->moves, i);
            move_back(m, model_gradient_of(g, m->from), model_gradient_of(g, m->to));
        }
        for (size_t i = 0; i < t->folds.count; i++) fold_back(locus_list_at(&t->folds, i), g);
    }
}

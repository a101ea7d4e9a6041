/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/blocks.h"

/* Tensors of the checkpoint by their slots. */

int slot_wanted(const builder *b, model_slot slot) { return model_slot_wanted(b->d, slot); }

int slot_there(const builder *b, model_slot slot, int64_t layer)
{
    return model_checkpoint_has(b->c, slot, layer);
}

static value find(builder *b, model_slot slot, int64_t layer, int fixed)
{
    const model_description *d = b->c->description; /* of a part of a table, perhaps */
    uint64_t shape[4];
    model_place place;
    (void)model_slot_shape(d, slot, shape);
    const int64_t rows = (int64_t)shape[0], width = model_slot_elements(d, slot) / rows;
    const locus_status status =
        b->p->status == LOCUS_OK
            ? model_checkpoint_find(b->c, slot, d->shared_layers ? 0 : layer, &place, b->error)
            : b->p->status;
    if (status == LOCUS_OK && place.tensor != NULL)
        return build_tensor(b->p, &place, rows, width, fixed);
    program_fail(b->p, status);
    return build_absent(b->p, rows, width);
}

value slot_tensor(builder *b, model_slot slot, int64_t layer) { return find(b, slot, layer, 0); }
value slot_fixed(builder *b, model_slot slot, int64_t layer) { return find(b, slot, layer, 1); }

value slot_matrix(builder *b, model_slot slot, int64_t layer, float divisor)
{
    int64_t rows, columns;
    const value matrix = slot_tensor(b, slot, layer);
    if (model_slot_transposed(b->d, slot, &rows, &columns))
        return build_transposed(b->p, matrix, divisor);
    return divisor != 1.0f ? build_divided(b->p, matrix, divisor) : matrix;
}

value slot_bias(builder *b, model_slot slot, int64_t layer)
{
    const model_slot bias = (model_slot)(slot + 1);
    if (!slot_wanted(b, bias) && !slot_there(b, bias, layer)) return NONE;
    return slot_tensor(b, bias, layer);
}

value slot_norm(builder *b, value x, model_slot gain, int64_t layer, double epsilon)
{
    const model_slot shift = (model_slot)(gain + 1);
    const value g = slot_tensor(b, gain, layer);
    const value s = slot_wanted(b, shift) ? slot_tensor(b, shift, layer) : NONE;
    return build_norm(b->p, x, g, s, b->d->norm_centred, epsilon);
}

value slot_map(builder *b, value x, model_slot slot, int64_t layer, locus_activation activation,
               value gate, value residual)
{
    const value weight = slot_matrix(b, slot, layer, 1.0f);
    return build_map(b->p, x, weight, slot_bias(b, slot, layer), activation, gate, residual);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "core/error.h"
#include "model/blocks.h"

/* Tensors of the checkpoint by their names. */

int tensor_there(const builder *b, const char *name, int64_t layer)
{
    char spelt[MODEL_NAME];
    model_place place;
    return model_checkpoint_look(b->c, name, layer, spelt, &place);
}

value tensor_named(builder *b, const char *name, int64_t layer, int64_t rows, int64_t columns)
{
    const uint64_t shape[] = {(uint64_t)rows, (uint64_t)columns};
    model_place place = {.tensor = NULL};
    if (b->p->status == LOCUS_OK)
        program_fail(b->p, model_checkpoint_named(b->c, name, layer, shape, columns > 1 ? 2 : 1,
                                                  &place, b->error));
    if (b->p->status != LOCUS_OK || place.tensor == NULL) return build_absent(b->p, rows, columns);
    return build_tensor(b->p, &place, rows, columns, 0);
}

/* NAME.weight, NAME.bias */
static value part_named(builder *b, const char *name, const char *end, int64_t layer, int64_t rows,
                        int64_t columns)
{
    char whole[MODEL_NAME];
    snprintf(whole, sizeof whole, "%s.%s", name, end);
    return tensor_named(b, whole, layer, rows, columns);
}

value map_named(builder *b, value x, const char *name, int64_t layer, int64_t outputs, int biased,
                locus_activation activation, value gate, value residual)
{
    const int64_t width = b->p->values[x].width;
    const value weight = part_named(b, name, "weight", layer, outputs, width);
    const value bias = biased ? part_named(b, name, "bias", layer, outputs, 1) : NONE;
    return build_map(b->p, x, weight, bias, activation, gate, residual);
}

value maps_named(builder *b, value x, const char *const *names, const int64_t *outputs, int count,
                 int64_t layer, int biased)
{
    const int64_t width = b->p->values[x].width;
    value weights[OP_INPUTS] = {NONE}, biases[OP_INPUTS] = {NONE};
    for (int i = 0; i < count; i++)
        weights[i] = part_named(b, names[i], "weight", layer, outputs[i], width);
    for (int i = 0; i < count && biased; i++)
        biases[i] = part_named(b, names[i], "bias", layer, outputs[i], 1);
    const value weight = build_join(b->p, weights, count);
    return build_map(b->p, x, weight, biased ? build_join(b->p, biases, count) : NONE,
                     LOCUS_IDENTITY, NONE, NONE);
}

value norm_named(builder *b, value x, const char *name, int64_t layer)
{
    const model_description *d = b->d;
    const int64_t width = b->p->values[x].width;
    const int shifted = d->norm_centred && !d->norm_unshifted;
    const value gain = part_named(b, name, "weight", layer, width, 1);
    const value shift = shifted ? part_named(b, name, "bias", layer, width, 1) : NONE;
    return build_norm(b->p, x, gain, shift, d->norm_centred, d->norm_epsilon);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families/fused.h"

#include <stdio.h>

/* Rows [groups][heads of q, k, v][D] as [q of all][k of all][v of all]; `width` floats to a row. */
static value sort(builder *b, value from, int64_t width)
{
    const model_description *d = b->d;
    const int64_t G = d->kv_heads, one = d->head_dim * width, q = d->heads / G * one;
    const value parts[] = {from, from, from};
    const int64_t counts[] = {q, one, one};
    move_rule rules[3];
    for (int64_t i = 0, first = 0, to = 0; i < 3; i++) {
        rules[i] = (move_rule){.extent = {1, G, counts[i]},
                               .from = {0, q + 2 * one, 1},
                               .to = {0, counts[i], 1},
                               .from_first = first,
                               .to_first = to,
                               .divisor = 1.0f};
        first += counts[i];
        to += G * counts[i];
    }
    return build_move(b->p, parts, rules, 3, (d->heads + 2 * G) * d->head_dim, width);
}

value fused_qkv(builder *b, value x, const char *name, int64_t layer, int biased)
{
    const model_description *d = b->d;
    const int64_t rows = (d->heads + 2 * d->kv_heads) * d->head_dim;
    char whole[MODEL_NAME];
    snprintf(whole, sizeof whole, "%s.weight", name);
    const value weight = sort(b, tensor_named(b, whole, layer, rows, d->width), d->width);
    snprintf(whole, sizeof whole, "%s.bias", name);
    const value bias = biased ? sort(b, tensor_named(b, whole, layer, rows, 1), 1) : NONE;
    return build_map(b->p, x, weight, bias, LOCUS_IDENTITY, NONE, NONE);
}

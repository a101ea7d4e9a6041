/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/rotary.h"

/* Phi-3, 3.5 and 4: Llama with q, k and v in one tensor, gate and up in another. Beyond a length all
 * pairs turn by other frequencies (longrope); of Phi-4-mini's heads a part alone turns. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    static const rotary_presets presets = {.width = 3072,
                                           .layers = 32,
                                           .heads = 32,
                                           .feed_forward = 8192,
                                           .vocabulary = 32064,
                                           .positions = 4096,
                                           .epsilon = 1e-5,
                                           .activation = "silu"};
    rotary *own;
    int64_t trained;
    LOCUS_TRY(rotary_read(s, &presets, d, &own, &trained, error));
    if (model_setting_find(s, "sliding_window") != NULL)
        LOCUS_TRY(model_setting_integer(s, "sliding_window", 1, 1, 1 << 30, &own->window, error));
    for (int64_t l = 0; l < d->layers; l++) own->local[l] = own->window > 0;
    LOCUS_TRY(model_read_turned(s, "partial_rotary_factor", 1.0, d, error));
    LOCUS_TRY(model_read_rope(s, trained, d, error));
    if (d->rope.kind != MODEL_ROPE_PLAIN && d->rope.kind != MODEL_ROPE_LONG)
        return model_setting_refuse(s, "rope_scaling.type", "longrope", error);
    if (d->rope.kind == MODEL_ROPE_LONG && d->rope.trained == trained &&
        model_setting_find(s, "original_max_position_embeddings") == NULL)
        return model_setting_refuse(s, "original_max_position_embeddings", "a whole number", error);
    return LOCUS_OK;
}

/* Rows of q and k that turn, times the gain of the rotations: where whole heads turn, the scale of the
 * products has it already. */
static value with_gain(builder *b, value weight)
{
    const model_description *d = b->d;
    const int64_t E = d->width, D = d->head_dim, T = d->rope.turned, HK = d->heads + d->kv_heads;
    if (T == D || !(d->rope.gain > 0.0)) return weight;
    const value from[] = {weight, weight, weight};
    const move_rule rules[] = {{.extent = {1, HK, T * E},
                                .from = {0, D * E, 1},
                                .to = {0, D * E, 1},
                                .divisor = (float)(1.0 / d->rope.gain)},
                               {.extent = {1, HK, (D - T) * E},
                                .from = {0, D * E, 1},
                                .to = {0, D * E, 1},
                                .from_first = T * E,
                                .to_first = T * E,
                                .divisor = 1.0f},
                               {.extent = {1, 1, d->kv_heads * D * E},
                                .from = {0, 0, 1},
                                .to = {0, 0, 1},
                                .from_first = HK * D * E,
                                .to_first = HK * D * E,
                                .divisor = 1.0f}};
    return build_move(b->p, from, rules, 3, (HK + d->kv_heads) * D, E);
}

static value block(builder *b, value h, int64_t l)
{
    const model_description *d = b->d;
    const int64_t E = d->width, F = d->feed_forward;
    const value qkv = tensor_named(b, "layers.#.self_attn.qkv_proj.weight", l,
                                   (d->heads + 2 * d->kv_heads) * d->head_dim, E);
    value x = norm_named(b, h, "layers.#.input_layernorm", l);
    x = build_map(b->p, x, with_gain(b, qkv), NONE, LOCUS_IDENTITY, NONE, NONE);
    h = rotary_attend(b, x, l, h);
    x = norm_named(b, h, "layers.#.post_attention_layernorm", l);
    const value both = tensor_named(b, "layers.#.mlp.gate_up_proj.weight", l, 2 * F, E);
    const value up =
        build_map(b->p, x, build_rows(b->p, both, F, F), NONE, LOCUS_IDENTITY, NONE, NONE);
    x = build_map(b->p, x, build_rows(b->p, both, 0, F), NONE, d->activation, up, NONE);
    return map_named(b, x, "layers.#.mlp.down_proj", l, E, 0, LOCUS_IDENTITY, NONE, h);
}

static const model_wiring wiring = {.begin = rotary_begin, .block = block};

const model_family model_family_phi3 = {
    .type = "phi3",
    .prefixes = rotary_prefixes,
    .names = rotary_names,
    .describe = describe,
    .wiring = &wiring,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/rotary.h"

/* Qwen3, its embeddings and rerankers: Qwen2 with a norm of every head of q and k, and biases where the
 * configuration says so. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    static const rotary_presets presets = {.width = 4096,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 32,
                                           .feed_forward = 22016,
                                           .vocabulary = 151936,
                                           .positions = 32768,
                                           .head_dim = 128,
                                           .activation = "silu"};
    rotary *own;
    int64_t trained, first;
    int windows;
    LOCUS_TRY(rotary_read(s, &presets, d, &own, &trained, error));
    LOCUS_TRY(model_setting_flag(s, "attention_bias", 0, &own->biased, error));
    own->out_biased = own->biased;
    LOCUS_TRY(model_setting_flag(s, "use_sliding_window", 0, &windows, error));
    if (windows)
        LOCUS_TRY(
            model_setting_integer(s, "sliding_window", 4096, 1, 1 << 30, &own->window, error));
    LOCUS_TRY(model_setting_integer(s, "max_window_layers", 28, 0, 1 << 20, &first, error));
    LOCUS_TRY(rotary_read_layers(s, d, own, first, 0, error));
    return model_read_rope(s, trained, d, error);
}

static value block(builder *b, value h, int64_t l)
{
    const model_description *d = b->d;
    const value x = norm_named(b, h, "layers.#.input_layernorm", l);
    const value q = tensor_named(b, "layers.#.self_attn.q_norm.weight", l, d->head_dim, 1);
    const value k = tensor_named(b, "layers.#.self_attn.k_norm.weight", l, d->head_dim, 1);
    h = rotary_attend(b, rotary_norm_heads(b, rotary_qkv(b, x, l), q, k), l, h);
    return rotary_forward(b, norm_named(b, h, "layers.#.post_attention_layernorm", l), l, h);
}

static const model_wiring wiring = {.begin = rotary_begin, .block = block};

const model_family model_family_qwen3 = {
    .type = "qwen3",
    .prefixes = rotary_prefixes,
    .names = rotary_names,
    .describe = describe,
    .wiring = &wiring,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/description.h"

/* GPT-2: learned positions, LayerNorm before each sublayer, q, k and v in one map, and all maps of
 * the layers stored [inputs, outputs]. */

static const model_name names[] = {
    {SLOT_WORD, "wte.weight"},
    {SLOT_POSITION, "wpe.weight"},
    {SLOT_FUSED_QKV, "h.#.attn.c_attn.weight"},
    {SLOT_FUSED_QKV_BIAS, "h.#.attn.c_attn.bias"},
    {SLOT_O, "h.#.attn.c_proj.weight"},
    {SLOT_O_BIAS, "h.#.attn.c_proj.bias"},
    {SLOT_ATTENTION_NORM_GAIN, "h.#.ln_1.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, "h.#.ln_1.bias"},
    {SLOT_IN, "h.#.mlp.c_fc.weight"},
    {SLOT_IN_BIAS, "h.#.mlp.c_fc.bias"},
    {SLOT_OUT, "h.#.mlp.c_proj.weight"},
    {SLOT_OUT_BIAS, "h.#.mlp.c_proj.bias"},
    {SLOT_FORWARD_NORM_GAIN, "h.#.ln_2.weight"},
    {SLOT_FORWARD_NORM_SHIFT, "h.#.ln_2.bias"},
    {SLOT_FINAL_NORM_GAIN, "ln_f.weight"},
    {SLOT_FINAL_NORM_SHIFT, "ln_f.bias"},
    {SLOT_LOGITS, "lm_head.weight"},
    {SLOT_COUNT, NULL},
};

static const char *const prefixes[] = {"transformer.", "", NULL};

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    int tied, scaled;
    LOCUS_TRY(model_setting_integer(s, "n_embd", 768, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "n_layer", 12, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "n_head", 12, 1, 1024, &d->heads, error));
    LOCUS_TRY(
        model_setting_integer(s, "n_inner", 4 * d->width, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "n_positions", 1024, 1, 1 << 20, &d->positions, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 50257, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_epsilon", 1e-5, &d->norm_epsilon, error));
    LOCUS_TRY(model_read_activation(s, "activation_function", "gelu_new", &d->activation, error));
    LOCUS_TRY(model_setting_flag(s, "tie_word_embeddings", 1, &tied, error));
    LOCUS_TRY(model_setting_flag(s, "scale_attn_weights", 1, &scaled, error));
    if (!scaled) return model_setting_refuse(s, "scale_attn_weights", "true", error);
    LOCUS_TRY(model_refuse_flag(s, "scale_attn_by_inverse_layer_idx", error));
    LOCUS_TRY(model_refuse_flag(s, "add_cross_attention", error));
    d->most_tokens = d->positions;
    d->transposed = d->fused_parts = d->fused_biases = 1;
    d->biases = d->norm_centred = d->norm_first = d->final_norm = 1;
    d->scheme = "none";
    d->positions_name = "learned";
    model_set_decoder(d, tied);
    return model_split_heads(s, "n_head", d, error);
}

const model_family model_family_gpt2 = {
    .type = "gpt2",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

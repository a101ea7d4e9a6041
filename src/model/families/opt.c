/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/description.h"

/* OPT: learned positions from row 2 on; the norm before or after each sublayer; words narrower than
 * the layers go through a map, and the positions are added behind it. */

static const model_name names[] = {
    {SLOT_WORD, "embed_tokens.weight"},
    {SLOT_POSITION, "embed_positions.weight"},
    {SLOT_EMBEDDING_MAP, "project_in.weight"},
    {SLOT_NARROW, "project_out.weight"},
    {SLOT_Q, "layers.#.self_attn.q_proj.weight"},
    {SLOT_Q_BIAS, "layers.#.self_attn.q_proj.bias"},
    {SLOT_K, "layers.#.self_attn.k_proj.weight"},
    {SLOT_K_BIAS, "layers.#.self_attn.k_proj.bias"},
    {SLOT_V, "layers.#.self_attn.v_proj.weight"},
    {SLOT_V_BIAS, "layers.#.self_attn.v_proj.bias"},
    {SLOT_O, "layers.#.self_attn.out_proj.weight"},
    {SLOT_O_BIAS, "layers.#.self_attn.out_proj.bias"},
    {SLOT_ATTENTION_NORM_GAIN, "layers.#.self_attn_layer_norm.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, "layers.#.self_attn_layer_norm.bias"},
    {SLOT_IN, "layers.#.fc1.weight"},
    {SLOT_IN_BIAS, "layers.#.fc1.bias"},
    {SLOT_OUT, "layers.#.fc2.weight"},
    {SLOT_OUT_BIAS, "layers.#.fc2.bias"},
    {SLOT_FORWARD_NORM_GAIN, "layers.#.final_layer_norm.weight"},
    {SLOT_FORWARD_NORM_SHIFT, "layers.#.final_layer_norm.bias"},
    {SLOT_FINAL_NORM_GAIN, "final_layer_norm.weight"},
    {SLOT_FINAL_NORM_SHIFT, "final_layer_norm.bias"},
    {SLOT_LOGITS, "lm_head.weight"},
    {SLOT_COUNT, NULL},
};

static const char *const prefixes[] = {"model.decoder.", "decoder.", "", NULL};

/* Rows that lie before the first position. */
enum { OPT_FIRST_POSITION = 2 };

static locus_status read_flags(const model_settings *s, model_description *d, locus_error *error)
{
    int affine, tied, removed;
    LOCUS_TRY(model_setting_flag(s, "do_layer_norm_before", 1, &d->norm_first, error));
    LOCUS_TRY(model_setting_flag(s, "_remove_final_layer_norm", 0, &removed, error));
    LOCUS_TRY(model_setting_flag(s, "enable_bias", 1, &d->biases, error));
    LOCUS_TRY(model_setting_flag(s, "layer_norm_elementwise_affine", 1, &affine, error));
    if (!affine) return model_setting_refuse(s, "layer_norm_elementwise_affine", "true", error);
    LOCUS_TRY(model_setting_flag(s, "tie_word_embeddings", 1, &tied, error));
    d->final_norm = d->norm_first && !removed;
    model_set_decoder(d, tied);
    return LOCUS_OK;
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_setting_integer(s, "hidden_size", 768, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "num_hidden_layers", 12, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "num_attention_heads", 12, 1, 1024, &d->heads, error));
    LOCUS_TRY(model_setting_integer(s, "ffn_dim", 3072, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 50272, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_integer(s, "max_position_embeddings", 2048, 1, 1 << 20, &d->most_tokens,
                                    error));
    LOCUS_TRY(model_read_activation(s, "activation_function", "relu", &d->activation, error));
    LOCUS_TRY(read_flags(s, d, error));
    d->positions = d->most_tokens + OPT_FIRST_POSITION;
    d->first_position = OPT_FIRST_POSITION;
    d->late_positions = d->norm_centred = 1;
    d->norm_epsilon = 1e-5;
    d->scheme = "none";
    d->positions_name = "learned";
    LOCUS_TRY(model_split_heads(s, "num_attention_heads", d, error));
    LOCUS_TRY(model_setting_integer(s, "word_embed_proj_dim", d->width, 1, 65536,
                                    &d->embedding_width, error));
    d->narrows = d->embedding_width != d->width;
    return LOCUS_OK;
}

const model_family model_family_opt = {
    .type = "opt",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/error.h"
#include "model/families/marian.h"

/* Marian (opus-mt): an encoder and a decoder with sinusoidal positions, sines before cosines, and
 * the norm behind each sublayer (converted models: or before it, and one at the end); words are scaled by sqrt(width) where scale_embedding says so. */

const model_name model_marian_names[] = {
    {SLOT_WORD, "encoder.embed_tokens.weight"},
    {SLOT_WORD, "shared.weight"},
    {SLOT_POSITION, "encoder.embed_positions.weight"},
    {SLOT_EMBEDDING_NORM_GAIN, "encoder.layernorm_embedding.weight"},
    {SLOT_EMBEDDING_NORM_SHIFT, "encoder.layernorm_embedding.bias"},
    {SLOT_Q, "encoder.layers.#.self_attn.q_proj.weight"},
    {SLOT_Q_BIAS, "encoder.layers.#.self_attn.q_proj.bias"},
    {SLOT_K, "encoder.layers.#.self_attn.k_proj.weight"},
    {SLOT_K_BIAS, "encoder.layers.#.self_attn.k_proj.bias"},
    {SLOT_V, "encoder.layers.#.self_attn.v_proj.weight"},
    {SLOT_V_BIAS, "encoder.layers.#.self_attn.v_proj.bias"},
    {SLOT_O, "encoder.layers.#.self_attn.out_proj.weight"},
    {SLOT_O_BIAS, "encoder.layers.#.self_attn.out_proj.bias"},
    {SLOT_ATTENTION_NORM_GAIN, "encoder.layers.#.self_attn_layer_norm.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, "encoder.layers.#.self_attn_layer_norm.bias"},
    {SLOT_IN, "encoder.layers.#.fc1.weight"},
    {SLOT_IN_BIAS, "encoder.layers.#.fc1.bias"},
    {SLOT_OUT, "encoder.layers.#.fc2.weight"},
    {SLOT_OUT_BIAS, "encoder.layers.#.fc2.bias"},
    {SLOT_FORWARD_NORM_GAIN, "encoder.layers.#.final_layer_norm.weight"},
    {SLOT_FORWARD_NORM_SHIFT, "encoder.layers.#.final_layer_norm.bias"},
    {SLOT_FINAL_NORM_GAIN, "encoder.layer_norm.weight"},
    {SLOT_FINAL_NORM_SHIFT, "encoder.layer_norm.bias"},
    {SLOT_COUNT, NULL},
};

const model_name model_marian_decoder_names[] = {
    {SLOT_WORD, "decoder.embed_tokens.weight"},
    {SLOT_POSITION, "decoder.embed_positions.weight"},
    {SLOT_EMBEDDING_NORM_GAIN, "decoder.layernorm_embedding.weight"},
    {SLOT_EMBEDDING_NORM_SHIFT, "decoder.layernorm_embedding.bias"},
    {SLOT_Q, "decoder.layers.#.self_attn.q_proj.weight"},
    {SLOT_Q_BIAS, "decoder.layers.#.self_attn.q_proj.bias"},
    {SLOT_K, "decoder.layers.#.self_attn.k_proj.weight"},
    {SLOT_K_BIAS, "decoder.layers.#.self_attn.k_proj.bias"},
    {SLOT_V, "decoder.layers.#.self_attn.v_proj.weight"},
    {SLOT_V_BIAS, "decoder.layers.#.self_attn.v_proj.bias"},
    {SLOT_O, "decoder.layers.#.self_attn.out_proj.weight"},
    {SLOT_O_BIAS, "decoder.layers.#.self_attn.out_proj.bias"},
    {SLOT_ATTENTION_NORM_GAIN, "decoder.layers.#.self_attn_layer_norm.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, "decoder.layers.#.self_attn_layer_norm.bias"},
    {SLOT_CROSS_Q, "decoder.layers.#.encoder_attn.q_proj.weight"},
    {SLOT_CROSS_Q_BIAS, "decoder.layers.#.encoder_attn.q_proj.bias"},
    {SLOT_CROSS_K, "decoder.layers.#.encoder_attn.k_proj.weight"},
    {SLOT_CROSS_K_BIAS, "decoder.layers.#.encoder_attn.k_proj.bias"},
    {SLOT_CROSS_V, "decoder.layers.#.encoder_attn.v_proj.weight"},
    {SLOT_CROSS_V_BIAS, "decoder.layers.#.encoder_attn.v_proj.bias"},
    {SLOT_CROSS_O, "decoder.layers.#.encoder_attn.out_proj.weight"},
    {SLOT_CROSS_O_BIAS, "decoder.layers.#.encoder_attn.out_proj.bias"},
    {SLOT_CROSS_NORM_GAIN, "decoder.layers.#.encoder_attn_layer_norm.weight"},
    {SLOT_CROSS_NORM_SHIFT, "decoder.layers.#.encoder_attn_layer_norm.bias"},
    {SLOT_IN, "decoder.layers.#.fc1.weight"},
    {SLOT_IN_BIAS, "decoder.layers.#.fc1.bias"},
    {SLOT_OUT, "decoder.layers.#.fc2.weight"},
    {SLOT_OUT_BIAS, "decoder.layers.#.fc2.bias"},
    {SLOT_FORWARD_NORM_GAIN, "decoder.layers.#.final_layer_norm.weight"},
    {SLOT_FORWARD_NORM_SHIFT, "decoder.layers.#.final_layer_norm.bias"},
    {SLOT_FINAL_NORM_GAIN, "decoder.layer_norm.weight"},
    {SLOT_FINAL_NORM_SHIFT, "decoder.layer_norm.bias"},
    {SLOT_LOGITS, "lm_head.weight"},
    {SLOT_LOGITS_BIAS, "final_logits_bias"},
    {SLOT_COUNT, NULL},
};

const char *const model_marian_prefixes[] = {"model.", "", NULL};

locus_status model_read_marian_stack(const model_settings *s, int stack, model_description *d,
                                     locus_error *error)
{
    static const struct {
        const char *layers, *heads, *inner;
    } keys[] = {{"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"},
                {"decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"}};
    int scaled;
    LOCUS_TRY(model_setting_integer(s, "d_model", 1024, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, keys[stack].layers, 12, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, keys[stack].heads, 16, 1, 1024, &d->heads, error));
    LOCUS_TRY(
        model_setting_integer(s, keys[stack].inner, 4096, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_flag(s, "scale_embedding", 0, &scaled, error));
    LOCUS_TRY(model_read_activation(s, "activation_function", "gelu", &d->activation, error));
    d->embedding_factor = scaled ? sqrt((double)d->width) : 1.0;
    d->biases = d->norm_centred = 1;
    d->norm_epsilon = 1e-5;
    d->scheme = "none";
    return model_split_heads(s, keys[stack].heads, d, error);
}

locus_status model_read_marian_decoder(const model_settings *s, model_description *d,
                                       locus_error *error)
{
    int tied;
    LOCUS_TRY(model_read_marian_stack(s, 1, d, error));
    LOCUS_TRY(model_setting_flag(s, "tie_word_embeddings", 1, &tied, error));
    d->cross = d->logits_biased = d->shared_words = 1;
    model_set_decoder(d, tied);
    return LOCUS_OK;
}

static locus_status read_stack(const model_settings *s, int stack, model_description *d,
                               locus_error *error)
{
    LOCUS_TRY(model_read_marian_stack(s, stack, d, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 58101, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_integer(s, "max_position_embeddings", 1024, 1, 1 << 20, &d->positions,
                                    error));
    LOCUS_TRY(model_setting_flag(s, "normalize_before", 0, &d->norm_first, error));
    LOCUS_TRY(model_setting_flag(s, "add_final_layer_norm", 0, &d->final_norm, error));
    LOCUS_TRY(model_refuse_flag(s, "normalize_embedding", error));
    d->most_tokens = d->positions;
    d->sinusoidal = 1;
    d->positions_name = "sinusoidal";
    return LOCUS_OK;
}

static locus_status describe_encoder(const model_settings *s, model_description *d,
                                     locus_error *error)
{
    return read_stack(s, 0, d, error);
}

/* Where the decoder is of another kind than the encoder: keys of ours, which converters write.
 * transformers' own Marian has one kind. */
static locus_status read_own_kind(const model_settings *s, model_description *d, locus_error *error)
{
    static const char activation[] = "decoder_activation_function";
    int scaled = d->embedding_factor != 1.0;
    LOCUS_TRY(
        model_setting_flag(s, "decoder_normalize_before", d->norm_first, &d->norm_first, error));
    LOCUS_TRY(model_setting_flag(s, "decoder_add_final_layer_norm", d->final_norm, &d->final_norm,
                                 error));
    LOCUS_TRY(model_setting_flag(s, "decoder_scale_embedding", scaled, &scaled, error));
    d->embedding_factor = scaled ? sqrt((double)d->width) : 1.0;
    return model_setting_find(s, activation) == NULL
               ? LOCUS_OK
               : model_read_activation(s, activation, NULL, &d->activation, error);
}

static locus_status describe_decoder(const model_settings *s, model_description *d,
                                     locus_error *error)
{
    LOCUS_TRY(model_read_marian_decoder(s, d, error));
    LOCUS_TRY(read_own_kind(s, d, error));
    LOCUS_TRY(
        model_setting_flag(s, "share_encoder_decoder_embeddings", 1, &d->shared_words, error));
    return d->shared_words ? LOCUS_OK
                           : model_setting_integer(s, "decoder_vocab_size", d->vocabulary, 1,
                                                   1 << 24, &d->vocabulary, error);
}

static const model_family decoder = {
    .type = "marian",
    .prefixes = model_marian_prefixes,
    .names = model_marian_decoder_names,
    .describe = describe_decoder,
};

static const model_ids ids = {.start = 58100, .begin = -1, .end = 0, .forced_end = 0};

const model_family model_family_marian = {
    .type = "marian",
    .prefixes = model_marian_prefixes,
    .names = model_marian_names,
    .describe = describe_encoder,
    .ids = &ids,
    .decoder = &decoder,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/description.h"

/* BLOOM: ALiBi, a norm behind the embeddings, LayerNorm before each sublayer, q, k and v in one map,
 * head by head. */

static const model_name names[] = {
    {SLOT_WORD, "word_embeddings.weight"},
    {SLOT_EMBEDDING_NORM_GAIN, "word_embeddings_layernorm.weight"},
    {SLOT_EMBEDDING_NORM_SHIFT, "word_embeddings_layernorm.bias"},
    {SLOT_FUSED_QKV, "h.#.self_attention.query_key_value.weight"},
    {SLOT_FUSED_QKV_BIAS, "h.#.self_attention.query_key_value.bias"},
    {SLOT_O, "h.#.self_attention.dense.weight"},
    {SLOT_O_BIAS, "h.#.self_attention.dense.bias"},
    {SLOT_ATTENTION_NORM_GAIN, "h.#.input_layernorm.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, "h.#.input_layernorm.bias"},
    {SLOT_IN, "h.#.mlp.dense_h_to_4h.weight"},
    {SLOT_IN_BIAS, "h.#.mlp.dense_h_to_4h.bias"},
    {SLOT_OUT, "h.#.mlp.dense_4h_to_h.weight"},
    {SLOT_OUT_BIAS, "h.#.mlp.dense_4h_to_h.bias"},
    {SLOT_FORWARD_NORM_GAIN, "h.#.post_attention_layernorm.weight"},
    {SLOT_FORWARD_NORM_SHIFT, "h.#.post_attention_layernorm.bias"},
    {SLOT_FINAL_NORM_GAIN, "ln_f.weight"},
    {SLOT_FINAL_NORM_SHIFT, "ln_f.bias"},
    {SLOT_LOGITS, "lm_head.weight"},
    {SLOT_COUNT, NULL},
};

static const char *const prefixes[] = {"transformer.", "", NULL};

/* `name`, or the older one. */
static const char *either(const model_settings *s, const char *name, const char *older)
{
    return model_setting_find(s, name) != NULL ? name : older;
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    int tied;
    const char *heads = either(s, "n_head", "num_attention_heads");
    LOCUS_TRY(model_setting_integer(s, either(s, "hidden_size", "n_embed"), 64, 1, 65536, &d->width,
                                    error));
    LOCUS_TRY(model_setting_integer(s, either(s, "n_layer", "num_hidden_layers"), 2, 1, 1024,
                                    &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, heads, 8, 1, 1024, &d->heads, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 250880, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_epsilon", 1e-5, &d->norm_epsilon, error));
    LOCUS_TRY(model_setting_flag(s, "tie_word_embeddings", 1, &tied, error));
    LOCUS_TRY(model_refuse_flag(s, "apply_residual_connection_post_layernorm", error));
    d->feed_forward = 4 * d->width;
    d->activation = LOCUS_GELU_TANH;
    d->fused_heads = d->fused_biases = d->embedding_norm = 1;
    d->biases = d->norm_centred = d->norm_first = d->final_norm = 1;
    d->scheme = d->positions_name = "alibi";
    model_set_decoder(d, tied);
    return model_split_heads(s, heads, d, error);
}

const model_family model_family_bloom = {
    .type = "bloom",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

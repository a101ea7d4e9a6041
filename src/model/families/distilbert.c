/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/description.h"

/* DistilBERT: BERT without token types, under other names. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_setting_integer(s, "dim", 768, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "n_layers", 6, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "n_heads", 12, 1, 1024, &d->heads, error));
    LOCUS_TRY(model_setting_integer(s, "hidden_dim", 3072, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 30522, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(
        model_setting_integer(s, "max_position_embeddings", 512, 1, 1 << 20, &d->positions, error));
    LOCUS_TRY(model_read_activation(s, "activation", "gelu", &d->activation, error));
    if (d->width % d->heads != 0)
        return model_setting_refuse(s, "n_heads", "a divisor of dim", error);
    d->head_dim = d->width / d->heads;
    d->embedding_width = d->width;
    d->most_tokens = d->positions;
    d->padding = -1;
    d->norm_centred = d->embedding_norm = d->biases = 1;
    d->norm_epsilon = 1e-12;
    d->head_activation = LOCUS_RELU;
    d->fill_activation = d->activation;
    d->scheme = "none";
    d->positions_name = "learned";
    return LOCUS_OK;
}

static const char *const prefixes[] = {"distilbert.", "", NULL};

static const model_name names[] = {
    {SLOT_WORD, "embeddings.word_embeddings.weight"},
    {SLOT_POSITION, "embeddings.position_embeddings.weight"},
    {SLOT_EMBEDDING_NORM_GAIN, "embeddings.LayerNorm.weight"},
    {SLOT_EMBEDDING_NORM_SHIFT, "embeddings.LayerNorm.bias"},
    {SLOT_Q, "transformer.layer.#.attention.q_lin.weight"},
    {SLOT_Q_BIAS, "transformer.layer.#.attention.q_lin.bias"},
    {SLOT_K, "transformer.layer.#.attention.k_lin.weight"},
    {SLOT_K_BIAS, "transformer.layer.#.attention.k_lin.bias"},
    {SLOT_V, "transformer.layer.#.attention.v_lin.weight"},
    {SLOT_V_BIAS, "transformer.layer.#.attention.v_lin.bias"},
    {SLOT_O, "transformer.layer.#.attention.out_lin.weight"},
    {SLOT_O_BIAS, "transformer.layer.#.attention.out_lin.bias"},
    {SLOT_ATTENTION_NORM_GAIN, "transformer.layer.#.sa_layer_norm.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, "transformer.layer.#.sa_layer_norm.bias"},
    {SLOT_IN, "transformer.layer.#.ffn.lin1.weight"},
    {SLOT_IN_BIAS, "transformer.layer.#.ffn.lin1.bias"},
    {SLOT_OUT, "transformer.layer.#.ffn.lin2.weight"},
    {SLOT_OUT_BIAS, "transformer.layer.#.ffn.lin2.bias"},
    {SLOT_FORWARD_NORM_GAIN, "transformer.layer.#.output_layer_norm.weight"},
    {SLOT_FORWARD_NORM_SHIFT, "transformer.layer.#.output_layer_norm.bias"},
    {SLOT_HEAD_MAP, "pre_classifier.weight"},
    {SLOT_HEAD_MAP_BIAS, "pre_classifier.bias"},
    {SLOT_HEAD_OUT, "classifier.weight"},
    {SLOT_HEAD_OUT_BIAS, "classifier.bias"},
    {SLOT_FILL_MAP, "vocab_transform.weight"},
    {SLOT_FILL_MAP_BIAS, "vocab_transform.bias"},
    {SLOT_FILL_NORM_GAIN, "vocab_layer_norm.weight"},
    {SLOT_FILL_NORM_SHIFT, "vocab_layer_norm.bias"},
    {SLOT_FILL_OUT, "vocab_projector.weight"},
    {SLOT_FILL_OUT_BIAS, "vocab_projector.bias"},
    {SLOT_COUNT, NULL},
};

const model_family model_family_distilbert = {
    .type = "distilbert",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/bert.h"

/* ALBERT: BERT with one layer's weights for all layers and embeddings that are mapped to the
 * width. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    int64_t one;
    LOCUS_TRY(model_setting_integer(s, "num_hidden_groups", 1, 1, 1, &one, error));
    LOCUS_TRY(model_setting_integer(s, "inner_group_num", 1, 1, 1, &one, error));
    LOCUS_TRY(model_refuse_flag(s, "is_decoder", error));
    LOCUS_TRY(model_describe_bert(s, d, error));
    LOCUS_TRY(model_read_activation(s, "hidden_act", "gelu_new", &d->activation, error));
    LOCUS_TRY(
        model_setting_integer(s, "embedding_size", 128, 1, 65536, &d->embedding_width, error));
    d->fill_activation = d->activation;
    d->always_mapped = 1;
    d->shared_layers = 1;
    return LOCUS_OK;
}

#define LAYER "encoder.albert_layer_groups.0.albert_layers.0."

static const char *const prefixes[] = {"albert.", "", NULL};

static const model_name names[] = {
    {SLOT_WORD, "embeddings.word_embeddings.weight"},
    {SLOT_POSITION, "embeddings.position_embeddings.weight"},
    {SLOT_TYPE, "embeddings.token_type_embeddings.weight"},
    {SLOT_EMBEDDING_NORM_GAIN, "embeddings.LayerNorm.weight"},
    {SLOT_EMBEDDING_NORM_SHIFT, "embeddings.LayerNorm.bias"},
    {SLOT_EMBEDDING_MAP, "encoder.embedding_hidden_mapping_in.weight"},
    {SLOT_EMBEDDING_MAP_BIAS, "encoder.embedding_hidden_mapping_in.bias"},
    {SLOT_Q, LAYER "attention.query.weight"},
    {SLOT_Q_BIAS, LAYER "attention.query.bias"},
    {SLOT_K, LAYER "attention.key.weight"},
    {SLOT_K_BIAS, LAYER "attention.key.bias"},
    {SLOT_V, LAYER "attention.value.weight"},
    {SLOT_V_BIAS, LAYER "attention.value.bias"},
    {SLOT_DISTANCE, LAYER "attention.distance_embedding.weight"},
    {SLOT_O, LAYER "attention.dense.weight"},
    {SLOT_O_BIAS, LAYER "attention.dense.bias"},
    {SLOT_ATTENTION_NORM_GAIN, LAYER "attention.LayerNorm.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, LAYER "attention.LayerNorm.bias"},
    {SLOT_IN, LAYER "ffn.weight"},
    {SLOT_IN_BIAS, LAYER "ffn.bias"},
    {SLOT_OUT, LAYER "ffn_output.weight"},
    {SLOT_OUT_BIAS, LAYER "ffn_output.bias"},
    {SLOT_FORWARD_NORM_GAIN, LAYER "full_layer_layer_norm.weight"},
    {SLOT_FORWARD_NORM_SHIFT, LAYER "full_layer_layer_norm.bias"},
    {SLOT_HEAD_MAP, "pooler.weight"},
    {SLOT_HEAD_MAP_BIAS, "pooler.bias"},
    {SLOT_HEAD_OUT, "classifier.weight"},
    {SLOT_HEAD_OUT_BIAS, "classifier.bias"},
    {SLOT_FILL_MAP, "predictions.dense.weight"},
    {SLOT_FILL_MAP_BIAS, "predictions.dense.bias"},
    {SLOT_FILL_NORM_GAIN, "predictions.LayerNorm.weight"},
    {SLOT_FILL_NORM_SHIFT, "predictions.LayerNorm.bias"},
    {SLOT_FILL_OUT, "predictions.decoder.weight"},
    {SLOT_FILL_OUT_BIAS, "predictions.bias"},
    {SLOT_FILL_OUT_BIAS, "predictions.decoder.bias"},
    {SLOT_COUNT, NULL},
};

const model_family model_family_albert = {
    .type = "albert",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

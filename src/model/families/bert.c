/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families/bert.h"
#include "core/error.h"
#include "model/families/fill_names.h"

/* BERT: norm after, learned positions, two token types. */

const model_name model_bert_names[] = {
    {SLOT_WORD, "embeddings.word_embeddings.weight"},
    {SLOT_POSITION, "embeddings.position_embeddings.weight"},
    {SLOT_TYPE, "embeddings.token_type_embeddings.weight"},
    {SLOT_EMBEDDING_NORM_GAIN, "embeddings.LayerNorm.weight"},
    {SLOT_EMBEDDING_NORM_SHIFT, "embeddings.LayerNorm.bias"},
    {SLOT_EMBEDDING_MAP, "embeddings_project.weight"},
    {SLOT_EMBEDDING_MAP_BIAS, "embeddings_project.bias"},
    {SLOT_Q, "encoder.layer.#.attention.self.query.weight"},
    {SLOT_Q_BIAS, "encoder.layer.#.attention.self.query.bias"},
    {SLOT_K, "encoder.layer.#.attention.self.key.weight"},
    {SLOT_K_BIAS, "encoder.layer.#.attention.self.key.bias"},
    {SLOT_V, "encoder.layer.#.attention.self.value.weight"},
    {SLOT_V_BIAS, "encoder.layer.#.attention.self.value.bias"},
    {SLOT_DISTANCE, "encoder.layer.#.attention.self.distance_embedding.weight"},
    {SLOT_O, "encoder.layer.#.attention.output.dense.weight"},
    {SLOT_O_BIAS, "encoder.layer.#.attention.output.dense.bias"},
    {SLOT_ATTENTION_NORM_GAIN, "encoder.layer.#.attention.output.LayerNorm.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, "encoder.layer.#.attention.output.LayerNorm.bias"},
    {SLOT_IN, "encoder.layer.#.intermediate.dense.weight"},
    {SLOT_IN_BIAS, "encoder.layer.#.intermediate.dense.bias"},
    {SLOT_OUT, "encoder.layer.#.output.dense.weight"},
    {SLOT_OUT_BIAS, "encoder.layer.#.output.dense.bias"},
    {SLOT_FORWARD_NORM_GAIN, "encoder.layer.#.output.LayerNorm.weight"},
    {SLOT_FORWARD_NORM_SHIFT, "encoder.layer.#.output.LayerNorm.bias"},
    {SLOT_HEAD_MAP, "classifier.dense.weight"},
    {SLOT_HEAD_MAP, "pooler.dense.weight"},
    {SLOT_HEAD_MAP_BIAS, "classifier.dense.bias"},
    {SLOT_HEAD_MAP_BIAS, "pooler.dense.bias"},
    {SLOT_HEAD_OUT, "classifier.out_proj.weight"},
    {SLOT_HEAD_OUT, "classifier.weight"},
    {SLOT_HEAD_OUT_BIAS, "classifier.out_proj.bias"},
    {SLOT_HEAD_OUT_BIAS, "classifier.bias"},
    MODEL_FILL_NAMES_CLS,
    MODEL_FILL_NAMES_LM_HEAD,
    {SLOT_FILL_MAP, "generator_predictions.dense.weight"},
    {SLOT_FILL_MAP_BIAS, "generator_predictions.dense.bias"},
    {SLOT_FILL_NORM_GAIN, "generator_predictions.LayerNorm.weight"},
    {SLOT_FILL_NORM_SHIFT, "generator_predictions.LayerNorm.bias"},
    {SLOT_FILL_OUT, "generator_lm_head.weight"},
    {SLOT_FILL_OUT_BIAS, "generator_lm_head.bias"},
    {SLOT_COUNT, NULL},
};

locus_status model_describe_bert(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_refuse_flag(s, "add_cross_attention", error));
    LOCUS_TRY(model_read_bert_sizes(s, d, error));
    LOCUS_TRY(model_read_decoder(s, d, error));
    LOCUS_TRY(model_setting_integer(s, "type_vocab_size", 2, 0, 1 << 16, &d->types, error));
    return model_read_bert_positions(s, d, error);
}

static const char *const prefixes[] = {"bert.", "", NULL};

const model_family model_family_bert = {
    .type = "bert",
    .prefixes = prefixes,
    .names = model_bert_names,
    .describe = model_describe_bert,
};

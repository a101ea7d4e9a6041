/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "model/families/deberta.h"
#include "model/families/fill_names.h"

/* DeBERTa v1: q, k and v in one tensor, head by head, without a bias of k; two projections of the
 * relative positions of their own, that of the keys without a bias; distances are not bucketed. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_refuse_flag(s, "talking_head", error));
    LOCUS_TRY(model_describe_deberta(s, d, error));
    d->fused_heads = 1;
    d->relative_shared = d->relative_norm = 0;
    d->options.buckets = 0;
    LOCUS_TRY(model_setting_integer(s, "max_relative_positions", -1, -1, 1 << 20, &d->options.span,
                                    error));
    if (d->options.span < 1)
        LOCUS_TRY(model_setting_integer(s, "max_position_embeddings", 512, 1, 1 << 20,
                                        &d->options.span, error));
    d->relative_rows = 2 * d->options.span;
    return LOCUS_OK;
}

static const char *const prefixes[] = {"deberta.", "", NULL};

static const model_name names[] = {
    {SLOT_WORD, "embeddings.word_embeddings.weight"},
    {SLOT_POSITION, "embeddings.position_embeddings.weight"},
    {SLOT_TYPE, "embeddings.token_type_embeddings.weight"},
    {SLOT_EMBEDDING_NORM_GAIN, "embeddings.LayerNorm.weight"},
    {SLOT_EMBEDDING_NORM_SHIFT, "embeddings.LayerNorm.bias"},
    {SLOT_RELATIVE, "encoder.rel_embeddings.weight"},
    {SLOT_FUSED_QKV, "encoder.layer.#.attention.self.in_proj.weight"},
    {SLOT_Q_BIAS, "encoder.layer.#.attention.self.q_bias"},
    {SLOT_V_BIAS, "encoder.layer.#.attention.self.v_bias"},
    {SLOT_RELATIVE_K, "encoder.layer.#.attention.self.pos_proj.weight"},
    {SLOT_RELATIVE_Q, "encoder.layer.#.attention.self.pos_q_proj.weight"},
    {SLOT_RELATIVE_Q_BIAS, "encoder.layer.#.attention.self.pos_q_proj.bias"},
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
    {SLOT_HEAD_MAP, "pooler.dense.weight"},
    {SLOT_HEAD_MAP_BIAS, "pooler.dense.bias"},
    {SLOT_HEAD_OUT, "classifier.weight"},
    {SLOT_HEAD_OUT_BIAS, "classifier.bias"},
    MODEL_FILL_NAMES_CLS,
    MODEL_FILL_NAMES_LM_PREDICTIONS,
    {SLOT_COUNT, NULL},
};

const model_family model_family_deberta = {
    .type = "deberta",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/fill_names.h"

/* MPNet: learned positions that begin behind the padding's row 1, and T5's buckets as a bias that all
 * layers share, beside scaled products. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_read_bert_sizes(s, d, error));
    LOCUS_TRY(
        model_setting_integer(s, "max_position_embeddings", 512, 3, 1 << 20, &d->positions, error));
    LOCUS_TRY(model_setting_integer(s, "relative_attention_num_buckets", 32, 4, 4096, &d->bias_rows,
                                    error));
    d->padding = 1;
    d->fill_activation = LOCUS_GELU;
    d->first_position = 2;
    d->most_tokens = d->positions - d->first_position;
    d->scheme = "t5";
    d->positions_name = "learned and t5";
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    d->options.buckets = d->bias_rows;
    d->options.max_distance = 128;
    d->options.bidirectional = 1;
    d->scaled_products = 1;
    return LOCUS_OK;
}

static const char *const prefixes[] = {"mpnet.", "", NULL};

static const model_name names[] = {
    {SLOT_WORD, "embeddings.word_embeddings.weight"},
    {SLOT_POSITION, "embeddings.position_embeddings.weight"},
    {SLOT_EMBEDDING_NORM_GAIN, "embeddings.LayerNorm.weight"},
    {SLOT_EMBEDDING_NORM_SHIFT, "embeddings.LayerNorm.bias"},
    {SLOT_BIAS, "encoder.relative_attention_bias.weight"},
    {SLOT_Q, "encoder.layer.#.attention.attn.q.weight"},
    {SLOT_Q_BIAS, "encoder.layer.#.attention.attn.q.bias"},
    {SLOT_K, "encoder.layer.#.attention.attn.k.weight"},
    {SLOT_K_BIAS, "encoder.layer.#.attention.attn.k.bias"},
    {SLOT_V, "encoder.layer.#.attention.attn.v.weight"},
    {SLOT_V_BIAS, "encoder.layer.#.attention.attn.v.bias"},
    {SLOT_O, "encoder.layer.#.attention.attn.o.weight"},
    {SLOT_O_BIAS, "encoder.layer.#.attention.attn.o.bias"},
    {SLOT_ATTENTION_NORM_GAIN, "encoder.layer.#.attention.LayerNorm.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, "encoder.layer.#.attention.LayerNorm.bias"},
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
    MODEL_FILL_NAMES_LM_HEAD,
    {SLOT_COUNT, NULL},
};

const model_family model_family_mpnet = {
    .type = "mpnet",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

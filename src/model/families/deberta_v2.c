/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "model/families/deberta.h"
#include "model/families/fill_names.h"

/* DeBERTa v2 and v3: disentangled attention on one table of relative positions, which every layer
 * projects by its own key and query maps (share_att_key) or by two more. v2 has a convolution beside
 * its first layer. */

/* pos_att_type: "p2c|c2p", or a list. Where a term is named; NULL: it is not. */
static const char *names_term(const model_settings *s, const char *term)
{
    static const char *const paths[] = {"pos_att_type", "pos_att_type.0", "pos_att_type.1",
                                        "pos_att_type.2"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const json_value *found = model_setting_find(s, paths[i]);
        if (found != NULL && found->kind == LOCUS_JSON_STRING && strstr(found->text, term) != NULL)
            return paths[i];
    }
    return NULL;
}

/* Distances up to half of the buckets have rows of their own; a logarithm that has no room for more
 * is not asked for one. */
static void bound_distances(model_description *d)
{
    const int64_t half = d->options.buckets / 2;
    if (d->options.buckets == 0 || d->options.max_distance > half + 1) return;
    d->options.max_distance = half + 2;
    if (d->most_tokens == 0 || d->most_tokens > half + 1) d->most_tokens = half + 1;
}

static locus_status read_relative(const model_settings *s, model_description *d, locus_error *error)
{
    int relative;
    int64_t most, buckets;
    const char *norm;
    LOCUS_TRY(model_setting_flag(s, "relative_attention", 0, &relative, error));
    if (!relative) return model_setting_refuse(s, "relative_attention", "true", error);
    d->to_position = names_term(s, "c2p") != NULL;
    d->from_position = names_term(s, "p2c") != NULL;
    const char *refused = names_term(s, "p2p");
    if (refused != NULL || !(d->to_position || d->from_position))
        return model_setting_refuse(s, refused != NULL ? refused : "pos_att_type",
                                    "c2p, p2c or both", error);
    LOCUS_TRY(model_setting_integer(s, "max_relative_positions", -1, -1, 1 << 20, &most, error));
    if (most < 1)
        LOCUS_TRY(
            model_setting_integer(s, "max_position_embeddings", 512, 1, 1 << 20, &most, error));
    LOCUS_TRY(model_setting_integer(s, "position_buckets", -1, -1, 1 << 16, &buckets, error));
    LOCUS_TRY(model_setting_flag(s, "share_att_key", 0, &d->relative_shared, error));
    LOCUS_TRY(model_setting_text(s, "norm_rel_ebd", "none", &norm, error));
    d->relative_norm = strstr(norm, "layer_norm") != NULL;
    d->scheme = d->positions_name = "deberta";
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    d->options.buckets = buckets > 0 ? buckets : 0;
    d->options.span = buckets > 0 ? buckets : most;
    d->options.max_distance = most;
    d->relative_rows = 2 * d->options.span;
    bound_distances(d);
    return LOCUS_OK;
}

static locus_status read_convolution(const model_settings *s, model_description *d,
                                     locus_error *error)
{
    LOCUS_TRY(model_setting_integer(s, "conv_kernel_size", 0, 0, 255, &d->taps, error));
    LOCUS_TRY(model_setting_integer(s, "conv_groups", 1, 1, 4096, &d->groups, error));
    if (d->taps > 0 && d->taps % 2 == 0)
        return model_setting_refuse(s, "conv_kernel_size", "an odd number", error);
    if (d->width % d->groups != 0)
        return model_setting_refuse(s, "conv_groups", "a divisor of hidden_size", error);
    return model_read_activation(s, "conv_act", "tanh", &d->convolution_activation, error);
}

locus_status model_describe_deberta(const model_settings *s, model_description *d,
                                    locus_error *error)
{
    int at_input, legacy;
    int64_t same;
    LOCUS_TRY(model_read_bert_sizes(s, d, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_eps", 1e-7, &d->norm_epsilon, error));
    LOCUS_TRY(
        model_setting_integer(s, "attention_head_size", d->head_dim, 1, 1024, &d->head_dim, error));
    LOCUS_TRY(
        model_setting_integer(s, "embedding_size", d->width, d->width, d->width, &same, error));
    LOCUS_TRY(model_setting_integer(s, "type_vocab_size", 0, 0, 1 << 16, &d->types, error));
    LOCUS_TRY(model_setting_flag(s, "position_biased_input", 1, &at_input, error));
    if (at_input) {
        LOCUS_TRY(model_setting_integer(s, "max_position_embeddings", 512, 1, 1 << 20,
                                        &d->positions, error));
        d->most_tokens = d->positions;
    }
    LOCUS_TRY(model_setting_flag(s, "legacy", 1, &legacy, error));
    d->fill_tied = !legacy; /* lm_predictions has no table of its own */
    LOCUS_TRY(model_read_activation(s, "pooler_hidden_act", "gelu", &d->head_activation, error));
    return read_relative(s, d, error);
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_describe_deberta(s, d, error));
    return read_convolution(s, d, error);
}

static const char *const prefixes[] = {"deberta.", "", NULL};

static const model_name names[] = {
    {SLOT_WORD, "embeddings.word_embeddings.weight"},
    {SLOT_POSITION, "embeddings.position_embeddings.weight"},
    {SLOT_TYPE, "embeddings.token_type_embeddings.weight"},
    {SLOT_EMBEDDING_NORM_GAIN, "embeddings.LayerNorm.weight"},
    {SLOT_EMBEDDING_NORM_SHIFT, "embeddings.LayerNorm.bias"},
    {SLOT_RELATIVE, "encoder.rel_embeddings.weight"},
    {SLOT_RELATIVE_NORM_GAIN, "encoder.LayerNorm.weight"},
    {SLOT_RELATIVE_NORM_SHIFT, "encoder.LayerNorm.bias"},
    {SLOT_CONVOLUTION, "encoder.conv.conv.weight"},
    {SLOT_CONVOLUTION_BIAS, "encoder.conv.conv.bias"},
    {SLOT_CONVOLUTION_NORM_GAIN, "encoder.conv.LayerNorm.weight"},
    {SLOT_CONVOLUTION_NORM_SHIFT, "encoder.conv.LayerNorm.bias"},
    {SLOT_Q, "encoder.layer.#.attention.self.query_proj.weight"},
    {SLOT_Q_BIAS, "encoder.layer.#.attention.self.query_proj.bias"},
    {SLOT_K, "encoder.layer.#.attention.self.key_proj.weight"},
    {SLOT_K_BIAS, "encoder.layer.#.attention.self.key_proj.bias"},
    {SLOT_V, "encoder.layer.#.attention.self.value_proj.weight"},
    {SLOT_V_BIAS, "encoder.layer.#.attention.self.value_proj.bias"},
    {SLOT_RELATIVE_K, "encoder.layer.#.attention.self.pos_key_proj.weight"},
    {SLOT_RELATIVE_K_BIAS, "encoder.layer.#.attention.self.pos_key_proj.bias"},
    {SLOT_RELATIVE_Q, "encoder.layer.#.attention.self.pos_query_proj.weight"},
    {SLOT_RELATIVE_Q_BIAS, "encoder.layer.#.attention.self.pos_query_proj.bias"},
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

const model_family model_family_deberta_v2 = {
    .type = "deberta-v2",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

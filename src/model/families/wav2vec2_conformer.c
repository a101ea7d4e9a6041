/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "model/families/conformer.h"

/* wav2vec 2.0 on conformer blocks, from the features that its convolutions make: Transformer-XL's
 * terms on an interleaved sinusoid, or rotations of what q and k are made of; a batch norm behind the
 * convolution of a block. */

static locus_status read_positions(const model_settings *s, model_description *d,
                                   const char *preset, locus_error *error)
{
    static const char path[] = "position_embeddings_type";
    const char *kind;
    const json_value *found = model_setting_find(s, path);
    if (found == NULL) /* absent, or null */
        kind = preset;
    else
        LOCUS_TRY(model_setting_text(s, path, preset, &kind, error));
    d->scheme = "none";
    d->positions_name = kind;
    if (strcmp(kind, "rotary") == 0) {
        d->positions_name = "rope, before the maps";
        d->turned_input = 1;
        LOCUS_TRY(model_setting_real(s, "rotary_embedding_base", 10000.0, &d->rope.base, error));
        if (!(d->rope.base > 0.0))
            return model_setting_refuse(s, "rotary_embedding_base", "more than 0", error);
        return d->head_dim % 2 == 0 && d->head_dim <= 1024
                   ? LOCUS_OK
                   : model_setting_refuse(s, "num_attention_heads",
                                          "heads of an even width of at most 1024", error);
    }
    if (strcmp(kind, "relative") != 0 && strcmp(kind, "relative_key") != 0)
        return model_setting_refuse(s, path, "relative, relative_key or rotary", error);
    d->distances = strcmp(kind, "relative") == 0;
    d->scheme = d->positions_name = d->distances ? "transformer_xl" : "shaw";
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    d->options.table = LOCUS_TABLE_PAPER;
    if (d->distances) return LOCUS_OK;
    LOCUS_TRY(model_setting_integer(s, "left_max_position_embeddings", 64, 0, 1 << 20,
                                    &d->options.clip_left, error));
    LOCUS_TRY(model_setting_integer(s, "right_max_position_embeddings", 8, 0, 1 << 20,
                                    &d->options.clip_right, error));
    d->relative_rows = d->options.clip_left + d->options.clip_right + 1;
    return LOCUS_OK;
}

locus_status model_describe_conformer(const model_settings *s, model_description *d,
                                      const char *positions, locus_error *error)
{
    LOCUS_TRY(model_refuse_flag(s, "add_adapter", error));
    LOCUS_TRY(model_read_bert_sizes(s, d, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_eps", 1e-5, &d->norm_epsilon, error));
    LOCUS_TRY(
        model_setting_integer(s, "conv_depthwise_kernel_size", 31, 1, 4095, &d->depth_taps, error));
    if (d->depth_taps % 2 == 0)
        return model_setting_refuse(s, "conv_depthwise_kernel_size", "an odd number", error);
    d->vocabulary = 0;
    d->conformer = d->always_mapped = 1;
    return read_positions(s, d, positions, error);
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_describe_conformer(s, d, "relative", error));
    d->features = 512;
    for (int i = 0; i < 64; i++) { /* the last of the list */
        char path[32];
        snprintf(path, sizeof path, "conv_dim.%d", i);
        if (model_setting_find(s, path) == NULL) break;
        LOCUS_TRY(model_setting_integer(s, path, 512, 1, 65536, &d->features, error));
    }
    d->embedding_width = d->features;
    d->outer_epsilon = d->norm_epsilon;
    d->norm_epsilon = 1e-5;
    d->final_norm = d->depth_batch_norm = 1;
    d->depth_before = (d->depth_taps - 1) / 2;
    return LOCUS_OK;
}

#define LAYER "encoder.layers.#."

const model_name model_conformer_names[] = {
    {SLOT_EMBEDDING_NORM_GAIN, "feature_projection.layer_norm.weight"},
    {SLOT_EMBEDDING_NORM_SHIFT, "feature_projection.layer_norm.bias"},
    {SLOT_EMBEDDING_MAP, "feature_projection.projection.weight"},
    {SLOT_EMBEDDING_MAP_BIAS, "feature_projection.projection.bias"},
    {SLOT_FIRST_NORM_GAIN, LAYER "ffn1_layer_norm.weight"},
    {SLOT_FIRST_NORM_SHIFT, LAYER "ffn1_layer_norm.bias"},
    {SLOT_FIRST_IN, LAYER "ffn1.intermediate_dense.weight"},
    {SLOT_FIRST_IN_BIAS, LAYER "ffn1.intermediate_dense.bias"},
    {SLOT_FIRST_OUT, LAYER "ffn1.output_dense.weight"},
    {SLOT_FIRST_OUT_BIAS, LAYER "ffn1.output_dense.bias"},
    {SLOT_ATTENTION_NORM_GAIN, LAYER "self_attn_layer_norm.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, LAYER "self_attn_layer_norm.bias"},
    {SLOT_Q, LAYER "self_attn.linear_q.weight"},
    {SLOT_Q_BIAS, LAYER "self_attn.linear_q.bias"},
    {SLOT_K, LAYER "self_attn.linear_k.weight"},
    {SLOT_K_BIAS, LAYER "self_attn.linear_k.bias"},
    {SLOT_V, LAYER "self_attn.linear_v.weight"},
    {SLOT_V_BIAS, LAYER "self_attn.linear_v.bias"},
    {SLOT_O, LAYER "self_attn.linear_out.weight"},
    {SLOT_O_BIAS, LAYER "self_attn.linear_out.bias"},
    {SLOT_DISTANCE, LAYER "self_attn.distance_embedding.weight"},
    {SLOT_RELATIVE_K, LAYER "self_attn.linear_pos.weight"},
    {SLOT_CONTENT_BIAS, LAYER "self_attn.pos_bias_u"},
    {SLOT_POSITION_BIAS, LAYER "self_attn.pos_bias_v"},
    {SLOT_GLU_NORM_GAIN, LAYER "conv_module.layer_norm.weight"},
    {SLOT_GLU_NORM_SHIFT, LAYER "conv_module.layer_norm.bias"},
    {SLOT_GLU, LAYER "conv_module.pointwise_conv1.weight"},
    {SLOT_DEPTH, LAYER "conv_module.depthwise_conv.weight"},
    {SLOT_DEPTH_NORM_GAIN, LAYER "conv_module.batch_norm.weight"},
    {SLOT_DEPTH_NORM_GAIN, LAYER "conv_module.depthwise_layer_norm.weight"},
    {SLOT_DEPTH_NORM_SHIFT, LAYER "conv_module.batch_norm.bias"},
    {SLOT_DEPTH_NORM_SHIFT, LAYER "conv_module.depthwise_layer_norm.bias"},
    {SLOT_DEPTH_MEAN, LAYER "conv_module.batch_norm.running_mean"},
    {SLOT_DEPTH_VARIANCE, LAYER "conv_module.batch_norm.running_var"},
    {SLOT_DEPTH_OUT, LAYER "conv_module.pointwise_conv2.weight"},
    {SLOT_FORWARD_NORM_GAIN, LAYER "ffn2_layer_norm.weight"},
    {SLOT_FORWARD_NORM_SHIFT, LAYER "ffn2_layer_norm.bias"},
    {SLOT_IN, LAYER "ffn2.intermediate_dense.weight"},
    {SLOT_IN_BIAS, LAYER "ffn2.intermediate_dense.bias"},
    {SLOT_OUT, LAYER "ffn2.output_dense.weight"},
    {SLOT_OUT_BIAS, LAYER "ffn2.output_dense.bias"},
    {SLOT_LAST_NORM_GAIN, LAYER "final_layer_norm.weight"},
    {SLOT_LAST_NORM_SHIFT, LAYER "final_layer_norm.bias"},
    {SLOT_FINAL_NORM_GAIN, "encoder.layer_norm.weight"},
    {SLOT_FINAL_NORM_SHIFT, "encoder.layer_norm.bias"},
    {SLOT_COUNT, NULL},
};

static const char *const prefixes[] = {"wav2vec2_conformer.", "", NULL};

const model_family model_family_wav2vec2_conformer = {
    .type = "wav2vec2-conformer",
    .prefixes = prefixes,
    .names = model_conformer_names,
    .describe = describe,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "core/error.h"
#include "model/description.h"

/* Transformer-XL: a decoder with a memory, whose positions are sinusoids of the distance, projected in
 * every layer; rare words have narrower rows. Without a memory it sees zeros, as transformers has it. */

static locus_status read_clusters(const model_settings *s, model_description *d, int64_t narrower,
                                  locus_error *error)
{
    int64_t first = 0, width = d->embedding_width;
    for (d->clusters = 0; d->clusters < MODEL_CLUSTERS - 1; first = d->cluster_end[d->clusters++]) {
        char path[24];
        snprintf(path, sizeof path, "cutoffs.%d", (int)d->clusters);
        if (narrower == 1 || model_setting_find(s, path) == NULL) break;
        LOCUS_TRY(model_setting_integer(s, path, -1, first + 1, d->vocabulary - 1,
                                        &d->cluster_end[d->clusters], error));
        d->cluster_width[d->clusters] = width;
        width /= narrower;
        if (width == 0) return model_setting_refuse(s, "div_val", "rows of some width", error);
    }
    if (d->clusters == MODEL_CLUSTERS - 1 && model_setting_find(s, "cutoffs.7") != NULL)
        return model_setting_refuse(s, "cutoffs.7", "at most 7 cutoffs", error);
    d->cluster_width[d->clusters] = width;
    d->cluster_end[d->clusters++] = d->vocabulary;
    d->embedding_width = d->width;
    return LOCUS_OK;
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    int64_t kind, narrower;
    LOCUS_TRY(model_refuse_flag(s, "pre_lnorm", error));
    LOCUS_TRY(model_setting_integer(s, "attn_type", 0, 0, 0, &kind, error));
    LOCUS_TRY(model_setting_integer(s, "d_model", 1024, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "n_layer", 18, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "n_head", 16, 1, 1024, &d->heads, error));
    LOCUS_TRY(model_setting_integer(s, "d_head", 64, 1, 1024, &d->head_dim, error));
    LOCUS_TRY(model_setting_integer(s, "d_inner", 4096, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "d_embed", 1024, 1, 65536, &d->embedding_width, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 267735, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_integer(s, "div_val", 4, 1, 64, &narrower, error));
    LOCUS_TRY(model_setting_integer(s, "mem_len", 1600, 0, 1 << 20, &d->memory, error));
    LOCUS_TRY(model_setting_flag(s, "same_length", 1, &d->same_length, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_epsilon", 1e-5, &d->norm_epsilon, error));
    if (d->same_length && d->memory == 0)
        return model_setting_refuse(s, "mem_len", "more than 0 with same_length", error);
    d->activation = LOCUS_RELU;
    d->embedding_factor = sqrt((double)d->width);
    d->norm_centred = d->biases = d->attention_unbiased = d->fused_parts = d->causal = 1;
    d->padding = -1;
    d->distances = 1;
    d->scheme = d->positions_name = "transformer_xl";
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    d->options.table = LOCUS_TABLE_HALF;
    LOCUS_TRY(model_setting_integer(s, "clamp_len", 1000, -1, 1 << 20, &d->options.clamp, error));
    if (d->options.clamp < 0) d->options.clamp = 0;
    return read_clusters(s, d, narrower, error);
}

static const char *const prefixes[] = {"transformer.", "", NULL};

static const model_name names[] = {
    {SLOT_WORD, "word_emb.emb_layers.#.weight"},
    {SLOT_EMBEDDING_MAP, "word_emb.emb_projs.#"},
    {SLOT_FUSED_QKV, "layers.#.dec_attn.qkv_net.weight"},
    {SLOT_O, "layers.#.dec_attn.o_net.weight"},
    {SLOT_RELATIVE_K, "layers.#.dec_attn.r_net.weight"},
    {SLOT_CONTENT_BIAS, "layers.#.dec_attn.r_w_bias"},
    {SLOT_CONTENT_BIAS, "layers.0.dec_attn.r_w_bias"},
    {SLOT_CONTENT_BIAS, "r_w_bias"},
    {SLOT_POSITION_BIAS, "layers.#.dec_attn.r_r_bias"},
    {SLOT_POSITION_BIAS, "layers.0.dec_attn.r_r_bias"},
    {SLOT_POSITION_BIAS, "r_r_bias"},
    {SLOT_ATTENTION_NORM_GAIN, "layers.#.dec_attn.layer_norm.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, "layers.#.dec_attn.layer_norm.bias"},
    {SLOT_IN, "layers.#.pos_ff.CoreNet.0.weight"},
    {SLOT_IN_BIAS, "layers.#.pos_ff.CoreNet.0.bias"},
    {SLOT_OUT, "layers.#.pos_ff.CoreNet.3.weight"},
    {SLOT_OUT_BIAS, "layers.#.pos_ff.CoreNet.3.bias"},
    {SLOT_FORWARD_NORM_GAIN, "layers.#.pos_ff.layer_norm.weight"},
    {SLOT_FORWARD_NORM_SHIFT, "layers.#.pos_ff.layer_norm.bias"},
    {SLOT_COUNT, NULL},
};

const model_family model_family_transfo_xl = {
    .type = "transfo-xl",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

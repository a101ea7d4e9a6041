/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "model/description.h"

/* XLNet: Transformer-XL's terms in both directions, and one for tokens of two segments; maps of
 * attention without biases, stored [width, heads, columns]. */

/* What a head of labels is given: tanh of a map of the last token. */
static locus_status check_summary(const model_settings *s, locus_error *error)
{
    const char *text;
    int mapped;
    LOCUS_TRY(model_setting_text(s, "summary_type", "last", &text, error));
    if (strcmp(text, "last") != 0) return model_setting_refuse(s, "summary_type", "last", error);
    LOCUS_TRY(model_setting_text(s, "summary_activation", "tanh", &text, error));
    if (strcmp(text, "tanh") != 0)
        return model_setting_refuse(s, "summary_activation", "tanh", error);
    LOCUS_TRY(model_setting_flag(s, "summary_use_proj", 1, &mapped, error));
    return mapped ? LOCUS_OK : model_setting_refuse(s, "summary_use_proj", "true", error);
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    const char *kind;
    LOCUS_TRY(model_refuse_flag(s, "bi_data", error));
    LOCUS_TRY(model_refuse_flag(s, "same_length", error));
    LOCUS_TRY(model_setting_text(s, "attn_type", "bi", &kind, error));
    if (strcmp(kind, "bi") != 0) return model_setting_refuse(s, "attn_type", "bi", error);
    LOCUS_TRY(model_setting_integer(s, "d_model", 1024, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "n_layer", 24, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "n_head", 16, 1, 1024, &d->heads, error));
    LOCUS_TRY(model_setting_integer(s, "d_inner", 4096, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 32000, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_eps", 1e-12, &d->norm_epsilon, error));
    LOCUS_TRY(model_read_activation(s, "ff_activation", "gelu", &d->activation, error));
    if (d->width % d->heads != 0)
        return model_setting_refuse(s, "n_head", "a divisor of d_model", error);
    d->head_dim = d->width / d->heads;
    d->embedding_width = d->width;
    d->norm_centred = d->biases = d->attention_unbiased = d->head_tensors = 1;
    d->padding = -1;
    d->head_last = 1;
    d->head_activation = LOCUS_TANH;
    LOCUS_TRY(check_summary(s, error));
    d->distances = d->segments = d->fill_plain = 1;
    d->types = 3; /* two segments and that of <cls>; there is no table of them */
    d->scheme = d->positions_name = "transformer_xl";
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    d->options.table = LOCUS_TABLE_HALF;
    LOCUS_TRY(model_setting_integer(s, "clamp_len", -1, -1, 1 << 20, &d->options.clamp, error));
    if (d->options.clamp < 0) d->options.clamp = 0;
    return LOCUS_OK;
}

static const char *const prefixes[] = {"transformer.", "", NULL};

static const model_name names[] = {
    {SLOT_WORD, "word_embedding.weight"},
    {SLOT_Q, "layer.#.rel_attn.q"},
    {SLOT_K, "layer.#.rel_attn.k"},
    {SLOT_V, "layer.#.rel_attn.v"},
    {SLOT_O, "layer.#.rel_attn.o"},
    {SLOT_RELATIVE_K, "layer.#.rel_attn.r"},
    {SLOT_CONTENT_BIAS, "layer.#.rel_attn.r_w_bias"},
    {SLOT_POSITION_BIAS, "layer.#.rel_attn.r_r_bias"},
    {SLOT_SEGMENT_BIAS, "layer.#.rel_attn.r_s_bias"},
    {SLOT_SEGMENT, "layer.#.rel_attn.seg_embed"},
    {SLOT_ATTENTION_NORM_GAIN, "layer.#.rel_attn.layer_norm.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, "layer.#.rel_attn.layer_norm.bias"},
    {SLOT_IN, "layer.#.ff.layer_1.weight"},
    {SLOT_IN_BIAS, "layer.#.ff.layer_1.bias"},
    {SLOT_OUT, "layer.#.ff.layer_2.weight"},
    {SLOT_OUT_BIAS, "layer.#.ff.layer_2.bias"},
    {SLOT_FORWARD_NORM_GAIN, "layer.#.ff.layer_norm.weight"},
    {SLOT_FORWARD_NORM_SHIFT, "layer.#.ff.layer_norm.bias"},
    {SLOT_HEAD_MAP, "sequence_summary.summary.weight"},
    {SLOT_HEAD_MAP_BIAS, "sequence_summary.summary.bias"},
    {SLOT_HEAD_OUT, "logits_proj.weight"},
    {SLOT_HEAD_OUT_BIAS, "logits_proj.bias"},
    {SLOT_FILL_OUT, "lm_loss.weight"},
    {SLOT_FILL_OUT_BIAS, "lm_loss.bias"},
    {SLOT_COUNT, NULL},
};

const model_family model_family_xlnet = {
    .type = "xlnet",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/error.h"
#include "model/description.h"

/* The text encoder of VITS: relative keys and values of Shaw's kind within a window, with nothing
 * beyond it; feed-forward maps that see the tokens beside each one; means of the prior at its end. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    int biases;
    int64_t flow;
    LOCUS_TRY(model_setting_integer(s, "hidden_size", 192, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "num_hidden_layers", 6, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "num_attention_heads", 2, 1, 1024, &d->heads, error));
    LOCUS_TRY(model_setting_integer(s, "ffn_dim", 768, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "ffn_kernel_size", 3, 1, 255, &d->forward_taps, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 38, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_integer(s, "window_size", 4, 1, 1 << 16, &d->window, error));
    LOCUS_TRY(model_setting_integer(s, "flow_size", 192, 1, 65536, &flow, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_eps", 1e-5, &d->norm_epsilon, error));
    LOCUS_TRY(model_read_activation(s, "hidden_act", "relu", &d->activation, error));
    LOCUS_TRY(model_setting_flag(s, "use_bias", 1, &biases, error));
    if (d->width % d->heads != 0)
        return model_setting_refuse(s, "num_attention_heads", "a divisor of hidden_size", error);
    d->head_dim = d->width / d->heads;
    d->embedding_width = d->width;
    d->embedding_factor = sqrt((double)d->width);
    d->norm_centred = d->biases = 1;
    d->attention_unbiased = !biases;
    d->padding = -1;
    d->relative_rows = 2 * d->window + 1;
    d->head = LOCUS_MODEL_PRIOR;
    d->labels = 2 * flow;
    d->scheme = "table";
    d->positions_name = "shaw, within a window";
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    d->options.delta_min = -(d->window + 1);
    d->options.clamp = 1;
    return LOCUS_OK;
}

static const char *const prefixes[] = {"text_encoder.", NULL};

static const model_name names[] = {
    {SLOT_WORD, "embed_tokens.weight"},
    {SLOT_Q, "encoder.layers.#.attention.q_proj.weight"},
    {SLOT_Q_BIAS, "encoder.layers.#.attention.q_proj.bias"},
    {SLOT_K, "encoder.layers.#.attention.k_proj.weight"},
    {SLOT_K_BIAS, "encoder.layers.#.attention.k_proj.bias"},
    {SLOT_V, "encoder.layers.#.attention.v_proj.weight"},
    {SLOT_V_BIAS, "encoder.layers.#.attention.v_proj.bias"},
    {SLOT_DISTANCE, "encoder.layers.#.attention.emb_rel_k"},
    {SLOT_DISTANCE_VALUE, "encoder.layers.#.attention.emb_rel_v"},
    {SLOT_O, "encoder.layers.#.attention.out_proj.weight"},
    {SLOT_O_BIAS, "encoder.layers.#.attention.out_proj.bias"},
    {SLOT_ATTENTION_NORM_GAIN, "encoder.layers.#.layer_norm.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, "encoder.layers.#.layer_norm.bias"},
    {SLOT_IN, "encoder.layers.#.feed_forward.conv_1.weight"},
    {SLOT_IN_BIAS, "encoder.layers.#.feed_forward.conv_1.bias"},
    {SLOT_OUT, "encoder.layers.#.feed_forward.conv_2.weight"},
    {SLOT_OUT_BIAS, "encoder.layers.#.feed_forward.conv_2.bias"},
    {SLOT_FORWARD_NORM_GAIN, "encoder.layers.#.final_layer_norm.weight"},
    {SLOT_FORWARD_NORM_SHIFT, "encoder.layers.#.final_layer_norm.bias"},
    {SLOT_HEAD_OUT, "project.weight"},
    {SLOT_HEAD_OUT_BIAS, "project.bias"},
    {SLOT_COUNT, NULL},
};

const model_family model_family_vits = {
    .type = "vits",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

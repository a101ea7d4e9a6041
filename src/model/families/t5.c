/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families/t5.h"

#include <string.h>

#include "core/error.h"

/* T5 (v1.0, v1.1, FLAN, ByT5): RMSNorm before each sublayer, no biases in the maps, unscaled products,
 * buckets of distances as a bias, one table for all layers. */

const model_name model_t5_names[] = {
    {SLOT_WORD, "shared.weight"},
    {SLOT_WORD, "encoder.embed_tokens.weight"},
    {SLOT_BIAS, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
    {SLOT_LAYER_BIAS, "encoder.block.#.layer.0.SelfAttention.relative_attention_bias.weight"},
    {SLOT_Q, "encoder.block.#.layer.0.SelfAttention.q.weight"},
    {SLOT_K, "encoder.block.#.layer.0.SelfAttention.k.weight"},
    {SLOT_V, "encoder.block.#.layer.0.SelfAttention.v.weight"},
    {SLOT_O, "encoder.block.#.layer.0.SelfAttention.o.weight"},
    {SLOT_ATTENTION_NORM_GAIN, "encoder.block.#.layer.0.layer_norm.weight"},
    {SLOT_IN, "encoder.block.#.layer.1.DenseReluDense.wi.weight"},
    {SLOT_IN, "encoder.block.#.layer.1.DenseReluDense.wi_0.weight"},
    {SLOT_GATE, "encoder.block.#.layer.1.DenseReluDense.wi_1.weight"},
    {SLOT_OUT, "encoder.block.#.layer.1.DenseReluDense.wo.weight"},
    {SLOT_FORWARD_NORM_GAIN, "encoder.block.#.layer.1.layer_norm.weight"},
    {SLOT_FINAL_NORM_GAIN, "encoder.final_layer_norm.weight"},
    {SLOT_COUNT, NULL},
};

static const model_name decoder_names[] = {
    {SLOT_WORD, "shared.weight"},
    {SLOT_WORD, "decoder.embed_tokens.weight"},
    {SLOT_BIAS, "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
    {SLOT_LAYER_BIAS, "decoder.block.#.layer.0.SelfAttention.relative_attention_bias.weight"},
    {SLOT_Q, "decoder.block.#.layer.0.SelfAttention.q.weight"},
    {SLOT_K, "decoder.block.#.layer.0.SelfAttention.k.weight"},
    {SLOT_V, "decoder.block.#.layer.0.SelfAttention.v.weight"},
    {SLOT_O, "decoder.block.#.layer.0.SelfAttention.o.weight"},
    {SLOT_ATTENTION_NORM_GAIN, "decoder.block.#.layer.0.layer_norm.weight"},
    {SLOT_CROSS_Q, "decoder.block.#.layer.1.EncDecAttention.q.weight"},
    {SLOT_CROSS_K, "decoder.block.#.layer.1.EncDecAttention.k.weight"},
    {SLOT_CROSS_V, "decoder.block.#.layer.1.EncDecAttention.v.weight"},
    {SLOT_CROSS_O, "decoder.block.#.layer.1.EncDecAttention.o.weight"},
    {SLOT_CROSS_NORM_GAIN, "decoder.block.#.layer.1.layer_norm.weight"},
    {SLOT_IN, "decoder.block.#.layer.2.DenseReluDense.wi.weight"},
    {SLOT_IN, "decoder.block.#.layer.2.DenseReluDense.wi_0.weight"},
    {SLOT_GATE, "decoder.block.#.layer.2.DenseReluDense.wi_1.weight"},
    {SLOT_OUT, "decoder.block.#.layer.2.DenseReluDense.wo.weight"},
    {SLOT_FORWARD_NORM_GAIN, "decoder.block.#.layer.2.layer_norm.weight"},
    {SLOT_FINAL_NORM_GAIN, "decoder.final_layer_norm.weight"},
    {SLOT_LOGITS, "lm_head.weight"},
    {SLOT_COUNT, NULL},
};

const char *const model_t5_prefixes[] = {"", "transformer.", NULL};

/* "relu", "gelu", "gated-gelu" (which means the tanh form), "gated-silu". */
static locus_status read_projection(const model_settings *s, const char *preset,
                                    model_description *d, locus_error *error)
{
    static const struct {
        const char *name;
        locus_activation activation;
        int gated;
    } known[] = {{"relu", LOCUS_RELU, 0},
                 {"gelu", LOCUS_GELU, 0},
                 {"gated-gelu", LOCUS_GELU_TANH, 1},
                 {"gated-silu", LOCUS_SILU, 1},
                 {"gated-relu", LOCUS_RELU, 1}};
    const char *name;
    LOCUS_TRY(model_setting_text(s, "feed_forward_proj", preset, &name, error));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) {
            d->activation = known[i].activation;
            d->gated = known[i].gated;
            return LOCUS_OK;
        }
    return model_setting_refuse(s, "feed_forward_proj",
                                "relu, gelu, gated-gelu, gated-silu or gated-relu", error);
}

/* feed_forward_proj says both; is_gated_act and dense_act_fn, where they are there, win. */
static locus_status read_feed_forward(const model_settings *s, const char *preset,
                                      model_description *d, locus_error *error)
{
    LOCUS_TRY(read_projection(s, preset, d, error));
    LOCUS_TRY(model_setting_flag(s, "is_gated_act", d->gated, &d->gated, error));
    return model_setting_find(s, "dense_act_fn") == NULL
               ? LOCUS_OK
               : model_read_activation(s, "dense_act_fn", NULL, &d->activation, error);
}

locus_status model_describe_t5(const model_settings *s, int64_t vocabulary,
                               const char *feed_forward, model_description *d, locus_error *error)
{
    int64_t buckets, distance;
    LOCUS_TRY(model_setting_integer(s, "d_model", 512, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "d_kv", 64, 1, 1024, &d->head_dim, error));
    LOCUS_TRY(model_setting_integer(s, "d_ff", 2048, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "num_layers", 6, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "num_heads", 8, 1, 1024, &d->heads, error));
    LOCUS_TRY(
        model_setting_integer(s, "vocab_size", vocabulary, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_epsilon", 1e-6, &d->norm_epsilon, error));
    LOCUS_TRY(
        model_setting_integer(s, "relative_attention_num_buckets", 32, 4, 4096, &buckets, error));
    LOCUS_TRY(model_setting_integer(s, "relative_attention_max_distance", 128, 1, 1 << 20,
                                    &distance, error));
    LOCUS_TRY(read_feed_forward(s, feed_forward, d, error));
    d->embedding_width = d->width;
    d->padding = -1;
    d->norm_first = d->final_norm = 1;
    d->bias_rows = buckets;
    d->scheme = d->positions_name = "t5";
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    d->options.buckets = buckets;
    d->options.max_distance = distance;
    d->options.bidirectional = 1;
    return LOCUS_OK;
}

/* What is different from the encoder. */
static locus_status describe_decoder(const model_settings *s, model_description *d,
                                     locus_error *error)
{
    int tied;
    LOCUS_TRY(model_setting_flag(s, "tie_word_embeddings", 1, &tied, error));
    LOCUS_TRY(
        model_setting_integer(s, "num_decoder_layers", d->layers, 1, 1024, &d->layers, error));
    d->cross = d->cross_unscaled = d->shared_words = 1;
    d->options.bidirectional = 0;
    d->logits_scaled = tied;
    model_set_decoder(d, tied);
    return LOCUS_OK;
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    return model_describe_t5(s, 32128, "relu", d, error);
}

const model_family model_t5_decoder = {
    .type = "t5",
    .prefixes = model_t5_prefixes,
    .names = decoder_names,
    .describe = describe_decoder,
};

static const model_ids ids = {.start = -1, .begin = -1, .end = 1, .forced_end = -1};

const model_family model_family_t5 = {
    .type = "t5",
    .prefixes = model_t5_prefixes,
    .names = model_t5_names,
    .describe = describe,
    .ids = &ids,
    .decoder = &model_t5_decoder,
};

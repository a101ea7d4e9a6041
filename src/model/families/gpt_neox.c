/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/fused.h"

/* GPT-NeoX and Pythia: q, k and v in one tensor head by head, the first columns of each head turn, attention
 * and feed-forward side by side: h + attention(norm(h)) + map(norm(h)). */

typedef struct neox {
    int parallel; /* 0: one behind the other           */
    int biased;   /* 1: maps of attention have biases  */
} neox;

static const model_name names[] = {
    {SLOT_WORD, "embed_in.weight"},
    {SLOT_FINAL_NORM_GAIN, "final_layer_norm.weight"},
    {SLOT_FINAL_NORM_SHIFT, "final_layer_norm.bias"},
    {SLOT_LOGITS, "embed_out.weight"},
    {SLOT_COUNT, NULL},
};

static const char *const prefixes[] = {"gpt_neox.", "", NULL};

static locus_status read_turned(const model_settings *s, model_description *d, locus_error *error)
{
    int64_t head_dim; /* of the frequencies alone, in transformers */
    LOCUS_TRY(model_setting_integer(s, "head_dim", d->head_dim, 1, 1024, &head_dim, error));
    if (head_dim != d->head_dim)
        return model_setting_refuse(s, "head_dim", "hidden_size / num_attention_heads", error);
    LOCUS_TRY(model_setting_real(s, "rotary_emb_base", 10000.0, &d->rope.base, error));
    if (!(d->rope.base > 0.0))
        return model_setting_refuse(s, "rotary_emb_base", "more than 0", error);
    return model_read_turned(s, "rotary_pct", 0.25, d, error);
}

static locus_status read_flags(const model_settings *s, model_description *d, locus_error *error)
{
    void *taken;
    int tied;
    LOCUS_TRY(model_take_own(d, sizeof(neox), &taken, error));
    neox *own = taken;
    LOCUS_TRY(model_setting_flag(s, "use_parallel_residual", 1, &own->parallel, error));
    LOCUS_TRY(model_setting_flag(s, "attention_bias", 1, &own->biased, error));
    LOCUS_TRY(model_setting_flag(s, "tie_word_embeddings", 0, &tied, error));
    model_set_decoder(d, tied);
    return LOCUS_OK;
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    int64_t trained;
    LOCUS_TRY(model_setting_integer(s, "hidden_size", 6144, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "num_hidden_layers", 44, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "num_attention_heads", 64, 1, 1024, &d->heads, error));
    LOCUS_TRY(
        model_setting_integer(s, "intermediate_size", 24576, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 50432, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(
        model_setting_integer(s, "max_position_embeddings", 2048, 1, 1 << 30, &trained, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_eps", 1e-5, &d->norm_epsilon, error));
    LOCUS_TRY(model_read_activation(s, "hidden_act", "gelu", &d->activation, error));
    LOCUS_TRY(model_split_heads(s, "num_attention_heads", d, error));
    LOCUS_TRY(read_flags(s, d, error));
    LOCUS_TRY(read_turned(s, d, error));
    d->kv_heads = d->heads;
    d->norm_centred = d->final_norm = 1;
    LOCUS_TRY(model_read_rope(s, trained, d, error));
    if (d->rope.gain > 0.0 && d->rope.gain != 1.0 && d->rope.turned < d->head_dim)
        return model_setting_refuse(s, "rope_scaling.attention_factor",
                                    "1 where a part of each head turns", error);
    return LOCUS_OK;
}

static value block(builder *b, value h, int64_t l)
{
    const model_description *d = b->d;
    const neox *own = d->own;
    value x = norm_named(b, h, "layers.#.input_layernorm", l);
    x = fused_qkv(b, x, "layers.#.attention.query_key_value", l, own->biased);
    x = rows_wanted(b, attend_made(b, x, b->self, b->turns, l), l);
    h = rows_wanted(b, h, l);
    const value sum = map_named(b, x, "layers.#.attention.dense", l, d->width, own->biased,
                                LOCUS_IDENTITY, NONE, h);
    x = norm_named(b, own->parallel ? h : sum, "layers.#.post_attention_layernorm", l);
    x = map_named(b, x, "layers.#.mlp.dense_h_to_4h", l, d->feed_forward, 1, d->activation, NONE,
                  NONE);
    return map_named(b, x, "layers.#.mlp.dense_4h_to_h", l, d->width, 1, LOCUS_IDENTITY, NONE, sum);
}

static const model_wiring wiring = {.block = block};

const model_family model_family_gpt_neox = {
    .type = "gpt_neox",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
    .wiring = &wiring,
};

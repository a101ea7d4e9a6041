/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/fused.h"

/* Falcon: q, k and v in one tensor by groups that share k and v; attention and feed-forward side by side
 * behind one norm or two, or one behind the other. */

typedef struct falcon {
    int parallel; /* 0: one behind the other */
    int two;      /* 1: side by side, each with a norm of its own */
    int biased;
} falcon;

static const model_name names[] = {
    {SLOT_WORD, "word_embeddings.weight"},
    {SLOT_FINAL_NORM_GAIN, "ln_f.weight"},
    {SLOT_FINAL_NORM_SHIFT, "ln_f.bias"},
    {SLOT_LOGITS, "lm_head.weight"},
    {SLOT_COUNT, NULL},
};

static const char *const prefixes[] = {"transformer.", "", NULL};

/* The newer form has groups of heads; the older one head of k and v, or as many as of q. */
static locus_status read_groups(const model_settings *s, model_description *d, falcon *own,
                                locus_error *error)
{
    const char *norms = "num_ln_in_parallel_attn";
    int64_t count;
    int newer, one;
    LOCUS_TRY(model_setting_flag(s, "new_decoder_architecture", 0, &newer, error));
    LOCUS_TRY(model_setting_flag(s, "multi_query", 1, &one, error));
    LOCUS_TRY(model_setting_flag(s, "parallel_attn", 1, &own->parallel, error));
    LOCUS_TRY(model_setting_integer(s, norms, newer ? 2 : 1, 1, newer ? 2 : 1, &count, error));
    if (newer && !own->parallel) return model_setting_refuse(s, "parallel_attn", "true", error);
    own->two = count == 2;
    d->kv_heads = one && !newer ? 1 : d->heads;
    if (!newer) return LOCUS_OK;
    LOCUS_TRY(model_setting_integer(s, "num_kv_heads", d->heads, 1, d->heads, &d->kv_heads, error));
    return d->heads % d->kv_heads == 0
               ? LOCUS_OK
               : model_setting_refuse(s, "num_kv_heads", "a divisor of num_attention_heads", error);
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    int64_t trained;
    void *taken;
    int tied;
    LOCUS_TRY(model_setting_integer(s, "hidden_size", 4544, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "num_hidden_layers", 32, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "num_attention_heads", 71, 1, 1024, &d->heads, error));
    LOCUS_TRY(model_setting_integer(s, "ffn_hidden_size", 4 * d->width, 1, 1 << 20,
                                    &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 65024, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(
        model_setting_integer(s, "max_position_embeddings", 2048, 1, 1 << 30, &trained, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_epsilon", 1e-5, &d->norm_epsilon, error));
    LOCUS_TRY(model_read_activation(s, "activation", "gelu", &d->activation, error));
    LOCUS_TRY(model_setting_flag(s, "tie_word_embeddings", 1, &tied, error));
    LOCUS_TRY(model_refuse_flag(s, "alibi", error)); /* whose biases are rounded to bfloat16 */
    LOCUS_TRY(model_split_heads(s, "num_attention_heads", d, error));
    LOCUS_TRY(model_take_own(d, sizeof(falcon), &taken, error));
    falcon *own = taken;
    LOCUS_TRY(model_setting_flag(s, "bias", 0, &own->biased, error));
    LOCUS_TRY(read_groups(s, d, own, error));
    d->norm_centred = d->final_norm = 1;
    model_set_decoder(d, tied);
    return model_read_rope(s, trained, d, error);
}

static value block(builder *b, value h, int64_t l)
{
    const model_description *d = b->d;
    const falcon *own = d->own;
    const char *first = own->two ? "h.#.ln_attn" : "h.#.input_layernorm";
    const value x = norm_named(b, h, first, l);
    value y = fused_qkv(b, x, "h.#.self_attention.query_key_value", l, own->biased);
    y = rows_wanted(b, attend_made(b, y, b->self, b->turns, l), l);
    h = rows_wanted(b, h, l);
    const value sum = map_named(b, y, "h.#.self_attention.dense", l, d->width, own->biased,
                                LOCUS_IDENTITY, NONE, h);
    y = !own->parallel ? norm_named(b, sum, "h.#.post_attention_layernorm", l)
        : own->two     ? norm_named(b, h, "h.#.ln_mlp", l)
                       : rows_wanted(b, x, l);
    y = map_named(b, y, "h.#.mlp.dense_h_to_4h", l, d->feed_forward, own->biased, d->activation,
                  NONE, NONE);
    return map_named(b, y, "h.#.mlp.dense_4h_to_h", l, d->width, own->biased, LOCUS_IDENTITY, NONE,
                     sum);
}

static const model_wiring wiring = {.block = block};

const model_family model_family_falcon = {
    .type = "falcon",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
    .wiring = &wiring,
};

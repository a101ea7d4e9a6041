/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/blocks.h"

/* GPT-J: the first columns of each head turn, neighbours in pairs; attention and feed-forward side by side
 * behind one norm: h + attention(norm(h)) + map(norm(h)); logits with a bias. */

static const model_name names[] = {
    {SLOT_WORD, "wte.weight"},
    {SLOT_FINAL_NORM_GAIN, "ln_f.weight"},
    {SLOT_FINAL_NORM_SHIFT, "ln_f.bias"},
    {SLOT_LOGITS, "lm_head.weight"},
    {SLOT_COUNT, NULL},
};

static const char *const prefixes[] = {"transformer.", "", NULL};

static locus_status read_turned(const model_settings *s, model_description *d, locus_error *error)
{
    const int64_t preset = model_setting_there(s, "rotary_dim") ? 0 : 64;
    LOCUS_TRY(
        model_setting_integer(s, "rotary_dim", preset, 2, d->head_dim, &d->rope.turned, error));
    if (d->rope.turned % 2 != 0)
        return model_setting_refuse(s, "rotary_dim", "an even number", error);
    d->rope.base = 10000.0;
    d->scheme = d->positions_name = "rope";
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    d->options.pairing = LOCUS_PAIRING_INTERLEAVED;
    d->options.width = d->rope.turned;
    return LOCUS_OK;
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    int tied;
    LOCUS_TRY(model_setting_integer(s, "n_embd", 4096, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "n_layer", 28, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "n_head", 16, 1, 1024, &d->heads, error));
    LOCUS_TRY(
        model_setting_integer(s, "n_inner", 4 * d->width, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 50400, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_integer(s, "n_positions", 2048, 1, 1 << 24, &d->most_tokens, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_epsilon", 1e-5, &d->norm_epsilon, error));
    LOCUS_TRY(model_read_activation(s, "activation_function", "gelu_new", &d->activation, error));
    LOCUS_TRY(model_setting_flag(s, "tie_word_embeddings", 0, &tied, error));
    LOCUS_TRY(model_split_heads(s, "n_head", d, error));
    d->kv_heads = d->heads;
    d->norm_centred = d->final_norm = 1;
    model_set_decoder(d, tied);
    return read_turned(s, d, error);
}

static value block(builder *b, value h, int64_t l)
{
    static const char *const maps[] = {"h.#.attn.q_proj", "h.#.attn.k_proj", "h.#.attn.v_proj"};
    const model_description *d = b->d;
    const int64_t E = d->width;
    value x = norm_named(b, h, "h.#.ln_1", l);
    value y = maps_named(b, x, maps, (const int64_t[]){E, E, E}, 3, l, 0);
    y = rows_wanted(b, attend_made(b, y, b->self, b->turns, l), l);
    y = map_named(b, y, "h.#.attn.out_proj", l, E, 0, LOCUS_IDENTITY, NONE, rows_wanted(b, h, l));
    x = rows_wanted(b, x, l);
    x = map_named(b, x, "h.#.mlp.fc_in", l, d->feed_forward, 1, d->activation, NONE, NONE);
    return map_named(b, x, "h.#.mlp.fc_out", l, E, 1, LOCUS_IDENTITY, NONE, y);
}

static value logits(builder *b, value h)
{
    const int64_t V = b->d->vocabulary;
    const value weight = b->d->tied ? b->word : slot_tensor(b, SLOT_LOGITS, 0);
    const value bias = tensor_named(b, "lm_head.bias", 0, V, 1);
    return build_map(b->p, h, weight, bias, LOCUS_IDENTITY, NONE, NONE);
}

static const model_wiring wiring = {.block = block, .logits = logits};

const model_family model_family_gptj = {
    .type = "gptj",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
    .wiring = &wiring,
};

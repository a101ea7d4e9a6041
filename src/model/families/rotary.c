/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families/rotary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

const model_name rotary_names[] = {
    {SLOT_WORD, "embed_tokens.weight"},
    {SLOT_FINAL_NORM_GAIN, "norm.weight"},
    {SLOT_LOGITS, "lm_head.weight"},
    {SLOT_COUNT, NULL},
};

const char *const rotary_prefixes[] = {"model.", "", NULL};

/* ---- config.json ---- */

static locus_status read_heads(const model_settings *s, const rotary_presets *p,
                               model_description *d, locus_error *error)
{
    LOCUS_TRY(model_setting_integer(s, "num_attention_heads", p->heads, 1, 1024, &d->heads, error));
    const int there = model_setting_there(s, "num_key_value_heads"); /* null: as many as heads */
    const int64_t kv = there || p->kv_heads == 0 ? d->heads : p->kv_heads;
    LOCUS_TRY(model_setting_integer(s, "num_key_value_heads", kv, 1, 1024, &d->kv_heads, error));
    if (d->heads % d->kv_heads != 0)
        return model_setting_refuse(s, "num_key_value_heads", "a divisor of num_attention_heads",
                                    error);
    if (p->head_dim == 0 && model_setting_find(s, "head_dim") == NULL && d->width % d->heads != 0)
        return model_setting_refuse(s, "num_attention_heads", "a divisor of hidden_size", error);
    const int64_t preset = p->head_dim > 0 ? p->head_dim : d->width / d->heads;
    return model_setting_integer(s, "head_dim", preset, 1, 1024, &d->head_dim, error);
}

static locus_status take_own(model_description *d, rotary **own, locus_error *error)
{
    void *taken;
    LOCUS_TRY(model_take_own(d, sizeof **own, &taken, error));
    *own = taken;
    (*own)->local = locus_arena_take(d->arena, (size_t)d->layers, 1);
    if ((*own)->local == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    memset((*own)->local, 0, (size_t)d->layers);
    return LOCUS_OK;
}

locus_status rotary_read(const model_settings *s, const rotary_presets *p, model_description *d,
                         rotary **own, int64_t *positions, locus_error *error)
{
    int tied;
    LOCUS_TRY(model_setting_integer(s, "hidden_size", p->width, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "num_hidden_layers", p->layers, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "intermediate_size", p->feed_forward, 1, 1 << 20,
                                    &d->feed_forward, error));
    LOCUS_TRY(
        model_setting_integer(s, "vocab_size", p->vocabulary, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_integer(s, "max_position_embeddings", p->positions, 1, 1 << 30,
                                    positions, error));
    LOCUS_TRY(model_setting_real(s, "rms_norm_eps", p->epsilon > 0.0 ? p->epsilon : 1e-6,
                                 &d->norm_epsilon, error));
    LOCUS_TRY(model_setting_flag(s, "tie_word_embeddings", p->tied, &tied, error));
    LOCUS_TRY(read_heads(s, p, d, error));
    LOCUS_TRY(take_own(d, own, error));
    d->embedding_width = d->width;
    d->padding = -1;
    d->norm_first = d->final_norm = d->gated = 1;
    model_set_decoder(d, tied);
    return p->activation == NULL
               ? LOCUS_OK
               : model_read_activation(s, "hidden_act", p->activation, &d->activation, error);
}

static locus_status read_type(const model_settings *s, int64_t layer, unsigned char *local,
                              locus_error *error)
{
    char key[48];
    const char *kind;
    snprintf(key, sizeof key, "layer_types.%" PRId64, layer);
    LOCUS_TRY(model_setting_text(s, key, "", &kind, error));
    *local = strcmp(kind, "sliding_attention") == 0;
    return *local || strcmp(kind, "full_attention") == 0
               ? LOCUS_OK
               : model_setting_refuse(s, key, "full_attention or sliding_attention", error);
}

locus_status rotary_read_layers(const model_settings *s, const model_description *d, rotary *own,
                                int64_t first, int64_t every, locus_error *error)
{
    const int64_t types = model_setting_count(s, "layer_types");
    int local = 0;
    if (types > 0 && types != d->layers)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: layer_types: found %" PRId64 " of them, expected %" PRId64
                          " (num_hidden_layers)",
                          s->file, types, d->layers);
    for (int64_t l = 0; l < d->layers; l++) {
        own->local[l] = own->window > 0 && l >= first && (every == 0 || (l + 1) % every != 0);
        if (types > 0) LOCUS_TRY(read_type(s, l, &own->local[l], error));
        local |= own->local[l];
    }
    return local && own->window == 0
               ? locus_fail(error, LOCUS_ERR_FORMAT,
                            "%s: layer_types: found sliding_attention, expected full_attention "
                            "where no sliding window is used",
                            s->file)
               : LOCUS_OK;
}

/* ---- layers ---- */

/* One attention for the layers that are `local`, or are not; none where there is no such layer. */
static void add_kind(builder *b, int local)
{
    const rotary *own = b->d->own;
    const int other = local && own->local_rope.base > 0.0;
    attention a;
    b->kinds[local] = NONE;
    if (memchr(own->local, local, (size_t)b->d->layers) == NULL) return;
    program_fail(b->p, model_attention(b->m, b->stack, 0, &a, b->error));
    if (own->softcap > 0.0) a.config.softcap = own->softcap;
    if (local) a.config.window_left = own->window - 1;
    if (local && !b->d->causal) a.config.window_right = own->window - 1;
    if (own->scale > 0.0 || other) {
        a.config.scale = own->scale > 0.0 ? own->scale : LOCUS_UNSET_REAL;
        program_fail(b->p, model_attention_turn(b->m, other ? &own->local_rope : &b->d->rope, &a,
                                                b->error));
    }
    b->kinds[local] = build_attention(b->p, &a);
    b->kind_turns[local] = build_turns(b->p, TURNED, b->kinds[local]);
}

void rotary_begin(builder *b)
{
    for (int local = 0; local < 2; local++) add_kind(b, local);
}

value rotary_qkv(builder *b, value x, int64_t l)
{
    static const char *const names[] = {"layers.#.self_attn.q_proj", "layers.#.self_attn.k_proj",
                                        "layers.#.self_attn.v_proj"};
    const model_description *d = b->d;
    const rotary *own = d->own;
    const int64_t A = d->heads * d->head_dim, C = d->kv_heads * d->head_dim;
    return maps_named(b, x, names, (const int64_t[]){A, C, C}, 3, l, own->biased);
}

value rotary_norm_heads(builder *b, value qkv, value q_gain, value k_gain)
{
    const attention how = {.heads = b->d->heads,
                           .kv_heads = b->d->kv_heads,
                           .head_dim = b->d->head_dim};
    return build_heads(b->p, qkv, q_gain, k_gain, &how, b->d->norm_epsilon);
}

value rotary_attend(builder *b, value qkv, int64_t l, value residual)
{
    const rotary *own = b->d->own;
    const int local = own->local[l];
    const value y = attend_made(b, qkv, b->kinds[local], b->kind_turns[local], l);
    return map_named(b, rows_wanted(b, y, l), "layers.#.self_attn.o_proj", l, b->d->width,
                     own->out_biased, LOCUS_IDENTITY, NONE,
                     residual != NONE ? rows_wanted(b, residual, l) : NONE);
}

value rotary_forward(builder *b, value x, int64_t l, value residual)
{
    const model_description *d = b->d;
    const int biased = ((const rotary *)d->own)->forward_biased;
    const value up = map_named(b, x, "layers.#.mlp.up_proj", l, d->feed_forward, biased,
                               LOCUS_IDENTITY, NONE, NONE);
    const value inner = map_named(b, x, "layers.#.mlp.gate_proj", l, d->feed_forward, biased,
                                  d->activation, up, NONE);
    return map_named(b, inner, "layers.#.mlp.down_proj", l, d->width, biased, LOCUS_IDENTITY, NONE,
                     residual);
}

static value block(builder *b, value h, int64_t l)
{
    const value x = norm_named(b, h, "layers.#.input_layernorm", l);
    h = rotary_attend(b, rotary_qkv(b, x, l), l, h);
    return rotary_forward(b, norm_named(b, h, "layers.#.post_attention_layernorm", l), l, h);
}

const model_wiring rotary_wiring = {.begin = rotary_begin, .block = block};

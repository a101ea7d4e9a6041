/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/rotary.h"

/* ModernBERT: an encoder with rotary positions, of which most layers see a window to both sides and
 * turn by frequencies of their own; the norm before each sublayer but the first, which the norm of
 * the embeddings stands for; gated GELU. Its heads are not read. */

static const model_name names[] = {
    {SLOT_WORD, "embeddings.tok_embeddings.weight"},
    {SLOT_EMBEDDING_NORM_GAIN, "embeddings.norm.weight"},
    {SLOT_EMBEDDING_NORM_SHIFT, "embeddings.norm.bias"},
    {SLOT_FINAL_NORM_GAIN, "final_norm.weight"},
    {SLOT_FINAL_NORM_SHIFT, "final_norm.bias"},
    {SLOT_COUNT, NULL},
};

static const char *const prefixes[] = {"model.", "", NULL};

/* The `own` of its description begins with what rotary_begin reads. */
typedef struct modernbert {
    rotary layers;
    int attention_biased, forward_biased;
} modernbert;

static locus_status read_sizes(const model_settings *s, model_description *d, locus_error *error)
{
    int shifted;
    LOCUS_TRY(model_setting_integer(s, "hidden_size", 768, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "num_hidden_layers", 22, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "num_attention_heads", 12, 1, 1024, &d->heads, error));
    LOCUS_TRY(
        model_setting_integer(s, "intermediate_size", 1152, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 50368, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_real(s, "norm_eps", 1e-5, &d->norm_epsilon, error));
    LOCUS_TRY(model_setting_flag(s, "norm_bias", 0, &shifted, error));
    LOCUS_TRY(model_read_activation(s, "hidden_activation", "gelu", &d->activation, error));
    LOCUS_TRY(model_split_heads(s, "num_attention_heads", d, error));
    d->kv_heads = d->heads;
    d->norm_centred = d->norm_first = d->embedding_norm = d->final_norm = 1;
    d->norm_unshifted = !shifted;
    return LOCUS_OK;
}

/* Every third layer sees all tokens, the others local_attention / 2 to either side. */
static locus_status read_windows(const model_settings *s, model_description *d, rotary *own,
                                 locus_error *error)
{
    int64_t every, window;
    LOCUS_TRY(model_setting_integer(s, "global_attn_every_n_layers", 3, 1, 1024, &every, error));
    LOCUS_TRY(model_setting_integer(s, "local_attention", 128, 0, 1 << 30, &window, error));
    own->window = window / 2 + 1;
    own->local = locus_arena_take(d->arena, (size_t)d->layers, 1);
    if (own->local == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    for (int64_t l = 0; l < d->layers; l++) own->local[l] = l % every != 0;
    return LOCUS_OK;
}

static locus_status read_frequencies(const model_settings *s, model_description *d, rotary *own,
                                     locus_error *error)
{
    int64_t trained;
    double base;
    LOCUS_TRY(
        model_setting_integer(s, "max_position_embeddings", 8192, 1, 1 << 30, &trained, error));
    LOCUS_TRY(model_setting_real(s, "global_rope_theta", 160000.0, &base, error));
    LOCUS_TRY(model_read_rope(s, trained, d, error));
    if (d->rope.kind != MODEL_ROPE_PLAIN)
        return model_setting_refuse(s, "rope_scaling.rope_type", "default", error);
    own->local_rope = d->rope;
    d->rope.base = base;
    LOCUS_TRY(model_setting_real(s, "local_rope_theta", base, &own->local_rope.base, error));
    return d->rope.base > 0.0 && own->local_rope.base > 0.0
               ? LOCUS_OK
               : model_setting_refuse(s, "global_rope_theta", "more than 0", error);
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    void *taken;
    LOCUS_TRY(read_sizes(s, d, error));
    LOCUS_TRY(model_take_own(d, sizeof(modernbert), &taken, error));
    modernbert *own = taken;
    LOCUS_TRY(model_setting_flag(s, "attention_bias", 0, &own->attention_biased, error));
    LOCUS_TRY(model_setting_flag(s, "mlp_bias", 0, &own->forward_biased, error));
    LOCUS_TRY(read_windows(s, d, &own->layers, error));
    return read_frequencies(s, d, &own->layers, error);
}

/* map(activation(first half of Wi x) * second half) + residual */
static value forward(builder *b, value x, int64_t l, value residual)
{
    const model_description *d = b->d;
    const int64_t F = d->feed_forward;
    const int biased = ((const modernbert *)d->own)->forward_biased;
    const value both = tensor_named(b, "layers.#.mlp.Wi.weight", l, 2 * F, d->width);
    const value shift = biased ? tensor_named(b, "layers.#.mlp.Wi.bias", l, 2 * F, 1) : NONE;
    const value up =
        build_map(b->p, x, build_rows(b->p, both, F, F),
                  biased ? build_rows(b->p, shift, F, F) : NONE, LOCUS_IDENTITY, NONE, NONE);
    x = build_map(b->p, x, build_rows(b->p, both, 0, F),
                  biased ? build_rows(b->p, shift, 0, F) : NONE, d->activation, up, NONE);
    return map_named(b, x, "layers.#.mlp.Wo", l, d->width, biased, LOCUS_IDENTITY, NONE, residual);
}

static value block(builder *b, value h, int64_t l)
{
    const model_description *d = b->d;
    const modernbert *own = d->own;
    const int local = own->layers.local[l];
    value x = l == 0 ? h : norm_named(b, h, "layers.#.attn_norm", l);
    x = map_named(b, x, "layers.#.attn.Wqkv", l, 3 * d->width, own->attention_biased,
                  LOCUS_IDENTITY, NONE, NONE);
    x = rows_wanted(b, attend_made(b, x, b->kinds[local], b->kind_turns[local], l), l);
    h = map_named(b, x, "layers.#.attn.Wo", l, d->width, own->attention_biased, LOCUS_IDENTITY,
                  NONE, rows_wanted(b, h, l));
    return forward(b, norm_named(b, h, "layers.#.mlp_norm", l), l, h);
}

static const model_wiring wiring = {.begin = rotary_begin, .block = block};

const model_family model_family_modernbert = {
    .type = "modernbert",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
    .wiring = &wiring,
};

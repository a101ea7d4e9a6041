/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "model/blocks.h"

/* Nomic-BERT: BERT with rotary positions in place of learned ones, the norm behind each sublayer, q, k
 * and v in one map, a feed-forward that is gated or not. config.json has GPT-2's names, or, as
 * transformers 5 writes it, BERT's. Its heads are not read. */

static const model_name names[] = {
    {SLOT_WORD, "embeddings.word_embeddings.weight"},
    {SLOT_TYPE, "embeddings.token_type_embeddings.weight"},
    {SLOT_EMBEDDING_NORM_GAIN, "emb_ln.weight"},
    {SLOT_EMBEDDING_NORM_SHIFT, "emb_ln.bias"},
    {SLOT_COUNT, NULL},
};

static const char *const prefixes[] = {"bert.", "nomic_bert.", "", NULL};

typedef struct nomic_bert {
    int attention_biased, in_biased, out_biased;
} nomic_bert;

/* ---- config.json ---- */

static int64_t round_up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

static locus_status refuse_others(const model_settings *s, locus_error *error)
{
    static const char *const flags[] = {
        "prenorm",      "parallel_block", "parallel_block_tied_norm",
        "use_rms_norm", "causal",         "rotary_head_dim"};
    int64_t every;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        LOCUS_TRY(model_refuse_flag(s, flags[i], error));
    if (model_setting_find(s, "rotary_emb_scale_base") != NULL)
        return model_setting_refuse(s, "rotary_emb_scale_base", "null", error);
    return model_setting_integer(s, "moe_every_n_layers", 0, 0, 0, &every, error);
}

/* swiglu and geglu are gated: their widths are multiples of 256. */
static locus_status read_forward(const model_settings *s, model_description *d, locus_error *error)
{
    const char *name;
    LOCUS_TRY(model_setting_text(s, "activation_function", "gelu_new", &name, error));
    d->activation = strcmp(name, "swiglu") == 0 ? LOCUS_SILU : LOCUS_GELU;
    d->gated = strcmp(name, "swiglu") == 0 || strcmp(name, "geglu") == 0;
    if (!d->gated && strcmp(name, "gelu") != 0)
        return model_setting_refuse(s, "activation_function", "swiglu, geglu or gelu", error);
    const int64_t preset = d->gated ? 8 * d->width / 3 : 4 * d->width;
    LOCUS_TRY(model_setting_integer(s, "n_inner", preset, 1, 1 << 20, &d->feed_forward, error));
    if (d->gated) d->feed_forward = round_up(d->feed_forward, 256);
    return LOCUS_OK;
}

static locus_status read_rotation(const model_settings *s, model_description *d, locus_error *error)
{
    double base, factor;
    int64_t trained;
    int interleaved;
    LOCUS_TRY(model_setting_integer(s, "max_trained_positions", 2048, 2, 1 << 30, &trained, error));
    LOCUS_TRY(model_setting_real(s, "rotary_emb_base", 10000.0, &base, error));
    if (!(base > 0.0)) return model_setting_refuse(s, "rotary_emb_base", "more than 0", error);
    LOCUS_TRY(model_read_turned(s, "rotary_emb_fraction", 0.0, d, error));
    d->rope.base = base;
    LOCUS_TRY(model_read_rope(s, trained, d, error));
    LOCUS_TRY(model_setting_flag(s, "rotary_emb_interleaved", 0, &interleaved, error));
    if (interleaved) d->options.pairing = LOCUS_PAIRING_INTERLEAVED;
    if (model_setting_find(s, "rotary_scaling_factor") == NULL) return LOCUS_OK;
    LOCUS_TRY(model_setting_real(s, "rotary_scaling_factor", 1.0, &factor, error));
    if (!(factor >= 1.0))
        return model_setting_refuse(s, "rotary_scaling_factor", "at least 1", error);
    d->rope.kind = MODEL_ROPE_DYNAMIC;
    d->rope.factor = factor;
    return LOCUS_OK;
}

/* By GPT-2's names. */
static locus_status describe_older(const model_settings *s, model_description *d, nomic_bert *own,
                                   locus_error *error)
{
    int64_t multiple;
    LOCUS_TRY(refuse_others(s, error));
    LOCUS_TRY(model_setting_integer(s, "n_embd", 768, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "n_layer", 12, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "n_head", 12, 1, 1024, &d->heads, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 50257, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_integer(s, "pad_vocab_size_multiple", 1, 1, 1 << 16, &multiple, error));
    d->vocabulary = round_up(d->vocabulary, multiple);
    LOCUS_TRY(model_setting_real(s, "layer_norm_epsilon", 1e-5, &d->norm_epsilon, error));
    LOCUS_TRY(model_setting_flag(s, "qkv_proj_bias", 1, &own->attention_biased, error));
    LOCUS_TRY(model_setting_flag(s, "mlp_fc1_bias", 1, &own->in_biased, error));
    LOCUS_TRY(model_setting_flag(s, "mlp_fc2_bias", 1, &own->out_biased, error));
    LOCUS_TRY(model_split_heads(s, "n_head", d, error));
    LOCUS_TRY(read_forward(s, d, error));
    return read_rotation(s, d, error);
}

static locus_status describe_newer(const model_settings *s, model_description *d,
                                   locus_error *error)
{
    int64_t trained;
    LOCUS_TRY(model_read_bert_sizes(s, d, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 30528, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(
        model_setting_integer(s, "max_position_embeddings", 2048, 1, 1 << 30, &trained, error));
    LOCUS_TRY(model_setting_integer(s, "head_dim", d->head_dim, d->head_dim, d->head_dim,
                                    &d->head_dim, error));
    LOCUS_TRY(model_read_activation(s, "hidden_act", "silu", &d->activation, error));
    d->gated = 1;
    d->rope.base = 1000.0;
    return model_read_rope(s, trained, d, error);
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    void *own;
    LOCUS_TRY(model_take_own(d, sizeof(nomic_bert), &own, error));
    LOCUS_TRY(model_setting_integer(s, "type_vocab_size", 2, 0, 1 << 16, &d->types, error));
    LOCUS_TRY(model_setting_there(s, "n_embd") ? describe_older(s, d, own, error)
                                               : describe_newer(s, d, error));
    d->norm_centred = d->embedding_norm = 1;
    return LOCUS_OK;
}

/* ---- layers ---- */

/* fc2(fc11 x * activation(fc12 x)), or fc2(activation(fc1 x)), + residual */
static value forward(builder *b, value x, int64_t l)
{
    const model_description *d = b->d;
    const nomic_bert *own = d->own;
    const int64_t F = d->feed_forward;
    const value up = d->gated ? map_named(b, x, "encoder.layers.#.mlp.fc11", l, F, own->in_biased,
                                          LOCUS_IDENTITY, NONE, NONE)
                              : NONE;
    const char *in = d->gated ? "encoder.layers.#.mlp.fc12" : "encoder.layers.#.mlp.fc1";
    const value inner = map_named(b, x, in, l, F, own->in_biased, d->activation, up, NONE);
    return map_named(b, inner, "encoder.layers.#.mlp.fc2", l, d->width, own->out_biased,
                     LOCUS_IDENTITY, NONE, x);
}

static value block(builder *b, value h, int64_t l)
{
    const model_description *d = b->d;
    const int biased = ((const nomic_bert *)d->own)->attention_biased;
    const value qkv = map_named(b, h, "encoder.layers.#.attn.Wqkv", l, 3 * d->width, biased,
                                LOCUS_IDENTITY, NONE, NONE);
    const value y = rows_wanted(b, attend_made(b, qkv, b->self, b->turns, l), l);
    h = map_named(b, y, "encoder.layers.#.attn.out_proj", l, d->width, biased, LOCUS_IDENTITY, NONE,
                  rows_wanted(b, h, l));
    h = norm_named(b, h, "encoder.layers.#.norm1", l);
    return norm_named(b, forward(b, h, l), "encoder.layers.#.norm2", l);
}

static const model_wiring wiring = {.block = block};

const model_family model_family_nomic_bert = {
    .type = "nomic_bert",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
    .wiring = &wiring,
};

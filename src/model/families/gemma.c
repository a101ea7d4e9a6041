/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families/gemma.h"

#include <math.h>
#include <stdio.h>

#include "core/error.h"

/* Gemma, and what the later ones have of it. */

locus_status gemma_read(const model_settings *s, const rotary_presets *presets,
                        const char *activation_key, model_description *d, rotary **own,
                        int64_t *trained, locus_error *error)
{
    LOCUS_TRY(rotary_read(s, presets, d, own, trained, error));
    LOCUS_TRY(model_setting_flag(s, "attention_bias", 0, &(*own)->biased, error));
    (*own)->out_biased = (*own)->biased;
    d->embedding_factor = sqrt((double)d->width);
    return model_read_activation(s, activation_key, "gelu_pytorch_tanh", &d->activation, error);
}

locus_status gemma_read_cap(const model_settings *s, const char *key, double preset, double *cap,
                            locus_error *error)
{
    LOCUS_TRY(model_setting_real(s, key, model_setting_there(s, key) ? 0.0 : preset, cap, error));
    return model_setting_find(s, key) == NULL || (*cap > 0.0 && !isinf(*cap))
               ? LOCUS_OK
               : model_setting_refuse(s, key, "null or more than 0", error);
}

locus_status gemma_read_scale(const model_settings *s, rotary *own, locus_error *error)
{
    double scalar;
    LOCUS_TRY(model_setting_real(s, "query_pre_attn_scalar", 256.0, &scalar, error));
    own->scale = 1.0 / sqrt(scalar);
    return scalar > 0.0 && !isinf(scalar)
               ? LOCUS_OK
               : model_setting_refuse(s, "query_pre_attn_scalar", "more than 0", error);
}

value gemma_gain(builder *b, const char *name, int64_t layer, int64_t count)
{
    char whole[MODEL_NAME];
    snprintf(whole, sizeof whole, "%s.weight", name);
    return build_raise(b->p, tensor_named(b, whole, layer, count, 1));
}

value gemma_norm(builder *b, value x, const char *name, int64_t layer)
{
    const value gain = gemma_gain(b, name, layer, b->p->values[x].width);
    return build_norm(b->p, x, gain, NONE, 0, b->d->norm_epsilon);
}

value gemma_block(builder *b, value h, int64_t l, int norm_heads)
{
    const int64_t D = b->d->head_dim;
    value x = rotary_qkv(b, gemma_norm(b, h, "layers.#.input_layernorm", l), l);
    if (norm_heads)
        x = rotary_norm_heads(b, x, gemma_gain(b, "layers.#.self_attn.q_norm", l, D),
                              gemma_gain(b, "layers.#.self_attn.k_norm", l, D));
    x = gemma_norm(b, rotary_attend(b, x, l, NONE), "layers.#.post_attention_layernorm", l);
    h = build_add(b->p, rows_wanted(b, h, l), x);
    x = gemma_norm(b, h, "layers.#.pre_feedforward_layernorm", l);
    x = rotary_forward(b, x, l, NONE);
    return build_add(b->p, h, gemma_norm(b, x, "layers.#.post_feedforward_layernorm", l));
}

value gemma_end(builder *b, value h) { return gemma_norm(b, h, "norm", 0); }

value gemma_logits(builder *b, value h)
{
    const rotary *own = b->d->own;
    const value weight = b->d->tied ? b->word : slot_tensor(b, SLOT_LOGITS, 0);
    const value logits = build_map(b->p, h, weight, NONE, LOCUS_IDENTITY, NONE, NONE);
    return own->logits_cap > 0.0 ? build_cap(b->p, logits, own->logits_cap) : logits;
}

/* ---- Gemma itself ---- */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    static const rotary_presets presets = {.width = 3072,
                                           .layers = 28,
                                           .heads = 16,
                                           .kv_heads = 16,
                                           .feed_forward = 24576,
                                           .vocabulary = 256000,
                                           .positions = 8192,
                                           .head_dim = 256,
                                           .tied = 1};
    rotary *own;
    int64_t trained;
    LOCUS_TRY(gemma_read(s, &presets, "hidden_act", d, &own, &trained, error));
    return model_read_rope(s, trained, d, error);
}

static value block(builder *b, value h, int64_t l)
{
    const value x = gemma_norm(b, h, "layers.#.input_layernorm", l);
    h = rotary_attend(b, rotary_qkv(b, x, l), l, h);
    return rotary_forward(b, gemma_norm(b, h, "layers.#.post_attention_layernorm", l), l, h);
}

static const model_wiring wiring = {.begin = rotary_begin, .block = block, .end = gemma_end};

const model_family model_family_gemma = {
    .type = "gemma",
    .prefixes = rotary_prefixes,
    .names = rotary_names,
    .describe = describe,
    .wiring = &wiring,
};

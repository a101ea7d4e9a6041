/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/description.h"

/* MPT: ALiBi, LayerNorm without shifts before each sublayer, no biases, q, k and v in one map. */

static const model_name names[] = {
    {SLOT_WORD, "wte.weight"},
    {SLOT_FUSED_QKV, "blocks.#.attn.Wqkv.weight"},
    {SLOT_O, "blocks.#.attn.out_proj.weight"},
    {SLOT_ATTENTION_NORM_GAIN, "blocks.#.norm_1.weight"},
    {SLOT_IN, "blocks.#.ffn.up_proj.weight"},
    {SLOT_OUT, "blocks.#.ffn.down_proj.weight"},
    {SLOT_FORWARD_NORM_GAIN, "blocks.#.norm_2.weight"},
    {SLOT_FINAL_NORM_GAIN, "norm_f.weight"},
    {SLOT_LOGITS, "lm_head.weight"},
    {SLOT_COUNT, NULL},
};

static const char *const prefixes[] = {"transformer.", "", NULL};

/* What the attention of MPT could be and transformers has not. */
static locus_status check_attention(const model_settings *s, locus_error *error)
{
    int alibi;
    int64_t most, ratio;
    LOCUS_TRY(model_setting_flag(s, "attn_config.alibi", 1, &alibi, error));
    if (!alibi) return model_setting_refuse(s, "attn_config.alibi", "true", error);
    LOCUS_TRY(model_setting_integer(s, "attn_config.alibi_bias_max", 8, 8, 8, &most, error));
    LOCUS_TRY(model_setting_integer(s, "expansion_ratio", 4, 4, 4, &ratio, error));
    LOCUS_TRY(model_refuse_flag(s, "attn_config.qk_ln", error));
    LOCUS_TRY(model_refuse_flag(s, "attn_config.prefix_lm", error));
    if (model_setting_find(s, "attn_config.clip_qkv") != NULL)
        return model_setting_refuse(s, "attn_config.clip_qkv", "null", error);
    if (model_setting_find(s, "attn_config.softmax_scale") != NULL)
        return model_setting_refuse(s, "attn_config.softmax_scale", "null", error);
    return LOCUS_OK;
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    int tied;
    LOCUS_TRY(model_setting_integer(s, "d_model", 2048, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "n_layers", 24, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "n_heads", 16, 1, 1024, &d->heads, error));
    LOCUS_TRY(model_setting_integer(s, "max_seq_len", 2048, 1, 1 << 20, &d->most_tokens, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 50368, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_epsilon", 1e-5, &d->norm_epsilon, error));
    LOCUS_TRY(model_setting_flag(s, "tie_word_embeddings", 1, &tied, error));
    LOCUS_TRY(check_attention(s, error));
    d->feed_forward = 4 * d->width;
    d->activation = LOCUS_GELU;
    d->fused_parts = d->norm_unshifted = 1;
    d->norm_centred = d->norm_first = d->final_norm = 1;
    d->scheme = d->positions_name = "alibi";
    model_set_decoder(d, tied);
    return model_split_heads(s, "n_heads", d, error);
}

const model_family model_family_mpt = {
    .type = "mpt",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/description.h"

/* Llama and its kin (SmolLM2, stories260K): RMSNorm before each sublayer, rotary positions in
 * halves, fewer heads of k and v than of q, gated SiLU, no biases. */

static const model_name names[] = {
    {SLOT_WORD, "embed_tokens.weight"},
    {SLOT_Q, "layers.#.self_attn.q_proj.weight"},
    {SLOT_K, "layers.#.self_attn.k_proj.weight"},
    {SLOT_V, "layers.#.self_attn.v_proj.weight"},
    {SLOT_O, "layers.#.self_attn.o_proj.weight"},
    {SLOT_ATTENTION_NORM_GAIN, "layers.#.input_layernorm.weight"},
    {SLOT_IN, "layers.#.mlp.gate_proj.weight"},
    {SLOT_GATE, "layers.#.mlp.up_proj.weight"},
    {SLOT_OUT, "layers.#.mlp.down_proj.weight"},
    {SLOT_FORWARD_NORM_GAIN, "layers.#.post_attention_layernorm.weight"},
    {SLOT_FINAL_NORM_GAIN, "norm.weight"},
    {SLOT_LOGITS, "lm_head.weight"},
    {SLOT_COUNT, NULL},
};

static const char *const prefixes[] = {"model.", "transformer.", "", NULL};

static locus_status read_heads(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_setting_integer(s, "num_attention_heads", 32, 1, 1024, &d->heads, error));
    LOCUS_TRY(
        model_setting_integer(s, "num_key_value_heads", d->heads, 1, 1024, &d->kv_heads, error));
    if (d->heads % d->kv_heads != 0)
        return model_setting_refuse(s, "num_key_value_heads", "a divisor of num_attention_heads",
                                    error);
    if (model_setting_find(s, "head_dim") == NULL && d->width % d->heads != 0)
        return model_setting_refuse(s, "num_attention_heads", "a divisor of hidden_size", error);
    return model_setting_integer(s, "head_dim", d->width / d->heads, 1, 1024, &d->head_dim, error);
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    int tied;
    int64_t trained;
    LOCUS_TRY(model_setting_integer(s, "hidden_size", 4096, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "num_hidden_layers", 32, 1, 1024, &d->layers, error));
    LOCUS_TRY(
        model_setting_integer(s, "intermediate_size", 11008, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 32000, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(
        model_setting_integer(s, "max_position_embeddings", 2048, 1, 1 << 30, &trained, error));
    LOCUS_TRY(model_setting_real(s, "rms_norm_eps", 1e-6, &d->norm_epsilon, error));
    LOCUS_TRY(model_read_activation(s, "hidden_act", "silu", &d->activation, error));
    LOCUS_TRY(model_setting_flag(s, "tie_word_embeddings", 0, &tied, error));
    LOCUS_TRY(model_refuse_flag(s, "attention_bias", error));
    LOCUS_TRY(model_refuse_flag(s, "mlp_bias", error));
    LOCUS_TRY(read_heads(s, d, error));
    d->embedding_width = d->width;
    d->padding = -1;
    d->norm_first = d->final_norm = d->gated = 1;
    model_set_decoder(d, tied);
    return model_read_rope(s, trained, d, error);
}

const model_family model_family_llama = {
    .type = "llama",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

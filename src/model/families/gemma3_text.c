/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/gemma.h"

/* Gemma 3 and EmbeddingGemma: Gemma 2 with a norm of every head of q and k, local layers that turn by
 * frequencies of their own, and perhaps attention in both directions. Scores have no cap: transformers
 * reads attn_logit_softcapping and does nothing with it. */

static locus_status read_windows(const model_settings *s, const model_description *d, rotary *own,
                                 locus_error *error)
{
    const char *pattern = "sliding_window_pattern";
    int64_t every;
    LOCUS_TRY(model_setting_integer(s, "sliding_window", 4096, 1, 1 << 30, &own->window, error));
    LOCUS_TRY(model_setting_integer(s, pattern, 6, 1, 1 << 20, &every, error));
    if (!d->causal) own->window = own->window / 2 + 1; /* to either side */
    return rotary_read_layers(s, d, own, 0, every, error);
}

/* Frequencies of both kinds of layers: transformers 5 writes them in rope_parameters. */
static locus_status read_turns(const model_settings *s, int64_t trained, model_description *d,
                               rotary *own, locus_error *error)
{
    const char *base = "rope_local_base_freq", *all = "rope_parameters.full_attention";
    const char *some = "rope_parameters.sliding_attention";
    model_description local = *d;
    d->rope.base = 1e6;
    if (model_setting_count(s, all) > 0 && model_setting_count(s, some) > 0) {
        LOCUS_TRY(model_read_rope_group(s, some, trained, &local, error));
        own->local_rope = local.rope;
        return model_read_rope_group(s, all, trained, d, error);
    }
    LOCUS_TRY(model_setting_real(s, base, 10000.0, &own->local_rope.base, error));
    if (!(own->local_rope.base > 0.0)) return model_setting_refuse(s, base, "more than 0", error);
    return model_read_rope(s, trained, d, error);
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    static const rotary_presets presets = {.width = 2304,
                                           .layers = 26,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .feed_forward = 9216,
                                           .vocabulary = 262208,
                                           .positions = 131072,
                                           .head_dim = 256,
                                           .tied = 1};
    rotary *own;
    int64_t trained;
    int both;
    LOCUS_TRY(gemma_read(s, &presets, "hidden_activation", d, &own, &trained, error));
    LOCUS_TRY(gemma_read_scale(s, own, error));
    LOCUS_TRY(gemma_read_cap(s, "final_logit_softcapping", 0.0, &own->logits_cap, error));
    LOCUS_TRY(model_setting_flag(s, "use_bidirectional_attention", 0, &both, error));
    if (both) {
        d->causal = 0;
        d->head = LOCUS_MODEL_NO_HEAD;
    }
    LOCUS_TRY(read_windows(s, d, own, error));
    return read_turns(s, trained, d, own, error);
}

static value block(builder *b, value h, int64_t l) { return gemma_block(b, h, l, 1); }

static const model_wiring wiring = {
    .begin = rotary_begin, .block = block, .end = gemma_end, .logits = gemma_logits};

const model_family model_family_gemma3_text = {
    .type = "gemma3_text",
    .prefixes = rotary_prefixes,
    .names = rotary_names,
    .describe = describe,
    .wiring = &wiring,
};

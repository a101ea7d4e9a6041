/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/gemma.h"

/* Gemma 2: Gemma with norms behind the sublayers too, caps of scores and logits, a scale of its own, and
 * every other layer local. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    static const rotary_presets presets = {.width = 2304,
                                           .layers = 26,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .feed_forward = 9216,
                                           .vocabulary = 256000,
                                           .positions = 8192,
                                           .head_dim = 256,
                                           .tied = 1};
    rotary *own;
    int64_t trained;
    LOCUS_TRY(gemma_read(s, &presets, "hidden_activation", d, &own, &trained, error));
    LOCUS_TRY(gemma_read_scale(s, own, error));
    LOCUS_TRY(gemma_read_cap(s, "attn_logit_softcapping", 50.0, &own->softcap, error));
    LOCUS_TRY(gemma_read_cap(s, "final_logit_softcapping", 30.0, &own->logits_cap, error));
    LOCUS_TRY(model_setting_integer(s, "sliding_window", 4096, 1, 1 << 30, &own->window, error));
    LOCUS_TRY(rotary_read_layers(s, d, own, 0, 2, error));
    return model_read_rope(s, trained, d, error);
}

static value block(builder *b, value h, int64_t l) { return gemma_block(b, h, l, 0); }

static const model_wiring wiring = {
    .begin = rotary_begin, .block = block, .end = gemma_end, .logits = gemma_logits};

const model_family model_family_gemma2 = {
    .type = "gemma2",
    .prefixes = rotary_prefixes,
    .names = rotary_names,
    .describe = describe,
    .wiring = &wiring,
};

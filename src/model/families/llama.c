/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/rotary.h"

/* Llama and its kin (SmolLM2, stories260K): RMSNorm before each sublayer, rotary positions in
 * halves, fewer heads of k and v than of q, gated SiLU. */

static const char *const prefixes[] = {"model.", "transformer.", "", NULL};

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    static const rotary_presets presets = {.width = 4096,
                                           .layers = 32,
                                           .heads = 32,
                                           .feed_forward = 11008,
                                           .vocabulary = 32000,
                                           .positions = 2048,
                                           .activation = "silu"};
    rotary *own;
    int64_t trained;
    LOCUS_TRY(rotary_read(s, &presets, d, &own, &trained, error));
    LOCUS_TRY(model_setting_flag(s, "attention_bias", 0, &own->biased, error));
    LOCUS_TRY(model_setting_flag(s, "mlp_bias", 0, &own->forward_biased, error));
    own->out_biased = own->biased;
    return model_read_rope(s, trained, d, error);
}

const model_family model_family_llama = {
    .type = "llama",
    .prefixes = prefixes,
    .names = rotary_names,
    .describe = describe,
    .wiring = &rotary_wiring,
};

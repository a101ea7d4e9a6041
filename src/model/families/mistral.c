/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/rotary.h"

/* Mistral: Llama, where every layer may see a window alone. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    static const rotary_presets presets = {.width = 4096,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 8,
                                           .feed_forward = 14336,
                                           .vocabulary = 32000,
                                           .positions = 131072,
                                           .activation = "silu"};
    rotary *own;
    int64_t trained;
    LOCUS_TRY(rotary_read(s, &presets, d, &own, &trained, error));
    const int64_t window = model_setting_there(s, "sliding_window") ? 0 : 4096; /* null: none */
    LOCUS_TRY(model_setting_integer(s, "sliding_window", window, 0, 1 << 30, &own->window, error));
    if (model_setting_find(s, "sliding_window") != NULL && own->window == 0)
        return model_setting_refuse(s, "sliding_window", "null or at least 1", error);
    for (int64_t l = 0; l < d->layers; l++) own->local[l] = own->window > 0;
    return model_read_rope(s, trained, d, error);
}

const model_family model_family_mistral = {
    .type = "mistral",
    .prefixes = rotary_prefixes,
    .names = rotary_names,
    .describe = describe,
    .wiring = &rotary_wiring,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/rotary.h"

/* Qwen2 and 2.5: Llama with biases for q, k and v, and perhaps a window in the upper layers. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    static const rotary_presets presets = {.width = 4096,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 32,
                                           .feed_forward = 22016,
                                           .vocabulary = 151936,
                                           .positions = 32768,
                                           .activation = "silu"};
    rotary *own;
    int64_t trained, first;
    int windows;
    LOCUS_TRY(rotary_read(s, &presets, d, &own, &trained, error));
    own->biased = 1;
    LOCUS_TRY(model_setting_flag(s, "use_sliding_window", 0, &windows, error));
    if (windows)
        LOCUS_TRY(
            model_setting_integer(s, "sliding_window", 4096, 1, 1 << 30, &own->window, error));
    LOCUS_TRY(model_setting_integer(s, "max_window_layers", 28, 0, 1 << 20, &first, error));
    LOCUS_TRY(rotary_read_layers(s, d, own, first, 0, error));
    return model_read_rope(s, trained, d, error);
}

const model_family model_family_qwen2 = {
    .type = "qwen2",
    .prefixes = rotary_prefixes,
    .names = rotary_names,
    .describe = describe,
    .wiring = &rotary_wiring,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/conformer.h"

/* w2v-BERT 2.0: conformer blocks on filter banks, with Shaw's relative keys and convolutions that look
 * back only. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_describe_conformer(s, d, "relative_key", error));
    LOCUS_TRY(model_read_activation(s, "hidden_act", "swish", &d->activation, error));
    LOCUS_TRY(model_setting_integer(s, "feature_projection_input_dim", 160, 1, 65536, &d->features,
                                    error));
    d->embedding_width = d->features;
    d->depth_before = d->depth_taps - 1;
    return LOCUS_OK;
}

static const char *const prefixes[] = {"wav2vec2_bert.", "", NULL};

const model_family model_family_wav2vec2_bert = {
    .type = "wav2vec2-bert",
    .prefixes = prefixes,
    .names = model_conformer_names,
    .describe = describe,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/marian.h"

/* Pegasus: Marian's sinusoidal positions, the norm before each sublayer and one behind the last. */

static locus_status describe_encoder(const model_settings *s, model_description *d,
                                     locus_error *error)
{
    LOCUS_TRY(model_read_marian_stack(s, 0, d, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 50265, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_integer(s, "max_position_embeddings", 1024, 1, 1 << 20, &d->positions,
                                    error));
    d->most_tokens = d->positions;
    d->sinusoidal = 1;
    d->positions_name = "sinusoidal";
    model_set_norm_first(d);
    return LOCUS_OK;
}

static locus_status describe_decoder(const model_settings *s, model_description *d,
                                     locus_error *error)
{
    return model_read_marian_decoder(s, d, error);
}

static const model_family decoder = {
    .type = "pegasus",
    .prefixes = model_marian_prefixes,
    .names = model_marian_decoder_names,
    .describe = describe_decoder,
};

static const model_ids ids = {.start = 0, .begin = -1, .end = 1, .forced_end = 1};

const model_family model_family_pegasus = {
    .type = "pegasus",
    .prefixes = model_marian_prefixes,
    .names = model_marian_names,
    .describe = describe_encoder,
    .ids = &ids,
    .decoder = &decoder,
};

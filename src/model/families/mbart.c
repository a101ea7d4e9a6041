/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/marian.h"

/* mBART: BART with the norm before each sublayer, and one behind the last. */

static locus_status describe_encoder(const model_settings *s, model_description *d,
                                     locus_error *error)
{
    LOCUS_TRY(model_read_marian_stack(s, 0, d, error));
    model_set_norm_first(d);
    return model_read_bart_positions(s, d, error);
}

static locus_status describe_decoder(const model_settings *s, model_description *d,
                                     locus_error *error)
{
    return model_read_marian_decoder(s, d, error);
}

static const model_family decoder = {
    .type = "mbart",
    .prefixes = model_marian_prefixes,
    .names = model_marian_decoder_names,
    .describe = describe_decoder,
};

static const model_ids ids = {.start = -1, .begin = 0, .end = 2, .forced_end = 2};

const model_family model_family_mbart = {
    .type = "mbart",
    .prefixes = model_marian_prefixes,
    .names = model_marian_names,
    .describe = describe_encoder,
    .ids = &ids,
    .decoder = &decoder,
};

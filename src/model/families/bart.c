/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/marian.h"

/* BART: an encoder and a decoder with learned positions, the norm behind the embeddings and behind
 * each sublayer. */

locus_status model_read_bart_positions(const model_settings *s, model_description *d,
                                       locus_error *error)
{
    enum { FIRST = 2 };
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 50265, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_integer(s, "max_position_embeddings", 1024, 1, 1 << 20, &d->most_tokens,
                                    error));
    d->positions = d->most_tokens + FIRST;
    d->first_position = FIRST;
    d->embedding_norm = 1;
    d->positions_name = "learned";
    return LOCUS_OK;
}

static locus_status describe_encoder(const model_settings *s, model_description *d,
                                     locus_error *error)
{
    LOCUS_TRY(model_read_marian_stack(s, 0, d, error));
    return model_read_bart_positions(s, d, error);
}

static locus_status describe_decoder(const model_settings *s, model_description *d,
                                     locus_error *error)
{
    return model_read_marian_decoder(s, d, error);
}

static const model_family decoder = {
    .type = "bart",
    .prefixes = model_marian_prefixes,
    .names = model_marian_decoder_names,
    .describe = describe_decoder,
};

static const model_ids ids = {.start = 2, .begin = 0, .end = 2, .forced_end = 2};

const model_family model_family_bart = {
    .type = "bart",
    .prefixes = model_marian_prefixes,
    .names = model_marian_names,
    .describe = describe_encoder,
    .ids = &ids,
    .decoder = &decoder,
};

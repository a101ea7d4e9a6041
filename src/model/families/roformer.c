/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/bert.h"

/* RoFormer: BERT whose q and k are turned by their position, neighbouring columns as pairs, and
 * without positions at the input. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_refuse_flag(s, "add_cross_attention", error));
    LOCUS_TRY(model_refuse_flag(s, "rotary_value", error));
    LOCUS_TRY(model_read_bert_sizes(s, d, error));
    LOCUS_TRY(model_read_decoder(s, d, error));
    LOCUS_TRY(
        model_setting_integer(s, "embedding_size", d->width, 1, 65536, &d->embedding_width, error));
    LOCUS_TRY(model_setting_integer(s, "type_vocab_size", 2, 0, 1 << 16, &d->types, error));
    LOCUS_TRY(model_setting_integer(s, "max_position_embeddings", 1536, 1, 1 << 20, &d->most_tokens,
                                    error));
    d->head_activation = d->activation;
    d->scheme = d->positions_name = "rope";
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    d->options.pairing = LOCUS_PAIRING_INTERLEAVED;
    d->options.base = 10000.0;
    if (d->causal) d->rope = (model_rope){.base = d->options.base, .factor = 1.0}; /* of caches */
    return LOCUS_OK;
}

static const char *const prefixes[] = {"roformer.", "", NULL};

const model_family model_family_roformer = {
    .type = "roformer",
    .prefixes = prefixes,
    .names = model_bert_names,
    .describe = describe,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/bert.h"

locus_status model_describe_roberta(const model_settings *s, model_description *d,
                                    locus_error *error)
{
    LOCUS_TRY(model_refuse_flag(s, "is_decoder", error)); /* generate() counts from 0 there */
    LOCUS_TRY(model_describe_bert(s, d, error));
    LOCUS_TRY(
        model_setting_integer(s, "pad_token_id", 1, 0, d->vocabulary - 1, &d->padding, error));
    d->first_position = d->padding + 1;
    d->fill_activation = LOCUS_GELU;
    if (d->most_tokens <= d->first_position)
        return model_setting_refuse(s, "max_position_embeddings", "more than pad_token_id + 1",
                                    error);
    if (d->positions > 0) d->most_tokens -= d->first_position;
    return LOCUS_OK;
}

static const char *const prefixes[] = {"roberta.", "", NULL};

const model_family model_family_roberta = {
    .type = "roberta",
    .prefixes = prefixes,
    .names = model_bert_names,
    .describe = model_describe_roberta,
};

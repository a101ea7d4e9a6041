/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/bert.h"

/* ELECTRA: BERT whose embeddings may be narrower than its layers. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_describe_bert(s, d, error));
    d->head_activation = d->fill_activation = LOCUS_GELU;
    return model_setting_integer(s, "embedding_size", 128, 1, 65536, &d->embedding_width, error);
}

static const char *const prefixes[] = {"electra.", "", NULL};

const model_family model_family_electra = {
    .type = "electra",
    .prefixes = prefixes,
    .names = model_bert_names,
    .describe = describe,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/families/t5.h"

/* umT5: mT5 with a table of biases in every layer. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_describe_t5(s, 250112, "gated-gelu", d, error));
    d->bias_each_layer = 1;
    return LOCUS_OK;
}

static const model_ids ids = {.start = 0, .begin = -1, .end = 1, .forced_end = -1};

const model_family model_family_umt5 = {
    .type = "umt5",
    .prefixes = model_t5_prefixes,
    .names = model_t5_names,
    .describe = describe,
    .ids = &ids,
    .decoder = &model_t5_decoder,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families/t5.h"

/* mT5: T5 v1.1 on another vocabulary. */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    return model_describe_t5(s, 250112, "gated-gelu", d, error);
}

static const model_ids ids = {.start = 0, .begin = -1, .end = 1, .forced_end = -1};

const model_family model_family_mt5 = {
    .type = "mt5",
    .prefixes = model_t5_prefixes,
    .names = model_t5_names,
    .describe = describe,
    .ids = &ids,
    .decoder = &model_t5_decoder,
};

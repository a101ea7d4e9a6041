/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families/bert.h"

/* RoBERTa on another vocabulary. */

static const char *const prefixes[] = {"roberta.", "", NULL};

const model_family model_family_xlm_roberta = {
    .type = "xlm-roberta",
    .prefixes = prefixes,
    .names = model_bert_names,
    .describe = model_describe_roberta,
};

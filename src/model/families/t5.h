/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_FAMILIES_T5_H
#define LOCUS_MODEL_FAMILIES_T5_H

/* What T5's kin take over from it. */

#include "model/description.h"

extern const model_family model_t5_decoder; /* of all of them */
extern const model_name model_t5_names[];
extern const char *const model_t5_prefixes[];

/* `vocabulary` and `gated` are what the family has where its config.json is silent. */
locus_status model_describe_t5(const model_settings *settings, int64_t vocabulary,
                               const char *feed_forward, model_description *description,
                               locus_error *error);

#endif

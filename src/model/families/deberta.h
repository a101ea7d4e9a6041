/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_FAMILIES_DEBERTA_H
#define LOCUS_MODEL_FAMILIES_DEBERTA_H

/* What v1 takes over from v2 and v3. */

#include "model/description.h"

/* Sizes, terms, table of relative positions and positions at the input; no convolution. */
locus_status model_describe_deberta(const model_settings *settings, model_description *description,
                                    locus_error *error);

#endif

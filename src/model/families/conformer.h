/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_FAMILIES_CONFORMER_H
#define LOCUS_MODEL_FAMILIES_CONFORMER_H

/* What encoders of sound made of conformer blocks have in common. */

#include "model/description.h"

extern const model_name model_conformer_names[];

/* All but the features and the convolution: sizes, and position_embeddings_type. */
locus_status model_describe_conformer(const model_settings *settings, model_description *d,
                                      const char *positions, locus_error *error);

#endif

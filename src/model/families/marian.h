/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_FAMILIES_MARIAN_H
#define LOCUS_MODEL_FAMILIES_MARIAN_H

/* What the encoder-decoders of fairseq's shape share: Marian, BART, mBART, Pegasus, M2M100. */

#include "model/description.h"

extern const model_name model_marian_names[], model_marian_decoder_names[];
extern const char *const model_marian_prefixes[];

/* Sizes, activation and words of one stack: 0 the encoder, 1 the decoder. Norms behind the
 * sublayers, biases; positions are the family's. */
locus_status model_read_marian_stack(const model_settings *s, int stack, model_description *d,
                                     locus_error *error);

/* What makes a stack the decoder of one whose words are shared, beside its sizes. */
locus_status model_read_marian_decoder(const model_settings *s, model_description *d,
                                       locus_error *error);

/* Norms before the sublayers, and one behind the last. */
static inline void model_set_norm_first(model_description *d) { d->norm_first = d->final_norm = 1; }

/* Learned positions, of which the first is row 2; embeddings go through a norm: BART's. */
locus_status model_read_bart_positions(const model_settings *s, model_description *d,
                                       locus_error *error);

#endif

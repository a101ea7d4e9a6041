/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_PRECISION_H
#define LOCUS_MODEL_PRECISION_H

/* What of a model is kept as integers: the one place that says so. */

#include "model/program.h"

/* The kind that input `input` of operator o is kept as; LOCUS_QUANT_KINDS: in float. That a
 * weight holds numbers that cannot be quantized is found when it is read: it stays in float, too. */
locus_quant_kind precision_of(const program *p, const op *o, int input);

/* Whether that input is packed in one of these ways already. */
int precision_packed(const program *p, const op *o, int input);

/* The name that is not known, or what does not go with it, refused in one line. */
locus_status precision_set(program *p, const locus_model_config *config, locus_error *error);

#endif

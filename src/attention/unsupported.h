/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_UNSUPPORTED_H
#define LOCUS_ATTENTION_UNSUPPORTED_H

#include "schemes/scheme.h"

/* What the oracle can do and the kernels cannot yet: one line, LOCUS_ERR_UNSUPPORTED. */
locus_status locus_refuse_unsupported(const locus_tensors *shapes, locus_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_DIGEST_H
#define LOCUS_LAB_DIGEST_H

#include <locus/status.h>
#include <stdint.h>

/* Hands every weight of a small causal model with this scheme, after a few steps of AdamW, to `add`:
 * embeddings, norms, linear maps, GELU, attention, cross entropy and their gradients are in it. The
 * same numbers are trained on everywhere. */
typedef void (*lab_digest_add)(void *context, const float *numbers, int64_t count);
locus_status lab_digest(const char *scheme, lab_digest_add add, void *context, locus_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_TOP_H
#define LOCUS_NN_TOP_H

/* The greatest entries of a row of logits. NaN counts as greater than every number, as in
 * PyTorch; of equal entries the first comes first. */

#include <stdint.h>

/* The place of the greatest of `width` > 0 entries. */
int64_t locus_argmax(const float *x, int64_t width);

/* The places of the `count` greatest of `width` entries, greatest first; as many as there are where
 * width is less. Returns how many. */
int64_t locus_top(int64_t *places, int64_t count, const float *x, int64_t width);

#endif

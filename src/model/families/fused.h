/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_FAMILIES_FUSED_H
#define LOCUS_MODEL_FAMILIES_FUSED_H

/* q, k and v of x by one tensor NAME.weight, stored group by group: the heads of q that share a head of k
 * and v, that of k, that of v. */

#include "model/blocks.h"

value fused_qkv(builder *b, value x, const char *name, int64_t layer, int biased);

#endif

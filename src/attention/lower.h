/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_LOWER_H
#define LOCUS_ATTENTION_LOWER_H

/* From a scheme's hooks to tables: the only place where the two meet. */

#include "attention/plan.h"

/* What depends on shapes alone: indices by distance, rotations, gains. */
locus_status locus_lower(locus_plan *plan, const locus_tensors *shapes, locus_error *error);
void locus_lower_free(locus_plan *plan);

/* Additive values by z for every head: what T5, ALiBi, KERPLE and TUPE-R come down to.
 * A head has locus_bias_room floats, z = 0 stands behind `distances` zeros, and as many follow
 * the last; nothing is done where the scheme has no bias. */
static inline int64_t locus_bias_room(const locus_plan *plan, const locus_geometry *geometry)
{
    return plan->has_bias ? plan->span + 2 * geometry->distances : 0;
}
void locus_lower_biases(const locus_plan *plan, const locus_geometry *geometry,
                        const locus_tensors *in, float *bias);

/* One head's values at z = 0, or NULL. */
static inline const float *locus_head_bias(const locus_plan *plan, const locus_geometry *geometry,
                                           const float *bias, int64_t head)
{
    if (!plan->has_bias) return NULL;
    return bias + head * locus_bias_room(plan, geometry) + geometry->distances;
}

/* Those of one head for z in [from, to); 0 where no distance is. */
void locus_lower_bias(const locus_plan *plan, const locus_tensors *in, int64_t head, int64_t from,
                      int64_t to, float *values);

#endif

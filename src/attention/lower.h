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
    return plan->has_bias ? plan->table_span + 2 * geometry->distances : 0;
}
void locus_lower_biases(const locus_plan *plan, const locus_geometry *geometry,
                        const locus_tensors *in, float *bias);

/* Values at z = 0 of head 0, NULL: none; and floats from a head to the next. */
typedef struct locus_biases {
    const float *first;
    int64_t stride;
} locus_biases;

static inline locus_biases locus_biases_at(const locus_plan *plan, const locus_geometry *geometry,
                                           const float *bias)
{
    if (!plan->has_bias || bias == NULL) return (locus_biases){NULL, 0};
    return (locus_biases){bias + geometry->distances, locus_bias_room(plan, geometry)};
}

/* Those of one shape of a ragged batch, among those of the whole. */
static inline locus_biases locus_biases_of_shape(locus_biases whole, const locus_plan *plan)
{
    if (whole.first == NULL || plan->table_span == 0) return (locus_biases){NULL, 0};
    return (locus_biases){whole.first + locus_shape_start(plan), whole.stride};
}

/* One head's values at z = 0, or NULL. */
static inline const float *locus_head_bias(locus_biases biases, int64_t head)
{
    return biases.first != NULL ? biases.first + head * biases.stride : NULL;
}

/* Numbers that a bias by pair shares; 0 where there are none. `numbers` of the call, made anew. */
static inline int64_t locus_shared_count(const locus_plan *plan)
{
    const locus_scheme *scheme = plan->call.scheme;
    const int shares = plan->has_pair_bias && scheme->share != NULL;
    return shares ? scheme->shared_count(&plan->call, &plan->shapes) : 0;
}
static inline double *locus_share_bias(const locus_plan *plan, const locus_tensors *in,
                                       double *numbers)
{
    if (locus_shared_count(plan) == 0) return NULL;
    plan->call.scheme->share(&plan->call, in, numbers);
    return numbers;
}

/* Those of one head for z in [from, to); 0 where no distance is. */
void locus_lower_bias(const locus_plan *plan, const locus_tensors *in, int64_t head, int64_t from,
                      int64_t to, float *values);

#endif

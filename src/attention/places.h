/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_PLACES_H
#define LOCUS_ATTENTION_PLACES_H

/* Positions that a call brings, as tiles read them. Tables are then indexed by the distance of two
 * positions that may lie anywhere, so no diagonal of a tile means anything: pair (m, n) is looked
 * up at z = key[n] + query[m], see locus_place_axis. */

#include "attention/plan.h"

/* Ranges of distances, and where the rows of queries and keys stand. A bias by distance whose
 * distances are too many for a table becomes one by pair. */
locus_status locus_lower_places(locus_plan *plan, locus_error *error);
void locus_places_free(locus_plan *plan);

/* Entries of two axes: those of the first table, then those of the second. */
locus_status locus_lower_two_tables(locus_plan *plan);

/* z of a pair. */
static inline int64_t locus_place_z(const locus_plan *plan, int axis, int64_t b, int64_t m,
                                    int64_t n)
{
    const locus_place_axis *p = &plan->places[axis];
    const int64_t z = (int64_t)p->key[b * p->key_batch + n] + p->query[b * p->query_batch + m];
    return z < 0 ? 0 : z >= p->count ? p->count - 1 : z;
}

#endif

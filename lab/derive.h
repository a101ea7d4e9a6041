/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_DERIVE_H
#define LOCUS_LAB_DERIVE_H

#include "lab/results.h"

/* Add what follows from the numbers of the runs, seed by seed, and the means of everything; sort:
 *     bpc_ratio            text, at k n: bpc(k n) / bpc(n)
 *     steps_to_learned     masked: steps until the validation loss is that of `learned` at its end;
 *                          undefined where it never is
 *     mean_reciprocal_rank task `all`: ranks.h
 * A number that is there twice is refused. */
locus_status lab_derive(lab_results *results,
                        locus_status (*add)(lab_results *, const lab_value *, locus_error *),
                        locus_error *error);

#endif

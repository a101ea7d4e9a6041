/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_GRADIENTS_H
#define LOCUS_ATTENTION_GRADIENTS_H

/* The gradient of one tile's scores. With p = e^(s - lse), a = p after dropout:
 *     dA = dout . (v + RV);   ds = p (drop(dA) - dout . out)
 * Where it goes: spread.h. */

#include "attention/backward_worker.h"

/* Load the query tile from row `first` on, with its dout, lse and dout . out. */
void locus_gradient_rows_begin(locus_backward_worker *worker, int64_t first,
                               locus_gradient_rows *rows);

/* worker->tile; 0: no pair of it is seen. */
int locus_gradient_tile_begin(locus_backward_worker *worker, const locus_gradient_rows *rows,
                              int64_t key_tile);

/* scores.score = P, grad = dS, dropped = P after dropout. */
void locus_gradient_tile(locus_backward_worker *worker, const locus_gradient_rows *rows);

#endif

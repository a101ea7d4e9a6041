/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_SPREAD_H
#define LOCUS_ATTENTION_SPREAD_H

/* The gradient of a tile's scores goes to what made them; a and ds as in gradients.h:
 *     dv_n += a dout_m                      dRV[row] += a dout_m
 *     dq_m += c ds k_n  + c ds RK[row]      dk_n += ds c (q_m + u) + ds c RQ[row]
 *     dRK[row] += ds c (q_m + w)            dRQ[row] += c ds k_n
 *     dpos_q_m += c ds pos_k_n              dpos_k_n += ds c pos_q_m
 *     db(delta) += ds                       dcls += ds where it replaced the position part */

#include "attention/backward_worker.h"

/* dk and dv of the worker's task: whether they hold sums already; zeros where no sum was written. */
void locus_spread_keys_begin(locus_backward_worker *worker, int hold_sums);
void locus_spread_keys_end(const locus_backward_worker *worker);

/* One query tile: before its first key tile, each tile, and what is left in the folds. */
void locus_spread_begin(locus_backward_worker *worker, locus_gradient_rows *rows);
void locus_spread_tile(locus_backward_worker *worker, locus_gradient_rows *rows);
void locus_spread_end(locus_backward_worker *worker, locus_gradient_rows *rows);

/* Add dS of the tile to the gradient of bias_dense. */
void locus_spread_dense(const locus_backward_worker *worker);

#endif

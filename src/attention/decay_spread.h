/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_DECAY_SPREAD_H
#define LOCUS_ATTENTION_DECAY_SPREAD_H

/* Backward through decays. With dc the gradient of the content row c and dk of a key, both of this
 * head alone, the sums of decays have
 *     dP_m += c dc,  dP_n -= k dk     channel by channel. */

#include "attention/backward_worker.h"
#include "attention/decays.h"

/* dS of the tile goes to dcontent and to the slot's dk; `keys` as they were decayed. */
void locus_spread_decayed(const locus_backward_worker *worker, locus_gradient_rows *rows,
                          const locus_operand *keys, const locus_operand *content);

/* sums[d] += sign row[d] drow[d]; nothing where no gradient came, whatever the row holds. */
void locus_decay_add_products(double *sums, double sign, const float *row, const float *drow,
                              int64_t count);

/* sums of the rows' positions += c dc, before dc is turned into dq. */
void locus_decay_finish_rows(const locus_backward_worker *worker, const locus_gradient_rows *rows);

#endif

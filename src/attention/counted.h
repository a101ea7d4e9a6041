/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_COUNTED_H
#define LOCUS_ATTENTION_COUNTED_H

/* Positions that a query counts. For the keys t that row m sees, with s_t = c q_m . k_t,
 *     g_t = sigmoid(s_t),  p_n = min(R - 1, sum of g_t over n <= t <= m),  i = floor(p), w = p - i
 *     s_n += (1 - w) y_i + w y_(i+1),                                      y_r = q_m . RK_r
 * A strip holds y for all rows of the table, and key tiles come from the near to the far, so that
 * the count goes on from tile to tile.
 *
 * Backward, with ds the gradient of the score:
 *     dy_i += (1 - w) ds,  dy_(i+1) += w ds,  dp_n = ds (y_(i+1) - y_i), 0 where p was cut
 *     ds_t += g_t (1 - g_t) (sum of dp_n over n <= t)
 * The last sum runs the other way: it is that of all keys, which a pass of its own finds before,
 * less that of the keys behind t. */

#include "attention/scores.h"

/* Rooms of scores->counted: those of the rows, and for the backward pass those of the pairs. */
void locus_counted_carve(const locus_plan *plan, const locus_geometry *geometry, int backward,
                         locus_arena *arena, locus_counted *counted);

/* Before the nearest key tile. */
void locus_counted_begin(const locus_scores *scores);

/* score[i][j], which holds s_t, += the part above. */
void locus_add_counted(const locus_scores *scores, const locus_tile *tile);

/* total = the sums of dp of all tiles, from 0; grad is dS below a softcap. */
void locus_counted_begin_sum(const locus_scores *scores);
void locus_counted_sum(const locus_scores *scores, const locus_tile *tile, const float *grad);

/* strips[i][r] += dy; then grad becomes the gradient of the content product. */
void locus_counted_spread(const locus_scores *scores, const locus_tile *tile, float *grad,
                          const locus_strip *strips);

#endif

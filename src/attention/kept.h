/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_KEPT_H
#define LOCUS_ATTENTION_KEPT_H

/* The weights of a short call, kept in results.weights by the forward pass for the backward pass,
 * which then needs no scores: four products instead of five. */

#include "attention/softmax_rows.h"

/* Forward, after the softmax of a tile: its rows, whole, where it is the only one in their reach;
 * else e^(s - max) for the maximum so far. `first`: no tile before it was seen. */
void locus_kept_step(const head_context *head, const locus_queries *queries, const locus_tile *tile,
                     const float *scores, const locus_softmax_rows *rows, int first,
                     const locus_tensor *weights);

/* After the last tile; `seen`: there was one. */
void locus_kept_end(const head_context *head, const locus_queries *queries,
                    const locus_softmax_rows *rows, int seen, const locus_tensor *weights);

/* Backward: the weights of a tile, rows of `to` as far apart as those of its scores. */
void locus_kept_load(const head_context *head, const locus_tile *tile, const locus_tensor *weights,
                     float *to);

#endif

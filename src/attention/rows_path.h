/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_ROWS_PATH_H
#define LOCUS_ATTENTION_ROWS_PATH_H

/* Few queries over many keys: what counts is that keys and values are read once, and by all
 * threads.
 *
 *     task = (batch entry, split of the keys, group of query heads that share keys)
 *     a key tile serves every head of the group before the next tile is read
 *     the splits of a head are joined in ascending order:
 *         max = max max_s,   sum = sum e^(max_s - max) sum_s,   out likewise
 *
 * The splits are a function of the number of keys, of kv heads, and of what heads share by
 * position, so threads change no bits. */

#include "attention/forward_call.h"

/* Bytes of one thread's scratch, and floats of call->partial. */
size_t locus_rows_path_bytes(const locus_plan *plan);
int64_t locus_rows_path_partial(const locus_plan *plan);

/* Its tasks; then, where call->partial is not empty, the splits of each head are joined. */
int64_t locus_rows_path_tasks(const locus_plan *plan);
void locus_rows_path_run(const locus_forward_call *call, int64_t task, uint32_t thread);
void locus_rows_path_join(const locus_forward_call *call, int64_t head);

/* All of them. */
void locus_rows_path(const locus_forward_call *call);

#endif

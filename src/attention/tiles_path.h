/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_TILES_PATH_H
#define LOCUS_ATTENTION_TILES_PATH_H

/* Many queries: keys and tables are packed once for all the query tiles of a task.
 *
 *     task = (batch entry, head, chunk of its query tiles)
 *
 * Rows are independent of each other, so the cut decides nothing about the bits. */

#include "attention/forward_call.h"

/* Bytes of one thread's scratch. */
size_t locus_tiles_path_bytes(const locus_plan *plan);

int64_t locus_tiles_path_tasks(const locus_plan *plan);
void locus_tiles_path_run(const locus_forward_call *call, int64_t task, uint32_t thread);

#endif

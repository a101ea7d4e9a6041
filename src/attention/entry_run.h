/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_ENTRY_RUN_H
#define LOCUS_ATTENTION_ENTRY_RUN_H

/* Where entries are consecutive, plan->run_from <= z < plan->run_to, a tile needs no fold: the
 * entry of pair (i, j) is that of z = z_00 + j - i, so
 *     T by row and entry is T[i][z - z_00 + i]      rows one float more than `stride` apart
 * The rows, or the entries, of a register tile share the range that any of them uses; next to the
 * tile's columns lie zeros, as many as that may read. */

#include "attention/entries.h"

/* Zeros next to the columns of T, which has room for LOCUS_LANES floats before its first row. */
void locus_entry_run_begin(const head_context *head, const locus_tile *tile, float *T);

/* to[i] += sum_j T[i][j] entry(i, j); locus_patch adds the bad entries. */
void locus_entry_run_to_rows(const head_context *head, const locus_tile *tile, const float *T,
                             const locus_operand *entries, locus_sums to, int64_t width);

/* to[entry(i, j)] += sum T[i][j] from_i */
void locus_entry_run_to_entries(const head_context *head, const locus_tile *tile, const float *T,
                                const locus_operand *from, locus_sums to, int64_t width);

#endif

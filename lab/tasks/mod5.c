/* SPDX-License-Identifier: Apache-2.0 */
/* T6, counting mod 5: BOS steps SEP y EOS, steps out of 0, +1, -1, y = their sum mod 5. The second
 * negative control. */
#include "lab/task.h"

enum { STEPS = 3, RESIDUES = 5, RESIDUE = LAB_SYMBOL + STEPS, MOST = 2048 };

static int64_t tokens(int64_t length) { return length + 3; }

static void draw(const lab_draw *d, train_stream *stream, const lab_row *row)
{
    static const int32_t change[STEPS] = {0, 1, RESIDUES - 1};
    int32_t ids[MOST + 4], sum = 0;
    const int64_t n = d->length;
    ids[0] = LAB_BOS;
    lab_symbols(stream, ids + 1, n, STEPS, LAB_SYMBOL);
    for (int64_t i = 1; i <= n; i++) sum = (sum + change[ids[i] - LAB_SYMBOL]) % RESIDUES;
    ids[n + 1] = LAB_SEP;
    ids[n + 2] = RESIDUE + sum;
    ids[n + 3] = LAB_EOS;
    lab_row_shift(row, ids, n + 2);
}

const lab_task lab_task_mod5 = {
    .name = "mod5",
    .number = "T6",
    .title = "count up and down mod 5 (a negative control)",
    .measure = LAB_ANSWER,
    .vocabulary = RESIDUE + RESIDUES,
    .length = 16,
    .longest = MOST,
    .chance = 1.0 / RESIDUES,
    .decay = 0.01,
    .tokens = tokens,
    .draw = draw,
};

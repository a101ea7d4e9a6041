/* SPDX-License-Identifier: Apache-2.0 */
/* T5, parity: BOS bits SEP y EOS, y = the sum of the bits mod 2. A negative control: no scheme is
 * known to carry it beyond L, so one that does points at a leak. */
#include "lab/task.h"

enum { MOST = 2048 };

static int64_t tokens(int64_t length) { return length + 3; }

static void draw(const lab_draw *d, train_stream *stream, const lab_row *row)
{
    int32_t ids[MOST + 4], sum = 0;
    const int64_t n = d->length;
    ids[0] = LAB_BOS;
    lab_symbols(stream, ids + 1, n, 2, LAB_SYMBOL);
    for (int64_t i = 1; i <= n; i++) sum ^= ids[i] - LAB_SYMBOL;
    ids[n + 1] = LAB_SEP;
    ids[n + 2] = LAB_SYMBOL + sum;
    ids[n + 3] = LAB_EOS;
    lab_row_shift(row, ids, n + 2);
}

const lab_task lab_task_parity = {
    .name = "parity",
    .number = "T5",
    .title = "parity of bits (a negative control)",
    .measure = LAB_ANSWER,
    .vocabulary = LAB_SYMBOL + 2,
    .length = 16,
    .longest = MOST,
    .chance = 0.5,
    .decay = 0.01,
    .tokens = tokens,
    .draw = draw,
};

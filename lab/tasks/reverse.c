/* SPDX-License-Identifier: Apache-2.0 */
/* T2, reverse: y = x backwards. The distance to the symbol that comes next changes by two at every
 * step. */
#include "lab/task.h"

enum { SYMBOLS = 32, MOST = 1024 };

static void draw(const lab_draw *d, train_stream *stream, const lab_row *row)
{
    int32_t x[MOST];
    lab_symbols(stream, x, d->length, SYMBOLS, LAB_SYMBOL);
    lab_copy_row(row, x, d->length, 1);
}

const lab_task lab_task_reverse = {
    .name = "reverse",
    .number = "T2",
    .title = "write symbols backwards",
    .measure = LAB_ROWS,
    .vocabulary = LAB_SYMBOL + SYMBOLS,
    .length = 16,
    .longest = MOST,
    .chance = 1.0 / SYMBOLS,
    .decay = 0.01,
    .tokens = lab_tokens_of_pairs,
    .draw = draw,
};

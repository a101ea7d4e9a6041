/* SPDX-License-Identifier: Apache-2.0 */
/* T1, copy: y = x, symbols with repeats. Which of the equal symbols was read last cannot be told
 * from their content: the model has to keep a place in x, at a distance that grows with n. */
#include "lab/task.h"

enum { SYMBOLS = 32, MOST = 1024 };

static void draw(const lab_draw *d, train_stream *stream, const lab_row *row)
{
    int32_t x[MOST];
    lab_symbols(stream, x, d->length, SYMBOLS, LAB_SYMBOL);
    lab_copy_row(row, x, d->length, 0);
}

const lab_task lab_task_copy = {
    .name = "copy",
    .number = "T1",
    .title = "copy symbols that may repeat",
    .measure = LAB_ROWS,
    .vocabulary = LAB_SYMBOL + SYMBOLS,
    .length = 16,
    .longest = MOST,
    .chance = 1.0 / SYMBOLS,
    .decay = 0.01,
    .tokens = lab_tokens_of_pairs,
    .draw = draw,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* T1u, copy without repeats: the symbol after the one just written can be found by content alone.
 * A scheme that fails at copy and not here fails for want of positions. */
#include "lab/task.h"

enum { SYMBOLS = 128 };

static void draw(const lab_draw *d, train_stream *stream, const lab_row *row)
{
    int32_t all[SYMBOLS];
    for (int32_t i = 0; i < SYMBOLS; i++) all[i] = LAB_SYMBOL + i;
    train_shuffle(stream, all, SYMBOLS);
    lab_copy_row(row, all, d->length, 0);
}

const lab_task lab_task_copy_unique = {
    .name = "copy_unique",
    .number = "T1u",
    .title = "copy symbols that do not repeat",
    .measure = LAB_ROWS,
    .vocabulary = LAB_SYMBOL + SYMBOLS,
    .length = 16,
    .longest = SYMBOLS,
    .chance = 1.0 / SYMBOLS,
    .decay = 0.01,
    .tokens = lab_tokens_of_pairs,
    .draw = draw,
};

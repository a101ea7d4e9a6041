/* SPDX-License-Identifier: Apache-2.0 */
/* T7, look back: y_t = x_(t-k). The first token names k, and so does every symbol, which there is
 * once for each k: with one layer a query knows its own token and nothing else. k goes round over
 * the rows. Loss at every t that has a symbol k before it. */
#include "lab/task.h"

enum { SYMBOLS = 32, OFFSETS = 6, MARK = LAB_SYMBOL + OFFSETS * SYMBOLS };

static int64_t tokens(int64_t length) { return length; }

static void draw(const lab_draw *d, train_stream *stream, const lab_row *row)
{
    const int64_t round = d->test ? 0 : d->step; /* test rows are counted by row % OFFSETS */
    const int64_t which = (d->row + round) % OFFSETS, back = (int64_t)1 << which;
    row->token[0] = (int32_t)(MARK + which);
    lab_symbols(stream, row->token + 1, row->tokens - 1, SYMBOLS,
                (int32_t)(LAB_SYMBOL + which * SYMBOLS));
    for (int64_t t = 0; t < row->tokens; t++) {
        const int counts = t > back;
        row->target[t] = counts ? row->token[t - back] : LAB_PAD;
        row->weight[t] = counts ? 1.0f : 0.0f;
    }
}

const lab_task lab_task_lookback = {
    .name = "lookback",
    .number = "T7",
    .title = "name the symbol k tokens back",
    .one_length = 1,
    .measure = LAB_LOOK_BACK,
    .vocabulary = MARK + OFFSETS,
    .length = 64,
    .chance = 1.0 / SYMBOLS,
    .decay = 0.01,
    .tokens = tokens,
    .draw = draw,
};

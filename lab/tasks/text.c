/* SPDX-License-Identifier: Apache-2.0 */
/* T8, text: the next byte. A window b_1 .. b_n of the training part behind BOS; with memory, row b
 * reads the b-th of B equal parts window by window, round and round, each token followed by the
 * next byte. */
#include "lab/task.h"

enum { BYTES = 256, BOS = BYTES };

static int64_t tokens(int64_t length) { return length; }

static void window(const lab_row *row, const unsigned char *bytes, int continues)
{
    for (int64_t t = 0; t < row->tokens; t++) {
        row->token[t] = t > 0 || continues ? bytes[continues ? t : t - 1] : BOS;
        row->target[t] = bytes[continues ? t + 1 : t];
        row->weight[t] = 1.0f;
    }
}

static void draw(const lab_draw *d, train_stream *stream, const lab_row *row)
{
    const size_t n = (size_t)d->length, bytes = d->corpus->train_bytes;
    if (d->test) { /* windows one after the other */
        window(row, d->corpus->validation + d->row * d->stride + d->at, d->memory > 0);
        return;
    }
    if (d->memory == 0) {
        window(row, d->corpus->train + train_below(stream, (uint32_t)(bytes - n + 1)), 0);
        return;
    }
    const size_t part = bytes / (size_t)d->rows, windows = (part - 1) / n;
    const size_t at = (size_t)d->row * part + (d->step - 1) % windows * n;
    window(row, d->corpus->train + at, 1);
}

const lab_task lab_task_text = {
    .name = "text",
    .number = "T8",
    .title = "predict the next byte of a text",
    .reads_text = 1,
    .one_length = 1,
    .measure = LAB_TEXT,
    .vocabulary = BYTES + 1,
    .length = 128,
    .chance = 1.0 / BYTES,
    .decay = 0.1,
    .tokens = tokens,
    .draw = draw,
};

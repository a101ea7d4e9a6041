/* SPDX-License-Identifier: Apache-2.0 */
/* T9, masked text: an encoder fills in 15 % of the bytes, chosen in spans of geometric length
 * (mean 3). A chosen byte becomes MASK in 80 %, a random byte in 10 % and itself in 10 % of the
 * cases; the loss counts all of them. Without order in the scores the letters are a bag. */
#include "lab/task.h"

enum { BYTES = 256, MASK = BYTES, SPAN = 3 };

static int64_t tokens(int64_t length) { return length; }

static int32_t shown(train_stream *stream, int32_t byte)
{
    const uint32_t tenth = train_below(stream, 10);
    if (tenth < 8) return MASK;
    return tenth == 8 ? (int32_t)train_below(stream, BYTES) : byte;
}

/* Chosen bytes: at least one, 15 % rounded to the nearest. */
static void choose(train_stream *stream, const lab_row *row)
{
    int64_t wanted = (15 * row->tokens + 50) / 100;
    for (int64_t t = 0; t < row->tokens; t++) row->weight[t] = 0.0f;
    if (wanted < 1) wanted = 1;
    while (wanted > 0) {
        int64_t t = train_below(stream, (uint32_t)row->tokens);
        do {
            if (t == row->tokens || row->weight[t] != 0.0f) break;
            row->weight[t++] = 1.0f;
            wanted--;
        } while (wanted > 0 && train_below(stream, SPAN) != 0);
    }
}

static void draw(const lab_draw *d, train_stream *stream, const lab_row *row)
{
    const unsigned char *bytes = d->test ? d->corpus->validation : d->corpus->train;
    const size_t count = d->test ? d->corpus->validation_bytes : d->corpus->train_bytes;
    bytes += train_below(stream, (uint32_t)(count - (size_t)row->tokens + 1));
    choose(stream, row);
    for (int64_t t = 0; t < row->tokens; t++) {
        row->target[t] = bytes[t];
        row->token[t] = row->weight[t] != 0.0f ? shown(stream, bytes[t]) : bytes[t];
    }
}

const lab_task lab_task_masked = {
    .name = "masked",
    .number = "T9",
    .title = "fill in masked bytes of a text",
    .encoder = 1,
    .reads_text = 1,
    .one_length = 1,
    .measure = LAB_MASKED,
    .vocabulary = BYTES + 1,
    .length = 128,
    .chance = 1.0 / BYTES,
    .decay = 0.1,
    .tokens = tokens,
    .draw = draw,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* T3, recall: pairs of a key and a value, then all keys in another order, each followed by its
 * value: BOS k1 v1 .. kn vn SEP k v k v .. EOS. The values of the second half count. A head that
 * looks one token back and one that matches content are enough. */
#include "lab/task.h"

enum { KEYS = 32, VALUES = 32 };

static int64_t tokens(int64_t length) { return 4 * length + 2; }

static void draw(const lab_draw *d, train_stream *stream, const lab_row *row)
{
    int32_t keys[KEYS], order[KEYS], value_of[KEYS], ids[4 * KEYS + 3];
    const int64_t n = d->length;
    int64_t used = 0;
    for (int32_t i = 0; i < KEYS; i++) keys[i] = i;
    train_shuffle(stream, keys, KEYS);
    lab_symbols(stream, value_of, KEYS, VALUES, LAB_SYMBOL + KEYS);
    for (int64_t i = 0; i < n; i++) order[i] = keys[i];
    train_shuffle(stream, order, (uint32_t)n);
    ids[used++] = LAB_BOS;
    for (int64_t i = 0; i < 2 * n; i++) {
        const int32_t key = i < n ? keys[i] : order[i - n];
        if (i == n) ids[used++] = LAB_SEP;
        ids[used++] = LAB_SYMBOL + key;
        ids[used++] = value_of[key];
    }
    ids[used] = LAB_EOS;
    lab_row_shift(row, ids, 2 * n + 2);
    for (int64_t t = 0; t < row->tokens; t++)
        if (row->target[t] < LAB_SYMBOL + KEYS) row->weight[t] = 0.0f;
}

const lab_task lab_task_recall = {
    .name = "recall",
    .number = "T3",
    .title = "recall the value of a key",
    .measure = LAB_ROWS,
    .vocabulary = LAB_SYMBOL + KEYS + VALUES,
    .length = 16,
    .longest = KEYS,
    .chance = 1.0 / VALUES,
    .decay = 0.01,
    .tokens = tokens,
    .draw = draw,
};

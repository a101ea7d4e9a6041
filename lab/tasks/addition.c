/* SPDX-License-Identifier: Apache-2.0 */
/* T4, addition: BOS a + b = c EOS, least digit first, n digits in a and b, n + 1 in c. Two places
 * have to be read at once, at distances that depend on n. */
#include "lab/task.h"

enum { DIGITS = 10, PLUS = LAB_SYMBOL + DIGITS, EQUALS, PAST, MOST = 512 };

static int64_t tokens(int64_t length) { return 3 * length + 4; }

static void draw(const lab_draw *d, train_stream *stream, const lab_row *row)
{
    int32_t ids[3 * MOST + 5];
    const int64_t n = d->length;
    int32_t *a = ids + 1, *b = a + n + 1, *c = b + n + 1, carry = 0;
    ids[0] = LAB_BOS;
    a[n] = PLUS;
    b[n] = EQUALS;
    lab_symbols(stream, a, n, DIGITS, LAB_SYMBOL);
    lab_symbols(stream, b, n, DIGITS, LAB_SYMBOL);
    for (int64_t i = 0; i < n; i++) {
        const int32_t sum = a[i] + b[i] - 2 * LAB_SYMBOL + carry;
        c[i] = LAB_SYMBOL + sum % DIGITS;
        carry = sum / DIGITS;
    }
    c[n] = LAB_SYMBOL + carry;
    c[n + 1] = LAB_EOS;
    lab_row_shift(row, ids, 2 * n + 3);
}

const lab_task lab_task_addition = {
    .name = "addition",
    .number = "T4",
    .title = "add two numbers, least digit first",
    .measure = LAB_ROWS,
    .vocabulary = PAST,
    .length = 16,
    .longest = MOST,
    .chance = 1.0 / DIGITS,
    .decay = 0.01,
    .tokens = tokens,
    .draw = draw,
};

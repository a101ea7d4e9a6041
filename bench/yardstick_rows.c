/* SPDX-License-Identifier: Apache-2.0 */
/* Between pairs (query, key) and rows of a table; and the rotations of q and k. */
#include <string.h>

#include "bench/yardstick.h"

enum { BLOCK = 16 };

/* ---- by query ---- */

/* Where row i leaves the first table row and reaches the last one. */
typedef struct stretch {
    int64_t first, last; /* keys in between: first .. last - 1 */
} stretch;

static int64_t bounded(int64_t x, int64_t most) { return x < 0 ? 0 : x > most ? most : x; }

static stretch stretch_of(const yardstick *y, int64_t i)
{
    const int64_t start = y->T - 1 - i; /* of key 0, as an index of map */
    if (y->rule == YARDSTICK_BAND)
        return (stretch){bounded(i - y->left, y->T), bounded(i + y->right + 1, y->T)};
    return (stretch){bounded(y->near - start, y->T), bounded(y->far - start, y->T)};
}

void yardstick_add_row(const yardstick *y, float *s, const float *products, int64_t i)
{
    const int64_t start = y->T - 1 - i;
    if (y->rule == YARDSTICK_STRIP) {
        y->loops->add(s, products + start, y->T);
        return;
    }
    const stretch in = stretch_of(y, i);
    const int band = y->rule == YARDSTICK_BAND;
    y->loops->shift(s, products[band ? 0 : y->map[0]], in.first);
    if (band)
        y->loops->add(s + in.first, products + in.first - i + y->left, in.last - in.first);
    else
        y->loops->gather(s + in.first, products, y->map + start + in.first, in.last - in.first);
    y->loops->shift(s + in.last, products[band ? y->R - 1 : y->map[2 * y->T - 2]], y->T - in.last);
}

void yardstick_fold_row(const yardstick *y, const float *x, float *folded, int64_t i)
{
    const int64_t start = y->T - 1 - i;
    memset(folded, 0, (size_t)y->R * sizeof *folded);
    if (y->rule == YARDSTICK_STRIP) {
        memcpy(folded + start, x, (size_t)y->T * sizeof *x);
        return;
    }
    const stretch in = stretch_of(y, i);
    const int band = y->rule == YARDSTICK_BAND;
    if (band)
        memcpy(folded + in.first - i + y->left, x + in.first,
               (size_t)(in.last - in.first) * sizeof *x);
    else
        y->loops->scatter(folded, x + in.first, y->map + start + in.first, in.last - in.first);
    folded[band ? 0 : y->map[0]] += y->loops->sum(x, in.first);
    folded[band ? y->R - 1 : y->map[2 * y->T - 2]] += y->loops->sum(x + in.last, y->T - in.last);
}

/* ---- by key: across rows of the scores, so block by block ---- */

typedef struct block {
    int64_t i, j, rows, columns;
} block;

static block block_at(const yardstick *y, int64_t i, int64_t j)
{
    return (block){i, j, y->T - i < BLOCK ? y->T - i : BLOCK, y->T - j < BLOCK ? y->T - j : BLOCK};
}

/* The table row of query b->i + i and key b->j + j. */
static int64_t row_at(const yardstick *y, const block *b, int64_t i, int64_t j)
{
    const int64_t at = b->j + j - b->i - i + y->T - 1;
    return y->map != NULL ? y->map[at] : at;
}

static void add_block(const yardstick *y, float *s, const float *products, const block *b)
{
    float part[BLOCK][BLOCK];
    for (int64_t j = 0; j < b->columns; j++)
        for (int64_t i = 0; i < b->rows; i++)
            part[i][j] = products[(b->j + j) * y->R + row_at(y, b, i, j)];
    for (int64_t i = 0; i < b->rows; i++)
        for (int64_t j = 0; j < b->columns; j++) s[(b->i + i) * y->T + b->j + j] += part[i][j];
}

static void fold_block(const yardstick *y, const float *x, float *folded, const block *b)
{
    float part[BLOCK][BLOCK];
    for (int64_t i = 0; i < b->rows; i++)
        memcpy(part[i], x + (b->i + i) * y->T + b->j, (size_t)b->columns * sizeof *x);
    for (int64_t j = 0; j < b->columns; j++)
        for (int64_t i = 0; i < b->rows; i++)
            folded[(b->j + j) * y->R + row_at(y, b, i, j)] += part[i][j];
}

void yardstick_add_turned(const yardstick *y, float *s, const float *products)
{
    for (int64_t i = 0; i < y->T; i += BLOCK)
        for (int64_t j = 0; j < y->T; j += BLOCK) {
            const block b = block_at(y, i, j);
            add_block(y, s, products, &b);
        }
}

void yardstick_fold_turned(const yardstick *y, const float *x, float *folded)
{
    memset(folded, 0, (size_t)(y->T * y->R) * sizeof *folded);
    for (int64_t j = 0; j < y->T; j += BLOCK)
        for (int64_t i = 0; i < y->T; i += BLOCK) {
            const block b = block_at(y, i, j);
            fold_block(y, x, folded, &b);
        }
}

/* ---- rotations ---- */

void yardstick_turn_head(const yardstick *y, int which, int back, const float *from, float *to)
{
    const int64_t D = y->D, width = 2 * y->pairs.count;
    const float *c = y->turns[2 * which], *s = y->turns[2 * which + 1];
    bench_pairs how = y->pairs;
    how.back = back;
    for (int64_t i = 0; i < y->T; i++) {
        y->loops->turn(to + i * D, from + i * D, c + i * how.count, s + i * how.count, &how);
        memcpy(to + i * D + width, from + i * D + width, (size_t)(D - width) * sizeof *to);
    }
}

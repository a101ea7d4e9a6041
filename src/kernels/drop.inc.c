/* SPDX-License-Identifier: Apache-2.0 */
/* Attention dropout: core/random.h, many keys of a few rows at a time.
 *
 * A pair starts from the words (a, b, c, d) = (key / 4, row, head, batch), and rounds pass before
 * all four depend on both key and row. What depends on the keys alone is found once for all rows
 * of a block, what depends on the row alone once for all keys:
 *     after round 0    a1 row     b1 head    c1 keys    d1 keys
 *     after round 1    a2 keys    b2 keys    c2 both    d2 row
 *     after round 2    a3 both    b3 both    c3 both    d3 keys */

enum { PHILOX_ROUNDS = 10, DROP_COLUMNS = 2 * VL, DROP_ROWS = VL == 16 ? 4 : 2 };

LOCUS_INLINE void drop_schedule(const locus_dropout *rule, vw schedule[PHILOX_ROUNDS][2])
{
    for (uint32_t round = 0; round < PHILOX_ROUNDS; round++) {
        schedule[round][0] = w_set1(rule->key[0] + round * LOCUS_PHILOX_W0);
        schedule[round][1] = w_set1(rule->key[1] + round * LOCUS_PHILOX_W1);
    }
}

/* What the rows of a block bring along. */
typedef struct drop_block {
    vw batch, b1, high_p1[DROP_ROWS], d2[DROP_ROWS];
} drop_block;

LOCUS_INLINE void drop_block_begin(drop_block *block, const locus_dropout *rule, uint32_t row,
                                   const int rows)
{
    const uint64_t q0 = (uint64_t)LOCUS_PHILOX_M1 * rule->head;
    block->batch = w_set1(rule->batch);
    block->b1 = w_set1((uint32_t)q0);
    for (int k = 0; k < rows; k++) {
        const uint32_t a1 = (uint32_t)(q0 >> 32) ^ (row + (uint32_t)k) ^ rule->key[0];
        const uint64_t p1 = (uint64_t)LOCUS_PHILOX_M0 * a1;
        block->high_p1[k] = w_set1((uint32_t)(p1 >> 32));
        block->d2[k] = w_set1((uint32_t)p1);
    }
}

/* Words of the DROP_COLUMNS keys from 4 counter on. A round waits for the one before it; the
 * rows side by side keep the multipliers busy. */
LOCUS_INLINE void drop_words(const drop_block *block, vw schedule[PHILOX_ROUNDS][2],
                             uint32_t counter, vw words[DROP_ROWS][2], const int rows)
{
    const vw m0 = w_set1(LOCUS_PHILOX_M0), m1 = w_set1(LOCUS_PHILOX_M1);
    const vw p0 = w_mul(m0, w_counters(counter));
    const vw q1 = w_mul(m1, w_xor3(w_high(p0), block->batch, schedule[0][1]));
    const vw p2 = w_mul(m0, w_xor3(w_high(q1), block->b1, schedule[1][0])), high_p2 = w_high(p2);
    vw a[DROP_ROWS], b[DROP_ROWS], c[DROP_ROWS], d[DROP_ROWS];
    LOCUS_UNROLL
    for (int k = 0; k < rows; k++) {
        b[k] = w_mul(m1, w_xor3(block->high_p1[k], p0, schedule[1][1]));
        a[k] = w_xor3(w_high(b[k]), q1, schedule[2][0]);
        c[k] = w_xor3(high_p2, block->d2[k], schedule[2][1]);
        d[k] = p2;
    }
    LOCUS_UNROLL
    for (int round = 3; round < PHILOX_ROUNDS; round++) {
        LOCUS_UNROLL
        for (int k = 0; k < rows; k++) {
            const vw p = w_mul(m0, a[k]), q = w_mul(m1, c[k]);
            a[k] = w_xor3(w_high(q), b[k], schedule[round][0]);
            c[k] = w_xor3(w_high(p), d[k], schedule[round][1]);
            b[k] = q;
            d[k] = p;
        }
    }
    LOCUS_UNROLL
    for (int k = 0; k < rows; k++) w_words(a[k], b[k], c[k], d[k], words[k]);
}

LOCUS_INLINE void drop_vector(float *y, const float *x, vw words, const locus_dropout *rule,
                              int64_t tail)
{
    const vf kept = v_mul(load_some(x, tail), v_set1(rule->factor));
    store_some(y, w_keep(words, rule->threshold, kept), tail);
}

/* DROP_COLUMNS columns of a few rows, or `left` of them where they are not whole. */
LOCUS_INLINE void drop_columns(float *y, const float *x, float *also, int64_t stride,
                               const locus_dropout *rule, vw words[DROP_ROWS][2], int64_t left,
                               const int rows, const int whole)
{
    LOCUS_UNROLL
    for (int k = 0; k < rows; k++) {
        LOCUS_UNROLL
        for (int v = 0; v < 2; v++) {
            const int64_t at = k * stride + v * VL, rest = left - v * VL;
            const int64_t tail = whole || rest >= VL ? 0 : rest;
            if (!whole && rest <= 0) continue;
            drop_vector(y + at, x + at, words[k][v], rule, tail);
            if (also != NULL) drop_vector(also + at, also + at, words[k][v], rule, tail);
        }
    }
}

/* Rows from `row` on, `rows` of them. */
LOCUS_INLINE void drop_rows(float *y, const float *x, float *also, int64_t stride, int64_t row,
                            int64_t first, int64_t columns, const locus_dropout *rule,
                            vw schedule[PHILOX_ROUNDS][2], const int rows)
{
    drop_block block;
    drop_block_begin(&block, rule, rule->row + (uint32_t)row, rows);
#define COLUMNS(whole)                                                                             \
    do {                                                                                           \
        const int64_t at = row * stride + c;                                                       \
        vw words[DROP_ROWS][2];                                                                    \
        drop_words(&block, schedule, (uint32_t)((first + c) / 4), words, rows);                    \
        drop_columns(y + at, x + at, also != NULL ? also + at : NULL, stride, rule, words,         \
                     columns - c, rows, whole);                                                    \
    } while (0)
    int64_t c = 0;
    for (; c + DROP_COLUMNS <= columns; c += DROP_COLUMNS) COLUMNS(1);
    if (c < columns) COLUMNS(0);
#undef COLUMNS
}

static LOCUS_DROP(drop)
{
    vw schedule[PHILOX_ROUNDS][2];
    int64_t row = 0;
    drop_schedule(rule, schedule);
    for (; row + DROP_ROWS <= rows; row += DROP_ROWS)
        drop_rows(y, x, also, stride, row, first, columns, rule, schedule, DROP_ROWS);
    for (; row < rows; row++) drop_rows(y, x, also, stride, row, first, columns, rule, schedule, 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Attention dropout: core/random.h, many keys at a time. */

enum { PHILOX_ROUNDS = 10 };

LOCUS_INLINE void drop_schedule(const locus_dropout *rule, vw schedule[PHILOX_ROUNDS][2])
{
    for (uint32_t round = 0; round < PHILOX_ROUNDS; round++) {
        schedule[round][0] = w_set1(rule->key[0] + round * LOCUS_PHILOX_W0);
        schedule[round][1] = w_set1(rule->key[1] + round * LOCUS_PHILOX_W1);
    }
}

/* Words of the DROP_COLUMNS keys from 4 counter on. A round waits for the one before it; two
 * chains side by side keep the multipliers busy. */
enum { DROP_CHAINS = 2, DROP_COLUMNS = DROP_CHAINS * 2 * VL };
LOCUS_INLINE void drop_words(const locus_dropout *rule, vw schedule[PHILOX_ROUNDS][2],
                             uint32_t counter, vw words[2 * DROP_CHAINS])
{
    vw a[DROP_CHAINS], b[DROP_CHAINS], c[DROP_CHAINS], d[DROP_CHAINS];
    for (int k = 0; k < DROP_CHAINS; k++) {
        a[k] = w_counters(counter + (uint32_t)k * (VL / 2));
        b[k] = w_set1(rule->row);
        c[k] = w_set1(rule->head);
        d[k] = w_set1(rule->batch);
    }
    LOCUS_UNROLL
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        LOCUS_UNROLL
        for (int k = 0; k < DROP_CHAINS; k++) {
            const vw p = w_mul(w_set1(LOCUS_PHILOX_M0), a[k]);
            const vw q = w_mul(w_set1(LOCUS_PHILOX_M1), c[k]);
            a[k] = w_xor3(w_high(q), b[k], schedule[round][0]);
            c[k] = w_xor3(w_high(p), d[k], schedule[round][1]);
            b[k] = q;
            d[k] = p;
        }
    }
    for (int k = 0; k < DROP_CHAINS; k++) w_words(a[k], b[k], c[k], d[k], words + 2 * k);
}

LOCUS_INLINE void drop_vector(float *y, const float *x, vw words, const locus_dropout *rule,
                              int64_t tail)
{
    const vf kept = v_mul(load_some(x, tail), v_set1(rule->factor));
    store_some(y, w_keep(words, rule->threshold, kept), tail);
}

static LOCUS_DROP(drop)
{
    vw schedule[PHILOX_ROUNDS][2];
    drop_schedule(rule, schedule);
    for (int64_t c = 0; c < columns; c += DROP_COLUMNS) {
        vw words[2 * DROP_CHAINS];
        drop_words(rule, schedule, (uint32_t)((first + c) / 4), words);
        for (int k = 0; k < 2 * DROP_CHAINS && c + k * VL < columns; k++) {
            const int64_t at = c + k * VL, tail = columns - at < VL ? columns - at : 0;
            drop_vector(y + at, x + at, words[k], rule, tail);
            if (also != NULL) drop_vector(also + at, also + at, words[k], rule, tail);
        }
    }
}

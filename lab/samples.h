/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_SAMPLES_H
#define LOCUS_LAB_SAMPLES_H

/* One number per seed, and what a pair of such samples says of a claim. */

#include "lab/scoreboard.h"

enum { SAMPLE_SEEDS = 64 };

typedef struct sample {
    int32_t seed[SAMPLE_SEEDS];
    double value[SAMPLE_SEEDS];
    size_t count;
} sample;

/* The numbers of all seeds that have one. */
sample sample_take(const lab_results *r, const char *task, const char *scheme, const char *metric,
                   int64_t length);
double sample_mean(const sample *s);

/* How two samples become one, seed by seed. */
typedef enum join { LEAST, MOST, SUM } join;

/* Over the seeds that both have; `first`: `into` takes the other as it is. */
void sample_join(sample *into, const sample *other, join how, int first);

/* Seeds that both have, or that all have, are kept and nothing else: before any mean of them. */
void sample_pair(sample *a, sample *b);
void sample_common(sample *const *each, size_t count);

/* Is `larger` larger than `smaller`? `margin`: whether what is stated beside it holds. */
lab_verdict sample_judge(sample larger, sample smaller, int margin);

/* Both have to hold: what is missing or wrong in one decides. */
lab_verdict verdict_both(lab_verdict a, lab_verdict b);

#endif

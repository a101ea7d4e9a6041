/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TRAIN_STREAM_H
#define LOCUS_TRAIN_STREAM_H

/* Random numbers by name: a stream is a pure function of (seed, purpose, a, b), so initial values
 * do not depend on which other parameters exist, a batch not on the batches before it, and a run
 * that goes on needs no state of a generator. */

#include <math.h>
#include <stdint.h>

#include "core/random.h"

typedef struct train_stream {
    uint32_t key[2], counter[4], words[4];
    uint32_t left; /* words not yet handed out */
} train_stream;

/* FNV-1a, 32 bits. */
static inline uint32_t train_hash(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

static inline train_stream train_stream_of(uint64_t seed, const char *purpose, uint32_t a,
                                           uint32_t b)
{
    return (train_stream){.key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
                          .counter = {0, train_hash(purpose), a, b}};
}

static inline uint32_t train_next(train_stream *s)
{
    if (s->left == 0) {
        locus_philox(s->key, s->counter, s->words);
        s->counter[0]++;
        s->left = 4;
    }
    return s->words[4 - s->left--];
}

/* Uniform in 0 .. count - 1 without bias: words that would favour small numbers are dropped. */
static inline uint32_t train_below(train_stream *s, uint32_t count)
{
    const uint32_t spare = (uint32_t)(-count) % count;
    for (;;) {
        const uint64_t product = (uint64_t)train_next(s) * count;
        if ((uint32_t)product >= spare) return (uint32_t)(product >> 32);
    }
}

/* Uniform in (0, 1). */
static inline double train_uniform(train_stream *s)
{
    return ((double)train_next(s) + 0.5) / 4294967296.0;
}

/* N(0, 1) by Box and Muller; the second number of the pair is not used. */
static inline double train_normal(train_stream *s)
{
    const double radius = sqrt(-2.0 * log(train_uniform(s)));
    return radius * cos(6.283185307179586476925 * train_uniform(s));
}

/* A random order of items[count]. */
static inline void train_shuffle(train_stream *s, int32_t *items, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t other = train_below(s, i);
        const int32_t kept = items[i - 1];
        items[i - 1] = items[other];
        items[other] = kept;
    }
}

#endif

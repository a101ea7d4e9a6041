/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "model/generate/generate.h"

int generate_is_end(const locus_generation *how, int32_t id)
{
    for (int64_t i = 0; i < how->end_count; i++)
        if (how->ends[i] == id) return 1;
    return 0;
}

static void forbid(float *scores, int64_t vocabulary, int32_t id)
{
    if (id >= 0 && id < vocabulary) scores[id] = -INFINITY;
}

/* Scores of tokens that have occurred, once each, are moved away from the best. */
static void penalise_repetition(float penalty, const int32_t *ids, int64_t count, float *scores)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t before = 0;
        while (ids[before] != ids[i]) before++;
        if (before < i) continue;
        float *score = &scores[ids[i]];
        *score = *score < 0.0f ? *score * penalty : *score / penalty;
    }
}

/* No run of n tokens occurs twice: what followed the last n - 1 tokens before is forbidden. */
static void forbid_repeated(int64_t n, const int32_t *ids, int64_t count, float *scores,
                            int64_t vocabulary)
{
    const size_t bytes = (size_t)(n - 1) * sizeof *ids;
    for (int64_t i = 0; i + n <= count; i++)
        if (memcmp(ids + i, ids + count - (n - 1), bytes) == 0)
            forbid(scores, vocabulary, ids[i + n - 1]);
}

static void forbid_words(const locus_generation *how, const int32_t *ids, int64_t count,
                         float *scores, int64_t vocabulary)
{
    for (int64_t w = 0; w < how->bad_word_count; w++) {
        const int32_t *word = how->bad_words + how->bad_word_offsets[w];
        const int64_t length = how->bad_word_offsets[w + 1] - how->bad_word_offsets[w];
        if (length < 1 || (length > 1 && length > count)) continue;
        if (memcmp(word, ids + count - (length - 1), (size_t)(length - 1) * sizeof *ids) == 0)
            forbid(scores, vocabulary, word[length - 1]);
    }
}

/* Nothing but one token. */
static void force(float *scores, int64_t vocabulary, int32_t id)
{
    for (int64_t v = 0; v < vocabulary; v++) scores[v] = -INFINITY;
    if (id < vocabulary) scores[id] = 0.0f;
}

void generate_restrict(const locus_generation *how, const generate_text *text, const int32_t *ids,
                       int64_t count, float *scores, int64_t vocabulary)
{
    if (how->repetition_penalty != 1.0)
        penalise_repetition((float)how->repetition_penalty, ids, count, scores);
    if (how->no_repeat_ngram > 0)
        forbid_repeated(how->no_repeat_ngram, ids, count, scores, vocabulary);
    forbid_words(how, ids, count, scores, vocabulary);
    if (count < text->least)
        for (int64_t i = 0; i < how->end_count; i++) forbid(scores, vocabulary, how->ends[i]);
    if (how->forced_begin >= 0 && count == 1) force(scores, vocabulary, how->forced_begin);
    if (how->forced_end >= 0 && count == text->limit - 1)
        force(scores, vocabulary, how->forced_end);
    for (int64_t i = 0; i < how->suppressed_count; i++)
        forbid(scores, vocabulary, how->suppressed[i]);
}

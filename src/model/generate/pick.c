/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/random.h"
#include "model/generate/generate.h"
#include "nn/cross_entropy.h"
#include "nn/softmax.h"
#include "nn/top.h"

/* ---- drawing ---- */

/* In [0, 1), by the seed and the number of the token behind the prompt. */
static double uniform(uint64_t seed, int64_t step)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)step, (uint32_t)((uint64_t)step >> 32), 0, 0};
    uint32_t words[4];
    locus_philox(key, counter, words);
    return ((double)(words[0] >> 5) * 67108864.0 + (double)(words[1] >> 6)) / 9007199254740992.0;
}

static void softmax(const generate_job *job, float *scores)
{
    const locus_rows row = {scores, 1, job->vocabulary};
    locus_softmax_forward(&job->model->workers, &row, &row, 0, job->vocabulary);
}

/* -inf for all below the k-th. */
static void keep_top_k(const generate_job *job, float *scores)
{
    const int64_t V = job->vocabulary, k = job->how->top_k;
    if (k <= 0 || k >= V) return;
    locus_top(job->places, k, scores, V);
    const float least = scores[job->places[k - 1]];
    for (int64_t v = 0; v < V; v++)
        if (scores[v] < least) scores[v] = -INFINITY;
}

/* Of probabilities, 0 for what lies behind the best ones that hold top_p together. */
static void keep_top_p(const generate_job *job, float *p)
{
    const int64_t count = locus_top(job->places, job->vocabulary, p, job->vocabulary);
    double before = 0.0;
    for (int64_t i = 0; i < count; i++) {
        const float own = p[job->places[i]];
        if (i > 0 && before >= job->how->top_p) p[job->places[i]] = 0.0f;
        before += (double)own;
    }
}

static int32_t draw(const generate_job *job, float *scores, int64_t step)
{
    const int64_t V = job->vocabulary;
    double sum = 0.0, at = 0.0;
    int64_t last = 0;
    for (int64_t v = 0; v < V; v++) scores[v] /= (float)job->how->temperature;
    keep_top_k(job, scores);
    softmax(job, scores);
    if (job->how->top_p < 1.0) keep_top_p(job, scores);
    for (int64_t v = 0; v < V; v++) sum += (double)scores[v];
    const double point = uniform(job->how->seed, step) * sum;
    for (int64_t v = 0; v < V; v++) {
        if (!(scores[v] > 0.0f)) continue;
        last = v;
        at += (double)scores[v];
        if (at > point) break;
    }
    return (int32_t)last;
}

/* ---- the loop ---- */

/* The logarithm of a token's probability by its row of logits. */
static double log_probability(const generate_job *job, float *logits, int32_t id)
{
    const locus_cross_entropy e = {.target = &id, .width = job->vocabulary};
    const locus_rows row = {logits, 1, job->vocabulary};
    double total, weight;
    float loss;
    locus_cross_entropy_forward(&job->model->workers, &e, &row, &loss, &total, &weight);
    return -total;
}

void generate_token(const generate_job *job, generate_text *text, int64_t which, float *logits)
{
    const locus_generation *how = job->how;
    memcpy(job->scratch, logits, (size_t)job->vocabulary * sizeof *logits);
    generate_restrict(how, text, text->ids, text->count, job->scratch, job->vocabulary);
    const int32_t id = how->sample ? draw(job, job->scratch, text->count - text->prompt)
                                   : (int32_t)locus_argmax(job->scratch, job->vocabulary);
    text->score += log_probability(job, logits, id);
    text->ids[text->count++] = id;
    text->done = text->count >= text->limit || generate_is_end(how, id);
    if (how->token != NULL) how->token(how->context, which, id);
}

/* The prompts first, then the last token of each text that is not done. Returns their number. */
static int64_t set_step(generate_job *job, int first)
{
    int64_t count = 0;
    for (int64_t t = 0; t < job->texts; t++) {
        const generate_text *text = &job->result->texts[t];
        const int64_t from = first ? 0 : text->count - 1;
        job->offsets[t] = count;
        if (text->done) continue;
        memcpy(job->ids + count, text->ids + from, (size_t)(text->count - from) * sizeof *job->ids);
        count += text->count - from;
    }
    job->offsets[job->texts] = count;
    return count;
}

locus_status generate_pick(generate_job *job)
{
    const locus_model_results results = {.size = sizeof results, .next = job->logits};
    for (int first = 1; set_step(job, first) > 0; first = 0) {
        float *logits = job->logits;
        LOCUS_TRY(locus_session_step(job->session, job->ids, job->offsets, &results, job->error));
        for (int64_t t = 0; t < job->texts; t++) {
            if (job->result->texts[t].done) continue;
            generate_token(job, &job->result->texts[t], t, logits);
            logits += job->vocabulary;
        }
    }
    return LOCUS_OK;
}

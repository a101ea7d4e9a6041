/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "model/generate/generate.h"
#include "nn/softmax.h"
#include "nn/top.h"

/* Beam search as transformers 4.57.6 computes it (generation/utils.py, _beam_search), for each
 * text by itself: sums of log probabilities in float32, the same order of the same decisions. */

static const float nothing = -1e9f; /* the score of what must not be taken */

typedef struct candidate {
    float score;
    int64_t beam;
    int32_t id;
    int ends;
} candidate;

typedef struct beam {
    int32_t *ids;
    int64_t count;
    float score;
    int finished;
} beam;

typedef struct beam_text {
    beam *running, *finished; /* [beams] each */
    beam *next, *merged;      /* [beams], of the next step */
    int open;                 /* 1: what runs may still become better than what is finished */
    int done;
} beam_text;

typedef struct beam_search {
    generate_job *job;
    int64_t beams, keep, best_count; /* keep: candidates of a step */
    beam_text *texts;
    beam *all; /* of all texts */
    int32_t *ids;
    candidate *candidates, *best; /* [beams keep], [keep] */
    float *scores;                /* [beams keep] */
    int64_t *order;               /* [keep] */
    int64_t *from;                /* [rows] */
} beam_search;

/* ---- memory ---- */

static int64_t longest_of(const generate_job *job)
{
    int64_t longest = 0;
    for (int64_t t = 0; t < job->texts; t++)
        if (job->result->texts[t].limit > longest) longest = job->result->texts[t].limit;
    return longest;
}

static int allocate(beam_search *s)
{
    const locus_allocator *a = s->job->model->allocator;
    const size_t rows = (size_t)(s->job->texts * s->beams), longest = (size_t)longest_of(s->job);
    s->texts = locus_allocate(a, (size_t)s->job->texts, sizeof *s->texts);
    s->all = locus_allocate(a, 4 * rows, sizeof *s->all);
    s->ids = locus_allocate(a, 4 * rows * longest, sizeof *s->ids);
    s->candidates = locus_allocate(a, (size_t)(s->beams * s->keep), sizeof *s->candidates);
    s->best = locus_allocate(a, (size_t)s->keep, sizeof *s->best);
    s->scores = locus_allocate(a, (size_t)((s->beams + 1) * s->keep), sizeof *s->scores);
    s->order = locus_allocate(a, (size_t)s->keep, sizeof *s->order);
    s->from = locus_allocate(a, rows, sizeof *s->from);
    if (s->texts == NULL || s->all == NULL || s->ids == NULL || s->candidates == NULL ||
        s->best == NULL || s->scores == NULL || s->order == NULL || s->from == NULL)
        return 0;
    for (size_t i = 0; i < 4 * rows; i++) s->all[i].ids = s->ids + i * longest;
    return 1;
}

static void release(beam_search *s)
{
    const locus_allocator *a = s->job->model->allocator;
    locus_release(a, s->texts);
    locus_release(a, s->all);
    locus_release(a, s->ids);
    locus_release(a, s->candidates);
    locus_release(a, s->best);
    locus_release(a, s->scores);
    locus_release(a, s->order);
    locus_release(a, s->from);
}

static void set_beam(beam *to, const int32_t *ids, int64_t count, float score, int finished)
{
    memcpy(to->ids, ids, (size_t)count * sizeof *ids);
    to->count = count;
    to->score = score;
    to->finished = finished;
}

static void begin(beam_search *s, int64_t t)
{
    const generate_text *text = &s->job->result->texts[t];
    beam_text *b = &s->texts[t];
    b->running = s->all + 4 * t * s->beams;
    b->finished = b->running + s->beams;
    b->next = b->finished + s->beams;
    b->merged = b->next + s->beams;
    b->open = 1;
    b->done = text->done;
    for (int64_t i = 0; i < s->beams; i++) {
        set_beam(&b->running[i], text->ids, text->count, i == 0 ? 0.0f : nothing, 0);
        set_beam(&b->finished[i], text->ids, text->count, nothing, 0);
    }
}

/* ---- one step of one text ---- */

/* The best of one beam: its score so far plus the log probabilities of its next tokens. */
static void add_candidates(beam_search *s, int64_t t, int64_t which, float *logits, int64_t *count)
{
    generate_job *job = s->job;
    const beam *b = &s->texts[t].running[which];
    const int64_t V = job->vocabulary;
    const locus_rows to = {job->scratch, 1, V}, from = {logits, 1, V};
    locus_softmax_forward(&job->model->workers, &to, &from, 1, V);
    generate_restrict(job->how, &job->result->texts[t], b->ids, b->count, job->scratch, V);
    if (job->how->renormalize) locus_softmax_forward(&job->model->workers, &to, &to, 1, V);
    const int64_t found = locus_top(job->places, s->keep, job->scratch, V);
    for (int64_t i = 0; i < found; i++)
        s->candidates[(*count)++] = (candidate){.score = job->scratch[job->places[i]] + b->score,
                                                .beam = which,
                                                .id = (int32_t)job->places[i]};
}

/* The `keep` best of all beams, best first. */
static void choose_candidates(beam_search *s, const generate_text *text, int64_t length,
                              int64_t count)
{
    for (int64_t i = 0; i < count; i++) s->scores[i] = s->candidates[i].score;
    s->best_count = locus_top(s->order, s->keep, s->scores, count);
    for (int64_t k = 0; k < s->best_count; k++) {
        candidate *best = &s->best[k];
        *best = s->candidates[s->order[k]];
        best->ends = length + 1 >= text->limit || generate_is_end(s->job->how, best->id);
    }
}

static void extend(beam *to, const beam *from, const candidate *c, float score, int finished)
{
    set_beam(to, from->ids, from->count, score, finished);
    to->ids[to->count++] = c->id;
}

/* The best candidates that do not end run on; from[i] is the beam that the i-th goes on from. */
static void choose_running(beam_search *s, beam_text *b, int64_t *from)
{
    for (int64_t k = 0; k < s->best_count; k++)
        s->scores[k] = s->best[k].score + (s->best[k].ends ? nothing : 0.0f);
    const int64_t count = locus_top(s->order, s->beams, s->scores, s->best_count);
    for (int64_t i = 0; i < s->beams; i++) {
        const int64_t k = s->order[i < count ? i : count - 1];
        extend(&b->next[i], &b->running[s->best[k].beam], &s->best[k], s->scores[k], 0);
        from[i] = s->best[k].beam;
    }
}

/* Of what is finished and the candidates that end, the best stay. */
static void choose_finished(beam_search *s, beam_text *b, float length)
{
    const locus_generation *how = s->job->how;
    int full = how->early_stopping == LOCUS_STOP_EARLY;
    for (int64_t i = 0; i < s->beams; i++) {
        s->scores[i] = b->finished[i].score;
        full = full && b->finished[i].finished;
    }
    for (int64_t k = 0; k < s->best_count; k++) {
        float score = s->best[k].score / length;
        s->best[k].ends = s->best[k].ends && k < s->beams;
        score += full ? nothing : 0.0f;
        score += b->open ? 0.0f : nothing;
        s->scores[s->beams + k] = score + (s->best[k].ends ? 0.0f : nothing);
    }
    locus_top(s->order, s->beams, s->scores, s->beams + s->best_count);
    for (int64_t i = 0; i < s->beams; i++) {
        const int64_t at = s->order[i], k = at - s->beams;
        const beam *old = &b->finished[at < s->beams ? at : 0];
        if (k < 0)
            set_beam(&b->merged[i], old->ids, old->count, old->score, old->finished);
        else
            extend(&b->merged[i], &b->running[s->best[k].beam], &s->best[k], s->scores[at],
                   s->best[k].ends);
    }
}

static float power_of(int64_t length, double penalty)
{
    return (float)pow((double)length, penalty);
}

/* Whether what runs may still become better than the worst that is finished. */
static int may_improve(const beam_search *s, const beam_text *b, const generate_text *text)
{
    const locus_generation *how = s->job->how;
    const int64_t length = how->early_stopping == LOCUS_STOP_NEVER && how->length_penalty > 0.0
                               ? text->limit - text->prompt
                               : b->running[0].count - text->prompt;
    const float best = b->running[0].score / power_of(length, how->length_penalty);
    float worst = b->finished[0].score;
    int improves = 0;
    for (int64_t i = 1; i < s->beams; i++)
        if (b->finished[i].score < worst) worst = b->finished[i].score;
    for (int64_t i = 0; i < s->beams; i++)
        improves |= best > (b->finished[i].finished ? worst : nothing);
    return improves;
}

static void swap_beams(beam **a, beam **b)
{
    beam *other = *a;
    *a = *b;
    *b = other;
}

/* `logits`: rows of the running beams; `stride` 0: they all have the first. */
static void advance(beam_search *s, int64_t t, float *logits, int64_t stride, int64_t *from)
{
    const generate_text *text = &s->job->result->texts[t];
    beam_text *b = &s->texts[t];
    const int64_t length = b->running[0].count;
    int64_t count = 0;
    int all_end = 1, all_finished = 1;
    for (int64_t i = 0; i < s->beams; i++) add_candidates(s, t, i, logits + i * stride, &count);
    choose_candidates(s, text, length, count);
    for (int64_t k = 0; k < s->best_count; k++) all_end = all_end && s->best[k].ends;
    choose_running(s, b, from);
    choose_finished(s, b, power_of(length + 1 - text->prompt, s->job->how->length_penalty));
    swap_beams(&b->running, &b->next);
    swap_beams(&b->finished, &b->merged);
    b->open = b->open && may_improve(s, b, text);
    for (int64_t i = 0; i < s->beams; i++) all_finished = all_finished && b->finished[i].finished;
    b->done =
        !b->open || all_end || (all_finished && s->job->how->early_stopping == LOCUS_STOP_EARLY);
}

/* ---- all texts ---- */

/* The prompt once per text, then the last token of every beam of a text that is not done. */
static int64_t set_step(beam_search *s, int first)
{
    generate_job *job = s->job;
    int64_t count = 0;
    for (int64_t r = 0; r < job->texts * s->beams; r++) {
        const beam_text *b = &s->texts[r / s->beams];
        const beam *own = &b->running[r % s->beams];
        job->offsets[r] = count;
        s->from[r] = r;
        if (b->done || (first && r % s->beams > 0)) continue;
        const int64_t from = first ? 0 : own->count - 1;
        memcpy(job->ids + count, own->ids + from, (size_t)(own->count - from) * sizeof *job->ids);
        count += own->count - from;
    }
    job->offsets[job->texts * s->beams] = count;
    return count;
}

static locus_status search(beam_search *s)
{
    generate_job *job = s->job;
    const int64_t V = job->vocabulary;
    const locus_model_results results = {.size = sizeof results, .next = job->logits};
    for (int first = 1; set_step(s, first) > 0; first = 0) {
        float *logits = job->logits;
        LOCUS_TRY(locus_session_step(job->session, job->ids, job->offsets, &results, job->error));
        for (int64_t t = 0; t < job->texts; t++) {
            int64_t *from = s->from + t * s->beams;
            if (s->texts[t].done) continue;
            advance(s, t, logits, first ? 0 : V, from);
            for (int64_t i = 0; i < s->beams; i++) from[i] = t * s->beams + (first ? 0 : from[i]);
            logits += (first ? 1 : s->beams) * V;
        }
        LOCUS_TRY(locus_session_reorder(job->session, s->from, job->error));
    }
    return LOCUS_OK;
}

static void give(const beam_search *s, int64_t t)
{
    generate_text *text = &s->job->result->texts[t];
    const beam *best = &s->texts[t].finished[0];
    if (text->done) return; /* nothing came of nothing */
    memcpy(text->ids, best->ids, (size_t)best->count * sizeof *best->ids);
    text->count = best->count;
    text->score = (double)best->score;
}

locus_status generate_beams(generate_job *job)
{
    const int64_t ends = job->how->end_count;
    beam_search s = {.job = job,
                     .beams = job->how->beams,
                     .keep = (ends > 1 ? 1 + ends : 2) * job->how->beams};
    locus_status status = allocate(&s)
                              ? LOCUS_OK
                              : locus_fail(job->error, LOCUS_ERR_MEMORY, "generate: out of memory");
    for (int64_t t = 0; status == LOCUS_OK && t < job->texts; t++) begin(&s, t);
    if (status == LOCUS_OK) status = search(&s);
    for (int64_t t = 0; status == LOCUS_OK && t < job->texts; t++) give(&s, t);
    release(&s);
    return status;
}

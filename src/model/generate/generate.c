/* SPDX-License-Identifier: Apache-2.0 */
#include "model/generate/generate.h"

#include <inttypes.h>
#include <string.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "generate: out of memory");
}

static const model_description *decoder_of(const locus_model *m) { return model_last_stack(m); }

/* ---- checks ---- */

static locus_status check_id(const char *name, int32_t id, int64_t vocabulary, locus_error *error)
{
    if (id < vocabulary) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_RANGE, "%s: found id %" PRId32 ", expected at most %" PRId64,
                      name, id, vocabulary - 1);
}

static locus_status check_length(const char *name, int64_t tokens, locus_error *error)
{
    if (tokens <= MODEL_MOST_TOKENS) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_OPTION, "%s: found %" PRId64 ", expected at most %d", name,
                      tokens, MODEL_MOST_TOKENS);
}

static locus_status check_settings(const locus_model *m, const locus_generation *how,
                                   locus_error *error)
{
    const int64_t V = decoder_of(m)->vocabulary;
    if (how->beams < 1 || how->beams > 64 || (how->beams > 1 && how->sample))
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "beams: found %" PRId64 "%s, expected 1 to 64, and 1 for sampling",
                          how->beams, how->sample ? " and sampling" : "");
    if (how->sample && (!(how->temperature > 0.0) || !(how->top_p > 0.0) || how->top_k < 0))
        return locus_fail(
            error, LOCUS_ERR_OPTION,
            "sampling: expected a temperature and a top_p of more than 0, top_k of at "
            "least 0");
    if (!(how->repetition_penalty > 0.0) || how->no_repeat_ngram < 0 || how->max_length < 0 ||
        how->max_new_tokens < 0)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "generate: a length, a penalty or an n-gram is negative");
    LOCUS_TRY(check_length("max_new_tokens", how->max_new_tokens, error));
    LOCUS_TRY(check_length("min_new_tokens", how->min_new_tokens, error));
    if (m->stack_count > 1 && how->prompt_count == 0 && how->start < 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "generation_config.json: decoder_start_token_id is missing");
    if (m->stack_count > 1) LOCUS_TRY(check_id("decoder_start_token_id", how->start, V, error));
    LOCUS_TRY(check_id("forced_bos_token_id", how->forced_begin, V, error));
    return check_id("forced_eos_token_id", how->forced_end, V, error);
}

locus_status generate_check(const locus_model *model, const locus_generation *how,
                            locus_error *error)
{
    if (decoder_of(model)->head != LOCUS_MODEL_GENERATE)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "generate: the model has no head for it (model_type %s)",
                          model->family->type);
    return check_settings(model, how, error);
}

/* ---- one text ---- */

/* max_length and min_length of a text with this prompt, as transformers arrives at them. */
static locus_status set_lengths(const generate_job *job, generate_text *text, int64_t which)
{
    enum { DEFAULT_NEW_TOKENS = 20 };
    const locus_generation *how = job->how;
    const int64_t most = job->model->most_positions;
    text->limit = how->max_length;
    if (how->max_new_tokens > 0) {
        text->limit = text->prompt + how->max_new_tokens;
    } else if (how->max_length == 0) {
        text->limit = text->prompt + DEFAULT_NEW_TOKENS;
        if (most > 0 && text->limit > most) text->limit = most;
    }
    text->least = how->min_length;
    if (how->min_new_tokens > 0) text->least = text->prompt + how->min_new_tokens;
    if (text->prompt >= text->limit || !model_is_length(text->limit))
        return locus_fail(job->error, LOCUS_ERR_RANGE,
                          "text %" PRId64 ": found %" PRId64
                          " tokens to begin with, expected 1 to %" PRId64,
                          which, text->prompt, text->limit - 1);
    return LOCUS_OK;
}

/* What the decoder begins with: the text itself, or the start, behind an encoder and where a text has
 * no tokens. A text without either stays empty. */
locus_status generate_begin(const generate_job *job, generate_text *text, int64_t which,
                            const int32_t *ids, int64_t count)
{
    const locus_generation *how = job->how;
    if (job->model->stack_count > 1) {
        ids = how->prompt_count > 0 ? how->prompt : &how->start;
        count = how->prompt_count > 0 ? how->prompt_count : 1;
    } else if (count == 0 && how->start >= 0) {
        LOCUS_TRY(check_id("bos_token_id", how->start, job->vocabulary, job->error));
        ids = &how->start;
        count = 1;
    }
    text->count = text->prompt = count;
    text->done = count == 0;
    text->limit = 1;
    if (!text->done) LOCUS_TRY(set_lengths(job, text, which));
    text->ids = locus_allocate(job->model->allocator, (size_t)text->limit, sizeof *text->ids);
    if (text->ids == NULL) return no_memory(job->error);
    if (count > 0) memcpy(text->ids, ids, (size_t)count * sizeof *ids);
    return LOCUS_OK;
}

/* ---- all texts ---- */

static locus_status allocate(generate_job *job)
{
    const locus_allocator *a = job->model->allocator;
    const uint64_t rows = (uint64_t)(job->texts * job->how->beams);
    const uint64_t extents[] = {rows, (uint64_t)job->vocabulary};
    uint64_t logits = 0;
    size_t size = 0, tokens = 0;
    for (int64_t t = 0; t < job->texts; t++) tokens += (size_t)job->result->texts[t].prompt;
    if (!locus_product_u64(&logits, extents, 2) || !locus_to_size(&size, logits))
        return no_memory(job->error);
    job->logits = locus_allocate(a, size, sizeof *job->logits);
    job->scratch = locus_allocate(a, (size_t)job->vocabulary, sizeof *job->scratch);
    job->places = locus_allocate(a, (size_t)job->vocabulary, sizeof *job->places);
    job->ids = locus_allocate(a, tokens + (size_t)rows, sizeof *job->ids);
    job->offsets = locus_allocate(a, (size_t)rows + 1, sizeof *job->offsets);
    return job->logits != NULL && job->scratch != NULL && job->places != NULL && job->ids != NULL &&
                   job->offsets != NULL
               ? LOCUS_OK
               : no_memory(job->error);
}

static locus_status generate(generate_job *job, const int32_t *ids, const int64_t *offsets)
{
    for (int64_t t = 0; t < job->texts; t++)
        LOCUS_TRY(generate_begin(job, &job->result->texts[t], t, ids + offsets[t],
                                 offsets[t + 1] - offsets[t]));
    LOCUS_TRY(allocate(job));
    LOCUS_TRY(
        locus_session_new(&job->session, job->model, job->texts * job->how->beams, job->error));
    if (job->model->stack_count > 1)
        LOCUS_TRY(locus_session_read(job->session, ids, offsets, job->texts, NULL, job->error));
    return job->how->beams > 1 ? generate_beams(job) : generate_pick(job);
}

static void release(generate_job *job)
{
    const locus_allocator *a = job->model->allocator;
    locus_session_free(job->session);
    locus_release(a, job->logits);
    locus_release(a, job->scratch);
    locus_release(a, job->places);
    locus_release(a, job->ids);
    locus_release(a, job->offsets);
}

static locus_status new_result(locus_generated **out, const locus_model *m, int64_t texts,
                               locus_error *error)
{
    locus_generated *g = locus_allocate(m->allocator, 1, sizeof *g);
    if (g == NULL) return no_memory(error);
    g->allocator = m->allocator;
    g->texts = locus_allocate(m->allocator, (size_t)texts, sizeof *g->texts);
    g->count = g->texts != NULL ? texts : 0;
    *out = g;
    return g->texts != NULL ? LOCUS_OK : no_memory(error);
}

locus_status locus_generate(locus_generated **out, const locus_model *model,
                            const locus_generation *how, const int32_t *ids, const int64_t *offsets,
                            int64_t texts, locus_error *error)
{
    locus_generation own = {.size = sizeof own};
    if (out == NULL || model == NULL || how == NULL || offsets == NULL || texts < 0 ||
        (ids == NULL && offsets[texts] > 0))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "generate: NULL or negative argument");
    *out = NULL;
    LOCUS_TRY(model_check_offsets(offsets, texts, error));
    LOCUS_ADOPT(how, own, "generation", error);
    LOCUS_TRY(generate_check(model, how, error));
    generate_job job = {.model = model,
                        .how = how,
                        .texts = texts,
                        .vocabulary = decoder_of(model)->vocabulary,
                        .error = error};
    locus_status status = new_result(&job.result, model, texts, error);
    if (status == LOCUS_OK) status = generate(&job, ids, offsets);
    release(&job);
    if (status == LOCUS_OK)
        *out = job.result;
    else
        locus_generated_free(job.result);
    return status;
}

void locus_generated_free(locus_generated *g)
{
    if (g == NULL) return;
    for (int64_t t = 0; t < g->count; t++) locus_release(g->allocator, g->texts[t].ids);
    locus_release(g->allocator, g->texts);
    locus_release(g->allocator, g);
}

const int32_t *locus_generated_ids(const locus_generated *g, int64_t text, int64_t *count)
{
    *count = g->texts[text].count;
    return g->texts[text].ids;
}

double locus_generated_score(const locus_generated *g, int64_t text)
{
    return g->texts[text].score;
}

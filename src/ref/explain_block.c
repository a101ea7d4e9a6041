/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/parallel.h"
#include "ref/explainer.h"

/* Rows are independent: each thread takes one after another and needs no memory of its
 * own beyond the parts of the pair at work, and what the row counts. */

typedef struct explain_job {
    const locus_explainer *explainer;
    const locus_explain_block *block;
    const locus_explained *explained; /* of the block */
    double *lse;                      /* or this one: the whole rows */
} explain_job;

int64_t locus_ref_sequence_of(const locus_call *call, int64_t i)
{
    int64_t low = 0, high = locus_sequence_count(call);
    while (high - low > 1) { /* the last sequence that begins at or before row i and is not empty */
        const int64_t middle = low + (high - low) / 2;
        if (locus_call_sequence(call, middle).first_query <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static ref_attention row_at(const explain_job *job, int64_t row, uint32_t worker)
{
    const locus_explainer *e = job->explainer;
    const locus_call *call = &e->call;
    const locus_explain_block *block = job->block;
    const int64_t kv_head = block->head / (call->H / call->Hk);
    ref_attention at = e->at;
    at.b = block->batch;
    at.h = block->head;
    at.i = block->query + row;
    at.s = locus_ref_sequence_of(call, at.i);
    at.sequence = locus_call_sequence(call, at.s);
    at.q = e->q + ((at.b * call->H + at.h) * call->Tq + at.i) * call->D;
    at.k = e->k + (at.b * call->Hk + kv_head) * call->Tk * call->D;
    if (e->gates != NULL) at.gates = e->gates + (at.b * call->H + at.h) * e->gate_step;
    if (e->decays != NULL) at.decays = e->decays + (at.b * call->H + at.h) * e->decay_step;
    if (e->place != NULL) at.place = e->place + worker * call->Tk;
    locus_ref_count_row(&at);
    return at;
}

static void explain_pair(const explain_job *job, const ref_attention *at, int64_t row,
                         int64_t column)
{
    const locus_explainer *e = job->explainer;
    const locus_explain_block *block = job->block;
    const locus_explained *to = job->explained;
    const int64_t n = block->key + column, place = row * block->keys + column;
    const int visible = locus_ref_visible(at, n);
    double parts[REF_PARTS] = {0.0}, score = -INFINITY;
    if (visible) score = locus_ref_parts(at, n, parts);
    for (size_t t = 0; to->terms != NULL && t < e->count; t++)
        to->terms[(int64_t)t * block->queries * block->keys + place] = parts[e->part[t]];
    if (to->score != NULL) to->score[place] = score;
    if (to->visible != NULL) to->visible[place] = (uint8_t)visible;
    if (to->weight != NULL) to->weight[place] = score;
}

/* ln sum exp(s) so far, with the largest score taken out of the sum. */
typedef struct running_sum {
    double largest, sum;
} running_sum;

static void add_score(running_sum *run, double score)
{
    if (score == -INFINITY) return;
    if (score > run->largest) {
        run->sum *= exp(run->largest - score);
        run->largest = score;
    }
    run->sum += exp(score - run->largest);
}

static double lse_of(const running_sum *run)
{
    return run->sum == 0.0 ? -INFINITY : run->largest + log(run->sum);
}

/* Scores of a row into weights, in place. */
static void weigh_row(const ref_attention *at, double *row, int64_t keys, const double *given)
{
    running_sum run = {-INFINITY, 0.0};
    add_score(&run, locus_ref_sink(at));
    for (int64_t column = 0; given == NULL && column < keys; column++) add_score(&run, row[column]);
    const double lse = given != NULL ? *given : lse_of(&run);
    for (int64_t column = 0; column < keys; column++)
        row[column] = row[column] == -INFINITY ? 0.0 : exp(row[column] - lse);
}

static void explain_row(void *context, size_t index, uint32_t worker)
{
    const explain_job *job = context;
    const ref_attention at = row_at(job, (int64_t)index, worker);
    const locus_explained *to = job->explained;
    const int64_t keys = job->block->keys;
    for (int64_t column = 0; column < keys; column++)
        explain_pair(job, &at, (int64_t)index, column);
    if (to->weight != NULL)
        weigh_row(&at, to->weight + (int64_t)index * keys, keys,
                  to->lse != NULL ? to->lse + index : NULL);
}

static void sum_row(void *context, size_t index, uint32_t worker)
{
    const explain_job *job = context;
    const ref_attention at = row_at(job, (int64_t)index, worker);
    running_sum run = {-INFINITY, 0.0};
    double parts[REF_PARTS];
    add_score(&run, locus_ref_sink(&at));
    for (int64_t n = 0; n < at.call->Tk; n++)
        if (locus_ref_visible(&at, n)) add_score(&run, locus_ref_parts(&at, n, parts));
    job->lse[index] = lse_of(&run);
}

/* ---- the doors ---- */

static locus_status check_range(const char *what, int64_t first, int64_t count, int64_t most,
                                locus_error *error)
{
    if (first >= 0 && count >= 0 && first <= most && count <= most - first) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_ARGUMENT,
                      "%s: found %" PRId64 "..%" PRId64 ", expected some of the %" PRId64, what,
                      first, first + count - 1, most);
}

static locus_status check_block(const locus_explainer *e, const locus_explain_block *block,
                                locus_error *error)
{
    if (e == NULL || block == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "explain: explainer or block are NULL");
    LOCUS_TRY(check_range("batch", block->batch, 1, e->call.B, error));
    LOCUS_TRY(check_range("head", block->head, 1, e->call.H, error));
    return check_range("queries", block->query, block->queries, e->call.Tq, error);
}

locus_status locus_explain(const locus_explainer *explainer, const locus_explain_block *block,
                           const locus_explained *explained, locus_error *error)
{
    locus_explain_block own_block = {.size = 0};
    locus_explained own_explained = {.size = 0};
    if (block == NULL || explained == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "explain: block or explained are NULL");
    LOCUS_ADOPT(block, own_block, "block", error);
    LOCUS_ADOPT(explained, own_explained, "explained", error);
    LOCUS_TRY(check_block(explainer, block, error));
    LOCUS_TRY(check_range("keys", block->key, block->keys, explainer->call.Tk, error));
    if (explained->weight != NULL && explained->lse == NULL && block->keys != explainer->call.Tk)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "explain: weights of %" PRId64 " of %" PRId64
                          " keys need lse, found NULL",
                          block->keys, explainer->call.Tk);
    explain_job job = {.explainer = explainer, .block = block, .explained = explained};
    locus_parallel_for(explainer->call.threads, (size_t)block->queries, explain_row, &job);
    return LOCUS_OK;
}

locus_status locus_explain_lse(const locus_explainer *explainer, const locus_explain_block *block,
                               double *lse, locus_error *error)
{
    locus_explain_block own_block = {.size = 0};
    if (block == NULL) return locus_fail(error, LOCUS_ERR_ARGUMENT, "explain: block is NULL");
    LOCUS_ADOPT(block, own_block, "block", error);
    LOCUS_TRY(check_block(explainer, block, error));
    if (lse == NULL) return locus_fail(error, LOCUS_ERR_ARGUMENT, "explain: found no room for lse");
    explain_job job = {.explainer = explainer, .block = block, .lse = lse};
    locus_parallel_for(explainer->call.threads, (size_t)block->queries, sum_row, &job);
    return LOCUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a call: terms, scores and weights of a head; rows and turns by the rules. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "exports.h"
#include "text.h"

/* ---- terms, scores, weights ---- */

static size_t pairs_of(const page_call_state *call)
{
    return call->token_count * call->token_count;
}
static double *score_of(const page_call_state *call)
{
    return call->numbers + call->info.terms * pairs_of(call);
}
static double *weight_of(const page_call_state *call) { return score_of(call) + pairs_of(call); }

static int reserve(page_call_state *call)
{
    const size_t pairs = pairs_of(call);
    if (call->numbers == NULL)
        call->numbers = malloc((call->info.terms + 2) * pairs * sizeof *call->numbers);
    if (call->visible == NULL) call->visible = malloc(pairs);
    return call->numbers != NULL && call->visible != NULL;
}

/* Softmax of one row without the terms that are off; a row that sees no key gets 0. */
static void weigh(const page_call_state *call, size_t row, uint32_t off)
{
    const size_t T = call->token_count, pairs = pairs_of(call);
    double *score = score_of(call) + row * T, *weight = weight_of(call) + row * T;
    const uint8_t *visible = call->visible + row * T;
    double largest = -INFINITY, sum = 0.0;
    for (size_t n = 0; n < T; n++) {
        score[n] = visible[n] ? 0.0 : -INFINITY;
        for (size_t t = 0; t < call->info.terms && visible[n]; t++)
            if ((off >> t & 1) == 0) score[n] += call->numbers[t * pairs + row * T + n];
        largest = fmax(largest, score[n]);
    }
    for (size_t n = 0; n < T; n++) {
        weight[n] = visible[n] ? exp(score[n] - largest) : 0.0;
        sum += weight[n];
    }
    for (size_t n = 0; n < T && sum > 0.0; n++) weight[n] /= sum;
}

int page_explain(uint32_t slot, uint32_t head, uint32_t off)
{
    page_call_state *call = call_at(slot);
    locus_error error = {"out of memory"};
    if (call == NULL || !reserve(call)) return call_fail(&error);
    call->head = head;
    const int64_t T = (int64_t)call->token_count;
    const locus_explain_block block = {.size = sizeof block, .head = head, .queries = T, .keys = T};
    const locus_explained explained = {.size = sizeof explained,
                                       .terms = call->numbers,
                                       .score = score_of(call),
                                       .visible = call->visible,
                                       .weight = weight_of(call)};
    if (locus_explain(call->explainer, &block, &explained, &error) != LOCUS_OK)
        return call_fail(&error);
    if (off != 0)
        for (size_t row = 0; row < call->token_count; row++) weigh(call, row, off);
    return 0;
}

const double *page_terms(uint32_t slot)
{
    return call_at(slot) != NULL ? call_at(slot)->numbers : NULL;
}
const double *page_score(uint32_t slot)
{
    return page_terms(slot) != NULL ? score_of(call_at(slot)) : NULL;
}
const double *page_weight(uint32_t slot)
{
    return page_terms(slot) != NULL ? weight_of(call_at(slot)) : NULL;
}
const uint8_t *page_visible(uint32_t slot)
{
    return call_at(slot) != NULL ? call_at(slot)->visible : NULL;
}

/* ---- the rules ---- */

enum { MOST_ROWS = 4097 };

const double *page_rows(uint32_t slot, int32_t first, uint32_t count)
{
    static int64_t rows[2][MOST_ROWS];
    static double numbers[2 * MOST_ROWS];
    const page_call_state *call = call_at(slot);
    locus_error error = {"rows: too many distances"};
    if (call == NULL || count > MOST_ROWS ||
        locus_call_rows(call->level, call->problem->config, call->problem->in, first, count,
                        rows[0], rows[1], &error) != LOCUS_OK) {
        call_fail(&error);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = (double)rows[0][i];
        numbers[count + i] = (double)rows[1][i];
    }
    return numbers;
}

const double *page_turns(uint32_t slot)
{
    static double numbers[2 * CALL_PAIRS];
    const page_call_state *call = call_at(slot);
    locus_error error = {"turns: no call"};
    size_t pairs = CALL_PAIRS;
    double frequency[CALL_PAIRS], gain[CALL_PAIRS];
    if (call == NULL || locus_call_turns(call->level, call->problem->config, call->problem->in,
                                         &pairs, frequency, gain, &error) != LOCUS_OK) {
        call_fail(&error);
        return NULL;
    }
    for (size_t i = 0; i < pairs; i++) {
        numbers[2 * i] = frequency[i];
        numbers[2 * i + 1] = gain[i];
    }
    return numbers;
}

const double *page_similarity(uint32_t count, int32_t table)
{
    enum { WIDTH = 64 };
    static double rows[CALL_TOKENS][WIDTH], products[CALL_TOKENS * CALL_TOKENS];
    const int64_t T = count < CALL_TOKENS ? count : CALL_TOKENS;
    for (int64_t i = 0; i < T; i++) locus_sinusoid(table, WIDTH, i, rows[i]);
    for (int64_t i = 0; i < T * T; i++) {
        products[i] = 0.0;
        for (int64_t c = 0; c < WIDTH; c++) products[i] += rows[i / T][c] * rows[i % T][c];
    }
    return products;
}

/* ---- the kernels themselves ---- */

static size_t elements(const locus_tensor *tensor) { return (size_t)locus_tensor_elements(tensor); }

static locus_status run_attend(page_call_state *call, const locus_results *results,
                               locus_error *error)
{
    locus_plan *plan = NULL;
    locus_status status = locus_plan_new(&plan, call->problem->config, call->problem->in, error);
    if (status != LOCUS_OK) return status;
    const size_t bytes = locus_forward_workspace(plan);
    void *workspace = malloc(bytes);
    status = workspace == NULL
                 ? LOCUS_ERR_MEMORY
                 : locus_forward(plan, call->problem->in, results, workspace, bytes, error);
    free(workspace);
    locus_plan_free(plan);
    return status;
}

static locus_status run_layer(page_call_state *call, const locus_results *results,
                              locus_error *error)
{
    locus_layer *layer = NULL;
    locus_status status = locus_layer_new(&layer, call->problem->config, call->problem->in, error);
    if (status != LOCUS_OK) return status;
    const size_t kept = locus_layer_saved_bytes(layer);
    const size_t bytes = locus_layer_forward_workspace(layer);
    void *saved = malloc(kept), *workspace = malloc(bytes);
    status = saved == NULL || workspace == NULL
                 ? LOCUS_ERR_MEMORY
                 : locus_layer_forward(layer, call->problem->in, results, saved, kept, workspace,
                                       bytes, error);
    free(saved);
    free(workspace);
    locus_layer_free(layer);
    return status;
}

const float *page_forward(uint32_t slot)
{
    page_call_state *call = call_at(slot);
    locus_error error = {"out of memory"};
    if (call == NULL) return NULL;
    const size_t out = elements(&call->problem->out), lse = elements(&call->problem->lse);
    free(call->forward);
    call->forward_count = out + lse;
    call->forward = malloc(call->forward_count * sizeof *call->forward);
    if (call->forward == NULL) return NULL;
    locus_results results = {.size = sizeof results,
                             .out = call->problem->out,
                             .lse = call->problem->lse};
    results.out.data = call->forward;
    results.lse.data = call->forward + out;
    const locus_status status = call->level == LOCUS_LAYER ? run_layer(call, &results, &error)
                                                           : run_attend(call, &results, &error);
    if (status == LOCUS_OK) return call->forward;
    call_fail(&error);
    return NULL;
}

uint32_t page_forward_count(uint32_t slot)
{
    return call_at(slot) != NULL ? (uint32_t)call_at(slot)->forward_count : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "model/memory.h"

/* What a batch may not be, and one run over it. */

static locus_status check_ids(const char *what, const int32_t *ids, int64_t count, int64_t rows,
                              locus_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= rows)
            return locus_fail(error, LOCUS_ERR_RANGE,
                              "token %" PRId64 ": found %s %" PRId32 ", expected 0 to %" PRId64, i,
                              what, ids[i], rows - 1);
    return LOCUS_OK;
}

static locus_status check_rows(const run *r)
{
    const locus_model_batch *batch = r->batch;
    const int64_t N = r->pass->tokens[r->pass->first_stack];
    if (batch->rows == NULL) return LOCUS_OK;
    if (batch->row_count < 0 || batch->row_count > N)
        return locus_fail(r->error, LOCUS_ERR_ARGUMENT,
                          "row_count: found %" PRId64 ", expected 0 to %" PRId64, batch->row_count,
                          N);
    for (int64_t i = 0; i < batch->row_count; i++)
        if (batch->rows[i] < 0 || batch->rows[i] >= N)
            return locus_fail(r->error, LOCUS_ERR_RANGE,
                              "rows[%" PRId64 "]: found %" PRId32 ", expected 0 to %" PRId64, i,
                              batch->rows[i], N - 1);
    return LOCUS_OK;
}

static locus_status check_tokens(const run *r, int stack)
{
    const model_description *d = &r->pass->model->stacks[stack];
    const int64_t N = r->pass->tokens[stack];
    const void *given = d->features > 0 ? (const void *)r->batch->features : r->ids[stack];
    if (N > 0 && given == NULL)
        return locus_fail(r->error, LOCUS_ERR_ARGUMENT, "model: no %s, which it takes",
                          d->features > 0 ? "features" : "ids");
    return d->features > 0 ? LOCUS_OK : check_ids("id", r->ids[stack], N, d->vocabulary, r->error);
}

static locus_status check_batch(const run *r)
{
    const locus_model_pass *p = r->pass;
    const model_description *d = &p->model->stacks[p->first_stack];
    for (int s = 0; s < 2; s++)
        if (pass_runs(p, s)) LOCUS_TRY(check_tokens(r, s));
    if (r->batch->types == NULL) return LOCUS_OK;
    const int64_t types = d->segments ? INT32_MAX : d->types > 0 ? d->types : 1;
    return check_ids("type", r->batch->types, p->tokens[p->first_stack], types, r->error);
}

static locus_status check_results(const run *r)
{
    const locus_model_pass *p = r->pass;
    const model_description *d = &p->model->stacks[p->first_stack + p->stack_count - 1];
    if ((r->results->logits != NULL || r->results->next != NULL) && d->head == LOCUS_MODEL_NO_HEAD)
        return locus_fail(r->error, LOCUS_ERR_ARGUMENT,
                          "logits: the model has no head that gives them");
    return LOCUS_OK;
}

static locus_status check_workspace(const locus_model_pass *pass, const run_memory *memory,
                                    locus_error *error)
{
    const int aligned = (uintptr_t)memory->work % 8 == 0;
    if (memory->work == NULL && pass->bytes > 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    if (memory->work_bytes >= pass->bytes && aligned) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_WORKSPACE,
                      "workspace: found %zu bytes at %s multiple of 8, expected %zu at a "
                      "multiple of 8",
                      memory->work_bytes, aligned ? "a" : "no", pass->bytes);
}

/* 1: the last states of the last stack. */
static int wants_last(const run *r)
{
    const locus_model_pass *p = r->pass;
    const int stack = p->first_stack + p->stack_count - 1;
    float *const *hidden = p->stack_count > 1 ? r->results->decoder_hidden : r->results->hidden;
    return hidden != NULL && hidden[p->model->stacks[stack].layers] != NULL;
}

/* How many rows are wanted, and whether the last layer can do without the others. */
static void count_rows(run *r)
{
    const locus_model_pass *p = r->pass;
    const int64_t *offsets = p->offsets[p->first_stack];
    const uint32_t all = SERVES_LAST | SERVES_EMBEDDING;
    r->rows[NEXT] = 0;
    for (int64_t s = 0; s < p->sequences; s++) r->rows[NEXT] += offsets[s + 1] > offsets[s];
    if ((r->serves & all) != 0 || p->model->program.trains) return;
    const int next = (r->serves & (SERVES_NEXT | SERVES_LOGITS)) == SERVES_NEXT;
    const int asked = r->asked && model_last_stack(p->model)->head == LOCUS_MODEL_FILL &&
                      (r->serves & SERVES_LOGITS) != 0;
    r->few = next || asked;
    if (r->few) r->rows[LAST] = asked ? r->rows[ASKED] : r->rows[NEXT];
}

/* What is wanted of a pass, and what it is about. */
static void take_batch(run *r)
{
    const locus_model_batch *batch = r->batch;
    const locus_model_results *to = r->results;
    r->serves = SERVES_ALL;
    if (to->logits != NULL) r->serves |= SERVES_LOGITS;
    if (to->next != NULL) r->serves |= SERVES_NEXT;
    if (to->embedding != NULL) r->serves |= SERVES_EMBEDDING;
    if (r->keeps || wants_last(r)) r->serves |= SERVES_LAST;
    r->ids[r->pass->first_stack] = batch->ids;
    if (r->pass->stack_count > 1) r->ids[1] = batch->decoder_ids;
    r->types = batch->types;
    r->picked = batch->rows;
    r->asked = batch->rows != NULL;
    r->memory = batch->memory;
    if (r->asked) r->rows[ASKED] = batch->row_count;
    count_rows(r);
}

/* ids and the like stay beside what is kept. */
static void copy_batch(run *r, const run *from)
{
    const int64_t tokens = r->pass->tokens[0] * (int64_t)sizeof(int32_t);
    memcpy((void *)(uintptr_t)r->picked, from->picked != NULL ? from->picked : r->picked,
           (size_t)(r->asked ? r->rows[ASKED] : 0) * sizeof(int32_t));
    if (from->types != NULL) memcpy((void *)(uintptr_t)r->types, from->types, (size_t)tokens);
    for (int s = 0; s < 2; s++) {
        const size_t bytes = (size_t)r->pass->tokens[s] * sizeof(int32_t);
        if (from->ids[s] != NULL) memcpy((void *)(uintptr_t)r->ids[s], from->ids[s], bytes);
        if (from->ids[s] == NULL) r->ids[s] = NULL;
    }
    if (from->types == NULL) r->types = NULL;
}

locus_status model_run(const locus_model_pass *pass, const locus_model_batch *batch,
                       const locus_model_results *results, run_memory *memory, run_mode mode,
                       locus_error *error)
{
    run r = {.p = &pass->model->program,
             .pass = pass,
             .batch = batch,
             .results = results,
             .keeps = mode == RUN_KEEPING,
             .error = error};
    kept_head *head;
    pass_rows(pass, r.rows);
    LOCUS_TRY(check_workspace(pass, memory, error));
    LOCUS_TRY(check_rows(&r));
    take_batch(&r);
    LOCUS_TRY(check_results(&r));
    LOCUS_TRY(check_batch(&r));
    const run given = r;
    run_memory laid = *memory;
    if (!run_lay_out(&r, mode, &laid, &head))
        return locus_fail(error, LOCUS_ERR_WORKSPACE, "workspace: cannot be laid out");
    if (mode != RUN_KEEPING) return model_forward_ops(&r);
    copy_batch(&r, &given);
    *head = (kept_head){.serves = r.serves,
                        .asked = r.asked,
                        .has_types = r.types != NULL,
                        .asked_rows = r.rows[ASKED],
                        .features = batch->features,
                        .memory = batch->memory};
    LOCUS_TRY(model_forward_ops(&r));
    head->pass = pass;
    return LOCUS_OK;
}

locus_status locus_model_forward(const locus_model_pass *pass, const locus_model_batch *batch,
                                 const locus_model_results *results, void *workspace,
                                 size_t workspace_bytes, locus_error *error)
{
    locus_model_batch own_batch = {.size = sizeof own_batch};
    locus_model_results own_results = {.size = sizeof own_results};
    if (pass == NULL || batch == NULL || results == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    LOCUS_ADOPT(batch, own_batch, "model batch", error);
    LOCUS_ADOPT(results, own_results, "model results", error);
    if (pass->stack_count > 1 && results->next != NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "next: not of an encoder and its decoder, ask for logits");
    run_memory memory = {.work = workspace, .work_bytes = workspace_bytes};
    return model_run(pass, batch, results, &memory, RUN_FORWARD, error);
}

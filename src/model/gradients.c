/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "model/memory.h"
#include "nn/cross_entropy.h"

/* ---- parameters ---- */

int64_t locus_model_parameter_count(const locus_model *m)
{
    return m != NULL && m->program.trains ? m->program.trained_tensors : 0;
}

int64_t locus_model_parameter_floats(const locus_model *m)
{
    return m != NULL && m->program.trains ? m->program.trained_count : 0;
}

/* Tensor `index` of those that are trained. */
static const store_tensor *trained_at(const program *p, int64_t index)
{
    for (int i = 0; i < p->tensor_count; i++)
        if (!p->tensors[i].fixed && index-- == 0) return &p->tensors[i];
    return NULL;
}

locus_status locus_model_parameter_at(const locus_model *m, int64_t index,
                                      locus_model_parameter *parameter, locus_error *error)
{
    if (m == NULL || parameter == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    const int64_t count = locus_model_parameter_count(m);
    if (index < 0 || index >= count)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "parameter: found %" PRId64 ", the model has %" PRId64
                          " that can be trained",
                          index, count);
    const store_tensor *t = trained_at(&m->program, index);
    const locus_model_parameter found = {.size = sizeof found,
                                         .name = t->name,
                                         .value = locus_view(m->program.trained + t->at, LOCUS_F32,
                                                             t->rank, t->shape),
                                         .at = t->at};
    locus_hand_back(parameter, &found, sizeof found);
    return LOCUS_OK;
}

static locus_status not_trainable(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: it was not opened to be trained");
}

locus_status locus_model_update(locus_model *m, locus_error *error)
{
    if (m == NULL) return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    if (!m->program.trains) return not_trainable(error);
    return program_fold(&m->program, error);
}

size_t locus_model_kept(const locus_model_pass *pass) { return pass->kept_bytes; }

size_t locus_model_backward_workspace(const locus_model_pass *pass) { return pass->back_bytes; }

/* ---- forward ---- */

static kept_head *head_of(const void *kept)
{
    return (kept_head *)(((uintptr_t)kept + LOCUS_ALIGNMENT - 1) &
                         ~(uintptr_t)(LOCUS_ALIGNMENT - 1));
}

locus_status locus_model_forward_kept(const locus_model_pass *pass, const locus_model_batch *batch,
                                      const locus_model_results *results, void *kept,
                                      size_t kept_bytes, void *workspace, size_t workspace_bytes,
                                      locus_error *error)
{
    locus_model_batch own_batch = {.size = sizeof own_batch};
    locus_model_results own_results = {.size = sizeof own_results};
    if (pass == NULL || batch == NULL || results == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    if (!pass->model->program.trains) return not_trainable(error);
    LOCUS_ADOPT(batch, own_batch, "model batch", error);
    LOCUS_ADOPT(results, own_results, "model results", error);
    if (results->next != NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "next: has no gradient, ask for the logits of all tokens");
    LOCUS_TRY(locus_check_memory("kept", kept, kept_bytes, pass->kept_bytes, error));
    LOCUS_TRY(locus_check_memory("workspace", workspace, workspace_bytes, pass->bytes, error));
    head_of(kept)->pass = NULL; /* until the pass is through */
    run_memory memory = {.work = workspace, .kept = kept, .work_bytes = workspace_bytes};
    return model_run(pass, batch, results, &memory, RUN_KEEPING, error);
}

/* ---- backward ---- */

static locus_status check_given(const locus_model_gradients *g, const kept_head *head,
                                locus_error *error)
{
    if (g->logits != NULL && (head->serves & SERVES_LOGITS) == 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "logits: a gradient of what the forward pass did not give");
    if (g->embedding != NULL && (head->serves & SERVES_EMBEDDING) == 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "embedding: a gradient of what the forward pass did not give");
    if (g->parameters == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "parameters: NULL argument");
    if ((g->flags & ~LOCUS_ACCUMULATE) != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "flags: found %" PRIu32 ", expected 0 or LOCUS_ACCUMULATE", g->flags);
    return LOCUS_OK;
}

static int64_t input_width(const model_description *d)
{
    return d->features > 0 ? d->features : d->embedding_width;
}

static void clear(const locus_model_pass *p, const locus_model_gradients *g)
{
    const locus_model *m = p->model;
    if ((g->flags & LOCUS_ACCUMULATE) != 0) return;
    memset(g->parameters, 0, (size_t)m->program.trained_count * sizeof(float));
    if (g->input != NULL)
        memset(g->input, 0, (size_t)(p->tokens[0] * input_width(&m->stacks[0])) * sizeof(float));
}

/* What was given in the forward pass, as far as gradients of it came. */
static void take_head(run *r, const kept_head *head, const locus_model_gradients *g)
{
    r->serves = SERVES_ALL | SERVES_LAST;
    if (g->logits != NULL) r->serves |= SERVES_LOGITS;
    if (g->embedding != NULL) r->serves |= SERVES_EMBEDDING;
    r->asked = head->asked;
    r->rows[ASKED] = head->asked_rows;
    r->memory = head->memory;
    r->input = g->input;
}

locus_status locus_model_backward(const locus_model_pass *pass,
                                  const locus_model_gradients *gradients, const void *kept,
                                  size_t kept_bytes, void *workspace, size_t workspace_bytes,
                                  locus_error *error)
{
    locus_model_gradients own = {.size = sizeof own};
    if (pass == NULL || gradients == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    if (!pass->model->program.trains) return not_trainable(error);
    LOCUS_ADOPT(gradients, own, "model gradients", error);
    LOCUS_TRY(locus_check_memory("kept", kept, kept_bytes, pass->kept_bytes, error));
    LOCUS_TRY(locus_check_memory("workspace", workspace, workspace_bytes, pass->back_bytes, error));
    const kept_head *found = head_of(kept);
    if (found->pass != pass)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "kept: no forward pass of these lengths has filled it");
    LOCUS_TRY(check_given(gradients, found, error));
    const locus_model_batch batch = {.size = sizeof batch, .features = found->features};
    run r = {.p = &pass->model->program, .pass = pass, .batch = &batch, .keeps = 1, .error = error};
    run_memory memory = {.work = workspace, .kept = (void *)(uintptr_t)kept};
    kept_head *head;
    pass_rows(pass, r.rows);
    take_head(&r, found, gradients);
    if (!run_lay_out(&r, RUN_BACK, &memory, &head))
        return locus_fail(error, LOCUS_ERR_WORKSPACE, "workspace: cannot be laid out");
    if (!head->has_types) r.types = NULL;
    run_place_gradients(&r, gradients);
    clear(pass, gradients);
    return model_backward_ops(&r, gradients);
}

/* ---- loss ---- */

locus_status locus_model_cross_entropy(const locus_model *m, const float *logits,
                                       const int32_t *classes, int64_t rows, int64_t width,
                                       float *each, float *dlogits, double *loss,
                                       locus_error *error)
{
    if (m == NULL || loss == NULL || rows < 0 || width < 1 ||
        (rows > 0 && (logits == NULL || classes == NULL || each == NULL)))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "cross entropy: NULL or negative argument");
    for (int64_t i = 0; i < rows; i++)
        if (classes[i] >= width)
            return locus_fail(error, LOCUS_ERR_RANGE,
                              "classes[%" PRId64 "]: found %" PRId32 ", expected at most %" PRId64,
                              i, classes[i], width - 1);
    const locus_cross_entropy e = {.target = classes, .width = width};
    const locus_rows x = {(float *)(uintptr_t)logits, rows, width}, dx = {dlogits, rows, width};
    double total, weight;
    locus_cross_entropy_forward(&m->workers, &e, &x, each, &total, &weight);
    *loss = weight > 0.0 ? total / weight : 0.0;
    if (dlogits != NULL)
        locus_cross_entropy_backward(&m->workers, &e, &dx, &x,
                                     weight > 0.0 ? (float)(1.0 / weight) : 0.0f);
    return LOCUS_OK;
}

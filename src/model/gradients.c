/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "model/backward.h"
#include "nn/cross_entropy.h"

/* ---- parameters ---- */

/* Those of an encoder come first, then those of the decoder behind it. */
static const model_trainable *stack_of(const locus_model *m, int which)
{
    if (m == NULL) return NULL;
    if (which == 0) return m->trainable;
    return m->decoder != NULL ? m->decoder->trainable : NULL;
}

int64_t locus_model_parameter_count(const locus_model *m)
{
    int64_t count = 0;
    for (int i = 0; i < 2 && stack_of(m, i) != NULL; i++)
        count += (int64_t)stack_of(m, i)->tensors.count;
    return count;
}

int64_t locus_model_parameter_floats(const locus_model *m)
{
    int64_t count = 0;
    for (int i = 0; i < 2 && stack_of(m, i) != NULL; i++) count += stack_of(m, i)->count;
    return count;
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
    const int64_t first = (int64_t)stack_of(m, 0)->tensors.count;
    const model_trainable *stack = stack_of(m, index >= first);
    const trainable_tensor *t =
        locus_list_at(&stack->tensors, (size_t)(index >= first ? index - first : index));
    const locus_model_parameter found = {
        .size = sizeof found,
        .name = t->name,
        .value = locus_view(stack->values + t->at, LOCUS_F32, t->rank, t->shape),
        .at = t->at + (index >= first ? stack_of(m, 0)->count : 0)};
    locus_hand_back(parameter, &found, sizeof found);
    return LOCUS_OK;
}

static locus_status not_trainable(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_ARGUMENT,
                      "model: it was not opened to be trained (locus_model_config.trainable)");
}

locus_status locus_model_update(locus_model *m, locus_error *error)
{
    if (m == NULL) return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    if (m->trainable == NULL) return not_trainable(error);
    for (int i = 0; i < 2 && stack_of(m, i) != NULL; i++) model_arrange(stack_of(m, i));
    return LOCUS_OK;
}

/* ---- memory ---- */

typedef struct carver {
    unsigned char *base;
    uint64_t at;
    int failed;
} carver;

static void *carve(carver *c, uint64_t bytes)
{
    void *place = c->base != NULL ? c->base + c->at : NULL;
    uint64_t padded = 0;
    if (!locus_pad_u64(&padded, bytes, LOCUS_ALIGNMENT) || !locus_add_u64(&c->at, c->at, padded))
        c->failed = 1;
    return place;
}

static float *carve_floats(carver *c, int64_t count)
{
    return carve(c, (uint64_t)count * sizeof(float));
}

static uint64_t most_of_convolution(const locus_model_pass *p, int *failed)
{
    const locus_model *m = p->model;
    uint64_t most = 0, bytes = 0;
    if (m->description.taps > 0) {
        const locus_convolution f = model_convolution(m);
        *failed |= !locus_convolution_workspace(&most, &f, p->longest);
    }
    if (m->description.forward_taps > 1) {
        const locus_convolution in = model_taps_in(m, &m->layers[0]);
        const locus_convolution out = model_taps_out(m, &m->layers[0]);
        *failed |= !locus_convolution_workspace(&most, &in, p->longest);
        *failed |= !locus_convolution_workspace(&bytes, &out, p->longest);
    }
    return bytes > most ? bytes : most;
}

static size_t most_of_attention(const locus_model_pass *p)
{
    size_t most = 0;
    for (size_t i = 0; i < p->plan_count; i++) {
        const size_t bytes = locus_backward_workspace(p->plans[i].plan);
        if (bytes > most) most = bytes;
    }
    return most;
}

int model_back_carve(const locus_model_pass *p, void *base, back_work *w)
{
    const model_description *d = &p->model->description;
    carver c = {.base = base};
    *w = (back_work){.twin = carve(&c, p->bytes)};
    w->given = carve_floats(&c, p->tape_largest);
    w->other = carve_floats(&c, p->tape_largest);
    w->parts = carve_floats(&c, p->tape_parts);
    w->embedding = carve_floats(&c, p->ragged.sequences * d->width);
    for (int i = 0; i < 2 && stack_of(p->model, i) != NULL; i++)
        w->copies[i] = carve_floats(&c, stack_of(p->model, i)->arranged);
    if (d->segments) w->pairs = carve_floats(&c, d->heads * p->longest * p->longest);
    w->attention_bytes = most_of_attention(p);
    if (p->decoder != NULL && most_of_attention(p->decoder) > w->attention_bytes)
        w->attention_bytes = most_of_attention(p->decoder);
    w->attention = carve(&c, w->attention_bytes);
    w->convolution = carve(&c, most_of_convolution(p, &c.failed));
    w->linear = carve(&c, locus_linear_workspace(&p->model->linear));
    w->norm = carve(&c, locus_norm_workspace(p->tape_rows));
    return !c.failed && locus_to_size(&w->bytes, c.at + LOCUS_ALIGNMENT);
}

static uintptr_t line(const void *memory)
{
    return ((uintptr_t)memory + LOCUS_ALIGNMENT - 1) & ~(uintptr_t)(LOCUS_ALIGNMENT - 1);
}

/* ---- counting ---- */

/* The executor runs on a tape that records nothing, with the batch that needs most of it. */
typedef struct rehearsal {
    int32_t *ids, *types; /* [tokens]; types: in turn 0 and 1 where there are two */
    const float **memory; /* [layers] */
    int32_t *decoder_ids; /* [tokens of a decoder] */
    void *workspace;
} rehearsal;

static int new_rehearsal(const locus_model_pass *p, rehearsal *r)
{
    const locus_allocator *a = p->model->allocator;
    const size_t tokens = (size_t)p->tokens, layers = (size_t)p->model->description.layers;
    r->ids = locus_allocate(a, tokens, sizeof *r->ids);
    r->types = locus_allocate(a, tokens, sizeof *r->types);
    r->memory = locus_allocate(a, layers, sizeof *r->memory);
    r->workspace = locus_allocate(a, 1, p->bytes);
    r->decoder_ids = locus_allocate(a, p->decoder != NULL ? (size_t)p->decoder->tokens : 0,
                                    sizeof *r->decoder_ids);
    if (r->ids == NULL || r->types == NULL || r->memory == NULL || r->workspace == NULL ||
        r->decoder_ids == NULL)
        return 0;
    const size_t kinds = p->model->description.types > 1 ? 2 : 1;
    for (size_t i = 0; i < tokens; i++) r->types[i] = (int32_t)(i % kinds);
    for (size_t i = 0; i < layers; i++) r->memory[i] = (const float *)r->workspace;
    return 1;
}

static void free_rehearsal(const locus_model_pass *p, rehearsal *r)
{
    const locus_allocator *a = p->model->allocator;
    locus_release(a, r->ids);
    locus_release(a, r->types);
    locus_release(a, r->decoder_ids);
    locus_release(a, (void *)(uintptr_t)r->memory);
    locus_release(a, r->workspace);
}

/* A pass whose operators are recorded: it and its models are copies, for others use them as well. */
typedef struct recorded {
    locus_model model, decoder_model;
    locus_model_pass pass, decoder;
} recorded;

static void record(recorded *r, const locus_model_pass *p, model_tape *tape)
{
    r->model = *p->model;
    r->pass = *p;
    r->model.tape = tape;
    r->pass.model = &r->model;
    if (p->decoder == NULL) return;
    r->decoder_model = *p->decoder->model;
    r->decoder = *p->decoder;
    r->decoder_model.tape = tape;
    r->decoder.model = &r->decoder_model;
    r->pass.decoder = &r->decoder;
}

static locus_status rehearse(const locus_model_pass *p, const rehearsal *r, model_tape *tape,
                             locus_error *error)
{
    float nowhere; /* results lie outside of the workspace */
    const model_description *d = &p->model->description;
    recorded own;
    record(&own, p, tape);
    const locus_model_batch batch = {.size = sizeof batch,
                                     .ids = r->ids,
                                     .types = r->types,
                                     .rows = r->ids,
                                     .row_count = p->tokens,
                                     .memory = d->memory > 0 ? r->memory : NULL,
                                     .features = r->workspace,
                                     .decoder_ids = r->decoder_ids};
    const locus_model_results results = {
        .size = sizeof results,
        .logits = d->head != LOCUS_MODEL_NO_HEAD || p->decoder != NULL ? &nowhere : NULL,
        .embedding = &nowhere};
    return locus_model_forward(&own.pass, &batch, &results, r->workspace, p->bytes, error);
}

static locus_status too_large(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY,
                      "model: these lengths need more memory than a machine can address");
}

locus_status model_count_tape(locus_model_pass *p, locus_error *error)
{
    rehearsal r = {.ids = NULL};
    back_work work;
    const int ready = new_rehearsal(p, &r);
    model_tape tape = {.counting = 1, .pass = p, .base = line(r.workspace), .base_bytes = p->bytes};
    const locus_status status = ready ? rehearse(p, &r, &tape, error)
                                      : locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    free_rehearsal(p, &r);
    LOCUS_TRY(status);
    p->tape_entries = tape.count;
    p->tape_largest = tape.largest;
    p->tape_rows = tape.most_rows;
    p->tape_parts = tape.most_parts;
    carver c = {.base = NULL};
    (void)carve(&c, sizeof tape);
    (void)carve(&c, tape.count * sizeof(tape_entry));
    (void)carve(&c, tape.at);
    if (tape.failed || c.failed || !locus_to_size(&p->kept_bytes, c.at + LOCUS_ALIGNMENT) ||
        !model_back_carve(p, NULL, &work))
        return too_large(error);
    p->back_bytes = work.bytes;
    return LOCUS_OK;
}

size_t locus_model_kept(const locus_model_pass *pass) { return pass->kept_bytes; }

size_t locus_model_backward_workspace(const locus_model_pass *pass) { return pass->back_bytes; }

/* ---- forward ---- */

/* An empty tape in the memory that is kept. */
static model_tape *lay_tape(const locus_model_pass *p, void *kept)
{
    carver c = {.base = (unsigned char *)line(kept)};
    model_tape *tape = carve(&c, sizeof *tape);
    *tape = (model_tape){.pass = p, .room = p->tape_entries};
    tape->entries = carve(&c, p->tape_entries * sizeof(tape_entry));
    tape->memory = c.base + c.at;
    tape->bytes = p->kept_bytes - LOCUS_ALIGNMENT - c.at;
    return tape;
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
    if (pass->model->trainable == NULL) return not_trainable(error);
    LOCUS_ADOPT(batch, own_batch, "model batch", error);
    LOCUS_ADOPT(results, own_results, "model results", error);
    if (results->next != NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "next: has no gradient, ask for the logits of all tokens");
    LOCUS_TRY(locus_check_memory("kept", kept, kept_bytes, pass->kept_bytes, error));
    LOCUS_TRY(locus_check_memory("workspace", workspace, workspace_bytes, pass->bytes, error));
    model_tape *tape = lay_tape(pass, kept);
    tape->base = line(workspace);
    tape->base_bytes = pass->bytes - LOCUS_ALIGNMENT;
    tape->features = batch->features;
    tape->logits = results->logits;
    tape->embedding = results->embedding;
    recorded own;
    record(&own, pass, tape);
    locus_status status =
        locus_model_forward(&own.pass, batch, results, workspace, workspace_bytes, error);
    if (status == LOCUS_OK && tape->failed)
        status = locus_fail(error, LOCUS_ERR_WORKSPACE, "kept: more came than the pass counted");
    if (status != LOCUS_OK) tape->pass = NULL; /* there is no way back */
    return status;
}

/* ---- backward ---- */

static locus_status check_given(const back *b)
{
    const locus_model_gradients *g = b->gradients;
    if (g->logits != NULL && b->tape->logits == NULL)
        return locus_fail(b->error, LOCUS_ERR_ARGUMENT,
                          "logits: a gradient of what the forward pass did not give");
    if (g->embedding != NULL && b->tape->embedding == NULL)
        return locus_fail(b->error, LOCUS_ERR_ARGUMENT,
                          "embedding: a gradient of what the forward pass did not give");
    if (g->parameters == NULL)
        return locus_fail(b->error, LOCUS_ERR_ARGUMENT, "parameters: NULL argument");
    if ((g->flags & ~LOCUS_ACCUMULATE) != 0)
        return locus_fail(b->error, LOCUS_ERR_ARGUMENT,
                          "flags: found %" PRIu32 ", expected 0 or LOCUS_ACCUMULATE", g->flags);
    return LOCUS_OK;
}

static int64_t input_width(const model_description *d)
{
    return d->features > 0 ? d->features : d->embedding_width;
}

static void clear(const back *b, const locus_model_pass *p)
{
    const locus_model *m = p->model;
    const locus_model_gradients *g = b->gradients;
    memset(b->w.twin, 0, p->bytes);
    for (int i = 0; i < 2 && stack_of(m, i) != NULL; i++)
        memset(b->w.copies[i], 0, (size_t)stack_of(m, i)->arranged * sizeof(float));
    if (g->embedding != NULL)
        memcpy(b->w.embedding, g->embedding,
               (size_t)(p->ragged.sequences * model_last_width(m)) * sizeof(float));
    if ((g->flags & LOCUS_ACCUMULATE) != 0) return;
    memset(g->parameters, 0, (size_t)locus_model_parameter_floats(m) * sizeof(float));
    if (g->input != NULL)
        memset(g->input, 0, (size_t)(p->tokens * input_width(&m->description)) * sizeof(float));
}

locus_status locus_model_backward(const locus_model_pass *pass,
                                  const locus_model_gradients *gradients, const void *kept,
                                  size_t kept_bytes, void *workspace, size_t workspace_bytes,
                                  locus_error *error)
{
    locus_model_gradients own = {.size = sizeof own};
    if (pass == NULL || gradients == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    if (pass->model->trainable == NULL) return not_trainable(error);
    LOCUS_ADOPT(gradients, own, "model gradients", error);
    LOCUS_TRY(locus_check_memory("kept", kept, kept_bytes, pass->kept_bytes, error));
    LOCUS_TRY(locus_check_memory("workspace", workspace, workspace_bytes, pass->back_bytes, error));
    const model_tape *tape = (const model_tape *)line(kept);
    if (tape->pass != pass)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "kept: no forward pass of these lengths has filled it");
    back b = {.m = pass->model, .tape = tape, .gradients = gradients, .error = error};
    LOCUS_TRY(check_given(&b));
    if (!model_back_carve(pass, (void *)line(workspace), &b.w)) return too_large(error);
    const locus_model *m = pass->model;
    b.parameters = (trainable_gradients){.stack = {stack_of(m, 0), stack_of(m, 1)},
                                         .tensors = {gradients->parameters,
                                                     gradients->parameters + stack_of(m, 0)->count},
                                         .copies = {b.w.copies[0], b.w.copies[1]}};
    clear(&b, pass);
    return model_back_run(&b);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/batch.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/tensorfile.h"

locus_status lab_batch_new(train_batch *batch, int64_t tokens, locus_error *error)
{
    const size_t count = (size_t)tokens;
    *batch = (train_batch){.token = locus_allocate(NULL, count, sizeof *batch->token),
                           .target = locus_allocate(NULL, count, sizeof *batch->target),
                           .weight = locus_allocate(NULL, count, sizeof *batch->weight),
                           .position = locus_allocate(NULL, count, sizeof *batch->position)};
    if (batch->token != NULL && batch->target != NULL && batch->weight != NULL &&
        batch->position != NULL)
        return LOCUS_OK;
    lab_batch_free(batch);
    return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for a batch");
}

void lab_batch_free(train_batch *batch)
{
    locus_release(NULL, batch->token);
    locus_release(NULL, batch->target);
    locus_release(NULL, batch->weight);
    locus_release(NULL, batch->position);
    *batch = (train_batch){.token = NULL};
}

/* ---- positions ---- */

/* `count` of 0 .. rows - 1 in ascending order, every set equally likely: each row is taken with
 * the share of those still wanted among those still there. */
static void draw_subset(train_stream *stream, int64_t rows, int64_t count, int32_t *position)
{
    int64_t taken = 0;
    for (int64_t i = 0; taken < count; i++)
        if ((int64_t)train_below(stream, (uint32_t)(rows - i)) < count - taken)
            position[taken++] = (int32_t)i;
}

/* Offsets are drawn in training alone: a test begins at 0, as a user would. */
static void draw_positions(const lab_plan *plan, const lab_draw *draw, const train_batch *batch)
{
    const int64_t T = batch->tokens, spare = plan->position_rows - T;
    const int subset = plan->positions == LAB_SUBSET && spare >= 0;
    const int offset = plan->positions == LAB_OFFSET && !draw->test && spare > 0;
    for (int64_t b = 0; b < batch->rows; b++) {
        train_stream stream =
            train_stream_of(draw->seed, draw->test ? "test.positions" : "positions", draw->step,
                            (uint32_t)(draw->row + b));
        int32_t *position = batch->position + b * T;
        if (subset) draw_subset(&stream, plan->position_rows, T, position);
        const int32_t first = offset ? (int32_t)train_below(&stream, (uint32_t)spare + 1) : 0;
        for (int64_t t = 0; !subset && t < T; t++) position[t] = first + (int32_t)t;
    }
}

/* ---- batches ---- */

void lab_training_batch(const lab_plan *plan, int64_t step, train_batch *batch)
{
    const lab_settings *s = &plan->settings;
    const lab_draw draw = {.corpus = &plan->corpus,
                           .seed = s->seed,
                           .purpose = s->task,
                           .step = (uint32_t)step,
                           .rows = s->batch,
                           .length = lab_step_length(plan->task, s->seed, step, s->length),
                           .memory = s->memory};
    batch->rows = s->batch;
    lab_draw_batch(plan->task, &draw, batch);
    draw_positions(plan, &draw, batch);
}

void lab_test_batch(const lab_plan *plan, const lab_test *test, train_batch *batch)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", plan->settings.task, test->purpose);
    const lab_draw draw = {.corpus = &plan->corpus,
                           .purpose = name,
                           .step = (uint32_t)test->length,
                           .row = test->first,
                           .length = test->length,
                           .memory = test->memory,
                           .test = 1,
                           .stride = test->stride > 0 ? test->stride : test->length,
                           .at = test->at};
    batch->rows = test->count;
    lab_draw_batch(plan->task, &draw, batch);
    draw_positions(plan, &draw, batch);
}

/* ---- the file of batches ---- */

static locus_status put_step(locus_file_writer *w, int64_t step, const train_batch *batch,
                             locus_error *error)
{
    const uint64_t shape[] = {(uint64_t)batch->rows, (uint64_t)batch->tokens};
    const struct {
        const char *name, *dtype;
        const void *data;
    } tensors[] = {{"tokens", "I32", batch->token},
                   {"targets", "I32", batch->target},
                   {"weight", "F32", batch->weight}};
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.%lld", tensors[i].name, (long long)step);
        LOCUS_TRY(locus_file_put(w, name, tensors[i].dtype, 2, shape, tensors[i].data, error));
    }
    return LOCUS_OK;
}

/* The writer borrows until it commits: every step needs memory of its own. */
static locus_status write_batches(const lab_plan *plan, int64_t from, int64_t count,
                                  train_batch *batches, locus_file_writer *w, locus_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t length =
            lab_step_length(plan->task, plan->settings.seed, from + i, plan->settings.length);
        LOCUS_TRY(
            lab_batch_new(&batches[i], plan->settings.batch * plan->task->tokens(length), error));
        lab_training_batch(plan, from + i, &batches[i]);
        LOCUS_TRY(put_step(w, from + i, &batches[i], error));
    }
    return LOCUS_OK;
}

static locus_status save_batches(const lab_plan *plan, int64_t from, int64_t count,
                                 train_batch *batches, const char *path, locus_error *error)
{
    locus_file_writer *w = NULL;
    LOCUS_TRY(locus_file_create(&w, path, NULL, error));
    const locus_status status = write_batches(plan, from, count, batches, w, error);
    if (status == LOCUS_OK) return locus_file_commit(w, error);
    locus_file_abandon(w);
    return status;
}

locus_status lab_batches(const lab_settings *settings, int64_t from, int64_t count,
                         const char *path, locus_error *error)
{
    lab_plan plan;
    LOCUS_TRY(lab_plan_new(&plan, settings, error));
    train_batch *batches = locus_allocate(NULL, (size_t)count, sizeof *batches);
    const locus_status status =
        batches != NULL ? save_batches(&plan, from, count, batches, path, error)
                        : locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the batches");
    for (int64_t i = 0; batches != NULL && i < count; i++) lab_batch_free(&batches[i]);
    locus_release(NULL, batches);
    lab_plan_free(&plan);
    return status;
}

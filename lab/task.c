/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/task.h"

#include <string.h>

#define LAB_TASK(name) extern const lab_task lab_task_##name;
#include "lab/tasks.inc"
#undef LAB_TASK

#define LAB_TASK(name) &lab_task_##name,
static const lab_task *const tasks[] = {
#include "lab/tasks.inc"
};
#undef LAB_TASK
enum { TASKS = sizeof tasks / sizeof *tasks };

const lab_task *lab_task_at(size_t index) { return index < TASKS ? tasks[index] : NULL; }

const lab_task *lab_task_find(const char *name)
{
    for (size_t i = 0; i < TASKS; i++)
        if (strcmp(tasks[i]->name, name) == 0 || strcmp(tasks[i]->number, name) == 0)
            return tasks[i];
    return NULL;
}

int64_t lab_step_length(const lab_task *task, uint64_t seed, int64_t step, int64_t most)
{
    if (task->one_length) return most;
    train_stream stream = train_stream_of(seed, task->name, (uint32_t)step, UINT32_MAX);
    return 1 + train_below(&stream, (uint32_t)most);
}

void lab_draw_batch(const lab_task *task, const lab_draw *draw, train_batch *batch)
{
    batch->tokens = task->tokens(draw->length);
    for (int64_t b = 0; b < batch->rows; b++) {
        const int64_t at = b * batch->tokens;
        lab_draw own = *draw;
        own.row = draw->row + b;
        const lab_row row = {.token = batch->token + at,
                             .target = batch->target + at,
                             .weight = batch->weight + at,
                             .tokens = batch->tokens};
        train_stream stream =
            train_stream_of(draw->seed, draw->purpose, draw->step, (uint32_t)own.row);
        task->draw(&own, &stream, &row);
    }
}

/* ---- rows ---- */

void lab_row_shift(const lab_row *row, const int32_t *ids, int64_t first)
{
    for (int64_t t = 0; t < row->tokens; t++) {
        row->token[t] = ids[t];
        row->target[t] = ids[t + 1];
        row->weight[t] = t + 1 >= first ? 1.0f : 0.0f;
    }
}

void lab_symbols(train_stream *stream, int32_t *ids, int64_t count, uint32_t symbols, int32_t base)
{
    for (int64_t i = 0; i < count; i++) ids[i] = base + (int32_t)train_below(stream, symbols);
}

int64_t lab_tokens_of_pairs(int64_t length) { return 2 * length + 2; }

/* The ids are written where they are read from last: token[t] = ids[t], target[t] = ids[t + 1]. */
void lab_copy_row(const lab_row *row, const int32_t *x, int64_t length, int backwards)
{
    for (int64_t t = 0; t <= row->tokens; t++) {
        const int64_t i = t <= length ? t - 1 : t - length - 2;
        int32_t id = LAB_EOS;
        if (t == 0)
            id = LAB_BOS;
        else if (t == length + 1)
            id = LAB_SEP;
        else if (t < row->tokens)
            id = x[backwards && t > length ? length - 1 - i : i];
        if (t < row->tokens) row->token[t] = id;
        if (t > 0) row->target[t - 1] = id;
        if (t > 0) row->weight[t - 1] = t >= length + 2 ? 1.0f : 0.0f;
    }
}

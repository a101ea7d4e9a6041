/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "lab/evaluate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/error.h"
#include "core/memory.h"
#include "nn/top.h"

enum {
    TEST_ROWS = 512,
    MASKED_ROWS = 256,
    VALIDATION_BATCHES = 2,
    WINDOWS = 32, /* of 8 times the trained length: the text that is read at every length */
    TIMES = 8,
    BINS = 64,  /* of the loss by index in the longest window */
    OFFSETS = 6 /* of look-back */
};

/* ---- sums over test rows ---- */

typedef struct tally {
    double rows, right_rows, targets, right, first_wrong, loss;
    double answers, right_answers; /* the first target of each row */
    double offset_targets[OFFSETS], offset_right[OFFSETS];
    double bin_loss[BINS], bin_targets[BINS];
} tally;

/* Kept targets first .. past - 1 are those of one row. */
static void tally_row(const lab_judge *judge, tally *sums, int64_t row, int64_t first, int64_t past)
{
    const train_model *m = judge->model;
    const int64_t V = m->shape.vocabulary, offset = row % OFFSETS;
    int64_t wrong = past - first;
    for (int64_t i = first; i < past; i++) {
        const int right = locus_argmax(m->logits + i * V, V) == m->target[i];
        const int64_t bin = m->place[i] % judge->batch->tokens * BINS / judge->batch->tokens;
        if (!right && wrong == past - first) wrong = i - first;
        sums->right += right;
        sums->offset_right[offset] += right;
        if (i == first) sums->right_answers += right;
        sums->bin_loss[bin] += (double)m->losses[i];
        sums->bin_targets[bin]++;
        sums->loss += (double)m->losses[i];
    }
    sums->rows++;
    sums->answers++;
    sums->right_rows += wrong == past - first;
    sums->first_wrong += (double)wrong;
    sums->targets += (double)(past - first);
    sums->offset_targets[offset] += (double)(past - first);
}

static locus_status read_batch(const lab_judge *judge, int64_t row, const train_memory *memory,
                               tally *sums, locus_error *error)
{
    train_model *m = judge->model;
    const train_batch *batch = judge->batch;
    const int64_t T = batch->tokens;
    LOCUS_TRY(train_prepare(m, batch->rows, T, memory != NULL ? memory->rows : 0, error));
    LOCUS_TRY(train_forward(m, batch, memory, error));
    train_loss(m);
    for (int64_t first = 0, past; first < m->kept; first = past) {
        const int64_t b = m->place[first] / T;
        for (past = first; past < m->kept && m->place[past] / T == b;) past++;
        tally_row(judge, sums, row + b, first, past);
    }
    return LOCUS_OK;
}

/* Rows that a batch of this length has: as many tokens as training has, at least one row. */
static int64_t batch_rows(const lab_plan *plan, int64_t length)
{
    const lab_settings *s = &plan->settings;
    const int64_t rows = s->batch * plan->shape.longest / plan->task->tokens(length);
    return rows > 1 ? rows : 1;
}

static int64_t longest_test(const lab_plan *plan)
{
    const int64_t n = plan->settings.length;
    switch (plan->task->measure) {
    case LAB_TEXT: return TIMES * n;
    case LAB_MASKED: return 2 * n;
    case LAB_LOOK_BACK: return 4 * n;
    case LAB_ROWS:
    case LAB_ANSWER: break;
    }
    const int64_t most = plan->task->longest;
    return most > 0 && 3 * n > most ? most : 3 * n;
}

int64_t lab_judge_tokens(const lab_plan *plan)
{
    const int64_t batch = plan->settings.batch * plan->shape.longest;
    const int64_t row = plan->task->tokens(longest_test(plan));
    return batch > row ? batch : row;
}

/* Rows 0 .. count - 1 of a kind, in batches. */
static locus_status read_rows(const lab_judge *judge, const lab_test *kind, int64_t count,
                              tally *sums, locus_error *error)
{
    const int64_t most = batch_rows(judge->plan, kind->length);
    lab_test test = *kind;
    *sums = (tally){.rows = 0.0};
    for (int64_t first = 0; first < count; first += test.count) {
        test.first = first;
        test.count = count - first < most ? count - first : most;
        lab_test_batch(judge->plan, &test, judge->batch);
        LOCUS_TRY(read_batch(judge, first, NULL, sums, error));
    }
    return LOCUS_OK;
}

/* ---- printing ---- */

static void put(plot_text *out, int64_t length, const char *metric, double value)
{
    if (isfinite(value))
        lab_print(out, "%" PRId64 ",%s,%.9g\n", length, metric, value);
    else /* the run diverged */
        lab_print(out, "%" PRId64 ",%s,undefined\n", length, metric);
}

static double bits(double nats) { return nats / log(2.0); }

static void put_rows(plot_text *out, int64_t length, const tally *sums)
{
    put(out, length, "em", sums->right_rows / sums->rows);
    put(out, length, "token_accuracy", sums->right / sums->targets);
    put(out, length, "first_wrong", sums->first_wrong / sums->rows);
}

static void put_offsets(plot_text *out, int64_t length, const tally *sums)
{
    for (int i = 0; i < OFFSETS; i++) {
        char name[32];
        snprintf(name, sizeof name, "accuracy_k%d", 1 << i);
        if (sums->offset_targets[i] > 0.0)
            put(out, length, name, sums->offset_right[i] / sums->offset_targets[i]);
    }
}

static void put_masked(plot_text *out, int64_t length, const tally *sums)
{
    put(out, length, "loss", sums->loss / sums->targets);
    put(out, length, "perplexity", exp(sums->loss / sums->targets));
}

/* A scheme that has no rows for this length has no value either. */
static void put_undefined(plot_text *out, const lab_task *task, int64_t length)
{
    static const char *const names[][3] = {
        [LAB_ROWS] = {"em", "token_accuracy", "first_wrong"},
        [LAB_ANSWER] = {"accuracy", NULL, NULL},
        [LAB_LOOK_BACK] = {NULL, NULL, NULL},
        [LAB_TEXT] = {"bpc", NULL, NULL},
        [LAB_MASKED] = {"loss", "perplexity", NULL},
    };
    for (int i = 0; i < 3 && names[task->measure][i] != NULL; i++)
        lab_print(out, "%" PRId64 ",%s,undefined\n", length, names[task->measure][i]);
    for (int i = 0; task->measure == LAB_LOOK_BACK && i < OFFSETS; i++)
        lab_print(out, "%" PRId64 ",accuracy_k%d,undefined\n", length, 1 << i);
}

static int is_defined(const lab_judge *judge, int64_t length)
{
    return judge->plan->task->tokens(length) <= train_longest_row(&judge->model->shape);
}

/* ---- text ---- */

static int64_t text_windows(const lab_plan *plan)
{
    const int64_t long_window = TIMES * plan->settings.length;
    const int64_t there = ((int64_t)plan->corpus.validation_bytes - 1) / long_window;
    return there < WINDOWS ? there : WINDOWS;
}

static void put_index(plot_text *out, int64_t length, const tally *sums)
{
    for (int64_t i = 0; i < BINS && i < length; i++) {
        char name[32];
        snprintf(name, sizeof name, "bpc_index_%" PRId64, i * length / BINS);
        if (sums->bin_targets[i] > 0.0)
            put(out, length, name, bits(sums->bin_loss[i] / sums->bin_targets[i]));
    }
}

/* Windows of n that overlap by half: what counts has n / 2 bytes of context at least. */
static locus_status read_sliding(const lab_judge *judge, plot_text *out, locus_error *error)
{
    const int64_t n = judge->plan->settings.length, half = n / 2;
    const int64_t count = 2 * TIMES * text_windows(judge->plan) - 1;
    const int64_t most = batch_rows(judge->plan, n);
    tally sums = {.rows = 0.0};
    lab_test test = {.purpose = ".test", .length = n, .stride = half};
    for (; test.first < count; test.first += test.count) {
        test.count = count - test.first < most ? count - test.first : most;
        lab_test_batch(judge->plan, &test, judge->batch);
        for (int64_t b = 0; b < test.count; b++)
            for (int64_t t = 0; t < n - half && test.first + b > 0; t++)
                judge->batch->weight[b * n + t] = 0.0f;
        LOCUS_TRY(read_batch(judge, 0, NULL, &sums, error));
    }
    put(out, n, "bpc_windowed", bits(sums.loss / sums.targets));
    return LOCUS_OK;
}

static void free_memory(train_memory *memory)
{
    for (int i = 0; i < TRAIN_MOST_LAYERS; i++) locus_release(NULL, memory->data[i]);
}

/* Streams of 8 n bytes, segment by segment, each over the memory of the one before. */
static locus_status read_streams(const lab_judge *judge, int64_t length, plot_text *out,
                                 locus_error *error)
{
    const lab_plan *plan = judge->plan;
    const lab_settings *s = &plan->settings;
    const int64_t count = text_windows(plan), most = batch_rows(plan, length);
    train_memory memory = {.most = s->memory};
    tally sums = {.rows = 0.0};
    locus_status status = LOCUS_OK;
    for (int64_t i = 0; i < s->layers; i++) {
        memory.data[i] = locus_allocate(NULL, (size_t)(most * s->memory * s->width), sizeof(float));
        if (memory.data[i] == NULL)
            status = locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the streams");
    }
    lab_test test = {.purpose = ".test", .length = length, .stride = TIMES * s->length};
    test.memory = s->memory;
    for (; status == LOCUS_OK && test.first < count; test.first += test.count) {
        test.count = count - test.first < most ? count - test.first : most;
        memory.rows = 0;
        for (test.at = 0; status == LOCUS_OK && test.at < test.stride; test.at += length) {
            lab_test_batch(plan, &test, judge->batch);
            status = read_batch(judge, 0, &memory, &sums, error);
            if (status == LOCUS_OK) train_remember(judge->model, judge->batch, &memory);
        }
    }
    free_memory(&memory);
    if (status == LOCUS_OK) put(out, length, "bpc", bits(sums.loss / sums.targets));
    return status;
}

static locus_status read_text(const lab_judge *judge, int64_t length, plot_text *out,
                              locus_error *error)
{
    const int64_t n = judge->plan->settings.length;
    const lab_test test = {.purpose = ".test", .length = length};
    tally sums;
    if (judge->plan->settings.memory > 0) return read_streams(judge, length, out, error);
    LOCUS_TRY(
        read_rows(judge, &test, text_windows(judge->plan) * TIMES * n / length, &sums, error));
    put(out, length, "bpc", bits(sums.loss / sums.targets));
    if (length == TIMES * n) put_index(out, length, &sums);
    return length == n ? read_sliding(judge, out, error) : LOCUS_OK;
}

/* ---- all lengths ---- */

static locus_status read_length(const lab_judge *judge, int64_t length, plot_text *out,
                                locus_error *error)
{
    const lab_task *task = judge->plan->task;
    const lab_test test = {.purpose = ".test", .length = length};
    tally sums;
    if (!is_defined(judge, length)) {
        put_undefined(out, task, length);
        return LOCUS_OK;
    }
    if (task->measure == LAB_TEXT) return read_text(judge, length, out, error);
    const int64_t count = task->measure == LAB_MASKED ? MASKED_ROWS : TEST_ROWS;
    LOCUS_TRY(read_rows(judge, &test, count, &sums, error));
    if (task->measure == LAB_ROWS) put_rows(out, length, &sums);
    if (task->measure == LAB_ANSWER)
        put(out, length, "accuracy", sums.right_answers / sums.answers);
    if (task->measure == LAB_LOOK_BACK) put_offsets(out, length, &sums);
    if (task->measure == LAB_MASKED) put_masked(out, length, &sums);
    return LOCUS_OK;
}

/* Test lengths as eighths of L, ascending; 0 ends a list. */
static const int *eighths_of(lab_measure measure)
{
    static const int rows[] = {8, 9, 10, 12, 16, 24, 0}, doubled[] = {8, 16, 32, 64, 0};
    static const int twice[] = {8, 16, 0}, four[] = {8, 16, 32, 0};
    switch (measure) {
    case LAB_TEXT: return doubled;
    case LAB_MASKED: return twice;
    case LAB_LOOK_BACK: return four;
    case LAB_ROWS:
    case LAB_ANSWER: break;
    }
    return rows;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* One row of the longest length, read once more with everything in place. */
static locus_status time_longest(const lab_judge *judge, double *milliseconds, locus_error *error)
{
    const int64_t longest = longest_test(judge->plan);
    const lab_test test = {.purpose = ".test", .length = longest, .count = 1};
    tally sums = {.rows = 0.0};
    *milliseconds = -1.0;
    if (!is_defined(judge, longest)) return LOCUS_OK;
    lab_test_batch(judge->plan, &test, judge->batch);
    LOCUS_TRY(read_batch(judge, 0, NULL, &sums, error));
    const double begin = now();
    LOCUS_TRY(read_batch(judge, 0, NULL, &sums, error));
    *milliseconds = 1e3 * (now() - begin);
    return LOCUS_OK;
}

locus_status lab_evaluate(const lab_judge *judge, plot_text *out, double *milliseconds,
                          locus_error *error)
{
    const int64_t L = judge->plan->settings.length, most = judge->plan->task->longest;
    int64_t before = 0;
    for (const int *eighths = eighths_of(judge->plan->task->measure); *eighths != 0; eighths++) {
        const int64_t length = L * *eighths / 8;
        if (length == before || (most > 0 && length > most)) continue;
        LOCUS_TRY(read_length(judge, length, out, error));
        before = length;
    }
    return time_longest(judge, milliseconds, error);
}

locus_status lab_validate(const lab_judge *judge, double *value, locus_error *error)
{
    const lab_plan *plan = judge->plan;
    const lab_test test = {.purpose = ".validation", .length = plan->settings.length};
    const int64_t windows = ((int64_t)plan->corpus.validation_bytes - 1) / plan->settings.length;
    int64_t count = VALIDATION_BATCHES * plan->settings.batch;
    tally sums;
    if (plan->task->measure == LAB_TEXT && count > windows) count = windows;
    LOCUS_TRY(read_rows(judge, &test, count, &sums, error));
    switch (plan->task->measure) {
    case LAB_ROWS: *value = sums.right_rows / sums.rows; break;
    case LAB_ANSWER: *value = sums.right_answers / sums.answers; break;
    case LAB_LOOK_BACK: *value = sums.right / sums.targets; break;
    case LAB_TEXT: *value = bits(sums.loss / sums.targets); break;
    case LAB_MASKED: *value = sums.loss / sums.targets; break;
    }
    return LOCUS_OK;
}

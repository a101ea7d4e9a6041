/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that are refused, rows of the tasks, sums of files. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/crc32.h"
#include "core/error.h"
#include "core/memory.h"
#include "io/tensorfile.h"
#include "lab/batch.h"
#include "lab/log.h"
#include "lab/profile.h"
#include "lab/run_log.h"
#include "support/check.h"

/* ---- settings ---- */

static lab_settings small(const char *task, const char *scheme)
{
    lab_settings s;
    lab_settings_init(&s);
    s.task = task;
    s.scheme = scheme;
    return s;
}

/* NULL: accepted; else the line. */
static const char *refusal(const lab_settings *settings)
{
    static locus_error error;
    lab_plan plan;
    error.text[0] = '\0';
    if (lab_plan_new(&plan, settings, &error) != LOCUS_OK) return error.text;
    lab_plan_free(&plan);
    return NULL;
}

static void check_refused(const lab_settings *settings, const char *words)
{
    const char *line = refusal(settings);
    CHECK(line != NULL && strstr(line, words) != NULL && strchr(line, '\n') == NULL,
          "found \"%s\", expected a line with \"%s\"", line != NULL ? line : "nothing", words);
}

/* Both sides of a limit of an integer setting. */
static void check_limit(const char *task, size_t offset, int64_t most, const char *words)
{
    lab_settings s = small(task, "none");
    int64_t *field = (int64_t *)(void *)((char *)&s + offset);
    *field = most;
    CHECK(refusal(&s) == NULL, "%s: %" PRId64 " is refused: %s", words, most, refusal(&s));
    *field = most + 1;
    check_refused(&s, words);
}

/* The constants are those of settings.c and the tasks: what is beyond is refused. */
static void check_limits(void)
{
    enum { MOST_WIDTH = 16384, MOST_BATCH = 65536, MOST_LENGTH = 65536, KEYS = 32, MOST = 1024 };
    if (check_begin("lab/limits")) {
        check_limit("copy", offsetof(lab_settings, width), MOST_WIDTH, "width");
        check_limit("copy", offsetof(lab_settings, batch), MOST_BATCH, "batch");
        check_limit("lookback", offsetof(lab_settings, length), MOST_LENGTH, "length");
        check_limit("recall", offsetof(lab_settings, length), KEYS, "length");
        check_limit("copy", offsetof(lab_settings, length), MOST, "length");
        check_limit("copy", offsetof(lab_settings, layers), TRAIN_MOST_LAYERS, "layers");
    }
}

/* ---- runs of a comparison ---- */

static size_t count_jobs(const lab_comparison *c, locus_status *status)
{
    locus_error error = {""};
    lab_job *jobs = NULL;
    size_t count = 0;
    *status = lab_jobs_new(&jobs, &count, c, &error);
    locus_release(NULL, jobs);
    return count;
}

/* 14 schemes on three tasks; seeds that make LAB_MOST_JOBS runs and one more. (--jobs ends at
 * MOST_SIDE_BY_SIDE: the command line refuses 65.) */
static void check_jobs(void)
{
    lab_comparison c = {.profile = "quick"};
    locus_status status = LOCUS_OK;
    lab_settings_init(&c.settings);
    if (!check_begin("lab/jobs")) return;
    CHECK(count_jobs(&c, &status) == 42 && status == LOCUS_OK, "quick has 3 x 14 runs");
    c.tasks = "T1";
    c.schemes = "rope";
    c.seeds = LAB_MOST_JOBS;
    CHECK(count_jobs(&c, &status) == LAB_MOST_JOBS && status == LOCUS_OK,
          "as many as there may be");
    c.seeds++;
    count_jobs(&c, &status);
    CHECK(status == LOCUS_ERR_OPTION, "one more");
    c = (lab_comparison){.profile = "standard", .tasks = "masked", .schemes = "fire,rope"};
    lab_settings_init(&c.settings);
    CHECK(count_jobs(&c, &status) == 3, "fire has no place in an encoder");
    c = (lab_comparison){.profile = "quick", .tasks = "recall"};
    lab_settings_init(&c.settings);
    count_jobs(&c, &status);
    CHECK(status == LOCUS_ERR_OPTION, "quick has no recall");
}

static void check_refusals(void)
{
    lab_settings s;
    if (check_begin("lab/refused")) {
        s = small("copy", "rope"), s.width = 12, s.heads = 4;
        check_refused(&s, "head width of 3");
        s = small("copy", "none"), s.width = 63;
        check_refused(&s, "width: found 63");
        s = small("copy", "none"), s.width = s.heads = 1;
        CHECK(refusal(&s) == NULL, "a width of 1 is refused: %s", refusal(&s));
        s = small("copy", "none"), s.batch = -1;
        check_refused(&s, "batch: found -1");
        s = small("copi", "none");
        check_refused(&s, "did you mean copy");
        s = small("copy", "table");
        check_refused(&s, "scheme: found \"table\"");
        s = small("copy", "sam");
        check_refused(&s, "scheme: found \"sam\", expected one to train: its q_positions");
        s = small("copy", "wavlm");
        check_refused(&s, "its gate is no table");
        s = small("masked", "fire");
        check_refused(&s, "looks back only");
        s = small("text", "rope"), s.memory = 8;
        check_refused(&s, "memory: found 8");
        s = small("text", "transformer_xl"), s.memory = 129;
        check_refused(&s, "memory: found 129");
        s = small("copy", "rope"), s.terms = "c2p";
        check_refused(&s, "terms: found c2p");
        s = small("copy", "rope"), s.positions = "offset";
        check_refused(&s, "positions: found offset");
        s = small("copy", "sinusoidal"), s.positions = "subset:33";
        check_refused(&s, "positions subset: found 33, expected 34");
        s = small("copy", "none"), s.text = "novel.txt";
        check_refused(&s, "which reads none");
    }
}

/* ---- rows ---- */

typedef struct table {
    lab_plan plan;
    train_batch batch;
} table;

static int begin_table(table *t, const char *task, int64_t length)
{
    locus_error error = {""};
    lab_settings s = small(task, "none");
    s.length = length;
    s.batch = 24;
    s.seed = 5;
    return CHECK(lab_plan_new(&t->plan, &s, &error) == LOCUS_OK &&
                     lab_batch_new(&t->batch, 24 * t->plan.shape.longest, &error) == LOCUS_OK,
                 "%s", error.text);
}

static void end_table(table *t)
{
    lab_batch_free(&t->batch);
    lab_plan_free(&t->plan);
}

/* n from the tokens of a row. */
static int64_t length_of(const table *t)
{
    int64_t n = 1;
    while (t->plan.task->tokens(n) < t->batch.tokens) n++;
    return n;
}

/* The last ids of rows BOS x SEP y EOS, y as long as `count`. */
static void check_frame(const train_batch *b, int64_t row, int64_t answer)
{
    const int64_t T = b->tokens, at = row * T;
    CHECK(b->token[at] == LAB_BOS && b->target[at + T - 1] == LAB_EOS, "row %" PRId64 ": ends",
          row);
    for (int64_t t = 0; t < T; t++) {
        if (t + 1 < T)
            CHECK(b->target[at + t] == b->token[at + t + 1], "row %" PRId64 ": shift at %" PRId64,
                  row, t);
        CHECK(b->weight[at + t] == (t >= T - answer ? 1.0f : 0.0f), "row %" PRId64 ": weight", row);
    }
}

static void check_copy(const char *task, int backwards, int unique)
{
    table t;
    if (!begin_table(&t, task, 16)) return;
    for (int64_t step = 1; step <= 40; step++) {
        lab_training_batch(&t.plan, step, &t.batch);
        const int64_t n = length_of(&t), T = t.batch.tokens;
        CHECK(n >= 1 && n <= 16 && T == 2 * n + 2, "T = %" PRId64, T);
        for (int64_t b = 0; b < t.batch.rows; b++) {
            const int32_t *x = t.batch.token + b * T + 1, *y = t.batch.target + b * T + n + 1;
            check_frame(&t.batch, b, n + 1);
            for (int64_t i = 0; i < n; i++) {
                CHECK(y[i] == x[backwards ? n - 1 - i : i], "y[%" PRId64 "]", i);
                for (int64_t k = 0; unique && k < i; k++) CHECK(x[i] != x[k], "a repeat");
            }
        }
    }
    end_table(&t);
}

static void check_addition(void)
{
    table t;
    if (!begin_table(&t, "addition", 12)) return;
    for (int64_t step = 1; step <= 20; step++) {
        lab_training_batch(&t.plan, step, &t.batch);
        const int64_t n = length_of(&t), T = t.batch.tokens;
        for (int64_t b = 0; b < t.batch.rows; b++) {
            const int32_t *row = t.batch.token + b * T, *c = t.batch.target + b * T + 2 * n + 2;
            int64_t left = 0, right = 0, sum = 0;
            check_frame(&t.batch, b, n + 2);
            for (int64_t i = n; i-- > 0;) left = 10 * left + row[1 + i] - LAB_SYMBOL;
            for (int64_t i = n; i-- > 0;) right = 10 * right + row[2 + n + i] - LAB_SYMBOL;
            for (int64_t i = n + 1; i-- > 0;) sum = 10 * sum + c[i] - LAB_SYMBOL;
            CHECK(left + right == sum, "%" PRId64 " + %" PRId64 " = %" PRId64, left, right, sum);
        }
    }
    end_table(&t);
}

static void check_counts(const char *task, int modulus, int32_t first_answer)
{
    static const int steps[] = {0, 1, -1};
    table t;
    if (!begin_table(&t, task, 20)) return;
    for (int64_t step = 1; step <= 20; step++) {
        lab_training_batch(&t.plan, step, &t.batch);
        const int64_t n = length_of(&t), T = t.batch.tokens;
        for (int64_t b = 0; b < t.batch.rows; b++) {
            int sum = 0;
            check_frame(&t.batch, b, 2);
            for (int64_t i = 1; i <= n; i++) sum += steps[t.batch.token[b * T + i] - LAB_SYMBOL];
            CHECK(t.batch.target[b * T + n + 1] ==
                      first_answer + (sum + 5 * modulus * 20) % modulus,
                  "step %" PRId64 ", row %" PRId64, step, b);
        }
    }
    end_table(&t);
}

static void check_recall(void)
{
    table t;
    if (!begin_table(&t, "recall", 8)) return;
    for (int64_t step = 1; step <= 20; step++) {
        lab_training_batch(&t.plan, step, &t.batch);
        const int64_t n = length_of(&t), T = t.batch.tokens;
        for (int64_t b = 0; b < t.batch.rows; b++) {
            const int32_t *row = t.batch.token + b * T;
            int64_t counted = 0;
            for (int64_t i = 0; i < T; i++) {
                if (t.batch.weight[b * T + i] == 0.0f) continue;
                int64_t pair = 1;
                while (pair < 2 * n && row[pair] != row[i]) pair += 2;
                CHECK(i > 2 * n + 1 && t.batch.target[b * T + i] == row[pair + 1], "a value");
                counted++;
            }
            CHECK(counted == n && t.batch.target[b * T + T - 1] == LAB_EOS, "%" PRId64, counted);
        }
    }
    end_table(&t);
}

static void check_lookback(void)
{
    table t;
    if (!begin_table(&t, "lookback", 64)) return;
    lab_training_batch(&t.plan, 3, &t.batch);
    for (int64_t b = 0; b < t.batch.rows; b++) {
        const int32_t *row = t.batch.token + b * 64;
        const int64_t k = (int64_t)1 << (row[0] - (LAB_SYMBOL + 6 * 32));
        for (int64_t i = 0; i < 64; i++) {
            CHECK(t.batch.weight[b * 64 + i] == (i > k ? 1.0f : 0.0f), "weight at %" PRId64, i);
            if (i > k) CHECK(t.batch.target[b * 64 + i] == row[i - k], "k = %" PRId64, k);
        }
    }
    for (int64_t first = 0; first < 12; first += 5) { /* test row r has k = 2^(r % 6) */
        const lab_test test = {.purpose = ".test", .length = 64, .first = first, .count = 2};
        lab_test_batch(&t.plan, &test, &t.batch);
        for (int64_t b = 0; b < 2; b++)
            CHECK(t.batch.token[b * 64] == LAB_SYMBOL + 6 * 32 + (first + b) % 6,
                  "row %" PRId64 " of the test", first + b);
    }
    end_table(&t);
}

static void check_text(void)
{
    table t;
    if (!begin_table(&t, "text", 48)) return;
    lab_training_batch(&t.plan, 7, &t.batch);
    for (int64_t b = 0; b < t.batch.rows; b++) {
        const int32_t *row = t.batch.token + b * 48, *target = t.batch.target + b * 48;
        CHECK(row[0] == 256, "BOS");
        for (int64_t i = 1; i < 48; i++) CHECK(row[i] == target[i - 1] && row[i] < 256, "shift");
    }
    end_table(&t);
}

static void check_masked(void)
{
    table t;
    int64_t chosen = 0, hidden = 0, kept = 0, runs = 0;
    if (!begin_table(&t, "masked", 100)) return;
    for (int64_t step = 1; step <= 50; step++) {
        lab_training_batch(&t.plan, step, &t.batch);
        for (int64_t i = 0; i < 2400; i++) {
            const int32_t token = t.batch.token[i], target = t.batch.target[i];
            CHECK(target < 256, "a target");
            if (t.batch.weight[i] == 0.0f) {
                CHECK(token == target, "a byte that was not chosen");
                continue;
            }
            chosen++;
            hidden += token == 256;
            kept += token == target;
            runs += i % 100 == 0 || t.batch.weight[i - 1] == 0.0f;
        }
    }
    CHECK(chosen == 50 * 24 * 15, "chosen: %" PRId64, chosen);
    CHECK(hidden > 14000 && hidden < 14800, "hidden: %" PRId64 " of 18000", hidden);
    CHECK(kept > 1600 && kept < 2200, "kept: %" PRId64 " of 18000", kept);
    CHECK(chosen > 2 * runs && chosen < 4 * runs, "%" PRId64 " spans", runs);
    end_table(&t);
}

static void check_tasks(void)
{
    if (check_begin("lab/rows/copy")) check_copy("copy", 0, 0);
    if (check_begin("lab/rows/copy_unique")) check_copy("copy_unique", 0, 1);
    if (check_begin("lab/rows/reverse")) check_copy("reverse", 1, 0);
    if (check_begin("lab/rows/recall")) check_recall();
    if (check_begin("lab/rows/addition")) check_addition();
    if (check_begin("lab/rows/parity")) check_counts("parity", 2, LAB_SYMBOL);
    if (check_begin("lab/rows/mod5")) check_counts("mod5", 5, LAB_SYMBOL + 3);
    if (check_begin("lab/rows/lookback")) check_lookback();
    if (check_begin("lab/rows/text")) check_text();
    if (check_begin("lab/rows/masked")) check_masked();
}

/* A step's batch does not depend on what was drawn before, a row not on the rows beside it. */
static void check_order(void)
{
    table t;
    int32_t first[24 * 34];
    if (!check_begin("lab/rows/order") || !begin_table(&t, "copy", 16)) return;
    lab_training_batch(&t.plan, 9, &t.batch);
    const int64_t count = t.batch.rows * t.batch.tokens;
    memcpy(first, t.batch.token, (size_t)count * sizeof *first);
    for (int64_t step = 1; step < 9; step++) lab_training_batch(&t.plan, step, &t.batch);
    t.plan.settings.batch = 5;
    lab_training_batch(&t.plan, 9, &t.batch);
    CHECK(memcmp(first, t.batch.token, (size_t)(5 * t.batch.tokens) * sizeof *first) == 0, "rows");
    end_table(&t);
}

/* ---- files ---- */

/* Write `floats` numbers with a sum, see that zlib's rule gives it, flip a bit, see it refused. */
static void check_sum(const char *path, size_t floats)
{
    locus_error error = {""};
    locus_file_writer *w = NULL;
    locus_file *file = NULL;
    float *data = calloc(floats + 1, sizeof *data);
    const uint64_t shape[] = {floats};
    if (data == NULL) abort();
    for (size_t i = 0; i < floats; i++) data[i] = (float)i;
    CHECK(locus_file_create(&w, path, NULL, &error) == LOCUS_OK &&
              locus_file_put_sum(w, &error) == LOCUS_OK &&
              locus_file_put(w, "x", "F32", 1, shape, data, &error) == LOCUS_OK &&
              locus_file_commit(w, &error) == LOCUS_OK,
          "%s", error.text);
    free(data);
    CHECK(locus_file_open(&file, path, NULL, &error) == LOCUS_OK &&
              locus_file_check_sum(file, &error) == LOCUS_OK,
          "%s", error.text);
    locus_file_close(file);
    FILE *stream = fopen(path, "r+b");
    if (stream == NULL) abort();
    fseek(stream, -1, SEEK_END);
    const int last = fgetc(stream);
    fseek(stream, -1, SEEK_END);
    fputc(last ^ 4, stream);
    fclose(stream);
    CHECK(locus_file_open(&file, path, NULL, &error) == LOCUS_OK &&
              locus_file_check_sum(file, &error) == LOCUS_ERR_FORMAT,
          "a flipped bit passes");
    locus_file_close(file);
}

/* Around one and two times PIECE_BYTES, which the check reads at a time. */
static void check_sums(void)
{
    enum { PIECE_BYTES = 65536 };
    char path[] = "/tmp/locus-lab-XXXXXX";
    if (!check_begin("lab/sums")) return;
    const int descriptor = mkstemp(path);
    if (descriptor < 0) abort();
    close(descriptor);
    CHECK(locus_crc32(0, "123456789", 9) == 0xcbf43926u, "CRC-32");
    for (size_t pieces = 1; pieces <= 2; pieces++)
        for (size_t less = 0; less < 64; less++)
            check_sum(path, (pieces * PIECE_BYTES) / sizeof(float) - less);
    unlink(path);
}

/* A log of more than MOST_BYTES is refused; the file is a hole, so nothing is written. */
static void check_log(void)
{
    enum { MOST_BYTES = 1 << 30 };
    char folder[] = "/tmp/locus-lab-XXXXXX", path[64];
    locus_error error = {""};
    lab_log log;
    if (!check_begin("lab/log")) return;
    if (mkdtemp(folder) == NULL) abort();
    snprintf(path, sizeof path, "%s/log.jsonl", folder);
    FILE *stream = fopen(path, "wb");
    if (stream == NULL) abort();
    fputs(
        "{\"step\":1,\"loss\":2,\"seconds\":0.5}\n{\"step\":1,\"validation\":0.995}\n{\"step\":2,\"lo",
        stream);
    fclose(stream);
    CHECK(lab_log_open(&log, folder, &error) == LOCUS_OK && log.steps == 1 &&
              log.steps_to_99 == 1 && log.validation == 0.995,
          "%s: %" PRId64 " steps", error.text, log.steps);
    CHECK(lab_log_cut(&log, 1, &error) == LOCUS_OK, "%s", error.text);
    const lab_log_step diverged = {.step = 2, .loss = NAN, .norm = INFINITY, .seconds = 0.5};
    lab_log_add(&log, &diverged);
    lab_log_validate(&log, 2, NAN);
    lab_log_close(&log);
    lab_run run = {.reached = 0};
    CHECK(lab_log_open(&log, folder, &error) == LOCUS_OK && log.steps == 2 && isnan(log.validation),
          "%s: %" PRId64 " steps", error.text, log.steps);
    lab_log_close(&log);
    CHECK(lab_log_read(&run, path, &error) == LOCUS_OK && run.reached == 2 &&
              run.point_count == 1 && run.test_count == 1,
          "%s: %zu points", error.text, run.point_count);
    locus_release(NULL, run.points);
    locus_release(NULL, run.tests);
    CHECK(truncate(path, (off_t)MOST_BYTES + 1) == 0, "no room for a hole");
    CHECK(lab_log_open(&log, folder, &error) == LOCUS_ERR_FORMAT, "a log of %d bytes", MOST_BYTES);
    lab_log_close(&log);
    unlink(path);
    rmdir(folder);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    check_limits();
    check_refusals();
    check_jobs();
    check_tasks();
    check_order();
    check_sums();
    check_log();
    return check_finish("lab");
}

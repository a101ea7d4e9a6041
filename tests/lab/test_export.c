/* SPDX-License-Identifier: Apache-2.0 */
/* locus lab export: what the runtime makes of an exported model is what the trainer makes of it. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <locus/generate.h>
#include <locus/model.h>
#include <locus/text.h>

#include "core/error.h"
#include "lab/batch.h"
#include "lab/checkpoint.h"
#include "support/check.h"

/* Products of two programs over one sum in another order; a half has 11 bits. */
enum { STEPS = 3, LENGTH = 12, PATH = 1200 };
static const double tolerance = 1e-5, half_tolerance = 2e-2;

static char scratch[] = "/tmp/locus-export-XXXXXX";

static const char *in_scratch(char out[PATH], const char *name)
{
    snprintf(out, PATH, "%s/%s", scratch, name);
    return out;
}

static void remove_folder(const char *path)
{
    char command[PATH + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command) != 0) fprintf(stderr, "%s is not removed\n", path);
}

static lab_settings settings_of(const char *task, const char *scheme)
{
    lab_settings s;
    lab_settings_init(&s);
    s.task = task;
    s.scheme = scheme;
    s.width = 24;
    s.heads = 3;
    s.batch = 2;
    s.length = LENGTH;
    s.steps = STEPS;
    s.stop = STEPS - 1; /* nothing is measured */
    s.rate = 0.05;      /* large steps: no table stays near 0 */
    return s;
}

/* Something to read; the lab's own text takes longer to unpack than to learn from. */
static void write_novel(void)
{
    char path[PATH];
    FILE *file = fopen(in_scratch(path, "text.txt"), "w");
    for (int i = 0; file != NULL && i < 400; i++)
        fprintf(file, "The %dth of %d sentences, and no other.%c", i, 7 * i,
                i % 3 == 0 ? '\n' : ' ');
    if (file != NULL) fclose(file);
}

/* ---- the trainer ---- */

typedef struct trained {
    lab_plan plan;
    train_model *model;
    train_batch batch; /* one row, every target counts */
} trained;

static locus_status trained_open(trained *t, const lab_settings *s, const char *folder,
                                 locus_error *error)
{
    train_memory none = {.most = 0};
    int64_t step = 0;
    LOCUS_TRY(lab_plan_shape(&t->plan, s, error));
    LOCUS_TRY(train_model_new(&t->model, &t->plan.shape, s->seed, 1, error));
    LOCUS_TRY(lab_checkpoint_read(&t->plan, t->model, &none, &step, folder, LAB_CHECKPOINT, error));
    LOCUS_TRY(lab_batch_new(&t->batch, 2 * t->plan.shape.longest, error));
    t->batch.rows = 1;
    t->batch.tokens = t->plan.shape.longest;
    for (int64_t i = 0; i < t->batch.tokens; i++) {
        t->batch.token[i] = (int32_t)((7 * i * i + 5 * i + 2) % t->plan.shape.vocabulary);
        t->batch.target[i] = 0;
        t->batch.weight[i] = 1.0f;
        t->batch.position[i] = (int32_t)i;
    }
    LOCUS_TRY(train_prepare(t->model, 1, t->batch.tokens, 0, error));
    return train_forward(t->model, &t->batch, NULL, error);
}

static void trained_close(trained *t)
{
    lab_batch_free(&t->batch);
    train_model_free(t->model);
}

/* ---- the runtime ---- */

static locus_status run_all(const locus_model *model, const int32_t *ids, int64_t tokens,
                            float *logits, locus_error *error)
{
    const int64_t offsets[2] = {0, tokens};
    const locus_model_batch batch = {.size = sizeof batch, .ids = ids};
    const locus_model_results results = {.size = sizeof results, .logits = logits};
    locus_model_pass *pass = NULL;
    LOCUS_TRY(locus_model_pass_new(&pass, model, offsets, 1, error));
    const size_t bytes = locus_model_workspace(pass);
    void *workspace = malloc(bytes);
    const locus_status status =
        locus_model_forward(pass, &batch, &results, workspace, bytes, error);
    free(workspace);
    locus_model_pass_free(pass);
    return status;
}

/* Two tokens, then one by one: what a cache makes of it. */
static locus_status run_session(const locus_model *model, const int32_t *ids, int64_t tokens,
                                int64_t vocabulary, float *logits, locus_error *error)
{
    locus_session *session = NULL;
    LOCUS_TRY(locus_session_new(&session, model, 1, error));
    locus_status status = LOCUS_OK;
    for (int64_t at = 0, some = 2; status == LOCUS_OK && at < tokens; at += some, some = 1) {
        const int64_t offsets[2] = {0, some};
        const locus_model_results results = {.size = sizeof results,
                                             .logits = logits + at * vocabulary};
        status = locus_session_step(session, ids + at, offsets, &results, error);
    }
    locus_session_free(session);
    return status;
}

static double distance(const float *a, const float *b, int64_t count)
{
    double most = 0.0, largest = 0.0;
    for (int64_t i = 0; i < count; i++) {
        const double d = fabs((double)a[i] - (double)b[i]);
        most = d <= most ? most : d; /* a NaN stays */
        largest = fmax(largest, fabs((double)b[i]));
    }
    return most / largest;
}

static void check_numbers(const trained *t, const locus_model *model, double most)
{
    const int64_t T = t->batch.tokens, V = t->plan.shape.vocabulary;
    float *logits = calloc((size_t)(T * V), sizeof *logits);
    locus_error error = {""};
    locus_status status = run_all(model, t->batch.token, T, logits, &error);
    CHECK(status == LOCUS_OK, "%s", error.text);
    double d = distance(logits, t->model->logits, T * V);
    CHECK(d <= most, "logits: found %g of the largest, expected at most %g", d, most);
    if (t->plan.shape.causal && most == tolerance) {
        memset(logits, 0, (size_t)(T * V) * sizeof *logits);
        status = run_session(model, t->batch.token, T, V, logits, &error);
        CHECK(status == LOCUS_OK, "%s", error.text);
        d = distance(logits, t->model->logits, T * V);
        CHECK(d <= most, "token by token: found %g of the largest, expected at most %g", d, most);
    }
    free(logits);
}

/* ---- one run ---- */

static void check_tokenizer(const trained *t, const char *folder)
{
    const char text[] = "Caf\xC3\xA9 \x01~";
    const locus_text_input input = {.size = sizeof input, .text = text, .bytes = sizeof text - 1};
    const size_t before = t->plan.shape.causal ? 1 : 0;
    locus_tokenizer *tokenizer = NULL;
    locus_encoding *encoding = NULL;
    locus_error error = {""};
    locus_status status = locus_tokenizer_open(&tokenizer, folder, NULL, &error);
    if (status == LOCUS_OK) status = locus_encoding_new(&encoding, NULL, &error);
    if (status == LOCUS_OK) status = locus_tokenizer_encode(tokenizer, &input, encoding, &error);
    CHECK(status == LOCUS_OK, "%s", error.text);
    if (status == LOCUS_OK) {
        const uint32_t *ids = locus_encoding_ids(encoding);
        int same = locus_encoding_count(encoding) == before + sizeof text - 1;
        if (same && before) same = ids[0] == 256;
        for (size_t i = 0; same && i < sizeof text - 1; i++)
            same = ids[before + i] == (unsigned char)text[i];
        CHECK(same, "a text is its bytes");
        CHECK(t->plan.shape.causal || locus_tokenizer_special(tokenizer, "mask") == 256,
              "257 of a masked model is the mask");
    }
    locus_encoding_free(encoding);
    locus_tokenizer_close(tokenizer);
}

static void check_parameters(const trained *t, const locus_model *model)
{
    int64_t all, positional;
    locus_model_info info = {.size = sizeof info};
    locus_model_describe(model, &info);
    train_parameters_count(&t->model->list, &all, &positional);
    CHECK(info.parameters == all, "parameters: found %" PRId64 ", expected %" PRId64,
          info.parameters, all);
    CHECK(strcmp(info.positions, t->plan.shape.scheme) == 0, "positions: found %s", info.positions);
}

static void check_run(const char *task, const char *scheme)
{
    char name[96], run[PATH - 8], folder[PATH];
    locus_error error = {""};
    const lab_watch watch = {.interrupted = NULL};
    lab_settings s = settings_of(task, scheme);
    lab_outcome outcome;
    trained t = {.model = NULL};
    snprintf(name, sizeof name, "export/%s/%s", task, scheme);
    if (!check_begin("%s", name)) return;
    snprintf(run, sizeof run, "%s/%s-%s", scratch, task, scheme);
    snprintf(folder, sizeof folder, "%s-model", run);
    char text[PATH];
    if (lab_task_find(task)->reads_text) s.text = in_scratch(text, "text.txt");
    locus_status status = lab_train(&s, run, 0, NULL, &watch, &outcome, &error);
    if (status == LOCUS_OK) status = trained_open(&t, &s, run, &error);
    CHECK(status == LOCUS_OK, "%s", error.text);
    for (int half = 0; status == LOCUS_OK && half < 2; half++) {
        locus_model *model = NULL;
        int count = 0;
        status = lab_export(run, NULL, folder, half, &count, &error);
        if (status == LOCUS_OK) status = locus_model_open(&model, folder, NULL, &error);
        CHECK(status == LOCUS_OK && count == 1, "%s", error.text);
        if (status != LOCUS_OK) break;
        check_numbers(&t, model, half ? half_tolerance : tolerance);
        check_parameters(&t, model);
        locus_model_free(model);
    }
    if (status == LOCUS_OK && t.plan.task->reads_text) check_tokenizer(&t, folder);
    if (t.model != NULL) trained_close(&t);
}

/* ---- refusals ---- */

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[PATH + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "%s is not written", path);
}

static void check_line(const char *from, const char *words)
{
    char to[PATH];
    locus_error error = {""};
    int count = 0;
    const locus_status status =
        lab_export(from, NULL, in_scratch(to, "refused"), 0, &count, &error);
    CHECK(status != LOCUS_OK && strstr(error.text, words) != NULL &&
              strchr(error.text, '\n') == NULL,
          "found \"%s\", expected a line with \"%s\"", error.text, words);
}

static void check_refusals(void)
{
    char folder[PATH], run[PATH];
    locus_error error = {""};
    lab_outcome outcome;
    const lab_watch watch = {.interrupted = NULL};
    lab_settings s = settings_of("copy", "sinusoidal");
    if (!check_begin("export/refused")) return;
    check_line(scratch, "neither a run nor a comparison");
    in_scratch(folder, "broken");
    CHECK(mkdir(folder, 0777) == 0, "%s", folder);
    write_text(folder, "run.json", "{\"task\": \"copy\", \"scheme\": \"nothing\"}\n");
    check_line(folder, "run.json");
    write_text(folder, "run.json", "{\"task\": ");
    check_line(folder, "run.json");
    s.positions = "subset:64";
    in_scratch(run, "subset");
    CHECK(lab_train(&s, run, 0, NULL, &watch, &outcome, &error) == LOCUS_OK, "%s", error.text);
    check_line(run, "subset:64");
}

/* ---- folders that lie ---- */

static void check_config(const char *config, const char *words)
{
    char folder[PATH];
    locus_model *model = NULL;
    locus_error error = {""};
    in_scratch(folder, "text-shaw-model");
    write_text(folder, "config.json", config);
    const locus_status status = locus_model_open(&model, folder, NULL, &error);
    CHECK(status != LOCUS_OK && strstr(error.text, words) != NULL, "found \"%s\", expected \"%s\"",
          error.text, words);
    locus_model_free(model);
}

#define SIZES                                                                                      \
    "\"model_type\": \"locus-lab\", \"layers\": 2, \"width\": 24, \"heads\": 3, \"vocabulary\": 257"
static void check_configs(void)
{
    if (!check_begin("export/config")) return;
    check_config("{" SIZES ", \"scheme\": \"nothing\"}", "scheme: found nothing");
    check_config("{" SIZES ", \"scheme\": \"table\"}", "scheme: found table");
    check_config("{" SIZES ", \"scheme\": \"shaw\"}", "options.clip_left");
    check_config("{" SIZES ", \"scheme\": \"shaw\", \"options\": {\"clip_left\": -1}}",
                 "options.clip_left: found -1");
    check_config("{" SIZES ", \"scheme\": \"shaw\", \"options\": {\"speed\": 1}}", "options.speed");
    check_config("{" SIZES ", \"scheme\": \"shaw\", \"options\": {\"clip_left\": 4, "
                 "\"clip_right\": 4}}",
                 "rel_k: found [33,8], expected [9,8]");
    check_config("{" SIZES ", \"scheme\": \"learned\"}", "positions");
    check_config("{" SIZES ", \"scheme\": \"fire\"}", "features");
    check_config("{\"model_type\": \"locus-lab\", \"layers\": 2, \"width\": 24, \"heads\": 5, "
                 "\"vocabulary\": 257, \"scheme\": \"none\"}",
                 "heads: found 5");
}

/* The others have tensors that no small model makes (tests/lab/test_lab.c). */
static int trains(const char *scheme)
{
    static const char *const others[] = {"inkling", "sam", "swin", "table", "wall", "wavlm"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(scheme, others[i]) == 0) return 0;
    return 1;
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    if (mkdtemp(scratch) == NULL) return 1;
    write_novel();
    for (size_t i = 0; i < locus_scheme_count(); i++) {
        const locus_scheme_info *scheme = locus_scheme_at(i);
        if (!trains(scheme->name)) continue;
        check_run("text", scheme->name);
        if ((scheme->traits & LOCUS_TRAIT_CAUSAL) == 0) check_run("masked", scheme->name);
    }
    check_run("copy", "learned"); /* symbols: no tokenizer, another vocabulary */
    check_run("recall", "rope");
    check_refusals();
    check_configs();
    remove_folder(scratch);
    return check_finish("export");
}

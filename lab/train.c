/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/system.h"
#include "lab/checkpoint.h"
#include "lab/evaluate.h"
#include "lab/files.h"
#include "lab/lab.h"
#include "lab/log.h"
#include "lab/parts.h"

/* A run: step, log line, validation where it is due, checkpoint where it is due; then the numbers.
 * A validation or a checkpoint never changes what is learned, so neither does when they happen. Of
 * several ranks all learn; the rest is done by rank 0, and the others follow what became of it. */

enum { VALIDATIONS = 60, LEAST_BETWEEN = 10 };

typedef struct session {
    lab_plan plan;
    const char *folder;
    const lab_crew *crew;
    const lab_watch *watch;
    train_model *model;
    lab_parts parts;
    train_memory memory;
    train_batch batch;
    lab_log log;
    int64_t step; /* the last one that is done */
    int taken_up; /* from a checkpoint         */
    double began; /* of this session, for the rate of steps */
    int64_t began_at;
    double loss;
    int interrupted; /* on any rank, as of the last step */
} session;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void note(const session *s, const char *line)
{
    if (s->watch != NULL && s->watch->note != NULL) s->watch->note(s->watch->context, line);
}

static int is_interrupted(const session *s)
{
    return s->watch != NULL && s->watch->interrupted != NULL && *s->watch->interrupted != 0;
}

static lab_judge judge_of(session *s)
{
    return (lab_judge){.plan = &s->plan, .model = s->model, .batch = &s->batch};
}

/* ---- the folder ---- */

static int holds(const session *s, const char *name)
{
    char path[LAB_PATH];
    return lab_path(path, s->folder, name) && locus_system_exists(path);
}

/* *found: the settings of this very run are there. */
static locus_status check_folder(const session *s, int resume, int *found, locus_error *error)
{
    const locus_status status = lab_plan_compare(&s->plan, s->folder, found, error);
    if (*found && !resume)
        return locus_fail(error, LOCUS_ERR_OPTION, "%s holds a run; --resume goes on with it",
                          s->folder);
    if (status == LOCUS_OK && !*found && (holds(s, LAB_CHECKPOINT) || holds(s, LAB_PREVIOUS)))
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "%s holds a checkpoint, but no run.json that says of what", s->folder);
    return status;
}

/* The log is the lock: settings are written by who has it. */
static locus_status claim_folder(session *s, int resume, locus_error *error)
{
    int found = 0;
    LOCUS_TRY(lab_folders_make(s->folder, error));
    LOCUS_TRY(check_folder(s, resume, &found, error));
    LOCUS_TRY(lab_log_open(&s->log, s->folder, error));
    LOCUS_TRY(check_folder(s, resume, &found, error)); /* another may have begun meanwhile */
    return found ? LOCUS_OK : lab_plan_write(&s->plan, s->folder, error);
}

/* ---- memory ---- */

static locus_status prepare(session *s, locus_error *error)
{
    const lab_settings *set = &s->plan.settings;
    const lab_task *task = s->plan.task;
    const int64_t first = task->one_length ? set->length : 1;
    LOCUS_TRY(train_model_new(&s->model, &s->plan.shape, set->seed, set->threads, error));
    LOCUS_TRY(lab_parts_new(&s->parts, &s->plan, s->model, s->crew, error));
    LOCUS_TRY(lab_batch_new(&s->batch, lab_judge_tokens(&s->plan), error));
    s->memory.most = set->memory;
    for (int64_t i = 0; set->memory > 0 && i < set->layers; i++) {
        const size_t floats = (size_t)(set->batch * set->memory * set->width);
        s->memory.data[i] = locus_allocate(NULL, floats, sizeof(float));
        if (s->memory.data[i] == NULL)
            return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the memory of block %d",
                              (int)i);
    }
    for (int64_t n = set->length; n >= first; n--) /* the longest first: memory grows once */
        LOCUS_TRY(lab_parts_prepare(&s->parts, s->model, task->tokens(n), 0, error));
    if (set->memory > 0)
        LOCUS_TRY(lab_parts_prepare(&s->parts, s->model, set->length, set->memory, error));
    return LOCUS_OK;
}

static void clean_up(session *s)
{
    lab_log_close(&s->log);
    for (int i = 0; i < TRAIN_MOST_LAYERS; i++) locus_release(NULL, s->memory.data[i]);
    lab_batch_free(&s->batch);
    lab_parts_free(&s->parts);
    train_model_free(s->model);
    lab_plan_free(&s->plan);
}

/* ---- going on ---- */

/* 1: this checkpoint is whole, and the log has every step before it. */
static int take_up(session *s, const char *name, int64_t *step)
{
    char path[LAB_PATH], line[LAB_PATH + 96];
    locus_error error = {""};
    if (!lab_path(path, s->folder, name) || !locus_system_exists(path)) return 0;
    const locus_status status =
        lab_checkpoint_read(&s->plan, s->model, &s->memory, step, s->folder, name, &error);
    if (status == LOCUS_OK && s->log.steps >= *step) return 1;
    if (status == LOCUS_OK)
        snprintf(line, sizeof line, "%s is of step %" PRId64 ", but the log ends at %" PRId64, path,
                 *step, s->log.steps);
    else
        snprintf(line, sizeof line, "%s", error.text);
    note(s, line);
    return 0;
}

static locus_status take_up_any(session *s, locus_error *error)
{
    s->step = 0;
    s->taken_up = take_up(s, LAB_CHECKPOINT, &s->step) || take_up(s, LAB_PREVIOUS, &s->step);
    if (!s->taken_up) {
        s->step = 0;
        s->memory.rows = 0;
        train_parameters_start(&s->model->list, s->plan.settings.seed, s->model->weights);
        memset(s->model->m, 0, 2 * s->model->list.floats * sizeof(float)); /* and v behind it */
    }
    return lab_log_cut(&s->log, s->step, error);
}

/* Where rank 0 stands, on all ranks. */
static void share(session *s)
{
    const lab_crew *crew = s->crew;
    const size_t row = (size_t)(s->plan.settings.batch * s->model->shape.width) * sizeof(float);
    if (crew == NULL) return;
    crew->broadcast(crew->context, &s->step, sizeof s->step);
    crew->broadcast(crew->context, &s->taken_up, sizeof s->taken_up);
    crew->broadcast(crew->context, &s->memory.rows, sizeof s->memory.rows);
    crew->broadcast(crew->context, s->model->weights, 3 * s->model->list.floats * sizeof(float));
    for (int64_t i = 0; s->memory.rows > 0 && i < s->model->shape.layers; i++)
        crew->broadcast(crew->context, s->memory.data[i], row * (size_t)s->memory.rows);
}

/* ---- one step ---- */

static locus_status train_step(session *s, lab_log_step *line, locus_error *error)
{
    const lab_settings *set = &s->plan.settings;
    const double begin = now();
    lab_learned learned = {.loss = 0.0};
    lab_training_batch(&s->plan, line->step, &s->batch);
    LOCUS_TRY(lab_parts_learn(&s->parts, s->model, &s->batch, set->memory > 0 ? &s->memory : NULL,
                              is_interrupted(s), &learned, error));
    line->loss = (double)(float)learned.loss;
    line->rate = train_rate(set->rate, line->step, set->steps);
    const train_update update = {.step = line->step,
                                 .rate = line->rate,
                                 .decay = s->plan.task->decay};
    line->norm = (double)(float)train_adam(s->model, &update);
    line->tokens = s->batch.rows * s->batch.tokens;
    line->seconds = now() - begin;
    s->step = line->step;
    s->loss = line->loss;
    s->interrupted = learned.interrupted;
    return LOCUS_OK;
}

static void report_progress(session *s)
{
    const double seconds = now() - s->began;
    const int64_t done = s->step - s->began_at, steps = s->plan.settings.steps;
    const double pace = seconds > 0.0 ? (double)done / seconds : 0.0;
    if (s->watch == NULL || s->watch->progress == NULL) return;
    const lab_progress progress = {.name = s->plan.settings.scheme,
                                   .step = s->step,
                                   .steps = steps,
                                   .loss = s->loss,
                                   .validation = s->log.validation,
                                   .steps_per_second = pace,
                                   .seconds_left =
                                       pace > 0.0 ? (double)(steps - s->step) / pace : 0.0};
    s->watch->progress(s->watch->context, &progress);
}

/* The log, and validation where it is due. */
static locus_status record(session *s, const lab_log_step *line, locus_error *error)
{
    const int64_t steps = s->plan.settings.steps, part = steps / VALIDATIONS;
    const int64_t between = part > LEAST_BETWEEN ? part : LEAST_BETWEEN;
    const lab_judge judge = judge_of(s);
    double value = 0.0;
    lab_log_add(&s->log, line);
    if (s->step % between != 0 && s->step != steps) return LOCUS_OK;
    LOCUS_TRY(lab_validate(&judge, &value, error));
    lab_log_validate(&s->log, s->step, value);
    return LOCUS_OK;
}

static locus_status save(session *s, locus_error *error)
{
    LOCUS_TRY(lab_log_sync(&s->log, error));
    return lab_checkpoint_write(&s->plan, s->model, &s->memory, s->step, s->folder, error);
}

static locus_status advance(session *s, int64_t last, locus_error *error)
{
    const int64_t every = s->plan.settings.save_every;
    lab_log_step line = {.step = s->step + 1};
    locus_status status = LOCUS_OK;
    LOCUS_TRY(train_step(s, &line, error));
    const int saves = s->step % every == 0 || s->step == last || s->interrupted;
    if (saves) lab_parts_collect(&s->parts, s->model, &s->memory);
    if (lab_crew_leads(s->crew)) {
        status = record(s, &line, error);
        if (status == LOCUS_OK && saves) status = save(s, error);
        if (status == LOCUS_OK) report_progress(s);
    }
    return lab_crew_follow(s->crew, status, error);
}

/* ---- the numbers ---- */

static void put_whole_run(const session *s, plot_text *out)
{
    int64_t all = 0, positional = 0;
    train_parameters_count(&s->model->list, &all, &positional);
    const lab_measure measure = s->plan.task->measure; /* of others, validation is no share */
    const int is_share = measure == LAB_ROWS || measure == LAB_ANSWER;
    if (is_share && s->log.steps_to_99 > 0)
        lab_print(out, ",steps_to_99,%" PRId64 "\n", s->log.steps_to_99);
    else if (is_share)
        lab_print(out, ",steps_to_99,undefined\n");
    lab_print(out, ",parameters,%" PRId64 "\n,position_parameters,%" PRId64 "\n,chance,%.9g\n", all,
              positional, s->plan.task->chance);
}

static locus_status write_cost(const session *s, double milliseconds, locus_error *error)
{
    locus_text text = {.data = NULL};
    plot_text out = {.to = &text};
    const double steps = s->log.steps > 0 ? (double)s->log.steps : 1.0;
    lab_print(&out, "metric,value\nms_per_step,%.6g\nseconds,%.6g\n", 1e3 * s->log.seconds / steps,
              s->log.seconds);
    if (milliseconds >= 0.0) lab_print(&out, "read_8x_ms,%.6g\n", milliseconds);
    lab_print(&out, "peak_bytes,%zu\n",
              s->model->step_peak + (s->parts.slots + s->parts.levels) * s->parts.bytes);
    return lab_print_save(&out, s->folder, "cost.csv", error);
}

static locus_status finish(session *s, locus_error *error)
{
    char path[LAB_PATH];
    locus_text text = {.data = NULL};
    plot_text out = {.to = &text};
    double milliseconds = -1.0;
    const lab_judge judge = judge_of(s);
    if (lab_path(path, s->folder, "metrics.csv") && locus_system_exists(path)) return LOCUS_OK;
    plot_puts(&out, "length,metric,value\n");
    locus_status status = lab_evaluate(&judge, &out, &milliseconds, error);
    put_whole_run(s, &out);
    if (status == LOCUS_OK) status = write_cost(s, milliseconds, error);
    if (status == LOCUS_OK) return lab_print_save(&out, s->folder, "metrics.csv", error);
    locus_text_free(&text);
    return status;
}

/* ---- the run ---- */

/* Everything that there is before the first step. */
static locus_status begin(session *s, int resume, locus_error *error)
{
    const int leads = lab_crew_leads(s->crew);
    LOCUS_TRY(lab_crew_follow(s->crew, leads ? claim_folder(s, resume, error) : LOCUS_OK, error));
    LOCUS_TRY(lab_crew_agree(s->crew, prepare(s, error), error));
    LOCUS_TRY(lab_crew_follow(s->crew, leads ? take_up_any(s, error) : LOCUS_OK, error));
    share(s);
    s->began = now();
    s->began_at = s->step;
    return LOCUS_OK;
}

static locus_status run(session *s, int resume, lab_outcome *outcome, locus_error *error)
{
    const lab_settings *set = &s->plan.settings;
    const int64_t last = set->stop > 0 && set->stop < set->steps ? set->stop : set->steps;
    const int leads = lab_crew_leads(s->crew);
    LOCUS_TRY(begin(s, resume, error));
    *outcome = LAB_FINISHED;
    if (set->steps == 0)
        return lab_crew_follow(s->crew, s->taken_up || !leads ? LOCUS_OK : save(s, error), error);
    while (s->step < last) {
        LOCUS_TRY(advance(s, last, error));
        if (!s->interrupted || s->step == last) continue;
        *outcome = LAB_INTERRUPTED;
        return LOCUS_OK;
    }
    if (s->step == set->steps)
        return lab_crew_follow(s->crew, leads ? finish(s, error) : LOCUS_OK, error);
    *outcome = LAB_STOPPED;
    return LOCUS_OK;
}

locus_status lab_train(const lab_settings *settings, const char *folder, int resume,
                       const lab_crew *crew, const lab_watch *watch, lab_outcome *outcome,
                       locus_error *error)
{
    session s = {.folder = folder, .crew = crew, .watch = watch, .log = {.file = -1}};
    locus_status status = lab_plan_new(&s.plan, settings, error);
    const int has_plan = status == LOCUS_OK;
    status = lab_crew_agree(crew, status, error);
    if (status == LOCUS_OK) status = lab_plan_agree(&s.plan, crew, error);
    if (status == LOCUS_OK) status = run(&s, resume, outcome, error);
    if (has_plan) clean_up(&s);
    return status;
}

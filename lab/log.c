/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "lab/log.h"
#include "core/decimal.h"
#include "core/print.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/system.h"
#include "io/tensorfile.h"
#include "lab/files.h"
#include "lab/lock.h"

enum { NUMBER_TEXT = 32, MOST_BYTES = 1 << 30 };

static locus_status fail(const lab_log *log, const char *what, int code, locus_error *error)
{
    return locus_file_fail_in(error, locus_system_fail(error, what, code), log->path);
}

/* The number behind "NAME": in a line, NaN for null; 0: there is none. */
static int number_of(const char *line, const char *name, double *value)
{
    char key[32];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(line, key);
    if (at == NULL) return 0;
    at += strlen(key);
    *value = NAN;
    return strncmp(at, "null", 4) == 0 || locus_read_real(at, value) > 0;
}

static void note_validation(lab_log *log, int64_t step, double validation)
{
    log->validation = validation;
    if (log->steps_to_99 == 0 && validation >= 0.99) log->steps_to_99 = step;
}

/* Read whole lines of steps up to `last`; returns where they end. */
static size_t walk(lab_log *log, const char *text, int64_t last)
{
    double step = 0.0, value = 0.0;
    const char *line = text;
    log->steps = log->steps_to_99 = 0;
    log->seconds = 0.0;
    log->validation = -1.0;
    for (const char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char copy[512];
        snprintf(copy, sizeof copy, "%.*s", (int)(end - line), line);
        if (!number_of(copy, "step", &step) || !(step >= 0 && step < MOST_BYTES)) break;
        if (number_of(copy, "validation", &value)) {
            if ((int64_t)step != log->steps) break;
            note_validation(log, log->steps, value);
            continue;
        }
        if ((int64_t)step != log->steps + 1 || log->steps == last) break;
        if (number_of(copy, "seconds", &value)) log->seconds += value;
        log->steps++;
    }
    return (size_t)(line - text);
}

static locus_status read_up_to(lab_log *log, int64_t last, size_t *bytes, locus_error *error)
{
    char *text = NULL;
    LOCUS_TRY(lab_file_read(&text, bytes, log->path, MOST_BYTES, error));
    *bytes = walk(log, text, last);
    locus_release(NULL, text);
    return LOCUS_OK;
}

locus_status lab_log_open(lab_log *log, const char *folder, locus_error *error)
{
    size_t bytes = 0;
    *log = (lab_log){.validation = -1.0, .file = -1};
    if (!lab_path(log->path, folder, "log.jsonl"))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    log->file = open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log->file < 0) return fail(log, "cannot open", errno, error);
    LOCUS_TRY(lab_lock(log->file, log->path, error)); /* one process per run */
    return read_up_to(log, INT64_MAX, &bytes, error);
}

locus_status lab_log_cut(lab_log *log, int64_t step, locus_error *error)
{
    size_t bytes = 0;
    LOCUS_TRY(read_up_to(log, step, &bytes, error));
    return ftruncate(log->file, (off_t)bytes) == 0 ? LOCUS_OK
                                                   : fail(log, "cannot cut", errno, error);
}

/* A line; the first failure is kept for lab_log_sync. */
static void append(lab_log *log, const char *line)
{
    const size_t bytes = strlen(line);
    for (size_t at = 0; log->code == 0 && at < bytes;) {
        const ssize_t wrote = write(log->file, line + at, bytes - at);
        if (wrote >= 0)
            at += (size_t)wrote;
        else if (errno != EINTR)
            log->code = errno;
    }
}

/* JSON has no word for what a run that diverged computes but null. */
static const char *number(char out[NUMBER_TEXT], double value)
{
    if (isfinite(value))
        locus_print(out, NUMBER_TEXT, "%.9g", value);
    else
        snprintf(out, NUMBER_TEXT, "null");
    return out;
}

void lab_log_add(lab_log *log, const lab_log_step *s)
{
    char line[256], loss[NUMBER_TEXT], norm[NUMBER_TEXT];
    locus_print(line, sizeof line,
                "{\"step\":%" PRId64
                ",\"loss\":%s,\"rate\":%.9g,\"grad_norm\":%s,\"tokens\":%" PRId64
                ",\"seconds\":%.6f}\n",
                s->step, number(loss, s->loss), s->rate, number(norm, s->norm), s->tokens,
                s->seconds);
    append(log, line);
    log->steps = s->step;
    log->seconds += s->seconds;
}

void lab_log_validate(lab_log *log, int64_t step, double validation)
{
    char line[96], value[NUMBER_TEXT];
    snprintf(line, sizeof line, "{\"step\":%" PRId64 ",\"validation\":%s}\n", step,
             number(value, validation));
    append(log, line);
    note_validation(log, step, validation);
}

locus_status lab_log_sync(lab_log *log, locus_error *error)
{
    while (log->code == 0 && fsync(log->file) != 0)
        if (errno != EINTR) log->code = errno;
    return log->code == 0 ? LOCUS_OK : fail(log, "cannot write", log->code, error);
}

void lab_log_close(lab_log *log)
{
    if (log->file >= 0) close(log->file);
    log->file = -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/run_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/number.h"

enum { NUMBER_TEXT = 40, KEY_TEXT = 24 };

/* What a line says; NaN: nothing. */
typedef struct line {
    double step, loss, seconds, validation;
} line;

static double *field_of(line *l, const char *key, size_t length)
{
    const struct {
        const char *name;
        double *field;
    } fields[] = {{"step", &l->step},
                  {"loss", &l->loss},
                  {"seconds", &l->seconds},
                  {"validation", &l->validation}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strlen(fields[i].name) == length && memcmp(fields[i].name, key, length) == 0)
            return fields[i].field;
    return NULL;
}

/* One value: a number, or a word or a string that is passed over. NULL: neither. */
static const char *read_value(const char *at, const char *end, double *value)
{
    char number[NUMBER_TEXT];
    size_t length = 0;
    if (at < end && *at == '"') {
        for (at++; at < end && *at != '"'; at++)
            if (*at == '\\') at++;
        return at < end ? at + 1 : NULL;
    }
    while (at + length < end && strchr(",}", at[length]) == NULL) length++;
    if (length == 0 || length >= sizeof number) return NULL;
    memcpy(number, at, length);
    number[length] = '\0';
    while (length > 0 && number[length - 1] == ' ') number[--length] = '\0';
    double found;
    if (locus_parse_real(number, &found)) {
        if (value != NULL) *value = found;
    } else if (strcmp(number, "null") != 0 && strcmp(number, "true") != 0 &&
               strcmp(number, "false") != 0) {
        return NULL;
    }
    while (at < end && strchr(",}", *at) == NULL) at++;
    return at;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\r')) at++;
    return at;
}

/* {"step": 1, "loss": 3.5}; 0: it is not such a line. */
static int read_line(line *l, const char *at, const char *end)
{
    *l = (line){NAN, NAN, NAN, NAN};
    at = skip_blanks(at, end);
    if (at == end || *at++ != '{') return 0;
    for (;;) {
        at = skip_blanks(at, end);
        if (at == end || *at++ != '"') return 0;
        const char *key = at;
        while (at < end && *at != '"') at++;
        if (at == end || at - key >= KEY_TEXT) return 0;
        double *field = field_of(l, key, (size_t)(at - key));
        at = skip_blanks(at + 1, end);
        if (at == end || *at++ != ':') return 0;
        at = read_value(skip_blanks(at, end), end, field);
        if (at == NULL) return 0;
        at = skip_blanks(at, end);
        if (at < end && *at == '}') return skip_blanks(at + 1, end) == end;
        if (at == end || *at++ != ',') return 0;
    }
}

/* ---- the curve ---- */

static locus_status count_lines(lab_run *run, const char *text, size_t bytes, size_t *steps,
                                locus_error *error)
{
    size_t number = 1;
    *steps = 0;
    run->test_count = 0;
    for (const char *at = text, *end; (end = memchr(at, '\n', bytes - (size_t)(at - text))) != NULL;
         at = end + 1, number++) {
        line l;
        if (!read_line(&l, at, end) || isnan(l.step) || l.step < 0 || l.step > 1e12)
            return locus_fail(error, LOCUS_ERR_FORMAT,
                              "line %zu: expected an object with a step and numbers", number);
        run->reached = l.step > (double)run->reached ? (int64_t)l.step : run->reached;
        *steps += isnan(l.loss) ? 0 : 1;
        run->test_count += isnan(l.validation) ? 0 : 1;
    }
    return LOCUS_OK;
}

static void fill(lab_run *run, const char *text, size_t bytes, size_t steps)
{
    const size_t each = (steps + LAB_POINTS - 1) / LAB_POINTS;
    size_t seen = 0, tests = 0;
    double elapsed = 0;
    for (const char *at = text, *end; (end = memchr(at, '\n', bytes - (size_t)(at - text))) != NULL;
         at = end + 1) {
        line l;
        read_line(&l, at, end);
        if (!isnan(l.validation)) {
            run->tests[2 * tests] = l.step;
            run->tests[2 * tests++ + 1] = l.validation;
        }
        if (isnan(l.loss)) continue;
        lab_point *point = &run->points[seen / each];
        const size_t first = seen / each * each, last = first + each < steps ? first + each : steps;
        point->loss += l.loss / (double)(last - first);
        point->step = l.step;                        /* of the last that it averages */
        elapsed += isnan(l.seconds) ? 0 : l.seconds; /* of this step */
        point->seconds = elapsed;
        seen++;
        run->point_count = (seen + each - 1) / each;
    }
}

locus_status lab_log_read(lab_run *run, const char *path, locus_error *error)
{
    char *text = NULL;
    size_t bytes = 0, steps = 0;
    LOCUS_TRY(lab_file_read(&text, &bytes, path, LAB_LOG_BYTES, error));
    locus_status status = count_lines(run, text, bytes, &steps, error);
    if (status == LOCUS_OK) {
        run->points = locus_allocate(NULL, LAB_POINTS + 1, sizeof *run->points);
        run->tests = locus_allocate(NULL, run->test_count + 1, 2 * sizeof *run->tests);
        if (run->points == NULL || run->tests == NULL)
            status = locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the log");
        else if (steps > 0 || run->test_count > 0)
            fill(run, text, bytes, steps > 0 ? steps : 1);
    } else {
        status = locus_fail_in(error, status, path);
    }
    locus_release(NULL, text);
    return status;
}

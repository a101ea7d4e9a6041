/* SPDX-License-Identifier: Apache-2.0 */
/* locus demo: every scheme on one sentence, judged by the oracle, timed against plain
 * attention. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "json.h"
#include "stopwatch.h"
#include "terms.h"
#include "text.h"
#include "trial.h"

typedef struct demo_values {
    int json;
} demo_values;

static const char *const sentence[] = {
    "the", "cat", "sat", "on", "the", "mat", "because", "it", "was", "tired",
};

enum { WORDS = sizeof sentence / sizeof *sentence };

static const double output_tolerance = 5e-6, gradient_tolerance = 2e-5;

/* The sentence, and something long enough for a clock. */
static const problem_request small = {.B = 1, .H = 4, .T = WORDS, .D = 16, .E = 64, .seed = 2017};
static const problem_request large = {.B = 1, .H = 4, .T = 256, .D = 64, .E = 256, .seed = 2017};

typedef struct outcome {
    const locus_scheme_info *scheme;
    uint32_t level;
    int64_t parameters;
    double outputs, gradients; /* errors */
    pace pace;
} outcome;

/* ---- running ---- */

/* Equal words get equal numbers. */
static void number_words(uint32_t *words)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = i;
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(sentence[i], sentence[k]) == 0) words[i] = words[k];
    }
}

static locus_status judge(outcome *o, locus_error *error)
{
    uint32_t words[WORDS];
    problem_request request = small;
    problem p;
    trial t;
    number_words(words);
    request.scheme = o->scheme->name;
    request.level = o->level;
    request.words = words;
    locus_status status = problem_build(&p, &request, error);
    if (status != LOCUS_OK) return status;
    o->parameters = p.parameters;
    status = trial_new(&t, &p, error);
    if (status == LOCUS_OK) {
        status = trial_forward(&t, error);
        if (status == LOCUS_OK) status = trial_backward(&t, error);
        if (status == LOCUS_OK) status = trial_errors(&t, &o->outputs, &o->gradients, error);
        trial_free(&t);
    }
    problem_free(&p);
    return status;
}

typedef struct timed {
    problem problem;
    trial trial;
} timed;

static locus_status timed_new(timed *t, const char *scheme, uint32_t level, locus_error *error)
{
    problem_request request = large;
    request.scheme = scheme;
    request.level = level;
    locus_status status = problem_build(&t->problem, &request, error);
    if (status != LOCUS_OK) return status;
    t->problem.config.threads = 1; /* what the stopwatch can measure on a busy machine */
    status = trial_new(&t->trial, &t->problem, error);
    if (status != LOCUS_OK) problem_free(&t->problem);
    return status;
}

static void timed_free(timed *t)
{
    trial_free(&t->trial);
    problem_free(&t->problem);
}

static locus_status clock_scheme(outcome *o, locus_error *error)
{
    timed plain, own;
    locus_status status = timed_new(&plain, "none", o->level, error);
    if (status != LOCUS_OK) return status;
    status = timed_new(&own, o->scheme->name, o->level, error);
    if (status == LOCUS_OK) {
        status = pace_measure(&o->pace, &own.trial, &plain.trial, error);
        timed_free(&own);
    }
    timed_free(&plain);
    return status;
}

static int exact(const outcome *o)
{
    return o->outputs <= output_tolerance && o->gradients <= gradient_tolerance;
}

static void show_progress(const char *name)
{
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%-24s\r%s", "", name);
}

static int run_all(outcome *outcomes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        locus_error error = {""};
        outcome *o = &outcomes[i];
        o->scheme = locus_scheme_at(i);
        o->level = scheme_level(o->scheme);
        show_progress(o->scheme->name);
        locus_status status = judge(o, &error);
        if (status == LOCUS_OK) status = clock_scheme(o, &error);
        if (status == LOCUS_OK) continue;
        show_progress("");
        return cli_report("demo", status, o->scheme->name, &error);
    }
    show_progress("");
    return CLI_DONE;
}

/* ---- printing ---- */

static void print_head(void)
{
    printf("\"");
    for (size_t i = 0; i < WORDS; i++) printf("%s%s", i > 0 ? " " : "", sentence[i]);
    printf("\": %d words, %" PRId64 " heads of %" PRId64 ", seeded weights, forward and backward\n",
           (int)WORDS, small.H, small.D);
    printf("errors against the oracle in double; time as a multiple of plain attention at "
           "T = %" PRId64 ", D = %" PRId64 "\n(instruction set %s, one thread)\n\n",
           large.T, large.D, locus_isa_pick(NULL));
    printf("%s%-20s  12345678  %7s  %9s  %9s  %7s  %7s  formula%s\n", text_bold(), "scheme",
           "learned", "out error", "gradients", "forward", "both", text_plain());
}

static void print_outcome(const outcome *o)
{
    char marks[TERM_COUNT + 1];
    const char *colour = exact(o) ? text_good() : text_bad();
    printf("%-20s  %s  %7" PRId64 "  %s%9.1e  %9.1e%s  %6.2fx  %6.2fx  %s%s\n", o->scheme->name,
           terms_marks(marks, o->scheme->terms), o->parameters, colour, o->outputs, o->gradients,
           text_plain(), o->pace.forward_ratio, o->pace.both_ratio, o->scheme->formula,
           o->level == LOCUS_LAYER ? "  (layer)" : "");
}

static void print_table(const outcome *outcomes, size_t count)
{
    print_head();
    for (size_t i = 0; i < count; i++) print_outcome(&outcomes[i]);
    puts("\n(layer): the scheme acts on x; a whole layer is run, and timed against a plain one");
    terms_print_legend();
}

static void json_outcome(json *j, const outcome *o)
{
    json_object(j, NULL);
    json_text(j, "name", o->scheme->name);
    json_text(j, "level", level_text(o->level));
    json_text(j, "formula", o->scheme->formula);
    terms_json(j, "terms", o->scheme->terms);
    json_integer(j, "parameters", o->parameters);
    json_real(j, "output_error", o->outputs);
    json_real(j, "gradient_error", o->gradients);
    json_boolean(j, "passed", exact(o));
    json_real(j, "forward_seconds", o->pace.forward);
    json_real(j, "both_seconds", o->pace.both);
    json_real(j, "forward_against_plain", o->pace.forward_ratio);
    json_real(j, "both_against_plain", o->pace.both_ratio);
    json_end(j);
}

static void json_request(json *j, const char *key, const problem_request *r)
{
    json_inline_object(j, key);
    json_integer(j, "B", r->B);
    json_integer(j, "H", r->H);
    json_integer(j, "T", r->T);
    json_integer(j, "D", r->D);
    json_integer(j, "E", r->E);
    json_end(j);
}

static void print_json(const outcome *outcomes, size_t count)
{
    json j = {.out = stdout};
    json_object(&j, NULL);
    json_inline_array(&j, "sentence");
    for (size_t i = 0; i < WORDS; i++) json_text(&j, NULL, sentence[i]);
    json_end(&j);
    json_request(&j, "judged_at", &small);
    json_request(&j, "timed_at", &large);
    json_text(&j, "isa", locus_isa_pick(NULL));
    json_size(&j, "threads", 1);
    json_real(&j, "output_tolerance", output_tolerance);
    json_real(&j, "gradient_tolerance", gradient_tolerance);
    json_array(&j, "schemes");
    for (size_t i = 0; i < count; i++) json_outcome(&j, &outcomes[i]);
    json_end(&j);
    json_end(&j);
}

/* ---- the command ---- */

static int verdict(const outcome *outcomes, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) wrong += exact(&outcomes[i]) ? 0 : 1;
    if (wrong == 0) return CLI_DONE;
    return cli_complain("demo", CLI_DIFFERENT, "%zu of %zu schemes differ from the oracle", wrong,
                        count);
}

static int demo_run(int argc, char **argv)
{
    demo_values values = {0};
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_demo, argc, argv, &values, &exit_code)) return exit_code;
    if (locus_isa_pick(NULL) == NULL)
        return cli_complain("demo", CLI_USAGE, "LOCUS_ISA does not name an instruction set");
    const size_t count = locus_scheme_count();
    outcome *outcomes = calloc(count, sizeof *outcomes);
    if (outcomes == NULL) return cli_complain("demo", CLI_RESOURCES, "out of memory");
    exit_code = run_all(outcomes, count);
    if (exit_code == CLI_DONE) {
        if (values.json)
            print_json(outcomes, count);
        else
            print_table(outcomes, count);
        exit_code = verdict(outcomes, count);
    }
    free(outcomes);
    return exit_code;
}

static const cli_example demo_examples[] = {
    {"locus demo", "every scheme on one sentence, judged and timed"},
    {"locus demo --json", "the same for a program"},
    {NULL, NULL},
};

static const cli_option demo_options[] = {
    {.name = "json", .help = "print JSON", .kind = CLI_FLAG, .offset = offsetof(demo_values, json)},
    {.name = NULL},
};

const cli_command cmd_demo = {
    .name = "demo",
    .summary = "every scheme on a built-in sentence, judged and timed",
    .description = "Runs every scheme forward and backward on a built-in sentence with seeded "
                   "weights, compares outputs and gradients with the oracle in double precision "
                   "and measures the time against plain attention. Exit code 1 where an error is "
                   "above 5e-6 (outputs) or 2e-5 (gradients).",
    .usage = "[--json]",
    .examples = demo_examples,
    .options = demo_options,
    .run = demo_run,
};

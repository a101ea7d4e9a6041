/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/settings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <locus/runtime.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/number.h"
#include "io/system.h"
#include "lab/files.h"
#include "lab/print.h"

enum {
    LAYERS = 2,
    WIDTH = 64,
    HEADS = 4,
    BATCH = 64,
    STEPS = 3000,
    CLIP = 16,
    SAVE_EVERY = 100,
    OFFSET_TIMES = 4, /* offset positions come from so many times the longest row */
    MOST_WIDTH = 16384,
    MOST_BATCH = 65536,
    MOST_LENGTH = 65536,
    TEST_TIMES = 8 /* text is read at up to so many times its length */
};

void lab_settings_init(lab_settings *settings)
{
    *settings = (lab_settings){.steps = -1, .clip = -1, .seed = 1};
}

/* ---- defaults ---- */

double lab_usual_rate(int64_t width) { return width <= 64 ? 2e-3 : width <= 128 ? 1e-3 : 6e-4; }

static void fill(int64_t *value, int64_t preset)
{
    if (*value == 0) *value = preset;
}

static void fill_in(lab_settings *s, const lab_task *task)
{
    fill(&s->layers, LAYERS);
    fill(&s->width, WIDTH);
    fill(&s->heads, HEADS);
    fill(&s->batch, BATCH);
    fill(&s->length, task->length);
    fill(&s->save_every, SAVE_EVERY);
    if (s->steps < 0) s->steps = STEPS;
    if (s->clip < 0) s->clip = CLIP;
    if (s->rate == 0.0) s->rate = lab_usual_rate(s->width);
    if (s->threads == 0) s->threads = 1;
    if (s->terms == NULL) s->terms = "c2p,p2c";
    if (s->positions == NULL) s->positions = "plain";
}

/* ---- checks ---- */

static locus_status check_range(const char *name, int64_t value, int64_t least, int64_t most,
                                locus_error *error)
{
    if (value >= least && value <= most) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_OPTION,
                      "%s: found %" PRId64 ", expected %" PRId64 " to %" PRId64, name, value, least,
                      most);
}

static locus_status check_numbers(const lab_settings *s, const lab_task *task, locus_error *error)
{
    LOCUS_TRY(check_range("width", s->width, 1, MOST_WIDTH, error));
    LOCUS_TRY(check_range("heads", s->heads, 1, MOST_WIDTH, error));
    LOCUS_TRY(check_range("batch", s->batch, 1, MOST_BATCH, error));
    LOCUS_TRY(check_range("steps", s->steps, 0, INT32_MAX, error));
    LOCUS_TRY(check_range("clip", s->clip, 0, MOST_LENGTH, error));
    LOCUS_TRY(check_range("save-every", s->save_every, 1, INT32_MAX, error));
    LOCUS_TRY(check_range("stop", s->stop, 0, INT32_MAX, error));
    LOCUS_TRY(check_range("length", s->length, task->one_length ? 2 : 1,
                          task->longest > 0 ? task->longest : MOST_LENGTH, error));
    if (!(s->rate > 0.0 && s->rate < HUGE_VAL))
        return locus_fail(error, LOCUS_ERR_OPTION, "rate: found %g, expected a number above 0",
                          s->rate);
    return LOCUS_OK;
}

static locus_status check_memory(const lab_settings *s, const lab_task *task, locus_error *error)
{
    if (s->memory == 0) return LOCUS_OK;
    if (strcmp(s->scheme, "transformer_xl") != 0 || task->measure != LAB_TEXT)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "memory: found %" PRId64 " for %s on %s, expected it for transformer_xl "
                          "on text alone",
                          s->memory, s->scheme, task->name);
    return check_range("memory", s->memory, 1, s->length, error);
}

static locus_status read_terms(lab_plan *plan, locus_error *error)
{
    const char *terms = plan->settings.terms;
    static const char *const names[] = {"none", "p2c", "c2p", "c2p,p2c"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(terms, names[i]) != 0) continue;
        plan->shape.c2p = i >> 1;
        plan->shape.p2c = i & 1;
        if (i == 3 || strcmp(plan->settings.scheme, "deberta") == 0) return LOCUS_OK;
        return locus_fail(error, LOCUS_ERR_OPTION, "terms: found %s for %s, expected deberta",
                          terms, plan->settings.scheme);
    }
    return locus_fail(error, LOCUS_ERR_OPTION,
                      "terms: found \"%s\", expected c2p,p2c, c2p, p2c or none", terms);
}

static locus_status read_positions(lab_plan *plan, locus_error *error)
{
    const char *text = plan->settings.positions, *scheme = plan->settings.scheme;
    const int64_t longest = plan->shape.longest;
    uint64_t rows = 0;
    plan->positions = LAB_PLAIN;
    plan->position_rows = longest;
    if (strcmp(text, "plain") == 0) return LOCUS_OK;
    if (strcmp(scheme, "sinusoidal") != 0 && strcmp(scheme, "learned") != 0)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "positions: found %s for %s, expected sinusoidal or learned", text,
                          scheme);
    if (strcmp(text, "offset") == 0) {
        plan->positions = LAB_OFFSET;
        plan->position_rows = OFFSET_TIMES * longest;
        return LOCUS_OK;
    }
    if (strncmp(text, "subset:", 7) != 0 || !locus_parse_unsigned(text + 7, &rows))
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "positions: found \"%s\", expected plain, offset or subset:M", text);
    plan->positions = LAB_SUBSET;
    plan->position_rows = (int64_t)rows;
    return check_range("positions subset", plan->position_rows, longest, MOST_LENGTH, error);
}

static locus_status open_corpus(lab_plan *plan, locus_error *error)
{
    const lab_settings *s = &plan->settings;
    if (!plan->task->reads_text) {
        if (s->text == NULL) return LOCUS_OK;
        return locus_fail(error, LOCUS_ERR_OPTION, "text: found for %s, which reads none",
                          plan->task->name);
    }
    const size_t least = (size_t)s->length * TEST_TIMES + 1;
    return lab_corpus_open(&plan->corpus, s->text, least, NULL, error);
}

static locus_status check_streams(const lab_plan *plan, locus_error *error)
{
    const lab_settings *s = &plan->settings;
    if (s->memory == 0) return LOCUS_OK;
    const size_t part = plan->corpus.train_bytes / (size_t)s->batch;
    if (part > (size_t)s->length) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_OPTION,
                      "batch: found %" PRId64
                      " streams of %zu bytes each, expected more than %" PRId64 " bytes in each",
                      s->batch, part, s->length);
}

static locus_status unknown_task(const char *name, locus_error *error)
{
    const char *names[32];
    size_t count = 0;
    for (; count < 32 && lab_task_at(count) != NULL; count++)
        names[count] = lab_task_at(count)->name;
    const char *near = locus_nearest(name, names, count);
    return locus_fail(error, LOCUS_ERR_OPTION,
                      "task: found \"%s\", expected one of copy .. masked%s%s%s", name,
                      near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                      near != NULL ? "?" : "");
}

locus_status lab_plan_shape(lab_plan *plan, const lab_settings *settings, locus_error *error)
{
    *plan = (lab_plan){.settings = *settings};
    lab_settings *s = &plan->settings;
    plan->task = lab_task_find(s->task);
    if (plan->task == NULL) return unknown_task(s->task, error);
    s->task = plan->task->name;
    fill_in(s, plan->task);
    LOCUS_TRY(check_numbers(s, plan->task, error));
    LOCUS_TRY(check_memory(s, plan->task, error));
    plan->shape = (train_shape){.scheme = s->scheme,
                                .causal = !plan->task->encoder,
                                .layers = s->layers,
                                .width = s->width,
                                .heads = s->heads,
                                .vocabulary = plan->task->vocabulary,
                                .longest = plan->task->tokens(s->length),
                                .clip = s->clip};
    LOCUS_TRY(read_terms(plan, error));
    LOCUS_TRY(read_positions(plan, error));
    plan->shape.position_rows = plan->position_rows;
    return train_shape_check(&plan->shape, error);
}

locus_status lab_plan_new(lab_plan *plan, const lab_settings *settings, locus_error *error)
{
    LOCUS_TRY(lab_plan_shape(plan, settings, error));
    LOCUS_TRY(open_corpus(plan, error));
    const locus_status status = check_streams(plan, error);
    if (status != LOCUS_OK) lab_plan_free(plan);
    return status;
}

void lab_plan_free(lab_plan *plan)
{
    if (plan->task != NULL && plan->task->reads_text) lab_corpus_close(&plan->corpus);
}

/* ---- run.json ---- */

static void put_number(plot_text *out, const char *name, int64_t value)
{
    lab_print(out, "  \"%s\": %" PRId64 ",\n", name, value);
}

static void put_text(plot_text *out, const char *name, const char *value, const char *end)
{
    lab_print(out, "  \"%s\": ", name);
    lab_print_string(out, value);
    lab_print(out, "%s\n", end);
}

/* What is learned depends on these lines and on nothing else. */
static void put_identity(plot_text *out, const lab_plan *plan)
{
    const lab_settings *s = &plan->settings;
    put_text(out, "task", s->task, ",");
    put_text(out, "scheme", s->scheme, ",");
    put_number(out, "layers", s->layers);
    put_number(out, "width", s->width);
    put_number(out, "heads", s->heads);
    put_number(out, "batch", s->batch);
    put_number(out, "length", s->length);
    put_number(out, "steps", s->steps);
    lab_print(out, "  \"rate\": %.17g,\n", s->rate);
    lab_print(out, "  \"seed\": %" PRIu64 ",\n", s->seed);
    put_number(out, "clip", s->clip);
    put_text(out, "terms", s->terms, ",");
    put_number(out, "memory", s->memory);
    put_text(out, "positions", s->positions, ",");
    lab_print(out, "  \"text_sum\": \"%08" PRIx32 "\",\n", plan->corpus.sum);
}

static void put_cpu(plot_text *out)
{
    char line[256], name[256] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
        colon += 1 + strspn(colon + 1, " ");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (file != NULL) fclose(file);
    put_text(out, "cpu", name, ",");
}

static void put_surroundings(plot_text *out, const lab_plan *plan)
{
    const lab_settings *s = &plan->settings;
    const char *isa = locus_isa_pick(NULL);
    if (plan->task->reads_text) put_text(out, "text", s->text != NULL ? s->text : "", ",");
    put_number(out, "threads", s->threads);
    put_number(out, "save-every", s->save_every);
    put_number(out, "stop", s->stop);
    put_text(out, "version", locus_version(), ",");
    put_text(out, "commit", LAB_COMMIT, ",");
    put_cpu(out);
    put_text(out, "isa", isa != NULL ? isa : "", "");
}

/* All of run.json, or the lines that count. */
static void describe(const lab_plan *plan, int all, plot_text *out)
{
    plot_puts(out, "{\n");
    put_identity(out, plan);
    if (all) put_surroundings(out, plan);
    if (all) plot_puts(out, "}\n");
}

locus_status lab_plan_write(const lab_plan *plan, const char *folder, locus_error *error)
{
    locus_text text = {.data = NULL};
    plot_text out = {.to = &text};
    describe(plan, 1, &out);
    return lab_print_save(&out, folder, "run.json", error);
}

/* A line of such a file for a message: without indent, quotes and comma. */
static void show_line(char *out, size_t capacity, const char *line, size_t bytes)
{
    char plain[160];
    size_t used = 0;
    for (size_t i = 0; i < bytes && used + 1 < sizeof plain; i++)
        if (line[i] != '"' && (used > 0 || line[i] != ' ')) plain[used++] = line[i];
    if (used > 0 && plain[used - 1] == ',') used--;
    locus_escape(out, capacity, plain, used);
}

/* The first line in which they differ; `wanted` are the settings of `whom`. */
static locus_status compare_lines(const char *path, const char *found, const char *wanted,
                                  const char *whom, locus_error *error)
{
    while (*wanted != '\0') {
        const size_t a = strcspn(found, "\n"), b = strcspn(wanted, "\n");
        if (a != b || memcmp(found, wanted, a) != 0) {
            char have[160], want[160];
            show_line(have, sizeof have, found, a);
            show_line(want, sizeof want, wanted, b);
            return locus_fail(error, LOCUS_ERR_OPTION,
                              "%s: found %s, expected %s: other settings than %s", path, have, want,
                              whom);
        }
        found += a + (found[a] == '\n');
        wanted += b + 1;
    }
    return LOCUS_OK;
}

locus_status lab_lines_compare(const char *folder, const char *name, const char *wanted, int *found,
                               locus_error *error)
{
    enum { MOST_BYTES = 65536 };
    char path[LAB_PATH], *text = NULL;
    size_t bytes = 0;
    *found = 0;
    if (!lab_path(path, folder, name))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    if (!locus_system_exists(path)) return LOCUS_OK;
    *found = 1;
    LOCUS_TRY(lab_file_read(&text, &bytes, path, MOST_BYTES, error));
    const locus_status status = compare_lines(path, text, wanted, "now", error);
    locus_release(NULL, text);
    return status;
}

locus_status lab_plan_compare(const lab_plan *plan, const char *folder, int *found,
                              locus_error *error)
{
    locus_text wanted = {.data = NULL};
    plot_text out = {.to = &wanted};
    describe(plan, 0, &out);
    const locus_status status =
        out.failed ? locus_fail(error, LOCUS_ERR_MEMORY, "no memory for run.json")
                   : lab_lines_compare(folder, "run.json", wanted.data, found, error);
    locus_text_free(&wanted);
    return status;
}

/* ---- ranks ---- */

/* `mine` against the lines of rank 0. */
static locus_status compare_ranks(const lab_crew *crew, const char *mine, locus_error *error)
{
    size_t bytes = strlen(mine) + 1;
    crew->broadcast(crew->context, &bytes, sizeof bytes);
    char *first = locus_allocate(NULL, bytes, 1);
    locus_status status =
        first != NULL ? LOCUS_OK : locus_fail(error, LOCUS_ERR_MEMORY, "no memory for settings");
    status = lab_crew_agree(crew, status, error);
    if (status == LOCUS_OK) {
        if (crew->rank == 0) memcpy(first, mine, bytes);
        crew->broadcast(crew->context, first, bytes);
        status = compare_lines("settings", mine, first, "those of rank 0", error);
        status = lab_crew_agree(crew, status, error);
    }
    locus_release(NULL, first);
    return status;
}

locus_status lab_plan_agree(const lab_plan *plan, const lab_crew *crew, locus_error *error)
{
    locus_text text = {.data = NULL};
    plot_text out = {.to = &text};
    const char *isa = locus_isa_pick(NULL);
    if (crew == NULL) return LOCUS_OK;
    describe(plan, 0, &out);
    put_text(&out, "version", locus_version(), ",");
    put_text(&out, "isa", isa != NULL ? isa : "", "");
    locus_status status =
        out.failed ? locus_fail(error, LOCUS_ERR_MEMORY, "no memory for settings") : LOCUS_OK;
    status = lab_crew_agree(crew, status, error);
    if (status == LOCUS_OK) status = compare_ranks(crew, text.data, error);
    locus_text_free(&text);
    return status;
}

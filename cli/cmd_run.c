/* SPDX-License-Identifier: Apache-2.0 */
/* locus run: a trained model on token ids. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "json.h"
#include "text.h"

enum { MOST_THREADS = 256 };

typedef struct run_values {
    const char *model, *task, *ids, *isa, *output;
    uint32_t threads;
    int json;
} run_values;

/* ---- ids ---- */

typedef struct id_list {
    int32_t *ids;
    int64_t count;
} id_list;

static int bad_ids(const char *text)
{
    char quoted[160];
    return cli_complain("run", CLI_USAGE,
                        "--ids: expected whole numbers below 2^31 with commas between, got \"%s\"",
                        text_quote(quoted, sizeof quoted, text));
}

/* "101,7592,102"; an empty text is no token at all. */
static int read_ids(id_list *list, const char *text)
{
    size_t commas = 1;
    for (const char *c = text; *c != '\0'; c++) commas += *c == ',';
    list->ids = calloc(commas, sizeof *list->ids);
    if (list->ids == NULL) return cli_complain("run", CLI_RESOURCES, "out of memory");
    if (*text == '\0') return CLI_DONE;
    for (const char *c = text;; c++) {
        int64_t value = 0;
        const char *start = c;
        for (; *c >= '0' && *c <= '9' && value <= INT32_MAX; c++) value = 10 * value + (*c - '0');
        if (c == start || value > INT32_MAX || (*c != ',' && *c != '\0')) return bad_ids(text);
        list->ids[list->count++] = (int32_t)value;
        if (*c == '\0') return CLI_DONE;
    }
}

/* ---- one text through a model ---- */

typedef struct text_run {
    run_values *values;
    locus_model *model;
    locus_model_info info;
    locus_model_pass *pass;
    id_list list;
    float **hidden; /* [layers + 1] */
    float *numbers; /* of all of them, or the embedding, or the logits */
    void *workspace;
} text_run;

static int wants(const run_values *v, const char *task) { return strcmp(v->task, task) == 0; }
static int wants_hidden(const run_values *v) { return wants(v, "hidden"); }

/* Rows of logits. */
static int64_t logit_rows(const text_run *r)
{
    return r->info.head == LOCUS_MODEL_TAG ? r->list.count : 1;
}

static int no_memory(void) { return cli_complain("run", CLI_RESOURCES, "out of memory"); }

static int set_up(text_run *r)
{
    const size_t row = (size_t)r->info.width, tokens = (size_t)r->list.count;
    const size_t arrays = wants_hidden(r->values) ? (size_t)r->info.layers + 1 : 0;
    r->workspace = malloc(locus_model_workspace(r->pass) + 1);
    const size_t logits = (size_t)(logit_rows(r) * r->info.labels);
    const size_t other = logits > row ? logits : row;
    r->numbers = calloc(arrays > 0 ? arrays * tokens * row + 1 : other, sizeof(float));
    r->hidden = calloc(arrays + 1, sizeof *r->hidden);
    if (r->workspace == NULL || r->numbers == NULL || r->hidden == NULL) return no_memory();
    for (size_t i = 0; i < arrays; i++) r->hidden[i] = r->numbers + i * tokens * row;
    return CLI_DONE;
}

static int wants_labels(const run_values *v) { return wants(v, "classify") || wants(v, "tokens"); }

/* What the head is for, where no task is asked for; a task that it does not give is refused. */
static int choose_task(text_run *r)
{
    const char *given = r->info.head == LOCUS_MODEL_CLASSIFY ? "classify"
                        : r->info.head == LOCUS_MODEL_TAG    ? "tokens"
                                                             : "embed";
    if (r->values->task == NULL) r->values->task = given;
    if (!wants_labels(r->values) || wants(r->values, given)) return CLI_DONE;
    return cli_complain("run", CLI_REFUSED, "%s: has no head for the task %s", r->values->model,
                        r->values->task);
}

static int compute(text_run *r)
{
    const run_values *v = r->values;
    const locus_model_config config = {.size = sizeof config, .threads = v->threads, .isa = v->isa};
    const int64_t offsets[2] = {0, r->list.count};
    locus_error error = {""};
    locus_status status = locus_model_open(&r->model, v->model, &config, &error);
    if (status != LOCUS_OK)
        return cli_report("run", status, status == LOCUS_ERR_ISA ? NULL : v->model, &error);
    r->info.size = sizeof r->info;
    locus_model_describe(r->model, &r->info);
    const int chosen = choose_task(r);
    if (chosen != CLI_DONE) return chosen;
    status = locus_model_pass_new(&r->pass, r->model, offsets, 1, &error);
    if (status != LOCUS_OK) return cli_report("run", status, NULL, &error);
    const int code = set_up(r);
    if (code != CLI_DONE) return code;
    const locus_model_batch batch = {.size = sizeof batch, .ids = r->list.ids};
    const locus_model_results results = {.size = sizeof results,
                                         .hidden = wants_hidden(v) ? r->hidden : NULL,
                                         .logits = wants_labels(v) ? r->numbers : NULL,
                                         .embedding = wants(v, "embed") ? r->numbers : NULL};
    status = locus_model_forward(r->pass, &batch, &results, r->workspace,
                                 locus_model_workspace(r->pass), &error);
    return status == LOCUS_OK ? CLI_DONE : cli_report("run", status, NULL, &error);
}

static void tear_down(text_run *r)
{
    locus_model_pass_free(r->pass);
    locus_model_free(r->model);
    free(r->list.ids);
    free(r->hidden);
    free(r->numbers);
    free(r->workspace);
}

/* ---- results ---- */

static int write_hidden(const text_run *r)
{
    const uint64_t shape[3] = {1, (uint64_t)r->list.count, (uint64_t)r->info.width};
    locus_file_writer *writer = NULL;
    locus_error error = {""};
    locus_status status = locus_file_create(&writer, r->values->output, NULL, &error);
    for (int64_t i = 0; status == LOCUS_OK && i <= r->info.layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "hidden.%" PRId64, i);
        status = locus_file_put(writer, name, "F32", 3, shape, r->hidden[i], &error);
    }
    if (status == LOCUS_OK)
        status = locus_file_commit(writer, &error);
    else
        locus_file_abandon(writer);
    return status == LOCUS_OK ? CLI_DONE : cli_report("run", status, r->values->output, &error);
}

static void print_ids(json *j, const text_run *r)
{
    json_inline_array(j, "ids");
    for (int64_t i = 0; i < r->list.count; i++) json_integer(j, NULL, r->list.ids[i]);
    json_end(j);
}

static void print_numbers(json *j, const char *key, const float *numbers, int64_t count)
{
    json_inline_array(j, key);
    for (int64_t c = 0; c < count; c++) json_real(j, NULL, (double)numbers[c]);
    json_end(j);
}

static void print_embedding(const text_run *r)
{
    json j = {.out = stdout};
    if (!r->values->json) {
        for (int64_t c = 0; c < r->info.width; c++)
            printf("%s%.9g", c > 0 ? " " : "", (double)r->numbers[c]);
        putchar('\n');
        return;
    }
    json_inline_object(&j, NULL);
    print_ids(&j, r);
    print_numbers(&j, "embedding", r->numbers, r->info.width);
    json_end(&j);
}

/* ---- labels ---- */

/* The probability of a label: softmax over the row, or each by itself. */
static double probability(const text_run *r, const float *row, int64_t label)
{
    if (r->info.multi_label) return 1.0 / (1.0 + exp(-(double)row[label]));
    double sum = 0.0;
    for (int64_t c = 0; c < r->info.labels; c++) sum += exp((double)row[c] - (double)row[label]);
    return 1.0 / sum;
}

static int64_t best_label(const text_run *r, const float *row)
{
    int64_t best = 0;
    for (int64_t c = 1; c < r->info.labels; c++)
        if (row[c] > row[best]) best = c;
    return best;
}

static void print_classes(const text_run *r)
{
    json j = {.out = stdout};
    if (!r->values->json) {
        for (int64_t c = 0; c < r->info.labels; c++)
            printf("%.7f %s\n", probability(r, r->numbers, c), locus_model_label(r->model, c));
        return;
    }
    json_inline_object(&j, NULL);
    print_ids(&j, r);
    print_numbers(&j, "logits", r->numbers, r->info.labels);
    json_inline_object(&j, "labels");
    for (int64_t c = 0; c < r->info.labels; c++)
        json_real(&j, locus_model_label(r->model, c), probability(r, r->numbers, c));
    json_end(&j);
    json_end(&j);
}

static void print_tags(const text_run *r)
{
    json j = {.out = stdout};
    const int64_t labels = r->info.labels;
    if (!r->values->json) {
        for (int64_t i = 0; i < r->list.count; i++) {
            const float *row = r->numbers + i * labels;
            const int64_t best = best_label(r, row);
            printf("%" PRId32 " %s %.7f\n", r->list.ids[i], locus_model_label(r->model, best),
                   probability(r, row, best));
        }
        return;
    }
    json_inline_object(&j, NULL);
    print_ids(&j, r);
    json_inline_array(&j, "logits");
    for (int64_t i = 0; i < r->list.count; i++)
        print_numbers(&j, NULL, r->numbers + i * labels, labels);
    json_end(&j);
    json_inline_array(&j, "tags");
    for (int64_t i = 0; i < r->list.count; i++)
        json_text(&j, NULL, locus_model_label(r->model, best_label(r, r->numbers + i * labels)));
    json_end(&j);
    json_end(&j);
}

static int print_results(const text_run *r)
{
    if (wants_hidden(r->values)) return write_hidden(r);
    if (wants(r->values, "classify"))
        print_classes(r);
    else if (wants(r->values, "tokens"))
        print_tags(r);
    else
        print_embedding(r);
    return CLI_DONE;
}

/* ---- the command ---- */

static const char *task_name(size_t index)
{
    static const char *const names[] = {"embed", "classify", "tokens", "hidden"};
    return index < sizeof names / sizeof *names ? names[index] : NULL;
}

static int check(const run_values *v)
{
    char quoted[160];
    const char *names[8];
    size_t count = 0;
    if (v->ids == NULL) return cli_complain("run", CLI_USAGE, "--ids is missing");
    if (v->task == NULL && v->output == NULL) return CLI_DONE;
    for (; v->task != NULL && task_name(count) != NULL; count++) {
        names[count] = task_name(count);
        if (strcmp(names[count], v->task) == 0) break;
    }
    if (v->task != NULL && task_name(count) == NULL) {
        const char *near = locus_nearest(v->task, names, count);
        text_quote(quoted, sizeof quoted, v->task);
        return near != NULL
                   ? cli_complain("run", CLI_USAGE, "--task: no task \"%s\"; did you mean \"%s\"?",
                                  quoted, near)
                   : cli_complain("run", CLI_USAGE,
                                  "--task: expected embed, classify, tokens or hidden, got \"%s\"",
                                  quoted);
    }
    const int hidden = v->task != NULL && wants_hidden(v);
    if (hidden && v->output == NULL)
        return cli_complain("run", CLI_USAGE, "--task hidden writes tensors: give -o FILE");
    if (!hidden && v->output != NULL)
        return cli_complain("run", CLI_USAGE, "-o goes with --task hidden");
    return CLI_DONE;
}

static int run_command(int argc, char **argv)
{
    run_values values = {.task = NULL};
    text_run r = {.values = &values};
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_run, argc, argv, &values, &exit_code)) return exit_code;
    exit_code = check(&values);
    if (exit_code == CLI_DONE) exit_code = read_ids(&r.list, values.ids);
    if (exit_code == CLI_DONE) exit_code = compute(&r);
    if (exit_code == CLI_DONE) exit_code = print_results(&r);
    tear_down(&r);
    return exit_code;
}

static const cli_example run_examples[] = {
    {"locus run all-MiniLM-L6-v2 --ids 101,7592,2088,102", "the embedding of a text, by its ids"},
    {"locus run all-MiniLM-L6-v2 --ids 101,7592,102 --json", "the same for a program"},
    {"locus run turn-detector --ids 1,2,3 --json", "the labels of a model with a head, its logits"},
    {"locus run deberta-v3-xsmall --task hidden --ids 1,2,3 -o h.safetensors",
     "what every layer made of it"},
    {NULL, NULL},
};

#define FIELD(name) .offset = offsetof(run_values, name)

static const cli_option run_options[] = {
    {.name = "task",
     .argument = "TASK",
     .help = "embed, classify, tokens or hidden (what the model is for)",
     .kind = CLI_LIST,
     .value = task_name,
     FIELD(task)},
    {.name = "ids",
     .argument = "LIST",
     .help = "token ids with commas between; nothing is added",
     .kind = CLI_LIST,
     FIELD(ids)},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help = "hidden: safetensors with hidden.0 to hidden.L, [1,T,E] F32",
     .kind = CLI_OUTPUT,
     FIELD(output)},
    {.name = "threads",
     .argument = "N",
     .help = "threads (all processors)",
     .kind = CLI_INTEGER,
     .minimum = 1,
     .maximum = MOST_THREADS,
     FIELD(threads)},
    {.name = "isa",
     .argument = "NAME",
     .help = "ceiling of the instruction set",
     .kind = CLI_ISA,
     FIELD(isa)},
    {.name = "json", .help = "print JSON, one object per line", .kind = CLI_FLAG, FIELD(json)},
    {.name = NULL},
};

const cli_command cmd_run = {
    .name = "run",
    .summary = "run a trained model",
    .description =
        "Runs the encoder of a model from a folder in the layout of the Hugging Face hub: "
        "config.json and model.safetensors or its shards. The families are those of "
        "docs/models.md; another model_type is refused with their list. The embedding is pooled as "
        "modules.json says, else the mean over all tokens. A model with a head for sequences or tokens "
        "classifies. Hidden states are those of transformers "
        "within 2e-5 of the largest element.",
    .usage = "MODEL --ids LIST [--task TASK] [-o FILE] [--json] [...]",
    .examples = run_examples,
    .options = run_options,
    .operand = {.name = "MODEL",
                .help = "a folder with config.json and model.safetensors",
                .kind = CLI_INPUT,
                .required = 1,
                .offset = offsetof(run_values, model)},
    .run = run_command,
};

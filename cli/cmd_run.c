/* SPDX-License-Identifier: Apache-2.0 */
/* locus run: a trained model on token ids. */
#include <inttypes.h>
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
    const run_values *values;
    locus_model *model;
    locus_model_info info;
    locus_model_pass *pass;
    id_list list;
    float **hidden; /* [layers + 1] */
    float *numbers; /* of all of them, or the embedding */
    void *workspace;
} text_run;

static int wants_hidden(const run_values *v) { return strcmp(v->task, "hidden") == 0; }

static int no_memory(void) { return cli_complain("run", CLI_RESOURCES, "out of memory"); }

static int set_up(text_run *r)
{
    const size_t row = (size_t)r->info.width, tokens = (size_t)r->list.count;
    const size_t arrays = wants_hidden(r->values) ? (size_t)r->info.layers + 1 : 0;
    r->workspace = malloc(locus_model_workspace(r->pass) + 1);
    r->numbers = calloc(arrays > 0 ? arrays * tokens * row + 1 : row, sizeof(float));
    r->hidden = calloc(arrays + 1, sizeof *r->hidden);
    if (r->workspace == NULL || r->numbers == NULL || r->hidden == NULL) return no_memory();
    for (size_t i = 0; i < arrays; i++) r->hidden[i] = r->numbers + i * tokens * row;
    return CLI_DONE;
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
    status = locus_model_pass_new(&r->pass, r->model, offsets, 1, &error);
    if (status != LOCUS_OK) return cli_report("run", status, NULL, &error);
    const int code = set_up(r);
    if (code != CLI_DONE) return code;
    const locus_model_batch batch = {.size = sizeof batch, .ids = r->list.ids};
    const locus_model_results results = {.size = sizeof results,
                                         .hidden = wants_hidden(v) ? r->hidden : NULL,
                                         .embedding = wants_hidden(v) ? NULL : r->numbers};
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
    json_inline_array(&j, "ids");
    for (int64_t i = 0; i < r->list.count; i++) json_integer(&j, NULL, r->list.ids[i]);
    json_end(&j);
    json_inline_array(&j, "embedding");
    for (int64_t c = 0; c < r->info.width; c++) json_real(&j, NULL, (double)r->numbers[c]);
    json_end(&j);
    json_end(&j);
}

/* ---- the command ---- */

static const char *task_name(size_t index)
{
    static const char *const names[] = {"embed", "hidden"};
    return index < sizeof names / sizeof *names ? names[index] : NULL;
}

static int check(const run_values *v)
{
    char quoted[160];
    const char *names[8];
    size_t count = 0;
    for (; task_name(count) != NULL; count++) {
        names[count] = task_name(count);
        if (strcmp(names[count], v->task) == 0) break;
    }
    if (task_name(count) == NULL) {
        const char *near = locus_nearest(v->task, names, count);
        text_quote(quoted, sizeof quoted, v->task);
        return near != NULL
                   ? cli_complain("run", CLI_USAGE, "--task: no task \"%s\"; did you mean \"%s\"?",
                                  quoted, near)
                   : cli_complain("run", CLI_USAGE, "--task: expected embed or hidden, got \"%s\"",
                                  quoted);
    }
    if (v->ids == NULL) return cli_complain("run", CLI_USAGE, "--ids is missing");
    if (wants_hidden(v) && v->output == NULL)
        return cli_complain("run", CLI_USAGE, "--task hidden writes tensors: give -o FILE");
    if (!wants_hidden(v) && v->output != NULL)
        return cli_complain("run", CLI_USAGE, "-o goes with --task hidden");
    return CLI_DONE;
}

static int run_command(int argc, char **argv)
{
    run_values values = {.task = "embed"};
    text_run r = {.values = &values};
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_run, argc, argv, &values, &exit_code)) return exit_code;
    exit_code = check(&values);
    if (exit_code == CLI_DONE) exit_code = read_ids(&r.list, values.ids);
    if (exit_code == CLI_DONE) exit_code = compute(&r);
    if (exit_code == CLI_DONE && wants_hidden(&values))
        exit_code = write_hidden(&r);
    else if (exit_code == CLI_DONE)
        print_embedding(&r);
    tear_down(&r);
    return exit_code;
}

static const cli_example run_examples[] = {
    {"locus run all-MiniLM-L6-v2 --ids 101,7592,2088,102", "the embedding of a text, by its ids"},
    {"locus run all-MiniLM-L6-v2 --ids 101,7592,102 --json", "the same for a program"},
    {"locus run deberta-v3-xsmall --task hidden --ids 1,2,3 -o h.safetensors",
     "what every layer made of it"},
    {NULL, NULL},
};

#define FIELD(name) .offset = offsetof(run_values, name)

static const cli_option run_options[] = {
    {.name = "task",
     .argument = "TASK",
     .help = "embed (the default): one vector; hidden: the states after every layer",
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
        "modules.json says, else the mean over all tokens. Hidden states are those of transformers "
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

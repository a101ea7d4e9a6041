/* SPDX-License-Identifier: Apache-2.0 */
/* locus lab export: a run becomes a folder that `locus run` opens. model.safetensors has the tensors
 * of the checkpoint under their names, config.json what they mean and where they come from,
 * tokenizer.json reads text as bytes where the task did. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/half.h"
#include "core/memory.h"
#include "io/system.h"
#include "io/tensorfile.h"
#include "lab/checkpoint.h"
#include "lab/files.h"
#include "lab/print.h"
#include "lab/undo.h"

enum {
    TEXT_MARK = 256,
    SINUSOID_TIMES = 8
}; /* a byte model's 257th id; rows of sinusoids, in
                                                 times of the longest row of training */

typedef struct exporter {
    lab_record record; /* run.json: texts of the settings */
    lab_plan plan;
    train_model *model;
    int64_t step;
    uint16_t *halves; /* [list.floats]; NULL: float32 */
} exporter;

/* ---- reading a run ---- */

/* Settings as run.json has them, those that shape the model. */
static locus_status read_settings(exporter *x, const char *folder, locus_error *error)
{
    char path[LAB_PATH];
    lab_settings s;
    lab_settings_init(&s);
    if (!lab_path(path, folder, "run.json"))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    LOCUS_TRY(lab_record_read(&x->record, path, error));
    const lab_record *r = &x->record;
    s.task = lab_record_text(r, "task");
    s.scheme = lab_record_text(r, "scheme");
    s.terms = lab_record_text(r, "terms");
    s.positions = lab_record_text(r, "positions");
    s.layers = (int64_t)lab_record_number(r, "layers");
    s.width = (int64_t)lab_record_number(r, "width");
    s.heads = (int64_t)lab_record_number(r, "heads");
    s.length = (int64_t)lab_record_number(r, "length");
    s.steps = (int64_t)lab_record_number(r, "steps");
    s.clip = (int64_t)lab_record_number(r, "clip");
    s.seed = lab_record_number(r, "seed");
    const locus_status status = lab_plan_shape(&x->plan, &s, error);
    return status == LOCUS_OK ? LOCUS_OK : locus_file_fail_in(error, LOCUS_ERR_FORMAT, path);
}

/* Rows of `subset` positions are drawn anew for every text; a model has one row per token. */
static locus_status refuse_positions(const exporter *x, const char *folder, locus_error *error)
{
    const locus_status status =
        locus_fail(error, LOCUS_ERR_UNSUPPORTED,
                   "found positions %s, expected plain or offset: drawn rows cannot be exported",
                   x->plan.settings.positions);
    return locus_file_fail_in(error, status, folder);
}

static locus_status read_run(exporter *x, const char *folder, locus_error *error)
{
    train_memory none = {.most = 0};
    LOCUS_TRY(read_settings(x, folder, error));
    if (x->plan.positions == LAB_SUBSET) return refuse_positions(x, folder, error);
    LOCUS_TRY(train_model_new(&x->model, &x->plan.shape, x->plan.settings.seed, 1, error));
    return lab_checkpoint_read(&x->plan, x->model, &none, &x->step, folder, LAB_CHECKPOINT, error);
}

/* ---- config.json ---- */

static void put_text(plot_text *out, const char *name, const char *value)
{
    lab_print(out, "  \"%s\": ", name);
    lab_print_string(out, value);
    plot_puts(out, ",\n");
}

static void put_number(plot_text *out, const char *name, int64_t value)
{
    lab_print(out, "  \"%s\": %" PRId64 ",\n", name, value);
}

/* A value as case files spell it. */
static void put_option(plot_text *out, const locus_option_info *o, const locus_options *options)
{
    const char *field = (const char *)options + o->offset;
    const locus_choice *choice = o->choices;
    int64_t whole;
    double real;
    memcpy(&whole, field, sizeof whole);
    memcpy(&real, field, sizeof real);
    lab_print(out, "\"%s\": ", o->name);
    while (choice != NULL && choice->name != NULL && choice->value != whole) choice++;
    if (o->kind == LOCUS_OPTION_REAL)
        lab_print(out, "%.17g", real);
    else if (choice != NULL && choice->name != NULL)
        lab_print_string(out, choice->name);
    else
        lab_print(out, "%" PRId64, whole);
}

/* 1: the option has a value that one can set; 0 of rope's width is none. */
static int has_value(const locus_option_info *o, const locus_options *options)
{
    const char *field = (const char *)options + o->offset;
    int64_t whole;
    double real;
    memcpy(&whole, field, sizeof whole);
    memcpy(&real, field, sizeof real);
    const double value = o->kind == LOCUS_OPTION_REAL ? real : (double)whole;
    return value >= o->minimum && value <= o->maximum;
}

static void put_options(plot_text *out, const locus_config *config)
{
    const locus_scheme_info *scheme = locus_scheme_find(config->scheme);
    const locus_option_info *o;
    const char *between = "";
    plot_puts(out, "  \"options\": {");
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++) {
        if (!has_value(o, &config->options)) continue;
        plot_puts(out, between);
        put_option(out, o, &config->options);
        between = ", ";
    }
    plot_puts(out, "},\n");
}

/* Tokens that the tables have rows for; 0: any number. */
static int64_t positions_of(const train_shape *shape)
{
    const int64_t most = train_longest_row(shape);
    if (strcmp(shape->scheme, "sinusoidal") == 0) {
        const int64_t rows = SINUSOID_TIMES * shape->longest;
        return rows > shape->position_rows ? rows : shape->position_rows;
    }
    return most == INT64_MAX ? 0 : most;
}

/* The rows of the input have their own name; deberta without its terms is none. */
static const char *scheme_of(const train_shape *shape, const locus_config *config)
{
    const int input =
        strcmp(shape->scheme, "learned") == 0 || strcmp(shape->scheme, "sinusoidal") == 0;
    return input ? shape->scheme : config->scheme;
}

/* Features of fire's bias, rows of cope's table; 0: another scheme. */
static int64_t features_of(const train_model *model)
{
    const train_parameters *list = &model->list;
    const char *scheme = model->shape.scheme;
    const int named = strcmp(scheme, "fire") == 0 || strcmp(scheme, "cope") == 0;
    return named ? list->items[list->blocks[0].scheme[0]].shape[0] : 0;
}

/* How it was trained, so that it can be trained again. */
static void put_trained(plot_text *out, const exporter *x)
{
    static const char *const names[] = {"task",      "scheme",   "batch",   "length", "steps",
                                        "rate",      "seed",     "clip",    "terms",  "memory",
                                        "positions", "text_sum", "version", "commit", "isa"};
    plot_puts(out, "  \"trained\": {");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        lab_print(out, "\"%s\": ", names[i]);
        lab_print_string(out, lab_record_text(&x->record, names[i]));
        plot_puts(out, ", ");
    }
    lab_print(out, "\"step\": \"%" PRId64 "\"}\n", x->step);
}

static locus_status write_config(const exporter *x, const char *folder, locus_error *error)
{
    const train_shape *shape = &x->plan.shape;
    const lab_task *task = x->plan.task;
    locus_text text = {.data = NULL};
    plot_text out = {.to = &text};
    locus_config config;
    LOCUS_TRY(train_config(shape, 1, &config, error));
    plot_puts(&out, "{\n");
    put_text(&out, "model_type", "locus-lab");
    put_text(&out, "scheme", scheme_of(shape, &config));
    put_number(&out, "layers", shape->layers);
    put_number(&out, "width", shape->width);
    put_number(&out, "heads", shape->heads);
    put_number(&out, "vocabulary", shape->vocabulary);
    put_number(&out, "positions", positions_of(shape));
    if (features_of(x->model) > 0) put_number(&out, "features", features_of(x->model));
    lab_print(&out, "  \"causal\": %s,\n", shape->causal ? "true" : "false");
    put_options(&out, &config);
    if (shape->causal) put_number(&out, "bos_token_id", task->reads_text ? TEXT_MARK : LAB_BOS);
    if (shape->causal && !task->reads_text) put_number(&out, "eos_token_id", LAB_EOS);
    if (shape->causal) put_number(&out, "max_length", shape->longest);
    put_trained(&out, x);
    plot_puts(&out, "}\n");
    return lab_print_save(&out, folder, "config.json", error);
}

/* ---- tokenizer.json ---- */

/* The character that stands for a byte in byte-level vocabularies: itself where it is printed, else
 * one from 256 on, in order. */
static unsigned character_of(int byte)
{
    unsigned next = 256;
    for (int b = 0;; b++) {
        const int printed = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        if (b == byte) return printed ? (unsigned)b : next;
        next += !printed;
    }
}

static void put_vocabulary(plot_text *out, const char *mark)
{
    plot_puts(out, "  \"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {");
    for (int byte = 0; byte < TEXT_MARK; byte++)
        lab_print(out, "\"\\u%04x\": %d, ", character_of(byte), byte);
    lab_print(out, "\"%s\": %d}}\n}\n", mark, TEXT_MARK);
}

/* Bytes as they are; before a text that is continued stands its mark. */
static locus_status write_tokenizer(const exporter *x, const char *folder, locus_error *error)
{
    static const char byte_level[] =
        "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": false, "
        "\"use_regex\": false}";
    const char *mark = x->plan.shape.causal ? "<s>" : "[MASK]";
    locus_text text = {.data = NULL};
    plot_text out = {.to = &text};
    lab_print(&out,
              "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n"
              "  \"added_tokens\": [{\"id\": %d, \"content\": \"%s\", \"single_word\": false, "
              "\"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": "
              "true}],\n  \"normalizer\": null,\n",
              TEXT_MARK, mark);
    lab_print(&out, "  \"pre_tokenizer\": %s,\n  \"decoder\": %s,\n", byte_level, byte_level);
    if (x->plan.shape.causal)
        lab_print(
            &out,
            "  \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
            "[{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": "
            "\"A\", \"type_id\": 0}}], \"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": "
            "0}}, {\"Sequence\": {\"id\": \"B\", \"type_id\": 0}}],\n"
            "    \"special_tokens\": ");
    if (x->plan.shape.causal)
        lab_print(&out, "{\"<s>\": {\"id\": \"<s>\", \"ids\": [%d], \"tokens\": [\"<s>\"]}}},\n",
                  TEXT_MARK);
    else
        plot_puts(&out, "  \"post_processor\": null,\n");
    put_vocabulary(&out, mark);
    return lab_print_save(&out, folder, "tokenizer.json", error);
}

/* ---- model.safetensors ---- */

static locus_status put_tensors(locus_file_writer *w, const exporter *x, locus_error *error)
{
    LOCUS_TRY(locus_file_put_metadata(w, "format", "pt", error));
    for (size_t i = 0; i < x->model->list.count; i++) {
        const train_parameter *item = &x->model->list.items[i];
        const uint64_t shape[] = {(uint64_t)item->shape[0], (uint64_t)item->shape[1]};
        const void *data = x->halves != NULL ? (const void *)(x->halves + item->at)
                                             : (const void *)(x->model->weights + item->at);
        LOCUS_TRY(locus_file_put(w, item->name, x->halves != NULL ? "F16" : "F32", item->rank,
                                 shape, data, error));
    }
    return LOCUS_OK;
}

static locus_status write_weights(exporter *x, int half, const char *folder, locus_error *error)
{
    char path[LAB_PATH];
    locus_file_writer *w = NULL;
    const size_t count = x->model->list.floats;
    if (!lab_path(path, folder, "model.safetensors"))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    if (half) {
        x->halves = locus_allocate(NULL, count, sizeof *x->halves);
        if (x->halves == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for a model");
        for (size_t i = 0; i < count; i++) x->halves[i] = locus_float_to_f16(x->model->weights[i]);
    }
    LOCUS_TRY(locus_file_create(&w, path, NULL, error));
    const locus_status status = put_tensors(w, x, error);
    if (status == LOCUS_OK) return locus_file_commit(w, error);
    locus_file_abandon(w);
    return status;
}

/* ---- a run, a comparison ---- */

static int holds(const char *folder, const char *name)
{
    char path[LAB_PATH];
    return lab_path(path, folder, name) && locus_system_exists(path);
}

/* 1: config.json says that the folder is an export. */
static int is_export(const char *folder)
{
    enum { MOST_CONFIG = 1 << 20 };
    char path[LAB_PATH], *text = NULL;
    size_t bytes = 0;
    if (!lab_path(path, folder, "config.json") ||
        lab_file_read(&text, &bytes, path, MOST_CONFIG, NULL) != LOCUS_OK)
        return 0;
    const int is = strstr(text, "\"model_type\": \"locus-lab\"") != NULL;
    locus_release(NULL, text);
    return is;
}

/* The folder of a model is written where there is none, or one of the same files. */
static locus_status check_place(const exporter *x, const char *folder, locus_error *error)
{
    static const char *const files[] = {"config.json", "model.safetensors",
                                        "model.safetensors.index.json", "tokenizer.json"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (holds(folder, files[i])) found = files[i];
    if (found == NULL) return LOCUS_OK;
    if (is_export(folder) && holds(folder, "tokenizer.json") == x->plan.task->reads_text)
        return LOCUS_OK;
    return locus_file_fail_in(
        error,
        locus_fail(error, LOCUS_ERR_FORMAT,
                   "found %s of another model, expected a folder without a model or an export of "
                   "such a run",
                   found),
        folder);
}

static locus_status note_files(const exporter *x, const char *folder, lab_undo *undo,
                               locus_error *error)
{
    LOCUS_TRY(lab_undo_folders(undo, folder, error));
    LOCUS_TRY(lab_undo_file(undo, folder, "model.safetensors", error));
    if (x->plan.task->reads_text) LOCUS_TRY(lab_undo_file(undo, folder, "tokenizer.json", error));
    return lab_undo_file(undo, folder, "config.json", error);
}

static locus_status export_run(const char *run, const char *folder, int half, lab_undo *undo,
                               locus_error *error)
{
    exporter x = {.model = NULL};
    locus_status status = read_run(&x, run, error);
    if (status == LOCUS_OK) status = check_place(&x, folder, error);
    if (status == LOCUS_OK) status = note_files(&x, folder, undo, error);
    if (status == LOCUS_OK) status = write_weights(&x, half, folder, error);
    if (status == LOCUS_OK && x.plan.task->reads_text) status = write_tokenizer(&x, folder, error);
    if (status == LOCUS_OK) status = write_config(&x, folder, error);
    locus_release(NULL, x.halves);
    train_model_free(x.model);
    lab_record_free(&x.record);
    return status;
}

/* The first seed of one scheme that is through. */
static locus_status export_scheme(const char *folder, const char *scheme, const char *to, int half,
                                  int *count, lab_undo *undo, locus_error *error)
{
    char path[LAB_PATH], run[LAB_PATH], target[LAB_PATH];
    lab_list seeds = {.count = 0};
    if (!lab_path(path, folder, scheme) || !lab_path(target, to, scheme))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    LOCUS_TRY(lab_list_read(&seeds, path, error));
    locus_status status = LOCUS_OK;
    for (size_t i = 0; i < seeds.count; i++) {
        if (!lab_path(run, path, seeds.names[i]) || !holds(run, "metrics.csv")) continue;
        status = export_run(run, target, half, undo, error);
        *count += status == LOCUS_OK;
        if (status == LOCUS_ERR_UNSUPPORTED) status = LOCUS_OK; /* of a comparison, the others */
        break;
    }
    lab_list_free(&seeds);
    return status;
}

/* Every scheme of one task: text where it was run, else the first. */
static locus_status export_comparison(const char *folder, const char *task, const char *to,
                                      int half, int *count, lab_undo *undo, locus_error *error)
{
    char runs[LAB_PATH], path[LAB_PATH];
    lab_list tasks = {.count = 0}, schemes = {.count = 0};
    if (!lab_path(runs, folder, "runs"))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    LOCUS_TRY(lab_list_read(&tasks, runs, error));
    const char *chosen = task != NULL ? task : holds(runs, "text") ? "text" : NULL;
    if (chosen == NULL && tasks.count > 0) chosen = tasks.names[0];
    locus_status status = LOCUS_OK;
    if (chosen == NULL || !lab_path(path, runs, chosen) || !locus_system_exists(path))
        status = locus_file_fail_in(
            error,
            locus_fail(error, LOCUS_ERR_FORMAT, "found neither a run nor a comparison%s%s",
                       chosen != NULL ? " with task " : "", chosen != NULL ? chosen : ""),
            folder);
    if (status == LOCUS_OK) status = lab_list_read(&schemes, path, error);
    for (size_t i = 0; status == LOCUS_OK && i < schemes.count; i++)
        status = export_scheme(path, schemes.names[i], to, half, count, undo, error);
    lab_list_free(&schemes);
    lab_list_free(&tasks);
    return status;
}

locus_status lab_export(const char *from, const char *task, const char *to, int half, int *count,
                        locus_error *error)
{
    lab_undo undo = {.count = 0};
    const int one = holds(from, "run.json");
    *count = one;
    const locus_status status = one ? export_run(from, to, half, &undo, error)
                                    : export_comparison(from, task, to, half, count, &undo, error);
    if (status == LOCUS_OK)
        lab_undo_none(&undo);
    else
        lab_undo_all(&undo);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* locus inspect: what a tensor file holds. A file may hold a million tensors, so every
 * row is printed as it is read off; nothing is collected. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "inspect.h"
#include "json.h"
#include "model_call.h"
#include "precision.h"
#include "text.h"
#include "values.h"

typedef struct inspect_values {
    const char *path, *precision;
    int json;
    int values;
} inspect_values;

/* LOCUS_FILE_MAX_RANK numbers of at most 15 digits, commas, brackets. */
enum { SHAPE_TEXT = 16 * LOCUS_FILE_MAX_RANK + 32 };

static int is_case(const locus_file *file)
{
    const char *format = locus_file_metadata(file, "format");
    return format != NULL && strcmp(format, "locus.case/1") == 0;
}

static uint64_t data_bytes(const locus_file *file)
{
    return locus_file_bytes(file) - locus_file_header_bytes(file) - 8;
}

/* The rest of a long list is not worth formatting for a reader who has gone. */
static int reader_left(void) { return ferror(stdout) != 0; }

/* ---- plain ---- */

typedef struct widths {
    size_t name, dtype, shape;
} widths;

static void widen(size_t *width, size_t columns, size_t most)
{
    if (columns > *width) *width = columns < most ? columns : most;
}

/* Widths that fit the first thousand rows: enough to look right, cheap for any file. */
static widths measure(const locus_file *file)
{
    char shape[SHAPE_TEXT];
    widths w = {strlen("tensor"), strlen("dtype"), strlen("shape")};
    for (size_t i = 0; i < locus_file_count(file) && i < 1000; i++) {
        const locus_file_tensor *t = locus_file_tensor_at(file, i);
        widen(&w.name, text_columns(t->name), 48);
        widen(&w.dtype, strlen(t->dtype), 12);
        widen(&w.shape, strlen(text_shape(shape, sizeof shape, t->shape, t->rank)), 32);
    }
    return w;
}

static void print_head(const inspect_values *values, const locus_file *file)
{
    char tensors[32], data[32], header[32];
    text_print(stdout, values->path);
    printf(": safetensors, %s tensor%s, %s data bytes, %s header bytes\n",
           text_thousands(tensors, sizeof tensors, locus_file_count(file)),
           locus_file_count(file) == 1 ? "" : "s",
           text_thousands(data, sizeof data, data_bytes(file)),
           text_thousands(header, sizeof header, locus_file_header_bytes(file)));
    if (!is_case(file)) return;
    const char *kind = locus_file_metadata(file, "kind");
    const char *scheme = locus_file_metadata(file, "scheme");
    printf("Locus case: kind ");
    text_print(stdout, kind != NULL ? kind : "(missing)");
    printf(", scheme ");
    text_print(stdout, scheme != NULL ? scheme : "(missing)");
    putchar('\n');
}

static void print_metadata(const locus_file *file)
{
    const size_t count = locus_file_metadata_count(file);
    const char *key = NULL, *value = NULL;
    size_t width = 0;
    if (count == 0) return;
    printf("\n%smetadata%s\n", text_bold(), text_plain());
    for (size_t i = 0; i < count && i < 1000; i++) {
        locus_file_metadata_at(file, i, &key, &value);
        widen(&width, text_columns(key), 24);
    }
    for (size_t i = 0; i < count && !reader_left(); i++) {
        locus_file_metadata_at(file, i, &key, &value);
        printf("  ");
        text_cell(stdout, key, width);
        text_print(stdout, value);
        putchar('\n');
    }
}

static void print_columns(const widths *w, int with_values)
{
    printf("\n%s%-*s  %-*s  %-*s  %14s  %14s", text_bold(), (int)w->name, "tensor", (int)w->dtype,
           "dtype", (int)w->shape, "shape", "bytes", "offset");
    if (with_values)
        printf("  %12s  %12s  %12s  %8s  %8s  %8s  %9s  %8s", "min", "max", "mean", "nan", "+inf",
               "-inf", "subnormal", "zero");
    printf("%s\n", text_plain());
}

static void print_tensor(const locus_file_tensor *tensor, const widths *w)
{
    char shape[SHAPE_TEXT];
    text_cell(stdout, tensor->name, w->name);
    text_cell(stdout, tensor->dtype, w->dtype);
    text_cell(stdout, text_shape(shape, sizeof shape, tensor->shape, tensor->rank), w->shape);
    printf("%14" PRIu64 "  %14" PRIu64, tensor->end - tensor->begin, tensor->begin);
}

/* An empty tensor has no smallest number. */
static void print_bound(const value_counts *c, double bound)
{
    if (c->numbers == 0)
        printf("  %12s", "-");
    else
        printf("  %12.6g", bound);
}

static void print_counts(const value_counts *c)
{
    print_bound(c, c->minimum);
    print_bound(c, c->maximum);
    print_bound(c, c->mean);
    printf("  %8" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %9" PRIu64 "  %8" PRIu64, c->nan,
           c->plus_inf, c->minus_inf, c->subnormal, c->zero);
}

static locus_status print_plain(const inspect_values *values, const locus_file *file,
                                locus_error *error)
{
    const widths w = measure(file);
    print_head(values, file);
    print_metadata(file);
    if (locus_file_count(file) > 0) print_columns(&w, values->values);
    for (size_t i = 0; i < locus_file_count(file) && !reader_left(); i++) {
        const locus_file_tensor *tensor = locus_file_tensor_at(file, i);
        value_counts counts;
        const int known = values->values && values_known(tensor->dtype);
        const locus_status status = known ? values_count(file, i, &counts, error) : LOCUS_OK;
        if (status != LOCUS_OK) return status;
        print_tensor(tensor, &w);
        if (known) print_counts(&counts);
        if (values->values && !known) printf("  values not shown");
        putchar('\n');
    }
    return LOCUS_OK;
}

/* ---- JSON ---- */

static void json_head(json *j, const inspect_values *values, const locus_file *file)
{
    const char *key = NULL, *value = NULL;
    json_text(j, "file", values->path);
    json_text(j, "format", "safetensors");
    json_size(j, "bytes", locus_file_bytes(file));
    json_size(j, "header_bytes", locus_file_header_bytes(file));
    json_size(j, "data_bytes", data_bytes(file));
    if (is_case(file)) {
        json_inline_object(j, "case");
        json_text(j, "kind", locus_file_metadata(file, "kind"));
        json_text(j, "scheme", locus_file_metadata(file, "scheme"));
        json_end(j);
    } else {
        json_null(j, "case");
    }
    json_object(j, "metadata");
    for (size_t i = 0; i < locus_file_metadata_count(file) && !reader_left(); i++) {
        locus_file_metadata_at(file, i, &key, &value);
        json_text(j, key, value);
    }
    json_end(j);
    json_size(j, "tensor_count", locus_file_count(file));
}

static void json_bound(json *j, const char *key, double value, uint64_t numbers)
{
    if (numbers == 0)
        json_null(j, key);
    else
        json_real(j, key, value);
}

static void json_counts(json *j, const value_counts *c)
{
    json_inline_object(j, "values");
    json_bound(j, "min", c->minimum, c->numbers);
    json_bound(j, "max", c->maximum, c->numbers);
    json_bound(j, "mean", c->mean, c->numbers);
    json_size(j, "nan", c->nan);
    json_size(j, "plus_inf", c->plus_inf);
    json_size(j, "minus_inf", c->minus_inf);
    json_size(j, "subnormal", c->subnormal);
    json_size(j, "zero", c->zero);
    json_end(j);
}

static void json_tensor(json *j, const locus_file_tensor *tensor, const value_counts *counts,
                        int with_values)
{
    json_inline_object(j, NULL);
    json_text(j, "name", tensor->name);
    json_text(j, "dtype", tensor->dtype);
    json_shape(j, "shape", tensor->shape, tensor->rank);
    json_size(j, "bytes", tensor->end - tensor->begin);
    json_size(j, "offset", tensor->begin);
    if (counts != NULL) json_counts(j, counts);
    if (with_values && counts == NULL) json_null(j, "values");
    json_end(j);
}

static locus_status print_json(const inspect_values *values, const locus_file *file,
                               locus_error *error)
{
    json j = {.out = stdout};
    json_object(&j, NULL);
    json_head(&j, values, file);
    json_array(&j, "tensors");
    for (size_t i = 0; i < locus_file_count(file) && !reader_left(); i++) {
        const locus_file_tensor *tensor = locus_file_tensor_at(file, i);
        value_counts counts;
        const int known = values->values && values_known(tensor->dtype);
        const locus_status status = known ? values_count(file, i, &counts, error) : LOCUS_OK;
        if (status != LOCUS_OK) return status;
        json_tensor(&j, tensor, known ? &counts : NULL, values->values);
    }
    json_end(&j);
    json_end(&j);
    return LOCUS_OK;
}

/* ---- the command ---- */

static int inspect_run(int argc, char **argv)
{
    inspect_values values = {.path = NULL};
    locus_file *file = NULL;
    locus_error error = {""};
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_inspect, argc, argv, &values, &exit_code)) return exit_code;
    uint32_t precision = 0;
    exit_code = precision_read("inspect", values.precision, &precision);
    if (exit_code != CLI_DONE) return exit_code;
    if (model_call_is_folder(values.path))
        return inspect_model(values.path, precision, values.json);
    if (values.precision != NULL)
        return cli_complain("inspect", CLI_USAGE, "--precision goes with the folder of a model");
    locus_status status = locus_file_open(&file, values.path, NULL, &error);
    if (status == LOCUS_OK)
        status =
            values.json ? print_json(&values, file, &error) : print_plain(&values, file, &error);
    locus_file_close(file);
    return status == LOCUS_OK ? CLI_DONE : cli_report("inspect", status, values.path, &error);
}

static const cli_example inspect_examples[] = {
    {"locus inspect all-MiniLM-L6-v2",
     "a model: family, sizes, scheme, tasks, what it would refuse"},
    {"locus inspect model.safetensors", "names, types and shapes of the tensors in a file"},
    {"locus inspect case.safetensors --values",
     "with the range of each and its NaN, Inf and zeros"},
    {"locus inspect model.safetensors --json", "the same for a program"},
    {NULL, NULL},
};

static const cli_option inspect_options[] = {
    {.name = "json",
     .help = "print JSON",
     .kind = CLI_FLAG,
     .offset = offsetof(inspect_values, json)},
    {.name = "values",
     .help = "read the numbers too: range, mean, NaN, Inf, subnormal, zero",
     .kind = CLI_FLAG,
     .offset = offsetof(inspect_values, values)},
    PRECISION_OPTION(.offset = offsetof(inspect_values, precision)),
    {.name = NULL},
};

const cli_command cmd_inspect = {
    .name = "inspect",
    .summary = "show what a tensor file or a model holds",
    .description =
        "Of the folder of a model: its family, sizes, scheme with options, tasks, tokenizer "
        "and what would be refused and why. Of a file: reads the header of a safetensors file, refuses it where it breaks a rule of "
        "the format, and lists its tensors and metadata. Offsets are relative to the "
        "data section. Unsafe characters in names are printed as \\xNN.",
    .usage = "MODEL | FILE [--json] [--values] [--precision NAME]",
    .examples = inspect_examples,
    .options = inspect_options,
    .operand = {.name = "FILE",
                .help = "a safetensors file, or the folder of a model",
                .kind = CLI_INPUT,
                .required = 1,
                .offset = offsetof(inspect_values, path)},
    .run = inspect_run,
};

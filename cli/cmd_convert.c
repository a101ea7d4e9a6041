/* SPDX-License-Identifier: Apache-2.0 */
/* locus convert: a folder whose weights are integers. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <locus/model.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "model_call.h"
#include "precision.h"
#include "text.h"

typedef struct convert_values {
    const char *model, *precision, *output;
} convert_values;

enum { PATH = 4096 };

static int refuse(const char *path, int reason)
{
    char quoted[160];
    return cli_complain("convert", CLI_RESOURCES, "%s: %s", text_quote(quoted, sizeof quoted, path),
                        strerror(reason));
}

static int join(char path[PATH], const char *folder, const char *name)
{
    const int bytes = snprintf(path, PATH, "%s/%s", folder, name);
    return bytes > 0 && bytes < PATH ? CLI_DONE : refuse(folder, ENAMETOOLONG);
}

/* ---- files that are no weights ---- */

static int ends_with(const char *name, const char *end)
{
    const size_t bytes = strlen(name), last = strlen(end);
    return bytes >= last && strcmp(name + bytes - last, end) == 0;
}

static int is_weights(const char *name)
{
    static const char *const ends[] = {".safetensors", ".index.json", ".onnx", ".gguf", ".h5",
                                       ".msgpack",     ".ot",         ".pt",   ".pth",  ".tflite"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(name, ends[i])) return 1;
    return strncmp(name, "pytorch_model", 13) == 0;
}

static int copy_file(const char *from, const char *to)
{
    char piece[1 << 16];
    FILE *in = fopen(from, "rb");
    FILE *out = in != NULL ? fopen(to, "wbx") : NULL;
    size_t some = 0;
    int reason = in == NULL || out == NULL ? errno : 0;
    while (reason == 0 && (some = fread(piece, 1, sizeof piece, in)) > 0)
        if (fwrite(piece, 1, some, out) != some) reason = errno;
    if (reason == 0 && ferror(in)) reason = EIO;
    if (in != NULL) (void)fclose(in);
    if (out != NULL && fclose(out) != 0 && reason == 0) reason = errno;
    return reason == 0 ? CLI_DONE : refuse(out == NULL && in != NULL ? to : from, reason);
}

static int copy_files(const char *from, const char *to, int inside);

/* Files; folders of modules, which begin with their number, with their weights. */
static int copy_one(const char *from, const char *to, const char *name, int inside)
{
    char source[PATH], target[PATH];
    struct stat about;
    int exit_code = join(source, from, name);
    if (exit_code == CLI_DONE) exit_code = join(target, to, name);
    if (exit_code != CLI_DONE) return exit_code;
    if (stat(source, &about) != 0) return refuse(source, errno);
    if (S_ISREG(about.st_mode))
        return inside || !is_weights(name) ? copy_file(source, target) : CLI_DONE;
    if (!S_ISDIR(about.st_mode) || inside || name[0] < '0' || name[0] > '9') return CLI_DONE;
    if (mkdir(target, 0777) != 0) return refuse(target, errno);
    return copy_files(source, target, 1);
}

static int copy_files(const char *from, const char *to, int inside)
{
    int exit_code = CLI_DONE;
    const struct dirent *entry;
    DIR *folder = opendir(from);
    if (folder == NULL) return refuse(from, errno);
    while (exit_code == CLI_DONE && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.') exit_code = copy_one(from, to, entry->d_name, inside);
    (void)closedir(folder);
    return exit_code;
}

/* ---- the folder ---- */

/* A new one, or one that is empty; *made: 1 when it was not there. */
static int make_folder(const char *path, int *made)
{
    char quoted[160];
    const struct dirent *entry;
    int count = 0;
    *made = mkdir(path, 0777) == 0;
    if (*made) return CLI_DONE;
    if (errno != EEXIST) return refuse(path, errno);
    DIR *folder = opendir(path);
    if (folder == NULL) return refuse(path, errno);
    while ((entry = readdir(folder)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(folder);
    if (count == 0) return CLI_DONE;
    return cli_complain("convert", CLI_RESOURCES, "%s: holds files already: give a new folder",
                        text_quote(quoted, sizeof quoted, path));
}

static void say(const char *what, const char *path)
{
    char quoted[160];
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "%s %s\n", what, text_quote(quoted, sizeof quoted, path));
}

/* Opened as anybody will: what was written is whole. */
static int open_again(const convert_values *v, uint32_t precision)
{
    locus_error error = {""};
    locus_model *model = NULL;
    locus_model_info info = {.size = sizeof info};
    const locus_model_config config = {.size = sizeof config};
    const locus_status status = locus_model_open(&model, v->output, &config, &error);
    if (status != LOCUS_OK) return cli_report("convert", status, v->output, &error);
    locus_model_describe(model, &info);
    locus_model_free(model);
    return info.precision == precision
               ? CLI_DONE
               : cli_complain("convert", CLI_INTERNAL, "the new folder opens in another precision");
}

static int convert(const convert_values *v, uint32_t precision)
{
    char weights[PATH];
    locus_error error = {""};
    int made = 0, exit_code = make_folder(v->output, &made);
    if (exit_code == CLI_DONE) exit_code = join(weights, v->output, "model.safetensors");
    if (exit_code != CLI_DONE) return exit_code;
    say("rounding the weights of", v->model);
    const locus_status status = locus_model_convert(v->model, weights, precision, &error);
    if (status != LOCUS_OK) {
        if (made) (void)rmdir(v->output);
        return cli_report("convert", status, v->model, &error);
    }
    say("copying files to", v->output);
    exit_code = copy_files(v->model, v->output, 0);
    if (exit_code != CLI_DONE) return exit_code;
    say("opening", v->output);
    return open_again(v, precision);
}

static int convert_run(int argc, char **argv)
{
    convert_values v = {.model = NULL};
    uint32_t precision = LOCUS_EXACT;
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_convert, argc, argv, &v, &exit_code)) return exit_code;
    exit_code = precision_read("convert", v.precision, &precision);
    if (exit_code != CLI_DONE) return exit_code;
    if (precision == LOCUS_EXACT || v.output == NULL)
        return cli_complain("convert", CLI_USAGE, "give --precision i16 or int8, and -o OUT");
    if (!model_call_is_folder(v.model))
        return cli_complain("convert", CLI_USAGE, "give the folder of a model");
    return convert(&v, precision);
}

static const cli_example convert_examples[] = {
    {"locus convert all-MiniLM-L6-v2 --precision int8 -o minilm-int8",
     "a quarter of the size; opens without --precision"},
    {NULL, NULL},
};

#define FIELD(name) .offset = offsetof(convert_values, name)

static const cli_option convert_options[] = {
    {.name = "precision",
     .argument = "NAME",
     .help = "i16 or int8: see docs/precision.md",
     .kind = CLI_LIST,
     .value = precision_at,
     FIELD(precision)},
    {.name = "output",
     .letter = 'o',
     .argument = "OUT",
     .help = "the folder to make; one that holds files is refused",
     .kind = CLI_OUTPUT,
     FIELD(output)},
    {.name = NULL},
};

const cli_command cmd_convert = {
    .name = "convert",
    .summary = "a folder whose weights are integers",
    .description =
        "Makes a folder with the weights of a model as --precision rounds them: half the size or a "
        "quarter. It opens without --precision, to the same bits as MODEL with it. Tensors that no "
        "operator reads are left out; files that are no weights are copied.",
    .usage = "MODEL --precision NAME -o OUT",
    .examples = convert_examples,
    .options = convert_options,
    .operand = {.name = "MODEL",
                .help = "a folder with config.json, model.safetensors, tokenizer files",
                .kind = CLI_INPUT,
                .required = 1,
                FIELD(model)},
    .run = convert_run,
};

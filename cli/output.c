/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "text.h"

enum { QUOTED = 160 };

/* ---- a file under construction ---- */

/* What a name stands for that is not to be replaced: a device, a FIFO, a folder. errno, 0: it is free
 * or a regular file. */
static int check_name(cli_output *output)
{
    struct stat about;
    output->reason = NULL;
    if (stat(output->path, &about) != 0) return errno == ENOENT ? 0 : errno;
    if (S_ISREG(about.st_mode)) return 0;
    if (!S_ISDIR(about.st_mode)) output->reason = "is not a regular file";
    return S_ISDIR(about.st_mode) ? EISDIR : EEXIST;
}

/* A name beside the path that is as short as a name may have to be. */
static int name_part(cli_output *output, int attempt)
{
    const char *slash = strrchr(output->path, '/');
    const char *name = slash != NULL ? slash + 1 : output->path;
    const int length =
        snprintf(output->part, sizeof output->part, "%.*s.%.200s.tmp-%ld-%d",
                 (int)(name - output->path), output->path, name, (long)getpid(), attempt);
    return length > 0 && (size_t)length < sizeof output->part;
}

static int open_part(cli_output *output)
{
    enum { TRIES = 1000 };
    int descriptor = -1;
    errno = EEXIST;
    for (int i = 0; i < TRIES && descriptor < 0 && errno == EEXIST; i++) {
        errno = ENAMETOOLONG;
        if (name_part(output, i))
            descriptor = open(output->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    return descriptor;
}

void cli_output_begin(cli_output *output, const char *path)
{
    output->path = path;
    output->file = NULL;
    output->code = check_name(output);
    if (output->code != 0) return;
    const int descriptor = open_part(output);
    if (descriptor >= 0) output->file = fdopen(descriptor, "w");
    if (output->file != NULL) return;
    output->code = errno;
    if (descriptor < 0) return;
    close(descriptor);
    unlink(output->part);
}

/* errno of what failed first, 0: the file is whole and has its name. */
static int close_part(cli_output *output)
{
    int failed = ferror(output->file) != 0;
    errno = 0;
    if (failed) (void)fputc('\n', output->file); /* flushing will meet the reason again */
    failed |= fflush(output->file) != 0;
    failed |= fsync(fileno(output->file)) != 0;
    int code = failed ? errno : 0;
    if (fclose(output->file) != 0 && !failed) failed = 1, code = errno;
    if (!failed) code = check_name(output);
    if (!failed && code == 0 && rename(output->part, output->path) != 0) code = errno;
    return failed && code == 0 ? EIO : code;
}

int cli_output_finish(cli_output *output, const char *command)
{
    char quoted[QUOTED];
    if (output->file != NULL) {
        output->code = close_part(output);
        if (output->code == 0) return CLI_DONE;
        unlink(output->part);
    }
    return cli_complain(command, CLI_RESOURCES, "%s: %s",
                        text_quote(quoted, sizeof quoted, output->path),
                        output->reason != NULL ? output->reason : strerror(output->code));
}

int cli_write_figure(const char *command, const locus_figure *figure, locus_format format,
                     const locus_render *render, const char *path)
{
    locus_text text = {.data = NULL};
    locus_error error = {""};
    int exit_code = CLI_DONE;
    const locus_status status = locus_figure_render(figure, format, render, &text, &error);
    if (status != LOCUS_OK) return cli_report(command, status, path, &error);
    if (path == NULL) {
        fwrite(text.data, 1, text.length, stdout);
    } else {
        cli_output output;
        cli_output_begin(&output, path);
        if (output.file != NULL) fwrite(text.data, 1, text.length, output.file);
        exit_code = cli_output_finish(&output, command);
    }
    locus_text_free(&text);
    return exit_code;
}

/* ---- outputs and inputs ---- */

static int is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The folder of a file that may not be there, as text; 0: too long. */
static int folder_of(char folder[PATH_MAX], const char *path)
{
    const char *slash = strrchr(path, '/');
    const int bytes = slash == NULL ? 0 : slash == path ? 1 : (int)(slash - path);
    const int length = slash == NULL ? snprintf(folder, PATH_MAX, ".")
                                     : snprintf(folder, PATH_MAX, "%.*s", bytes, path);
    return length > 0 && length < PATH_MAX;
}

/* 1: `folder` is `inner`, or one of those above it. */
static int is_above(const struct stat *folder, const char *inner)
{
    char path[PATH_MAX], real[PATH_MAX];
    struct stat about;
    if (!folder_of(path, inner) || realpath(path, real) == NULL) return 0;
    for (;;) {
        if (stat(real, &about) == 0 && is_same(folder, &about)) return 1;
        char *slash = strrchr(real, '/');
        if (slash == NULL || slash[1] == '\0') return 0;
        slash[slash == real] = '\0';
    }
}

static int is_model(const char *folder)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/config.json", folder);
    return length > 0 && length < PATH_MAX && access(path, F_OK) == 0;
}

/* 1: a model is read from files of this name: configurations, vocabularies, weights. */
static int is_read(const char *path)
{
    static const char *const ends[] = {".json", ".txt", ".model", ".spm", ".bin", ".gguf"};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *end = strrchr(name, '.');
    if (end == NULL) return 0;
    if (strcmp(end, ".safetensors") == 0) return strncmp(name, "model", 5) == 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcmp(end, ends[i]) == 0) return 1;
    return 0;
}

int cli_output_apart(const char *command, const char *output, const char *input)
{
    char quoted[QUOTED];
    struct stat in, out;
    if (stat(input, &in) != 0) return CLI_DONE;
    if (S_ISREG(in.st_mode) && stat(output, &out) == 0 && is_same(&in, &out))
        return cli_complain(command, CLI_USAGE,
                            "%s: the output is an input, which it would replace",
                            text_quote(quoted, sizeof quoted, output));
    if (S_ISDIR(in.st_mode) && is_read(output) && is_model(input) && is_above(&in, output))
        return cli_complain(
            command, CLI_USAGE,
            "%s: a model is read from files of that name, and this one from that folder",
            text_quote(quoted, sizeof quoted, output));
    return CLI_DONE;
}

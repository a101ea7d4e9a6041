/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on stderr: complaints, reports of library failures, suggestions. */
#include <stdarg.h>
#include <string.h>

#include "cli.h"
#include "text.h"

int cli_complain(const char *command, int exit_code, const char *format, ...)
{
    va_list arguments;
    fflush(stdout); /* so that a terminal shows both in the order they happened */
    fprintf(stderr, "locus%s%s: ", command != NULL ? " " : "", command != NULL ? command : "");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return exit_code;
}

static int exit_code_of(locus_status status)
{
    switch (status) {
    case LOCUS_OK: return CLI_DONE;
    case LOCUS_ERR_SCHEME:
    case LOCUS_ERR_OPTION:
    case LOCUS_ERR_TENSOR:
    case LOCUS_ERR_RANGE:
    case LOCUS_ERR_OVERLAP:
    case LOCUS_ERR_UNSUPPORTED:
    case LOCUS_ERR_FORMAT: return CLI_REFUSED;
    case LOCUS_ERR_IO:
    case LOCUS_ERR_MEMORY:
    case LOCUS_ERR_WORKSPACE: return CLI_RESOURCES;
    case LOCUS_ERR_ISA: return CLI_USAGE;
    case LOCUS_ERR_ARGUMENT:
    case LOCUS_STATUS_COUNT: break;
    }
    return CLI_INTERNAL;
}

/* The library shortens long paths, so the beginning has to do. */
static int starts_with_path(const char *text, const char *quoted)
{
    enum { ENOUGH = 60 };
    const size_t length = strlen(quoted);
    return strncmp(text, quoted, length < ENOUGH ? length : ENOUGH) == 0;
}

int cli_report(const char *command, locus_status status, const char *path, const locus_error *error)
{
    char quoted[512];
    const int exit_code = exit_code_of(status);
    const char *text = error->text[0] != '\0' ? error->text : locus_status_text(status);
    if (path == NULL || starts_with_path(text, text_quote(quoted, sizeof quoted, path)))
        return cli_complain(command, exit_code, "%s", text);
    return cli_complain(command, exit_code, "%s: %s", quoted, text);
}

int cli_unknown_scheme(const char *command, const char *name)
{
    const char *names[64];
    char quoted[160];
    size_t count = 0;
    for (; count < locus_scheme_count() && count < 64; count++)
        names[count] = locus_scheme_at(count)->name;
    const char *near = locus_nearest(name, names, count);
    text_quote(quoted, sizeof quoted, name);
    if (near != NULL)
        return cli_complain(command, CLI_USAGE, "unknown scheme \"%s\"; did you mean \"%s\"?",
                            quoted, near);
    return cli_complain(command, CLI_USAGE, "unknown scheme \"%s\"; \"locus schemes\" lists them",
                        quoted);
}

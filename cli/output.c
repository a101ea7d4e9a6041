/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "text.h"

void cli_output_begin(cli_output *output, const char *path)
{
    output->path = path;
    output->file = NULL;
    errno = 0;
    const int length =
        snprintf(output->part, sizeof output->part, "%s.%ld.part", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof output->part) {
        errno = ENAMETOOLONG;
        return;
    }
    const int descriptor = open(output->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) output->file = fdopen(descriptor, "w");
}

int cli_output_finish(cli_output *output, const char *command)
{
    char quoted[160];
    int failed = output->file == NULL;
    if (!failed) {
        errno = 0;
        failed = ferror(output->file) != 0;
        failed |= fflush(output->file) != 0;
        failed |= fsync(fileno(output->file)) != 0;
        failed |= fclose(output->file) != 0;
        failed = failed || rename(output->part, output->path) != 0;
        if (failed) {
            const int reason = errno;
            remove(output->part);
            errno = reason;
        }
    }
    if (!failed) return CLI_DONE;
    return cli_complain(command, CLI_RESOURCES, "%s: %s",
                        text_quote(quoted, sizeof quoted, output->path),
                        errno != 0 ? strerror(errno) : "writing failed");
}

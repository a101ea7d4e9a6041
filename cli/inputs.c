/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

enum { READ_BYTES = 1 << 16, MOST_LINE = 1 << 24, QUOTED = 512 };

static locus_text_input input_of(const text_source *source, const char *text, size_t bytes)
{
    const char *pair = source->pair;
    return (locus_text_input){.size = sizeof(locus_text_input),
                              .text = text,
                              .bytes = bytes,
                              .pair = pair,
                              .pair_bytes = pair == NULL ? 0 : strlen(pair),
                              .plain = source->plain,
                              .truncate = source->truncate};
}

static int walk_texts(const text_source *source)
{
    int exit_code = CLI_DONE;
    for (size_t i = 0; exit_code == CLI_DONE && i < source->texts->count; i++) {
        const char *text = source->texts->text[i];
        const locus_text_input input = input_of(source, text, strlen(text));
        exit_code = source->take(source->to, &input, -1.0);
    }
    return exit_code;
}

/* ---- lines ---- */

typedef struct line_reader {
    const text_source *source;
    int file;
    char *buffer; /* [room], of which begin .. end - 1 are to be cut into lines */
    size_t room, begin, end;
    size_t searched;       /* no line end before this */
    uint64_t bytes, total; /* read; of the file, 0: not known */
    uint64_t lines;        /* taken                           */
} line_reader;

static int too_long(const line_reader *r)
{
    return cli_complain(r->source->command, CLI_REFUSED,
                        "line %" PRIu64 ": found more than %d bytes, expected at most so many",
                        r->lines + 1, MOST_LINE);
}

static int take_line(const line_reader *r, const char *line, size_t bytes)
{
    locus_text_input input = input_of(r->source, line, bytes);
    const char *tab = memchr(line, '\t', bytes);
    if (tab != NULL && input.pair == NULL) {
        input.bytes = (size_t)(tab - line);
        input.pair = tab + 1;
        input.pair_bytes = bytes - input.bytes - 1;
    }
    const double left = (double)(r->end - r->begin);
    if (bytes > MOST_LINE) return too_long(r);
    return r->source->take(r->source->to, &input,
                           r->total > 0 ? ((double)r->bytes - left) / (double)r->total : -1.0);
}

/* The whole lines that have been read; `last`: what is left is one, too. */
static int take_lines(line_reader *r, int last)
{
    int exit_code = CLI_DONE;
    while (exit_code == CLI_DONE && !ferror(stdout)) {
        const char *from = r->buffer + r->begin;
        const char *stop = memchr(r->buffer + r->searched, '\n', r->end - r->searched);
        if (stop == NULL && (!last || r->begin == r->end)) break;
        const size_t bytes = stop != NULL ? (size_t)(stop - from) : r->end - r->begin;
        r->begin += bytes + (stop != NULL);
        r->searched = r->begin;
        exit_code = take_line(r, from, bytes);
        r->lines++;
    }
    r->searched = r->end;
    return exit_code == CLI_DONE && r->end - r->begin > MOST_LINE ? too_long(r) : exit_code;
}

/* Room for READ_BYTES more behind `end`. */
static int make_room(line_reader *r)
{
    if (r->begin > 0) {
        memmove(r->buffer, r->buffer + r->begin, r->end - r->begin);
        r->end -= r->begin;
        r->searched -= r->begin;
        r->begin = 0;
    }
    if (r->room - r->end >= READ_BYTES) return 1;
    char *larger = realloc(r->buffer, 2 * r->room);
    if (larger == NULL) return 0;
    r->buffer = larger;
    r->room *= 2;
    return 1;
}

static int is_idle(const line_reader *r)
{
    struct pollfd waiting = {.fd = r->file, .events = POLLIN};
    return poll(&waiting, 1, 0) == 0;
}

static int walk_lines(line_reader *r, const char *quoted)
{
    const text_source *source = r->source;
    for (int exit_code = CLI_DONE; exit_code == CLI_DONE && !ferror(stdout);) {
        if (!make_room(r)) return cli_complain(source->command, CLI_RESOURCES, "out of memory");
        if (source->idle != NULL && is_idle(r)) exit_code = source->idle(source->to);
        if (exit_code != CLI_DONE) return exit_code;
        const ssize_t got = read(r->file, r->buffer + r->end, READ_BYTES);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return cli_complain(source->command, CLI_RESOURCES, "%s: %s", quoted, strerror(errno));
        r->end += (size_t)got;
        r->bytes += (uint64_t)got;
        exit_code = take_lines(r, got == 0);
        if (got == 0 || exit_code != CLI_DONE) return exit_code;
    }
    return CLI_DONE; /* nobody reads any more; main says so */
}

static int walk_file(const text_source *source)
{
    char quoted[QUOTED];
    struct stat about;
    line_reader r = {.source = source, .room = 2 * READ_BYTES};
    text_quote(quoted, sizeof quoted, source->file);
    r.file = strcmp(source->file, "-") == 0 ? STDIN_FILENO : open(source->file, O_RDONLY);
    if (r.file < 0)
        return cli_complain(source->command, CLI_RESOURCES, "%s: %s", quoted, strerror(errno));
    if (fstat(r.file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0)
        r.total = (uint64_t)about.st_size;
    r.buffer = malloc(r.room);
    const int exit_code = r.buffer != NULL
                              ? walk_lines(&r, quoted)
                              : cli_complain(source->command, CLI_RESOURCES, "out of memory");
    if (r.file != STDIN_FILENO) close(r.file);
    free(r.buffer);
    return exit_code;
}

int inputs_walk(const text_source *source)
{
    return source->file != NULL ? walk_file(source) : walk_texts(source);
}

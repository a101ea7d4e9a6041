/* SPDX-License-Identifier: Apache-2.0 */
#include "tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "text.h"

enum { MOST_BYTES = 1 << 20, QUOTED = 512 }; /* of a file, of its name */

static const char blanks[] = " \t\r\n";

static int no_memory(const char *command)
{
    return cli_complain(command, CLI_RESOURCES, "out of memory");
}

/* ---- cutting ---- */

static size_t count_of(const char *text)
{
    size_t count = 0;
    for (text += strspn(text, blanks); *text != '\0'; text += strspn(text, blanks), count++)
        text += strcspn(text, blanks);
    return count;
}

static void cut(token_list *tokens)
{
    char *at = tokens->text;
    for (size_t i = 0; i < tokens->count; i++) {
        at += strspn(at, blanks);
        tokens->names[i] = at;
        at += strcspn(at, blanks);
        if (*at != '\0') *at++ = '\0';
    }
}

/* Cut tokens->text. `what` is named, and `refusal` returned, where there are too many. */
static int take(token_list *tokens, const char *command, const char *what, int refusal, size_t most)
{
    char found[32];
    tokens->count = count_of(tokens->text);
    if (tokens->count == 0 || tokens->count > most)
        return cli_complain(command, refusal, "%s: found %s tokens, expected 1 to %zu", what,
                            text_thousands(found, sizeof found, tokens->count), most);
    tokens->names = malloc(tokens->count * sizeof *tokens->names);
    if (tokens->names == NULL) return no_memory(command);
    cut(tokens);
    return CLI_DONE;
}

static int finish(token_list *tokens, int exit_code)
{
    if (exit_code != CLI_DONE) tokens_free(tokens);
    return exit_code;
}

/* ---- where the text comes from ---- */

int tokens_cut(token_list *tokens, const char *command, const char *text, size_t most)
{
    const size_t bytes = strlen(text) + 1;
    *tokens = (token_list){.text = malloc(bytes)};
    if (tokens->text == NULL) return no_memory(command);
    memcpy(tokens->text, text, bytes);
    return finish(tokens, take(tokens, command, "--tokens", CLI_USAGE, most));
}

/* The whole file ("-": standard input) into tokens->text. */
static int read_text(token_list *tokens, const char *command, const char *path, const char *quoted)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL)
        return cli_complain(command, CLI_RESOURCES, "%s: %s", quoted, strerror(errno));
    tokens->text = calloc(MOST_BYTES + 2, 1);
    errno = 0;
    const size_t bytes = tokens->text != NULL ? fread(tokens->text, 1, MOST_BYTES + 1, file) : 0;
    const int reason = ferror(file) ? (errno != 0 ? errno : EIO) : 0;
    if (file != stdin) fclose(file);
    if (tokens->text == NULL) return no_memory(command);
    if (reason != 0)
        return cli_complain(command, CLI_RESOURCES, "%s: %s", quoted, strerror(reason));
    if (bytes > MOST_BYTES)
        return cli_complain(command, CLI_REFUSED, "%s: found more than %d bytes of text", quoted,
                            MOST_BYTES);
    if (memchr(tokens->text, '\0', bytes) != NULL)
        return cli_complain(command, CLI_REFUSED, "%s: found a NUL byte, expected text", quoted);
    return CLI_DONE;
}

int tokens_read(token_list *tokens, const char *command, const char *path, size_t most)
{
    char quoted[QUOTED];
    *tokens = (token_list){.count = 0};
    text_quote(quoted, sizeof quoted, path);
    const int exit_code = read_text(tokens, command, path, quoted);
    if (exit_code != CLI_DONE) return finish(tokens, exit_code);
    return finish(tokens, take(tokens, command, quoted, CLI_REFUSED, most));
}

void tokens_free(token_list *tokens)
{
    free(tokens->names);
    free(tokens->text);
    *tokens = (token_list){.count = 0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* locus explain: tokens are words between blanks, from the command line or from a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "text.h"

enum { MOST_BYTES = 1 << 20 }; /* of a text */

static const char blanks[] = " \t\r\n";

/* FNV-1a: a word has the same number, and so the same row, in every sentence. */
static uint32_t number_of(const char *word)
{
    uint32_t hash = 2166136261u;
    for (; *word != '\0'; word++) hash = (hash ^ (unsigned char)*word) * 16777619u;
    return hash;
}

static size_t count_tokens(const char *text)
{
    size_t count = 0;
    for (text += strspn(text, blanks); *text != '\0'; text += strspn(text, blanks), count++)
        text += strcspn(text, blanks);
    return count;
}

/* Cut call->text into tokens; 0: no memory. */
static int cut_tokens(explain_call *call, size_t count)
{
    call->tokens = malloc((count + 1) * sizeof *call->tokens);
    call->words = malloc((count + 1) * sizeof *call->words);
    if (call->tokens == NULL || call->words == NULL) return 0;
    char *at = call->text;
    for (size_t i = 0; i < count; i++) {
        at += strspn(at, blanks);
        call->tokens[i] = at;
        at += strcspn(at, blanks);
        if (*at != '\0') *at++ = '\0';
        call->words[i] = number_of(call->tokens[i]);
    }
    return 1;
}

static int no_memory(void) { return cli_complain("explain", CLI_RESOURCES, "out of memory"); }

/* The whole file ("-": standard input) into call->text. */
static int read_text(explain_call *call, const char *path)
{
    char quoted[512];
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    text_quote(quoted, sizeof quoted, path);
    if (file == NULL)
        return cli_complain("explain", CLI_RESOURCES, "%s: %s", quoted, strerror(errno));
    call->text = calloc(MOST_BYTES + 2, 1);
    errno = 0;
    const size_t bytes = call->text != NULL ? fread(call->text, 1, MOST_BYTES + 1, file) : 0;
    const int reason = ferror(file) ? (errno != 0 ? errno : EIO) : 0;
    if (file != stdin) fclose(file);
    if (call->text == NULL) return no_memory();
    if (reason != 0)
        return cli_complain("explain", CLI_RESOURCES, "%s: %s", quoted, strerror(reason));
    if (bytes > MOST_BYTES)
        return cli_complain("explain", CLI_REFUSED, "%s: found more than %d bytes of text", quoted,
                            MOST_BYTES);
    if (memchr(call->text, '\0', bytes) != NULL)
        return cli_complain("explain", CLI_REFUSED, "%s: found a NUL byte, expected text", quoted);
    return CLI_DONE;
}

static int copy_text(explain_call *call, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    call->text = malloc(bytes);
    if (call->text == NULL) return no_memory();
    memcpy(call->text, text, bytes);
    return CLI_DONE;
}

int explain_tokens(explain_call *call, size_t *count)
{
    const explain_values *v = call->values;
    const int given = v->tokens != NULL;
    char found[32], quoted[512];
    const int exit_code = given ? copy_text(call, v->tokens) : read_text(call, v->text);
    if (exit_code != CLI_DONE) return exit_code;
    *count = count_tokens(call->text);
    if (*count == 0 || *count > EXPLAIN_TOKENS)
        return cli_complain("explain", given ? CLI_USAGE : CLI_REFUSED,
                            "%s: found %s tokens, expected 1 to %d",
                            given ? "--tokens" : text_quote(quoted, sizeof quoted, v->text),
                            text_thousands(found, sizeof found, *count), EXPLAIN_TOKENS);
    return cut_tokens(call, *count) ? CLI_DONE : no_memory();
}

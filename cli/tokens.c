/* SPDX-License-Identifier: Apache-2.0 */
#include "tokens.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "text.h"

static const char blanks[] = " \t\n";

/* FNV-1a. */
static uint32_t number_of(const char *word)
{
    uint32_t hash = 2166136261u;
    for (; *word != '\0'; word++) hash = (hash ^ (unsigned char)*word) * 16777619u;
    return hash;
}

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
        tokens->words[i] = number_of(tokens->names[i]);
    }
}

int tokens_cut(token_list *tokens, const char *command, const char *text, size_t most)
{
    const size_t bytes = strlen(text) + 1;
    char found[32], limit[32];
    *tokens = (token_list){.count = count_of(text)};
    if (tokens->count == 0 || tokens->count > most)
        return cli_complain(command, CLI_USAGE, "--tokens: found %s tokens, expected 1 to %s",
                            text_thousands(found, sizeof found, tokens->count),
                            text_thousands(limit, sizeof limit, most));
    tokens->names = malloc(tokens->count * sizeof *tokens->names);
    tokens->words = malloc(tokens->count * sizeof *tokens->words);
    tokens->text = malloc(bytes);
    if (tokens->names == NULL || tokens->words == NULL || tokens->text == NULL) {
        tokens_free(tokens);
        return cli_complain(command, CLI_RESOURCES, "out of memory");
    }
    memcpy(tokens->text, text, bytes);
    cut(tokens);
    return CLI_DONE;
}

void tokens_free(token_list *tokens)
{
    free(tokens->names);
    free(tokens->words);
    free(tokens->text);
    *tokens = (token_list){.count = 0};
}

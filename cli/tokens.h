/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOKENS_H
#define CLI_TOKENS_H

/* A sentence on the command line, cut at blanks. */

#include <stddef.h>
#include <stdint.h>

typedef struct token_list {
    size_t count;
    const char **names; /* [count]                                                   */
    uint32_t *words;    /* [count]  equal tokens have equal numbers, in any sentence */
    char *text;
} token_list;

/* An exit code; more than `most` tokens, or none, are complained about in the name of
 * `command`. On failure there is nothing to free. */
int tokens_cut(token_list *tokens, const char *command, const char *text, size_t most);
void tokens_free(token_list *tokens);

#endif

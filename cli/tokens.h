/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOKENS_H
#define CLI_TOKENS_H

/* Tokens: words between blanks, from the command line or from a file. */

#include <stddef.h>

typedef struct token_list {
    size_t count;
    const char **names; /* [count] */
    char *text;
} token_list;

/* Exit codes; no tokens, or more than `most`, are complained about in the name of `command`.
 * On failure there is nothing to free. */
int tokens_cut(token_list *tokens, const char *command, const char *text, size_t most);
int tokens_read(token_list *tokens, const char *command, const char *path, size_t most);
void tokens_free(token_list *tokens);

#endif

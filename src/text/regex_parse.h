/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXT_REGEX_PARSE_H
#define LOCUS_TEXT_REGEX_PARSE_H

/* What the parser's two files share: regex_parse.c reads groups, alternatives and quantifiers,
 * regex_class.c the characters and classes in them. */

#include <string.h>

#include "text/regex.h"

typedef struct regex_parser {
    regex_tree *tree;
    const char *text;
    size_t bytes, at;
    unsigned depth;
    int fold, dot_all; /* (?i, (?m */
    locus_error *error;
} regex_parser;

/* "found EXPRESSION, an unsupported expression: WHAT" */
locus_status locus_regex_refuse(const regex_parser *p, const char *what);
uint32_t locus_regex_node(regex_parser *p, regex_node node);
/* The node of a set, which it takes over. */
locus_status locus_regex_set_node(regex_parser *p, regex_set *set, uint32_t *node);
/* A character or a class. */
locus_status locus_regex_character(regex_parser *p, uint32_t *out);
int locus_regex_set_has(const regex_set *set, uint32_t code);

/* Does the text go on with `words`? Then they are taken. */
static inline int locus_regex_take(regex_parser *p, const char *words)
{
    const size_t bytes = strlen(words);
    if (bytes > p->bytes - p->at || memcmp(p->text + p->at, words, bytes) != 0) return 0;
    p->at += bytes;
    return 1;
}

#endif

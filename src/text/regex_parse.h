/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXT_REGEX_PARSE_H
#define LOCUS_TEXT_REGEX_PARSE_H

/* What the two files of the parser share: regex_parse.c has sequences, alternatives and
 * quantifiers, regex_atom.c what stands between them. */

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
locus_status locus_regex_set_node(regex_parser *p, regex_set *set, uint32_t *node);
/* Without regard to case, where (?i says so. */
locus_status locus_regex_fold(regex_parser *p, regex_set *set);
locus_status locus_regex_alternatives(regex_parser *p, uint32_t *out);
locus_status locus_regex_atom(regex_parser *p, uint32_t *out);

/* Does the text go on with `words`? Then they are taken. */
static inline int locus_regex_take(regex_parser *p, const char *words)
{
    const size_t bytes = strlen(words);
    if (bytes > p->bytes - p->at || memcmp(p->text + p->at, words, bytes) != 0) return 0;
    p->at += bytes;
    return 1;
}

#endif

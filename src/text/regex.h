/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXT_REGEX_H
#define LOCUS_TEXT_REGEX_H

/* The regular expressions of tokenizer.json, with the meaning that Oniguruma gives them (Ruby's
 * syntax; of several matches the one that backtracking finds first), in time linear in the text.
 *
 * An expression becomes a machine of states. Read from the end of the text to its beginning,
 *
 *     S(i) = the states from which the rest of the text, from i on, can still be accepted
 *
 * depends on S(i + 1) and the characters around i alone. The sets that can occur are listed when
 * the expression is compiled, so S(i) is a number and one step of the way back is one look into a
 * table. On the way forth the first alternative whose state is in S(i) is the one that
 * backtracking would end in; there is never a way back. Whatever the expression, a text of n
 * characters takes n steps backward and at most n forward for all matches that follow each other.
 * What has no such machine (back references, \X, ...), or too large a one, is refused by name. */

#include "io/store.h"
#include "text/buffer.h"
#include "text/unicode.h"

#define REGEX_MAX_TEXT 4096u       /* bytes of an expression               */
#define REGEX_MAX_STATES 1024u     /* of its machine                       */
#define REGEX_MAX_CELLS (1u << 16) /* of its tables                        */
#define REGEX_MAX_DEPTH 32u        /* groups and classes in each other     */
#define REGEX_MAX_SETS 128u        /* different character classes          */

/* ---- compiled ---- */

typedef struct regex {
    unicode_pages pages; /* the class of each character                          */
    uint32_t classes;    /* how many there are                                   */
    uint32_t symbols;    /* of a step back: classes, or pairs of them            */
    int behind;          /* a step back asks for the character before, too       */
    uint16_t *back;      /* [sets][symbols] the set before                       */
    uint16_t *last;      /* [classes + 1] the set at the end of the text         */
    uint16_t *next;      /* [sets][places] where a step forth leads: REGEX_...   */
    uint32_t sets, places;
} regex;

enum { REGEX_START = 0, REGEX_MATCH = 0xFFFE, REGEX_NONE = 0xFFFF };

locus_status locus_regex_compile(regex **out, const char *text, size_t bytes,
                                 const locus_allocator *allocator, locus_error *error);
void locus_regex_free(regex *r, const locus_allocator *allocator);

/* The numbers of the sets in a stretch of text. */
typedef struct regex_scan {
    const regex *r;
    const char *text;
    size_t begin, end;
    const uint16_t *sets; /* [end - begin + 1], at the first bytes of characters */
    uint64_t steps;       /* characters that were looked at, backward and forth  */
} regex_scan;

/* Read [begin, end) backward; the numbers are kept in `memory`. 0: no memory. */
int locus_regex_scan(regex_scan *scan, const regex *r, const char *text, size_t begin, size_t end,
                     text_array *memory, const locus_allocator *allocator);
/* Where the match that begins at `at` ends; `at`: none does. */
size_t locus_regex_match(regex_scan *scan, size_t at);
/* The next match at or after `at`: its beginning, and its end in *end; scan->end: none. */
size_t locus_regex_find(regex_scan *scan, size_t at, size_t *end);

/* ---- character sets (regex_set.c): ascending spans that neither touch nor overlap ---- */

typedef struct regex_span {
    uint32_t from, to; /* [from, to) */
} regex_span;

typedef struct regex_set {
    regex_span *spans;
    size_t count, capacity;
    const locus_allocator *allocator;
    int failed;
} regex_set;

void locus_regex_set_free(regex_set *set);
void locus_regex_set_add(regex_set *set, uint32_t from, uint32_t to); /* [from, to), in any order */
void locus_regex_set_union(regex_set *set, const regex_set *other);
void locus_regex_set_common(regex_set *set, const regex_set *other);
void locus_regex_set_negate(regex_set *set);
/* After additions: order and join. */
void locus_regex_set_settle(regex_set *set);
/* \p{NAME}: 0, unknown. Case, spaces, '_' and '-' do not matter. */
int locus_regex_set_property(regex_set *set, const char *name, size_t bytes);
/* \d \w \s \h; 'W' is \w in brackets, which is without the numbers of Latin-1 (\u00BD). */
void locus_regex_set_escape(regex_set *set, char letter);

/* ---- the tree (regex_parse.c) ---- */

typedef enum regex_kind {
    REGEX_EMPTY,
    REGEX_SET,    /* a character                          */
    REGEX_THEN,   /* left, then right                     */
    REGEX_OR,     /* left, or else right                  */
    REGEX_REPEAT, /* left, least to most times            */
    REGEX_AHEAD,  /* left matches here, or does not       */
    REGEX_BEHIND, /* the character before is in the set   */
    REGEX_BEGIN,  /* there is no character before         */
    REGEX_END,    /* the text is over                     */
} regex_kind;

typedef struct regex_node {
    regex_kind kind;
    uint32_t left, right, set;
    uint32_t least, most; /* most UINT32_MAX: any number */
    int lazy, negative;
} regex_node;

typedef struct regex_tree {
    const locus_allocator *allocator;
    regex_node *nodes;
    uint32_t count, root;
    regex_set sets[REGEX_MAX_SETS];
    uint32_t set_count;
    int asks_behind; /* some state needs the character before */
} regex_tree;

locus_status locus_regex_parse(regex_tree *tree, const char *text, size_t bytes,
                               locus_error *error);
void locus_regex_tree_free(regex_tree *tree);
int locus_regex_may_be_empty(const regex_tree *tree, uint32_t node);

/* ---- the machine (regex_machine.c) ---- */

typedef enum regex_state_kind {
    STATE_MATCH,
    STATE_TAKE,  /* a character of the set, then `next`                   */
    STATE_SPLIT, /* `next`, or else `other`                               */
    STATE_AHEAD, /* the machine that begins at `other` matches: then next */
    STATE_BEHIND,
    STATE_BEGIN,
    STATE_END,
} regex_state_kind;

typedef struct regex_state {
    regex_state_kind kind;
    uint16_t next, other;
    uint16_t level; /* how many looks ahead it is inside of */
    uint8_t set, negative;
} regex_state;

typedef struct regex_machine {
    regex_state *states;
    uint32_t count, start, deepest;
} regex_machine;

/* states: room for REGEX_MAX_STATES. */
locus_status locus_regex_machine(regex_machine *m, const regex_tree *tree, locus_error *error);

/* ---- the tables (regex_table.c) ---- */

locus_status locus_regex_tables(regex *r, const regex_machine *m, const regex_tree *tree,
                                const locus_allocator *allocator, locus_error *error);

#endif

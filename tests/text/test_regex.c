/* SPDX-License-Identifier: Apache-2.0 */
/* The expressions of tokenizer.json: what Oniguruma found (rows), what a matcher that backtracks
 * finds in the same tree (random expressions), steps per character, limits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/allocator.h"
#include "support/check.h"
#include "text/regex.h"

/* ---- what the library found ---- */

static const struct {
    const char *name, *expression, *text, *pieces; /* pieces: with U+2502 between them */
} rows[] = {
#include "text/regex_rows.inc"
};

/* The matches and what is between them, as a splitter that isolates gives them. */
static void show_pieces(const regex *r, const char *text, char *out, size_t room)
{
    regex_scan scan = {.steps = 0};
    text_array memory = {.data = NULL};
    const size_t bytes = strlen(text);
    size_t end = 0, used = 0;
    CHECK(locus_regex_scan(&scan, r, text, 0, bytes, &memory, NULL), "no memory");
    for (size_t at = 0; at < bytes; at = end) {
        const size_t begin = locus_regex_find(&scan, at, &end);
        const size_t cuts[3] = {at, begin, end};
        for (size_t i = 0; i < 2; i++)
            if (cuts[i] < cuts[i + 1])
                used += (size_t)snprintf(out + used, room - used, "%s%.*s",
                                         used > 0 ? "\xE2\x94\x82" : "",
                                         (int)(cuts[i + 1] - cuts[i]), text + cuts[i]);
    }
    locus_text_array_free(&memory, NULL);
}

static void test_rows(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char found[1024] = "";
        locus_error error = {{0}};
        regex *r = NULL;
        if (!check_begin("text/regex/%s", rows[i].name)) continue;
        if (!CHECK(locus_regex_compile(&r, rows[i].expression, strlen(rows[i].expression), NULL,
                                       &error) == LOCUS_OK,
                   "%s", error.text))
            continue;
        show_pieces(r, rows[i].text, found, sizeof found);
        CHECK(strcmp(found, rows[i].pieces) == 0, "%s: %s, expected %s", rows[i].expression, found,
              rows[i].pieces);
        locus_regex_free(r, NULL);
    }
}

/* ---- a matcher that backtracks ---- */

typedef struct naive {
    const regex_tree *tree;
    const char *text;
    size_t bytes;
    unsigned long budget;
} naive;

typedef struct goal { /* what is to be matched behind the node at work */
    uint32_t node, left;
    const struct goal *then;
} goal;

static long run(naive *n, uint32_t node, uint32_t done, size_t at, const goal *then);

static int inside(const regex_set *set, uint32_t code)
{
    for (size_t i = 0; i < set->count; i++)
        if (code >= set->spans[i].from && code < set->spans[i].to) return 1;
    return 0;
}

static long resume(naive *n, size_t at, const goal *then)
{
    if (then == NULL) return (long)at;
    return run(n, then->node, then->left, at, then->then);
}

static long repeat(naive *n, uint32_t node, uint32_t done, size_t at, const goal *then)
{
    const regex_node *self = n->tree->nodes + node;
    const goal again = {node, done + 1, then};
    long end = -1;
    if (done < self->least) return run(n, self->left, 0, at, &again);
    if (self->lazy && (end = resume(n, at, then)) >= 0) return end;
    if (done < self->most) end = run(n, self->left, 0, at, &again);
    return end >= 0 || self->lazy ? end : resume(n, at, then);
}

/* Where a match of the node and of what follows ends, -1: nowhere. `done`: repetitions. */
static long run(naive *n, uint32_t node, uint32_t done, size_t at, const goal *then)
{
    const regex_node *self = n->tree->nodes + node;
    const regex_set *set = n->tree->sets + self->set;
    size_t length = 0;
    long end = 0;
    if (n->budget == 0) return -1;
    n->budget--;
    switch (self->kind) {
    case REGEX_EMPTY: return resume(n, at, then);
    case REGEX_SET:
        if (at == n->bytes || !inside(set, utf8_read(n->text + at, &length))) return -1;
        return resume(n, at + length, then);
    case REGEX_THEN: return run(n, self->left, 0, at, &(goal){self->right, 0, then});
    case REGEX_OR:
        end = run(n, self->left, 0, at, then);
        return end >= 0 ? end : run(n, self->right, 0, at, then);
    case REGEX_REPEAT: return repeat(n, node, done, at, then);
    case REGEX_AHEAD:
        end = run(n, self->left, 0, at, NULL);
        return (end >= 0) != self->negative ? resume(n, at, then) : -1;
    case REGEX_BEHIND:
        end = at > 0 && inside(set, utf8_read_back(n->text, at, &length));
        return end != self->negative ? resume(n, at, then) : -1;
    case REGEX_BEGIN: return at == 0 ? resume(n, at, then) : -1;
    case REGEX_END: return at == n->bytes ? resume(n, at, then) : -1;
    }
    return -1;
}

static unsigned long drawn = 1;

static unsigned draw(unsigned most)
{
    drawn = (drawn * 1103515245ul + 12345ul) & 0x7FFFFFFFul;
    return (unsigned)(drawn >> 8) % most;
}

static void put(char *out, const char *text) { memcpy(out + strlen(out), text, strlen(text) + 1); }

static void draw_expression(char *out, int depth)
{
    static const char *const atoms[] = {"a",     "b",        "c",      " ",   "\\n",    "\xC3\xA9",
                                        "\\s",   "\\S",      "\\w",    "\\d", "\\p{L}", "[ab]",
                                        "[^ab]", "[a-c0-9]", ".",      "'",   "(?=a)",  "(?!\\s)",
                                        "\\b",   "(?<=a)",   "(?<!b)", "^",   "$",      "(?i:k)"};
    static const char *const often[] = {"",  "",      "",   "",   "*",  "+",
                                        "?", "{1,2}", "+?", "??", "*?", "{2,}"};
    const unsigned kind = draw(10);
    if (depth > 3 || kind < 6) {
        const unsigned atom = draw(24);
        put(out, atoms[atom]);
        if (atom < 16) put(out, often[draw(12)]);
    } else if (kind < 8) {
        put(out, "(?:");
        draw_expression(out, depth + 1);
        put(out, "|");
        draw_expression(out, depth + 1);
        put(out, ")");
        put(out, often[draw(12)]);
    } else {
        draw_expression(out, depth + 1);
        draw_expression(out, depth + 1);
    }
}

static void draw_text(char *out)
{
    static const char *const parts[] = {"a",  "b", "c",        "k", "0", " ",
                                        "\n", "'", "\xC3\xA9", "a", "b"};
    const unsigned count = draw(16);
    out[0] = '\0';
    for (unsigned i = 0; i < count; i++) put(out, parts[draw(11)]);
}

static void compare(const regex *r, const regex_tree *tree, const char *expression,
                    const char *text)
{
    naive n = {.tree = tree, .text = text, .bytes = strlen(text)};
    regex_scan scan = {.steps = 0};
    text_array memory = {.data = NULL};
    CHECK(locus_regex_scan(&scan, r, text, 0, n.bytes, &memory, NULL), "no memory");
    for (size_t at = 0; at < n.bytes; at += utf8_length((unsigned char)text[at])) {
        n.budget = 20000;
        const long end = run(&n, tree->root, 0, at, NULL);
        if (n.budget == 0) break; /* its time is what the engine is there to avoid */
        const size_t found = locus_regex_match(&scan, at);
        CHECK(found == (end < 0 ? at : (size_t)end), "%s on \"%s\" at %zu: %zu, expected %ld",
              expression, text, at, found, end);
    }
    locus_text_array_free(&memory, NULL);
}

static void test_backtracking(void)
{
    size_t read = 0;
    const size_t rounds = check_sample() ? 300 : 4000;
    if (!check_begin("text/regex/backtracking")) return;
    for (size_t i = 0; i < rounds; i++) {
        char expression[4096] = "", text[64];
        locus_error error = {{0}};
        regex *r = NULL;
        regex_tree tree = {.allocator = NULL};
        draw_expression(expression, 0);
        if (strlen(expression) > 200) continue;
        const size_t bytes = strlen(expression);
        if (locus_regex_compile(&r, expression, bytes, NULL, &error) == LOCUS_OK) {
            CHECK(locus_regex_parse(&tree, expression, bytes, &error) == LOCUS_OK, "%s",
                  error.text);
            for (int k = 0; k < 8; k++) {
                draw_text(text);
                compare(r, &tree, expression, text);
            }
            read++;
        }
        locus_regex_tree_free(&tree);
        locus_regex_free(r, NULL);
    }
    CHECK(read > rounds / 4, "only %zu expressions were read", read);
}

/* ---- time ---- */

/* One step per character back, one forth, whatever the expression: a matcher that backtracks, or
 * one that begins anew at every match, takes the square of the length for most of these. */
static void test_steps(void)
{
    static const char *const expressions[] = {"(a+)+b",
                                              "a*b|a",
                                              "(a|aa)+b|a",
                                              "a+(?=a*b)|a",
                                              "\\s+(?!\\S)|\\s+",
                                              "(?=a*b)c|a{1,3}",
                                              "(a|b|ab)*c|[^\\s]",
                                              "\\p{N}{1,3}(?=(?:\\p{N}{3})*$)|."};
    static const char *const texts[] = {"a", "ab", " ", "1", "\xC3\xA9", " a"};
    if (!check_begin("text/regex/linear")) return;
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        locus_error error = {{0}};
        regex *r = NULL;
        CHECK(locus_regex_compile(&r, expressions[i], strlen(expressions[i]), NULL, &error) ==
                  LOCUS_OK,
              "%s", error.text);
        for (size_t k = 0; r != NULL && k < sizeof texts / sizeof *texts; k++) {
            for (size_t copies = 100; copies <= 100000; copies *= 10) {
                const size_t width = strlen(texts[k]), bytes = copies * width;
                char *text = calloc(bytes + 1, 1);
                regex_scan scan = {.steps = 0};
                text_array memory = {.data = NULL};
                size_t end = 0;
                for (size_t c = 0; c < copies; c++) memcpy(text + c * width, texts[k], width);
                CHECK(locus_regex_scan(&scan, r, text, 0, bytes, &memory, NULL), "no memory");
                for (size_t at = 0; at < bytes; at = end) locus_regex_find(&scan, at, &end);
                CHECK(scan.steps >= bytes / width && scan.steps <= 2 * bytes,
                      "%s: %llu steps for %zu bytes", expressions[i],
                      (unsigned long long)scan.steps, bytes);
                locus_text_array_free(&memory, NULL);
                free(text);
            }
        }
        locus_regex_free(r, NULL);
    }
}

/* ---- limits, memory ---- */

/* head, then `part` so many times, then tail: read, or refused with these words. */
static void judge(const char *head, const char *part, size_t count, const char *tail,
                  const char *words)
{
    char *text = calloc(strlen(head) + strlen(part) * count + strlen(tail) + 1, 1);
    size_t used = strlen(head);
    test_allocator memory;
    locus_error error = {{0}};
    regex *r = NULL;
    memcpy(text, head, used);
    for (size_t i = 0; i < count; i++, used += strlen(part))
        memcpy(text + used, part, strlen(part));
    memcpy(text + used, tail, strlen(tail));
    test_allocator_init(&memory);
    const locus_status status =
        locus_regex_compile(&r, text, strlen(text), &memory.interface, &error);
    CHECK(status == (words == NULL ? LOCUS_OK : LOCUS_ERR_FORMAT), "%.40s: status %d, %s", text,
          status, error.text);
    CHECK(words == NULL || strstr(error.text, words) != NULL, "\"%s\" does not hold \"%s\"",
          error.text, words == NULL ? "" : words);
    locus_regex_free(r, &memory.interface);
    CHECK(memory.live_blocks == 0 && memory.misuse == 0, "leak");
    free(text);
}

static void test_limits(void)
{
    char many[2][8 * (REGEX_MAX_SETS + 2)] = {"", ""};
    if (!check_begin("text/regex/limits")) return;
    judge("(?#", "x", REGEX_MAX_TEXT - 5, ")a", NULL);
    judge("(?#", "x", REGEX_MAX_TEXT - 4, ")a", "too long");
    /* each alternative is two states, the last one with the end, too */
    judge("a", "|a", REGEX_MAX_STATES / 2 - 1, "", NULL);
    judge("a", "|a", REGEX_MAX_STATES / 2, "", "states");
    judge("", "(", REGEX_MAX_DEPTH - 1, "a", "without an end");
    judge("", "(", REGEX_MAX_DEPTH, "a", "too many groups");
    for (uint32_t i = 0; i <= REGEX_MAX_SETS; i++) {
        unsigned char letter[5] = {0};
        locus_utf8_encode(letter, 0x4E00 + 2 * i);
        for (int k = 0; k < 2; k++)
            if (i < REGEX_MAX_SETS + (uint32_t)k) put(many[k], (const char *)letter);
    }
    judge(many[0], "", 0, "", NULL);
    judge(many[1], "", 0, "", "too many different");
    /* sets of states: 2^k of them are told apart by k characters; MOST_SETS and REGEX_MAX_CELLS */
    judge("(?:a|b){10}a", "", 0, "", NULL);
    judge("(?:a|b){11}a", "", 0, "", "cells");
}

static void test_memory(void)
{
    static const char expression[] = "[^\\s\\p{L}&&[^0-9]]+(?!\\S)|(?i:k)x{2,5}|\\bword";
    if (!check_begin("text/regex/memory")) return;
    for (size_t k = 1;; k++) {
        test_allocator memory;
        locus_error error = {{0}};
        regex *r = NULL;
        test_allocator_init(&memory);
        memory.fail_at = k;
        const locus_status status =
            locus_regex_compile(&r, expression, sizeof expression - 1, &memory.interface, &error);
        CHECK(status == (memory.failures > 0 ? LOCUS_ERR_MEMORY : LOCUS_OK), "allocation %zu: %d",
              k, status);
        locus_regex_free(r, &memory.interface);
        CHECK(memory.live_blocks == 0 && memory.misuse == 0, "allocation %zu: leak", k);
        if (memory.failures == 0) break;
    }
}

static void test_refused(void)
{
    static const char *const expressions[][2] = {{"(a)\\1", "backslash"},
                                                 {"a\\", "at the end"},
                                                 {"(?<=ab)c", "look behind"},
                                                 {"(?>ab)", "this kind"},
                                                 {"(ab)++", "possessive"},
                                                 {"(a*)*", "may be empty"},
                                                 {"a*", "the empty text"},
                                                 {"\\p{Nope}", "this name"},
                                                 {"[[:nope:]]", "this name"},
                                                 {"[a", "without an end"},
                                                 {"(a", "without an end"},
                                                 {"a)", "without a beginning"},
                                                 {"*a", "of nothing"},
                                                 {"a**", "behind a quantifier"},
                                                 {"a{2}?", "{n}?"},
                                                 {"a{3,1}", "descends"},
                                                 {"[]a]", "begins with its end"},
                                                 {"(?i:ss)", "are one"},
                                                 {"(?i:\xC3\xA9)", "ASCII"},
                                                 {"(?i:[^a])", "without regard"},
                                                 {"\\X", "backslash"},
                                                 {"(?x)a", "this kind"},
                                                 {"(?=a)+", "assertion"},
                                                 {"[a-\\d]", "range"},
                                                 {"\\xFF", "\\xHH"},
                                                 {"a{99999999999999999999}", "states"}};
    if (!check_begin("text/regex/refused")) return;
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++)
        judge(expressions[i][0], "", 0, "", expressions[i][1]);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_rows();
    test_backtracking();
    test_steps();
    test_limits();
    test_memory();
    test_refused();
    return check_finish("text/regex");
}

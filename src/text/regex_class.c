/* SPDX-License-Identifier: Apache-2.0 */
/* The characters of an expression: escapes, classes, and what they are without regard to case. */
#include "core/error.h"
#include "text/regex_parse.h"

locus_status locus_regex_refuse(const regex_parser *p, const char *what)
{
    char shown[160];
    return locus_fail(p->error, LOCUS_ERR_FORMAT,
                      "found \"%s\", an unsupported expression: %s (byte %zu)",
                      locus_escape(shown, sizeof shown, p->text, p->bytes < 120 ? p->bytes : 120),
                      what, p->at);
}

/* A tree has at most a few nodes per byte of the expression; room for all is there. */
uint32_t locus_regex_node(regex_parser *p, regex_node node)
{
    p->tree->nodes[p->tree->count] = node;
    return p->tree->count++;
}

locus_status locus_regex_set_node(regex_parser *p, regex_set *set, uint32_t *node)
{
    regex_tree *tree = p->tree;
    uint32_t i = 0;
    if (set->failed) {
        locus_regex_set_free(set);
        return locus_text_no_memory(p->error);
    }
    for (; i < tree->set_count; i++) {
        const regex_set *known = tree->sets + i;
        if (known->count == set->count &&
            (set->count == 0 ||
             memcmp(known->spans, set->spans, set->count * sizeof *set->spans) == 0))
            break;
    }
    if (i == REGEX_MAX_SETS) {
        locus_regex_set_free(set);
        return locus_regex_refuse(p, "too many different characters and classes");
    }
    if (i == tree->set_count)
        tree->sets[tree->set_count++] = *set;
    else
        locus_regex_set_free(set);
    *node = locus_regex_node(p, (regex_node){.kind = REGEX_SET, .set = i});
    return LOCUS_OK;
}

/* ---- (?i: Oniguruma folds whole strings ("ss" is U+00DF), so only what is safe is read ---- */

int locus_regex_set_has(const regex_set *set, uint32_t code)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->spans[i].from <= code && code < set->spans[i].to) return 1;
    return 0;
}

static int all_ascii(const regex_set *set)
{
    return set->count == 0 || set->spans[set->count - 1].to <= 0x80;
}

static locus_status fold(regex_parser *p, regex_set *set)
{
    if (!p->fold) return LOCUS_OK;
    if (!all_ascii(set)) {
        locus_regex_set_free(set);
        return locus_regex_refuse(p, "characters beyond ASCII without regard to case");
    }
    for (uint32_t c = 'a'; c <= 'z'; c++) {
        const int lower = locus_regex_set_has(set, c), upper = locus_regex_set_has(set, c - 32);
        if (lower || upper) {
            locus_regex_set_add(set, c, c + 1);
            locus_regex_set_add(set, c - 32, c - 31);
        }
    }
    locus_regex_set_settle(set);
    if (locus_regex_set_has(set, 's')) locus_regex_set_add(set, 0x17F, 0x180);
    if (locus_regex_set_has(set, 'k')) locus_regex_set_add(set, 0x212A, 0x212B);
    locus_regex_set_settle(set);
    return LOCUS_OK;
}

/* ---- escapes ---- */

static uint32_t read_code(regex_parser *p)
{
    size_t length = 0;
    const uint32_t code = utf8_read(p->text + p->at, &length);
    p->at += length;
    return code;
}

static int hexadecimal(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* `least` to `most` digits. */
static int read_hexadecimal(regex_parser *p, unsigned least, unsigned most, uint32_t *code)
{
    unsigned count = 0;
    *code = 0;
    for (; count < most && p->at < p->bytes && hexadecimal(p->text[p->at]) >= 0; count++)
        *code = *code << 4 | (uint32_t)hexadecimal(p->text[p->at++]);
    return count >= least && *code < 0x110000 && (*code < 0xD800 || *code > 0xDFFF);
}

/* What follows a backslash and stands for one character. */
static locus_status read_escaped(regex_parser *p, uint32_t *code)
{
    static const char letters[] = "nrtfvae", values[] = "\n\r\t\f\v\a\x1B";
    const char c = p->text[p->at];
    const char *known = strchr(letters, c);
    if (c != '\0' && known != NULL) {
        *code = (uint32_t)values[known - letters];
        p->at++;
        return LOCUS_OK;
    }
    if (locus_regex_take(p, "x{")) {
        if (read_hexadecimal(p, 1, 8, code) && locus_regex_take(p, "}")) return LOCUS_OK;
        return locus_regex_refuse(p, "\\x{...}");
    }
    if (locus_regex_take(p, "x")) {
        if (read_hexadecimal(p, 1, 2, code) && *code < 0x80) return LOCUS_OK;
        return locus_regex_refuse(p, "\\xHH"); /* beyond ASCII it is a byte, not a character */
    }
    if (locus_regex_take(p, "u")) {
        if (read_hexadecimal(p, 4, 4, code)) return LOCUS_OK;
        return locus_regex_refuse(p, "\\uHHHH");
    }
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return locus_regex_refuse(p, "a backslash before this letter or digit");
    *code = read_code(p);
    return LOCUS_OK;
}

/* \p{NAME}, \p{^NAME}, \P{NAME}, behind the p. */
static locus_status read_property(regex_parser *p, int negate, regex_set *set)
{
    const char *begin = p->text + p->at + 1;
    const char *end =
        p->at < p->bytes && p->text[p->at] == '{' ? memchr(begin, '}', p->bytes - p->at - 1) : NULL;
    if (end == NULL) return locus_regex_refuse(p, "\\p without {...}");
    if (begin < end && *begin == '^') negate = !negate, begin++;
    if (!locus_regex_set_property(set, begin, (size_t)(end - begin)))
        return locus_regex_refuse(p, "a property of this name");
    p->at = (size_t)(end - p->text) + 1;
    if (negate) locus_regex_set_negate(set);
    return LOCUS_OK;
}

/* Behind a backslash: a class, or else a character. */
static locus_status read_escape(regex_parser *p, int in_brackets, regex_set *set, uint32_t *code,
                                int *is_class)
{
    if (p->at == p->bytes) return locus_regex_refuse(p, "a backslash at the end");
    const char c = p->text[p->at];
    *is_class = 1;
    if (c == 'p' || c == 'P') {
        p->at++;
        return read_property(p, c == 'P', set);
    }
    if (c != '\0' && strchr("dDwWsShH", c) != NULL) {
        p->at++;
        locus_regex_set_escape(set, in_brackets && (c | 32) == 'w' ? 'W' : (char)(c | 32));
        if (c < 'a') locus_regex_set_negate(set);
        return LOCUS_OK;
    }
    *is_class = 0;
    return read_escaped(p, code);
}

/* ---- classes ---- */

static locus_status read_class(regex_parser *p, regex_set *out);

/* [:punct:] and the like, behind "[:". */
static locus_status read_posix(regex_parser *p, regex_set *set)
{
    const int negate = locus_regex_take(p, "^");
    if (locus_regex_take(p, "punct:]")) {
        (void)locus_regex_set_property(set, "P", 1);
        (void)locus_regex_set_property(set, "S", 1);
    } else if (locus_regex_take(p, "space:]")) {
        locus_regex_set_escape(set, 's');
    } else if (locus_regex_take(p, "digit:]")) {
        locus_regex_set_escape(set, 'd');
    } else if (locus_regex_take(p, "word:]")) {
        locus_regex_set_escape(set, 'W');
    } else {
        return locus_regex_refuse(p, "a bracket class of this name");
    }
    if (negate) locus_regex_set_negate(set);
    return LOCUS_OK;
}

/* One member of a class: a class, or a character in *code. */
static locus_status read_member(regex_parser *p, regex_set *set, uint32_t *code, int *is_class)
{
    *is_class = 1;
    if (locus_regex_take(p, "[:")) return read_posix(p, set);
    if (locus_regex_take(p, "[")) return read_class(p, set);
    if (locus_regex_take(p, "\\")) return read_escape(p, 1, set, code, is_class);
    *is_class = 0;
    *code = read_code(p);
    return LOCUS_OK;
}

/* A member, and the range that may begin with it. */
static locus_status read_range(regex_parser *p, regex_set *set, regex_set *ignored)
{
    uint32_t from = 0, to = 0;
    int is_class = 0;
    LOCUS_TRY(read_member(p, set, &from, &is_class));
    if (is_class) {
        if (p->at + 1 < p->bytes && p->text[p->at] == '-' && p->text[p->at + 1] != ']')
            return locus_regex_refuse(p, "a range that begins with a class");
        return LOCUS_OK;
    }
    to = from;
    if (p->at + 1 < p->bytes && p->text[p->at] == '-' && p->text[p->at + 1] != ']') {
        p->at++;
        LOCUS_TRY(read_member(p, ignored, &to, &is_class));
        if (is_class || to < from) return locus_regex_refuse(p, "a range without an end");
    }
    locus_regex_set_add(set, from, to + 1);
    return LOCUS_OK;
}

/* Up to the next && or ]: the union of its members. */
static locus_status read_union(regex_parser *p, regex_set *set)
{
    while (p->at < p->bytes && p->text[p->at] != ']') {
        if (p->at + 1 < p->bytes && memcmp(p->text + p->at, "&&", 2) == 0) break;
        regex_set part = {.allocator = set->allocator}, ignored = part;
        const locus_status status = read_range(p, &part, &ignored);
        locus_regex_set_free(&ignored);
        if (status == LOCUS_OK) locus_regex_set_union(set, &part);
        locus_regex_set_free(&part);
        if (status != LOCUS_OK) return status;
    }
    return LOCUS_OK;
}

static locus_status read_members(regex_parser *p, regex_set *out)
{
    LOCUS_TRY(read_union(p, out));
    while (locus_regex_take(p, "&&")) {
        regex_set right = {.allocator = out->allocator};
        const locus_status status = read_union(p, &right);
        if (status == LOCUS_OK) locus_regex_set_common(out, &right);
        locus_regex_set_free(&right);
        if (status != LOCUS_OK) return status;
    }
    return locus_regex_take(p, "]") ? LOCUS_OK : locus_regex_refuse(p, "a class without an end");
}

/* Behind the bracket. */
static locus_status read_class(regex_parser *p, regex_set *out)
{
    const int negate = locus_regex_take(p, "^");
    regex_set set = {.allocator = out->allocator};
    if (p->depth++ == REGEX_MAX_DEPTH)
        return locus_regex_refuse(p, "too many classes in each other");
    if (p->at < p->bytes && p->text[p->at] == ']')
        return locus_regex_refuse(p, "a class that begins with its end");
    locus_status status = read_members(p, &set);
    if (status == LOCUS_OK && negate && p->fold)
        status = locus_regex_refuse(p, "what is not in a class, without regard to case");
    if (status == LOCUS_OK && negate) locus_regex_set_negate(&set);
    if (status == LOCUS_OK) locus_regex_set_union(out, &set);
    locus_regex_set_free(&set);
    p->depth--;
    return status;
}

/* ---- all ---- */

locus_status locus_regex_character(regex_parser *p, uint32_t *out)
{
    regex_set set = {.allocator = p->tree->allocator};
    uint32_t code = 0;
    int is_class = 0;
    locus_status status = LOCUS_OK;
    if (locus_regex_take(p, "[")) {
        is_class = 1;
        status = read_class(p, &set);
    } else if (locus_regex_take(p, "\\")) {
        status = read_escape(p, 0, &set, &code, &is_class);
    } else if (locus_regex_take(p, ".")) {
        is_class = 1;
        if (!p->dot_all) locus_regex_set_add(&set, '\n', '\n' + 1);
        locus_regex_set_negate(&set);
        if (p->fold) status = locus_regex_refuse(p, "a dot without regard to case");
    } else {
        code = read_code(p);
    }
    if (!is_class) locus_regex_set_add(&set, code, code + 1);
    if (status != LOCUS_OK) {
        locus_regex_set_free(&set);
        return status;
    }
    LOCUS_TRY(fold(p, &set));
    return locus_regex_set_node(p, &set, out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* An expression as a tree. Every character of it is understood as Oniguruma understands it, or
 * refused. */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/regex_parse.h"

#define ANY UINT32_MAX

/* ---- the tree ---- */

void locus_regex_tree_free(regex_tree *tree)
{
    for (uint32_t i = 0; i < tree->set_count; i++) locus_regex_set_free(tree->sets + i);
    locus_release(tree->allocator, tree->nodes);
    tree->nodes = NULL;
    tree->set_count = 0;
}

int locus_regex_may_be_empty(const regex_tree *tree, uint32_t node)
{
    const regex_node *n = tree->nodes + node;
    switch (n->kind) {
    case REGEX_SET: return 0;
    case REGEX_THEN:
        return locus_regex_may_be_empty(tree, n->left) && locus_regex_may_be_empty(tree, n->right);
    case REGEX_OR:
        return locus_regex_may_be_empty(tree, n->left) || locus_regex_may_be_empty(tree, n->right);
    case REGEX_REPEAT: return n->least == 0 || locus_regex_may_be_empty(tree, n->left);
    default: return 1;
    }
}

static uint32_t join(regex_parser *p, regex_kind kind, uint32_t left, uint32_t right)
{
    if (kind == REGEX_THEN && p->tree->nodes[left].kind == REGEX_EMPTY) return right;
    return locus_regex_node(p, (regex_node){.kind = kind, .left = left, .right = right});
}

/* ---- how often ---- */

static int read_number(regex_parser *p, uint32_t *value)
{
    const size_t begin = p->at;
    *value = 0;
    for (; p->at < p->bytes && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++)
        if (*value <= REGEX_MAX_STATES) *value = 10 * *value + (uint32_t)(p->text[p->at] - '0');
    return p->at > begin;
}

/* {n}, {n,}, {,m}, {n,m}; anything else is a brace. */
static int read_interval(regex_parser *p, regex_node *repeat)
{
    const size_t begin = p->at++;
    const int first = read_number(p, &repeat->least);
    int second = first;
    repeat->most = repeat->least;
    if (locus_regex_take(p, ",")) {
        second = read_number(p, &repeat->most);
        if (!second) repeat->most = ANY;
    }
    if ((first || second) && locus_regex_take(p, "}")) return 1;
    p->at = begin;
    return 0;
}

static locus_status repeat(regex_parser *p, regex_node node, uint32_t *out)
{
    const regex_kind kind = p->tree->nodes[node.left].kind;
    if (kind >= REGEX_AHEAD) return locus_regex_refuse(p, "a quantifier of an assertion");
    if (node.most < node.least) return locus_regex_refuse(p, "a range that descends");
    if (node.most > 1 && locus_regex_may_be_empty(p->tree, node.left))
        return locus_regex_refuse(p, "a repeated part that may be empty");
    node.kind = REGEX_REPEAT;
    *out = locus_regex_node(p, node);
    return LOCUS_OK;
}

/* C*+ is C*(?!C): what one character can be repeated by is never given back. */
static locus_status possess(regex_parser *p, regex_node node, uint32_t *out)
{
    const regex_node *atom = p->tree->nodes + node.left;
    uint32_t taken = 0;
    if (atom->kind != REGEX_SET)
        return locus_regex_refuse(p, "a possessive quantifier of more than one character");
    const uint32_t none =
        locus_regex_node(p, (regex_node){.kind = REGEX_AHEAD, .left = node.left, .negative = 1});
    if (node.most == 1) {
        *out = join(p, REGEX_OR, node.left, none);
        return LOCUS_OK;
    }
    LOCUS_TRY(repeat(p, node, &taken));
    *out = join(p, REGEX_THEN, taken, none);
    return LOCUS_OK;
}

static int at_quantifier(regex_parser *p)
{
    regex_node ignored = {.least = 0};
    const size_t at = p->at;
    if (at == p->bytes) return 0;
    if (strchr("?*+", p->text[at]) != NULL && p->text[at] != '\0') return 1;
    const int interval = p->text[at] == '{' && read_interval(p, &ignored);
    p->at = at;
    return interval;
}

static locus_status read_quantifier(regex_parser *p, uint32_t atom, uint32_t *out)
{
    regex_node node = {.left = atom, .most = ANY};
    const char sign = p->text[p->at];
    if (sign == '{') {
        (void)read_interval(p, &node);
        const int exact = p->text[p->at - 2] != ',' && node.least == node.most;
        if (exact && p->at < p->bytes && p->text[p->at] == '?')
            return locus_regex_refuse(p, "{n}?");
        node.lazy = locus_regex_take(p, "?");
        LOCUS_TRY(repeat(p, node, out));
        if (!node.lazy && locus_regex_take(p, "+")) /* Ruby: both, not a possessive one */
            LOCUS_TRY(repeat(p, (regex_node){.left = *out, .least = 1, .most = ANY}, out));
    } else {
        p->at++;
        node.least = sign == '+';
        if (sign == '?') node.most = 1;
        if (locus_regex_take(p, "+")) {
            LOCUS_TRY(possess(p, node, out));
        } else {
            node.lazy = locus_regex_take(p, "?");
            LOCUS_TRY(repeat(p, node, out));
        }
    }
    return at_quantifier(p) ? locus_regex_refuse(p, "a quantifier behind a quantifier") : LOCUS_OK;
}

/* ss, st, ff, fi, fl are letters of their own, too. */
static int folds_together(const regex_tree *tree, uint32_t left, uint32_t right)
{
    if (tree->nodes[left].kind != REGEX_SET || tree->nodes[right].kind != REGEX_SET) return 0;
    const regex_set *a = tree->sets + tree->nodes[left].set,
                    *b = tree->sets + tree->nodes[right].set;
    if (locus_regex_set_has(a, 's') && (locus_regex_set_has(b, 's') || locus_regex_set_has(b, 't')))
        return 1;
    return locus_regex_set_has(a, 'f') &&
           (locus_regex_set_has(b, 'f') || locus_regex_set_has(b, 'i') ||
            locus_regex_set_has(b, 'l'));
}

/* ---- groups ---- */

static locus_status read_alternatives(regex_parser *p, uint32_t *out);

static locus_status close_group(regex_parser *p)
{
    return locus_regex_take(p, ")") ? LOCUS_OK : locus_regex_refuse(p, "a group without an end");
}

static locus_status read_group(regex_parser *p, uint32_t *out)
{
    LOCUS_TRY(read_alternatives(p, out));
    return close_group(p);
}

static locus_status read_ahead(regex_parser *p, int negative, uint32_t *out)
{
    uint32_t inside = 0;
    LOCUS_TRY(read_group(p, &inside));
    *out =
        locus_regex_node(p,
                         (regex_node){.kind = REGEX_AHEAD, .left = inside, .negative = negative});
    return LOCUS_OK;
}

static uint32_t behind(regex_parser *p, uint32_t set, int negative)
{
    p->tree->asks_behind = 1;
    return locus_regex_node(p,
                            (regex_node){.kind = REGEX_BEHIND, .set = set, .negative = negative});
}

static locus_status read_behind(regex_parser *p, int negative, uint32_t *out)
{
    uint32_t inside = 0;
    LOCUS_TRY(read_group(p, &inside));
    if (p->tree->nodes[inside].kind != REGEX_SET)
        return locus_regex_refuse(p, "a look behind at more than one character");
    *out = behind(p, p->tree->nodes[inside].set, negative);
    return LOCUS_OK;
}

/* (?i:...), (?m-i:...), and (?i), which holds up to the end of the group around it. */
static locus_status read_flags(regex_parser *p, uint32_t *out)
{
    const int fold = p->fold, dot_all = p->dot_all;
    int on = 1;
    for (; p->at < p->bytes && p->text[p->at] != ':' && p->text[p->at] != ')'; p->at++) {
        const char c = p->text[p->at];
        if (c == '-')
            on = 0;
        else if (c == 'i')
            p->fold = on;
        else if (c == 'm')
            p->dot_all = on;
        else
            return locus_regex_refuse(p, "a group of this kind");
    }
    const int alone = locus_regex_take(p, ")");
    if (!alone && !locus_regex_take(p, ":")) return locus_regex_refuse(p, "a group without an end");
    const locus_status status = alone ? read_alternatives(p, out) : read_group(p, out);
    p->fold = fold;
    p->dot_all = dot_all;
    return status;
}

static locus_status read_name(regex_parser *p)
{
    const size_t begin = p->at;
    while (p->at < p->bytes && ((unsigned)(p->text[p->at] | 32) - 'a' < 26u ||
                                (unsigned)p->text[p->at] - '0' < 10u || p->text[p->at] == '_'))
        p->at++;
    return p->at > begin && locus_regex_take(p, ">") ? LOCUS_OK
                                                     : locus_regex_refuse(p, "a name of a group");
}

/* Behind the parenthesis. */
static locus_status read_parenthesis(regex_parser *p, uint32_t *out)
{
    if (!locus_regex_take(p, "?")) return read_group(p, out);
    if (locus_regex_take(p, ":")) return read_group(p, out);
    if (locus_regex_take(p, "=")) return read_ahead(p, 0, out);
    if (locus_regex_take(p, "!")) return read_ahead(p, 1, out);
    if (locus_regex_take(p, "<=")) return read_behind(p, 0, out);
    if (locus_regex_take(p, "<!")) return read_behind(p, 1, out);
    if (locus_regex_take(p, "<")) {
        LOCUS_TRY(read_name(p));
        return read_group(p, out);
    }
    return read_flags(p, out);
}

/* ---- assertions ---- */

static uint32_t pair(regex_parser *p, regex_kind kind, uint32_t left, uint32_t right)
{
    return locus_regex_node(p, (regex_node){.kind = kind, .left = left, .right = right});
}

static uint32_t ahead(regex_parser *p, uint32_t node, int negative)
{
    return locus_regex_node(p,
                            (regex_node){.kind = REGEX_AHEAD, .left = node, .negative = negative});
}

static uint32_t simple(regex_parser *p, regex_kind kind)
{
    if (kind == REGEX_BEGIN) p->tree->asks_behind = 1;
    return locus_regex_node(p, (regex_node){.kind = kind});
}

/* \b: a word begins or ends here; \B: it does not. */
static locus_status read_boundary(regex_parser *p, int negative, uint32_t *out)
{
    regex_set words = {.allocator = p->tree->allocator};
    uint32_t word = 0;
    locus_regex_set_escape(&words, 'w');
    LOCUS_TRY(locus_regex_set_node(p, &words, &word));
    const uint32_t set = p->tree->nodes[word].set;
    const uint32_t inside = pair(p, REGEX_THEN, behind(p, set, 0), ahead(p, word, !negative));
    const uint32_t outside = pair(p, REGEX_THEN, behind(p, set, 1), ahead(p, word, negative));
    *out = pair(p, REGEX_OR, inside, outside);
    return LOCUS_OK;
}

/* ^ $ \A \z \Z, with lines that end in \n. */
static locus_status read_place(regex_parser *p, char sign, uint32_t *out)
{
    regex_set newline = {.allocator = p->tree->allocator};
    uint32_t line = 0;
    locus_regex_set_add(&newline, '\n', '\n' + 1);
    LOCUS_TRY(locus_regex_set_node(p, &newline, &line));
    const uint32_t end = simple(p, REGEX_END);
    if (sign == '$') {
        *out = pair(p, REGEX_OR, end, ahead(p, line, 0));
    } else if (sign == 'Z') {
        *out = pair(p, REGEX_OR, end, ahead(p, pair(p, REGEX_THEN, line, end), 0));
    } else { /* ^ */
        const uint32_t after = behind(p, p->tree->nodes[line].set, 0);
        *out =
            pair(p, REGEX_OR, simple(p, REGEX_BEGIN), pair(p, REGEX_THEN, after, ahead(p, end, 1)));
    }
    return LOCUS_OK;
}

static locus_status read_atom(regex_parser *p, uint32_t *out)
{
    if (locus_regex_take(p, "(?#")) {
        while (p->at < p->bytes && p->text[p->at] != ')') p->at++;
        *out = simple(p, REGEX_EMPTY);
        return close_group(p);
    }
    if (locus_regex_take(p, "(")) return read_parenthesis(p, out);
    if (locus_regex_take(p, "^")) return read_place(p, '^', out);
    if (locus_regex_take(p, "$")) return read_place(p, '$', out);
    if (locus_regex_take(p, "\\A")) return *out = simple(p, REGEX_BEGIN), LOCUS_OK;
    if (locus_regex_take(p, "\\z")) return *out = simple(p, REGEX_END), LOCUS_OK;
    if (locus_regex_take(p, "\\Z")) return read_place(p, 'Z', out);
    if (locus_regex_take(p, "\\b")) return read_boundary(p, 0, out);
    if (locus_regex_take(p, "\\B")) return read_boundary(p, 1, out);
    return locus_regex_character(p, out);
}

/* ---- sequences and alternatives ---- */

static locus_status read_chain(regex_parser *p, uint32_t *out)
{
    uint32_t before = ANY; /* an atom that may fold together with the next */
    *out = locus_regex_node(p, (regex_node){.kind = REGEX_EMPTY});
    while (p->at < p->bytes && p->text[p->at] != '|' && p->text[p->at] != ')') {
        uint32_t atom = 0;
        if (at_quantifier(p) && p->text[p->at] != '{')
            return locus_regex_refuse(p, "a quantifier of nothing");
        LOCUS_TRY(read_atom(p, &atom));
        if (p->fold && before != ANY && folds_together(p->tree, before, atom))
            return locus_regex_refuse(p, "letters that are one without regard to case");
        before = atom;
        if (at_quantifier(p)) {
            LOCUS_TRY(read_quantifier(p, atom, &atom));
            before = ANY;
        }
        *out = join(p, REGEX_THEN, *out, atom);
    }
    return LOCUS_OK;
}

static locus_status read_alternatives(regex_parser *p, uint32_t *out)
{
    if (p->depth++ == REGEX_MAX_DEPTH)
        return locus_regex_refuse(p, "too many groups in each other");
    LOCUS_TRY(read_chain(p, out));
    uint32_t last = ANY; /* alternatives hang to the right */
    while (locus_regex_take(p, "|")) {
        uint32_t next = 0;
        LOCUS_TRY(read_chain(p, &next));
        if (last == ANY) {
            *out = last = join(p, REGEX_OR, *out, next);
        } else {
            const uint32_t both = join(p, REGEX_OR, p->tree->nodes[last].right, next);
            p->tree->nodes[last].right = both;
            last = both;
        }
    }
    p->depth--;
    return LOCUS_OK;
}

locus_status locus_regex_parse(regex_tree *tree, const char *text, size_t bytes, locus_error *error)
{
    regex_parser p = {.tree = tree, .text = text, .bytes = bytes, .error = error};
    if (bytes > REGEX_MAX_TEXT) return locus_regex_refuse(&p, "too long");
    tree->nodes = locus_allocate(tree->allocator, 12 * bytes + 16, sizeof *tree->nodes);
    if (tree->nodes == NULL) return locus_text_no_memory(error);
    LOCUS_TRY(read_alternatives(&p, &tree->root));
    if (p.at < p.bytes) return locus_regex_refuse(&p, "a group that ends without a beginning");
    if (locus_regex_may_be_empty(tree, tree->root))
        return locus_regex_refuse(&p, "it matches the empty text");
    return LOCUS_OK;
}

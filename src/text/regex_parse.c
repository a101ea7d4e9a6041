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

static uint32_t join(regex_parser *p, regex_kind kind, uint32_t left, uint32_t right)
{
    if (kind == REGEX_THEN && p->tree->nodes[left].kind == REGEX_EMPTY) return right;
    return locus_regex_node(p, (regex_node){.kind = kind, .left = left, .right = right});
}

/* The node of a set, which it takes over. */
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

static int has(const regex_set *set, uint32_t code)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->spans[i].from <= code && code < set->spans[i].to) return 1;
    return 0;
}

static int all_ascii(const regex_set *set)
{
    return set->count == 0 || set->spans[set->count - 1].to <= 0x80;
}

locus_status locus_regex_fold(regex_parser *p, regex_set *set)
{
    if (!p->fold) return LOCUS_OK;
    if (!all_ascii(set)) {
        locus_regex_set_free(set);
        return locus_regex_refuse(p, "characters beyond ASCII without regard to case");
    }
    for (uint32_t c = 'a'; c <= 'z'; c++) {
        const int lower = has(set, c), upper = has(set, c - 32);
        if (lower || upper) {
            locus_regex_set_add(set, c, c + 1);
            locus_regex_set_add(set, c - 32, c - 31);
        }
    }
    locus_regex_set_settle(set);
    if (has(set, 's')) locus_regex_set_add(set, 0x17F, 0x180);
    if (has(set, 'k')) locus_regex_set_add(set, 0x212A, 0x212B);
    locus_regex_set_settle(set);
    return LOCUS_OK;
}

/* ss, st, ff, fi, fl are letters of their own, too. */
static int folds_together(const regex_tree *tree, uint32_t left, uint32_t right)
{
    if (tree->nodes[left].kind != REGEX_SET || tree->nodes[right].kind != REGEX_SET) return 0;
    const regex_set *a = tree->sets + tree->nodes[left].set,
                    *b = tree->sets + tree->nodes[right].set;
    if (has(a, 's') && (has(b, 's') || has(b, 't'))) return 1;
    return has(a, 'f') && (has(b, 'f') || has(b, 'i') || has(b, 'l'));
}

/* ---- how often ---- */

static int read_number(regex_parser *p, uint32_t *value)
{
    const size_t begin = p->at;
    *value = 0;
    while (p->at < p->bytes && p->text[p->at] >= '0' && p->text[p->at] <= '9')
        *value = *value > 100000 ? *value : 10 * *value + (uint32_t)(p->text[p->at++] - '0');
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

/* ---- sequences and alternatives ---- */

static locus_status read_sequence(regex_parser *p, uint32_t *out)
{
    uint32_t before = ANY; /* an atom that may fold together with the next */
    *out = locus_regex_node(p, (regex_node){.kind = REGEX_EMPTY});
    while (p->at < p->bytes && p->text[p->at] != '|' && p->text[p->at] != ')') {
        uint32_t atom = 0;
        if (at_quantifier(p) && p->text[p->at] != '{')
            return locus_regex_refuse(p, "a quantifier of nothing");
        LOCUS_TRY(locus_regex_atom(p, &atom));
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

locus_status locus_regex_alternatives(regex_parser *p, uint32_t *out)
{
    if (p->depth++ == REGEX_MAX_DEPTH)
        return locus_regex_refuse(p, "too many groups in each other");
    LOCUS_TRY(read_sequence(p, out));
    uint32_t last = ANY; /* alternatives hang to the right */
    while (locus_regex_take(p, "|")) {
        uint32_t next = 0;
        LOCUS_TRY(read_sequence(p, &next));
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
    LOCUS_TRY(locus_regex_alternatives(&p, &tree->root));
    if (p.at < p.bytes) return locus_regex_refuse(&p, "a group that ends without a beginning");
    if (locus_regex_may_be_empty(tree, tree->root))
        return locus_regex_refuse(&p, "it matches the empty text");
    return LOCUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* From the tree to the machine. A part is built when what follows it is there, from the end. */
#include "core/error.h"
#include "text/regex.h"

typedef struct builder {
    regex_machine *m;
    const regex_tree *tree;
    uint16_t level;
    int failed;
} builder;

static uint16_t build(builder *b, uint32_t node, uint16_t next);

static uint16_t add(builder *b, regex_state state)
{
    if (b->m->count == REGEX_MAX_STATES) {
        b->failed = 1;
        return 0;
    }
    state.level = b->level;
    b->m->states[b->m->count] = state;
    return (uint16_t)b->m->count++;
}

static uint16_t split(builder *b, int lazy, uint16_t inside, uint16_t past)
{
    return add(b, (regex_state){.kind = STATE_SPLIT,
                                .next = lazy ? past : inside,
                                .other = lazy ? inside : past});
}

static uint16_t build_repeat(builder *b, const regex_node *n, uint16_t next)
{
    uint16_t now = next;
    uint32_t needed = n->least;
    if (n->most == UINT32_MAX) {
        now = split(b, n->lazy, next, next);
        const uint16_t body = b->failed ? 0 : build(b, n->left, now);
        if (b->failed) return 0;
        if (n->lazy)
            b->m->states[now].other = body;
        else
            b->m->states[now].next = body;
        if (needed > 0) { /* x+ is the loop, entered by its body */
            now = body;
            needed--;
        }
    } else {
        for (uint32_t i = n->least; i < n->most && !b->failed; i++)
            now = split(b, n->lazy, build(b, n->left, now), next);
    }
    for (uint32_t i = 0; i < needed && !b->failed; i++) now = build(b, n->left, now);
    return now;
}

static uint16_t build_ahead(builder *b, const regex_node *n, uint16_t next)
{
    b->level++;
    if (b->level > b->m->deepest) b->m->deepest = b->level;
    const uint16_t match = add(b, (regex_state){.kind = STATE_MATCH});
    const uint16_t inside = b->failed ? 0 : build(b, n->left, match);
    b->level--;
    return add(b, (regex_state){.kind = STATE_AHEAD,
                                .next = next,
                                .other = inside,
                                .negative = (uint8_t)n->negative});
}

static uint16_t build(builder *b, uint32_t node, uint16_t next)
{
    const regex_node *n = b->tree->nodes + node;
    uint16_t other = 0;
    if (b->failed) return 0;
    switch (n->kind) {
    case REGEX_EMPTY: return next;
    case REGEX_SET:
        return add(b, (regex_state){.kind = STATE_TAKE, .next = next, .set = (uint8_t)n->set});
    case REGEX_THEN: other = build(b, n->right, next); return build(b, n->left, other);
    case REGEX_OR:
        other = build(b, n->right, next);
        return split(b, 0, build(b, n->left, next), other);
    case REGEX_REPEAT: return build_repeat(b, n, next);
    case REGEX_AHEAD: return build_ahead(b, n, next);
    case REGEX_BEHIND:
        return add(b, (regex_state){.kind = STATE_BEHIND,
                                    .next = next,
                                    .set = (uint8_t)n->set,
                                    .negative = (uint8_t)n->negative});
    case REGEX_BEGIN: return add(b, (regex_state){.kind = STATE_BEGIN, .next = next});
    case REGEX_END: return add(b, (regex_state){.kind = STATE_END, .next = next});
    }
    return 0;
}

locus_status locus_regex_machine(regex_machine *m, const regex_tree *tree, locus_error *error)
{
    builder b = {.m = m, .tree = tree};
    const uint16_t match = add(&b, (regex_state){.kind = STATE_MATCH});
    m->start = build(&b, tree->root, match);
    if (!b.failed) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "found an expression of more than %u states, expected a smaller one",
                      REGEX_MAX_STATES);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The tables: classes of characters that the expression cannot tell apart, the sets of states that
 * can occur on the way back from the end of a text, and the way forth. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/regex.h"

enum {
    CODES = 0x110000,
    WORDS = REGEX_MAX_STATES / 64,
    SLOTS = 1 << 13,
    MOST_SETS = SLOTS / 2,
    FEW_SETS = 32
};

typedef struct state_set {
    uint64_t bits[WORDS];
} state_set;

typedef struct tables {
    regex *r;
    const regex_machine *m;
    const regex_tree *tree;
    const locus_allocator *allocator;
    size_t words;    /* of a state_set that are in use              */
    uint8_t *in_set; /* [classes][sets of the tree]                 */
    uint64_t *sets;  /* [known][words]                              */
    uint32_t known, room, most;
    uint16_t *slots;    /* hash table of sets, 0: free, else index + 1 */
    uint16_t *place_of; /* of a TAKE state: its row in `next`          */
    locus_error *error;
} tables;

static int has(const state_set *set, uint32_t state)
{
    return (int)(set->bits[state / 64] >> (state % 64) & 1);
}

/* ---- classes ---- */

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Where classes can change: ascending, from 0 to CODES. */
static uint32_t *boundaries(const regex_tree *tree, size_t *count, const locus_allocator *allocator)
{
    size_t most = 2, kept = 0, used = 0;
    for (uint32_t i = 0; i < tree->set_count; i++) most += 2 * tree->sets[i].count;
    uint32_t *list = locus_allocate(allocator, most, sizeof *list);
    if (list == NULL) return NULL;
    list[used++] = 0;
    list[used++] = CODES;
    for (uint32_t i = 0; i < tree->set_count; i++)
        for (size_t k = 0; k < tree->sets[i].count; k++) {
            list[used++] = tree->sets[i].spans[k].from;
            list[used++] = tree->sets[i].spans[k].to;
        }
    qsort(list, used, sizeof *list, by_value);
    for (size_t i = 1; i < used; i++)
        if (list[i] != list[kept]) list[++kept] = list[i];
    *count = kept;
    return list;
}

/* Split the classes of the stretches by one set. 0: too many. */
static int refine(const regex_set *set, const uint32_t *edges, size_t count, uint32_t *class,
                  uint32_t *classes)
{
    uint16_t renamed[2][256];
    uint32_t used = 0;
    size_t span = 0;
    memset(renamed, 0xFF, sizeof renamed);
    for (size_t i = 0; i < count; i++) {
        while (span < set->count && set->spans[span].to <= edges[i]) span++;
        const int inside = span < set->count && set->spans[span].from <= edges[i];
        uint16_t *name = &renamed[inside][class[i]];
        if (*name == 0xFFFF && used == 255) return 0;
        if (*name == 0xFFFF) *name = (uint16_t)used++;
        class[i] = *name;
    }
    *classes = used;
    return 1;
}

static int fill_members(tables *t, const uint32_t *edges, size_t count, const uint32_t *class)
{
    const regex_tree *tree = t->tree;
    t->in_set = locus_allocate(t->allocator, (size_t)t->r->classes * (tree->set_count + 1), 1);
    if (t->in_set == NULL) return 0;
    for (uint32_t i = 0; i < tree->set_count; i++) {
        const regex_set *set = tree->sets + i;
        size_t span = 0;
        for (size_t k = 0; k < count; k++) {
            while (span < set->count && set->spans[span].to <= edges[k]) span++;
            if (span < set->count && set->spans[span].from <= edges[k])
                t->in_set[class[k] * tree -> set_count + i] = 1;
        }
    }
    return 1;
}

static locus_status find_classes(tables *t)
{
    size_t count = 0;
    uint32_t *edges = boundaries(t->tree, &count, t->allocator);
    uint32_t *class = edges == NULL ? NULL : locus_allocate(t->allocator, count, sizeof *class);
    uint32_t *runs = edges == NULL ? NULL : locus_allocate(t->allocator, 2 * count, sizeof *runs);
    int good = class != NULL && runs != NULL, few = 1;
    t->r->classes = 1;
    for (uint32_t i = 0; i < t->tree->set_count && good && few; i++)
        few = refine(t->tree->sets + i, edges, count, class, &t->r->classes);
    for (size_t i = 0; good && i < count; i++) {
        runs[2 * i] = edges[i + 1] - edges[i];
        runs[2 * i + 1] = class[i];
    }
    good = good && fill_members(t, edges, count, class) &&
           locus_unicode_pages(&t->r->pages, runs, 2 * count, t->allocator);
    locus_release(t->allocator, edges);
    locus_release(t->allocator, class);
    locus_release(t->allocator, runs);
    if (!good) return locus_text_no_memory(t->error);
    if (few) return LOCUS_OK;
    return locus_fail(t->error, LOCUS_ERR_FORMAT,
                      "found an expression of more than 255 classes of characters");
}

/* ---- what a state needs to be in a set ---- */

/* `before`: the class of the character before, `classes`: there is none. */
static int holds(const tables *t, const state_set *now, const regex_state *s, uint32_t before,
                 int at_end)
{
    const uint32_t sets = t->tree->set_count;
    int good = 1;
    switch (s->kind) {
    case STATE_SPLIT: return has(now, s->next) || has(now, s->other);
    case STATE_AHEAD: good = has(now, s->other) != s->negative; break;
    case STATE_BEHIND:
        good = (before < t->r->classes && t->in_set[before * sets + s->set]) != s->negative;
        break;
    case STATE_BEGIN: good = before == t->r->classes; break;
    case STATE_END: good = at_end; break;
    default: return 0; /* they are there from the beginning */
    }
    return good && has(now, s->next);
}

/* The states that lead to those of the set without a character. Looks ahead are told first, the
 * innermost before the others. */
static void close_set(const tables *t, state_set *now, uint32_t before, int at_end)
{
    const regex_machine *m = t->m;
    for (uint32_t level = m->deepest + 1; level-- > 0;) {
        for (int grown = 1; grown;) {
            grown = 0;
            for (uint32_t i = 0; i < m->count; i++) {
                const regex_state *s = m->states + i;
                if (s->level != level || has(now, i) || !holds(t, now, s, before, at_end)) continue;
                now->bits[i / 64] |= UINT64_C(1) << (i % 64);
                grown = 1;
            }
        }
    }
}

/* S(i) from S(i + 1): `class` is that of the character between. */
static void step_back(const tables *t, const uint64_t *after, uint32_t class, state_set *now)
{
    const regex_machine *m = t->m;
    memset(now, 0, sizeof *now);
    for (uint32_t i = 0; i < m->count; i++) {
        const regex_state *s = m->states + i;
        const int in = s->kind == STATE_MATCH || (s->kind == STATE_TAKE && after != NULL &&
                                                  t->in_set[class * t->tree->set_count + s->set] &&
                                                  (after[s->next / 64] >> (s->next % 64) & 1) != 0);
        if (in) now->bits[i / 64] |= UINT64_C(1) << (i % 64);
    }
}

/* ---- sets by number ---- */

static locus_status too_large(const tables *t)
{
    return locus_fail(t->error, LOCUS_ERR_FORMAT,
                      "found an expression whose tables have more than %u cells, expected a "
                      "smaller one",
                      REGEX_MAX_CELLS);
}

/* Room for twice as many sets. */
static locus_status grow(tables *t)
{
    const uint32_t room = 2 * t->room < t->most ? 2 * t->room : t->most;
    if (t->known == t->most) return too_large(t);
    uint64_t *sets = locus_allocate(t->allocator, (size_t)room * t->words, sizeof *sets);
    uint16_t *back = locus_allocate(t->allocator, (size_t)room * t->r->symbols, sizeof *back);
    if (sets != NULL && back != NULL && t->known > 0) {
        memcpy(sets, t->sets, (size_t)t->known * t->words * sizeof *sets);
        memcpy(back, t->r->back, (size_t)t->known * t->r->symbols * sizeof *back);
    }
    locus_release(t->allocator, t->sets);
    locus_release(t->allocator, t->r->back);
    t->sets = sets;
    t->r->back = back;
    t->room = room;
    return sets == NULL || back == NULL ? locus_text_no_memory(t->error) : LOCUS_OK;
}

static locus_status number_of(tables *t, const state_set *set, uint16_t *number)
{
    uint64_t hash = 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < t->words; i++) {
        hash = (hash ^ set->bits[i]) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
    }
    size_t slot = (size_t)hash & (SLOTS - 1);
    for (; t->slots[slot] != 0; slot = (slot + 1) & (SLOTS - 1)) {
        const uint32_t known = (uint32_t)t->slots[slot] - 1;
        if (memcmp(t->sets + known * t->words, set->bits, t->words * sizeof *t->sets) != 0)
            continue;
        *number = (uint16_t)known;
        return LOCUS_OK;
    }
    if (t->known == t->room) LOCUS_TRY(grow(t));
    memcpy(t->sets + t->known * t->words, set->bits, t->words * sizeof *t->sets);
    *number = (uint16_t)t->known++;
    t->slots[slot] = (uint16_t)t->known;
    return LOCUS_OK;
}

/* Every set that can occur, and how they follow each other. */
static locus_status find_sets(tables *t)
{
    regex *r = t->r;
    state_set now;
    const uint32_t befores = r->behind ? r->classes + 1 : 1;
    for (uint32_t before = 0; before <= r->classes; before++) {
        step_back(t, NULL, 0, &now);
        close_set(t, &now, before, 1);
        LOCUS_TRY(number_of(t, &now, &r->last[before]));
    }
    for (uint32_t set = 0; set < t->known; set++) {
        for (uint32_t symbol = 0; symbol < r->symbols; symbol++) {
            step_back(t, t->sets + set * t->words, symbol / befores, &now);
            close_set(t, &now, symbol % befores, 0);
            uint16_t number = 0; /* the table may move */
            LOCUS_TRY(number_of(t, &now, &number));
            r->back[set * r->symbols + symbol] = number;
        }
    }
    r->sets = t->known;
    return LOCUS_OK;
}

/* ---- the way forth ---- */

/* The place that is reached from a state without a character, first alternatives first. */
static uint16_t follow(const tables *t, const uint64_t *set, uint32_t state)
{
    if ((set[state / 64] >> (state % 64) & 1) == 0) return REGEX_NONE;
    for (;;) {
        const regex_state *s = t->m->states + state;
        if (s->kind == STATE_MATCH) return REGEX_MATCH;
        if (s->kind == STATE_TAKE) return t->place_of[state];
        const int first = s->kind != STATE_SPLIT || (set[s->next / 64] >> (s->next % 64) & 1) != 0;
        state = first ? s->next : s->other;
    }
}

static locus_status find_ways(tables *t)
{
    regex *r = t->r;
    r->next = locus_allocate(t->allocator, (size_t)r->sets * r->places, sizeof *r->next);
    if (r->next == NULL) return locus_text_no_memory(t->error);
    for (uint32_t set = 0; set < r->sets; set++) {
        const uint64_t *bits = t->sets + set * t->words;
        uint16_t *row = r->next + (size_t)set * r->places;
        row[REGEX_START] = follow(t, bits, t->m->start);
        for (uint32_t i = 0; i < t->m->count; i++)
            if (t->m->states[i].kind == STATE_TAKE && t->m->states[i].level == 0)
                row[t->place_of[i]] = follow(t, bits, t->m->states[i].next);
    }
    return LOCUS_OK;
}

static locus_status build(tables *t)
{
    regex *r = t->r;
    LOCUS_TRY(find_classes(t));
    r->places = 1;
    for (uint32_t i = 0; i < t->m->count; i++)
        if (t->m->states[i].kind == STATE_TAKE && t->m->states[i].level == 0)
            t->place_of[i] = (uint16_t)r->places++;
    r->symbols = r->behind ? r->classes * (r->classes + 1) : r->classes;
    const uint32_t row = r->symbols > r->places ? r->symbols : r->places;
    t->most = REGEX_MAX_CELLS / row < MOST_SETS ? REGEX_MAX_CELLS / row : MOST_SETS;
    t->room = t->most < FEW_SETS ? t->most / 2 + 1 : FEW_SETS / 2;
    t->words = (t->m->count + 63) / 64;
    r->last = locus_allocate(t->allocator, r->classes + 1, sizeof *r->last);
    if (r->last == NULL) return locus_text_no_memory(t->error);
    LOCUS_TRY(grow(t));
    LOCUS_TRY(find_sets(t));
    return find_ways(t);
}

locus_status locus_regex_tables(regex *r, const regex_machine *m, const regex_tree *tree,
                                const locus_allocator *allocator, locus_error *error)
{
    tables t = {.r = r, .m = m, .tree = tree, .allocator = allocator, .error = error};
    r->behind = tree->asks_behind;
    t.slots = locus_allocate(allocator, SLOTS, sizeof *t.slots);
    t.place_of = locus_allocate(allocator, REGEX_MAX_STATES, sizeof *t.place_of);
    const locus_status status =
        t.slots == NULL || t.place_of == NULL ? locus_text_no_memory(error) : build(&t);
    locus_release(allocator, t.slots);
    locus_release(allocator, t.place_of);
    locus_release(allocator, t.in_set);
    locus_release(allocator, t.sets);
    return status;
}

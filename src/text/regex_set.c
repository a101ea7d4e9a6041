/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of characters, and those that have a name. */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "text/regex.h"
#include "text/unicode_categories.inc"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { CODES = 0x110000 };

void locus_regex_set_free(regex_set *set)
{
    locus_release(set->allocator, set->spans);
    *set = (regex_set){.allocator = set->allocator, .failed = set->failed};
}

void locus_regex_set_add(regex_set *set, uint32_t from, uint32_t to)
{
    if (from >= to || set->failed) return;
    if (set->count == set->capacity) {
        const size_t capacity = 2 * set->capacity + 16;
        regex_span *spans = locus_allocate(set->allocator, capacity, sizeof *spans);
        if (spans == NULL) {
            set->failed = 1;
            return;
        }
        if (set->count > 0) memcpy(spans, set->spans, set->count * sizeof *spans);
        locus_release(set->allocator, set->spans);
        set->spans = spans;
        set->capacity = capacity;
    }
    set->spans[set->count++] = (regex_span){from, to};
}

static int by_beginning(const void *a, const void *b)
{
    const regex_span *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

void locus_regex_set_settle(regex_set *set)
{
    size_t kept = 0;
    if (set->count == 0) return;
    int ordered = 1; /* as sets by name are */
    for (size_t i = 1; i < set->count && ordered; i++)
        ordered = set->spans[i - 1].from <= set->spans[i].from;
    if (!ordered) qsort(set->spans, set->count, sizeof *set->spans, by_beginning);
    for (size_t i = 1; i < set->count; i++) {
        regex_span *last = set->spans + kept;
        if (set->spans[i].from > last->to)
            set->spans[++kept] = set->spans[i];
        else if (set->spans[i].to > last->to)
            last->to = set->spans[i].to;
    }
    set->count = kept + 1;
}

void locus_regex_set_union(regex_set *set, const regex_set *other)
{
    for (size_t i = 0; i < other->count; i++)
        locus_regex_set_add(set, other->spans[i].from, other->spans[i].to);
    set->failed |= other->failed;
    locus_regex_set_settle(set);
}

void locus_regex_set_negate(regex_set *set)
{
    regex_set out = {.allocator = set->allocator, .failed = set->failed};
    uint32_t at = 0;
    locus_regex_set_settle(set);
    for (size_t i = 0; i < set->count; i++) {
        locus_regex_set_add(&out, at, set->spans[i].from);
        at = set->spans[i].to;
    }
    locus_regex_set_add(&out, at, CODES);
    locus_regex_set_free(set);
    *set = out;
}

/* De Morgan. */
void locus_regex_set_common(regex_set *set, const regex_set *other)
{
    regex_set outside = {.allocator = set->allocator};
    locus_regex_set_union(&outside, other);
    locus_regex_set_negate(&outside);
    locus_regex_set_negate(set);
    locus_regex_set_union(set, &outside);
    locus_regex_set_negate(set);
    locus_regex_set_free(&outside);
}

/* ---- names ---- */

/* Categories in the order of tools/unicode-tables.py; the last three are Nl, No and So again, for
 * characters that belong to words. */
#define BIT(i) (UINT64_C(1) << (i))
#define LETTERS (BIT(1) | BIT(2) | BIT(3) | BIT(4) | BIT(5))
#define MARKS (BIT(6) | BIT(7) | BIT(8))
#define NUMBERS (BIT(9) | BIT(10) | BIT(11) | BIT(30) | BIT(31))
#define MARKING (BIT(12) | BIT(13) | BIT(14) | BIT(15) | BIT(16) | BIT(17) | BIT(18))
#define SYMBOLS (BIT(19) | BIT(20) | BIT(21) | BIT(22) | BIT(32))
#define SEPARATORS (BIT(23) | BIT(24) | BIT(25))
#define OTHERS (BIT(0) | BIT(26) | BIT(27) | BIT(28) | BIT(29))
#define WORDS (LETTERS | MARKS | BIT(9) | BIT(12) | BIT(30) | BIT(32))

static const struct {
    const char *name; /* lower case, letters and digits */
    uint64_t categories;
} properties[] = {
    {"l", LETTERS},
    {"letter", LETTERS},
    {"lu", BIT(1)},
    {"uppercaseletter", BIT(1)},
    {"ll", BIT(2)},
    {"lowercaseletter", BIT(2)},
    {"lt", BIT(3)},
    {"titlecaseletter", BIT(3)},
    {"lm", BIT(4)},
    {"modifierletter", BIT(4)},
    {"lo", BIT(5)},
    {"otherletter", BIT(5)},
    {"lc", BIT(1) | BIT(2) | BIT(3)},
    {"m", MARKS},
    {"mark", MARKS},
    {"mn", BIT(6)},
    {"nonspacingmark", BIT(6)},
    {"mc", BIT(7)},
    {"spacingmark", BIT(7)},
    {"me", BIT(8)},
    {"n", NUMBERS},
    {"number", NUMBERS},
    {"nd", BIT(9)},
    {"decimalnumber", BIT(9)},
    {"digit", BIT(9)},
    {"nl", BIT(10) | BIT(30)},
    {"letternumber", BIT(10) | BIT(30)},
    {"no", BIT(11) | BIT(31)},
    {"othernumber", BIT(11) | BIT(31)},
    {"p", MARKING},
    {"punct", MARKING},
    {"punctuation", MARKING},
    {"pc", BIT(12)},
    {"pd", BIT(13)},
    {"dashpunctuation", BIT(13)},
    {"ps", BIT(14)},
    {"pe", BIT(15)},
    {"pi", BIT(16)},
    {"pf", BIT(17)},
    {"po", BIT(18)},
    {"s", SYMBOLS},
    {"symbol", SYMBOLS},
    {"sm", BIT(19)},
    {"mathsymbol", BIT(19)},
    {"sc", BIT(20)},
    {"currencysymbol", BIT(20)},
    {"sk", BIT(21)},
    {"so", BIT(22) | BIT(32)},
    {"z", SEPARATORS},
    {"separator", SEPARATORS},
    {"zs", BIT(23)},
    {"spaceseparator", BIT(23)},
    {"zl", BIT(24)},
    {"zp", BIT(25)},
    {"c", OTHERS},
    {"other", OTHERS},
    {"cn", BIT(0)},
    {"cc", BIT(26)},
    {"control", BIT(26)},
    {"cf", BIT(27)},
    {"format", BIT(27)},
    {"co", BIT(28)},
};

static const char *const scripts[] = {"arabic", "bengali", "cyrillic", "devanagari", "greek",
                                      "han",    "hangul",  "hebrew",   "hiragana",   "katakana",
                                      "latin",  "tamil",   "thai"};

static void add_categories(regex_set *set, uint64_t categories)
{
    uint32_t at = 0;
    for (size_t i = 0; i + 1 < COUNT(category_runs); i += 2) {
        if ((categories >> category_runs[i + 1] & 1) != 0)
            locus_regex_set_add(set, at, at + category_runs[i]);
        at += category_runs[i];
    }
    locus_regex_set_settle(set);
}

static int add_script(regex_set *set, const char *name)
{
    for (size_t i = 0; i < COUNT(scripts); i++) {
        if (strcmp(scripts[i], name) != 0) continue;
        for (size_t k = 0; k + 2 < COUNT(script_spans); k += 3)
            if (script_spans[k] == i)
                locus_regex_set_add(set, script_spans[k + 1], script_spans[k + 2]);
        locus_regex_set_settle(set);
        return 1;
    }
    return 0;
}

int locus_regex_set_property(regex_set *set, const char *name, size_t bytes)
{
    char plain[32];
    size_t used = 0;
    for (size_t i = 0; i < bytes; i++) {
        const char c = name[i];
        if (c == ' ' || c == '_' || c == '-') continue;
        if (used + 1 == sizeof plain) return 0;
        plain[used++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    plain[used] = '\0';
    if (strcmp(plain, "space") == 0) return locus_regex_set_escape(set, 's'), 1;
    for (size_t i = 0; i < COUNT(properties); i++) {
        if (strcmp(properties[i].name, plain) != 0) continue;
        add_categories(set, properties[i].categories);
        return 1;
    }
    return add_script(set, plain);
}

void locus_regex_set_escape(regex_set *set, char letter)
{
    switch (letter) {
    case 'd': add_categories(set, BIT(9)); break;
    case 'w': add_categories(set, WORDS | BIT(31)); break;
    case 'W': add_categories(set, WORDS); break;
    case 's':
        add_categories(set, SEPARATORS);
        locus_regex_set_add(set, '\t', '\r' + 1);
        locus_regex_set_add(set, 0x85, 0x86);
        break;
    case 'h':
        locus_regex_set_add(set, '0', '9' + 1);
        locus_regex_set_add(set, 'A', 'F' + 1);
        locus_regex_set_add(set, 'a', 'f' + 1);
        break;
    default: break;
    }
    locus_regex_set_settle(set);
}

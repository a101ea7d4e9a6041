/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling, and the two ways through a text. */
#include "text/regex.h"

#include <string.h>

#include "core/error.h"
#include "core/memory.h"

/* ---- compiling ---- */

static locus_status compile(regex *r, const char *text, size_t bytes,
                            const locus_allocator *allocator, locus_error *error)
{
    regex_tree tree = {.allocator = allocator};
    regex_machine machine = {.states = NULL};
    locus_status status = locus_regex_parse(&tree, text, bytes, error);
    if (status == LOCUS_OK) {
        machine.states = locus_allocate(allocator, REGEX_MAX_STATES, sizeof *machine.states);
        status = machine.states == NULL ? locus_text_no_memory(error)
                                        : locus_regex_machine(&machine, &tree, error);
    }
    if (status == LOCUS_OK) status = locus_regex_tables(r, &machine, &tree, allocator, error);
    locus_release(allocator, machine.states);
    locus_regex_tree_free(&tree);
    return status;
}

locus_status locus_regex_compile(regex **out, const char *text, size_t bytes,
                                 const locus_allocator *allocator, locus_error *error)
{
    *out = NULL;
    regex *r = locus_allocate(allocator, 1, sizeof *r);
    if (r == NULL) return locus_text_no_memory(error);
    const locus_status status = compile(r, text, bytes, allocator, error);
    if (status == LOCUS_OK)
        *out = r;
    else
        locus_regex_free(r, allocator);
    return status;
}

void locus_regex_free(regex *r, const locus_allocator *allocator)
{
    if (r == NULL) return;
    locus_release(allocator, r->pages.cells);
    locus_release(allocator, r->back);
    locus_release(allocator, r->last);
    locus_release(allocator, r->next);
    locus_release(allocator, r);
}

/* ---- back ---- */

/* Where the character before `end` begins. */
static size_t character_before(const char *text, size_t end)
{
    do {
        end--;
    } while (utf8_continues(text[end]));
    return end;
}

static uint32_t class_at(const regex *r, const char *text, size_t at)
{
    const unsigned char byte = (unsigned char)text[at];
    size_t length = 0;
    return unicode_cell(&r->pages, byte < 0x80 ? byte : utf8_read(text + at, &length));
}

static void scan_back(regex_scan *scan, uint16_t *sets)
{
    const regex *r = scan->r;
    size_t at = scan->end;
    uint32_t class = at > scan->begin
                         ? class_at(r, scan->text, at = character_before(scan->text, at))
                         : r->classes;
    uint32_t set = sets[scan->end - scan->begin] = r->last[class];
    while (class < r->classes) { /* `at` is where the character of `class` begins */
        const size_t here = at;
        uint32_t before = r->classes;
        if (at > scan->begin) {
            at = character_before(scan->text, at);
            before = class_at(r, scan->text, at);
        }
        set = r->back[(size_t)set * r->symbols +
                      (r->behind ? class * (r->classes + 1) + before : class)];
        sets[here - scan->begin] = (uint16_t)set;
        class = before;
        scan->steps++;
    }
}

int locus_regex_scan(regex_scan *scan, const regex *r, const char *text, size_t begin, size_t end,
                     text_array *memory, const locus_allocator *allocator)
{
    memory->count = 0;
    *scan = (regex_scan){.r = r, .text = text, .begin = begin, .end = end, .steps = scan->steps};
    if (!locus_text_array_reserve(memory, allocator, end - begin + 1, sizeof *scan->sets)) return 0;
    scan->sets = memory->data;
    scan_back(scan, memory->data);
    return 1;
}

/* ---- forth ---- */

size_t locus_regex_match(regex_scan *scan, size_t at)
{
    const regex *r = scan->r;
    const size_t begin = at;
    uint32_t place = r->next[(size_t)scan->sets[at - scan->begin] * r->places];
    if (place == REGEX_NONE) return at;
    while (place != REGEX_MATCH) {
        at += utf8_length((unsigned char)scan->text[at]);
        place = r->next[(size_t)scan->sets[at - scan->begin] * r->places + place];
    }
    scan->steps += at - begin;
    return at;
}

size_t locus_regex_find(regex_scan *scan, size_t at, size_t *end)
{
    for (; at < scan->end; at += utf8_length((unsigned char)scan->text[at])) {
        *end = locus_regex_match(scan, at);
        if (*end > at) return at;
        scan->steps++;
    }
    *end = scan->end;
    return scan->end;
}

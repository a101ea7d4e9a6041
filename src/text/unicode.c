/* SPDX-License-Identifier: Apache-2.0 */
#include "text/unicode.h"

#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/unicode_classes.inc"
#include "text/unicode_compositions.inc"
#include "text/unicode_decompositions.inc"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PAGE = 256 };

/* ---- pages from runs ---- */

static void fill(uint8_t *cells, uint32_t from, uint32_t to, uint8_t value)
{
    memset(cells + from, value, to - from);
}

/* How many pages no run covers altogether, and one per value. */
static size_t count_pages(const uint32_t *runs, size_t count)
{
    size_t pages = 0, values = 0;
    uint32_t at = 0, last = UINT32_MAX;
    for (size_t i = 0; i + 1 < count; i += 2) {
        at += runs[i];
        if (runs[i + 1] >= values) values = runs[i + 1] + 1;
        if (at % PAGE == 0 || at / PAGE == last) continue;
        last = at / PAGE;
        pages++;
    }
    return pages + values;
}

/* Pages that a run covers altogether are shared by all runs of that value. */
int locus_unicode_pages(unicode_pages *pages, const uint32_t *runs, size_t count,
                        const locus_allocator *allocator)
{
    uint16_t uniform[256];
    size_t used = 0;
    uint32_t at = 0;
    memset(uniform, 0xFF, sizeof uniform);
    memset(pages->page, 0xFF, sizeof pages->page);
    pages->cells = locus_allocate(allocator, count_pages(runs, count), PAGE);
    if (pages->cells == NULL) return 0;
    for (size_t i = 0; i + 1 < count; i += 2) {
        const uint32_t end = at + runs[i];
        const uint8_t value = (uint8_t)runs[i + 1];
        while (at < end) {
            const uint32_t page = at / PAGE, first = at % PAGE;
            const uint32_t last = end - page * PAGE < PAGE ? end - page * PAGE : PAGE;
            const int whole = first == 0 && last == PAGE;
            if (pages->page[page] == 0xFFFF) {
                const int known = whole && uniform[value] != 0xFFFF;
                pages->page[page] = known ? uniform[value] : (uint16_t)used;
                if (!known) used++;
                if (whole && !known) uniform[value] = pages->page[page];
            }
            fill(pages->cells + (size_t)pages->page[page] * PAGE, first, last, value);
            at = page * PAGE + last;
        }
    }
    return 1;
}

/* ---- decompositions ---- */

enum decomposition_head { LENGTH_BITS = 5, LENGTH_MASK = (1 << LENGTH_BITS) - 1 };
enum decomposition_kind { KIND_CANONICAL, KIND_COMPATIBLE, KIND_PYTHON };

/* Entries of one code point follow each other; the index holds the first. */
static size_t index_decompositions(uint32_t *codes, uint32_t *places)
{
    uint32_t code = 0;
    size_t count = 0;
    for (size_t i = 0; i + 1 < COUNT(decompositions);) {
        const int same = i > 0 && decompositions[i] == 0;
        code += decompositions[i];
        if (!same) {
            if (codes != NULL) codes[count] = code, places[count] = (uint32_t)i;
            count++;
        }
        i += 2 + (decompositions[i + 1] & LENGTH_MASK);
    }
    return count;
}

locus_status locus_unicode_open(unicode *u, const locus_allocator *allocator, locus_error *error)
{
    memset(u, 0, sizeof *u);
    u->decomposed_count = index_decompositions(NULL, NULL);
    u->decomposed = locus_allocate(allocator, u->decomposed_count, sizeof *u->decomposed);
    u->expansion = locus_allocate(allocator, u->decomposed_count, sizeof *u->expansion);
    if (u->decomposed != NULL && u->expansion != NULL &&
        locus_unicode_pages(&u->classes, class_runs, COUNT(class_runs), allocator) &&
        locus_unicode_pages(&u->ccc, ccc_runs, COUNT(ccc_runs), allocator)) {
        index_decompositions(u->decomposed, u->expansion);
        return LOCUS_OK;
    }
    locus_unicode_close(u, allocator);
    return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the Unicode tables");
}

void locus_unicode_close(unicode *u, const locus_allocator *allocator)
{
    locus_release(allocator, u->classes.cells);
    locus_release(allocator, u->ccc.cells);
    locus_release(allocator, u->decomposed);
    locus_release(allocator, u->expansion);
    memset(u, 0, sizeof *u);
}

unsigned locus_unicode_ccc(const unicode *u, unicode_form form, uint32_t code)
{
    const unsigned ccc = unicode_cell(&u->ccc, code);
    if (ccc == 0 || form == UNICODE_PY_NFKD) return ccc;
    return (unicode_class(u, code) & UNICODE_NO_CCC) != 0 ? 0 : ccc;
}

/* Hangul syllables are composed by arithmetic (Unicode, chapter 3.12). */
enum hangul {
    HANGUL_S = 0xAC00,
    HANGUL_L = 0x1100,
    HANGUL_V = 0x1161,
    HANGUL_T = 0x11A7,
    HANGUL_LS = 19,
    HANGUL_VS = 21,
    HANGUL_TS = 28,
    HANGUL_SS = HANGUL_LS * HANGUL_VS * HANGUL_TS
};

static size_t decompose_hangul(uint32_t code, uint32_t *out)
{
    const uint32_t s = code - HANGUL_S, t = s % HANGUL_TS;
    out[0] = HANGUL_L + s / (HANGUL_VS * HANGUL_TS);
    out[1] = HANGUL_V + s / HANGUL_TS % HANGUL_VS;
    out[2] = HANGUL_T + t;
    return t == 0 ? 2 : 3;
}

/* The place of the first entry of `code`, or COUNT(decompositions). */
static size_t find_decomposition(const unicode *u, uint32_t code)
{
    size_t low = 0, high = u->decomposed_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (u->decomposed[middle] < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == u->decomposed_count || u->decomposed[low] != code) return COUNT(decompositions);
    return u->expansion[low];
}

static int serves(unicode_form form, uint32_t kind)
{
    if (kind == KIND_CANONICAL) return 1;
    if (kind == KIND_PYTHON) return form == UNICODE_PY_NFKD;
    return form == UNICODE_NFKD || form == UNICODE_NFKC || form == UNICODE_PY_NFKD;
}

size_t locus_unicode_decompose(const unicode *u, unicode_form form, uint32_t code,
                               uint32_t out[UNICODE_MAX_EXPANSION])
{
    out[0] = code;
    if (code < 0xA0) return 1;
    if (code - HANGUL_S < HANGUL_SS) return decompose_hangul(code, out);
    size_t length = 1, at = find_decomposition(u, code);
    for (int first = 1; at < COUNT(decompositions) && (first || decompositions[at] == 0);
         first = 0) {
        const uint32_t head = decompositions[at + 1], n = head & LENGTH_MASK;
        if (serves(form, head >> LENGTH_BITS)) { /* the last that serves is the fullest */
            memcpy(out, decompositions + at + 2, n * sizeof *out);
            length = n;
        }
        at += 2 + n;
    }
    return length;
}

static uint32_t compose_hangul(uint32_t first, uint32_t second)
{
    const uint32_t s = first - HANGUL_S;
    if (first - HANGUL_L < HANGUL_LS && second - HANGUL_V < HANGUL_VS)
        return HANGUL_S +
               ((first - HANGUL_L) * HANGUL_VS + (second - HANGUL_V)) * (uint32_t)HANGUL_TS;
    if (s < HANGUL_SS && s % HANGUL_TS == 0 && second > HANGUL_T && second < HANGUL_T + HANGUL_TS)
        return first + (second - HANGUL_T);
    return 0;
}

uint32_t locus_unicode_compose(uint32_t first, uint32_t second)
{
    const uint32_t hangul = compose_hangul(first, second);
    if (hangul != 0) return hangul;
    size_t low = 0, high = COUNT(compositions) / 3;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const uint32_t *entry = compositions + 3 * middle;
        if (entry[0] == first && entry[1] == second) return entry[2];
        if (entry[0] < first || (entry[0] == first && entry[1] < second))
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* ---- case ---- */

size_t locus_unicode_lower(uint32_t code, uint32_t out[2])
{
    out[0] = code;
    if (code < 0x80) {
        if (code - 'A' < 26) out[0] = code + 32;
        return 1;
    }
    if (code == 0x130) { /* SpecialCasing.txt: the one unconditional mapping to two */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    size_t low = 0, high = COUNT(lower_runs) / 4;
    while (low < high) { /* the last run that begins at or before the code */
        const size_t middle = low + (high - low) / 2;
        if ((uint32_t)lower_runs[4 * middle] <= code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return 1;
    const int32_t *run = lower_runs + 4 * (low - 1);
    const uint32_t distance = code - (uint32_t)run[0], stride = (uint32_t)run[2];
    if (distance % stride == 0 && distance / stride < (uint32_t)run[1])
        out[0] = (uint32_t)((int32_t)code + run[3]);
    return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXT_UNICODE_H
#define LOCUS_TEXT_UNICODE_H

/* Unicode as the reference libraries know it. The tables were asked of these libraries,
 * property by property (tools/unicode-tables.py), because they were built with different
 * versions of Unicode and ids depend on that. */

#include <locus/status.h>

#include "core/utf8.h"

/* Class bits, in the order of tools/unicode-tables.py. "py": as Python 3.11 has it. */
enum unicode_bit {
    UNICODE_SPACE = 1 << 0, /* Rust's char::is_whitespace */
    UNICODE_PY_SPACE = 1 << 1,
    UNICODE_PUNCTUATION = 1 << 2,     /* BERT's: ASCII symbols and category P */
    UNICODE_REMOVED = 1 << 3,         /* BERT's clean_text drops it           */
    UNICODE_BERT_SPACE = 1 << 4,      /* BERT's clean_text makes it a space   */
    UNICODE_MARK_NONSPACING = 1 << 5, /* category Mn                          */
    UNICODE_MARK = 1 << 6,            /* category M                           */
    UNICODE_LETTER = 1 << 7,          /* \p{L} of the splitting expressions   */
    UNICODE_NUMBER = 1 << 8,          /* \p{N}                                */
    UNICODE_REGEX_SPACE = 1 << 9,     /* \s                                   */
    UNICODE_NUMERIC = 1 << 10,        /* Rust's char::is_numeric              */
    UNICODE_WORD = 1 << 11,           /* \w                                   */
    UNICODE_EXTEND = 1 << 12,         /* continues a grapheme                 */
    UNICODE_PREPEND = 1 << 13,        /* begins one with what follows         */
    UNICODE_GRAPHEME_CONTROL = 1 << 14,
    UNICODE_CJK = 1 << 15, /* BERT puts spaces around it */
    UNICODE_PY_DIGIT = 1 << 16,
    UNICODE_NO_CCC = 1 << 17,       /* class 0 in `tokenizers`, another in Python */
    UNICODE_PY_NO_LOWER = 1 << 18,  /* has a lower case in `tokenizers` only      */
    UNICODE_PICTOGRAPHIC = 1 << 19, /* a joiner ties it to another */
    UNICODE_CONSONANT = 1 << 20,    /* of scripts with conjuncts   */
    UNICODE_LINKER = 1 << 21,
    UNICODE_CONJUNCT_EXTEND = 1 << 22,
};

#define UNICODE_PAGES (0x110000 >> 8)
#define UNICODE_REPLACEMENT 0xFFFDu

/* A value per code point, in pages of 256 that equal neighbours share. */
typedef struct unicode_pages {
    uint16_t page[UNICODE_PAGES];
    uint8_t *cells;
} unicode_pages;

typedef struct unicode {
    unicode_pages classes, ccc;
    uint32_t *decomposed; /* code points that have a decomposition, ascending */
    uint32_t *expansion;  /* where each stands in the table                   */
    size_t decomposed_count;
} unicode;

locus_status locus_unicode_open(unicode *u, const locus_allocator *allocator, locus_error *error);
void locus_unicode_close(unicode *u, const locus_allocator *allocator);

/* From (length, value) pairs over all code points, values below 256. 0: no memory. */
int locus_unicode_pages(unicode_pages *pages, const uint32_t *runs, size_t count,
                        const locus_allocator *allocator);

extern const uint32_t locus_unicode_class_bits[];

static inline unsigned unicode_cell(const unicode_pages *pages, uint32_t code)
{
    return pages->cells[(size_t)pages->page[code >> 8] << 8 | (code & 0xFF)];
}

/* Class bits of a scalar value. */
static inline uint32_t unicode_class(const unicode *u, uint32_t code)
{
    return locus_unicode_class_bits[unicode_cell(&u->classes, code)];
}

/* The normalization forms of `tokenizers`, and NFKD of Python. */
typedef enum unicode_form {
    UNICODE_NFD,
    UNICODE_NFKD,
    UNICODE_NFC,
    UNICODE_NFKC,
    UNICODE_PY_NFKD
} unicode_form;

/* Canonical combining class in the Unicode version of `form`. */
unsigned locus_unicode_ccc(const unicode *u, unicode_form form, uint32_t code);

/* The full decomposition of `code` for `form`: its length; out holds at most
 * UNICODE_MAX_EXPANSION. 1 and the code point itself when there is none. */
#define UNICODE_MAX_EXPANSION 18
size_t locus_unicode_decompose(const unicode *u, unicode_form form, uint32_t code,
                               uint32_t out[UNICODE_MAX_EXPANSION]);

/* The primary composite of two code points, 0: there is none. */
uint32_t locus_unicode_compose(uint32_t first, uint32_t second);

/* Lower case: one code point, or two for U+0130. Returns how many. */
size_t locus_unicode_lower(uint32_t code, uint32_t out[2]);

/* ---- UTF-8 that is known to be well formed ---- */

static inline size_t utf8_length(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

static inline int utf8_continues(char byte) { return ((unsigned char)byte & 0xC0) == 0x80; }

/* The code point at text[0]; *length is its bytes. */
static inline uint32_t utf8_read(const char *text, size_t *length)
{
    const unsigned char *s = (const unsigned char *)text;
    const size_t n = utf8_length(s[0]);
    *length = n;
    if (n == 1) return s[0];
    if (n == 2) return (uint32_t)(s[0] & 0x1F) << 6 | (s[1] & 0x3F);
    if (n == 3) return (uint32_t)(s[0] & 0x0F) << 12 | (uint32_t)(s[1] & 0x3F) << 6 | (s[2] & 0x3F);
    return (uint32_t)(s[0] & 0x07) << 18 | (uint32_t)(s[1] & 0x3F) << 12 |
           (uint32_t)(s[2] & 0x3F) << 6 | (s[3] & 0x3F);
}

/* The code point that ends before text[end]; end > 0. */
static inline uint32_t utf8_read_back(const char *text, size_t end, size_t *length)
{
    size_t begin = end - 1;
    while (begin > 0 && utf8_continues(text[begin])) begin--;
    return utf8_read(text + begin, length);
}

#endif

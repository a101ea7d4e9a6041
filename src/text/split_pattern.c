/* SPDX-License-Identifier: Apache-2.0 */
/* The regular expressions that published byte-level tokenizers split with, each as a function
 * that tells where the match at a place ends. They take the first alternative that matches, as
 * the expressions do; every character is matched by one of them. No expression engine: a file
 * with any other expression is refused, so none can take exponential time. */
#include <string.h>

#include "text/tokenizer.h"

enum character_kind { SPACE = 1, LETTER = 2, NUMBER = 4 };

/* Which of \s, \p{L}, \p{N} a character is; its bytes in *length. */
static unsigned kind_at(const unicode *u, const char *text, size_t at, size_t *length)
{
    const unsigned char byte = (unsigned char)text[at];
    if (byte < 0x80) {
        *length = 1;
        if ((byte | 32u) - 'a' < 26u) return LETTER;
        if (byte - (unsigned)'0' < 10u) return NUMBER;
        return byte == ' ' || byte - 9u < 5u ? SPACE : 0;
    }
    const uint32_t class = unicode_class(u, utf8_read(text + at, length));
    if ((class & UNICODE_LETTER) != 0) return LETTER;
    if ((class & UNICODE_NUMBER) != 0) return NUMBER;
    return (class & UNICODE_REGEX_SPACE) != 0 ? SPACE : 0;
}

/* Where a run of characters of one kind ends. */
static size_t run_end(const unicode *u, const char *text, size_t at, size_t end, unsigned kind)
{
    size_t length = 0;
    while (at < end && kind_at(u, text, at, &length) == kind) at += length;
    return at;
}

/* 's 't 're 've 'm 'll 'd: bytes, or 0. With `fold`, in any case; U+017F is an s then. */
static size_t contraction(const char *text, size_t at, size_t end, int fold)
{
    static const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (text[at] != '\'') return 0;
    const size_t left = end - at - 1;
    if (fold && left >= 2 && memcmp(text + at + 1, "\xC5\xBF", 2) == 0) return 3;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t bytes = strlen(endings[i]);
        if (bytes > left) continue;
        size_t same = 0;
        while (same < bytes && (text[at + 1 + same] | (fold ? 32 : 0)) == endings[i][same]) same++;
        if (same == bytes) return 1 + bytes;
    }
    return 0;
}

/* \s+(?!\S)|\s+ : all of the white space at the end of the text; else all but its last
 * character, if there are two or more. */
static size_t space_end(const unicode *u, const char *text, size_t at, size_t end)
{
    size_t length = 0, last = at, now = at;
    while (now < end && kind_at(u, text, now, &length) == SPACE) {
        last = now;
        now += length;
    }
    return now == end || last == at ? now : last;
}

size_t locus_match_gpt2(const unicode *u, const char *text, size_t at, size_t end)
{
    size_t length = 0;
    const size_t short_form = contraction(text, at, end, 0);
    if (short_form > 0) return at + short_form;
    const unsigned kind = kind_at(u, text, at, &length);
    if (kind != SPACE) return run_end(u, text, at + length, end, kind);
    if (text[at] == ' ' && at + 1 < end) {
        const unsigned next = kind_at(u, text, at + 1, &length);
        if (next != SPACE) return run_end(u, text, at + 1 + length, end, next);
    }
    return space_end(u, text, at, end);
}

static int is_newline(char byte) { return byte == '\r' || byte == '\n'; }

/* \s*[\r\n]+ : white space up to its last line end, or 0. */
static size_t line_end(const unicode *u, const char *text, size_t at, size_t end)
{
    const size_t stop = run_end(u, text, at, end, SPACE);
    for (size_t i = stop; i > at; i--)
        if (is_newline(text[i - 1])) return i;
    return 0;
}

/* [^\s\p{L}\p{N}]+[\r\n]* from `at` */
static size_t symbols_end(const unicode *u, const char *text, size_t at, size_t end)
{
    at = run_end(u, text, at, end, 0);
    while (at < end && is_newline(text[at])) at++;
    return at;
}

static size_t numbers_end(const unicode *u, const char *text, size_t at, size_t end, size_t most)
{
    size_t length = 0;
    for (size_t i = 0; i < most && at < end && kind_at(u, text, at, &length) == NUMBER; i++)
        at += length;
    return at;
}

static size_t match_newer(const unicode *u, const char *text, size_t at, size_t end, size_t digits)
{
    size_t length = 0, next_length = 0;
    const size_t short_form = contraction(text, at, end, 1);
    if (short_form > 0) return at + short_form;
    const unsigned kind = kind_at(u, text, at, &length);
    if (kind == LETTER) return run_end(u, text, at, end, LETTER);
    if (kind == NUMBER) return numbers_end(u, text, at, end, digits);
    const size_t next = at + length;
    const unsigned next_kind = next < end ? kind_at(u, text, next, &next_length) : SPACE;
    if (!is_newline(text[at]) && next < end && next_kind == LETTER)
        return run_end(u, text, next, end, LETTER);
    if (kind == 0) return symbols_end(u, text, at, end);
    if (text[at] == ' ' && next < end && next_kind == 0) return symbols_end(u, text, next, end);
    const size_t line = line_end(u, text, at, end);
    return line > 0 ? line : space_end(u, text, at, end);
}

size_t locus_match_llama3(const unicode *u, const char *text, size_t at, size_t end)
{
    return match_newer(u, text, at, end, 3);
}

size_t locus_match_qwen2(const unicode *u, const char *text, size_t at, size_t end)
{
    return match_newer(u, text, at, end, 1);
}

/*  ?[^(\s|[.,!?...])]+ : what is not a bracket, white space, a bar or one of these marks. */
static int bloom_breaks(const unicode *u, const char *text, size_t at, size_t *length)
{
    static const uint32_t marks[] = {'(',    ')',    '|',    '.',    ',',    '!',    '?',
                                     0x2026, 0x3002, 0xFF0C, 0x3001, 0x0964, 0x06D4, 0x060C};
    const uint32_t code = utf8_read(text + at, length);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i] == code) return 1;
    return (unicode_class(u, code) & UNICODE_REGEX_SPACE) != 0;
}

size_t locus_match_bloom(const unicode *u, const char *text, size_t at, size_t end)
{
    size_t length = 0, now = at;
    if (text[now] == ' ') now++;
    const size_t begin = now;
    while (now < end && !bloom_breaks(u, text, now, &length)) now += length;
    return now == begin ? at : now;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* From a text to words. A splitter finds matches in each span; its behaviour says what becomes of
 * them and of the gaps between them. Two splitters rewrite the text as well. */
#include <string.h>

#include "core/error.h"
#include "text/tokenizer.h"

typedef struct found {
    uint32_t begin, end;
    uint32_t is_match;
} found;

typedef struct pass {
    const unicode *u;
    const splitter *step;
    const text_buffer *in;
    locus_encoding *e;
    int failed;
} pass;

/* Bytes of the match at `at`, 0: none. */
static size_t match_at(const pass *p, size_t at, size_t end)
{
    const char *text = p->in->data;
    const splitter *step = p->step;
    size_t length = 0;
    if (step->kind == SPLIT_STRING) {
        const size_t bytes = step->pattern.bytes;
        const int same = bytes <= end - at && memcmp(text + at, step->pattern.text, bytes) == 0;
        return same ? bytes : 0;
    }
    const uint32_t code = utf8_read(text + at, &length);
    if (step->kind == SPLIT_METASPACE) return code == step->replacement ? length : 0;
    const uint32_t class = unicode_class(p->u, code);
    const uint32_t bit = step->kind == SPLIT_SPACE    ? UNICODE_SPACE
                         : step->kind == SPLIT_DIGITS ? UNICODE_NUMERIC
                                                      : UNICODE_PUNCTUATION;
    return (class & bit) != 0 ? length : 0;
}

static void add_found(pass *p, size_t begin, size_t end, int is_match)
{
    text_array *list = &p->e->matches;
    if (begin == end) return;
    if (!locus_text_array_reserve(list, p->e->allocator, list->count + 1, sizeof(found))) {
        p->failed = 1;
        return;
    }
    ((found *)list->data)[list->count++] =
        (found){(uint32_t)begin, (uint32_t)end, (uint32_t)is_match};
}

/* Matches and gaps of one span, in order. */
static void find_all(pass *p, text_span span)
{
    const int invert = p->step->invert;
    size_t gap = span.begin;
    p->e->matches.count = 0;
    for (size_t at = span.begin; at < span.end;) {
        const size_t bytes = match_at(p, at, span.end);
        if (bytes == 0) {
            at += utf8_length((unsigned char)p->in->data[at]);
            continue;
        }
        add_found(p, gap, at, invert);
        add_found(p, at, at + bytes, !invert);
        at += bytes;
        gap = at;
    }
    add_found(p, gap, span.end, invert);
}

static void add_span(pass *p, size_t begin, size_t end)
{
    text_array *out = &p->e->spans[1];
    if (begin == end) return;
    if (!locus_text_array_reserve(out, p->e->allocator, out->count + 1, sizeof(text_span))) {
        p->failed = 1;
        return;
    }
    ((text_span *)out->data)[out->count++] = (text_span){(uint32_t)begin, (uint32_t)end};
}

/* A match joins what is before it: the gap, or (contiguous) everything of its own kind. */
static void merge_backwards(pass *p, const found *list, size_t count)
{
    const int contiguous = p->step->behaviour == SPLIT_CONTIGUOUS;
    size_t begin = 0;
    for (size_t i = 0; i < count; i++) {
        const int before = i > 0 && list[i - 1].is_match;
        const int joins =
            i > 0 && (contiguous ? before == (int)list[i].is_match : list[i].is_match && !before);
        if (!joins && i > 0) add_span(p, list[begin].begin, list[i - 1].end);
        if (!joins) begin = i;
    }
    if (count > 0) add_span(p, list[begin].begin, list[count - 1].end);
}

/* A match joins the gap behind it; of several in a row the last does. */
static void merge_forwards(pass *p, const found *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int joins = list[i].is_match && i + 1 < count && !list[i + 1].is_match;
        add_span(p, list[i].begin, joins ? list[i + 1].end : list[i].end);
        if (joins) i++;
    }
}

static void apply(pass *p)
{
    const found *list = p->e->matches.data;
    const size_t count = p->e->matches.count;
    switch (p->step->behaviour) {
    case SPLIT_REMOVED:
    case SPLIT_ISOLATED:
        for (size_t i = 0; i < count; i++)
            if (p->step->behaviour == SPLIT_ISOLATED || !list[i].is_match)
                add_span(p, list[i].begin, list[i].end);
        break;
    case SPLIT_CONTIGUOUS:
    case SPLIT_MERGED_WITH_PREVIOUS: merge_backwards(p, list, count); break;
    case SPLIT_MERGED_WITH_NEXT: merge_forwards(p, list, count); break;
    }
}

static void split_regex(pass *p, text_span span)
{
    const splitter *step = p->step;
    const int plain = step->behaviour == SPLIT_ISOLATED; /* no list is needed */
    regex_scan scan = {.steps = 0};
    size_t done = span.begin, end = 0;
    p->e->matches.count = 0;
    if (!locus_regex_scan(&scan, step->regex, p->in->data, span.begin, span.end, &p->e->sets,
                          p->e->allocator)) {
        p->failed = 1;
        return;
    }
    while (done < span.end && !p->failed) {
        const size_t begin = locus_regex_find(&scan, done, &end);
        if (plain) {
            add_span(p, done, begin);
            add_span(p, begin, end);
        } else {
            add_found(p, done, begin, step->invert);
            add_found(p, begin, end, !step->invert);
        }
        done = end;
    }
    if (!plain) apply(p);
}

/* Words, and runs of what is neither of a word nor white space. */
static void split_words(pass *p, text_span span)
{
    size_t begin = span.begin;
    uint32_t last = 0;
    for (size_t at = span.begin, length = 0; at < span.end; at += length) {
        const uint32_t class = unicode_class(p->u, utf8_read(p->in->data + at, &length));
        const uint32_t kind = class & UNICODE_WORD ? UNICODE_WORD : class & UNICODE_SPACE;
        if (kind != last && last != UNICODE_SPACE) add_span(p, begin, at);
        if (kind != last) begin = at;
        last = kind;
    }
    if (last != UNICODE_SPACE) add_span(p, begin, span.end);
}

static void split_fixed(pass *p, text_span span)
{
    size_t begin = span.begin;
    uint32_t count = 0;
    for (size_t at = span.begin; at < span.end;) {
        at += utf8_length((unsigned char)p->in->data[at]);
        if (++count < p->step->length && at < span.end) continue;
        add_span(p, begin, at);
        begin = at;
        count = 0;
    }
}

/* White space removed, punctuation alone. */
static void split_bert(pass *p, text_span span)
{
    const char *text = p->in->data;
    size_t begin = span.begin;
    for (size_t at = span.begin, length = 0; at < span.end; at += length) {
        const uint32_t class = unicode_class(p->u, utf8_read(text + at, &length));
        if ((class & (UNICODE_SPACE | UNICODE_PUNCTUATION)) == 0) continue;
        add_span(p, begin, at);
        if ((class & UNICODE_SPACE) == 0) add_span(p, at, at + length);
        begin = at + length;
    }
    add_span(p, begin, span.end);
}

static void split_span(pass *p, text_span span)
{
    switch (p->step->kind) {
    case SPLIT_BERT: split_bert(p, span); break;
    case SPLIT_WORDS: split_words(p, span); break;
    case SPLIT_REGEX: split_regex(p, span); break;
    case SPLIT_FIXED: split_fixed(p, span); break;
    default: find_all(p, span); apply(p);
    }
}

/* ---- splitters that rewrite ---- */

static int starts_with(const text_buffer *in, text_span span, uint32_t code)
{
    size_t length = 0;
    return span.begin < span.end && utf8_read(in->data + span.begin, &length) == code;
}

/* Copy a span, spaces replaced by the visible one. */
static void copy_span(const splitter *step, const text_buffer *in, text_span span, text_buffer *out)
{
    if (step->kind == SPLIT_LETTERS) {
        locus_text_letters(in, span.begin, span.end, out);
        return;
    }
    if (step->kind == SPLIT_PREFIX) {
        locus_text_buffer_copy(out, in, span.begin, span.end);
        return;
    }
    for (size_t at = span.begin; at < span.end;) {
        const char *space = memchr(in->data + at, ' ', span.end - at);
        const size_t stop = space == NULL ? span.end : (size_t)(space - in->data);
        locus_text_buffer_copy(out, in, at, stop);
        at = stop;
        if (space == NULL) break;
        locus_text_buffer_add(out, step->replacement, text_origin(in, at));
        at++;
    }
}

/* Does the span get a space in front? */
static int wants_prefix(const splitter *step, const text_buffer *in, text_span span)
{
    if (step->kind == SPLIT_LETTERS) return 0;
    if (step->kind == SPLIT_PREFIX) return !starts_with(in, span, ' ');
    if (step->scheme == PREPEND_NEVER || starts_with(in, span, step->replacement) ||
        starts_with(in, span, ' '))
        return 0;
    return step->scheme == PREPEND_ALWAYS || text_origin(in, span.begin) == 0;
}

static void rewrite_spans(pass *p, text_buffer *out)
{
    const splitter *step = p->step;
    const text_span *spans = p->e->spans[0].data;
    for (size_t i = 0; i < p->e->spans[0].count && !out->failed; i++) {
        const size_t begin = out->bytes;
        if (wants_prefix(step, p->in, spans[i]))
            locus_text_buffer_add(out, step->kind == SPLIT_METASPACE ? step->replacement : ' ',
                                  text_origin(p->in, spans[i].begin));
        copy_span(step, p->in, spans[i], out);
        add_span(p, begin, out->bytes);
    }
    if (out->failed) p->failed = 1;
}

static void swap_spans(locus_encoding *e)
{
    const text_array kept = e->spans[0];
    e->spans[0] = e->spans[1];
    e->spans[1] = kept;
    e->spans[1].count = 0;
}

locus_status locus_text_split(const locus_tokenizer *t, const splitter *step, text_buffer **buffer,
                              locus_encoding *e, locus_error *error)
{
    pass p = {.u = &t->unicode, .step = step, .in = *buffer, .e = e};
    const int only_rewrites = step->kind == SPLIT_PREFIX || step->kind == SPLIT_LETTERS;
    const int rewrites = only_rewrites || step->kind == SPLIT_METASPACE;
    e->spans[1].count = 0;
    if (rewrites && e->spans[0].count > 0) {
        text_buffer *out = *buffer == &e->buffer[0] ? &e->buffer[1] : &e->buffer[0];
        const text_span *spans = e->spans[0].data;
        locus_text_buffer_clear(out, text_origin(*buffer, spans[0].begin));
        locus_text_buffer_limit(out, e->source[e->segment].bytes);
        rewrite_spans(&p, out);
        if (out->failed) return locus_text_buffer_failure(out, error);
        swap_spans(e);
        p.in = *buffer = out;
    }
    if (!only_rewrites && (step->kind != SPLIT_METASPACE || step->split)) {
        const text_span *spans = e->spans[0].data;
        for (size_t i = 0; i < e->spans[0].count && !p.failed; i++) split_span(&p, spans[i]);
        swap_spans(e);
    }
    if (p.failed) return locus_text_buffer_failure(p.in, error);
    return LOCUS_OK;
}

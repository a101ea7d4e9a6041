/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a normalizer, and those that are short. */
#include <string.h>

#include "core/error.h"
#include "text/tokenizer.h"

/* ---- character by character ---- */

static void strip_accents(const unicode *u, const text_buffer *in, text_buffer *out)
{
    for (size_t at = 0, length = 0; at < in->bytes; at += length) {
        const uint32_t code = utf8_read(in->data + at, &length);
        if (code < 0x80 || (unicode_class(u, code) & UNICODE_MARK) == 0)
            locus_text_buffer_add(out, code, text_origin(in, at));
    }
}

static void lower(const unicode *u, const text_buffer *in, text_buffer *out, int python)
{
    uint32_t codes[2];
    for (size_t at = 0, length = 0; at < in->bytes; at += length) {
        const uint32_t code = utf8_read(in->data + at, &length);
        const size_t origin = text_origin(in, at);
        size_t count = locus_unicode_lower(code, codes);
        if (python && code >= 0x80 && (unicode_class(u, code) & UNICODE_PY_NO_LOWER) != 0) {
            codes[0] = code;
            count = 1;
        }
        for (size_t i = 0; i < count; i++) locus_text_buffer_add(out, codes[i], origin);
    }
}

static void py_drop_combining(const unicode *u, const text_buffer *in, text_buffer *out)
{
    for (size_t at = 0, length = 0; at < in->bytes; at += length) {
        const uint32_t code = utf8_read(in->data + at, &length);
        if (locus_unicode_ccc(u, UNICODE_PY_NFKD, code) == 0)
            locus_text_buffer_add(out, code, text_origin(in, at));
    }
}

/* " ".join(text.split()): each run of white space one space, none at the ends. */
static void py_join_words(const unicode *u, const text_buffer *in, text_buffer *out)
{
    size_t space = SIZE_MAX; /* origin of the run that may become a space */
    for (size_t at = 0, length = 0; at < in->bytes; at += length) {
        const uint32_t code = utf8_read(in->data + at, &length);
        const size_t origin = text_origin(in, at);
        if ((unicode_class(u, code) & UNICODE_PY_SPACE) != 0) {
            if (space == SIZE_MAX) space = origin;
            continue;
        }
        if (space != SIZE_MAX && out->bytes > 0) locus_text_buffer_add(out, ' ', space);
        space = SIZE_MAX;
        locus_text_buffer_add(out, code, origin);
    }
}

/* ---- ends ---- */

static void strip(const unicode *u, const normalizer *step, const text_buffer *in, text_buffer *out)
{
    size_t begin = 0, end = in->bytes, length = 0;
    while (step->left && begin < end &&
           (unicode_class(u, utf8_read(in->data + begin, &length)) & UNICODE_SPACE) != 0)
        begin += length;
    while (step->right && end > begin &&
           (unicode_class(u, utf8_read_back(in->data, end, &length)) & UNICODE_SPACE) != 0)
        end -= length;
    locus_text_buffer_copy(out, in, begin, end);
}

static void add_text(text_buffer *out, const text_string *text, size_t origin)
{
    for (size_t at = 0, length = 0; at < text->bytes; at += length)
        locus_text_buffer_add(out, utf8_read(text->text + at, &length), origin);
}

static void prepend(const normalizer *step, const text_buffer *in, text_buffer *out)
{
    if (in->bytes == 0) return;
    add_text(out, &step->content, text_origin(in, 0));
    locus_text_buffer_copy(out, in, 0, in->bytes);
}

/* ---- replacing ---- */

/* [from, to) becomes the content of the step, with the origin of the last character that it
 * replaces; what is between `done` and `from` stays. */
static void put_content(const normalizer *step, const text_buffer *in, size_t done, size_t from,
                        size_t to, text_buffer *out)
{
    locus_text_buffer_copy(out, in, done, from);
    add_text(out, &step->content, text_origin(in, to - 1));
}

static void replace(const normalizer *step, const text_buffer *in, text_buffer *out)
{
    const text_string *pattern = &step->pattern;
    size_t done = 0;
    for (size_t at = 0; at + pattern->bytes <= in->bytes && !out->failed;) {
        const char *next = memchr(in->data + at, pattern->text[0], in->bytes - at);
        if (next == NULL) break;
        at = (size_t)(next - in->data);
        if (in->bytes - at < pattern->bytes || memcmp(next, pattern->text, pattern->bytes) != 0) {
            at++;
            continue;
        }
        put_content(step, in, done, at, at + pattern->bytes, out);
        done = at += pattern->bytes;
    }
    locus_text_buffer_copy(out, in, done, in->bytes);
}

static locus_status replace_regex(const normalizer *step, const text_buffer *in, text_buffer *out,
                                  locus_encoding *e, locus_error *error)
{
    regex_scan scan = {.steps = 0};
    size_t done = 0, end = 0;
    if (!locus_regex_scan(&scan, step->regex, in->data, 0, in->bytes, &e->sets, e->allocator))
        return locus_text_no_memory(error);
    for (;;) {
        const size_t begin = locus_regex_find(&scan, done, &end);
        if (begin == in->bytes || out->failed) break;
        put_content(step, in, done, begin, end, out);
        done = end;
    }
    locus_text_buffer_copy(out, in, done, in->bytes);
    return LOCUS_OK;
}

/* ---- what is rare ---- */

static int is_nmt_space(uint32_t code)
{
    static const uint32_t others[] = {0x9,    0xA,    0xC,    0xD,    0x1680,
                                      0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (code == others[i]) return 1;
    return code >= 0x200B && code <= 0x200F;
}

static void nmt(const text_buffer *in, text_buffer *out)
{
    for (size_t at = 0, length = 0; at < in->bytes && !out->failed; at += length) {
        const uint32_t code = utf8_read(in->data + at, &length);
        const int space = is_nmt_space(code);
        const int control =
            (code >= 1 && code < 0x20) || code == 0x7F || code == 0x8F || code == 0x9F;
        if (space || !control) locus_text_buffer_add(out, space ? ' ' : code, text_origin(in, at));
    }
}

/* ---- all ---- */

static locus_status run_step(const locus_tokenizer *t, const normalizer *step,
                             const text_buffer *in, text_buffer *out, locus_encoding *e,
                             locus_error *error)
{
    const unicode *u = &t->unicode;
    switch (step->kind) {
    case NORMALIZE_BERT: return locus_normalize_bert(u, step, in, out, e, error);
    case NORMALIZE_UNICODE: return locus_normalize_unicode(u, step->form, in, out, e, error);
    case NORMALIZE_STRIP_ACCENTS: strip_accents(u, in, out); break;
    case NORMALIZE_LOWER: lower(u, in, out, 0); break;
    case NORMALIZE_STRIP: strip(u, step, in, out); break;
    case NORMALIZE_REPLACE: replace(step, in, out); break;
    case NORMALIZE_REGEX: return replace_regex(step, in, out, e, error);
    case NORMALIZE_LETTERS: locus_text_letters(in, 0, in->bytes, out); break;
    case NORMALIZE_NMT: nmt(in, out); break;
    case NORMALIZE_PREPEND: prepend(step, in, out); break;
    case NORMALIZE_CHARSMAP: locus_normalize_charsmap(u, step->map, in, out); break;
    case NORMALIZE_SENTENCEPIECE: locus_normalize_sentencepiece(step, in, out); break;
    case NORMALIZE_PY_SPACE: py_join_words(u, in, out); break;
    case NORMALIZE_PY_COMBINING: py_drop_combining(u, in, out); break;
    case NORMALIZE_PY_LOWER: lower(u, in, out, 1); break;
    }
    return LOCUS_OK;
}

locus_status locus_text_normalize(const locus_tokenizer *t, text_buffer *input,
                                  text_buffer **result, locus_encoding *e, locus_error *error)
{
    text_buffer *now = input;
    for (size_t i = 0; i < t->normalizer_count && now->bytes > 0; i++) {
        text_buffer *out = now == &e->buffer[0] ? &e->buffer[1] : &e->buffer[0];
        locus_text_buffer_clear(out, text_origin(now, 0));
        locus_text_buffer_limit(out, input->bytes);
        if (!locus_text_buffer_reserve(out, now->bytes + 16))
            return locus_text_buffer_failure(out, error);
        LOCUS_TRY(run_step(t, t->normalizers + i, now, out, e, error));
        if (out->failed) return locus_text_buffer_failure(out, error);
        now = out;
    }
    *result = now;
    return LOCUS_OK;
}

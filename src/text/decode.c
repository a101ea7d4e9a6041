/* SPDX-License-Identifier: Apache-2.0 */
/* Ids back to text. Decoders work on a list of strings, as those of `tokenizers` do; at the end
 * the strings are joined. */
#include "text/decode.h"

#include <string.h>

#include "core/error.h"
#include "core/memory.h"

/* ---- strings ---- */

static text_string *at(const decode_list *list, size_t i)
{
    return (text_string *)list->strings.data + i;
}

/* `text` with every `from` replaced by `to`, into the arena. */
static text_string replaced(decode_list *list, text_string text, text_string from, text_string to)
{
    size_t count = 0;
    for (size_t i = 0; i + from.bytes <= text.bytes;) {
        const int here = memcmp(text.text + i, from.text, from.bytes) == 0;
        if (here) count++;
        i += here ? from.bytes : 1;
    }
    if (count == 0) return text;
    const size_t bytes = text.bytes - count * from.bytes + count * to.bytes;
    char *out = locus_arena_take(&list->arena, bytes + 1, 1);
    if (out == NULL) return list->failed = 1, text;
    size_t used = 0;
    for (size_t i = 0; i < text.bytes;) {
        if (i + from.bytes <= text.bytes && memcmp(text.text + i, from.text, from.bytes) == 0) {
            memcpy(out + used, to.text, to.bytes);
            used += to.bytes;
            i += from.bytes;
        } else {
            out[used++] = text.text[i++];
        }
    }
    return (text_string){out, (uint32_t)bytes};
}

static text_string literal(const char *text) { return (text_string){text, (uint32_t)strlen(text)}; }

/* Spaces before punctuation and English short forms go. `with_not`: "do not" too, as the WordPiece
 * decoder has it. */
static text_string clean_up(decode_list *list, text_string text, int with_not)
{
    static const char *const pairs[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                           {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                           {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                           {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (with_not || strcmp(pairs[i][0], " do not") != 0)
            text = replaced(list, text, literal(pairs[i][0]), literal(pairs[i][1]));
    return text;
}

/* ---- decoders ---- */

static void decode_wordpiece(const decoder *step, decode_list *list)
{
    for (size_t i = 0; i < list->strings.count && !list->failed; i++) {
        text_string *text = at(list, i);
        const text_string prefix = step->pattern;
        if (i > 0 && text->bytes >= prefix.bytes &&
            memcmp(text->text, prefix.text, prefix.bytes) == 0) {
            text->text += prefix.bytes;
            text->bytes -= prefix.bytes;
        } else if (i > 0) {
            char *spaced = locus_arena_take(&list->arena, (size_t)text->bytes + 2, 1);
            if (spaced == NULL) {
                list->failed = 1;
                return;
            }
            spaced[0] = ' ';
            memcpy(spaced + 1, text->text, text->bytes);
            *text = (text_string){spaced, text->bytes + 1};
        }
        if (step->cleanup) *text = clean_up(list, *text, 1);
    }
}

/* All strings as one. */
static void fuse(decode_list *list)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < list->strings.count; i++) bytes += at(list, i)->bytes;
    char *out = bytes > UINT32_MAX ? NULL : locus_arena_take(&list->arena, (size_t)bytes + 1, 1);
    if (out == NULL) {
        list->failed = 1;
        return;
    }
    size_t used = 0;
    for (size_t i = 0; i < list->strings.count; i++) {
        memcpy(out + used, at(list, i)->text, at(list, i)->bytes);
        used += at(list, i)->bytes;
    }
    list->strings.count = 0;
    if (locus_text_array_reserve(&list->strings, list->allocator, 1, sizeof(text_string)))
        *at(list, list->strings.count++) = (text_string){out, (uint32_t)used};
    else
        list->failed = 1;
}

/* Letters to bytes; a token with another letter stays as it is. What is not UTF-8 then is made
 * so. */
static void decode_byte_level(decode_list *list)
{
    for (size_t i = 0; i < list->strings.count; i++) {
        text_string *text = at(list, i);
        char *out = locus_arena_take(&list->arena, (size_t)text->bytes + 1, 1);
        if (out == NULL) {
            list->failed = 1;
            return;
        }
        size_t used = 0, length = 0;
        int known = 1;
        for (size_t k = 0; k < text->bytes && known; k += length) {
            const int byte = locus_letter_byte(utf8_read(text->text + k, &length));
            known = byte >= 0;
            out[used++] = (char)byte;
        }
        if (known) *text = (text_string){out, (uint32_t)used};
    }
    fuse(list);
    locus_decode_make_valid(list, 0);
}

/* The visible space becomes a space; in the first string it goes. */
static void decode_metaspace(const decoder *step, decode_list *list)
{
    for (size_t i = 0; i < list->strings.count; i++) {
        const int drop = i == 0 && step->scheme != PREPEND_NEVER;
        *at(list, i) = replaced(list, *at(list, i), step->pattern, literal(drop ? "" : " "));
    }
}

/* Runs of byte tokens become text; if that is no UTF-8, each byte becomes U+FFFD. */
static void decode_byte_fallback(decode_list *list)
{
    const size_t count = list->strings.count;
    size_t used = 0;
    for (size_t i = 0; i < count && !list->failed;) {
        size_t run = 0;
        while (i + run < count && locus_decode_byte_piece(at(list, i + run)) >= 0) run++;
        if (run == 0) {
            *at(list, used++) = *at(list, i++);
            continue;
        }
        char *bytes = locus_arena_take(&list->arena, run + 1, 1);
        if (bytes == NULL) {
            list->failed = 1;
            return;
        }
        for (size_t k = 0; k < run; k++) bytes[k] = (char)locus_decode_byte_piece(at(list, i + k));
        if (locus_utf8_check(bytes, run) == run) {
            *at(list, used++) = (text_string){bytes, (uint32_t)run};
        } else {
            for (size_t k = 0; k < run; k++) *at(list, used++) = literal("\xEF\xBF\xBD");
        }
        i += run;
    }
    list->strings.count = used;
}

static void decode_strip(const decoder *step, decode_list *list)
{
    const text_string *what = &step->pattern;
    for (size_t i = 0; i < list->strings.count && what->bytes > 0; i++) {
        text_string *text = at(list, i);
        for (uint32_t k = 0; k < step->start && text->bytes >= what->bytes &&
                             memcmp(text->text, what->text, what->bytes) == 0;
             k++) {
            text->text += what->bytes;
            text->bytes -= what->bytes;
        }
        for (uint32_t k = 0;
             k < step->stop && text->bytes >= what->bytes &&
             memcmp(text->text + text->bytes - what->bytes, what->text, what->bytes) == 0;
             k++)
            text->bytes -= what->bytes;
    }
}

static void decode_bpe_suffix(const decoder *step, decode_list *list)
{
    for (size_t i = 0; i < list->strings.count; i++) {
        const int last = i + 1 == list->strings.count;
        *at(list, i) = replaced(list, *at(list, i), step->pattern, literal(last ? "" : " "));
    }
}

/* `text` with every match of the expression replaced, into the arena. */
static text_string replaced_regex(const decoder *step, decode_list *list, text_string text)
{
    text_buffer out = {.allocator = list->allocator};
    text_array sets = {.data = NULL};
    regex_scan scan = {.steps = 0};
    union {
        const char *given;
        char *data;
    } given = {.given = text.text};
    const text_buffer in = {.data = given.data, .bytes = text.bytes};
    size_t done = 0, end = 0;
    if (!locus_regex_scan(&scan, step->regex, text.text, 0, text.bytes, &sets, list->allocator))
        list->failed = 1;
    while (!list->failed && done < text.bytes) {
        const size_t begin = locus_regex_find(&scan, done, &end);
        locus_text_buffer_copy(&out, &in, done, begin);
        for (size_t at = 0, length = 0; begin < text.bytes && at < step->content.bytes;
             at += length)
            locus_text_buffer_add(&out, utf8_read(step->content.text + at, &length), begin);
        done = end;
    }
    const char *copy =
        list->failed || out.failed ? NULL : locus_arena_copy(&list->arena, out.data, out.bytes);
    if (copy == NULL) list->failed = 1;
    if (copy != NULL) text = (text_string){copy, (uint32_t)out.bytes};
    locus_text_buffer_free(&out);
    locus_text_array_free(&sets, list->allocator);
    return text;
}

static int same(text_string a, text_string b)
{
    return a.bytes == b.bytes && memcmp(a.text, b.text, a.bytes) == 0;
}

/* Repeated tokens are one, the blank goes, the token between words is a space. */
static void decode_ctc(const decoder *step, decode_list *list)
{
    size_t used = 0;
    text_string last = {.bytes = UINT32_MAX};
    for (size_t i = 0; i < list->strings.count && !list->failed; i++) {
        const text_string now = *at(list, i);
        if (same(now, last)) continue;
        last = now;
        text_string text =
            step->pattern.bytes == 0 ? now : replaced(list, now, step->pattern, literal(""));
        if (step->cleanup) text = clean_up(list, text, 1);
        if (step->cleanup && step->content.bytes > 0)
            text = replaced(list, text, step->content, literal(" "));
        if (text.bytes > 0) *at(list, used++) = text;
    }
    list->strings.count = used;
}

static void run_step(const locus_tokenizer *t, const decoder *step, decode_list *list)
{
    switch (step->kind) {
    case DECODE_WORDPIECE: decode_wordpiece(step, list); break;
    case DECODE_BYTE_LEVEL: decode_byte_level(list); break;
    case DECODE_METASPACE: decode_metaspace(step, list); break;
    case DECODE_BYTE_FALLBACK: decode_byte_fallback(list); break;
    case DECODE_FUSE: fuse(list); break;
    case DECODE_STRIP: decode_strip(step, list); break;
    case DECODE_REPLACE:
        for (size_t i = 0; i < list->strings.count; i++)
            *at(list, i) = replaced(list, *at(list, i), step->pattern, step->content);
        break;
    case DECODE_REGEX:
        for (size_t i = 0; i < list->strings.count && !list->failed; i++)
            *at(list, i) = replaced_regex(step, list, *at(list, i));
        break;
    case DECODE_CTC: decode_ctc(step, list); break;
    case DECODE_BPE_SUFFIX: decode_bpe_suffix(step, list); break;
    case DECODE_SENTENCEPIECE: locus_decode_sentencepiece(t, list); break;
    case DECODE_BYTES: locus_decode_bytes(t, list); break;
    }
}

/* ---- the call ---- */

static locus_status collect(const locus_tokenizer *t, const uint32_t *ids, size_t count, int skip,
                            decode_list *list, locus_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= t->token_count) continue; /* a model may have more rows than tokens */
        if (skip && t->special[ids[i]]) continue;
        const text_string *token = t->tokens + ids[i];
        if (!locus_decode_add(list, token->text, token->bytes)) return locus_text_no_memory(error);
    }
    return LOCUS_OK;
}

/* Without a decoder, tokens have spaces between them. */
static void join_with_spaces(decode_list *list)
{
    for (size_t i = 1; i < list->strings.count && !list->failed; i++) {
        text_string *text = at(list, i);
        char *spaced = locus_arena_take(&list->arena, (size_t)text->bytes + 2, 1);
        if (spaced == NULL) {
            list->failed = 1;
            return;
        }
        spaced[0] = ' ';
        memcpy(spaced + 1, text->text, text->bytes);
        *text = (text_string){spaced, text->bytes + 1};
    }
}

static void run_all(const locus_tokenizer *t, decode_list *list)
{
    if (t->decoder_count == 0) join_with_spaces(list);
    for (size_t i = 0; i < t->decoder_count && !list->failed; i++)
        run_step(t, t->decoders + i, list);
    if (!list->failed) fuse(list);
    if (!list->failed && t->clean_up_spaces) *at(list, 0) = clean_up(list, *at(list, 0), 0);
}

locus_status locus_tokenizer_decode(const locus_tokenizer *tokenizer, const uint32_t *ids,
                                    size_t count, int skip_special, char *out, size_t capacity,
                                    size_t *bytes, locus_error *error)
{
    if (tokenizer == NULL || bytes == NULL || (ids == NULL && count > 0) ||
        (out == NULL && capacity > 0))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_tokenizer_decode: NULL argument");
    decode_list list = {.allocator = tokenizer->allocator,
                        .arena = {.allocator = tokenizer->allocator}};
    locus_status status = collect(tokenizer, ids, count, skip_special, &list, error);
    if (status == LOCUS_OK) {
        run_all(tokenizer, &list);
        if (list.failed) status = locus_text_no_memory(error);
    }
    if (status == LOCUS_OK) {
        const text_string *text = at(&list, 0);
        *bytes = text->bytes;
        const size_t written = text->bytes < capacity ? text->bytes : capacity;
        if (written > 0) memcpy(out, text->text, written);
    }
    locus_text_array_free(&list.strings, list.allocator);
    locus_arena_clear(&list.arena);
    return status;
}

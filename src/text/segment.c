/* SPDX-License-Identifier: Apache-2.0 */
/* One segment of text to tokens: the road that tokenizer.h describes. */
#include <string.h>

#include "core/error.h"
#include "text/tokenizer.h"

/* A part of a buffer as a buffer that nobody writes to. */
static text_buffer view(const text_buffer *of, size_t from, size_t to)
{
    return (text_buffer){.data = of->data + from,
                         .origin = of->mapped ? of->origin + from : NULL,
                         .bytes = to - from,
                         .shift = of->shift + from,
                         .mapped = of->mapped};
}

static int emit_added(const locus_tokenizer *t, const text_buffer *buffer, uint32_t index,
                      size_t begin, size_t end, locus_encoding *e)
{
    if (!locus_text_emit(e, buffer, t->added[index].id, begin, end)) return 0;
    text_array *tokens = &e->tokens[e->segment];
    text_token *token = (text_token *)tokens->data + tokens->count - 1;
    token->added = 1;
    if (t->trim_offsets) /* by the text where it was found: a normalizer may have dropped marks */
        locus_text_trim(t, &e->source[e->segment], token,
                        (text_string){buffer->data + begin, (uint32_t)(end - begin)},
                        tokens->count == 1 || token->begin == 0);
    return 1;
}

/* Bytes [from, to) of a normalized buffer: split, then the model, word by word. */
static locus_status encode_words(const locus_tokenizer *t, text_buffer *buffer, size_t from,
                                 size_t to, locus_encoding *e, locus_error *error)
{
    if (from == to) return LOCUS_OK;
    if (!locus_text_array_reserve(&e->spans[0], e->allocator, 1, sizeof(text_span)))
        return locus_text_no_memory(error);
    ((text_span *)e->spans[0].data)[0] = (text_span){(uint32_t)from, (uint32_t)to};
    e->spans[0].count = 1;
    for (size_t i = 0; i < t->splitter_count; i++)
        LOCUS_TRY(locus_text_split(t, t->splitters + i, &buffer, e, error));
    for (size_t i = 0; i < e->spans[0].count; i++) {
        const text_span span = ((text_span *)e->spans[0].data)[i];
        LOCUS_TRY(locus_text_model_encode(t, buffer, span.begin, span.end, e, error));
    }
    return LOCUS_OK;
}

/* A piece between added tokens: normalize, split off the added tokens that are looked for now. */
static locus_status encode_piece(const locus_tokenizer *t, text_buffer *piece, locus_encoding *e,
                                 locus_error *error)
{
    text_buffer *buffer = piece;
    size_t done = 0, begin = 0, end = 0;
    LOCUS_TRY(locus_text_normalize(t, piece, &buffer, e, error));
    if (t->normalized.count == 0) return encode_words(t, buffer, 0, buffer->bytes, e, error);
    /* Splitters write to buffers 0 and 1, so what is still to be read moves to 3. */
    if (buffer != piece) {
        locus_text_buffer_clear(&e->buffer[3], buffer->shift);
        locus_text_buffer_copy(&e->buffer[3], buffer, 0, buffer->bytes);
        if (e->buffer[3].failed) return locus_text_no_memory(error);
        buffer = &e->buffer[3];
    }
    for (;;) {
        const uint32_t index = locus_added_next(t, &t->normalized, buffer->data, buffer->bytes, end,
                                                done, &begin, &end);
        const size_t stop = index == TEXT_NO_ID ? buffer->bytes : begin;
        LOCUS_TRY(encode_words(t, buffer, done, stop, e, error));
        if (index == TEXT_NO_ID) return LOCUS_OK;
        if (!emit_added(t, buffer, index, begin, end, e)) return locus_text_no_memory(error);
        done = end;
    }
}

/* ---- rules of transformers' own classes ---- */

/* The unknown token goes in front, so that SentencePiece keeps the first space; its pieces are
 * dropped again. */
static locus_status encode_after_unknown(const locus_tokenizer *t, const text_buffer *piece,
                                         locus_encoding *e, locus_error *error)
{
    text_buffer *joined = &e->buffer[3];
    text_array *tokens = &e->tokens[e->segment];
    const text_string unk = t->tokens[t->part[PART_UNK]];
    const size_t before = tokens->count;
    locus_text_buffer_clear(joined, text_origin(piece, 0));
    for (size_t at = 0, length = 0; at < unk.bytes; at += length)
        locus_text_buffer_add(joined, utf8_read(unk.text + at, &length), text_origin(piece, 0));
    locus_text_buffer_copy(joined, piece, 0, piece->bytes);
    if (joined->failed) return locus_text_no_memory(error);
    LOCUS_TRY(encode_piece(t, joined, e, error));
    const size_t count = tokens->count - before, drop = t->unk_prefix_count;
    if (count < drop || drop == 0) return LOCUS_OK;
    text_token *list = (text_token *)tokens->data + before;
    memmove(list, list + drop, (count - drop) * sizeof *list);
    tokens->count -= drop;
    return LOCUS_OK;
}

/* Marian: a language code in front of the text is a token of its own. */
static locus_status take_language_code(const locus_tokenizer *t, text_buffer *piece,
                                       locus_encoding *e, locus_error *error)
{
    if (piece->bytes < 4 || memcmp(piece->data, ">>", 2) != 0) return LOCUS_OK;
    for (size_t i = 0; i + 2 <= piece->bytes; i++) {
        if (memcmp(piece->data + i, "<<", 2) != 0) continue;
        const size_t bytes = i + 2;
        const uint32_t id = locus_trie_find(&t->token_index, piece->data, bytes);
        if (!locus_text_emit(e, piece, id == TRIE_NONE ? t->part[PART_UNK] : id, 0, bytes))
            return locus_text_no_memory(error);
        *piece = view(piece, bytes, piece->bytes);
        return LOCUS_OK;
    }
    return LOCUS_OK;
}

static locus_status encode_between(const locus_tokenizer *t, const text_buffer *base, size_t from,
                                   size_t to, locus_encoding *e, locus_error *error)
{
    if (from == to) return LOCUS_OK;
    text_buffer piece = view(base, from, to);
    if (t->language_code) {
        LOCUS_TRY(take_language_code(t, &piece, e, error));
        if (piece.bytes == 0) return LOCUS_OK;
    }
    const int spaced =
        piece.data[0] == ' ' || (piece.bytes >= 3 && memcmp(piece.data, TEXT_META, 3) == 0);
    if (t->unk_prefix && spaced) return encode_after_unknown(t, &piece, e, error);
    return encode_piece(t, &piece, e, error);
}

/* Lower case for everything but special tokens and line ends, before tokens are looked for. */
static void lower_source(const locus_tokenizer *t, const text_source *source, text_buffer *out)
{
    uint32_t codes[2];
    for (size_t at = 0, length = 0; at < source->bytes; at += length) {
        const uint32_t index =
            locus_trie_longest(&t->raw.tokens, source->text + at, source->bytes - at, &length);
        const int kept = index != TRIE_NONE && t->added[index].special;
        const size_t stop = at + length;
        const uint32_t code = utf8_read(source->text + at, &length);
        size_t count = locus_unicode_lower(code, codes);
        if (kept) {
            for (size_t i = at; i < stop; i += length)
                locus_text_buffer_add(out, utf8_read(source->text + i, &length), i);
            length = stop - at;
            continue;
        }
        if ((unicode_class(&t->unicode, code) & UNICODE_PY_NO_LOWER) != 0) {
            codes[0] = code;
            count = 1;
        }
        for (size_t i = 0; i < count; i++) locus_text_buffer_add(out, codes[i], at);
    }
}

/* T5 and Llama without "legacy": visible spaces become spaces, one goes in front. */
static void prefix_source(const locus_tokenizer *t, const text_source *source, text_buffer *out)
{
    if (!t->no_prefix) locus_text_buffer_add(out, TEXT_META_CODE, 0);
    for (size_t at = 0, length = 0; at < source->bytes; at += length) {
        const uint32_t code = utf8_read(source->text + at, &length);
        locus_text_buffer_add(out, code == TEXT_META_CODE ? ' ' : code, at);
    }
}

/* ... and goes again where a special token follows at once. */
static void drop_lone_prefix(const locus_tokenizer *t, locus_encoding *e)
{
    text_array *tokens = &e->tokens[e->segment];
    text_token *list = tokens->data;
    if (tokens->count < 2 || list[0].added || !list[1].added || !t->special[list[1].id]) return;
    const text_string *first = t->tokens + list[0].id;
    if (first->bytes != 3 || memcmp(first->text, TEXT_META, 3) != 0) return;
    memmove(list, list + 1, (tokens->count - 1) * sizeof *list);
    tokens->count--;
}

static locus_status prepare(const locus_tokenizer *t, text_buffer *base, locus_encoding *e,
                            locus_error *error)
{
    const text_source *source = &e->source[e->segment];
    text_buffer *out = &e->buffer[2];
    union {
        const char *given;
        char *data;
    } text = {.given = source->text};
    *base = (text_buffer){.data = text.data, .bytes = source->bytes};
    if ((!t->slow_lower && !t->unk_prefix) || source->bytes == 0) return LOCUS_OK;
    locus_text_buffer_clear(out, 0);
    locus_text_buffer_limit(out, source->bytes);
    if (t->slow_lower)
        lower_source(t, source, out);
    else
        prefix_source(t, source, out);
    *base = *out;
    return out->failed ? locus_text_no_memory(error) : LOCUS_OK;
}

locus_status locus_text_encode_segment(const locus_tokenizer *t, size_t segment, locus_encoding *e,
                                       locus_error *error)
{
    text_buffer base;
    size_t done = 0, begin = 0, end = 0;
    e->segment = segment;
    e->tokens[segment].count = 0;
    LOCUS_TRY(prepare(t, &base, e, error));
    for (;;) {
        const uint32_t index =
            t->raw.count == 0
                ? TEXT_NO_ID
                : locus_added_next(t, &t->raw, base.data, base.bytes, end, done, &begin, &end);
        const size_t stop = index == TEXT_NO_ID ? base.bytes : begin;
        LOCUS_TRY(encode_between(t, &base, done, stop, e, error));
        if (index == TEXT_NO_ID) break;
        if (!emit_added(t, &base, index, begin, end, e)) return locus_text_no_memory(error);
        done = end;
    }
    if (t->unk_prefix) drop_lone_prefix(t, e);
    return LOCUS_OK;
}

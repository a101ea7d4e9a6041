/* SPDX-License-Identifier: Apache-2.0 */
/* ALBERT and XLNet: a piece that ends in a digit and a comma is encoded again without the comma,
 * which then follows as a piece of its own: "9,9" becomes "9" "," "9". */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/tokenizer.h"

static int ends_in_digit_comma(const locus_tokenizer *t, const char *text, size_t bytes)
{
    size_t length = 0;
    if (bytes < 2 || text[bytes - 1] != ',') return 0;
    const uint32_t before = utf8_read_back(text, bytes - 1, &length);
    return (unicode_class(&t->unicode, before) & UNICODE_PY_DIGIT) != 0;
}

static uint32_t id_of(const locus_tokenizer *t, const char *text, size_t bytes)
{
    const uint32_t id = locus_trie_find(&t->model.index, text, bytes);
    return id == TRIE_NONE ? t->model.unk : id;
}

/* Encode text[0, bytes) alone; every piece has the offsets of `whole`. */
static locus_status encode_again(const locus_tokenizer *t, const text_buffer *buffer,
                                 model_piece whole, locus_encoding *e, locus_error *error)
{
    const normalizer *last = t->normalizers + t->normalizer_count - 1;
    text_buffer bare = {.allocator = e->allocator}, again = {.allocator = e->allocator};
    const char *text = buffer->data + whole.from;
    const size_t bytes = whole.to - whole.from - 1;
    const int begins_word = bytes >= 3 && memcmp(text, TEXT_META, 3) == 0;
    for (size_t at = 0, length = 0; at < bytes; at += length) {
        const uint32_t code = utf8_read(text + at, &length);
        if (code != TEXT_META_CODE) locus_text_buffer_add(&bare, code, at);
    }
    locus_normalize_sentencepiece(last, &bare, &again);
    locus_status status = bare.failed || again.failed ? locus_text_no_memory(error) : LOCUS_OK;
    const size_t before = e->pieces.count;
    if (status == LOCUS_OK && again.bytes > 0)
        status = locus_unigram_pieces(&t->model, again.data, 0, again.bytes, e, error);
    for (size_t i = before; i < e->pieces.count && status == LOCUS_OK; i++) {
        const model_piece piece = ((model_piece *)e->pieces.data)[i];
        uint32_t id = piece.id;
        if (i == before && !begins_word && memcmp(again.data, TEXT_META, 3) == 0) {
            if (piece.to == 3) continue; /* the space alone */
            id = id_of(t, again.data + 3, piece.to - 3);
        }
        if (!locus_text_emit(e, buffer, id, whole.from, whole.to - 1))
            status = locus_text_no_memory(error);
    }
    e->pieces.count = before;
    locus_text_buffer_free(&bare);
    locus_text_buffer_free(&again);
    return status;
}

locus_status locus_commas_emit(const locus_tokenizer *t, const text_buffer *buffer,
                               locus_encoding *e, locus_error *error)
{
    const size_t count = e->pieces.count;
    for (size_t i = 0; i < count; i++) {
        const model_piece piece = ((model_piece *)e->pieces.data)[i];
        const char *text = buffer->data + piece.from;
        const size_t bytes = piece.to - piece.from;
        uint32_t id = piece.id;
        size_t from = piece.from;
        if (ends_in_digit_comma(t, text, bytes)) {
            LOCUS_TRY(encode_again(t, buffer, piece, e, error));
            from = piece.to - 1;
            id = id_of(t, ",", 1);
        }
        if (!locus_text_emit(e, buffer, id, from, piece.to)) return locus_text_no_memory(error);
    }
    return LOCUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* From words to tokens: which model, and WordPiece, which is short. */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/tokenizer.h"

/* ---- WordPiece: the longest piece, again and again; a word that cannot be covered is unknown - */

locus_status locus_wordpiece_encode(const locus_tokenizer *t, const text_buffer *buffer,
                                    size_t from, size_t to, locus_encoding *e, locus_error *error)
{
    const model *m = &t->model;
    const char *text = buffer->data;
    text_array *tokens = &e->tokens[e->segment];
    const size_t before = tokens->count;
    size_t chars = 0;
    if (to - from > m->max_chars)
        for (size_t i = from; i < to; i++) chars += !utf8_continues(text[i]);
    int known = chars <= m->max_chars;
    for (size_t at = from; at < to && known;) {
        size_t length = 0;
        const trie *pieces = at == from ? &m->index : &m->continuing;
        const uint32_t id = locus_trie_longest(pieces, text + at, to - at, &length);
        known = id != TRIE_NONE;
        if (known && !locus_text_emit(e, buffer, id, at, at + length))
            return locus_text_no_memory(error);
        at += length;
    }
    if (known) return LOCUS_OK;
    tokens->count = before;
    return locus_text_emit(e, buffer, m->unk, from, to) ? LOCUS_OK : locus_text_no_memory(error);
}

/* ---- bytes ---- */

static locus_status bytes_encode(const locus_tokenizer *t, const text_buffer *buffer, size_t from,
                                 size_t to, locus_encoding *e, locus_error *error)
{
    text_array *tokens = &e->tokens[e->segment];
    for (size_t i = from; i < to; i++) {
        if (!locus_text_emit(e, buffer, t->model.byte_ids[(unsigned char)buffer->data[i]], i,
                             i + 1))
            return locus_text_no_memory(error);
        if (buffer->mapped) continue;
        text_token *last = (text_token *)tokens->data + tokens->count - 1;
        last->begin = (uint32_t)(buffer->shift + i); /* a byte of its character */
        last->end = last->begin + 1;
    }
    return LOCUS_OK;
}

/* ---- whole words ---- */

static locus_status word_encode(const locus_tokenizer *t, const text_buffer *buffer, size_t from,
                                size_t to, locus_encoding *e, locus_error *error)
{
    const model *m = &t->model;
    const uint32_t known = locus_trie_find(&m->index, buffer->data + from, to - from);
    const uint32_t id = known == TRIE_NONE ? m->unk : known;
    if (id == TEXT_NO_ID)
        return locus_fail(error, LOCUS_ERR_RANGE,
                          "found a word without a token, and the tokenizer has no unknown token");
    return locus_text_emit(e, buffer, id, from, to) ? LOCUS_OK : locus_text_no_memory(error);
}

/* The id of a piece. Marian looks unknown text up in its vocabulary, too. */
static uint32_t id_of(const locus_tokenizer *t, const char *text, const model_piece *piece)
{
    if (t->id_of_piece == NULL) return piece->id;
    if (t->language_code && piece->id == t->model.unk) {
        const uint32_t id =
            locus_trie_find(&t->token_index, text + piece->from, piece->to - piece->from);
        if (id != TRIE_NONE) return id;
    }
    return t->id_of_piece[piece->id];
}

static locus_status emit_pieces(const locus_tokenizer *t, const text_buffer *buffer,
                                locus_encoding *e, locus_error *error)
{
    const model_piece *pieces = e->pieces.data;
    if (t->split_commas) return locus_commas_emit(t, buffer, e, error);
    for (size_t i = 0; i < e->pieces.count; i++)
        if (!locus_text_emit(e, buffer, id_of(t, buffer->data, pieces + i), pieces[i].from,
                             pieces[i].to))
            return locus_text_no_memory(error);
    return LOCUS_OK;
}

locus_status locus_text_model_encode(const locus_tokenizer *t, const text_buffer *buffer,
                                     size_t from, size_t to, locus_encoding *e, locus_error *error)
{
    if (from == to) return LOCUS_OK;
    if (t->model.kind == MODEL_WORDPIECE)
        return locus_wordpiece_encode(t, buffer, from, to, e, error);
    if (t->model.kind == MODEL_BYTES) return bytes_encode(t, buffer, from, to, e, error);
    if (t->model.kind == MODEL_WORDS) return word_encode(t, buffer, from, to, e, error);
    e->pieces.count = 0;
    if (t->model.kind == MODEL_UNIGRAM)
        LOCUS_TRY(locus_unigram_pieces(&t->model, buffer->data, from, to, e, error));
    else
        LOCUS_TRY(locus_bpe_pieces(&t->model, buffer->data, from, to, e, error));
    return emit_pieces(t, buffer, e, error);
}

void locus_text_model_free(model *m, const locus_allocator *allocator)
{
    locus_release(allocator, m->pieces);
    locus_release(allocator, m->scores);
    locus_release(allocator, m->types);
    locus_release(allocator, m->merges);
    locus_trie_free(&m->index, allocator);
    locus_trie_free(&m->continuing, allocator);
    memset(m, 0, sizeof *m);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabularies, however they were written, and the tables that models search in. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/read.h"

text_string locus_read_keep(locus_tokenizer *t, const char *text, size_t bytes, locus_error *error)
{
    const char *copy = locus_arena_copy(&t->arena, text, bytes);
    if (copy == NULL) (void)locus_text_no_memory(error);
    return (text_string){.text = copy, .bytes = (uint32_t)bytes};
}

locus_status locus_read_keep_value(locus_tokenizer *t, const json_value *value, text_string *out,
                                   locus_error *error)
{
    *out = locus_read_keep(t, value->text, value->bytes, error);
    return out->text == NULL ? LOCUS_ERR_MEMORY : LOCUS_OK;
}

locus_status locus_read_pieces_new(locus_tokenizer *t, model *m, size_t count, locus_error *error)
{
    if (count > LOCUS_TEXT_MAX_VOCABULARY)
        return locus_fail(error, LOCUS_ERR_FORMAT, "found %zu tokens, expected at most %u", count,
                          LOCUS_TEXT_MAX_VOCABULARY);
    m->pieces = locus_allocate(t->allocator, count, sizeof *m->pieces);
    m->piece_count = count;
    m->unk = TEXT_NO_ID;
    for (size_t i = 0; i < 256; i++) m->byte_ids[i] = TEXT_NO_ID;
    return m->pieces == NULL ? locus_text_no_memory(error) : LOCUS_OK;
}

locus_status locus_read_piece_set(locus_tokenizer *t, model *m, uint64_t id, const char *text,
                                  size_t bytes, locus_error *error)
{
    char shown[100];
    locus_escape(shown, sizeof shown, text, bytes < 200 ? bytes : 200);
    if (bytes > LOCUS_TEXT_MAX_TOKEN)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "token %" PRIu64 ": found %zu bytes, expected at most %u", id, bytes,
                          LOCUS_TEXT_MAX_TOKEN);
    if (locus_utf8_check(text, bytes) != bytes)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "token %" PRIu64 ": found \"%s\", expected UTF-8", id, shown);
    if (id >= m->piece_count)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "token \"%s\": found id %" PRIu64 ", expected less than %zu", shown, id,
                          m->piece_count);
    if (m->pieces[id].text != NULL)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "token \"%s\": found id %" PRIu64 " a second time", shown, id);
    m->pieces[id] = locus_read_keep(t, text, bytes, error);
    return m->pieces[id].text == NULL ? LOCUS_ERR_MEMORY : LOCUS_OK;
}

static locus_status index_pieces(locus_tokenizer *t, trie_key *keys, size_t count, trie *index,
                                 locus_error *error)
{
    size_t duplicate = 0;
    char shown[100];
    LOCUS_TRY(locus_trie_build(index, keys, count, &duplicate, t->allocator, error));
    if (duplicate == SIZE_MAX) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT, "token \"%s\": found it twice, with ids %u and %u",
                      locus_escape(shown, sizeof shown, keys[duplicate].text,
                                   keys[duplicate].bytes),
                      keys[duplicate - 1].value, keys[duplicate].value);
}

locus_status locus_read_index(locus_tokenizer *t, model *m, locus_error *error)
{
    size_t count = 0;
    trie_key *keys = locus_allocate(t->allocator, m->piece_count, sizeof *keys);
    if (keys == NULL) return locus_text_no_memory(error);
    for (size_t i = 0; i < m->piece_count; i++)
        if (m->pieces[i].bytes > 0) /* an empty token never matches */
            keys[count++] = (trie_key){m->pieces[i].text, m->pieces[i].bytes, (uint32_t)i};
    const locus_status status = index_pieces(t, keys, count, &m->index, error);
    locus_release(t->allocator, keys);
    return status;
}

locus_status locus_read_continuing(locus_tokenizer *t, model *m, locus_error *error)
{
    size_t count = 0;
    const text_string *prefix = &m->prefix;
    trie_key *keys = locus_allocate(t->allocator, m->piece_count, sizeof *keys);
    if (keys == NULL) return locus_text_no_memory(error);
    for (size_t i = 0; i < m->piece_count; i++) {
        const text_string *piece = m->pieces + i;
        if (piece->text == NULL || piece->bytes <= prefix->bytes ||
            memcmp(piece->text, prefix->text, prefix->bytes) != 0)
            continue;
        keys[count++] =
            (trie_key){piece->text + prefix->bytes, piece->bytes - prefix->bytes, (uint32_t)i};
    }
    const locus_status status = index_pieces(t, keys, count, &m->continuing, error);
    locus_release(t->allocator, keys);
    return status;
}

/* One more than the largest id of {"token": id}. */
static locus_status count_ids(const json_value *vocabulary, const char *where, size_t *count,
                              locus_error *error)
{
    char found[100], shown[60];
    *count = 0;
    for (const json_value *v = vocabulary->child; v != NULL; v = v->next) {
        if (v->kind != LOCUS_JSON_INTEGER || v->integer >= LOCUS_TEXT_MAX_VOCABULARY)
            return locus_fail(error, LOCUS_ERR_FORMAT,
                              "%s: \"%s\": found %s, expected an id from 0 to %u", where,
                              locus_escape(shown, sizeof shown, v->key, v->key_bytes),
                              locus_tree_describe(found, sizeof found, v),
                              LOCUS_TEXT_MAX_VOCABULARY - 1);
        if (v->integer >= *count) *count = (size_t)v->integer + 1;
    }
    return LOCUS_OK;
}

locus_status locus_read_vocabulary(locus_tokenizer *t, model *m, const json_value *vocabulary,
                                   const char *where, locus_error *error)
{
    size_t count = 0;
    char found[100];
    if (vocabulary == NULL || vocabulary->kind != LOCUS_JSON_OBJECT)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: found %s, expected an object of tokens and ids", where,
                          locus_tree_describe(found, sizeof found, vocabulary));
    LOCUS_TRY(count_ids(vocabulary, where, &count, error));
    LOCUS_TRY(locus_read_pieces_new(t, m, count, error));
    for (const json_value *v = vocabulary->child; v != NULL; v = v->next)
        LOCUS_TRY(locus_read_piece_set(t, m, v->integer, v->key, v->key_bytes, error));
    return locus_read_index(t, m, error);
}

/* ---- bytes ---- */

void locus_read_fallback_bytes(model *m)
{
    char name[8];
    for (unsigned i = 0; i < 256; i++) {
        snprintf(name, sizeof name, "<0x%02X>", i);
        m->byte_ids[i] = locus_trie_find(&m->index, name, 6);
    }
}

/* A piece as the bytes that it stands for; 0: it is not byte-level. */
static size_t piece_bytes(const text_string *piece, char *out)
{
    size_t count = 0;
    for (size_t at = 0, length = 0; at < piece->bytes; at += length) {
        const int byte = locus_letter_byte(utf8_read(piece->text + at, &length));
        if (byte < 0) return 0;
        out[count++] = (char)byte;
    }
    return count;
}

static locus_status index_as_bytes(locus_tokenizer *t, model *m, locus_error *error)
{
    char *bytes = locus_allocate(t->allocator, LOCUS_TEXT_MAX_TOKEN + 1, 1);
    trie_key *keys = locus_allocate(t->allocator, m->piece_count, sizeof *keys);
    size_t count = 0, duplicate = 0;
    locus_status status = bytes == NULL || keys == NULL ? locus_text_no_memory(error) : LOCUS_OK;
    for (size_t i = 0; i < m->piece_count && status == LOCUS_OK; i++) {
        if (m->pieces[i].text == NULL) continue;
        const size_t length = piece_bytes(m->pieces + i, bytes);
        if (length == 0) continue;
        const text_string kept = locus_read_keep(t, bytes, length, error);
        if (kept.text == NULL) status = LOCUS_ERR_MEMORY;
        keys[count++] = (trie_key){kept.text, kept.bytes, (uint32_t)i};
    }
    if (status == LOCUS_OK)
        status = locus_trie_build(&m->continuing, keys, count, &duplicate, t->allocator, error);
    locus_release(t->allocator, bytes);
    locus_release(t->allocator, keys);
    return status;
}

locus_status locus_read_byte_level(locus_tokenizer *t, model *m, locus_error *error)
{
    unsigned char letter[4];
    for (unsigned i = 0; i < 256; i++) {
        const size_t length = locus_utf8_encode(letter, locus_byte_letter(i));
        m->byte_ids[i] = locus_trie_find(&m->index, (const char *)letter, length);
    }
    m->byte_level = 1;
    return m->ignore_merges ? index_as_bytes(t, m, error) : LOCUS_OK;
}

/* ---- merges ---- */

static locus_status find_part(const model *m, const char *text, size_t bytes, size_t rank,
                              uint32_t *id, locus_error *error)
{
    char shown[100];
    *id = locus_trie_find(&m->index, text, bytes);
    if (*id != TRIE_NONE) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "merge %zu: found \"%s\", which is not in the vocabulary", rank,
                      locus_escape(shown, sizeof shown, text, bytes));
}

locus_status locus_read_merge(const model *m, const char *left, size_t left_bytes,
                              const char *right, size_t right_bytes, size_t rank, bpe_merge *merge,
                              locus_error *error)
{
    LOCUS_TRY(find_part(m, left, left_bytes, rank, &merge->left, error));
    LOCUS_TRY(find_part(m, right, right_bytes, rank, &merge->right, error));
    /* Walk the index through both parts: no copy of their union is made. */
    uint32_t node = 0;
    for (size_t i = 0; i < left_bytes + right_bytes && node != TRIE_NONE; i++) {
        const char byte = i < left_bytes ? left[i] : right[i - left_bytes];
        node = trie_child(&m->index, node, (unsigned char)byte);
    }
    merge->result = node == TRIE_NONE ? TRIE_NONE : m->index.value[node];
    merge->rank = (uint32_t)rank;
    if (merge->result != TRIE_NONE) return LOCUS_OK;
    char a[60], b[60];
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "merge %zu: found \"%s\" and \"%s\", whose union is not in the vocabulary",
                      rank, locus_escape(a, sizeof a, left, left_bytes),
                      locus_escape(b, sizeof b, right, right_bytes));
}

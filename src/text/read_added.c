/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens, and what all readers do at the end: tokens by id, their index, the sets that
 * are looked for in texts. */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/read.h"

locus_status locus_read_added_flags(const json_value *value, added_token *token, locus_error *error)
{
    const char *where = "added_tokens";
    int single_word = 0, lstrip = 0, rstrip = 0, normalized = 0, special = 0;
    LOCUS_TRY(locus_tree_bool(value, where, "single_word", 0, &single_word, error));
    LOCUS_TRY(locus_tree_bool(value, where, "lstrip", 0, &lstrip, error));
    LOCUS_TRY(locus_tree_bool(value, where, "rstrip", 0, &rstrip, error));
    LOCUS_TRY(locus_tree_bool(value, where, "special", 0, &special, error));
    LOCUS_TRY(locus_tree_bool(value, where, "normalized", !special, &normalized, error));
    token->single_word = (uint8_t)single_word;
    token->lstrip = (uint8_t)lstrip;
    token->rstrip = (uint8_t)rstrip;
    token->normalized = (uint8_t)normalized;
    token->special = (uint8_t)special;
    return LOCUS_OK;
}

locus_status locus_read_added_reserve(locus_tokenizer *t, size_t count, locus_error *error)
{
    if (count > LOCUS_TEXT_MAX_ADDED)
        return locus_fail(error, LOCUS_ERR_FORMAT, "added tokens: found %zu, expected at most %u",
                          count, LOCUS_TEXT_MAX_ADDED);
    added_token *more = locus_allocate(t->allocator, t->added_count + count, sizeof *more);
    if (more == NULL) return locus_text_no_memory(error);
    if (t->added_count > 0) memcpy(more, t->added, t->added_count * sizeof *more);
    locus_release(t->allocator, t->added);
    t->added = more;
    return LOCUS_OK;
}

locus_status locus_read_added(locus_tokenizer *t, added_token token, locus_error *error)
{
    char shown[100];
    if (token.content.bytes > LOCUS_TEXT_MAX_ADDED_TOKEN)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "added token \"%s\": found %u bytes, expected at most %u",
                          locus_escape(shown, sizeof shown, token.content.text, 60),
                          token.content.bytes, LOCUS_TEXT_MAX_ADDED_TOKEN);
    if (token.id >= LOCUS_TEXT_MAX_VOCABULARY)
        return locus_fail(
            error, LOCUS_ERR_FORMAT, "added token \"%s\": found id %u, expected less than %u",
            locus_escape(shown, sizeof shown, token.content.text, token.content.bytes), token.id,
            LOCUS_TEXT_MAX_VOCABULARY);
    for (size_t i = 0; i < t->added_count; i++) {
        if (t->added[i].id != token.id) continue;
        if (token.content.bytes == t->added[i].content.bytes &&
            memcmp(token.content.text, t->added[i].content.text, token.content.bytes) == 0) {
            t->added[i] = token;
            return LOCUS_OK;
        }
    }
    t->added[t->added_count++] = token;
    return LOCUS_OK;
}

/* ---- the end ---- */

static locus_status fill_tokens(locus_tokenizer *t, locus_error *error)
{
    const model *m = &t->model;
    size_t count = m->kind == MODEL_BYTES ? 0 : m->piece_count;
    if (t->token_count > 0) count = t->token_count; /* a reader has set them */
    for (size_t i = 0; i < t->added_count; i++)
        if (t->added[i].id >= count) count = (size_t)t->added[i].id + 1;
    text_string *tokens = locus_allocate(t->allocator, count, sizeof *tokens);
    t->special = locus_allocate(t->allocator, count, 1);
    if (tokens == NULL || t->special == NULL) {
        locus_release(t->allocator, tokens);
        return locus_text_no_memory(error);
    }
    const text_string *from = t->tokens != NULL ? t->tokens : m->pieces;
    const size_t known = t->tokens != NULL ? t->token_count : m->piece_count;
    if (known > 0) memcpy(tokens, from, known * sizeof *tokens);
    locus_release(t->allocator, t->tokens);
    t->tokens = tokens;
    t->token_count = count;
    for (size_t i = 0; i < t->added_count; i++) {
        t->tokens[t->added[i].id] = t->added[i].content;
        t->special[t->added[i].id] = t->added[i].special;
    }
    return LOCUS_OK;
}

/* Every id has a token, and the index finds it. */
static locus_status index_tokens(locus_tokenizer *t, locus_error *error)
{
    size_t duplicate = 0;
    trie_key *keys = locus_allocate(t->allocator, t->token_count, sizeof *keys);
    if (keys == NULL) return locus_text_no_memory(error);
    locus_status status = LOCUS_OK;
    size_t count = 0;
    for (size_t i = 0; i < t->token_count && status == LOCUS_OK; i++) {
        if (t->tokens[i].text == NULL)
            status =
                locus_fail(error, LOCUS_ERR_FORMAT,
                           "vocabulary: found no token with id %zu, expected ids without gaps", i);
        keys[count++] = (trie_key){t->tokens[i].text, t->tokens[i].bytes, (uint32_t)i};
    }
    if (status == LOCUS_OK)
        status = locus_trie_build(&t->token_index, keys, count, &duplicate, t->allocator, error);
    locus_release(t->allocator, keys);
    return status;
}

static locus_status check_template(const locus_tokenizer *t, const text_template *shape,
                                   locus_error *error)
{
    for (size_t i = 0; i < shape->count; i++)
        if (shape->items[i].kind == ITEM_TOKEN && shape->items[i].id >= t->token_count)
            return locus_fail(error, LOCUS_ERR_FORMAT,
                              "special tokens: found id %u, expected less than %zu",
                              shape->items[i].id, t->token_count);
    return LOCUS_OK;
}

/* What each added token looks like once the text is normalized. */
static locus_status normalize_added(locus_tokenizer *t, text_string *texts, locus_error *error)
{
    locus_encoding *e = NULL;
    locus_status status = locus_encoding_new(&e, t->allocator, error);
    for (size_t i = 0; i < t->added_count && status == LOCUS_OK; i++) {
        texts[i] = t->added[i].content;
        if (!t->added[i].normalized || t->normalizer_count == 0) continue;
        text_buffer input = {.allocator = t->allocator}, *result = NULL;
        for (size_t at = 0, length = 0; at < texts[i].bytes; at += length)
            locus_text_buffer_add(&input, utf8_read(texts[i].text + at, &length), at);
        status = input.failed ? locus_text_no_memory(error)
                              : locus_text_normalize(t, &input, &result, e, error);
        if (status == LOCUS_OK) texts[i] = locus_read_keep(t, result->data, result->bytes, error);
        if (status == LOCUS_OK && texts[i].text == NULL) status = LOCUS_ERR_MEMORY;
        locus_text_buffer_free(&input);
    }
    locus_encoding_free(e);
    return status;
}

static locus_status build_sets(locus_tokenizer *t, locus_error *error)
{
    text_string *texts = locus_allocate(t->allocator, t->added_count, sizeof *texts);
    if (texts == NULL) return locus_text_no_memory(error);
    locus_status status = normalize_added(t, texts, error);
    if (status == LOCUS_OK) status = locus_added_set_build(&t->raw, t, 0, texts, error);
    if (status == LOCUS_OK) status = locus_added_set_build(&t->normalized, t, 1, texts, error);
    locus_release(t->allocator, texts);
    return status;
}

locus_status locus_read_finish(locus_tokenizer *t, locus_error *error)
{
    LOCUS_TRY(fill_tokens(t, error));
    LOCUS_TRY(index_tokens(t, error));
    LOCUS_TRY(check_template(t, &t->single, error));
    LOCUS_TRY(check_template(t, &t->pair, error));
    return build_sets(t, error);
}

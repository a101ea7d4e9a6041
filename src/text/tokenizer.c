/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls. */
#include "text/tokenizer.h"

#include <string.h>

#include "core/error.h"
#include "core/memory.h"

const char *const locus_text_part_names[PART_COUNT] = {"bos", "eos", "unk", "sep",
                                                       "pad", "cls", "mask"};

/* ---- open and close ---- */

static locus_status open_tokenizer(locus_tokenizer *t, const char *folder, locus_error *error)
{
    for (size_t i = 0; i < PART_COUNT; i++) t->part[i] = TEXT_NO_ID;
    LOCUS_TRY(locus_unicode_open(&t->unicode, t->allocator, error));
    return locus_text_read(t, folder, error);
}

locus_status locus_tokenizer_open(locus_tokenizer **tokenizer, const char *folder,
                                  const locus_allocator *allocator, locus_error *error)
{
    if (tokenizer == NULL || folder == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_tokenizer_open: NULL argument");
    *tokenizer = NULL;
    locus_tokenizer *t = locus_allocate(allocator, 1, sizeof *t);
    if (t == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for a tokenizer");
    t->allocator = t->arena.allocator = allocator;
    const locus_status status = open_tokenizer(t, folder, error);
    if (status != LOCUS_OK) {
        locus_tokenizer_close(t);
        return status;
    }
    *tokenizer = t;
    return LOCUS_OK;
}

void locus_tokenizer_close(locus_tokenizer *tokenizer)
{
    if (tokenizer == NULL) return;
    locus_tokenizer *t = tokenizer;
    const locus_allocator *allocator = t->allocator;
    locus_unicode_close(&t->unicode, allocator);
    locus_trie_free(&t->raw.tokens, allocator);
    locus_trie_free(&t->normalized.tokens, allocator);
    locus_trie_free(&t->token_index, allocator);
    locus_trie_free(&t->symbols, allocator);
    locus_text_model_free(&t->model, allocator);
    locus_text_model_free(&t->target, allocator);
    locus_release(allocator, t->added);
    locus_release(allocator, t->id_of_piece);
    locus_release(allocator, t->tokens);
    locus_release(allocator, t->special);
    for (size_t i = 0; i < t->expression_count; i++) locus_regex_free(t->expressions[i], allocator);
    locus_arena_clear(&t->arena);
    locus_release(allocator, t);
}

/* ---- what is in it ---- */

locus_status locus_tokenizer_describe(const locus_tokenizer *tokenizer, locus_tokenizer_info *info,
                                      locus_error *error)
{
    static const char *const kinds[] = {"WordPiece", "Unigram", "BPE", "bytes", "WordLevel"};
    if (tokenizer == NULL || info == NULL || info->size < sizeof info->size)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "locus_tokenizer_describe: NULL argument, or info.size is not set");
    const locus_tokenizer_info all = {.size = info->size,
                                      .kind = kinds[tokenizer->model.kind],
                                      .source = tokenizer->source,
                                      .rules = tokenizer->rules,
                                      .vocabulary = tokenizer->token_count,
                                      .has_types = tokenizer->has_types};
    memcpy(info, &all, info->size < sizeof all ? info->size : sizeof all);
    return LOCUS_OK;
}

const char *locus_tokenizer_token(const locus_tokenizer *tokenizer, uint32_t id, size_t *bytes)
{
    const int known = tokenizer != NULL && id < tokenizer->token_count;
    if (bytes != NULL) *bytes = known ? tokenizer->tokens[id].bytes : 0;
    return known ? tokenizer->tokens[id].text : NULL;
}

int64_t locus_tokenizer_find(const locus_tokenizer *tokenizer, const char *token, size_t bytes)
{
    if (tokenizer == NULL || token == NULL) return -1;
    const uint32_t id = locus_trie_find(&tokenizer->token_index, token, bytes);
    return id == TRIE_NONE ? -1 : (int64_t)id;
}

int64_t locus_tokenizer_special(const locus_tokenizer *tokenizer, const char *part)
{
    if (tokenizer == NULL || part == NULL) return -1;
    for (size_t i = 0; i < PART_COUNT; i++)
        if (strcmp(part, locus_text_part_names[i]) == 0 && tokenizer->part[i] != TEXT_NO_ID)
            return (int64_t)tokenizer->part[i];
    return -1;
}

int locus_tokenizer_is_special(const locus_tokenizer *tokenizer, uint32_t id)
{
    return tokenizer != NULL && id < tokenizer->token_count && tokenizer->special[id];
}

/* ---- encoding ---- */

static locus_status check_input(const locus_text_input *input, locus_error *error)
{
    if (input->size < offsetof(locus_text_input, pair))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_tokenizer_encode: size is not set");
    if (input->text == NULL && input->bytes > 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_tokenizer_encode: the text is NULL");
    return LOCUS_OK;
}

locus_status locus_tokenizer_encode(const locus_tokenizer *tokenizer, const locus_text_input *input,
                                    locus_encoding *encoding, locus_error *error)
{
    locus_text_input all = {.size = 0};
    if (tokenizer == NULL || input == NULL || encoding == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_tokenizer_encode: NULL argument");
    encoding->count = 0;
    LOCUS_TRY(check_input(input, error));
    memcpy(&all, input, input->size < sizeof all ? input->size : sizeof all);
    const char *texts[2] = {all.text == NULL ? "" : all.text, all.pair};
    const size_t bytes[2] = {all.bytes, all.pair_bytes};
    encoding->tokens[1].count = 0;
    for (size_t i = 0; i < 2; i++) {
        if (texts[i] == NULL) continue;
        LOCUS_TRY(locus_text_source_set(&encoding->source[i], texts[i], bytes[i], error));
        LOCUS_TRY(locus_text_encode_segment(tokenizer, i, encoding, error));
    }
    return locus_text_finish(tokenizer, &all, encoding, error);
}

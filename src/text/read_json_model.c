/* SPDX-License-Identifier: Apache-2.0 */
/* The "model" of tokenizer.json: WordPiece, Unigram, BPE. */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/number.h"
#include "text/read.h"

static locus_status find_token(const model *m, const json_value *name, const char *key,
                               uint32_t *id, locus_error *error)
{
    char found[100];
    *id = TEXT_NO_ID;
    if (name == NULL) return LOCUS_OK;
    *id = locus_trie_find(&m->index, name->text, name->bytes);
    if (*id != TRIE_NONE) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "model: %s: found %s, which is not in the vocabulary", key,
                      locus_tree_describe(found, sizeof found, name));
}

/* ---- WordPiece ---- */

static locus_status read_wordpiece(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    model *m = &t->model;
    const json_value *unk = NULL, *prefix = NULL;
    uint64_t most = 0;
    m->kind = MODEL_WORDPIECE;
    LOCUS_TRY(locus_read_vocabulary(t, m, locus_tree_get(value, "vocab"), "model: vocab", error));
    LOCUS_TRY(locus_tree_string(value, "model", "unk_token", &unk, error));
    LOCUS_TRY(locus_tree_string(value, "model", "continuing_subword_prefix", &prefix, error));
    LOCUS_TRY(locus_tree_unsigned(value, "model", "max_input_chars_per_word", 100, UINT32_MAX,
                                  &most, error));
    m->max_chars = (uint32_t)most;
    LOCUS_TRY(find_token(m, unk, "unk_token", &m->unk, error));
    if (m->unk == TEXT_NO_ID)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "model: unk_token: found nothing, expected a "
                          "token");
    m->prefix = locus_read_keep(t, prefix == NULL ? "##" : prefix->text,
                                prefix == NULL ? 2 : prefix->bytes, error);
    if (m->prefix.text == NULL) return LOCUS_ERR_MEMORY;
    return locus_read_continuing(t, m, error);
}

/* ---- WordLevel ---- */

static locus_status read_words(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    model *m = &t->model;
    const json_value *unk = NULL;
    m->kind = MODEL_WORDS;
    LOCUS_TRY(locus_read_vocabulary(t, m, locus_tree_get(value, "vocab"), "model: vocab", error));
    LOCUS_TRY(locus_tree_string(value, "model", "unk_token", &unk, error));
    m->unk = unk == NULL ? TEXT_NO_ID : locus_trie_find(&m->index, unk->text, unk->bytes);
    return LOCUS_OK; /* a word without a token is then an error, as in `tokenizers` */
}

/* ---- Unigram ---- */

static locus_status read_score(const json_value *value, size_t index, double *score,
                               locus_error *error)
{
    char found[100];
    if (value != NULL && value->kind == LOCUS_JSON_INTEGER) {
        *score = (double)value->integer;
        return LOCUS_OK;
    }
    if (value != NULL && value->kind == LOCUS_JSON_NUMBER &&
        value->bytes < LOCUS_JSON_NUMBER_TEXT && locus_parse_real(value->text, score))
        return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "model: vocab: token %zu: found %s, expected a score", index,
                      locus_tree_describe(found, sizeof found, value));
}

static locus_status read_scored(locus_tokenizer *t, model *m, const json_value *vocabulary,
                                locus_error *error)
{
    size_t index = 0;
    char found[100];
    m->min_score = INFINITY;
    for (const json_value *v = vocabulary->child; v != NULL; v = v->next, index++) {
        const json_value *text = v->kind == LOCUS_JSON_ARRAY && v->count == 2 ? v->child : NULL;
        if (text == NULL || text->kind != LOCUS_JSON_STRING)
            return locus_fail(error, LOCUS_ERR_FORMAT,
                              "model: vocab: token %zu: found %s, expected [text, score]", index,
                              locus_tree_describe(found, sizeof found, v));
        LOCUS_TRY(locus_read_piece_set(t, m, index, text->text, text->bytes, error));
        LOCUS_TRY(read_score(text->next, index, &m->scores[index], error));
        if (m->scores[index] < m->min_score) m->min_score = m->scores[index];
    }
    return LOCUS_OK;
}

static locus_status read_unigram(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    model *m = &t->model;
    const json_value *vocabulary = locus_tree_get(value, "vocab");
    uint64_t unk = 0;
    char found[100];
    m->kind = MODEL_UNIGRAM;
    if (vocabulary == NULL || vocabulary->kind != LOCUS_JSON_ARRAY || vocabulary->count == 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "model: vocab: found %s, expected an array of [text, score]",
                          locus_tree_describe(found, sizeof found, vocabulary));
    LOCUS_TRY(locus_read_pieces_new(t, m, vocabulary->count, error));
    m->scores = locus_allocate(t->allocator, m->piece_count, sizeof *m->scores);
    if (m->scores == NULL) return locus_text_no_memory(error);
    LOCUS_TRY(read_scored(t, m, vocabulary, error));
    LOCUS_TRY(locus_tree_unsigned(value, "model", "unk_id", TEXT_NO_ID, TEXT_NO_ID, &unk, error));
    if (unk != TEXT_NO_ID && unk >= m->piece_count)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "model: unk_id: found %u, expected less than %zu", (unsigned)unk,
                          m->piece_count);
    m->unk = (uint32_t)unk;
    LOCUS_TRY(locus_tree_bool(value, "model", "byte_fallback", 0, &m->byte_fallback, error));
    LOCUS_TRY(locus_read_index(t, m, error));
    locus_read_fallback_bytes(m);
    return LOCUS_OK;
}

/* ---- BPE ---- */

/* "left right", or ["left", "right"]. */
static locus_status read_json_merge(const model *m, const json_value *v, size_t rank,
                                    bpe_merge *merge, locus_error *error)
{
    char found[100];
    if (v->kind == LOCUS_JSON_STRING) {
        const char *space = memchr(v->text, ' ', v->bytes);
        const char *second = space == NULL ? NULL : space + 1;
        const size_t left = space == NULL ? 0 : (size_t)(space - v->text);
        if (space != NULL && memchr(second, ' ', v->bytes - left - 1) == NULL)
            return locus_read_merge(m, v->text, left, second, v->bytes - left - 1, rank, merge,
                                    error);
    } else if (v->kind == LOCUS_JSON_ARRAY && v->count == 2 &&
               v->child->kind == LOCUS_JSON_STRING && v->child->next->kind == LOCUS_JSON_STRING) {
        const json_value *a = v->child, *b = a->next;
        return locus_read_merge(m, a->text, a->bytes, b->text, b->bytes, rank, merge, error);
    }
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "model: merge %zu: found %s, expected two tokens with a space between", rank,
                      locus_tree_describe(found, sizeof found, v));
}

static locus_status read_merges(locus_tokenizer *t, model *m, const json_value *value,
                                locus_error *error)
{
    char found[100];
    if (value == NULL || value->kind != LOCUS_JSON_ARRAY)
        return locus_fail(error, LOCUS_ERR_FORMAT, "model: merges: found %s, expected an array",
                          locus_tree_describe(found, sizeof found, value));
    bpe_merge *merges = locus_allocate(t->allocator, value->count, sizeof *merges);
    if (merges == NULL) return locus_text_no_memory(error);
    locus_status status = LOCUS_OK;
    size_t rank = 0;
    for (const json_value *v = value->child; v != NULL && status == LOCUS_OK; v = v->next, rank++)
        status = read_json_merge(m, v, rank, merges + rank, error);
    if (status == LOCUS_OK)
        status = locus_bpe_add_merges(m, merges, value->count, t->allocator, error);
    locus_release(t->allocator, merges);
    return status;
}

/* Options that no published file of the supported families uses. */
static locus_status refuse_rare(const json_value *value, locus_error *error)
{
    char found[100];
    const json_value *dropout = locus_tree_get(value, "dropout");
    const json_value *prefix = locus_tree_get(value, "continuing_subword_prefix");
    double rate = 0;
    if (dropout != NULL && dropout->kind == LOCUS_JSON_NUMBER)
        (void)locus_parse_real(dropout->text, &rate);
    if (rate != 0 || (dropout != NULL && dropout->kind == LOCUS_JSON_INTEGER && dropout->integer))
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "model: dropout: found %s, which this reader does not support",
                          locus_tree_describe(found, sizeof found, dropout));
    if (prefix != NULL && prefix->kind == LOCUS_JSON_STRING && prefix->bytes > 0)
        return locus_fail(
            error, LOCUS_ERR_FORMAT,
            "model: continuing_subword_prefix: found %s, which this reader does not support",
            locus_tree_describe(found, sizeof found, prefix));
    return LOCUS_OK;
}

static locus_status read_bpe(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    model *m = &t->model;
    const json_value *unk = NULL, *suffix = NULL;
    m->kind = MODEL_BPE;
    LOCUS_TRY(refuse_rare(value, error));
    LOCUS_TRY(locus_read_vocabulary(t, m, locus_tree_get(value, "vocab"), "model: vocab", error));
    LOCUS_TRY(locus_tree_string(value, "model", "unk_token", &unk, error));
    LOCUS_TRY(locus_tree_string(value, "model", "end_of_word_suffix", &suffix, error));
    LOCUS_TRY(locus_tree_bool(value, "model", "fuse_unk", 0, &m->fuse_unk, error));
    LOCUS_TRY(locus_tree_bool(value, "model", "byte_fallback", 0, &m->byte_fallback, error));
    LOCUS_TRY(locus_tree_bool(value, "model", "ignore_merges", 0, &m->ignore_merges, error));
    LOCUS_TRY(find_token(m, unk, "unk_token", &m->unk, error));
    if (suffix != NULL && suffix->bytes > 64)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "model: end_of_word_suffix: found %u bytes, expected at most 64",
                          suffix->bytes);
    if (suffix != NULL) LOCUS_TRY(locus_read_keep_value(t, suffix, &m->word_suffix, error));
    locus_read_fallback_bytes(m);
    return read_merges(t, m, locus_tree_get(value, "merges"), error);
}

locus_status locus_read_json_model(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    char found[100];
    const json_value *type = locus_tree_get(value, "type"), *vocab = locus_tree_get(value, "vocab");
    if (value == NULL || value->kind != LOCUS_JSON_OBJECT)
        return locus_fail(error, LOCUS_ERR_FORMAT, "model: found %s, expected an object",
                          locus_tree_describe(found, sizeof found, value));
    if (type == NULL && vocab != NULL) { /* older files say it by their members */
        if (locus_tree_get(value, "merges") != NULL) return read_bpe(t, value, error);
        if (vocab->kind == LOCUS_JSON_ARRAY) return read_unigram(t, value, error);
        return read_wordpiece(t, value, error);
    }
    if (locus_tree_is_text(type, "WordPiece")) return read_wordpiece(t, value, error);
    if (locus_tree_is_text(type, "Unigram")) return read_unigram(t, value, error);
    if (locus_tree_is_text(type, "BPE")) return read_bpe(t, value, error);
    if (locus_tree_is_text(type, "WordLevel")) return read_words(t, value, error);
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "model: type: found %s, expected WordPiece, Unigram, BPE or WordLevel",
                      locus_tree_describe(found, sizeof found, type));
}

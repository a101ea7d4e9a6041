/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece files by the rules of transformers' own (slow) classes. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/class_rules.h"

static locus_status option(const read_files *f, const char *key, int preset, int *value)
{
    return locus_tree_bool(f->tokenizer_config.root, "tokenizer_config.json", key, preset, value,
                           f->error);
}

static void add_step(locus_tokenizer *t, normalizer step)
{
    t->normalizers[t->normalizer_count++] = step;
}

static uint32_t find_piece(const locus_tokenizer *t, const char *text, size_t bytes)
{
    const uint32_t id = locus_trie_find(&t->model.index, text, bytes);
    return id == TRIE_NONE ? TEXT_NO_ID : id;
}

static int is(const class_rules *rules, const char *name) { return strcmp(rules->name, name) == 0; }

/* ---- as they are ---- */

locus_status locus_read_sentencepiece_raw(const read_files *f, const char *name)
{
    locus_tokenizer *t = f->t;
    normalizer step;
    LOCUS_TRY(locus_read_sentencepiece(f, name, &t->model, &t->map, &t->symbols, &step));
    add_step(t, step);
    t->source = "SentencePiece model";
    t->rules = "SentencePiece";
    t->single = (text_template){.items = {{.kind = ITEM_FIRST}}, .count = 1};
    t->pair = (text_template){.items = {{.kind = ITEM_FIRST}, {.kind = ITEM_SECOND}}, .count = 2};
    t->part[PART_UNK] = t->model.unk;
    t->decoders[t->decoder_count++] = (decoder){.kind = DECODE_SENTENCEPIECE};
    const locus_status status = locus_read_finish(t, f->error);
    for (size_t i = 0; status == LOCUS_OK && i < t->model.piece_count; i++)
        t->special[i] = t->model.types[i] == PIECE_CONTROL;
    return status == LOCUS_OK ? LOCUS_OK : locus_read_fail_in(f, status, name);
}

/* ---- by class ---- */

/* <extra_id_0> ... from the end of the vocabulary down. */
static locus_status add_extra_ids(const read_files *f, size_t vocabulary, uint64_t preset,
                                  int descending, int strips)
{
    uint64_t count = 0;
    char text[40];
    LOCUS_TRY(locus_tree_unsigned(f->tokenizer_config.root, "tokenizer_config.json", "extra_ids",
                                  preset, 4096, &count, f->error));
    LOCUS_TRY(locus_read_added_reserve(f->t, (size_t)count, f->error));
    for (size_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "<extra_id_%zu>", i);
        const size_t place = descending ? (size_t)count - 1 - i : i;
        added_token token = {.content = locus_read_keep(f->t, text, strlen(text), f->error),
                             .id = (uint32_t)(vocabulary + place),
                             .lstrip = (uint8_t)strips,
                             .rstrip = (uint8_t)strips,
                             .special = 1};
        if (token.content.text == NULL) return LOCUS_ERR_MEMORY;
        LOCUS_TRY(locus_read_added(f->t, token, f->error));
    }
    return LOCUS_OK;
}

/* ALBERT and XLNet rewrite the text before SentencePiece sees it. */
static locus_status add_albert_steps(const read_files *f, const class_rules *rules)
{
    locus_tokenizer *t = f->t;
    const normalizer backquotes = {.kind = NORMALIZE_REPLACE,
                                   .pattern = {.text = "``", .bytes = 2},
                                   .content = {.text = "\"", .bytes = 1}};
    const normalizer quotes = {.kind = NORMALIZE_REPLACE,
                               .pattern = {.text = "''", .bytes = 2},
                               .content = {.text = "\"", .bytes = 1}};
    int lower = 0, keep_accents = 0, remove_space = 0;
    LOCUS_TRY(option(f, "do_lower_case", is(rules, "AlbertTokenizer"), &lower));
    LOCUS_TRY(option(f, "keep_accents", 0, &keep_accents));
    LOCUS_TRY(option(f, "remove_space", 1, &remove_space));
    if (remove_space) add_step(t, (normalizer){.kind = NORMALIZE_PY_SPACE});
    add_step(t, backquotes);
    add_step(t, quotes);
    if (!keep_accents) {
        add_step(t, (normalizer){.kind = NORMALIZE_UNICODE, .form = UNICODE_PY_NFKD});
        add_step(t, (normalizer){.kind = NORMALIZE_PY_COMBINING});
    }
    if (lower) add_step(t, (normalizer){.kind = NORMALIZE_PY_LOWER});
    t->slow_lower = lower;
    t->split_commas = t->model.kind == MODEL_UNIGRAM;
    return LOCUS_OK;
}

/* XLM-R: ids are those of fairseq, one more than SentencePiece's, but for the first four. */
static uint32_t find_fairseq(const locus_tokenizer *t, const char *text, size_t bytes)
{
    static const char *const first[] = {"<s>", "<pad>", "</s>", "<unk>"};
    for (uint32_t i = 0; i < 4; i++)
        if (strlen(first[i]) == bytes && memcmp(first[i], text, bytes) == 0) return i;
    if (bytes == 6 && memcmp(text, "<mask>", 6) == 0) return (uint32_t)t->model.piece_count + 1;
    const uint32_t id = locus_trie_find(&t->model.index, text, bytes);
    return id == TRIE_NONE || id == 0 ? TEXT_NO_ID : id + 1;
}

static locus_status shift_ids(const read_files *f)
{
    locus_tokenizer *t = f->t;
    const model *m = &t->model;
    const size_t count = m->piece_count + 1;
    t->id_of_piece = locus_allocate(t->allocator, m->piece_count, sizeof *t->id_of_piece);
    t->tokens = locus_allocate(t->allocator, count, sizeof *t->tokens);
    if (t->id_of_piece == NULL || t->tokens == NULL) return locus_text_no_memory(f->error);
    if (m->piece_count < 4)
        return locus_fail(f->error, LOCUS_ERR_FORMAT, "found %zu pieces, expected at least 4",
                          m->piece_count);
    static const char *const first[] = {"<s>", "<pad>", "</s>", "<unk>"};
    for (size_t i = 0; i < 4; i++)
        t->tokens[i] = (text_string){first[i], (uint32_t)strlen(first[i])};
    for (size_t i = 0; i < m->piece_count; i++) {
        const uint32_t id = find_fairseq(t, m->pieces[i].text, m->pieces[i].bytes);
        t->id_of_piece[i] = id == TEXT_NO_ID ? 3 : id;
        if (i >= 3) t->tokens[i + 1] = m->pieces[i];
    }
    t->token_count = count;
    return LOCUS_OK;
}

/* How many pieces the unknown token is when SentencePiece meets its text. */
static locus_status count_unknown_pieces(const read_files *f)
{
    locus_tokenizer *t = f->t;
    locus_encoding *e = NULL;
    const text_string unk = t->tokens[t->part[PART_UNK]];
    text_buffer input = {.allocator = t->allocator}, *result = NULL;
    locus_status status = locus_encoding_new(&e, t->allocator, f->error);
    for (size_t at = 0, length = 0; at < unk.bytes; at += length)
        locus_text_buffer_add(&input, utf8_read(unk.text + at, &length), at);
    if (status == LOCUS_OK && input.failed) status = locus_text_no_memory(f->error);
    if (status == LOCUS_OK) status = locus_text_normalize(t, &input, &result, e, f->error);
    if (status == LOCUS_OK && result->bytes > 0) {
        status = t->model.kind == MODEL_UNIGRAM
                     ? locus_unigram_pieces(&t->model, result->data, 0, result->bytes, e, f->error)
                     : locus_bpe_pieces(&t->model, result->data, 0, result->bytes, e, f->error);
        t->unk_prefix_count = e->pieces.count;
    }
    locus_text_buffer_free(&input);
    locus_encoding_free(e);
    return status;
}

static const char *single_of(const class_rules *rules, int bos, int eos)
{
    if (!is(rules, "LlamaTokenizer")) return rules->single;
    return bos ? eos ? "b A e" : "b A" : eos ? "A e" : "A";
}

static const char *pair_of(const class_rules *rules, int bos, int eos)
{
    if (!is(rules, "LlamaTokenizer")) return rules->pair;
    return bos ? eos ? "b A e b B e" : "b A b B" : eos ? "A e B e" : "A B";
}

static locus_status read_class_options(const read_files *f, const class_rules *rules,
                                       normalizer *step)
{
    locus_tokenizer *t = f->t;
    int legacy = 1, by_punctuation = 0;
    if (is(rules, "AlbertTokenizer") || is(rules, "XLNetTokenizer"))
        LOCUS_TRY(add_albert_steps(f, rules));
    if (is(rules, "DebertaV2Tokenizer")) {
        LOCUS_TRY(option(f, "do_lower_case", 0, &t->slow_lower));
        LOCUS_TRY(option(f, "split_by_punct", 0, &by_punctuation));
        if (by_punctuation)
            return locus_fail(f->error, LOCUS_ERR_FORMAT,
                              "split_by_punct: found true, which this reader does not support");
        if (t->slow_lower) add_step(t, (normalizer){.kind = NORMALIZE_PY_LOWER});
    }
    if (is(rules, "T5Tokenizer") || is(rules, "LlamaTokenizer"))
        LOCUS_TRY(option(f, "legacy", 1, &legacy));
    const json_value *prefix = locus_tree_get(f->tokenizer_config.root, "add_prefix_space");
    t->unk_prefix = !legacy;
    t->no_prefix = prefix != NULL && prefix->kind != LOCUS_JSON_TRUE; /* null is false in Python */
    if (!legacy) step->dummy_prefix = 0;
    return LOCUS_OK;
}

static locus_status build_class(const read_files *f, const class_rules *rules, normalizer *step)
{
    locus_tokenizer *t = f->t;
    int bos = 1, eos = 0;
    size_t vocabulary = t->model.piece_count;
    const int fairseq = is(rules, "XLMRobertaTokenizer");
    LOCUS_TRY(read_class_options(f, rules, step));
    add_step(t, *step);
    if (is(rules, "T5Tokenizer")) LOCUS_TRY(add_extra_ids(f, vocabulary, 100, 1, 1));
    if (fairseq) {
        LOCUS_TRY(shift_ids(f));
        vocabulary += 2;
    }
    LOCUS_TRY(locus_class_added(f, rules, fairseq ? find_fairseq : find_piece, vocabulary));
    LOCUS_TRY(option(f, "add_bos_token", 1, &bos));
    LOCUS_TRY(option(f, "add_eos_token", 0, &eos));
    t->rules = rules->name;
    t->has_types = rules->has_types;
    t->slow = 1;
    LOCUS_TRY(locus_class_template(t, single_of(rules, bos, eos), &t->single, f->error));
    LOCUS_TRY(locus_class_template(t, pair_of(rules, bos, eos), &t->pair, f->error));
    LOCUS_TRY(option(f, "clean_up_tokenization_spaces", 0, &t->clean_up_spaces));
    t->decoders[t->decoder_count++] = (decoder){.kind = DECODE_SENTENCEPIECE};
    LOCUS_TRY(locus_read_finish(t, f->error));
    if (t->unk_prefix && t->part[PART_UNK] != TEXT_NO_ID) return count_unknown_pieces(f);
    t->unk_prefix = 0;
    return LOCUS_OK;
}

locus_status locus_read_sentencepiece_class(const read_files *f, const class_rules *rules,
                                            const char *name)
{
    locus_tokenizer *t = f->t;
    normalizer step;
    LOCUS_TRY(locus_read_sentencepiece(f, name, &t->model, &t->map, &t->symbols, &step));
    t->source = "SentencePiece model";
    const locus_status status = build_class(f, rules, &step);
    return status == LOCUS_OK ? LOCUS_OK : locus_read_fail_in(f, status, name);
}

/* ---- Marian: pieces of source.spm, ids of vocab.json ---- */

static uint32_t find_in_vocabulary(const locus_tokenizer *t, const char *text, size_t bytes)
{
    for (size_t i = 0; i < t->token_count; i++)
        if (t->tokens[i].bytes == bytes && memcmp(t->tokens[i].text, text, bytes) == 0)
            return (uint32_t)i;
    return TEXT_NO_ID;
}

static locus_status map_pieces(const read_files *f, const model *vocabulary)
{
    locus_tokenizer *t = f->t;
    const uint32_t unk = locus_trie_find(&vocabulary->index, "<unk>", 5);
    if (unk == TRIE_NONE || locus_trie_find(&vocabulary->index, "<pad>", 5) == TRIE_NONE)
        return locus_fail(f->error, LOCUS_ERR_FORMAT, "found no <unk> or no <pad>, expected both");
    t->id_of_piece = locus_allocate(t->allocator, t->model.piece_count, sizeof *t->id_of_piece);
    t->tokens = locus_allocate(t->allocator, vocabulary->piece_count, sizeof *t->tokens);
    if (t->id_of_piece == NULL || t->tokens == NULL) return locus_text_no_memory(f->error);
    for (size_t i = 0; i < t->model.piece_count; i++) {
        const text_string *piece = t->model.pieces + i;
        const uint32_t id = locus_trie_find(&vocabulary->index, piece->text, piece->bytes);
        t->id_of_piece[i] = id == TRIE_NONE || i == t->model.unk ? unk : id;
    }
    t->token_count = vocabulary->piece_count;
    memcpy(t->tokens, vocabulary->pieces, t->token_count * sizeof *t->tokens);
    return LOCUS_OK;
}

static locus_status read_marian_vocabulary(const read_files *f)
{
    json_tree tree;
    model vocabulary = {.kind = MODEL_BYTES};
    LOCUS_TRY(locus_read_json(f, "vocab.json", 1, &tree));
    locus_status status =
        locus_read_vocabulary(f->t, &vocabulary, tree.root, "vocabulary", f->error);
    locus_json_tree_free(&tree);
    if (status == LOCUS_OK) status = map_pieces(f, &vocabulary);
    locus_text_model_free(&vocabulary, f->t->allocator);
    return status == LOCUS_OK ? LOCUS_OK : locus_read_fail_in(f, status, "vocab.json");
}

locus_status locus_read_marian(const read_files *f, const class_rules *rules)
{
    locus_tokenizer *t = f->t;
    normalizer step, target_step;
    trie target_symbols = {.nodes = 0};
    int separate = 0;
    LOCUS_TRY(option(f, "separate_vocabs", 0, &separate));
    if (separate) {
        (void)locus_fail(f->error, LOCUS_ERR_FORMAT,
                         "separate_vocabs: found true, which this reader does not support");
        return locus_read_fail_in(f, LOCUS_ERR_FORMAT, "tokenizer_config.json");
    }
    LOCUS_TRY(locus_read_sentencepiece(f, "source.spm", &t->model, &t->map, &t->symbols, &step));
    const locus_status status =
        locus_read_sentencepiece(f, "target.spm", &t->target, &t->target_map, &target_symbols,
                                 &target_step);
    locus_trie_free(&target_symbols, t->allocator);
    LOCUS_TRY(status);
    LOCUS_TRY(read_marian_vocabulary(f));
    t->decoder_model = &t->target;
    add_step(t, step);
    t->source = "source.spm";
    t->rules = rules->name;
    t->slow = 1;
    t->language_code = 1;
    LOCUS_TRY(locus_class_added(f, rules, find_in_vocabulary, t->token_count));
    LOCUS_TRY(locus_class_template(t, rules->single, &t->single, f->error));
    LOCUS_TRY(locus_class_template(t, rules->pair, &t->pair, f->error));
    LOCUS_TRY(option(f, "clean_up_tokenization_spaces", 0, &t->clean_up_spaces));
    t->decoders[t->decoder_count++] = (decoder){.kind = DECODE_SENTENCEPIECE};
    return locus_read_finish(t, f->error);
}

/* ---- ByT5: bytes, after pad, eos and unk ---- */

static uint32_t find_none(const locus_tokenizer *t, const char *text, size_t bytes)
{
    static const char *const first[] = {"<pad>", "</s>", "<unk>"};
    (void)t;
    for (uint32_t i = 0; i < 3; i++)
        if (strlen(first[i]) == bytes && memcmp(first[i], text, bytes) == 0) return i;
    return TEXT_NO_ID;
}

locus_status locus_read_bytes(const read_files *f, const class_rules *rules)
{
    enum byt5 { SPECIAL = 3, COUNT = SPECIAL + 256 };
    locus_tokenizer *t = f->t;
    unsigned char letter[4];
    t->model.kind = MODEL_BYTES;
    t->model.unk = TEXT_NO_ID;
    t->tokens = locus_allocate(t->allocator, COUNT, sizeof *t->tokens);
    if (t->tokens == NULL) return locus_text_no_memory(f->error);
    t->token_count = COUNT;
    for (uint32_t i = 0; i < 256; i++) {
        t->model.byte_ids[i] = SPECIAL + i;
        const size_t bytes = locus_utf8_encode(letter, i);
        t->tokens[SPECIAL + i] = locus_read_keep(t, (const char *)letter, bytes, f->error);
        if (t->tokens[SPECIAL + i].text == NULL) return LOCUS_ERR_MEMORY;
    }
    t->source = "tokenizer_config.json";
    t->rules = rules->name;
    t->slow = 1;
    LOCUS_TRY(locus_class_added(f, rules, find_none, COUNT));
    LOCUS_TRY(add_extra_ids(f, COUNT, 125, 0, 0));
    LOCUS_TRY(locus_class_template(t, rules->single, &t->single, f->error));
    LOCUS_TRY(locus_class_template(t, rules->pair, &t->pair, f->error));
    t->decoders[t->decoder_count++] = (decoder){.kind = DECODE_BYTES};
    return locus_read_finish(t, f->error);
}

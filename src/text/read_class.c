/* SPDX-License-Identifier: Apache-2.0 */
/* Folders without tokenizer.json: vocabulary files, and the rules of the class that reads them. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/tensorfile.h"
#include "text/class_rules.h"

static uint32_t find_piece(const locus_tokenizer *t, const char *text, size_t bytes)
{
    const uint32_t id = locus_trie_find(&t->model.index, text, bytes);
    return id == TRIE_NONE ? TEXT_NO_ID : id;
}

static void add_decoder(locus_tokenizer *t, decoder step)
{
    t->decoders[t->decoder_count++] = step;
}

static locus_status option(const read_files *f, const char *key, int preset, int *value)
{
    return locus_tree_bool(f->tokenizer_config.root, "tokenizer_config.json", key, preset, value,
                           f->error);
}

static locus_status finish(const read_files *f, const class_rules *rules, const char *single,
                           const char *pair)
{
    locus_tokenizer *t = f->t;
    t->rules = rules->name;
    t->has_types = rules->has_types;
    LOCUS_TRY(locus_class_template(t, single, &t->single, f->error));
    LOCUS_TRY(locus_class_template(t, pair, &t->pair, f->error));
    LOCUS_TRY(option(f, "clean_up_tokenization_spaces", rules->files == FILES_WORDPIECE,
                     &t->clean_up_spaces));
    return locus_read_finish(t, f->error);
}

/* ---- vocab.txt ---- */

static size_t line_length(const char *text, size_t left)
{
    const char *end = memchr(text, '\n', left);
    const size_t bytes = end == NULL ? left : (size_t)(end - text);
    return bytes;
}

static locus_status read_lines(locus_tokenizer *t, const char *text, size_t bytes,
                               locus_error *error)
{
    size_t count = 0, line = 0;
    for (size_t at = 0; at < bytes; at += line_length(text + at, bytes - at) + 1) count++;
    LOCUS_TRY(locus_read_pieces_new(t, &t->model, count, error));
    for (size_t at = 0; at < bytes; line++) {
        const size_t whole = line_length(text + at, bytes - at);
        const size_t length = whole > 0 && text[at + whole - 1] == '\r' ? whole - 1 : whole;
        if (length > 0)
            LOCUS_TRY(locus_read_piece_set(t, &t->model, line, text + at, length, error));
        else
            t->model.pieces[line] = (text_string){.text = "", .bytes = 0};
        at += whole + 1;
    }
    return LOCUS_OK;
}

/* Of a token that occurs twice the later id counts; an empty line is an id without a token. */
static locus_status index_lines(locus_tokenizer *t, locus_error *error)
{
    model *m = &t->model;
    size_t count = 0, duplicate = 0;
    trie_key *keys = locus_allocate(t->allocator, m->piece_count, sizeof *keys);
    if (keys == NULL) return locus_text_no_memory(error);
    for (size_t i = 0; i < m->piece_count; i++)
        if (m->pieces[i].bytes > 0)
            keys[count++] = (trie_key){m->pieces[i].text, m->pieces[i].bytes, (uint32_t)i};
    const locus_status status =
        locus_trie_build(&m->index, keys, count, &duplicate, t->allocator, error);
    locus_release(t->allocator, keys);
    return status;
}

static locus_status read_wordpiece_options(const read_files *f)
{
    locus_tokenizer *t = f->t;
    normalizer *step = t->normalizers;
    *step = (normalizer){.kind = NORMALIZE_BERT, .clean = 1};
    LOCUS_TRY(option(f, "do_lower_case", 1, &step->lower));
    LOCUS_TRY(option(f, "tokenize_chinese_chars", 1, &step->chinese));
    LOCUS_TRY(option(f, "strip_accents", step->lower, &step->accents));
    t->normalizer_count = 1;
    t->splitters[0] = (splitter){.kind = SPLIT_BERT};
    t->splitter_count = 1;
    t->model.kind = MODEL_WORDPIECE;
    t->model.prefix = (text_string){.text = "##", .bytes = 2};
    t->model.max_chars = 100;
    add_decoder(t, (decoder){.kind = DECODE_WORDPIECE,
                             .cleanup = 1,
                             .pattern = {.text = "##", .bytes = 2}});
    return LOCUS_OK;
}

static locus_status read_vocab_txt(const read_files *f, const class_rules *rules, const char *name)
{
    locus_tokenizer *t = f->t;
    char *text = NULL;
    size_t bytes = 0;
    LOCUS_TRY(locus_read_whole(f, name, &text, &bytes));
    locus_status status = read_lines(t, text, bytes, f->error);
    locus_release(t->allocator, text);
    if (status == LOCUS_OK) status = index_lines(t, f->error);
    if (status == LOCUS_OK) status = read_wordpiece_options(f);
    if (status == LOCUS_OK) status = locus_read_continuing(t, &t->model, f->error);
    if (status == LOCUS_OK) status = locus_class_added(f, rules, find_piece, t->model.piece_count);
    if (status == LOCUS_OK && t->part[PART_UNK] < t->model.piece_count)
        t->model.unk = t->part[PART_UNK];
    if (status == LOCUS_OK && t->model.unk == TEXT_NO_ID)
        status = locus_fail(f->error, LOCUS_ERR_FORMAT, "found no unknown token (%s), expected one",
                            rules->parts[PART_UNK]);
    t->source = "vocab.txt";
    if (status == LOCUS_OK) status = finish(f, rules, rules->single, rules->pair);
    return status == LOCUS_OK ? LOCUS_OK : locus_read_fail_in(f, status, name);
}

/* ---- vocab.json and merges.txt ---- */

static locus_status read_merge_lines(locus_tokenizer *t, const char *text, size_t bytes,
                                     locus_error *error)
{
    size_t lines = 0, count = 0;
    for (size_t at = 0; at < bytes; at += line_length(text + at, bytes - at) + 1) lines++;
    bpe_merge *merges = locus_allocate(t->allocator, lines, sizeof *merges);
    if (merges == NULL) return locus_text_no_memory(error);
    locus_status status = LOCUS_OK;
    for (size_t at = 0, line = 0; at < bytes && status == LOCUS_OK; line++) {
        const size_t whole = line_length(text + at, bytes - at);
        const size_t length = whole > 0 && text[at + whole - 1] == '\r' ? whole - 1 : whole;
        const char *begin = text + at, *space = memchr(begin, ' ', length);
        at += whole + 1;
        if (length == 0 || (line == 0 && length > 8 && memcmp(begin, "#version", 8) == 0)) continue;
        const size_t left = space == NULL ? 0 : (size_t)(space - begin);
        if (space == NULL || memchr(space + 1, ' ', length - left - 1) != NULL)
            status = locus_fail(error, LOCUS_ERR_FORMAT,
                                "line %zu: expected two tokens with a space between", line + 1);
        else
            status = locus_read_merge(&t->model, begin, left, space + 1, length - left - 1, count,
                                      merges + count, error);
        count++;
    }
    if (status == LOCUS_OK)
        status = locus_bpe_add_merges(&t->model, merges, count, t->allocator, error);
    locus_release(t->allocator, merges);
    return status;
}

static locus_status read_merges_txt(const read_files *f)
{
    char *text = NULL;
    size_t bytes = 0;
    LOCUS_TRY(locus_read_whole(f, "merges.txt", &text, &bytes));
    const locus_status status = read_merge_lines(f->t, text, bytes, f->error);
    locus_release(f->t->allocator, text);
    return status == LOCUS_OK ? LOCUS_OK : locus_read_fail_in(f, status, "merges.txt");
}

static locus_status read_vocab_json(const read_files *f, model *m)
{
    json_tree tree;
    LOCUS_TRY(locus_read_json(f, "vocab.json", 1, &tree));
    const locus_status status = locus_read_vocabulary(f->t, m, tree.root, "vocabulary", f->error);
    locus_json_tree_free(&tree);
    return status == LOCUS_OK ? LOCUS_OK : locus_read_fail_in(f, status, "vocab.json");
}

static locus_status read_byte_bpe(const read_files *f, const class_rules *rules)
{
    locus_tokenizer *t = f->t;
    int prefix = 0, bos = 0;
    const int is_gpt2 = rules->parts[PART_CLS] == NULL;
    t->model.kind = MODEL_BPE;
    t->source = "vocab.json";
    LOCUS_TRY(read_vocab_json(f, &t->model));
    LOCUS_TRY(read_merges_txt(f));
    LOCUS_TRY(locus_read_byte_level(t, &t->model, f->error));
    LOCUS_TRY(option(f, "add_prefix_space", 0, &prefix));
    LOCUS_TRY(option(f, "add_bos_token", 0, &bos));
    if (prefix) t->splitters[t->splitter_count++] = (splitter){.kind = SPLIT_PREFIX};
    const int qwen2 = strcmp(rules->name, "Qwen2Tokenizer") == 0;
    if (qwen2)
        t->normalizers[t->normalizer_count++] =
            (normalizer){.kind = NORMALIZE_UNICODE, .form = UNICODE_NFC};
    LOCUS_TRY(
        locus_read_split(t, qwen2 ? locus_qwen2_expression : locus_gpt2_expression, f->error));
    add_decoder(t, (decoder){.kind = DECODE_BYTE_LEVEL});
    LOCUS_TRY(locus_class_added(f, rules, find_piece, t->model.piece_count));
    t->trim_offsets = strcmp(rules->name, "RobertaTokenizer") == 0;
    t->trim_prefix = prefix;
    if (is_gpt2 && bos) return finish(f, rules, "b A", "b A B:1");
    return finish(f, rules, rules->single, rules->pair);
}

/* ---- the choice ---- */

static const class_rules *rules_named(const char *name)
{
    return locus_class_rules_find(name, strlen(name));
}

static locus_status read_one_file(const read_files *f)
{
    const size_t bytes = strlen(f->file);
    if (bytes > 4 && strcmp(f->file + bytes - 4, ".txt") == 0)
        return read_vocab_txt(f, rules_named("BertTokenizer"), f->file);
    return locus_read_sentencepiece_raw(f, f->file);
}

/* Byte-level BPE without a name: GPT-2's, unless the vocabulary is of RoBERTa's kind. */
static locus_status read_unnamed_bpe(const read_files *f)
{
    LOCUS_TRY(read_byte_bpe(f, rules_named("GPT2Tokenizer")));
    if (locus_trie_find(&f->t->model.index, "<s>", 3) == TRIE_NONE) return LOCUS_OK;
    (void)locus_fail(f->error, LOCUS_ERR_FORMAT,
                     "found vocab.json with <s>, and no tokenizer_class or model_type, expected "
                     "one of them");
    return locus_file_fail_in(f->error, LOCUS_ERR_FORMAT, f->folder);
}

/* Nothing names a class. */
static locus_status read_unnamed(const read_files *f, const char *spm)
{
    if (locus_read_exists(f, "source.spm") && locus_read_exists(f, "target.spm") &&
        locus_read_exists(f, "vocab.json"))
        return locus_read_marian(f, rules_named("MarianTokenizer"));
    if (locus_read_exists(f, "vocab.txt"))
        return read_vocab_txt(f, rules_named("BertTokenizer"), "vocab.txt");
    if (locus_read_exists(f, "vocab.json") && locus_read_exists(f, "merges.txt"))
        return read_unnamed_bpe(f);
    const int any_json = f->tokenizer_config.root != NULL || f->special_tokens_map.root != NULL ||
                         f->config.root != NULL || f->added_tokens.root != NULL;
    if (spm != NULL && !any_json) return locus_read_sentencepiece_raw(f, spm);
    (void)locus_fail(
        f->error, LOCUS_ERR_FORMAT,
        "found no tokenizer files (tokenizer.json, vocab.txt, vocab.json + merges.txt, "
        "a SentencePiece model)");
    return locus_file_fail_in(f->error, LOCUS_ERR_FORMAT, f->folder);
}

static const char from_json_only[] = "which this reader knows from a tokenizer.json only";

locus_status locus_read_by_class(read_files *f)
{
    static const char *const expected[] = {[FILES_WORDPIECE] = "expected vocab.txt",
                                           [FILES_BYTE_BPE] = "expected vocab.json and merges.txt",
                                           [FILES_SENTENCEPIECE] = "expected a SentencePiece model",
                                           [FILES_MARIAN] =
                                               "expected source.spm, target.spm and vocab.json",
                                           [FILES_BYTES] = "",
                                           [FILES_JSON] = from_json_only,
                                           [FILES_REFUSED] =
                                               "whose rules this reader does not support"};
    const json_value *named = NULL;
    if (f->file != NULL) return read_one_file(f);
    const class_rules *rules = locus_class_rules_of(f, &named);
    const char *spm = locus_read_find_spm(f);
    if (named == NULL) return read_unnamed(f, spm);
    if (locus_class_is_generic(named))
        return locus_class_refuse(f, named, "expected its tokenizer.json");
    if (rules == NULL)
        return locus_class_refuse(f, named,
                                  "which this reader does not know, and no "
                                  "tokenizer.json");
    if (rules->files == FILES_REFUSED && strcmp(rules->name, "RoFormerTokenizer") == 0)
        return locus_class_refuse(f, named,
                                  "whose segmentation by jieba this reader does not support");
    if (rules->files == FILES_BYTES) return locus_read_bytes(f, rules);
    if (rules->files == FILES_MARIAN && locus_read_exists(f, "source.spm") &&
        locus_read_exists(f, "target.spm") && locus_read_exists(f, "vocab.json"))
        return locus_read_marian(f, rules);
    if (rules->files == FILES_SENTENCEPIECE && spm != NULL)
        return locus_read_sentencepiece_class(f, rules, spm);
    if (rules->files == FILES_WORDPIECE && locus_read_exists(f, "vocab.txt"))
        return read_vocab_txt(f, rules, "vocab.txt");
    if (rules->files == FILES_BYTE_BPE && locus_read_exists(f, "vocab.json") &&
        locus_read_exists(f, "merges.txt"))
        return read_byte_bpe(f, rules);
    return locus_class_refuse(f, named, expected[rules->files]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizer files that break a rule: one line each, nothing left behind. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/allocator.h"
#include "support/check.h"
#include "text/texttest.h"

static void refuse(const char *name, const char *member, const char *part, const char *words)
{
    if (!check_begin("text/refused/%s", name)) return;
    put_json(member, part);
    check_refused(LOCUS_ERR_FORMAT, words);
}

/* F71 to F75, F78, F79: models, patterns, templates. */
static void test_json(void)
{
    static const char *const rows[][4] = {
        {"F71/left", "model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"x b\"]}",
         "merge 0: found \"x\""},
        {"F71/union", "model",
         "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a b\"]}", "union"},
        {"F71/one-word", "model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}",
         "merge 0"},
        {"F73/twice", "model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}",
         "a second time"},
        {"F73/negative", "model", "{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}",
         "found the number -1"},
        {"F73/gap", "model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":2},\"merges\":[]}",
         "no token with id 1"},
        {"F73/large", "model", "{\"type\":\"BPE\",\"vocab\":{\"a\":2147483648},\"merges\":[]}",
         "expected an id from 0"},
        {"F73/word", "model", "{\"type\":\"BPE\",\"vocab\":{\"a\":\"0\"},\"merges\":[]}",
         "found \"0\""},
        {"F73/same-token", "model",
         "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",0],[\"a\",-1]]}", "found it twice"},
        {"model/type", "model", "{\"type\":\"Other\",\"vocab\":{\"a\":0}}", "Other"},
        {"model/none", "model", "null", "model: found null"},
        {"model/dropout", "model",
         "{\"type\":\"BPE\",\"dropout\":0.1,\"vocab\":{\"a\":0},\"merges\":[]}", "dropout"},
        {"model/unknown", "model",
         "{\"type\":\"BPE\",\"unk_token\":\"x\",\"vocab\":{\"a\":0},\"merges\":[]}", "unk_token"},
        {"unigram/unk", "model", "{\"type\":\"Unigram\",\"unk_id\":7,\"vocab\":[[\"a\",0]]}",
         "unk_id: found 7"},
        {"unigram/score", "model", "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",\"x\"]]}",
         "expected a score"},
        {"unigram/huge", "model", "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",1e999]]}",
         "expected a score"},
        {"wordpiece/unk", "model", "{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}", "unk_token"},
        {"normalizer/type", "normalizer", "{\"type\":\"Other\"}", "Other"},
        {"normalizer/pattern", "normalizer",
         "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(a)\\\\1\"},\"content\":\"\"}",
         "an unsupported expression"},
        {"normalizer/flag", "normalizer", "{\"type\":\"BertNormalizer\",\"lowercase\":1}",
         "lowercase: found the number 1"},
        {"F76/base64", "normalizer", "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"!!!!\"}",
         "base64"},
        {"F76/empty", "normalizer", "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"\"}",
         "character map"},
        {"F76/odd", "normalizer",
         "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AwAAAA==\"}", "character map"},
        {"F76/beyond", "normalizer",
         "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"/////wAA\"}", "character map"},
        {"F76/no-text", "normalizer",
         "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAAAAA=\"}", "character map"},
        {"F76/far-root", "normalizer",
         "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAD8/z8A\"}",
         "found a root that points to"},
        {"F76/root", "normalizer",
         "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAAAIAAAA==\"}",
         "character map"},
        {"F78/pattern", "pre_tokenizer",
         "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a)\\\\1\"},\"behavior\":\"Isolated\"}",
         "an unsupported expression"},
        {"pre_tokenizer/type", "pre_tokenizer", "{\"type\":\"UnicodeScripts\"}", "UnicodeScripts"},
        {"pre_tokenizer/behaviour", "pre_tokenizer",
         "{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Other\"}", "Other"},
        {"post_processor/two", "post_processor",
         "{\"type\":\"Sequence\",\"processors\":["
         "{\"type\":\"BertProcessing\",\"sep\":[\"s\",1],\"cls\":[\"c\",0]},"
         "{\"type\":\"BertProcessing\",\"sep\":[\"s\",1],\"cls\":[\"c\",0]}]}",
         "a second template"},
        {"F79/unknown-token", "post_processor",
         "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\",\"type_id\":0}}],"
         "\"pair\":[],\"special_tokens\":{}}",
         "one of special_tokens"},
        {"F79/id", "post_processor",
         "{\"type\":\"BertProcessing\",\"sep\":[\"s\",9],\"cls\":[\"c\",8]}", "found id"},
        {"post_processor/type", "post_processor", "{\"type\":\"Other\"}", "Other"},
        {"decoder/type", "decoder", "{\"type\":\"Other\"}", "Other"},
        {"added/type", "added_tokens", "{}", "added_tokens"},
        {"added/flag", "added_tokens", "[{\"content\":\"x\",\"id\":3,\"lstrip\":\"yes\"}]",
         "lstrip"},
        {"json/key-twice", "decoder", "{\"type\":\"Fuse\",\"type\":\"Fuse\"}", "twice"},
        {"json/deep", "decoder",
         "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
         "byte"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuse(rows[i][0], rows[i][1], rows[i][2], rows[i][3]);
}

/* ---- SentencePiece files ---- */

static void put_spm(const char *bytes, size_t count)
{
    folder_new();
    folder_put("spiece.model", bytes, count);
}

static void test_spm(void)
{
    static const struct {
        const char *name, *bytes;
        size_t count;
        const char *words;
    } rows[] = {
        {"empty", "", 0, "no pieces"},
        {"text", "hello", 5, "byte"},
        {"cut-varint", "\x0A\xFF", 2, "end of the data"},
        {"long-varint", "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12, "ten bytes"},
        {"long-field", "\x0A\x7F\x0A\x01", 4, "longer than the data"},
        {"field-0", "\x02\x00", 2, "field number 0"},
        {"wire-type", "\x0B\x00", 2, "wire type"},
        {"no-unknown", "\x0A\x03\x0A\x01x", 5, "no unknown piece"},
        {"empty-piece", "\x0A\x02\x0A\x00", 4, "empty token"},
        {"type", "\x0A\x05\x0A\x01x\x18\x09", 7, "found type 9"},
        {"nan", "\x0A\x08\x0A\x01x\x15\x00\x00\xC0\x7F", 10, "not finite"},
        {"two-unknown", "\x0A\x05\x0A\x01x\x18\x02\x0A\x05\x0A\x01y\x18\x02", 14,
         "two unknown pieces"},
        {"same-piece", "\x0A\x05\x0A\x01x\x18\x02\x0A\x03\x0A\x01x", 12, "found it twice"},
        {"not-utf8", "\x0A\x05\x0A\x01\xFF\x18\x02", 7, "UTF-8"},
        {"model-type", "\x0A\x05\x0A\x01x\x18\x02\x12\x02\x18\x04", 11, "model type 4"},
        {"map", "\x0A\x05\x0A\x01x\x18\x02\x1A\x04\x12\x02\x01\x02", 13, "character map"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!check_begin("text/refused/spm/%s", rows[i].name)) continue;
        put_spm(rows[i].bytes, rows[i].count);
        check_refused(LOCUS_ERR_FORMAT, rows[i].words);
    }
}

/* Every prefix of a good file is refused or read, never more. */
static void test_spm_cut(void)
{
    size_t bytes = 0;
    if (!check_begin("text/refused/spm/cut")) return;
    char *model = whole_file(TEXT_DATA "/unigram.model", &bytes);
    const size_t step = check_sample() ? 97 : 7;
    for (size_t i = 0; model != NULL && i < bytes; i += step) {
        test_allocator memory;
        locus_error error = {{0}};
        locus_tokenizer *t = NULL;
        put_spm(model, i);
        test_allocator_init(&memory);
        const locus_status status =
            locus_tokenizer_open(&t, folder_path(), &memory.interface, &error);
        CHECK((t != NULL) == (status == LOCUS_OK), "status %d", status);
        locus_tokenizer_close(t);
        CHECK(memory.live_blocks == 0, "leak after %zu bytes", i);
    }
    free(model);
}

/* ---- folders ---- */

static void test_folders(void)
{
    if (check_begin("text/refused/nothing")) {
        folder_new();
        check_refused(LOCUS_ERR_FORMAT, "no tokenizer files");
    }
    if (check_begin("text/refused/class")) {
        folder_new();
        folder_text("tokenizer_config.json", "{\"tokenizer_class\":\"WhisperTokenizer\"}");
        folder_text("spiece.model", "x");
        check_refused(LOCUS_ERR_FORMAT, "WhisperTokenizer");
    }
    if (check_begin("text/refused/jieba")) {
        folder_new();
        folder_text("config.json", "{\"model_type\":\"roformer\"}");
        folder_text("vocab.txt", "[UNK]\n");
        check_refused(LOCUS_ERR_FORMAT, "jieba");
    }
    if (check_begin("text/refused/no-unknown-token")) {
        folder_new();
        folder_text("vocab.txt", "a\nb\n");
        check_refused(LOCUS_ERR_FORMAT, "unknown token");
    }
    if (check_begin("text/refused/merges")) {
        folder_new();
        folder_text("vocab.json", "{\"a\":0}");
        folder_text("merges.txt", "#version: 0.2\na b\n");
        check_refused(LOCUS_ERR_FORMAT, "merges.txt: merge 0");
    }
    if (check_begin("text/refused/F99")) {
        char path[2048];
        snprintf(path, sizeof path, "%s/tokenizer.json", folder_new());
        CHECK(mkfifo(path, 0600) == 0, "mkfifo");
        check_refused(LOCUS_ERR_FORMAT, "a FIFO");
        unlink(path);
    }
}

/* F101: allocation number k fails, for every k. */
static int open_and_encode(const char *path, size_t k)
{
    test_allocator memory;
    locus_error error = {{0}};
    locus_tokenizer *t = NULL;
    locus_encoding *e = NULL;
    static const char text[] = "Hello na\xC3\xAFve world, 9,9 (x) \xE4\xB8\xAD e\xCC\x81 <s> </s>";
    const locus_text_input input = {
        .size = sizeof input, .text = text, .bytes = sizeof text - 1, .pair = "b", .pair_bytes = 1};
    char out[256];
    size_t bytes = 0;
    test_allocator_init(&memory);
    memory.fail_at = k;
    locus_status status = locus_tokenizer_open(&t, path, &memory.interface, &error);
    if (status == LOCUS_OK) status = locus_encoding_new(&e, &memory.interface, &error);
    if (status == LOCUS_OK) status = locus_tokenizer_encode(t, &input, e, &error);
    if (status == LOCUS_OK)
        status = locus_tokenizer_decode(t, locus_encoding_ids(e), locus_encoding_count(e), 1, out,
                                        sizeof out, &bytes, &error);
    CHECK(status == (memory.failures > 0 ? LOCUS_ERR_MEMORY : LOCUS_OK),
          "%s: allocation %zu: status %d, %s", path, k, status, error.text);
    locus_encoding_free(e);
    locus_tokenizer_close(t);
    CHECK(memory.live_blocks == 0 && memory.misuse == 0, "%s: allocation %zu: leak", path, k);
    return memory.failures > 0;
}

static void test_allocations(void)
{
    static const char *const folders[] = {"bert",        "llama3",     "t5",     "albert-files",
                                          "llama-files", "marian",     "byt5",   "gpt2-files",
                                          "xlmr-files",  "bert-files", "t5-new", "mpt"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[1024];
        if (!check_begin("text/refused/F101/%s", folders[i])) continue;
        snprintf(path, sizeof path, TEXT_DATA "/%s", folders[i]);
        const size_t step = check_sample() ? 13 : 1;
        for (size_t k = 1; open_and_encode(path, k); k += step) continue;
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_json();
    test_spm();
    test_spm_cut();
    test_folders();
    test_allocations();
    folder_new();
    return check_finish("text/refused");
}

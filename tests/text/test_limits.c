/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of <locus/text.h> and of the readers, from both sides. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "text/read.h"
#include "text/texttest.h"
#include "text/tokenizer.h"

/* ---- texts that grow ---- */

typedef struct draft {
    char *text;
    size_t used, room;
} draft;

static void put(draft *d, const char *text)
{
    const size_t bytes = strlen(text);
    if (d->used + bytes + 1 > d->room) {
        d->room = 2 * d->room + bytes + 64;
        d->text = realloc(d->text, d->room);
    }
    memcpy(d->text + d->used, text, bytes + 1);
    d->used += bytes;
}

static void put_many(draft *d, const char *text, size_t count, const char *between)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0) put(d, between);
        put(d, text);
    }
}

/* A tokenizer.json with this member opens, or is refused with these words. */
static void judge(const char *member, draft *d, const char *words)
{
    put_json(member, d->text);
    if (words == NULL)
        check_opens();
    else
        check_refused(LOCUS_ERR_FORMAT, words);
    free(d->text);
    *d = (draft){.text = NULL};
}

/* ---- limits ---- */

/* F74: LOCUS_TEXT_MAX_TOKEN */
static void test_token(void)
{
    if (!check_begin("text/limits/token")) return;
    for (size_t beyond = 0; beyond < 2; beyond++) {
        draft d = {.text = NULL};
        put(&d, "{\"type\":\"BPE\",\"vocab\":{\"");
        put_many(&d, "a", LOCUS_TEXT_MAX_TOKEN + beyond, "");
        put(&d, "\":0},\"merges\":[]}");
        judge("model", &d, beyond ? "expected at most 4096" : NULL);
    }
}

/* LOCUS_TEXT_MAX_ADDED_TOKEN */
static void test_added_token(void)
{
    if (!check_begin("text/limits/added-token")) return;
    for (size_t beyond = 0; beyond < 2; beyond++) {
        draft d = {.text = NULL};
        put(&d, "[{\"id\":3,\"content\":\"");
        put_many(&d, "x", LOCUS_TEXT_MAX_ADDED_TOKEN + beyond, "");
        put(&d, "\"}]");
        judge("added_tokens", &d, beyond ? "expected at most 1024" : NULL);
    }
}

/* LOCUS_TEXT_MAX_ADDED */
static void test_added(void)
{
    if (!check_begin("text/limits/added")) return;
    for (size_t beyond = 0; beyond < 2; beyond++) {
        draft d = {.text = NULL};
        put(&d, "[");
        put_many(&d, "{\"id\":0,\"content\":\"a\"}", LOCUS_TEXT_MAX_ADDED + beyond, ",");
        put(&d, "]");
        judge("added_tokens", &d, beyond ? "expected at most 16384" : NULL);
    }
}

/* LOCUS_TEXT_MAX_VOCABULARY: ids below it are ids, with a gap before them here. */
static void test_vocabulary(void)
{
    if (!check_begin("text/limits/vocabulary")) return;
    for (unsigned beyond = 0; beyond < 2; beyond++) {
        draft d = {.text = NULL};
        char id[32];
        snprintf(id, sizeof id, "%u", LOCUS_TEXT_MAX_VOCABULARY - 1 + beyond);
        put(&d, "{\"type\":\"BPE\",\"vocab\":{\"a\":");
        put(&d, id);
        put(&d, "},\"merges\":[]}");
        judge("model", &d, beyond ? "expected an id from 0 to" : "ids without gaps");
    }
}

/* LOCUS_TEXT_MAX_FILE: what is within is read, and is no JSON here. */
static void test_file(void)
{
    if (!check_begin("text/limits/F55-file")) return;
    for (int beyond = 0; beyond < 2; beyond++) {
        char path[2048];
        snprintf(path, sizeof path, "%s/tokenizer.json", folder_new());
        FILE *file = fopen(path, "wb");
        CHECK(file != NULL && ftruncate(fileno(file), (off_t)LOCUS_TEXT_MAX_FILE + beyond) == 0,
              "a sparse file");
        if (file != NULL) fclose(file);
        check_refused(LOCUS_ERR_FORMAT, beyond ? "expected at most 268435456" : "byte 0");
    }
}

/* LOCUS_TEXT_MAX_INPUT: a third of it, since U+FFFD takes three bytes for one. */
static void test_input(void)
{
    locus_tokenizer *t = NULL;
    locus_encoding *e = NULL;
    locus_error error = {{0}};
    locus_text_input input = {.size = sizeof input, .text = "a", .bytes = 1};
    if (!check_begin("text/limits/input")) return;
    CHECK(locus_tokenizer_open(&t, TEXT_DATA "/bert", NULL, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_encoding_new(&e, NULL, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_tokenizer_encode(t, &input, e, &error) == LOCUS_OK, "%s", error.text);
    input.bytes = (size_t)(LOCUS_TEXT_MAX_INPUT / 3 + 1);
    CHECK(locus_tokenizer_encode(t, &input, e, &error) == LOCUS_ERR_RANGE, "accepted");
    CHECK(strstr(error.text, "found a text of") != NULL, "%s", error.text);
    locus_encoding_free(e);
    locus_tokenizer_close(t);
}

/* TEXT_MAX_GROWTH, TEXT_MOST_GROWN: what a letter may become. */
static void test_growth(void)
{
    const size_t most = TEXT_MAX_GROWTH + TEXT_MOST_GROWN;
    if (!check_begin("text/limits/F8-growth")) return;
    for (int beyond = 0; beyond < 3; beyond++) {
        draft d = {.text = NULL};
        locus_tokenizer *t = NULL;
        locus_encoding *e = NULL;
        locus_error error = {{0}};
        const locus_text_input input = {.size = sizeof input, .text = "e", .bytes = 1};
        put(&d, "{\"type\":\"Sequence\",\"normalizers\":[");
        for (int twice = 0; twice <= (beyond == 2); twice++) { /* at last 60,000 times 60,000 */
            if (twice) put(&d, ",");
            put(&d, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"e\"},\"content\":\"");
            put_many(&d, "e", beyond == 2 ? 60000 : beyond ? most + 1 : most - 64, "");
            put(&d, "\"}");
        }
        put(&d, "]}");
        put_json("normalizer", d.text);
        CHECK(locus_tokenizer_open(&t, folder_path(), NULL, &error) == LOCUS_OK, "%s", error.text);
        CHECK(locus_encoding_new(&e, NULL, &error) == LOCUS_OK, "%s", error.text);
        const locus_status status = locus_tokenizer_encode(t, &input, e, &error);
        CHECK(status == (beyond ? LOCUS_ERR_RANGE : LOCUS_OK), "status %d, %s", status, error.text);
        CHECK(!beyond || strstr(error.text, "longer than 1048832 bytes") != NULL, "%s", error.text);
        locus_encoding_free(e);
        locus_tokenizer_close(t);
        free(d.text);
    }
}

/* TEXT_MAX_STEPS */
static void test_steps(void)
{
    static const struct {
        const char *member, *head, *step;
    } rows[] = {
        {"normalizer", "{\"type\":\"Sequence\",\"normalizers\":[", "{\"type\":\"Lowercase\"}"},
        {"pre_tokenizer", "{\"type\":\"Sequence\",\"pretokenizers\":[", "{\"type\":\"Digits\"}"},
        {"decoder", "{\"type\":\"Sequence\",\"decoders\":[", "{\"type\":\"Fuse\"}"}};
    if (!check_begin("text/limits/steps")) return;
    for (size_t i = 0; i < 3; i++) {
        for (size_t beyond = 0; beyond < 2; beyond++) {
            draft d = {.text = NULL};
            put(&d, rows[i].head);
            put_many(&d, rows[i].step, TEXT_MAX_STEPS + beyond, ",");
            put(&d, "]}");
            judge(rows[i].member, &d, beyond ? "more than 16 steps" : NULL);
        }
    }
}

/* TEXT_MAX_TEMPLATE */
static void test_template(void)
{
    if (!check_begin("text/limits/template")) return;
    for (size_t beyond = 0; beyond < 2; beyond++) {
        draft d = {.text = NULL};
        put(&d, "{\"type\":\"TemplateProcessing\",\"pair\":[],\"special_tokens\":{},\"single\":[");
        put_many(&d, "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}", TEXT_MAX_TEMPLATE + beyond,
                 ",");
        put(&d, "]}");
        judge("post_processor", &d, beyond ? "more than 24 items" : NULL);
    }
}

/* JSON_MAX_VALUES: a JSON bomb ends there; below it the decoder is what is wrong. */
static void test_values(void)
{
    if (!check_begin("text/limits/values")) return;
    for (size_t beyond = 0; beyond < 2; beyond++) {
        draft d = {.text = NULL};
        put(&d, "{\"type\":\"Other\",\"list\":[");
        put_many(&d, "0", JSON_MAX_VALUES - 64 + 128 * beyond, ",");
        put(&d, "]}");
        judge("decoder", &d, beyond ? "values" : "Other");
    }
}

/* JSON_UNIQUE: larger objects are vocabularies, which find duplicates themselves. */
static void test_unique(void)
{
    if (!check_begin("text/limits/unique")) return;
    for (size_t beyond = 0; beyond < 2; beyond++) {
        draft d = {.text = NULL};
        put(&d, "{\"type\":\"Fuse\"");
        put_many(&d, ",\"twice\":0", JSON_UNIQUE - 1 + beyond, "");
        put(&d, "}");
        judge("decoder", &d, beyond ? NULL : "twice");
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_token();
    test_added_token();
    test_added();
    test_vocabulary();
    test_file();
    test_input();
    test_growth();
    test_steps();
    test_template();
    test_values();
    test_unique();
    folder_new();
    return check_finish("text/limits");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

static unicode shared;
static int is_open;

locus_tokenizer *fuzz_tokenizer(void)
{
    locus_error error = {{0}};
    if (!is_open && locus_unicode_open(&shared, NULL, &error) != LOCUS_OK) abort();
    is_open = 1;
    locus_tokenizer *t = locus_allocate(NULL, 1, sizeof *t);
    if (t == NULL) abort();
    for (size_t i = 0; i < PART_COUNT; i++) t->part[i] = TEXT_NO_ID;
    t->unicode = shared;
    return t;
}

void fuzz_close(locus_tokenizer *t)
{
    memset(&t->unicode, 0, sizeof t->unicode);
    locus_tokenizer_close(t);
}

static void check(const locus_tokenizer *t, const locus_encoding *e, const size_t bytes[2])
{
    char out[4096];
    size_t length = 0;
    locus_error error = {{0}};
    const size_t count = locus_encoding_count(e);
    for (size_t i = 0; i < count; i++) {
        const locus_offset o = locus_encoding_offsets(e)[i];
        const uint8_t segment = locus_encoding_segments(e)[i];
        if (locus_encoding_ids(e)[i] >= t->token_count || segment > 2) abort();
        if (o.begin > o.end || (segment < 2 && o.end > bytes[segment])) abort();
    }
    for (int skip = 0; skip < 2; skip++)
        if (locus_tokenizer_decode(t, locus_encoding_ids(e), count, skip, out, sizeof out, &length,
                                   &error) != LOCUS_OK)
            abort();
}

static locus_encoding *encoding(void)
{
    static locus_encoding *e;
    locus_error error = {{0}};
    if (e == NULL && locus_encoding_new(&e, NULL, &error) != LOCUS_OK) abort();
    return e;
}

void fuzz_encode(const locus_tokenizer *t, const char *text, size_t bytes)
{
    locus_error error = {{0}};
    locus_text_input input = {.size = sizeof input, .text = text, .bytes = bytes};
    const size_t both[2] = {bytes, bytes / 2};
    if (locus_tokenizer_encode(t, &input, encoding(), &error) == LOCUS_OK)
        check(t, encoding(), both);
    input.pair = text;
    input.pair_bytes = bytes / 2;
    input.truncate = 9;
    if (locus_tokenizer_encode(t, &input, encoding(), &error) == LOCUS_OK)
        check(t, encoding(), both);
}

void fuzz_use(const locus_tokenizer *t)
{
    static const char *const texts[] = {
        "",
        "Hello, world's 123 \t\r\n x",
        "\xC3\xA9"
        "e\xCC\x81\xCC\xA3 \xE4\xB8\xAD\xE6\x96\x87 \xEA\xB0\x80 \xEF\xAC\x81",
        "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9 \xE0\xA4\x95\xE0\xA5\x8D\xE0\xA4\xB7",
        "\xFF\xC0 [CLS] <s></s> <mask> <extra_id_0> \xE2\x96\x81 9,9 ''``",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabababab  ab a b"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        fuzz_encode(t, texts[i], strlen(texts[i]));
}

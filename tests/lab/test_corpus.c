/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for the lab: the packed novels, the split, what is not a text. */
#define _POSIX_C_SOURCE 200809L
#include "lab/corpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/crc32.h"
#include "core/memory.h"
#include "io/gzip.h"
#include "support/check.h"

/* "to be or not to be, to be or not to be\n" as zlib packs it with fixed codes, and stored. */
/* clang-format off */
static const unsigned char fixed_block[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x2b, 0xc9, 0x57, 0x48,
    0x4a, 0x55, 0xc8, 0x2f, 0x52, 0xc8, 0xcb, 0x2f, 0x51, 0x28, 0x01, 0x71, 0x74, 0x20,
    0x14, 0x8a, 0x18, 0x17, 0x00, 0x54, 0x97, 0x5c, 0x32, 0x27, 0x00, 0x00, 0x00};
static const unsigned char stored_block[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x01, 0x27, 0x00, 0xd8,
    0xff, 0x74, 0x6f, 0x20, 0x62, 0x65, 0x20, 0x6f, 0x72, 0x20, 0x6e, 0x6f, 0x74, 0x20,
    0x74, 0x6f, 0x20, 0x62, 0x65, 0x2c, 0x20, 0x74, 0x6f, 0x20, 0x62, 0x65, 0x20, 0x6f,
    0x72, 0x20, 0x6e, 0x6f, 0x74, 0x20, 0x74, 0x6f, 0x20, 0x62, 0x65, 0x0a, 0x54, 0x97,
    0x5c, 0x32, 0x27, 0x00, 0x00, 0x00};
/* clang-format on */
static const char quotation[] = "to be or not to be, to be or not to be\n";

/* 1: to this text, 0: to another, -1: refused. */
static int unpacks(const unsigned char *data, size_t bytes, const char *text)
{
    unsigned char *out = NULL;
    size_t count = 0;
    locus_error error;
    if (locus_gzip_unpack(&out, &count, data, bytes, NULL, &error) != LOCUS_OK) return -1;
    const int same = count == strlen(text) && memcmp(out, text, count) == 0;
    locus_release(NULL, out);
    return same;
}

static void test_gzip(void)
{
    const struct {
        const char *name;
        const unsigned char *data;
        size_t bytes;
    } files[] = {{"fixed", fixed_block, sizeof fixed_block},
                 {"stored", stored_block, sizeof stored_block}};
    for (size_t f = 0; f < 2; f++) {
        if (!check_begin("lab/gzip/%s", files[f].name)) continue;
        unsigned char copy[sizeof stored_block + sizeof fixed_block];
        unsigned char *out;
        size_t count;
        CHECK(unpacks(files[f].data, files[f].bytes, quotation) == 1, "the text is another one");
        for (size_t cut = 0; cut < files[f].bytes; cut++)
            CHECK(locus_gzip_unpack(&out, &count, files[f].data, cut, NULL, NULL) != LOCUS_OK,
                  "%zu of %zu bytes are taken for a file", cut, files[f].bytes);
        size_t refused = 0;
        for (size_t bit = 0; bit < 8 * files[f].bytes; bit++) {
            memcpy(copy, files[f].data, files[f].bytes);
            copy[bit / 8] ^= (unsigned char)(1u << bit % 8);
            const int verdict = unpacks(copy, files[f].bytes, quotation);
            CHECK(verdict != 0, "bit %zu flipped gives another text", bit);
            refused += verdict < 0;
        }
        /* Time and system are free, as are bits that fill up a byte. */
        CHECK(8 * files[f].bytes - refused < 6 * 8 + 16, "%zu bits refused", refused);
    }
}

static void test_builtin(void)
{
    lab_corpus corpus;
    if (!check_begin("lab/corpus/builtin")) return;
    if (!CHECK(lab_corpus_open(&corpus, NULL, 1024, NULL, NULL) == LOCUS_OK, "refused")) return;
    CHECK(corpus.train_bytes == 4024605 - 432978 - 1, "%zu bytes to train", corpus.train_bytes);
    CHECK(corpus.validation_bytes == 432978, "%zu bytes to validate", corpus.validation_bytes);
    CHECK(memcmp(corpus.train, "SENSE AND SENSIBILITY", 21) == 0, "another beginning");
    CHECK(memcmp(corpus.validation, "NORTHANGER ABBEY", 16) == 0, "another work to validate on");
    CHECK(memchr(corpus.train, '\f', corpus.train_bytes) == NULL, "a form feed to train on");
    CHECK(corpus.sum ==
              locus_crc32(locus_crc32(0, corpus.text, 1000), corpus.text + 1000, 4024605 - 1000),
          "the sum of two pieces is another one");
    lab_corpus_close(&corpus);
}

/* ---- files ---- */

static char path[] = "/tmp/locus-corpus-XXXXXX";

static locus_status open_text(lab_corpus *corpus, const void *text, size_t bytes, size_t least,
                              locus_error *error)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(text, 1, bytes, file) != bytes || fclose(file) != 0) abort();
    return lab_corpus_open(corpus, path, least, NULL, error);
}

static void check_split(const char *name, const char *text, size_t train, size_t from)
{
    lab_corpus corpus;
    locus_error error = {""};
    if (!check_begin("lab/corpus/split/%s", name)) return;
    if (!CHECK(open_text(&corpus, text, strlen(text), 1, &error) == LOCUS_OK, "%s", error.text))
        return;
    CHECK(corpus.train_bytes == train, "%zu bytes to train, expected %zu", corpus.train_bytes,
          train);
    CHECK((size_t)(corpus.validation - corpus.text) == from, "validates from %zu, expected %zu",
          (size_t)(corpus.validation - corpus.text), from);
    CHECK(corpus.validation_bytes == strlen(text) - from, "not to the end");
    lab_corpus_close(&corpus);
}

static void check_refused(const char *name, const void *text, size_t bytes, const char *said)
{
    lab_corpus corpus;
    locus_error error = {""};
    if (!check_begin("lab/corpus/refused/%s", name)) return;
    CHECK(open_text(&corpus, text, bytes, 16, &error) == LOCUS_ERR_FORMAT, "taken");
    CHECK(strstr(error.text, said) != NULL, "says \"%s\"", error.text);
    CHECK(strncmp(error.text, path, strlen(path)) == 0, "does not name the file: %s", error.text);
}

static void test_files(void)
{
    const char *line = "0123456789012345678901234567890123456789012345678"; /* 49 */
    char text[256];
    snprintf(text, sizeof text, "%s\n%.39s\n%.8s\n", line, line, line);
    check_split("line", text, 90, 90); /* 100 bytes in all, the last line begins at 90 */
    snprintf(text, sizeof text, "%s\n%.31s\f%.17s\n", line, line, line);
    check_split("form feed", text, 81, 82);
    snprintf(text, sizeof text, "%s\n%.10s\f%.38s\n", line, line, line);
    check_split("form feed too early", text, 90, 90);
    snprintf(text, sizeof text, "%s%s12", line, line);
    check_split("one line", text, 90, 90);
    check_refused("ten bytes", "ten bytes\n", 10, "10 bytes, 9 to train on and 1 to validate on");
    check_refused("nothing", "", 0, "0 bytes");
    check_refused("binary", "PNG\0and so on, for more than a while; and on, and on, and on", 60,
                  "byte 3 is 0x00");
    check_refused("packed badly", "\x1f\x8b\x08 and so on, for more than a while", 37, "gzip");
}

/* A file with a hole, one byte longer than a text may be. */
static void test_long(void)
{
    lab_corpus corpus;
    locus_error error = {""};
    if (!check_begin("lab/corpus/LAB_TEXT_BYTES")) return;
    if (truncate(path, (off_t)LAB_TEXT_BYTES + 1) != 0) {
        check_skip("no room for a file of 4 GiB with a hole");
        return;
    }
    CHECK(lab_corpus_open(&corpus, path, 1, NULL, &error) == LOCUS_ERR_FORMAT, "taken");
    CHECK(strstr(error.text, "longer than 4 GiB") != NULL, "says \"%s\"", error.text);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    const int descriptor = mkstemp(path);
    if (descriptor < 0) return 2;
    close(descriptor);
    test_gzip();
    test_builtin();
    test_files();
    test_long();
    unlink(path);
    return check_finish("lab-corpus");
}

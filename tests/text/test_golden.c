/* SPDX-License-Identifier: Apache-2.0 */
/* Every line of tests/data/tokenizers/golden.txt: ids and offsets that the reference libraries
 * gave (tools/tokenizer-golden.py). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locus/text.h>

#include "support/check.h"

#define DATA LOCUS_TEST_SOURCE_DIR "/tests/data/tokenizers"

enum { MOST_LINE = 65536, MOST_IDS = 4096 };

typedef struct row {
    char *folder, *text, *pair, *ids, *offsets;
} row;

static int cut(char *line, row *r)
{
    char **fields[] = {&r->folder, &r->text, &r->pair, &r->ids, &r->offsets};
    for (size_t i = 0; i < 5; i++) {
        *fields[i] = line;
        line += strcspn(line, "\t\n");
        if ((*line == '\t') != (i < 4)) return 0;
        *line++ = '\0';
    }
    return 1;
}

/* "." is the empty text; else pairs of digits, in place. Returns the bytes. */
static size_t unhex(char *text)
{
    static const char digits[] = "0123456789abcdef";
    const size_t bytes = strcmp(text, ".") == 0 ? 0 : strlen(text) / 2;
    for (size_t i = 0; i < bytes; i++) {
        const char *high = strchr(digits, text[2 * i]), *low = strchr(digits, text[2 * i + 1]);
        text[i] = (char)((high - digits) * 16 + (low - digits));
    }
    return bytes;
}

static void check_ids(const locus_encoding *e, const char *expected, size_t line)
{
    const uint32_t *ids = locus_encoding_ids(e);
    const size_t count = locus_encoding_count(e);
    size_t found = 0;
    int same = 1;
    if (strcmp(expected, ".") != 0) {
        for (const char *at = expected;; at++, found++) {
            char *end = NULL;
            const unsigned long id = strtoul(at, &end, 10);
            same = same && found < count && ids[found] == id;
            at = end;
            if (*at != ',') break;
        }
        found++;
    }
    CHECK(same && found == count, "line %zu: %zu ids, expected %s", line, count, expected);
}

static void check_offsets(const locus_encoding *e, const char *expected, size_t line)
{
    char text[64 * 64];
    const locus_offset *offsets = locus_encoding_offsets(e);
    size_t used = 0;
    if (strcmp(expected, "?") == 0 || strlen(expected) > sizeof text - 64) return;
    for (size_t i = 0; i < locus_encoding_count(e) && used < sizeof text - 64; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%llu-%llu", i > 0 ? "," : "",
                                 (unsigned long long)offsets[i].begin,
                                 (unsigned long long)offsets[i].end);
    if (used == 0) snprintf(text, sizeof text, ".");
    CHECK(strcmp(text, expected) == 0, "line %zu: offsets %s, expected %s", line, text, expected);
}

static void check_row(const locus_tokenizer *t, locus_encoding *e, row *r, size_t line)
{
    locus_error error = {{0}};
    locus_text_input input = {.size = sizeof input, .text = r->text};
    input.bytes = unhex(r->text);
    if (strcmp(r->pair, "-") != 0) {
        input.pair = r->pair;
        input.pair_bytes = unhex(r->pair);
    }
    if (!CHECK(locus_tokenizer_encode(t, &input, e, &error) == LOCUS_OK, "line %zu: %s", line,
               error.text))
        return;
    check_ids(e, r->ids, line);
    check_offsets(e, r->offsets, line);
}

int main(int argc, char **argv)
{
    static char buffer[MOST_LINE];
    char open[64] = "", path[1024];
    locus_tokenizer *t = NULL;
    locus_encoding *e = NULL;
    locus_error error = {{0}};
    size_t line = 0;
    int runs = 0;
    row r;
    if (!check_args(argc, argv)) return 2;
    FILE *file = fopen(DATA "/golden.txt", "r");
    if (file == NULL || locus_encoding_new(&e, NULL, &error) != LOCUS_OK) return 2;
    while (fgets(buffer, sizeof buffer, file) != NULL) {
        line++;
        if (!cut(buffer, &r)) return 2;
        if (strcmp(open, r.folder) != 0) {
            locus_tokenizer_close(t);
            t = NULL;
            snprintf(open, sizeof open, "%s", r.folder);
            snprintf(path, sizeof path, DATA "/%s", r.folder);
            runs = check_begin("text/golden/%s", r.folder);
            if (runs)
                CHECK(locus_tokenizer_open(&t, path, NULL, &error) == LOCUS_OK, "%s", error.text);
        }
        if (runs && t != NULL) check_row(t, e, &r, line);
    }
    fclose(file);
    locus_tokenizer_close(t);
    locus_encoding_free(e);
    return check_finish("text/golden");
}

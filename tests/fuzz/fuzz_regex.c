/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an expression and, behind a NUL, a text: a match lies in the text, and no text takes
 * more than one step per byte back and one forth. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

static void use(const regex *r, const char *text, size_t bytes)
{
    static text_array memory;
    regex_scan scan = {.steps = 0};
    size_t end = 0;
    if (!locus_regex_scan(&scan, r, text, 0, bytes, &memory, NULL)) abort();
    for (size_t at = 0; at < bytes; at = end) {
        const size_t begin = locus_regex_find(&scan, at, &end);
        if (begin < at || end <= at || end > bytes || begin > end) abort();
        if (begin < bytes && utf8_continues(text[begin])) abort();
        if (end < bytes && utf8_continues(text[end])) abort();
    }
    if (scan.steps > 2 * bytes) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *given = (const char *)data;
    const char *nul = size == 0 ? NULL : memchr(given, '\0', size);
    const size_t bytes = nul == NULL ? size : (size_t)(nul - given);
    text_source source = {.allocator = NULL};
    locus_error error = {{0}};
    regex *r = NULL;
    if (locus_utf8_check(given, bytes) != bytes) return 0; /* JSON has no other strings */
    if (locus_regex_compile(&r, given, bytes, NULL, &error) != LOCUS_OK) return 0;
    use(r, given, bytes); /* an expression is a text, too */
    const size_t left = nul == NULL ? 0 : size - bytes - 1;
    if (left > 0 && locus_text_source_set(&source, nul + 1, left, &error) == LOCUS_OK)
        use(r, source.text, source.bytes);
    locus_text_source_free(&source);
    locus_regex_free(r, NULL);
    return 0;
}

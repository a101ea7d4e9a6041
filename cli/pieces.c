/* SPDX-License-Identifier: Apache-2.0 */
#include "pieces.h"

#include <string.h>

#include "text.h"

void pieces_json(json *j, const locus_tokenizer *tokenizer, const uint32_t *ids, size_t count)
{
    json_inline_array(j, "ids");
    for (size_t i = 0; i < count; i++) json_size(j, NULL, ids[i]);
    json_end(j);
    if (tokenizer == NULL) return;
    json_inline_array(j, "tokens");
    for (size_t i = 0; i < count; i++) {
        size_t bytes = 0;
        const char *token = locus_tokenizer_token(tokenizer, ids[i], &bytes);
        json_bytes(j, NULL, token == NULL ? "" : token, bytes);
    }
    json_end(j);
}

size_t pieces_print(FILE *out, const locus_tokenizer *tokenizer, uint32_t id)
{
    size_t bytes = 0, columns = 0;
    const char *token = locus_tokenizer_token(tokenizer, id, &bytes);
    for (size_t at = 0; token != NULL && at < bytes;) {
        columns += text_print(out, token + at);
        at += strlen(token + at);
        if (at++ < bytes) columns += (size_t)fprintf(out, "\\x00");
    }
    return columns;
}

int pieces_read_ids(const char *text, uint32_t *ids, size_t *count)
{
    *count = 0;
    if (*text == '\0') return 1;
    for (;;) {
        uint64_t value = 0;
        const char *begin = text;
        for (; *text >= '0' && *text <= '9' && value <= INT32_MAX; text++)
            value = 10 * value + (uint64_t)(*text - '0');
        if (text == begin || value > INT32_MAX) return 0;
        ids[(*count)++] = (uint32_t)value;
        if (*text == '\0') return 1;
        if (*text++ != ',') return 0;
    }
}

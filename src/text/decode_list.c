/* SPDX-License-Identifier: Apache-2.0 */
/* The list of strings that decoders work on. */
#include <string.h>

#include "core/memory.h"
#include "text/decode.h"

int locus_decode_add(decode_list *list, const char *text, size_t bytes)
{
    if (!locus_text_array_reserve(&list->strings, list->allocator, list->strings.count + 1,
                                  sizeof(text_string)))
        return list->failed = 1, 0;
    const char *copy = locus_arena_copy(&list->arena, text, bytes);
    if (copy == NULL) return list->failed = 1, 0;
    ((text_string *)list->strings.data)[list->strings.count++] =
        (text_string){copy, (uint32_t)bytes};
    return 1;
}

/* <0xE2> and the like: the byte, -1: something else. */
int locus_decode_byte_piece(const text_string *text)
{
    static const char digits[] = "0123456789ABCDEF0123456789abcdef";
    if (text->bytes != 6 || memcmp(text->text, "<0x", 3) != 0 || text->text[5] != '>') return -1;
    const char *high = strchr(digits, text->text[3]), *low = strchr(digits, text->text[4]);
    if (high == NULL || low == NULL || *high == '\0' || *low == '\0') return -1;
    return (int)((high - digits) % 16 * 16 + (low - digits) % 16);
}

void locus_decode_make_valid(decode_list *list, int drop)
{
    if (list->failed || list->strings.count == 0) return;
    text_source source = {.allocator = list->allocator};
    text_string *text = list->strings.data;
    if (locus_text_source_set(&source, text->text, text->bytes, NULL) != LOCUS_OK) {
        list->failed = 1;
    } else if (source.replaced.count > 0) {
        const char *copy = locus_arena_copy(&list->arena, source.text, source.bytes);
        if (copy == NULL) list->failed = 1;
        if (copy != NULL) *text = (text_string){copy, (uint32_t)source.bytes};
        const text_replacement *r = source.replaced.data;
        if (copy != NULL && drop) { /* what was wrong goes altogether */
            char *out = locus_arena_take(&list->arena, source.bytes + 1, 1);
            size_t used = 0, next = 0;
            for (size_t i = 0; out != NULL && i < source.bytes;) {
                if (next < source.replaced.count && r[next].at == i) {
                    i += 3;
                    next++;
                } else {
                    out[used++] = copy[i++];
                }
            }
            if (out == NULL) list->failed = 1;
            if (out != NULL) *text = (text_string){out, (uint32_t)used};
        }
    }
    locus_text_source_free(&source);
}

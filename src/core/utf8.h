/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_UTF8_H
#define LOCUS_CORE_UTF8_H

/* Well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF),
 * one byte at a time, because a sequence may cross the end of a read window. */

#include <stddef.h>
#include <stdint.h>

typedef struct locus_utf8 {
    unsigned left;      /* continuation bytes still to come                      */
    unsigned low, high; /* range of the next one; only the second byte is narrow */
} locus_utf8;

/* Start a sequence at its first byte. 0: no sequence begins with it. */
static inline int locus_utf8_begin(locus_utf8 *state, unsigned char byte)
{
    *state = (locus_utf8){.left = 0, .low = 0x80, .high = 0xBF};
    if (byte < 0x80) return 1;
    if (byte < 0xC2 || byte > 0xF4) return 0;
    state->left = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    if (byte == 0xE0) state->low = 0xA0;  /* below: overlong   */
    if (byte == 0xED) state->high = 0x9F; /* above: surrogates */
    if (byte == 0xF0) state->low = 0x90;  /* below: overlong   */
    if (byte == 0xF4) state->high = 0x8F; /* above: > U+10FFFF */
    return 1;
}

/* The next byte of a sequence with left > 0. 0: it does not belong there. */
static inline int locus_utf8_continue(locus_utf8 *state, unsigned char byte)
{
    if (byte < state->low || byte > state->high) return 0;
    *state = (locus_utf8){.left = state->left - 1, .low = 0x80, .high = 0xBF};
    return 1;
}

/* Offset of the first byte that is wrong, or `bytes` if the text is well formed. */
static inline size_t locus_utf8_check(const char *text, size_t bytes)
{
    locus_utf8 state = {0, 0, 0};
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (!(state.left > 0 ? locus_utf8_continue(&state, byte) : locus_utf8_begin(&state, byte)))
            return i;
    }
    return state.left > 0 ? bytes - 1 : bytes;
}

/* The UTF-8 of a scalar value (not a surrogate, at most 0x10FFFF): 1 to 4 bytes. */
static inline size_t locus_utf8_encode(unsigned char out[4], uint32_t code)
{
    static const unsigned char mark[5] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    const size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = bytes; i-- > 1; code >>= 6) out[i] = (unsigned char)(0x80 | (code & 0x3F));
    out[0] = (unsigned char)(mark[bytes] | code);
    return bytes;
}

#endif

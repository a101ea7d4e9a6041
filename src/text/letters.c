/* SPDX-License-Identifier: Apache-2.0 */
/* The letters of byte-level BPE: one for each byte. */
#include "text/tokenizer.h"

/* Printable bytes stand for themselves; the others, in their order, for U+0100 and up:
 * 33 below '!', 34 from 0x7F to 0xA0, and 0xAD. */
static int stands_for_itself(uint32_t byte)
{
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

uint32_t locus_byte_letter(unsigned byte)
{
    if (stands_for_itself(byte)) return byte;
    return 0x100 + (byte < 0x21 ? byte : byte < 0xAD ? byte - 0x7F + 33 : 67);
}

int locus_letter_byte(uint32_t letter)
{
    if (letter < 0x100) return stands_for_itself(letter) ? (int)letter : -1;
    const uint32_t index = letter - 0x100;
    if (index < 33) return (int)index;
    if (index < 67) return (int)(0x7F + index - 33);
    return index == 67 ? 0xAD : -1;
}

void locus_text_letters(const text_buffer *in, size_t from, size_t to, text_buffer *out)
{
    for (size_t at = from; at < to && !out->failed; at++)
        locus_text_buffer_add(out, locus_byte_letter((unsigned char)in->data[at]),
                              text_origin(in, at));
}

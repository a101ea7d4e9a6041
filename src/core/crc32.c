/* SPDX-License-Identifier: Apache-2.0 */
#include "core/crc32.h"

#define POLYNOMIAL 0xEDB88320u

/* The remainders of all bytes are made at each call: 2,048 steps, and no state between calls. */
uint32_t locus_crc32(uint32_t crc, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint32_t remainder[256];
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t r = byte;
        for (int bit = 0; bit < 8; bit++) r = r >> 1 ^ (r & 1 ? POLYNOMIAL : 0);
        remainder[byte] = r;
    }
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) crc = crc >> 8 ^ remainder[(crc ^ at[i]) & 0xFF];
    return ~crc;
}

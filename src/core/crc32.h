/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_CRC32_H
#define LOCUS_CORE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32 as gzip, zlib and PNG define it (polynomial 0xEDB88320, reflected). `crc` is 0 at first,
 * then what the call for the bytes before returned. */
uint32_t locus_crc32(uint32_t crc, const void *data, size_t bytes);

#endif

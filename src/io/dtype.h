/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_DTYPE_H
#define LOCUS_IO_DTYPE_H

#include <locus/status.h>

/* An element type of the format. Types that Locus does not compute with are listed
 * too: `inspect` shows them, their bytes can be read. */
typedef struct locus_file_dtype {
    const char *name;
    uint32_t bits; /* of one element                                              */
    uint32_t word; /* bytes that byte order concerns; 1 where it does not matter  */
} locus_file_dtype;

const locus_file_dtype *locus_file_dtype_find(const char *name); /* or NULL */

/* Bytes of a tensor. LOCUS_ERR_FORMAT, with a message, if an extent is 2^48 or more,
 * if the size does not fit 64 bits, or if sub-byte elements do not fill whole bytes. */
locus_status locus_file_dtype_bytes(uint64_t *bytes, const locus_file_dtype *dtype, uint32_t rank,
                                    const uint64_t *shape, locus_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_GZIP_H
#define LOCUS_IO_GZIP_H

/* A whole gzip file in memory (RFC 1952, one member; RFC 1951 inside) becomes its text. */

#include <locus/status.h>

/* *out: as many bytes as the trailer says, from the allocator, then a NUL; the caller releases it.
 * LOCUS_ERR_FORMAT: not such a file, or its sum is wrong. Memory is asked for once, and not for
 * more than a file of that size can hold. */
locus_status locus_gzip_unpack(unsigned char **out, size_t *out_bytes, const unsigned char *data,
                               size_t bytes, const locus_allocator *allocator, locus_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_SOURCES_H
#define LOCUS_IO_SOURCES_H

/* Where the numbers of a tensor are in files that are not safetensors: anywhere, with strides as
 * torch keeps views, or in blocks of GGUF. To a reader they look dense, in order of the list. */

#include "io/tensorfile.h"

enum { LOCUS_Q8_0_NUMBERS = 32, LOCUS_Q8_0_BYTES = 34 }; /* a block: a scale in F16, 32 of int8 */

typedef struct locus_file_source {
    uint64_t at;             /* byte in the file of number 0                         */
    uint64_t first;          /* the number that element [0, 0, ...] is               */
    const uint64_t *strides; /* in numbers, one per axis; NULL: dense                */
    int is_q8_0;             /* F32 to the reader; rows are whole blocks             */
} locus_file_source;

/* A tensor of the file, behind those before it. name, dtype, bits, rank and shape are given;
 * `shape` and the source's strides are copied. Messages name the tensor. */
locus_status locus_file_add(locus_file *file, const locus_file_tensor *tensor,
                            const locus_file_source *source, locus_error *error);

/* A text of the file, by its key. */
locus_status locus_file_add_metadata(locus_file *file, const char *key, const char *value,
                                     locus_error *error);

/* Bytes [from, from + count) of a tensor as if it lay dense; whole numbers where it does not. */
locus_status locus_source_read(const locus_file *file, size_t index, uint64_t from, size_t count,
                               void *out, locus_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H

/* What a measurement was made with. */

#include <stddef.h>

#include <locus/locus.h>

/* "CPU, compiler, locus 0.1.0" into the buffer; returns it. */
char *machine_text(char *buffer, size_t capacity);

/* An allocator that keeps the bytes now in use in *bytes. */
locus_allocator counted_allocator(size_t *bytes);

#endif

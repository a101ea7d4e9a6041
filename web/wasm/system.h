/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_WEB_SYSTEM_H
#define LOCUS_WEB_SYSTEM_H

/* Files of the page: buffers in memory with a name. */

#include <stddef.h>
#include <stdint.h>

typedef struct page_file {
    char name[64];
    unsigned char *data; /* of malloc; NULL: a free place */
    size_t bytes;
} page_file;

const page_file *page_file_find(const char *name); /* or NULL */
void page_file_remove(const char *name);
/* Takes `data` over; a file of that name goes. 0: no place left, and `data` stays the caller's. */
int page_file_add(const char *name, unsigned char *data, size_t bytes);

/* Of the random numbers that the library asks the system for. */
void page_seed(uint64_t seed);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_ZIP_H
#define LOCUS_IO_ZIP_H

/* The directory of a ZIP archive whose entries are stored as they are, as torch.save writes it:
 * no compression, no encryption, no comment, one disk. */

#include "io/names.h"
#include "io/store.h"

#define LOCUS_ZIP_MAX_ENTRIES 1000000u
#define LOCUS_ZIP_MAX_DIRECTORY 200000000u

typedef struct locus_zip_entry {
    const char *name;
    uint64_t header; /* of the entry, in the file */
    uint64_t bytes;
} locus_zip_entry;

typedef struct locus_zip {
    const locus_allocator *allocator;
    int descriptor; /* the caller's */
    uint64_t file_bytes;
    locus_arena arena;
    locus_list entries; /* locus_zip_entry */
    locus_names names;
} locus_zip;

/* Reads the directory. Messages carry no path. locus_zip_close also after a failure. */
locus_status locus_zip_open(locus_zip *zip, int descriptor, uint64_t file_bytes,
                            const locus_allocator *allocator, locus_error *error);
void locus_zip_close(locus_zip *zip);

const locus_zip_entry *locus_zip_find(const locus_zip *zip, const char *name); /* or NULL */

/* Where the bytes of an entry begin in the file; all of them are there. */
locus_status locus_zip_place(const locus_zip *zip, const locus_zip_entry *entry, uint64_t *at,
                             locus_error *error);

#endif

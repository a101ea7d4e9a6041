/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_FILES_H
#define LOCUS_LAB_FILES_H

/* Folders and whole files of a comparison. Messages begin with the path. */

#include <locus/plot.h>

enum { LAB_PATH = 1024, LAB_FOLDER_ENTRIES = 4096 };

/* "A/B" into out[LAB_PATH]; 0: too long. */
int lab_path(char out[LAB_PATH], const char *folder, const char *name);

/* The names in a folder that do not begin with a point, sorted; the caller frees with
 * lab_list_free. A folder that is not there is empty. */
typedef struct lab_list {
    char **names;
    size_t count;
} lab_list;
locus_status lab_list_read(lab_list *list, const char *folder, locus_error *error);
void lab_list_free(lab_list *list);

/* The bytes of a file of at most `most`, with a NUL behind them; freed with locus_release. */
locus_status lab_file_read(char **text, size_t *bytes, const char *path, size_t most,
                           locus_error *error);

/* Room for 2 * count items of `bytes` (at least 32), the old ones copied and released; NULL: no
 * memory, and the old ones are still there. */
void *lab_grow(void *items, size_t count, size_t bytes, size_t *room);

/* FOLDER/NAME, the old file or the new one. */
locus_status lab_file_write(const char *folder, const char *name, const locus_text *text,
                            locus_error *error);
locus_status lab_folder_make(const char *path, locus_error *error);  /* fine where it is there */
locus_status lab_folders_make(const char *path, locus_error *error); /* and those above it */

/* ---- small JSON files: {"name": value, "other": [1, 2], "inner": {"name": "value"}} ---- */

/* Scalars by name, "inner.name" for those of an object inside; lists with commas between. */
typedef struct lab_record {
    struct lab_setting {
        char *name, *value;
    } * settings;
    size_t count, room;
} lab_record;
locus_status lab_record_read(lab_record *record, const char *path, locus_error *error);
void lab_record_free(lab_record *record);
const char *lab_record_text(const lab_record *record, const char *name); /* "" without it */
/* 0 where it is not there or not a whole number. */
uint64_t lab_record_number(const lab_record *record, const char *name);

#endif

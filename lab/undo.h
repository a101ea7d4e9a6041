/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_UNDO_H
#define LOCUS_LAB_UNDO_H

/* What a call has made, so that one that fails leaves nothing behind. */

#include <locus/status.h>

typedef struct lab_undo {
    char **paths; /* in the order in which they were made */
    size_t count, room;
} lab_undo;

/* As lab_folders_make; folders that were not there are noted. */
locus_status lab_undo_folders(lab_undo *undo, const char *path, locus_error *error);
/* A file that is about to be written: noted where it is not there yet. */
locus_status lab_undo_file(lab_undo *undo, const char *folder, const char *name,
                           locus_error *error);
/* Removes everything again, or keeps it; either ends the list. */
void lab_undo_all(lab_undo *undo);
void lab_undo_none(lab_undo *undo);

#endif

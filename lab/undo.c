/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/undo.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/system.h"
#include "lab/files.h"

static locus_status note(lab_undo *undo, const char *path, locus_error *error)
{
    const size_t bytes = strlen(path) + 1;
    if (locus_system_exists(path)) return LOCUS_OK;
    if (undo->count == undo->room) {
        char **grown = lab_grow(undo->paths, undo->count, sizeof *grown, &undo->room);
        if (grown == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for a name");
        undo->paths = grown;
    }
    char *copy = locus_allocate(NULL, bytes, 1);
    if (copy == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for a name");
    memcpy(copy, path, bytes);
    undo->paths[undo->count++] = copy;
    return LOCUS_OK;
}

locus_status lab_undo_folders(lab_undo *undo, const char *path, locus_error *error)
{
    char above[LAB_PATH];
    for (size_t i = 1; path[0] != '\0' && path[i] != '\0' && i < LAB_PATH; i++) {
        if (path[i] != '/') continue;
        snprintf(above, sizeof above, "%.*s", (int)i, path);
        LOCUS_TRY(note(undo, above, error));
    }
    LOCUS_TRY(note(undo, path, error));
    return lab_folders_make(path, error);
}

locus_status lab_undo_file(lab_undo *undo, const char *folder, const char *name, locus_error *error)
{
    char path[LAB_PATH];
    if (!lab_path(path, folder, name))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    return note(undo, path, error);
}

void lab_undo_none(lab_undo *undo)
{
    for (size_t i = 0; i < undo->count; i++) locus_release(NULL, undo->paths[i]);
    locus_release(NULL, undo->paths);
    *undo = (lab_undo){.count = 0};
}

/* A folder that somebody else has put something into stays. */
void lab_undo_all(lab_undo *undo)
{
    for (size_t i = undo->count; i-- > 0;) (void)remove(undo->paths[i]);
    lab_undo_none(undo);
}

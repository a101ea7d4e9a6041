/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a folder. */
#include <stdio.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/system.h"
#include "io/tensorfile.h"
#include "text/read.h"

enum { PATH = 4096 };

static int path_of(const read_files *f, const char *name, char out[PATH])
{
    const int length = f->folder == NULL ? snprintf(out, PATH, "%s", name)
                                         : snprintf(out, PATH, "%s/%s", f->folder, name);
    return length > 0 && length < PATH;
}

locus_status locus_read_fail_in(const read_files *f, locus_status status, const char *name)
{
    char path[PATH];
    return locus_file_fail_in(f->error, status, path_of(f, name, path) ? path : name);
}

int locus_read_exists(const read_files *f, const char *name)
{
    char path[PATH];
    return path_of(f, name, path) && locus_system_exists(path);
}

const char *locus_read_find_spm(const read_files *f)
{
    static const char *const names[] = {"spiece.model", "spm.model", "sentencepiece.bpe.model",
                                        "tokenizer.model", "source.spm"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (locus_read_exists(f, names[i])) return names[i];
    return NULL;
}

static locus_status read_open_file(const read_files *f, const char *path, char **text,
                                   size_t *bytes)
{
    int descriptor = -1;
    uint64_t size = 0;
    LOCUS_TRY(locus_system_open(&descriptor, &size, path, f->error));
    locus_status status = LOCUS_OK;
    if (size > LOCUS_TEXT_MAX_FILE)
        status = locus_fail(f->error, LOCUS_ERR_FORMAT, "found %llu bytes, expected at most %llu",
                            (unsigned long long)size, (unsigned long long)LOCUS_TEXT_MAX_FILE);
    if (status == LOCUS_OK) {
        *text = locus_allocate(f->t->allocator, (size_t)size + 1, 1);
        if (*text == NULL) status = locus_text_no_memory(f->error);
    }
    if (status == LOCUS_OK)
        status = locus_system_read(descriptor, 0, *text, (size_t)size, f->error);
    locus_system_close(descriptor);
    *bytes = (size_t)size;
    if (status != LOCUS_OK) {
        locus_release(f->t->allocator, *text);
        *text = NULL;
    }
    return status;
}

locus_status locus_read_whole(const read_files *f, const char *name, char **text, size_t *bytes)
{
    char path[PATH];
    *text = NULL;
    *bytes = 0;
    if (!path_of(f, name, path))
        return locus_fail(f->error, LOCUS_ERR_IO, "found a path of more than %d bytes", PATH);
    const locus_status status = read_open_file(f, path, text, bytes);
    return status == LOCUS_OK ? LOCUS_OK : locus_file_fail_in(f->error, status, path);
}

locus_status locus_read_json(const read_files *f, const char *name, int required, json_tree *tree)
{
    char *text = NULL;
    size_t bytes = 0;
    *tree = (json_tree){.root = NULL};
    if (!required && !locus_read_exists(f, name)) return LOCUS_OK;
    LOCUS_TRY(locus_read_whole(f, name, &text, &bytes));
    const locus_status status =
        locus_json_tree_parse(tree, text, bytes, &read_limits, f->t->allocator, f->error);
    locus_release(f->t->allocator, text);
    return status == LOCUS_OK ? LOCUS_OK : locus_read_fail_in(f, status, name);
}

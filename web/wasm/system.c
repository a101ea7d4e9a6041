/* SPDX-License-Identifier: Apache-2.0 */
/* The library's system calls where there is no system: a page in a browser. It stands in for
 * src/io/system.c. Files are buffers in memory with a name: page_file_add hands one over,
 * what the library writes becomes another. The module imports nothing; the functions at the
 * end are those that wasi-libc would ask the host for. */

#include "system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wasi/api.h>

#include "core/error.h"
#include "io/system.h"

enum { FILES = 16 };
static page_file files[FILES];
static uint64_t random_state; /* page_seed; only the hash of names in io/names.c uses it */

/* ---- files ---- */

const page_file *page_file_find(const char *name)
{
    for (int i = 0; i < FILES; i++)
        if (files[i].data != NULL && strcmp(files[i].name, name) == 0) return &files[i];
    return NULL;
}

void page_file_remove(const char *name)
{
    page_file *file = (page_file *)page_file_find(name);
    if (file == NULL) return;
    free(file->data);
    *file = (page_file){0};
}

int page_file_add(const char *name, unsigned char *data, size_t bytes)
{
    page_file_remove(name);
    if (strlen(name) >= sizeof files[0].name) return 0;
    for (int i = 0; i < FILES; i++) {
        if (files[i].data != NULL) continue;
        files[i] = (page_file){.data = data, .bytes = bytes};
        memcpy(files[i].name, name, strlen(name) + 1);
        return 1;
    }
    return 0;
}

/* ---- what src/io/system.h promises ---- */

/* splitmix64 of the seed */
static uint64_t next_random(void)
{
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

int locus_system_random(void *out, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) ((unsigned char *)out)[i] = (unsigned char)next_random();
    return 1;
}

locus_status locus_system_fail(locus_error *error, const char *what, int code)
{
    return locus_fail(error, LOCUS_ERR_IO, "%s: %s", what, strerror(code));
}

locus_status locus_system_open(int *descriptor, uint64_t *bytes, const char *path,
                               locus_error *error)
{
    const page_file *file = page_file_find(path);
    *descriptor = -1;
    if (file == NULL) return locus_system_fail(error, "cannot open", ENOENT);
    *descriptor = (int)(file - files);
    *bytes = file->bytes;
    return LOCUS_OK;
}

void locus_system_close(int descriptor) { (void)descriptor; }

locus_status locus_system_read(int descriptor, uint64_t at, void *out, size_t count,
                               locus_error *error)
{
    const page_file *file = &files[descriptor];
    if (at > file->bytes || count > file->bytes - at)
        return locus_fail(error, LOCUS_ERR_IO, "found the end at byte %zu", file->bytes);
    memcpy(out, file->data + at, count);
    return LOCUS_OK;
}

/* One file is written at a time: it grows here and gets its name when it is finished. */
static struct {
    unsigned char *data;
    size_t bytes, room;
} draft;

locus_status locus_system_output_open(locus_system_output *output, const char *path,
                                      locus_error *error)
{
    *output = (locus_system_output){.folder = -1, .file = -1};
    if (strlen(path) >= sizeof output->name)
        return locus_system_fail(error, "cannot write", ENAMETOOLONG);
    memcpy(output->name, path, strlen(path) + 1);
    return LOCUS_OK;
}

locus_status locus_system_output_begin(locus_system_output *output, locus_error *error)
{
    (void)error;
    output->file = 0;
    draft.bytes = 0;
    return LOCUS_OK;
}

locus_status locus_system_output_write(locus_system_output *output, const void *data, size_t count,
                                       locus_error *error)
{
    (void)output;
    if (draft.bytes + count > draft.room) {
        const size_t room = 2 * (draft.bytes + count);
        unsigned char *grown = realloc(draft.data, room);
        if (grown == NULL) return locus_system_fail(error, "cannot write", ENOMEM);
        draft.data = grown;
        draft.room = room;
    }
    memcpy(draft.data + draft.bytes, data, count);
    draft.bytes += count;
    return LOCUS_OK;
}

locus_status locus_system_output_finish(locus_system_output *output, locus_error *error)
{
    output->file = -1;
    if (!page_file_add(output->name, draft.data, draft.bytes))
        return locus_system_fail(error, "cannot write", ENFILE);
    draft.data = NULL;
    draft.bytes = draft.room = 0;
    return LOCUS_OK;
}

void locus_system_output_close(locus_system_output *output)
{
    free(draft.data);
    draft.data = NULL;
    draft.bytes = draft.room = 0;
    *output = (locus_system_output){.folder = -1, .file = -1};
}

/* ---- the host that wasi-libc expects ---- */

void page_seed(uint64_t seed) { random_state = seed; }

char *getenv(const char *name)
{
    (void)name;
    return NULL;
}

int getpid(void) { return 1; }

#define HOST(name) __imported_wasi_snapshot_preview1_##name
int32_t HOST(fd_close)(int32_t fd);
int32_t HOST(fd_seek)(int32_t fd, int64_t offset, int32_t whence, int32_t result);
int32_t HOST(fd_write)(int32_t fd, int32_t vectors, int32_t count, int32_t result);
int32_t HOST(clock_time_get)(int32_t clock, int64_t precision, int32_t result);

int32_t HOST(fd_close)(int32_t fd)
{
    (void)fd;
    return __WASI_ERRNO_BADF;
}

int32_t HOST(fd_seek)(int32_t fd, int64_t offset, int32_t whence, int32_t result)
{
    (void)fd, (void)offset, (void)whence, (void)result;
    return __WASI_ERRNO_BADF;
}

int32_t HOST(fd_write)(int32_t fd, int32_t vectors, int32_t count, int32_t result)
{
    (void)fd, (void)vectors, (void)count, (void)result;
    return __WASI_ERRNO_BADF;
}

int32_t HOST(clock_time_get)(int32_t clock, int64_t precision, int32_t result)
{
    (void)clock, (void)precision;
    *(uint64_t *)(uintptr_t)result = 0;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE 1 /* getentropy */
#define _FILE_OFFSET_BITS 64
#include "io/system.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#if defined(__APPLE__)
#include <sys/random.h>
#endif
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

locus_status locus_system_fail(locus_error *error, const char *what, int code)
{
    char reason[128];
    if (strerror_r(code, reason, sizeof reason) != 0)
        snprintf(reason, sizeof reason, "error %d", code);
    return locus_fail(error, LOCUS_ERR_IO, "%s: %s", what, reason);
}

/* NULL for a regular file. */
static const char *kind_of(mode_t mode)
{
    if (S_ISREG(mode)) return NULL;
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode)) return "a character device";
    if (S_ISBLK(mode)) return "a block device";
    return "a special file";
}

/* ---- reading ---- */

int locus_system_exists(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0;
}

int locus_system_is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

int locus_system_random(void *out, size_t bytes) { return getentropy(out, bytes) == 0; }

static locus_status require_regular(const struct stat *found, locus_error *error)
{
    const char *kind = kind_of(found->st_mode);
    if (kind == NULL && found->st_size >= 0) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT, "is %s, expected a regular file [S01]",
                      kind != NULL ? kind : "a file of negative size");
}

static int open_again(int folder, const char *path, int flags, mode_t mode)
{
    int descriptor = -1;
    do descriptor = openat(folder, path, flags | O_CLOEXEC, mode);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

/* The path is judged before the open, because opening a device may act and a socket
 * cannot be opened, and again after it, because the path may name another file by
 * then; O_NONBLOCK keeps even that from waiting. */
locus_status locus_system_open(int *descriptor, uint64_t *bytes, const char *path,
                               locus_error *error)
{
    struct stat found;
    *descriptor = -1;
    if (stat(path, &found) != 0) return locus_system_fail(error, "cannot open", errno);
    LOCUS_TRY(require_regular(&found, error));
    const int opened = open_again(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (opened < 0) return locus_system_fail(error, "cannot open", errno);
    locus_status status = LOCUS_OK;
    if (fstat(opened, &found) != 0)
        status = locus_system_fail(error, "cannot stat", errno);
    else
        status = require_regular(&found, error);
    if (status != LOCUS_OK) {
        locus_system_close(opened);
        return status;
    }
    *descriptor = opened;
    *bytes = (uint64_t)found.st_size;
    return LOCUS_OK;
}

/* Nothing was written, so a close that fails or is interrupted loses nothing. */
void locus_system_close(int descriptor)
{
    if (descriptor >= 0) (void)close(descriptor);
}

locus_status locus_system_read(int descriptor, uint64_t at, void *out, size_t count,
                               locus_error *error)
{
    enum { STEP = 1 << 30 }; /* some systems refuse more than 2 GiB in one call */
    char where[64];
    for (size_t done = 0; done < count;) {
        const size_t left = count - done;
        const ssize_t got =
            pread(descriptor, (char *)out + done, left < STEP ? left : STEP, (off_t)(at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            const int code = errno;
            snprintf(where, sizeof where, "byte %" PRIu64 ": cannot read", at + done);
            return locus_system_fail(error, where, code);
        }
        if (got == 0)
            return locus_fail(error, LOCUS_ERR_IO,
                              "found the end at byte %" PRIu64 ", expected %zu bytes more: the "
                              "file was cut while it was read",
                              at + done, left);
        done += (size_t)got;
    }
    return LOCUS_OK;
}

/* ---- writing ---- */

static locus_status require_free_or_regular(const locus_system_output *output, locus_error *error)
{
    struct stat found;
    if (fstatat(output->folder, output->name, &found, 0) != 0)
        return errno == ENOENT ? LOCUS_OK : locus_system_fail(error, "cannot stat", errno);
    const char *kind = kind_of(found.st_mode);
    if (kind == NULL) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_IO,
                      "is not a regular file: found %s, expected a regular file or a free name",
                      kind);
}

/* "a/b/c" -> the folder "a/b/" and the name "c". */
static locus_status split(locus_system_output *output, char *folder, size_t capacity,
                          const char *path, locus_error *error)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const size_t before = (size_t)(name - path), bytes = strlen(name);
    if (before + 1 > capacity || bytes + 1 > sizeof output->name)
        return locus_system_fail(error, "cannot write", ENAMETOOLONG);
    if (bytes == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return locus_fail(error, LOCUS_ERR_IO,
                          "is not a regular file: found a folder, expected the name of a file");
    memcpy(output->name, name, bytes + 1);
    memcpy(folder, before == 0 ? "." : path, before == 0 ? 1 : before);
    folder[before == 0 ? 1 : before] = '\0';
    return LOCUS_OK;
}

locus_status locus_system_output_open(locus_system_output *output, const char *path,
                                      locus_error *error)
{
    char folder[4096];
    *output = (locus_system_output){.folder = -1, .file = -1};
    LOCUS_TRY(split(output, folder, sizeof folder, path, error));
    output->folder = open_again(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0);
    if (output->folder < 0) return locus_system_fail(error, "cannot open the folder", errno);
    locus_status status = require_free_or_regular(output, error);
    if (status == LOCUS_OK && faccessat(output->folder, ".", W_OK | X_OK, 0) != 0)
        status = locus_system_fail(error, "cannot write in the folder", errno);
    if (status != LOCUS_OK) locus_system_output_close(output);
    return status;
}

/* The process id keeps processes apart, O_EXCL keeps threads apart. A leftover of a
 * process that was killed has a number of its own and is skipped. */
locus_status locus_system_output_begin(locus_system_output *output, locus_error *error)
{
    enum { TRIES = 1000 };
    int code = EEXIST;
    for (int i = 0; i < TRIES && code == EEXIST && output->file < 0; i++) {
        snprintf(output->temporary, sizeof output->temporary, ".%.200s.tmp-%ld-%d", output->name,
                 (long)getpid(), i);
        output->file = open_again(output->folder, output->temporary,
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
        code = errno;
    }
    if (output->file >= 0) return LOCUS_OK;
    output->temporary[0] = '\0';
    return locus_system_fail(error, "cannot create a file beside it", code);
}

locus_status locus_system_output_write(locus_system_output *output, const void *data, size_t count,
                                       locus_error *error)
{
    enum { STEP = 1 << 30 };
    for (size_t done = 0; done < count;) {
        const size_t left = count - done;
        const ssize_t put =
            write(output->file, (const char *)data + done, left < STEP ? left : STEP);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return locus_system_fail(error, "cannot write", put < 0 ? errno : EIO);
        done += (size_t)put;
    }
    return LOCUS_OK;
}

static int sync_again(int descriptor)
{
    int result = 0;
    do result = fsync(descriptor);
    while (result != 0 && errno == EINTR);
    return result;
}

/* The bytes are synced by now; an interrupted close has closed the descriptor. */
static locus_status close_output(locus_system_output *output, locus_error *error)
{
    const int descriptor = output->file;
    output->file = -1;
    if (close(descriptor) == 0 || errno == EINTR) return LOCUS_OK;
    return locus_system_fail(error, "cannot close", errno);
}

locus_status locus_system_output_finish(locus_system_output *output, locus_error *error)
{
    if (sync_again(output->file) != 0) return locus_system_fail(error, "cannot sync", errno);
    LOCUS_TRY(close_output(output, error));
    LOCUS_TRY(require_free_or_regular(output, error));
    if (renameat(output->folder, output->temporary, output->folder, output->name) != 0)
        return locus_system_fail(error, "cannot rename", errno);
    output->temporary[0] = '\0'; /* it is the file now */
    /* Some file systems cannot sync a folder and say so with EINVAL. */
    if (sync_again(output->folder) != 0 && errno != EINVAL)
        return locus_system_fail(error, "the new file is in place, but cannot sync the folder",
                                 errno);
    return LOCUS_OK;
}

void locus_system_output_close(locus_system_output *output)
{
    locus_system_close(output->file);
    /* Nothing better can be done if this fails, and the caller has its error already. */
    if (output->temporary[0] != '\0') (void)unlinkat(output->folder, output->temporary, 0);
    locus_system_close(output->folder);
    *output = (locus_system_output){.folder = -1, .file = -1};
}

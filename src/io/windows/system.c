/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of the file code on Windows, in the place of src/io/system.c. Paths are UTF-8 and
 * become UTF-16 at the door, whatever the code page of the machine. */
#define _CRT_RAND_S 1
#include "io/system.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <windows.h>

#include "core/error.h"

enum { PATH = 4096 };

locus_status locus_system_fail(locus_error *error, const char *what, int code)
{
    char reason[128];
    if (strerror_s(reason, sizeof reason, code) != 0)
        snprintf(reason, sizeof reason, "error %d", code);
    return locus_fail(error, LOCUS_ERR_IO, "%s: %s", what, reason);
}

static locus_status fail_last(locus_error *error, const char *what)
{
    return locus_fail(error, LOCUS_ERR_IO, "%s: Windows error %lu", what, GetLastError());
}

/* 0 and errno: not UTF-8, or longer than PATH. */
static int widen(wchar_t wide[PATH], const char *path)
{
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, PATH) > 0) return 1;
    errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EILSEQ;
    return 0;
}

static int look(struct _stat64 *found, const char *path)
{
    wchar_t wide[PATH];
    return widen(wide, path) && _wstat64(wide, found) == 0;
}

/* NULL for a regular file. */
static const char *kind_of(unsigned mode)
{
    if ((mode & _S_IFMT) == _S_IFREG) return NULL;
    if ((mode & _S_IFMT) == _S_IFDIR) return "a directory";
    if ((mode & _S_IFMT) == _S_IFCHR) return "a character device";
    if ((mode & _S_IFMT) == _S_IFIFO) return "a FIFO";
    return "a special file";
}

/* ---- reading ---- */

int locus_system_exists(const char *path)
{
    struct _stat64 found;
    return look(&found, path);
}

int locus_system_is_folder(const char *path)
{
    struct _stat64 found;
    return look(&found, path) && (found.st_mode & _S_IFMT) == _S_IFDIR;
}

int locus_system_random(void *out, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned drawn = 0;
        if (rand_s(&drawn) != 0) return 0;
        ((unsigned char *)out)[i] = (unsigned char)drawn;
    }
    return 1;
}

static locus_status require_regular(const struct _stat64 *found, locus_error *error)
{
    const char *kind = kind_of(found->st_mode);
    if (kind == NULL) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT, "is %s, expected a regular file [S01]", kind);
}

/* Judged before the open and after it, as on other systems. */
locus_status locus_system_open(int *descriptor, uint64_t *bytes, const char *path,
                               locus_error *error)
{
    struct _stat64 found;
    wchar_t wide[PATH];
    *descriptor = -1;
    if (!widen(wide, path) || _wstat64(wide, &found) != 0)
        return locus_system_fail(error, "cannot open", errno);
    LOCUS_TRY(require_regular(&found, error));
    const int opened = _wopen(wide, _O_RDONLY | _O_BINARY | _O_NOINHERIT);
    if (opened < 0) return locus_system_fail(error, "cannot open", errno);
    locus_status status = LOCUS_OK;
    if (_fstat64(opened, &found) != 0)
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

void locus_system_close(int descriptor)
{
    if (descriptor >= 0) (void)_close(descriptor);
}

/* ReadFile takes its place from `from`, so that threads may read one file at once. */
locus_status locus_system_read(int descriptor, uint64_t at, void *out, size_t count,
                               locus_error *error)
{
    enum { STEP = 1 << 30 };
    char where[64];
    const HANDLE handle = (HANDLE)_get_osfhandle(descriptor);
    for (size_t done = 0; done < count;) {
        const size_t left = count - done;
        const uint64_t place = at + done;
        OVERLAPPED from = {.Offset = (DWORD)place, .OffsetHigh = (DWORD)(place >> 32)};
        DWORD got = 0;
        if (!ReadFile(handle, (char *)out + done, (DWORD)(left < STEP ? left : STEP), &got,
                      &from) &&
            GetLastError() != ERROR_HANDLE_EOF) {
            snprintf(where, sizeof where, "byte %" PRIu64 ": cannot read", place);
            return fail_last(error, where);
        }
        if (got == 0)
            return locus_fail(error, LOCUS_ERR_IO,
                              "found the end at byte %" PRIu64 ", expected %zu bytes more: the "
                              "file was cut while it was read",
                              place, left);
        done += got;
    }
    return LOCUS_OK;
}

/* ---- writing ---- */

static locus_status path_in(const locus_system_output *output, const char *name, wchar_t wide[PATH],
                            locus_error *error)
{
    char path[sizeof output->folder_path + sizeof output->name];
    snprintf(path, sizeof path, "%s%s", output->folder_path, name);
    return widen(wide, path) ? LOCUS_OK : locus_system_fail(error, "cannot write", errno);
}

static locus_status require_free_or_regular(const locus_system_output *output, locus_error *error)
{
    struct _stat64 found;
    wchar_t wide[PATH];
    LOCUS_TRY(path_in(output, output->name, wide, error));
    if (_wstat64(wide, &found) != 0)
        return errno == ENOENT ? LOCUS_OK : locus_system_fail(error, "cannot stat", errno);
    const char *kind = kind_of(found.st_mode);
    if (kind == NULL) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_IO,
                      "is not a regular file: found %s, expected a regular file or a free name",
                      kind);
}

/* "a/b/c" -> the folder "a/b/" and the name "c"; "c" -> "./" and "c". A colon would name a stream of a file. */
static locus_status split(locus_system_output *output, const char *path, locus_error *error)
{
    const size_t bytes = strlen(path);
    size_t before = bytes;
    while (before > 0 && strchr("/\\", path[before - 1]) == NULL) before--;
    const char *name = path + before;
    if (before + 3 > sizeof output->folder_path || bytes - before + 1 > sizeof output->name)
        return locus_system_fail(error, "cannot write", ENAMETOOLONG);
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return locus_fail(error, LOCUS_ERR_IO,
                          "is not a regular file: found a folder, expected the name of a file");
    if (strchr(name, ':') != NULL)
        return locus_fail(error, LOCUS_ERR_IO,
                          "found a colon in the name, expected the name of a file");
    memcpy(output->name, name, bytes - before + 1);
    memcpy(output->folder_path, before == 0 ? "./" : path, before == 0 ? 2 : before);
    output->folder_path[before == 0 ? 2 : before] = '\0';
    return LOCUS_OK;
}

locus_status locus_system_output_open(locus_system_output *output, const char *path,
                                      locus_error *error)
{
    *output = (locus_system_output){.folder = -1, .file = -1};
    LOCUS_TRY(split(output, path, error));
    if (!locus_system_is_folder(output->folder_path))
        return locus_system_fail(error, "cannot open the folder", ENOENT);
    return require_free_or_regular(output, error);
}

/* The process id keeps processes apart, O_EXCL keeps threads apart. */
locus_status locus_system_output_begin(locus_system_output *output, locus_error *error)
{
    enum { TRIES = 1000 };
    wchar_t wide[PATH];
    int code = EEXIST;
    for (int i = 0; i < TRIES && code == EEXIST && output->file < 0; i++) {
        snprintf(output->temporary, sizeof output->temporary, ".%.200s.tmp-%lu-%d", output->name,
                 GetCurrentProcessId(), i);
        LOCUS_TRY(path_in(output, output->temporary, wide, error));
        output->file = _wopen(wide, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT,
                              _S_IREAD | _S_IWRITE);
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
        const int put =
            _write(output->file, (const char *)data + done, (unsigned)(left < STEP ? left : STEP));
        if (put <= 0) return locus_system_fail(error, "cannot write", put < 0 ? errno : EIO);
        done += (size_t)put;
    }
    return LOCUS_OK;
}

/* Windows keeps the entry of a folder with the file; MOVEFILE_WRITE_THROUGH waits until it is on the disk. */
locus_status locus_system_output_finish(locus_system_output *output, locus_error *error)
{
    wchar_t from[PATH], to[PATH];
    LOCUS_TRY(path_in(output, output->temporary, from, error));
    LOCUS_TRY(path_in(output, output->name, to, error));
    if (_commit(output->file) != 0) return locus_system_fail(error, "cannot sync", errno);
    const int closed = _close(output->file);
    output->file = -1;
    if (closed != 0) return locus_system_fail(error, "cannot close", errno);
    LOCUS_TRY(require_free_or_regular(output, error));
    if (!MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
        return fail_last(error, "cannot rename");
    output->temporary[0] = '\0'; /* it is the file now */
    return LOCUS_OK;
}

void locus_system_output_close(locus_system_output *output)
{
    wchar_t wide[PATH];
    locus_system_close(output->file);
    if (output->temporary[0] != '\0' && path_in(output, output->temporary, wide, NULL) == LOCUS_OK)
        (void)_wunlink(wide);
    *output = (locus_system_output){.folder = -1, .file = -1};
}

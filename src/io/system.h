/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_SYSTEM_H
#define LOCUS_IO_SYSTEM_H

/* Every system call of the file code: interrupted and short calls are continued,
 * every result is looked at. Messages carry no path; the caller adds it. */

#include <locus/status.h>

/* LOCUS_ERR_IO with "WHAT: No such file or directory". */
locus_status locus_system_fail(locus_error *error, const char *what, int code);

/* 1 when something of that name is there. */
int locus_system_exists(const char *path);
int locus_system_is_folder(const char *path);

/* At most 256 random bytes that nobody can foresee. 0: the system has none to give (an old kernel, a sandbox). */
int locus_system_random(void *out, size_t bytes);

/* Open for reading. Only regular files, through symbolic links too; nothing else is
 * opened at all, so a FIFO cannot block and a device cannot act. LOCUS_ERR_FORMAT:
 * it is something else. *bytes is the size of the open file. */
locus_status locus_system_open(int *descriptor, uint64_t *bytes, const char *path,
                               locus_error *error);
void locus_system_close(int descriptor); /* of a file that was only read; -1 is allowed */

/* Exactly `count` bytes from `at`; a file that ends before is LOCUS_ERR_IO. */
locus_status locus_system_read(int descriptor, uint64_t at, void *out, size_t count,
                               locus_error *error);

/* A new file that will become NAME in a folder. `temporary` is its name until then. */
typedef struct locus_system_output {
    int folder, file; /* descriptors, -1: not open */
    char name[256], temporary[256];
#if defined(_WIN32)
    char folder_path[1024]; /* names are not relative to open folders there */
#endif
} locus_system_output;

/* Open the folder of `path` and see that the name can be written there: it is free or
 * names a regular file. Creates nothing. */
locus_status locus_system_output_open(locus_system_output *output, const char *path,
                                      locus_error *error);
locus_status locus_system_output_begin(locus_system_output *output, locus_error *error);
locus_status locus_system_output_write(locus_system_output *output, const void *data, size_t count,
                                       locus_error *error);
/* Sync, close, rename over NAME, sync the folder. */
locus_status locus_system_output_finish(locus_system_output *output, locus_error *error);
/* Close what is open and remove the temporary file if it is still there. */
void locus_system_output_close(locus_system_output *output);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_FUZZ_SCRATCH_H
#define LOCUS_TESTS_FUZZ_SCRATCH_H

/* Files in memory for the targets whose readers open files. */

#include <stddef.h>

/* A folder of this process under /dev/shm, made once and removed at the end. */
const char *fuzz_folder(void);

/* One file in it, or away with it. A file is written over, not made anew: millions of runs. */
void fuzz_put(const char *name, const void *data, size_t size);
void fuzz_remove(const char *name);

/* The path of a file in it, valid until the next call. */
const char *fuzz_path(const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_CONSTANTS_H
#define LOCUS_TESTS_CONSTANTS_H

/* The named integer constants of the sources, read from the sources when a test runs: so tests
 * can cross what is private to a file, and a constant that nobody listed shows.
 *
 *     NAME of an anonymous enum with a value:  enum { SPLIT_KEYS = 4096 };
 *     NAME of a macro that is an integer:      #define LOCUS_PANEL 64
 *     NAME of a static const integer:          static const int64_t max_offset = (int64_t)1 << 31;
 *     NAME of a module:                        GATHER_LIMIT = 1 << 29        (Python)
 *
 * Names that begin with an underscore, and counts of a list (sizeof), are none. */

#include <stddef.h>
#include <stdint.h>

typedef struct named_constant {
    char folder[32]; /* under src/, or "include", "cli", "python" */
    char name[64];
    char file[160];
    char text[120]; /* the expression */
    int64_t value;
    int known; /* 1: value is that of the expression */
} named_constant;

/* All constants under `root`, sorted by folder and name. The caller frees them. NULL: none. */
named_constant *constants_read(const char *root, size_t *count);

/* The values of "folder/NAME" in this source tree, each once, at most `room`: a name may stand for
 * several in several files. Ends the program when there is none: a bug of the test. */
size_t constant_values(const char *path, int64_t *values, size_t room);

/* The one value of it. */
int64_t constant_value(const char *path);

#endif

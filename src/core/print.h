/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_PRINT_H
#define LOCUS_CORE_PRINT_H

/* snprintf and vsnprintf with a point in every real number, whatever the locale of the process puts
 * there: files, messages and pictures are the same bytes everywhere. Formats: what the library needs,
 * d i u x X o c s p %, e f g a and their capitals, flags other than ', width, precision, hh to j.
 * What is written ends with '\0'; returned is the length of the whole. */

#include <stdarg.h>
#include <stddef.h>

#include "core/compiler.h"

int locus_print(char *out, size_t capacity, const char *format, ...) LOCUS_PRINTF(3, 4);
int locus_vprint(char *out, size_t capacity, const char *format, va_list arguments)
    LOCUS_PRINTF(3, 0);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_WEB_TEXT_H
#define LOCUS_WEB_TEXT_H

/* The one text that the module hands to the page: JSON, a picture, a file, a complaint. */

#include <stddef.h>

void text_begin(void);
void text_add(const char *text, size_t bytes);
void text_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void text_quote(const char *text); /* as a JSON string; NULL: null */

#endif

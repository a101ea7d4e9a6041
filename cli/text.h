/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

/* Printing text that strangers wrote. Tensor names and metadata may hold terminal
 * escapes, direction marks and broken UTF-8; none of it reaches a terminal or a
 * JSON reader as it is. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Print with unsafe bytes as \xNN; returns the columns used (code points). */
size_t text_print(FILE *out, const char *text);

/* Text of a model or a tokenizer on stdout: as it is, for a file or a program; on a terminal, what
 * could move its cursor or end its line as \xNN, newlines and tabs aside. */
void text_show(const char *text, size_t bytes);

/* Columns that text_print would use. */
size_t text_columns(const char *text);

/* A cell of a table: text_print, spaces up to `width` columns, and two more. */
void text_cell(FILE *out, const char *text, size_t width);

/* Escape into a buffer for a quoted place in a message, as the library does: quotes
 * and backslashes too. Cut with "..." where it does not fit. Returns `buffer`. */
char *text_quote(char *buffer, size_t capacity, const char *text);

/* A JSON string with its quotes; broken UTF-8 becomes U+FFFD. */
void text_json(FILE *out, const char *text);
/* The same for text that may hold NUL and ends in one more. */
void text_json_bytes(FILE *out, const char *text, size_t bytes);

/* "34,560" into buffer (at least 27 bytes). Returns `buffer`. */
char *text_thousands(char *buffer, size_t capacity, uint64_t number);

/* The shortest decimal that reads back as `number`. */
char *text_real(char *buffer, size_t capacity, double number);

/* "[1,2,5,8]" into buffer. */
char *text_shape(char *buffer, size_t capacity, const uint64_t *shape, size_t rank);

/* Colours of stdout: empty strings unless it is a terminal and nobody objects
 * (NO_COLOR, TERM=dumb). */
const char *text_bold(void);
const char *text_good(void);
const char *text_bad(void);
const char *text_plain(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PLOT_TEXT_H
#define LOCUS_PLOT_TEXT_H

/* Text that grows, and the few ways in which pictures write into it. No locale enters: a
 * decimal point is a point. */

#include <locus/plot.h>

/* A text under construction. A failed allocation is remembered; what follows is ignored. */
typedef struct plot_text {
    locus_text *to;
    int failed;
} plot_text;

enum { PLOT_NUMBER = 32 }; /* bytes that hold any number */

void plot_put(plot_text *text, const char *bytes, size_t count);
void plot_puts(plot_text *text, const char *string);
void plot_char(plot_text *text, char character);
void plot_spaces(plot_text *text, size_t count);
void plot_integer(plot_text *text, int64_t value);

/* `value` with at most `digits` (0 .. 6) decimals, trailing zeros dropped, never "-0". */
void plot_fixed(plot_text *text, double value, int digits);

/* The shortest decimal that reads back as `value`, which is finite. */
void plot_exact(plot_text *text, double value);

/* Markup: & < > " ' become references. */
void plot_escaped(plot_text *text, const char *string);

/* One character of `*from` as well-formed UTF-8 that is safe to show: control characters and
 * direction marks become U+FFFD, as do broken bytes. Returns its bytes in out[4] and moves
 * *from on; 0 at the end. */
size_t plot_next(const char **from, unsigned char out[4]);

/* Copy into buffer[capacity] through plot_next; where it is longer than `limit` characters,
 * the last one becomes an ellipsis (limit 0: none). NULL reads as "". Returns `buffer`. */
char *plot_copy(char *buffer, size_t capacity, const char *from, size_t limit);

/* Characters (columns of a terminal) of a text. */
size_t plot_columns(const char *text);

/* As plot_fixed, with all its decimals, so that numbers in columns look alike. */
char *plot_padded_text(char *buffer, double value, int digits);

/* As plot_fixed, into a buffer of at least 32 bytes. Beyond 1e12 it reads "inf". */
char *plot_fixed_text(char *buffer, double value, int digits);

#endif

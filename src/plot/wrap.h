/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PLOT_WRAP_H
#define LOCUS_PLOT_WRAP_H

/* Text cut to a width, by the widths of its letters (locus_text_width). */

#include <locus/plot.h>

/* As plot_copy, cut so that it is at most `width` wide in units of the letters' size. */
char *plot_copy_within(char *buffer, size_t capacity, const char *from, double width);

/* The next line of a text that is to be at most `width` wide in units of the letters' size:
 * its first byte and count of bytes; *from moves behind it. 0 at the end. */
int plot_wrap(const char **from, double width, const char **line, size_t *bytes);
size_t plot_wrap_lines(const char *text, double width);

#endif

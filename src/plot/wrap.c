/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/wrap.h"

#include <string.h>

#include "plot/text.h"

char *plot_copy_within(char *buffer, size_t capacity, const char *from, double width)
{
    plot_copy(buffer, capacity, from, 0);
    for (size_t limit = plot_columns(buffer); limit > 1 && locus_text_width(buffer) > width;)
        plot_copy(buffer, capacity, from, --limit);
    return buffer;
}

static double width_of(const char *text, size_t bytes)
{
    char part[512];
    const size_t count = bytes < sizeof part ? bytes : sizeof part - 1;
    memcpy(part, text, count);
    part[count] = '\0';
    return locus_text_width(part);
}

int plot_wrap(const char **from, double width, const char **line, size_t *bytes)
{
    const char *start = *from + strspn(*from, " \n");
    size_t fits = 0, end = 0;
    *line = start;
    if (*start == '\0') return 0;
    while (start[end] != '\0' && start[end] != '\n') {
        size_t word = end + strspn(start + end, " ");
        word += strcspn(start + word, " \n");
        if (fits > 0 && width_of(start, word) > width) break;
        fits = end = word;
    }
    *bytes = fits;
    *from = start + fits;
    return 1;
}

size_t plot_wrap_lines(const char *text, double width)
{
    const char *line;
    size_t bytes, count = 0;
    while (text != NULL && plot_wrap(&text, width, &line, &bytes)) count++;
    return count;
}

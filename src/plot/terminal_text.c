/* SPDX-License-Identifier: Apache-2.0 */
/* Colours and words on a terminal. */
#include <string.h>

#include "plot/terminal.h"

static void colour(terminal *t, const char *code, uint32_t rgb)
{
    if (t->plain) return;
    plot_puts(t->text, code);
    for (int shift = 16; shift >= 0; shift -= 8) {
        plot_integer(t->text, rgb >> shift & 0xFF);
        plot_char(t->text, shift > 0 ? ';' : 'm');
    }
}

void terminal_ink(terminal *t, uint32_t ink)
{
    colour(t, "\033[38;2;", locus_ink_colour(ink, t->theme));
}

void terminal_paper(terminal *t, uint32_t ink)
{
    colour(t, "\033[48;2;", locus_ink_colour(ink, t->theme));
}

void terminal_reset(terminal *t)
{
    if (!t->plain) plot_puts(t->text, "\033[0m");
}

/* Without colours there are no letters beyond ASCII either: the nearest ones stand in. */
static const char *ascii_of(const unsigned char *bytes, size_t count)
{
    static const struct {
        const char *letter, *ascii;
    } near[] = {
        {"\u2212", "-"}, {"\u2013", "-"}, {"\u2014", "-"}, {"\u00b7", "."},  {"\u2264", "<"},
        {"\u2265", ">"}, {"\u00d7", "x"}, {"\u2026", "."}, {"\u03c0", "pi"},
    };
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        if (strlen(near[i].letter) == count && memcmp(near[i].letter, bytes, count) == 0)
            return near[i].ascii;
    return "?";
}

static void put_safe(terminal *t, const char *string, size_t limit)
{
    unsigned char bytes[4];
    size_t count;
    for (; limit > 0 && (count = plot_next(&string, bytes)) > 0; limit--) {
        if (t->plain && count > 1)
            plot_puts(t->text, ascii_of(bytes, count));
        else
            plot_put(t->text, (const char *)bytes, count);
    }
}

void terminal_cell(terminal *t, const char *text, size_t width, int right)
{
    const size_t columns = plot_columns(text);
    if (columns > width) {
        put_safe(t, text, width - 1);
        plot_puts(t->text, t->plain ? "." : "\u2026");
        return;
    }
    if (right) plot_spaces(t->text, width - columns);
    put_safe(t, text, columns);
    if (!right) plot_spaces(t->text, width - columns);
}

void terminal_paragraph(terminal *t, const char *text, const char *style)
{
    if (text == NULL || *text == '\0') return;
    if (!t->plain) plot_puts(t->text, style);
    while (*text != '\0') {
        /* Break at the last space that fits. */
        size_t bytes = strlen(text), end = bytes;
        if (bytes > t->columns) {
            end = t->columns;
            while (end > 0 && text[end] != ' ') end--;
            if (end == 0) end = bytes;
        }
        char line[512];
        const size_t count = end < sizeof line ? end : sizeof line - 1;
        memcpy(line, text, count);
        line[count] = '\0';
        put_safe(t, line, SIZE_MAX);
        plot_char(t->text, '\n');
        text += end;
        text += strspn(text, " ");
    }
    terminal_reset(t);
}

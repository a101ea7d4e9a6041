/* SPDX-License-Identifier: Apache-2.0 */
/* A heatmap in letters: a coloured table where all numbers fit, else half blocks (two rows
 * per line), else a ramp of ASCII. */
#include <math.h>
#include <string.h>

#include "plot/terminal.h"

enum { NAMES = 14, TABLE_ROWS = 40, ASCII_ROWS = 40, BLOCK_ROWS = 64 };

typedef struct view {
    terminal *t;
    const locus_panel *panel;
    plot_frame frame;
    size_t names;          /* columns for the names of the rows        */
    size_t cell;           /* columns per cell of a table              */
    size_t across;         /* columns per cell of blocks, >= 1         */
    size_t thin_x, thin_y; /* each so many-th column and row is shown  */
} view;

static double value_at(const view *v, size_t row, size_t column)
{
    return v->panel->values[row * v->panel->columns + column];
}

static uint32_t ink_at(const view *v, size_t row, size_t column)
{
    return plot_level(value_at(v, row, column), v->frame.low, v->frame.high, v->frame.colours);
}

static void put_name(const view *v, const plot_axis *axis, size_t index, size_t width)
{
    char name[NAME_BYTES];
    terminal_cell(v->t, plot_axis_text(name, axis, index), width, 1);
}

static size_t widest_name(const plot_axis *axis)
{
    char name[NAME_BYTES];
    size_t widest = 0;
    for (size_t i = 0; i < axis->cells; i++) {
        const size_t columns = plot_columns(plot_axis_text(name, axis, i));
        if (columns > widest) widest = columns;
    }
    return widest < NAMES ? widest : NAMES;
}

/* ---- a table ---- */

static size_t widest_number(const view *v)
{
    char text[PLOT_NUMBER];
    size_t widest = 1;
    for (size_t i = 0; i < v->panel->rows * v->panel->columns; i++) {
        const double value = v->panel->values[i];
        const size_t columns =
            isnan(value) ? 1 : strlen(plot_padded_text(text, value, v->frame.digits));
        if (columns > widest) widest = columns;
    }
    return widest;
}

static int fits_table(view *v)
{
    const locus_panel *panel = v->panel;
    if (panel->cells == LOCUS_CELLS_NEVER || panel->rows > TABLE_ROWS) return 0;
    const size_t room = v->t->columns - v->names - 1;
    if (panel->columns > room / 2) return 0;
    v->cell = widest_number(v) + 1;
    const size_t head = widest_name(&v->frame.x) + 1;
    size_t wish = head < 8 ? head : 8;
    if (wish > room / panel->columns) wish = room / panel->columns;
    if (wish > v->cell) v->cell = wish;
    return v->cell * panel->columns <= room;
}

static void draw_table(const view *v)
{
    char text[PLOT_NUMBER];
    plot_spaces(v->t->text, v->names + 1);
    for (size_t column = 0; column < v->panel->columns; column++) {
        plot_char(v->t->text, ' ');
        put_name(v, &v->frame.x, column, v->cell - 1);
    }
    plot_char(v->t->text, '\n');
    for (size_t row = 0; row < v->panel->rows; row++) {
        put_name(v, &v->frame.y, row, v->names);
        plot_char(v->t->text, ' ');
        for (size_t column = 0; column < v->panel->columns; column++) {
            const double value = value_at(v, row, column);
            const uint32_t ink = ink_at(v, row, column);
            terminal_paper(v->t, ink);
            terminal_ink(v->t, ink | LOCUS_INK_ON);
            terminal_cell(v->t, isnan(value) ? "." : plot_padded_text(text, value, v->frame.digits),
                          v->cell, 1);
        }
        terminal_reset(v->t);
        plot_char(v->t->text, '\n');
    }
}

/* ---- blocks and ramps ---- */

static void draw_columns(const view *v)
{
    char name[NAME_BYTES];
    const size_t shown = (v->panel->columns + v->thin_x - 1) / v->thin_x, every = 10;
    plot_spaces(v->t->text, v->names + 1);
    size_t used = 0;
    for (size_t i = 0; i < shown; i += every) {
        plot_axis_text(name, &v->frame.x, i * v->thin_x);
        if (i * v->across < used) continue;
        plot_spaces(v->t->text, i * v->across - used);
        terminal_cell(v->t, name, plot_columns(name), 0);
        used = i * v->across + plot_columns(name) + 1;
        plot_char(v->t->text, ' ');
    }
    plot_char(v->t->text, '\n');
}

static void draw_blocks(const view *v)
{
    for (size_t row = 0; row < v->panel->rows; row += 2 * v->thin_y) {
        put_name(v, &v->frame.y, row, v->names);
        plot_char(v->t->text, ' ');
        const size_t below = row + v->thin_y;
        for (size_t column = 0; column < v->panel->columns; column += v->thin_x) {
            terminal_ink(v->t, ink_at(v, row, column));
            if (below < v->panel->rows) terminal_paper(v->t, ink_at(v, below, column));
            for (size_t i = 0; i < v->across; i++) plot_puts(v->t->text, "\u2580");
        }
        terminal_reset(v->t);
        plot_char(v->t->text, '\n');
    }
}

static void draw_ramp(const view *v)
{
    static const char ramp[] = " .:-=+*#%@";
    const double span = v->frame.high - v->frame.low;
    for (size_t row = 0; row < v->panel->rows; row += v->thin_y) {
        put_name(v, &v->frame.y, row, v->names);
        plot_char(v->t->text, ' ');
        for (size_t column = 0; column < v->panel->columns; column += v->thin_x) {
            const double value = value_at(v, row, column);
            double share = span > 0 ? (value - v->frame.low) / span : 0.5;
            share = share < 0 ? 0 : share > 1 ? 1 : share;
            const char letter = isnan(value) ? '_' : ramp[(size_t)lround(share * 9)];
            for (size_t i = 0; i < v->across; i++) plot_char(v->t->text, letter);
        }
        plot_char(v->t->text, '\n');
    }
}

static size_t thin(size_t count, size_t room) { return (count + room - 1) / room; }

static void draw_picture(view *v)
{
    const size_t room = v->t->columns - v->names - 1;
    const size_t rows = v->t->plain ? ASCII_ROWS : 2 * BLOCK_ROWS / 2;
    v->thin_x = thin(v->panel->columns, room);
    v->thin_y = thin(v->panel->rows, rows);
    v->across = v->t->plain || v->panel->columns * 2 > room ? 1 : 2;
    if (v->t->plain && v->panel->columns * 2 <= room) v->across = 2;
    draw_columns(v);
    if (v->t->plain)
        draw_ramp(v);
    else
        draw_blocks(v);
}

static void draw_scale(const view *v)
{
    char text[PLOT_NUMBER], title[400];
    enum { STEPS = 24 };
    const locus_axis axis = {.label = v->panel->value_name, .unit = v->panel->value_unit};
    const int digits = v->panel->whole ? 0 : v->frame.digits;
    plot_spaces(v->t->text, v->names + 1);
    plot_puts(v->t->text, plot_fixed_text(text, v->frame.low, digits));
    plot_char(v->t->text, ' ');
    for (size_t i = 0; i < STEPS && !v->t->plain; i++) {
        const double value =
            v->frame.low + (v->frame.high - v->frame.low) * (double)i / (STEPS - 1);
        terminal_paper(v->t, plot_level(value, v->frame.low, v->frame.high, v->frame.colours));
        plot_char(v->t->text, ' ');
    }
    if (v->t->plain) plot_puts(v->t->text, v->cell > 0 ? ".." : "\" .:-=+*#%@\"");
    terminal_reset(v->t);
    plot_char(v->t->text, ' ');
    plot_puts(v->t->text, plot_fixed_text(text, v->frame.high, digits));
    plot_axis_title(title, sizeof title, &axis);
    if (title[0] != '\0') plot_spaces(v->t->text, 2);
    terminal_cell(v->t, title, plot_columns(title), 0);
    plot_char(v->t->text, '\n');
}

void terminal_heatmap(terminal *t, const locus_panel *panel)
{
    view v = {.t = t, .panel = panel};
    v.frame.x = (plot_axis){.axis = &panel->x, .cells = panel->columns};
    v.frame.y = (plot_axis){.axis = &panel->y, .cells = panel->rows};
    plot_heatmap_limits(&v.frame, panel);
    v.names = widest_name(&v.frame.y);
    if (v.names + 9 > t->columns) v.names = t->columns - 9;
    if (fits_table(&v)) {
        draw_table(&v);
    } else {
        v.cell = 0;
        draw_picture(&v);
    }
    draw_scale(&v);
}

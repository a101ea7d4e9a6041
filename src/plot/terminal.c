/* SPDX-License-Identifier: Apache-2.0 */
/* Figures in letters: panels one below the other. */
#include "plot/terminal.h"

#include <stdio.h>

#include "plot/render.h"

static void axes(terminal *t, const locus_panel *panel)
{
    char x[400], y[400], line[900];
    const char *up = panel->kind == LOCUS_PANEL_HEATMAP ? "down: " : "up: ";
    plot_axis_title(x, sizeof x, &panel->x);
    plot_axis_title(y, sizeof y, &panel->y);
    const int both = x[0] != '\0' && y[0] != '\0';
    snprintf(line, sizeof line, "%s%s%s%s%s", y[0] != '\0' ? up : "", y, both ? ", " : "",
             x[0] != '\0' ? "across: " : "", x);
    terminal_paragraph(t, line, "\033[2m");
}

void plot_terminal(plot_text *text, const locus_figure *figure, const locus_render *render)
{
    terminal t = {.text = text,
                  .columns = render->width != 0 ? render->width : 80,
                  .plain = render->plain != 0,
                  .theme = render->theme};
    if (t.columns < 20) t.columns = 20;
    if (t.columns > 500) t.columns = 500;
    terminal_paragraph(&t, figure->title, "\033[1m");
    for (size_t i = 0; i < figure->panel_count; i++) {
        const locus_panel *panel = &figure->panels[i];
        plot_char(text, '\n');
        terminal_paragraph(&t, panel->title, "\033[1m");
        axes(&t, panel);
        if (panel->kind == LOCUS_PANEL_HEATMAP)
            terminal_heatmap(&t, panel);
        else if (panel->kind == LOCUS_PANEL_LINES)
            terminal_curves(&t, panel);
        else
            terminal_bars(&t, panel);
        terminal_paragraph(&t, panel->note, "\033[2m");
    }
    if (figure->caption != NULL) plot_char(text, '\n');
    terminal_paragraph(&t, figure->caption, "\033[2m");
}

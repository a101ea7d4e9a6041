/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PLOT_TERMINAL_H
#define LOCUS_PLOT_TERMINAL_H

#include "plot/layout.h"

typedef struct terminal {
    plot_text *text;
    size_t columns;
    int plain;
    locus_theme theme;
} terminal;

/* 24-bit colours; nothing at all when plain. */
void terminal_ink(terminal *t, uint32_t ink);   /* of the letters   */
void terminal_paper(terminal *t, uint32_t ink); /* behind them      */
void terminal_reset(terminal *t);

/* A text in `width` columns: cut with an ellipsis (plain: a dot), or filled with spaces on the
 * left where `right`, else on the right. */
void terminal_cell(terminal *t, const char *text, size_t width, int right);

/* Lines of at most t->columns letters, in a style. */
void terminal_paragraph(terminal *t, const char *text, const char *style);

void terminal_heatmap(terminal *t, const locus_panel *panel);
void terminal_curves(terminal *t, const locus_panel *panel);
void terminal_bars(terminal *t, const locus_panel *panel);

#endif

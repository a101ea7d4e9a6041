/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PLOT_RENDER_H
#define LOCUS_PLOT_RENDER_H

#include "plot/text.h"

/* Can this figure be drawn at all? Names what is wrong. */
locus_status plot_check(const locus_figure *figure, locus_error *error);

/* One per locus_format. */
locus_status plot_svg(plot_text *text, const locus_figure *figure, const locus_render *render,
                      locus_error *error);
void plot_terminal(plot_text *text, const locus_figure *figure, const locus_render *render);
void plot_csv(plot_text *text, const locus_figure *figure);
void plot_json(plot_text *text, const locus_figure *figure);

#endif

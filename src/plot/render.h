/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PLOT_RENDER_H
#define LOCUS_PLOT_RENDER_H

#include "plot/text.h"

enum { PLOT_MOST_PANELS = 256, PLOT_MOST_SERIES = 64 };

/* A caller's figure in structs of this version. */
typedef struct plot_adopted {
    locus_figure figure;
    locus_panel *panels;
    locus_series *series;
    const locus_allocator *allocator;
} plot_adopted;

/* Let *figure point to a copy where some struct of it has another size; to be freed. On failure
 * there is nothing to free. */
locus_status plot_adopt(const locus_figure **figure, plot_adopted *adopted,
                        const locus_allocator *allocator, locus_error *error);
void plot_adopted_free(plot_adopted *adopted);

/* Can this figure be drawn at all? Names what is wrong. */
locus_status plot_check(const locus_figure *figure, locus_error *error);

/* One per locus_format. */
locus_status plot_svg(plot_text *text, const locus_figure *figure, const locus_render *render,
                      locus_error *error);
void plot_terminal(plot_text *text, const locus_figure *figure, const locus_render *render);
void plot_csv(plot_text *text, const locus_figure *figure);
void plot_json(plot_text *text, const locus_figure *figure);

#endif

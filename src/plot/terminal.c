/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/render.h"
void plot_terminal(plot_text *text, const locus_figure *figure, const locus_render *render)
{
    (void)text;
    (void)figure;
    (void)render;
}

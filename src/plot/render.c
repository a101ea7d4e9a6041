/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/render.h"

#include "core/adopt.h"
#include "core/error.h"

static locus_status write_format(plot_text *text, const locus_figure *figure, locus_format format,
                                 const locus_render *render, locus_error *error)
{
    switch (format) {
    case LOCUS_FORMAT_SVG: return plot_svg(text, figure, render, error);
    case LOCUS_FORMAT_TERMINAL: plot_terminal(text, figure, render); return LOCUS_OK;
    case LOCUS_FORMAT_CSV: plot_csv(text, figure); return LOCUS_OK;
    case LOCUS_FORMAT_JSON: plot_json(text, figure); return LOCUS_OK;
    }
    return locus_fail(error, LOCUS_ERR_ARGUMENT, "format: found %d, expected a LOCUS_FORMAT_",
                      (int)format);
}

/* The figure is of this version. */
static locus_status render_figure(const locus_figure *figure, locus_format format,
                                  const locus_render *render, locus_text *out, locus_error *error)
{
    LOCUS_TRY(plot_check(figure, error));
    plot_text text = {.to = out};
    const size_t before = out->length;
    locus_status status = write_format(&text, figure, format, render, error);
    if (status == LOCUS_OK && text.failed)
        status = locus_fail(error, LOCUS_ERR_MEMORY, "render: out of memory");
    if (status == LOCUS_OK || out->data == NULL) return status;
    out->length = before;
    out->data[before] = '\0';
    return status;
}

locus_status locus_figure_render(const locus_figure *figure, locus_format format,
                                 const locus_render *render, locus_text *out, locus_error *error)
{
    locus_render own = {.size = sizeof own};
    plot_adopted adopted;
    if (out == NULL) return locus_fail(error, LOCUS_ERR_ARGUMENT, "render: out is NULL");
    if (render == NULL) render = &own;
    LOCUS_ADOPT(render, own, "render", error);
    LOCUS_TRY(plot_adopt(&figure, &adopted, out->allocator, error));
    const locus_status status = render_figure(figure, format, render, out, error);
    plot_adopted_free(&adopted);
    return status;
}

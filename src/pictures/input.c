/* SPDX-License-Identifier: Apache-2.0 */
/* What is added to the input: sinusoids and learned tables. */
#include <math.h>

#include "pictures/pictures.h"

static int embeds(const locus_scheme_info *scheme)
{
    return (scheme->terms & LOCUS_TERM_INPUT) != 0;
}
static int is_sinusoid(const locus_scheme_info *scheme)
{
    return embeds(scheme) && picture_has_option(scheme, "table");
}

/* The name of a layout as the scheme declares it; NULL: it has none. */
static const locus_choice *layout_of(const locus_scheme_info *scheme, int64_t table)
{
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++)
        for (const locus_choice *c = o->choices; c != NULL && c->name != NULL; c++)
            if (c->value == table) return c;
    return NULL;
}

static const picture_wish long_wish = {.level = LOCUS_LAYER, .length = 64};

/* p_i of every row of x, [rows][width]. */
static double *encode(locus_picture *p, const picture_call *call, int64_t table)
{
    const int64_t rows = call->info.queries, width = call->in->x.shape[2];
    const locus_tensor *pos = &call->in->pos;
    double *values = picture_numbers(p, (size_t)(rows * width));
    for (int64_t i = 0; values != NULL && i < rows; i++) {
        double *row = values + i * width;
        if (pos->rank == 0) {
            locus_sinusoid(table, width, call->config->options.first_position + i, row);
            continue;
        }
        const float *from = (const float *)pos->data + i * pos->stride[0];
        for (int64_t c = 0; c < width; c++) row[c] = (double)from[c * pos->stride[1]];
    }
    p->made_up |= pos->rank != 0 && p->loaded == NULL;
    return values;
}

static locus_panel *add_encoding(locus_picture *p, const picture_call *call, const char *title,
                                 const double *values)
{
    locus_panel *panel = picture_panel(p, LOCUS_PANEL_HEATMAP, title);
    panel->values = values;
    panel->rows = (size_t)call->info.queries;
    panel->columns = (size_t)call->in->x.shape[2];
    panel->y = (locus_axis){.label = "position i",
                            .names = picture_names(p, call),
                            .first = (double)call->config->options.first_position};
    panel->x = (locus_axis){.label = "feature"};
    panel->value_name = "p_i";
    panel->aspect = 0.85;
    panel->cells = LOCUS_CELLS_NEVER;
    return panel;
}

/* A few features on their way through the positions. */
static void add_oscillation(locus_picture *p, const picture_call *call, const double *values)
{
    enum { CURVES = 4 };
    const size_t rows = (size_t)call->info.queries, width = (size_t)call->in->x.shape[2];
    locus_panel *panel = picture_panel(p, LOCUS_PANEL_LINES, "four features over the positions");
    panel->x =
        (locus_axis){.label = "position i", .first = (double)call->config->options.first_position};
    panel->y = (locus_axis){.label = "p_i"};
    for (size_t c = 0; c < CURVES && c < width; c++) {
        const size_t feature = c * width / (2 * CURVES);
        double *y = picture_numbers(p, rows);
        for (size_t i = 0; y != NULL && values != NULL && i < rows; i++)
            y[i] = values[i * width + feature];
        picture_curve(p, panel, picture_text(p, "feature %zu", feature), NULL, y, rows, 0);
    }
}

static locus_status draw_encoding(locus_picture *p)
{
    picture_call call;
    const locus_status status = picture_open(&call, p, &long_wish);
    if (status != LOCUS_OK) return status;
    const double *values = encode(p, &call, call.config->options.table);
    if (!picture_failed(p)) {
        const locus_choice *layout = layout_of(p->scheme, call.config->options.table);
        add_encoding(p, &call,
                     layout != NULL ? picture_text(p, "p_i, layout %s", layout->name) : "p_i",
                     values);
        if (is_sinusoid(p->scheme)) add_oscillation(p, &call, values);
    }
    picture_close(&call);
    return LOCUS_OK;
}

const picture_kind picture_encoding = {
    .about.name = "encoding",
    .about.title = "the encoding",
    .about.help = "what is added to the input at each position",
    .applies = embeds,
    .draw = draw_encoding,
};

/* ---- layouts ---- */

static locus_status draw_layouts(locus_picture *p)
{
    static const struct {
        int64_t table;
        const char *title;
    } layouts[] = {
        {LOCUS_TABLE_PAPER, "paper: interleaved"},
        {LOCUS_TABLE_HALF, "half: sines, then cosines"},
        {LOCUS_TABLE_T2T, "t2t: other frequencies"},
    };
    picture_call call;
    const locus_status status = picture_open(&call, p, &long_wish);
    if (status != LOCUS_OK) return status;
    for (size_t i = 0; i < 3 && !picture_failed(p); i++)
        add_encoding(p, &call, layouts[i].title, encode(p, &call, layouts[i].table));
    p->across = 3;
    picture_close(&call);
    return LOCUS_OK;
}

const picture_kind picture_layouts = {
    .about.name = "layouts",
    .about.title = "three layouts in use",
    .about.help = "the three published layouts of the sinusoid side by side",
    .applies = is_sinusoid,
    .draw = draw_layouts,
};

/* ---- similarity ---- */

static locus_status draw_similarity(locus_picture *p)
{
    picture_call call;
    const locus_status status = picture_open(&call, p, &long_wish);
    if (status != LOCUS_OK) return status;
    const size_t rows = (size_t)call.info.queries, width = (size_t)call.in->x.shape[2];
    const double *values = encode(p, &call, call.config->options.table);
    double *products = picture_numbers(p, rows * rows);
    for (size_t i = 0; !picture_failed(p) && i < rows; i++)
        for (size_t k = 0; k < rows; k++)
            for (size_t c = 0; c < width; c++)
                products[i * rows + k] += values[i * width + c] * values[k * width + c];
    locus_panel *panel = picture_panel(p, LOCUS_PANEL_HEATMAP, "similarity p_i \u00b7 p_j");
    const char *const *names = picture_names(p, &call);
    const double first = (double)call.config->options.first_position;
    panel->values = products;
    panel->rows = panel->columns = rows;
    panel->y = (locus_axis){.label = "position i", .names = names, .first = first};
    panel->x = (locus_axis){.label = "position j", .names = names, .first = first};
    panel->value_name = "p_i \u00b7 p_j";
    panel->aspect = 0.85;
    picture_close(&call);
    return LOCUS_OK;
}

const picture_kind picture_similarity = {
    .about.name = "similarity",
    .about.title = "similarity of positions",
    .about.help = "p_i . p_j of all positions",
    .applies = embeds,
    .draw = draw_similarity,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the distance: biases, rotations, what rotation does to the mean score. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"

static const double pi = 3.14159265358979323846;

/* The query whose distances to the keys are the picture: the last one, or, where keys lie on
 * both sides, the middle one. */
static int64_t chosen_query(const plot_call *call)
{
    return call->config->causal ? call->info.queries - 1 : call->info.queries / 2;
}

/* One term of one query against all keys; NaN where a key is hidden. */
static int take_row(picture *p, const plot_call *call, int64_t head, int64_t query, size_t term,
                    double **values)
{
    const size_t keys = (size_t)call->info.keys;
    double *terms = picture_numbers(p, keys * call->info.terms);
    uint8_t *visible = (uint8_t *)picture_numbers(p, keys / sizeof(double) + 1);
    locus_error error = {""};
    if (p->failed) return CLI_DONE;
    const locus_explain_block block = {
        .size = sizeof block, .head = head, .query = query, .queries = 1, .keys = call->info.keys};
    const locus_explained explained = {.size = sizeof explained,
                                       .terms = terms,
                                       .visible = visible};
    const locus_status status = locus_explain(call->explainer, &block, &explained, &error);
    if (status != LOCUS_OK) return plot_fail(p->values, status, &error);
    *values = terms + term * keys;
    for (size_t n = 0; n < keys; n++)
        if (!visible[n]) (*values)[n] = NAN;
    return CLI_DONE;
}

static double *distances(picture *p, const plot_call *call, int64_t query)
{
    double *x = picture_numbers(p, (size_t)call->info.keys);
    for (int64_t n = 0; x != NULL && n < call->info.keys; n++)
        x[n] = (double)(call->info.query_offset + query - n);
    return x;
}

/* ---- bias ---- */

static int has_bias(const locus_scheme_info *scheme)
{
    return (scheme->terms & LOCUS_TERM_BIAS) != 0;
}

/* SIZE_MAX: this call has none. */
static size_t find_term(const plot_call *call, uint32_t place)
{
    for (size_t t = 0; t < call->info.terms; t++) {
        const locus_explainer_term *term = locus_explainer_term_at(call->explainer, t);
        if (term->place == place && strcmp(term->name, "cls") != 0) return t;
    }
    return SIZE_MAX;
}

static int add_heads(picture *p, const plot_call *call, locus_panel *panel, size_t term)
{
    const int64_t query = chosen_query(call);
    const double *x = distances(p, call, query);
    const uint32_t only = p->values->head;
    int64_t shown = 0;
    for (int64_t h = 0; h < call->info.heads && shown < PLOT_HEADS && !p->failed; h++) {
        double *y = NULL;
        if (only != PLOT_NONE && h != (int64_t)only) continue;
        const int exit_code = take_row(p, call, h, query, term, &y);
        if (exit_code != CLI_DONE) return exit_code;
        picture_curve(p, panel, picture_text(p, "head %d", (int)h), x, y, (size_t)call->info.keys,
                      plot_has_option(p->scheme, "buckets"));
        shown++;
    }
    return CLI_DONE;
}

static int draw_bias(picture *p)
{
    const plot_wish wish = {
        .level = p->values->path != NULL ? 0 : LOCUS_ATTEND,
        .length = 64,
        .stretch = p->values->causal ? 1 : 2,
        .without = plot_has_tensor(p->scheme, "cls") ? "cls" : NULL,
    };
    plot_call call;
    int exit_code = plot_open(&call, p->values, &wish);
    if (exit_code != CLI_DONE) return exit_code;
    const size_t term = find_term(&call, LOCUS_TERM_BIAS);
    if (term == SIZE_MAX) {
        exit_code = cli_complain("plot", CLI_REFUSED, "%s: the call has no bias",
                                 p->values->path != NULL ? p->values->path : p->values->scheme);
    } else {
        locus_panel *panel =
            picture_panel(p, LOCUS_PANEL_LINES, "bias by distance, one curve per head");
        panel->x = (locus_axis){.label = "distance m \u2212 n", .unit = "tokens"};
        panel->y = (locus_axis){.label = "added to the score"};
        exit_code = add_heads(p, &call, panel, term);
        /* ALiBi's slopes are published, the rest is learned, and made up here. */
        p->made_up |= p->values->path == NULL && !plot_has_tensor(p->scheme, "slopes");
    }
    plot_close(&call);
    return exit_code;
}

const plot_kind plot_bias = {
    .name = "bias",
    .title = "bias by distance",
    .help = "what is added to the score at each distance, one curve per head",
    .applies = has_bias,
    .draw = draw_bias,
};

/* ---- angles ---- */

enum { MOST_PAIRS = 512 };

static int turns(const locus_scheme_info *scheme)
{
    return (scheme->terms & LOCUS_TERM_ROTATION) != 0;
}

static void add_angles(picture *p, const plot_call *call, const double *frequency, size_t pairs)
{
    const size_t positions = (size_t)call->info.keys;
    double *values = picture_numbers(p, positions * pairs);
    for (size_t i = 0; values != NULL && i < positions; i++)
        for (size_t t = 0; t < pairs; t++)
            values[i * pairs + t] = remainder((double)i * frequency[t], 2.0 * pi);
    locus_panel *panel = picture_panel(p, LOCUS_PANEL_HEATMAP,
                                       "angle by which pair t of a row at position p is turned");
    panel->values = values;
    panel->rows = positions;
    panel->columns = pairs;
    panel->y = (locus_axis){.label = "position p"};
    panel->x = (locus_axis){.label = "pair t"};
    panel->aspect = 0.85;
    panel->low = -pi;
    panel->high = pi;
    panel->colours = LOCUS_COLOURS_DIVERGING;
    panel->cells = LOCUS_CELLS_NEVER;
    panel->value_name = "angle, whole turns taken off";
    panel->value_unit = "rad";
}

/* xPos: what is left of pair t at a distance. */
static void add_gains(picture *p, const plot_call *call, const double *log_gain, size_t pairs)
{
    enum { CURVES = 4 };
    const size_t count = (size_t)call->info.keys;
    locus_panel *panel = picture_panel(p, LOCUS_PANEL_LINES, "gain of pair t by distance");
    panel->x = (locus_axis){.label = "distance m \u2212 n", .unit = "tokens"};
    panel->y = (locus_axis){.label = "factor"};
    for (size_t c = 0; c < CURVES && c < pairs; c++) {
        const size_t t = pairs > CURVES ? c * (pairs - 1) / (CURVES - 1) : c;
        double *y = picture_numbers(p, count);
        for (size_t i = 0; y != NULL && i < count; i++) y[i] = exp((double)i * log_gain[t]);
        picture_curve(p, panel, picture_text(p, "pair %zu", t), NULL, y, count, 0);
    }
}

static int draw_angles(picture *p)
{
    const plot_wish wish = {.level = p->values->path != NULL ? 0 : LOCUS_ATTEND,
                            .length = 64,
                            .dim = 64};
    double frequency[MOST_PAIRS], log_gain[MOST_PAIRS];
    size_t pairs = MOST_PAIRS;
    locus_error error = {""};
    plot_call call;
    int exit_code = plot_open(&call, p->values, &wish);
    if (exit_code != CLI_DONE) return exit_code;
    const locus_status status =
        locus_call_turns(call.level, call.config, call.in, &pairs, frequency, log_gain, &error);
    if (status != LOCUS_OK) exit_code = plot_fail(p->values, status, &error);
    if (exit_code == CLI_DONE) add_angles(p, &call, frequency, pairs);
    if (exit_code == CLI_DONE && log_gain[0] != 0) add_gains(p, &call, log_gain, pairs);
    plot_close(&call);
    return exit_code;
}

const plot_kind plot_angles = {
    .name = "angles",
    .title = "rotation",
    .help = "how far each pair of columns turns at each position",
    .applies = turns,
    .draw = draw_angles,
};

/* ---- decay ---- */

/* The mean of q_m . k_n over all q = k with independent coordinates of equal variance is that
 * of q = k = (1, ..., 1): the cross terms of a pair cancel. */
static int draw_decay(picture *p)
{
    const plot_wish wish = {.level = LOCUS_ATTEND,
                            .length = 256,
                            .dim = 128,
                            .stretch = 1,
                            .ones = 1,
                            .masks = 1,
                            .window = PLOT_NONE};
    plot_call call;
    double *y = NULL;
    if (p->values->path != NULL)
        return cli_complain("plot", CLI_USAGE,
                            "--what decay makes its call up; for a case: --what angles");
    int exit_code = plot_open(&call, p->values, &wish);
    if (exit_code != CLI_DONE) return exit_code;
    const int64_t query = call.info.queries - 1;
    const double *x = distances(p, &call, query);
    exit_code = take_row(p, &call, 0, query, 0, &y);
    if (exit_code == CLI_DONE && !p->failed) {
        const double whole = y[call.info.keys - 1];
        for (int64_t n = 0; n < call.info.keys; n++) y[n] /= whole;
        locus_panel *panel =
            picture_panel(p, LOCUS_PANEL_LINES, "mean score of equal q and k by distance");
        panel->x = (locus_axis){.label = "distance m \u2212 n", .unit = "tokens"};
        panel->y = (locus_axis){.label = "share of the score at distance 0"};
        panel->note = "The mean over all q = k with coordinates of equal variance.";
        picture_curve(p, panel, NULL, x, y, (size_t)call.info.keys, 0);
    }
    plot_close(&call);
    return exit_code;
}

const plot_kind plot_decay = {
    .name = "decay",
    .title = "decay of the mean score",
    .help = "the mean score of equal q and k, by distance",
    .applies = turns,
    .draw = draw_decay,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the distance: biases, rotations, what rotation does to the mean score. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "pictures/pictures.h"

static const double pi = 3.14159265358979323846;

/* The query whose distances to the keys are the picture: the last one, or, where keys lie on
 * both sides, the middle one. */
static int64_t chosen_query(const picture_call *call)
{
    return call->config->causal ? call->info.queries - 1 : call->info.queries / 2;
}

/* One term of one query against all keys; NaN where a key is hidden. */
static locus_status take_row(locus_picture *p, const picture_call *call, int64_t head,
                             int64_t query, size_t term, double **values)
{
    const size_t keys = (size_t)call->info.keys;
    double *terms = picture_numbers(p, keys * call->info.terms);
    uint8_t *visible = (uint8_t *)picture_numbers(p, keys / sizeof(double) + 1);
    if (picture_failed(p)) return LOCUS_OK;
    const locus_explain_block block = {
        .size = sizeof block, .head = head, .query = query, .queries = 1, .keys = call->info.keys};
    const locus_explained explained = {.size = sizeof explained,
                                       .terms = terms,
                                       .visible = visible};
    LOCUS_TRY(picture_judge(p, locus_explain(call->explainer, &block, &explained, p->error)));
    *values = terms + term * keys;
    for (size_t n = 0; n < keys; n++)
        if (!visible[n]) (*values)[n] = NAN;
    return LOCUS_OK;
}

static double *distances(locus_picture *p, const picture_call *call, int64_t query)
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
static size_t find_term(const picture_call *call, uint32_t place)
{
    for (size_t t = 0; t < call->info.terms; t++) {
        const locus_explainer_term *term = locus_explainer_term_at(call->explainer, t);
        if (term->place == place && strcmp(term->name, "cls") != 0) return t;
    }
    return SIZE_MAX;
}

static locus_status add_heads(locus_picture *p, const picture_call *call, locus_panel *panel,
                              size_t term)
{
    const int64_t query = chosen_query(call);
    const double *x = distances(p, call, query);
    const int64_t only = p->values->head;
    int64_t shown = 0;
    for (int64_t h = 0; h < call->info.heads && shown < PICTURE_HEADS && !picture_failed(p); h++) {
        double *y = NULL;
        if (only >= 0 && h != only) continue;
        const locus_status status = take_row(p, call, h, query, term, &y);
        if (status != LOCUS_OK) return status;
        picture_curve(p, panel, picture_text(p, "head %d", (int)h), x, y, (size_t)call->info.keys,
                      picture_has_option(p->scheme, "buckets"));
        shown++;
    }
    return LOCUS_OK;
}

/* More heads than curves can be told apart: the title says which are shown. */
static const char *title_of_heads(locus_picture *p, const picture_call *call)
{
    if (p->values->head >= 0 || call->info.heads <= PICTURE_HEADS)
        return "bias by distance, one curve per head";
    return picture_text(p, "bias by distance, heads 0 to %d of %d", PICTURE_HEADS - 1,
                        (int)call->info.heads);
}

/* The options that make the table of the rows picture, as settings, and how far its rule goes. */
typedef struct table_rule {
    locus_problem_setting settings[4];
    char numbers[3][24];
    int64_t reach;
} table_rule;

static locus_status take_table(locus_picture *p, const picture_wish *like, table_rule *table)
{
    const picture_wish wish = {.level = LOCUS_ATTEND, .without = like->without};
    picture_call call;
    LOCUS_TRY(picture_open(&call, p, &wish));
    const locus_options *o = &call.config->options;
    const struct {
        const char *name;
        int64_t value;
    } options[] = {{"buckets", o->buckets},
                   {"max_distance", o->max_distance},
                   {"bidirectional", o->bidirectional}};
    memset(table, 0, sizeof *table);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        snprintf(table->numbers[i], sizeof table->numbers[i], "%" PRId64, options[i].value);
        table->settings[i] = (locus_problem_setting){options[i].name, table->numbers[i]};
    }
    table->reach = picture_reach(&call);
    picture_close(&call);
    return LOCUS_OK;
}

static locus_status draw_bias(locus_picture *p)
{
    picture_wish wish = {
        .level = p->loaded != NULL ? 0 : LOCUS_ATTEND,
        .length = 64,
        .stretch = p->values->causal ? 1 : 2,
        .without = picture_has_tensor(p->scheme, "cls") ? "cls" : NULL,
    };
    table_rule table;
    if (p->loaded == NULL && picture_has_option(p->scheme, "buckets")) {
        LOCUS_TRY(take_table(p, &wish, &table));
        wish.settings = table.settings;
        wish.length = table.reach;
    }
    picture_call call;
    locus_status status = picture_open(&call, p, &wish);
    if (status != LOCUS_OK) return status;
    const size_t term = find_term(&call, LOCUS_TERM_BIAS);
    if (term == SIZE_MAX) {
        status = picture_judge(p, locus_fail(p->error, LOCUS_ERR_TENSOR, "the call has no bias"));
    } else {
        locus_panel *panel = picture_panel(p, LOCUS_PANEL_LINES, title_of_heads(p, &call));
        panel->x = (locus_axis){.label = "distance m \u2212 n", .unit = "tokens"};
        panel->y = (locus_axis){.label = "added to the score"};
        status = add_heads(p, &call, panel, term);
        /* ALiBi's slopes are published, the rest is learned, and made up here. */
        p->made_up |= p->loaded == NULL && !picture_has_tensor(p->scheme, "slopes");
    }
    picture_close(&call);
    return status;
}

const picture_kind picture_bias = {
    .about.name = "bias",
    .about.title = "bias by distance",
    .about.help = "what is added to the score at each distance, one curve per head",
    .applies = has_bias,
    .draw = draw_bias,
};

/* ---- angles ---- */

enum { MOST_PAIRS = 512 };

static int turns(const locus_scheme_info *scheme)
{
    return (scheme->terms & LOCUS_TERM_ROTATION) != 0;
}

static void add_angles(locus_picture *p, const picture_call *call, const double *frequency,
                       size_t pairs)
{
    const size_t positions = (size_t)call->info.keys;
    double *values = picture_numbers(p, positions * pairs);
    for (size_t i = 0; values != NULL && i < positions; i++)
        for (size_t t = 0; t < pairs; t++)
            values[i * pairs + t] = remainder((double)i * frequency[t], 2.0 * pi);
    locus_panel *panel = picture_panel(p, LOCUS_PANEL_HEATMAP, "turn of pair t at position p");
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
    panel->value_name = "angle modulo 2\u03c0";
    panel->value_unit = "rad";
}

/* xPos: what is left of pair t at a distance. */
static void add_gains(locus_picture *p, const picture_call *call, const double *log_gain,
                      size_t pairs)
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

static locus_status draw_angles(locus_picture *p)
{
    const picture_wish wish = {.level = p->loaded != NULL ? 0 : LOCUS_ATTEND,
                               .length = 64,
                               .dim = 64};
    double frequency[MOST_PAIRS], log_gain[MOST_PAIRS];
    size_t pairs = MOST_PAIRS;
    picture_call call;
    locus_status status = picture_open(&call, p, &wish);
    if (status != LOCUS_OK) return status;
    status = picture_judge(p, locus_call_turns(call.level, call.config, call.in, &pairs, frequency,
                                               log_gain, p->error));
    if (status == LOCUS_OK) add_angles(p, &call, frequency, pairs);
    if (status == LOCUS_OK && log_gain[0] != 0) add_gains(p, &call, log_gain, pairs);
    picture_close(&call);
    return status;
}

const picture_kind picture_angles = {
    .about.name = "angles",
    .about.title = "rotation",
    .about.help = "how far each pair of columns turns at each position",
    .applies = turns,
    .draw = draw_angles,
};

/* ---- decay ---- */

/* The mean of q_m . k_n over all q = k with independent coordinates of equal variance is that
 * of q = k = (1, ..., 1): the cross terms of a pair cancel. */
static locus_status draw_decay(locus_picture *p)
{
    const picture_wish wish = {.level = LOCUS_ATTEND,
                               .length = 256,
                               .dim = 128,
                               .stretch = 1,
                               .ones = 1,
                               .masks = 1,
                               .window = -1};
    picture_call call;
    double *y = NULL;
    if (p->loaded != NULL)
        return locus_fail(p->error, LOCUS_ERR_ARGUMENT,
                          "what: decay makes its call up; for a case: angles");
    locus_status status = picture_open(&call, p, &wish);
    if (status != LOCUS_OK) return status;
    const int64_t query = call.info.queries - 1;
    const double *x = distances(p, &call, query);
    status = take_row(p, &call, 0, query, 0, &y);
    if (status == LOCUS_OK && !picture_failed(p)) {
        const double whole = y[call.info.keys - 1];
        for (int64_t n = 0; n < call.info.keys; n++) y[n] /= whole;
        locus_panel *panel = picture_panel(p, LOCUS_PANEL_LINES, "mean score where q = k");
        panel->x = (locus_axis){.label = "distance m \u2212 n", .unit = "tokens"};
        panel->y = (locus_axis){.label = "share of the score at 0"};
        panel->note = "The mean over all q = k with coordinates of equal variance.";
        picture_curve(p, panel, NULL, x, y, (size_t)call.info.keys, 0);
    }
    picture_close(&call);
    return status;
}

const picture_kind picture_decay = {
    .about.name = "decay",
    .about.title = "decay of the mean score",
    .about.help = "the mean score of equal q and k, by distance",
    .applies = turns,
    .draw = draw_decay,
};

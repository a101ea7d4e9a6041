/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of m - n: the distance after clipping, and the table row that serves it. */
#include <math.h>

#include "pictures/pictures.h"

/* The rows of a range of distances; -1: none. */
typedef struct rule {
    int64_t first;
    size_t count;
    int64_t *rows, *bias_rows;
} rule;

static locus_status take_rule(rule *r, locus_picture *p, const picture_call *call, int64_t first,
                              int64_t last)
{
    *r = (rule){.first = first, .count = (size_t)(last - first + 1)};
    r->rows = (int64_t *)picture_numbers(p, r->count);
    r->bias_rows = (int64_t *)picture_numbers(p, r->count);
    if (picture_failed(p)) return LOCUS_ERR_MEMORY;
    return picture_judge(p, locus_call_rows(call->level, call->config, call->in, first, r->count,
                                            r->rows, r->bias_rows, p->error));
}

static int hidden(const picture_call *call, int64_t delta)
{
    const locus_config *c = call->config;
    return (c->causal && delta < 0) || (c->window_left >= 0 && delta > c->window_left) ||
           (c->window_right >= 0 && -delta > c->window_right);
}

/* A map of a function of the distance, given over the range of `r`; NaN where it is -1. */
static double *spread(locus_picture *p, const picture_call *call, const rule *r,
                      const double *values)
{
    const int64_t keys = call->info.keys;
    double *map = picture_numbers(p, (size_t)(call->info.queries * keys));
    for (int64_t i = 0; map != NULL && i < call->info.queries; i++)
        for (int64_t n = 0; n < keys; n++) {
            const int64_t delta = call->info.query_offset + i - n;
            map[i * keys + n] = hidden(call, delta) ? NAN : values[delta - r->first];
        }
    return map;
}

static int64_t least_distance(const picture_call *call)
{
    return call->info.query_offset - (call->info.keys - 1);
}
static int64_t most_distance(const picture_call *call)
{
    return call->info.query_offset + call->info.queries - 1;
}

static double *as_numbers(locus_picture *p, const int64_t *rows, size_t count)
{
    double *numbers = picture_numbers(p, count);
    for (size_t i = 0; numbers != NULL && i < count; i++)
        numbers[i] = rows[i] < 0 ? NAN : (double)rows[i];
    return numbers;
}

/* ---- distance ---- */

static int is_relative(const locus_scheme_info *scheme)
{
    if ((scheme->traits & LOCUS_TRAIT_COUNTED) != 0) return 0;
    return (scheme->traits & LOCUS_TRAIT_RELATIVE) != 0 || picture_has_tensor(scheme, "bias");
}

/* m - n as the tables see it: how many rows it is from the row of distance 0, with its sign. */
static double table_distance(const int64_t *rows, const rule *r, int64_t delta)
{
    const int64_t zero = rows[-r->first], there = rows[delta - r->first];
    if (zero < 0 || there < 0) return (double)delta;
    return delta < 0 ? -fabs((double)(there - zero)) : fabs((double)(there - zero));
}

static locus_status draw_distance(locus_picture *p)
{
    const picture_wish wish = {0};
    picture_call call;
    rule r;
    locus_status status = picture_open(&call, p, &wish);
    if (status != LOCUS_OK) return status;
    const int64_t first = least_distance(&call) < 0 ? least_distance(&call) : 0;
    const int64_t last = most_distance(&call) > 0 ? most_distance(&call) : 0;
    status = take_rule(&r, p, &call, first, last);
    if (status == LOCUS_OK) {
        int clipped = 0;
        double *values = picture_numbers(p, r.count);
        for (size_t i = 0; values != NULL && i < r.count; i++) {
            values[i] = table_distance(r.rows, &r, r.first + (int64_t)i);
            clipped |= values[i] != (double)(r.first + (int64_t)i);
        }
        locus_panel *panel =
            picture_map(p, clipped ? "distance clip(m \u2212 n)" : "distance m \u2212 n",
                        values != NULL ? spread(p, &call, &r, values) : NULL, call.info.queries,
                        call.info.keys, call.info.query_offset, picture_names(p, &call));
        panel->whole = 1;
        panel->value_name = "distance";
        panel->value_unit = "tokens";
        panel->colours = LOCUS_COLOURS_DIVERGING;
    }
    picture_close(&call);
    return status;
}

const picture_kind picture_distance = {
    .about.name = "distance",
    .about.title = "relative distances",
    .about.help = "m - n of every pair, as far as the scheme tells distances apart",
    .applies = is_relative,
    .draw = draw_distance,
};

/* ---- rows ---- */

static int has_rows(const locus_scheme_info *scheme)
{
    if ((scheme->traits & LOCUS_TRAIT_COUNTED) != 0) return 0;
    return picture_has_tensor(scheme, "rel_k") || picture_has_option(scheme, "buckets");
}

static void add_rows(locus_picture *p, const picture_call *call, const rule *r, const int64_t *rows,
                     const char *title)
{
    const double *numbers = as_numbers(p, rows, r->count);
    if (numbers == NULL) return;
    locus_panel *panel =
        picture_map(p, title, spread(p, call, r, numbers), call->info.queries, call->info.keys,
                    call->info.query_offset, picture_names(p, call));
    panel->whole = 1;
    panel->value_name = "row";
    panel->colours = LOCUS_COLOURS_SEQUENTIAL;
}

static void add_maps(locus_picture *p, const picture_call *call, const rule *r)
{
    const locus_tensors *in = call->in;
    const int layer = call->level == LOCUS_LAYER;
    if (in->bias.rank != 0) add_rows(p, call, r, r->bias_rows, "bucket: the row of bias");
    if (r->rows[-r->first] < 0) return;
    if (layer)
        add_rows(p, call, r, r->rows, "row of the projected table");
    else if (in->rel_q.rank != 0 && in->rel_k.rank != 0) {
        add_rows(p, call, r, r->rows, "c2p: the row of rel_k that q_m meets");
        add_rows(p, call, r, r->rows, "p2c: the row of rel_q that k_n meets");
    } else if (in->rel_v.rank != 0 && in->rel_k.rank != 0)
        add_rows(p, call, r, r->rows, "row of rel_k and rel_v");
    else
        add_rows(p, call, r, r->rows, in->rel_v.rank != 0 ? "row of rel_v" : "row of rel_k");
}

/* The rule as a staircase, a good way beyond where it levels off. */
static void add_staircase(locus_picture *p, const rule *r, const int64_t *rows, const char *label)
{
    double *x = picture_numbers(p, r->count);
    const double *y = as_numbers(p, rows, r->count);
    if (x == NULL || y == NULL) return;
    for (size_t i = 0; i < r->count; i++) x[i] = (double)(r->first + (int64_t)i);
    locus_panel *panel = picture_panel(p, LOCUS_PANEL_LINES, "the rule");
    panel->x = (locus_axis){.label = "distance m \u2212 n", .unit = "tokens"};
    panel->y = (locus_axis){.label = label};
    panel->aspect = 0.85;
    picture_curve(p, panel, NULL, x, y, r->count, 1);
}

int64_t picture_reach(const picture_call *call)
{
    const locus_options *o = &call->config->options;
    int64_t reach = call->info.keys + call->info.keys / 2;
    const int64_t levels_off[] = {o->max_distance, o->clip_left, o->clip_right, o->clamp};
    for (size_t i = 0; i < sizeof levels_off / sizeof *levels_off; i++) {
        const int64_t beyond = levels_off[i] + levels_off[i] / 4;
        if (beyond > reach) reach = beyond;
    }
    return reach < 4 * LOCUS_PICTURE_LENGTH ? reach : 4 * LOCUS_PICTURE_LENGTH;
}

static locus_status draw_rows(locus_picture *p)
{
    const picture_wish wish = {.level = p->loaded != NULL ? 0 : LOCUS_ATTEND};
    picture_call call;
    rule r;
    locus_status status = picture_open(&call, p, &wish);
    if (status != LOCUS_OK) return status;
    int64_t reach = picture_reach(&call);
    if (-least_distance(&call) > reach) reach = -least_distance(&call);
    if (most_distance(&call) > reach) reach = most_distance(&call);
    status = take_rule(&r, p, &call, -reach, reach);
    if (status == LOCUS_OK) {
        add_maps(p, &call, &r);
        if (r.bias_rows[0] >= 0) add_staircase(p, &r, r.bias_rows, "bucket");
        if (r.rows[-r.first] >= 0) add_staircase(p, &r, r.rows, "row");
    }
    picture_close(&call);
    return status;
}

const picture_kind picture_rows = {
    .about.name = "rows",
    .about.title = "which row serves which pair",
    .about.help = "the table row or bucket of every pair, and the rule over distance",
    .applies = has_rows,
    .draw = draw_rows,
};

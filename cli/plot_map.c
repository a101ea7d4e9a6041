/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the pair: weights, terms, TUPE's position part. Query down, key across. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"

/* Everything about all pairs of one head. */
typedef struct pairs {
    size_t count;
    double *terms; /* [terms][count] */
    double *score, *weight, *lse;
    uint8_t *visible;
} pairs;

static int take_pairs(picture *p, const plot_call *call, int64_t head, pairs *all)
{
    const locus_explainer_info *info = &call->info;
    const size_t count = (size_t)(info->queries * info->keys);
    locus_error error = {""};
    *all = (pairs){.count = count};
    all->terms = picture_numbers(p, count * info->terms);
    all->score = picture_numbers(p, count);
    all->weight = picture_numbers(p, count);
    all->lse = picture_numbers(p, (size_t)info->queries);
    all->visible = (uint8_t *)picture_numbers(p, count / sizeof(double) + 1);
    if (p->failed) return CLI_DONE;
    const locus_explain_block block = {
        .size = sizeof block, .head = head, .queries = info->queries, .keys = info->keys};
    const locus_explained explained = {.size = sizeof explained,
                                       .terms = all->terms,
                                       .score = all->score,
                                       .visible = all->visible,
                                       .lse = all->lse,
                                       .weight = all->weight};
    locus_status status = locus_explain_lse(call->explainer, &block, all->lse, &error);
    if (status == LOCUS_OK) status = locus_explain(call->explainer, &block, &explained, &error);
    return status == LOCUS_OK ? CLI_DONE : plot_fail(p->values, status, &error);
}

/* Pairs that attention does not see are not there. */
static double *seen(const pairs *all, double *values)
{
    for (size_t i = 0; i < all->count; i++)
        if (!all->visible[i]) values[i] = NAN;
    return values;
}

static double largest(const double *values, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i]) && fabs(values[i]) > most) most = fabs(values[i]);
    return most;
}

static locus_panel *add_map(picture *p, const plot_call *call, const char *title, double *values)
{
    return picture_map(p, title, values, call->info.queries, call->info.keys,
                       call->info.query_offset, picture_names(p, &call->tokens));
}

/* One scale for all panels since `first`, so that they can be compared. */
static void share_scale(picture *p, size_t first, int both_signs)
{
    double most = 0;
    for (size_t i = first; i < p->panel_count; i++)
        most = fmax(most, largest(p->panels[i].values, p->panels[i].rows * p->panels[i].columns));
    for (size_t i = first; i < p->panel_count && most > 0; i++) {
        p->panels[i].low = both_signs ? -most : 0.0;
        p->panels[i].high = most;
        p->panels[i].colours = both_signs ? LOCUS_COLOURS_DIVERGING : LOCUS_COLOURS_SEQUENTIAL;
    }
}

static int any(const locus_scheme_info *scheme) { return scheme != NULL; }

/* ---- attention ---- */

static void add_weights(picture *p, const plot_call *call, const pairs *all, const char *title)
{
    locus_panel *panel = add_map(p, call, title, seen(all, all->weight));
    panel->value_name = "weight a(m, n)";
}

static int draw_attention(picture *p)
{
    const plot_wish wish = {0};
    const uint32_t only = p->values->head;
    const size_t first = p->panel_count;
    plot_call call;
    pairs all;
    int exit_code = plot_open(&call, p->values, &wish);
    if (exit_code != CLI_DONE) return exit_code;
    const int64_t heads = call.info.heads < PLOT_HEADS ? call.info.heads : PLOT_HEADS;
    for (int64_t h = 0; h < call.info.heads && exit_code == CLI_DONE && !p->failed; h++) {
        if (only != PLOT_NONE ? h != (int64_t)only : h >= heads) continue;
        exit_code = take_pairs(p, &call, h, &all);
        if (exit_code == CLI_DONE && !p->failed)
            add_weights(p, &call, &all, picture_text(p, "attention, head %d", (int)h));
    }
    share_scale(p, first, 0);
    p->made_up |= p->values->path == NULL;
    plot_close(&call);
    return exit_code;
}

const plot_kind plot_attention = {
    .name = "attention",
    .title = "attention",
    .help = "the weights after softmax, one map per head",
    .applies = any,
    .draw = draw_attention,
};

/* ---- variants: everything seen, causal, a window ---- */

static int draw_variant(picture *p, const plot_wish *wish, const char *title)
{
    plot_call call;
    pairs all;
    int exit_code = plot_open(&call, p->values, wish);
    if (exit_code != CLI_DONE) return exit_code;
    exit_code = take_pairs(p, &call, p->values->head != PLOT_NONE ? p->values->head : 0, &all);
    if (exit_code == CLI_DONE && !p->failed) add_weights(p, &call, &all, title);
    plot_close(&call);
    return exit_code;
}

static int draw_variants(picture *p)
{
    const uint32_t reach = p->values->window != PLOT_NONE ? p->values->window : 2;
    const plot_wish all = {.masks = 1, .window = PLOT_NONE};
    const plot_wish causal = {.masks = 1, .causal = 1, .window = PLOT_NONE};
    const plot_wish window = {.masks = 1, .window = reach};
    const size_t first = p->panel_count;
    if (p->values->path != NULL)
        return cli_complain("plot", CLI_USAGE,
                            "--what variants makes its calls up; for a case: --what attention");
    int exit_code = draw_variant(p, &all, "all pairs");
    if (exit_code == CLI_DONE) exit_code = draw_variant(p, &causal, "causal: n \u2264 m");
    if (exit_code == CLI_DONE)
        exit_code =
            draw_variant(p, &window,
                         picture_text(p, "window: |m \u2212 n| \u2264 %u", (unsigned)reach));
    share_scale(p, first, 0);
    p->made_up = 1;
    return exit_code;
}

const plot_kind plot_variants = {
    .name = "variants",
    .title = "all pairs, causal, windowed",
    .help = "the weights of one head with all pairs, causal and windowed",
    .applies = any,
    .draw = draw_variants,
};

/* ---- terms ---- */

static int draw_terms(picture *p)
{
    const plot_wish wish = {0};
    const int64_t head = p->values->head != PLOT_NONE ? p->values->head : 0;
    const size_t first = p->panel_count;
    plot_call call;
    pairs all;
    int exit_code = plot_open(&call, p->values, &wish);
    if (exit_code != CLI_DONE) return exit_code;
    exit_code = take_pairs(p, &call, head, &all);
    for (size_t t = 0; t < call.info.terms && exit_code == CLI_DONE && !p->failed; t++) {
        const locus_explainer_term *term = locus_explainer_term_at(call.explainer, t);
        locus_panel *panel =
            add_map(p, &call,
                    picture_text(p, "(%c) %s: %s", (char)('a' + t), term->name, term->formula),
                    seen(&all, all.terms + t * all.count));
        panel->value_name = "term";
    }
    if (exit_code == CLI_DONE && !p->failed && call.info.terms > 1) {
        locus_panel *panel =
            add_map(p, &call, "their sum: the score before softmax", seen(&all, all.score));
        panel->value_name = "score";
    }
    share_scale(p, first, 1);
    p->made_up |= p->values->path == NULL;
    p->across = 3;
    plot_close(&call);
    return exit_code;
}

const plot_kind plot_terms = {
    .name = "terms",
    .title = "the score, term by term",
    .help = "every term of the score as a map, and their sum",
    .applies = any,
    .draw = draw_terms,
};

/* ---- TUPE's position part, with and without the [CLS] reset ---- */

static int draw_position_part(picture *p, const char *without, const char *title)
{
    const plot_wish wish = {.without = without};
    plot_call call;
    pairs all;
    int exit_code = plot_open(&call, p->values, &wish);
    if (exit_code != CLI_DONE) return exit_code;
    exit_code = take_pairs(p, &call, p->values->head != PLOT_NONE ? p->values->head : 0, &all);
    if (exit_code == CLI_DONE && !p->failed) {
        memset(all.score, 0, all.count * sizeof *all.score);
        for (size_t t = 0; t < call.info.terms; t++) {
            if (locus_explainer_term_at(call.explainer, t)->place == LOCUS_TERM_CONTENT) continue;
            for (size_t i = 0; i < all.count; i++) all.score[i] += all.terms[t * all.count + i];
        }
        add_map(p, &call, title, seen(&all, all.score))->value_name = "position part of the score";
    }
    plot_close(&call);
    return exit_code;
}

static int has_cls(const locus_scheme_info *scheme) { return plot_has_tensor(scheme, "cls"); }

static int draw_position(picture *p)
{
    const size_t first = p->panel_count;
    int exit_code;
    if (p->values->path != NULL) {
        exit_code = draw_position_part(p, NULL, "position part");
    } else {
        exit_code = draw_position_part(p, "cls", "without the [CLS] reset");
        if (exit_code == CLI_DONE) exit_code = draw_position_part(p, NULL, "with the [CLS] reset");
        if (exit_code == CLI_DONE)
            p->panels[p->panel_count - 1].note =
                "Row m = 0 holds one number, column n = 0 another.";
        p->made_up = 1;
    }
    share_scale(p, first, 1);
    return exit_code;
}

const plot_kind plot_position = {
    .name = "position",
    .title = "the position part of the score",
    .help = "position-position and bias, with and without the [CLS] reset",
    .applies = has_cls,
    .draw = draw_position,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the pair: weights, terms, TUPE's position part. Query down, key across. */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "pictures/pictures.h"

/* Everything about all pairs of one head. */
typedef struct pairs {
    size_t count;
    double *terms; /* [terms][count] */
    double *score, *weight, *lse;
    uint8_t *visible;
} pairs;

static locus_status take_pairs(locus_picture *p, const picture_call *call, int64_t head, pairs *all)
{
    const locus_explainer_info *info = &call->info;
    const size_t count = (size_t)(info->queries * info->keys);
    *all = (pairs){.count = count};
    all->terms = picture_numbers(p, count * info->terms);
    all->score = picture_numbers(p, count);
    all->weight = picture_numbers(p, count);
    all->lse = picture_numbers(p, (size_t)info->queries);
    all->visible = (uint8_t *)picture_numbers(p, count / sizeof(double) + 1);
    if (picture_failed(p)) return LOCUS_OK;
    const locus_explain_block block = {
        .size = sizeof block, .head = head, .queries = info->queries, .keys = info->keys};
    const locus_explained explained = {.size = sizeof explained,
                                       .terms = all->terms,
                                       .score = all->score,
                                       .visible = all->visible,
                                       .lse = all->lse,
                                       .weight = all->weight};
    locus_status status = locus_explain_lse(call->explainer, &block, all->lse, p->error);
    if (status == LOCUS_OK) status = locus_explain(call->explainer, &block, &explained, p->error);
    return picture_judge(p, status);
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

static locus_panel *add_map(locus_picture *p, const picture_call *call, const char *title,
                            double *values)
{
    return picture_map(p, title, values, call->info.queries, call->info.keys,
                       call->info.query_offset, picture_names(p, call));
}

/* One scale for all panels since `first`, so that they can be compared. */
static void share_scale(locus_picture *p, size_t first, int both_signs)
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

static void add_weights(locus_picture *p, const picture_call *call, const pairs *all,
                        const char *title)
{
    locus_panel *panel = add_map(p, call, title, seen(all, all->weight));
    panel->value_name = "weight a(m, n)";
}

static locus_status draw_attention(locus_picture *p)
{
    const picture_wish wish = {0};
    const int64_t only = p->values->head;
    const size_t first = p->panel_count;
    picture_call call;
    pairs all;
    locus_status status = picture_open(&call, p, &wish);
    if (status != LOCUS_OK) return status;
    const int64_t heads = call.info.heads < PICTURE_HEADS ? call.info.heads : PICTURE_HEADS;
    for (int64_t h = 0; h < call.info.heads && status == LOCUS_OK && !picture_failed(p); h++) {
        if (only >= 0 ? h != only : h >= heads) continue;
        status = take_pairs(p, &call, h, &all);
        if (status == LOCUS_OK && !picture_failed(p))
            add_weights(p, &call, &all,
                        picture_text(p,
                                     only < 0 && heads < call.info.heads
                                         ? "attention, head %d of %d"
                                         : "attention, head %d",
                                     (int)h, (int)call.info.heads));
    }
    share_scale(p, first, 0);
    p->made_up |= p->loaded == NULL;
    picture_close(&call);
    return status;
}

const picture_kind picture_attention = {
    .about.name = "attention",
    .about.title = "attention",
    .about.help = "the weights after softmax, one map per head",
    .applies = any,
    .draw = draw_attention,
};

/* ---- variants: everything seen, causal, a window ---- */

static locus_status draw_variant(locus_picture *p, const picture_wish *wish, const char *title)
{
    picture_call call;
    pairs all;
    locus_status status = picture_open(&call, p, wish);
    if (status != LOCUS_OK) return status;
    status = take_pairs(p, &call, p->values->head >= 0 ? p->values->head : 0, &all);
    if (status == LOCUS_OK && !picture_failed(p)) add_weights(p, &call, &all, title);
    picture_close(&call);
    return status;
}

static locus_status draw_variants(locus_picture *p)
{
    const int64_t reach = p->values->window >= 0 ? p->values->window : 2;
    const picture_wish all = {.masks = 1, .window = -1};
    const picture_wish causal = {.masks = 1, .causal = 1, .window = -1};
    const picture_wish window = {.masks = 1, .window = reach};
    const size_t first = p->panel_count;
    if (p->loaded != NULL)
        return locus_fail(p->error, LOCUS_ERR_ARGUMENT,
                          "what: variants makes its calls up; for a case: attention");
    locus_status status = draw_variant(p, &all, "all pairs");
    if (status == LOCUS_OK) status = draw_variant(p, &causal, "causal: n \u2264 m");
    if (status == LOCUS_OK)
        status =
            draw_variant(p, &window, picture_text(p, "window: |m \u2212 n| \u2264 %d", (int)reach));
    share_scale(p, first, 0);
    p->made_up = 1;
    return status;
}

const picture_kind picture_variants = {
    .about.name = "variants",
    .about.title = "all pairs, causal, windowed",
    .about.help = "the weights of one head with all pairs, causal and windowed",
    .applies = any,
    .draw = draw_variants,
};

/* ---- terms ---- */

static locus_status draw_terms(locus_picture *p)
{
    const picture_wish wish = {0};
    const int64_t head = p->values->head >= 0 ? p->values->head : 0;
    const size_t first = p->panel_count;
    picture_call call;
    pairs all;
    locus_status status = picture_open(&call, p, &wish);
    if (status != LOCUS_OK) return status;
    status = take_pairs(p, &call, head, &all);
    for (size_t t = 0; t < call.info.terms && status == LOCUS_OK && !picture_failed(p); t++) {
        const locus_explainer_term *term = locus_explainer_term_at(call.explainer, t);
        locus_panel *panel =
            add_map(p, &call, picture_text(p, "(%c) %s", (char)('a' + t), term->name),
                    seen(&all, all.terms + t * all.count));
        panel->note = term->formula;
        panel->value_name = "term";
    }
    if (status == LOCUS_OK && !picture_failed(p) && call.info.terms > 1) {
        locus_panel *panel = add_map(p, &call, "their sum", seen(&all, all.score));
        panel->value_name = "score";
        panel->note = "what softmax sees";
    }
    share_scale(p, first, 1);
    p->made_up |= p->loaded == NULL;
    p->across = 3;
    picture_close(&call);
    return status;
}

const picture_kind picture_terms = {
    .about.name = "terms",
    .about.title = "the score, term by term",
    .about.help = "every term of the score as a map, and their sum",
    .applies = any,
    .draw = draw_terms,
};

/* ---- TUPE's position part, with and without the [CLS] reset ---- */

static locus_status draw_position_part(locus_picture *p, const char *without, const char *title)
{
    const picture_wish wish = {.without = without};
    picture_call call;
    pairs all;
    locus_status status = picture_open(&call, p, &wish);
    if (status != LOCUS_OK) return status;
    status = take_pairs(p, &call, p->values->head >= 0 ? p->values->head : 0, &all);
    if (status == LOCUS_OK && !picture_failed(p)) {
        memset(all.score, 0, all.count * sizeof *all.score);
        for (size_t t = 0; t < call.info.terms; t++) {
            if (locus_explainer_term_at(call.explainer, t)->place == LOCUS_TERM_CONTENT) continue;
            for (size_t i = 0; i < all.count; i++) all.score[i] += all.terms[t * all.count + i];
        }
        add_map(p, &call, title, seen(&all, all.score))->value_name = "position part of the score";
    }
    picture_close(&call);
    return status;
}

static int has_cls(const locus_scheme_info *scheme) { return picture_has_tensor(scheme, "cls"); }

static locus_status draw_position(locus_picture *p)
{
    const size_t first = p->panel_count;
    locus_status status;
    if (p->loaded != NULL) {
        status = draw_position_part(p, NULL, "position part");
    } else {
        status = draw_position_part(p, "cls", "without the [CLS] reset");
        if (status == LOCUS_OK) status = draw_position_part(p, NULL, "with the [CLS] reset");
        if (status == LOCUS_OK && !picture_failed(p))
            p->panels[p->panel_count - 1].note =
                "Row m = 0 holds one number, column n = 0 another.";
        p->made_up = 1;
    }
    share_scale(p, first, 1);
    return status;
}

const picture_kind picture_position = {
    .about.name = "position",
    .about.title = "the position part of the score",
    .about.help = "position-position and bias, with and without the [CLS] reset",
    .applies = has_cls,
    .draw = draw_position,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* locus explain: views as pictures. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locus/picture.h>

#include "explain.h"

enum { MOST_BARS = 64, CAPTION = 256 }; /* beyond them bars become curves */

static int write_figure(const explain_call *call, const locus_figure *figure)
{
    return cli_write_figure("explain", figure, LOCUS_FORMAT_SVG, NULL, call->values->output);
}

static char *caption_of(const explain_call *call, char *caption)
{
    const explain_values *v = call->values;
    const locus_explain_block block = explain_block_of(call);
    if (call->model.model != NULL) {
        snprintf(caption, CAPTION,
                 "%s%s, layer %u of %" PRId64 ", head %" PRId64 " of %" PRId64 ", c = %.6g",
                 call->model.info.family, model_stack_note(&call->model), v->layer,
                 call->model.info.layers, block.head, call->info.heads, call->info.scale);
        return caption;
    }
    const int used =
        snprintf(caption, CAPTION, "batch %" PRId64 ", head %" PRId64 " of %" PRId64 ", c = %.6g",
                 block.batch, block.head, call->info.heads, call->info.scale);
    if (v->path == NULL)
        snprintf(caption + used, CAPTION - (size_t)used, ", weights of seed %u", (unsigned)v->seed);
    return caption;
}

/* ---- one query, or one pair ---- */

/* Hidden keys are gaps. */
static double *shown_terms(const explain_call *call, const explain_row *row)
{
    const int64_t count = (int64_t)call->info.terms * row->keys;
    double *shown = malloc((size_t)(count + row->keys) * sizeof *shown);
    for (int64_t at = 0; shown != NULL && at < count + row->keys; at++) {
        const double value = at < count ? row->terms[at] : row->weight[at - count];
        shown[at] = row->visible[at % row->keys] ? value : NAN;
    }
    return shown;
}

int explain_draw_row(const explain_call *call, const explain_row *row)
{
    char title[128], caption[CAPTION];
    const int many = row->keys > MOST_BARS;
    const char *const *names = explain_keys_shown(call), *const *asking =
                                                             explain_queries_shown(call);
    const locus_axis keys = {.label = "key n",
                             .names = names != NULL && !many ? names + row->first : NULL,
                             .first = (double)row->first};
    locus_series series[EXPLAIN_TERMS], weight = {.size = sizeof weight, .name = "weight"};
    double *shown = shown_terms(call, row);
    if (shown == NULL) return cli_complain("explain", CLI_RESOURCES, "out of memory");
    for (size_t t = 0; t < call->info.terms; t++)
        series[t] = (locus_series){.size = sizeof(locus_series),
                                   .name = call->terms[t]->name,
                                   .y = shown + (int64_t)t * row->keys,
                                   .count = (size_t)row->keys,
                                   .ink = explain_ink(call, t)};
    weight.y = shown + (int64_t)call->info.terms * row->keys;
    weight.count = (size_t)row->keys;
    const locus_panel panels[] = {
        {.size = sizeof *panels,
         .kind = many ? LOCUS_PANEL_LINES : LOCUS_PANEL_STACK,
         .title = "terms of the score",
         .x = keys,
         .y = {.label = "logit"},
         .series = series,
         .series_count = call->info.terms},
        {.size = sizeof *panels,
         .kind = many ? LOCUS_PANEL_LINES : LOCUS_PANEL_BARS,
         .title = "attention",
         .x = keys,
         .y = {.label = "weight"},
         .series = &weight,
         .series_count = 1},
    };
    snprintf(title, sizeof title, "%s: query %" PRId64 "%s%.40s", call->config->scheme, row->query,
             asking != NULL ? ", " : "", asking != NULL ? asking[row->query] : "");
    const locus_figure figure = {
        .size = sizeof figure,
        .title = title,
        .description = "For each key, the terms that add up to its score, and below the "
                       "attention weight that the score gets. Keys that the query "
                       "does not see are left out.",
        .caption = caption_of(call, caption),
        .panels = panels,
        .panel_count = 2,
        .columns = 1};
    const int exit_code = write_figure(call, &figure);
    free(shown);
    return exit_code;
}

/* ---- all pairs ---- */

/* The largest finite |value| of a stretch of kinds: one scale for all of them, so that what
 * looks strong is strong. */
static double largest_cell(const explain_summary *s, size_t first, size_t kinds)
{
    const int64_t cells = s->rows * s->columns;
    double largest = 0.0;
    for (int64_t at = (int64_t)first * cells; at < (int64_t)(first + kinds) * cells; at++)
        if (isfinite(s->cells[at])) largest = fmax(largest, fabs(s->cells[at]));
    return largest;
}

/* 1: the score of a model's head is its only term, and one picture is enough for both. */
static int one_term(const explain_call *call)
{
    return call->model.model != NULL && call->info.terms == 1;
}

static locus_panel heatmap(const explain_call *call, const explain_summary *s, size_t kind,
                           double low, double high)
{
    const locus_explainer_info *info = &call->info;
    const int small = info->queries == s->rows && info->keys == s->columns &&
                      s->columns <= MOST_BARS && s->rows <= MOST_BARS &&
                      (explain_across(call) || info->queries == info->keys);
    const locus_panel panel = {
        .size = sizeof panel,
        .kind = LOCUS_PANEL_HEATMAP,
        .title = kind < info->terms    ? call->terms[kind]->name
                 : kind == info->terms ? "score"
                                       : "weight",
        .note = kind < info->terms ? call->terms[kind]->formula
                : kind == info->terms
                    ? (one_term(call) ? call->terms[0]->formula : "the sum of the terms")
                    : "softmax of the scores",
        .x = {.label = explain_across(call) ? "token of the encoder n" : "key n",
              .names = small ? explain_keys_shown(call) : NULL,
              .step = (double)info->keys / (double)s->columns},
        .y = {.label = explain_across(call) ? "token of the decoder m" : "query m",
              .names = small ? explain_queries_shown(call) : NULL,
              .first = (double)info->query_offset,
              .step = (double)info->queries / (double)s->rows},
        .values = s->cells + (int64_t)kind * s->rows * s->columns,
        .rows = (size_t)s->rows,
        .columns = (size_t)s->columns,
        .colours = low < 0.0 ? LOCUS_COLOURS_DIVERGING : LOCUS_COLOURS_SEQUENTIAL,
        .low = low,
        .high = high,
        .cells = LOCUS_CELLS_NEVER,
    };
    return panel;
}

/* "all-MiniLM-L6-v2, layer 3, head 5", or the scheme of a call that is no model's. */
static void title_of(const explain_call *call, char *title, size_t room)
{
    const explain_values *v = call->values;
    if (call->model.model == NULL) {
        snprintf(title, room, "%s: the terms of the score", call->config->scheme);
        return;
    }
    size_t end = strlen(v->path), begin;
    while (end > 1 && v->path[end - 1] == '/') end--;
    for (begin = end; begin > 0 && v->path[begin - 1] != '/';) begin--;
    snprintf(title, room, "%.*s,%s layer %u, head %" PRId64 ": %s",
             (int)(end - begin < 80 ? end - begin : 80), v->path + begin,
             model_stack_note(&call->model), v->layer, explain_block_of(call).head,
             one_term(call) ? "scores and weights" : "the terms of the score");
}

void explain_picture_summary(explain_picture *p, const explain_call *call, const explain_summary *s)
{
    const double most = largest_cell(s, 0, s->kinds - 1);
    const size_t weight = s->kinds - 1;
    size_t count = 0;
    for (size_t kind = one_term(call) ? 1 : 0; kind < weight; kind++)
        p->panels[count++] = heatmap(call, s, kind, -most, most);
    p->panels[count++] = heatmap(call, s, weight, 0.0, largest_cell(s, weight, 1));
    title_of(call, p->title, sizeof p->title);
    p->figure = (locus_figure){
        .size = sizeof p->figure,
        .title = p->title,
        .description = "Heatmaps over queries and keys: one for each term of the score, then the "
                       "score, then the attention weights.",
        .caption = caption_of(call, p->caption),
        .panels = p->panels,
        .panel_count = count,
    };
}

int explain_draw_summary(const explain_call *call, const explain_summary *s)
{
    explain_picture picture;
    explain_picture_summary(&picture, call, s);
    return write_figure(call, &picture.figure);
}

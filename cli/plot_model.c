/* SPDX-License-Identifier: Apache-2.0 */
/* locus plot MODEL: what position does in a trained model. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <locus/picture.h>

#include "explain.h"
#include "plot.h"
#include "text.h"

enum {
    MOST_MODEL_TOKENS = 512, /* of the text of a picture                        */
    BIAS_REACH = 64,         /* distances of a bias, both ways                  */
    BIAS_CURVES = 8,         /* heads of which curves are drawn beside the map  */
    NAME = 96,
};

static const char built_in[] = "The keys to the cabinet are on the table.";

static const char *text_of(const plot_values *v) { return v->text != NULL ? v->text : built_in; }

static int no_memory(void) { return cli_complain("plot", CLI_RESOURCES, "out of memory"); }

/* The last part of a path. */
static void name_of(char *name, const char *path)
{
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/') end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';) begin--;
    snprintf(name, NAME, "%.*s", (int)(end - begin), path + begin);
}

static int only_one_term(const model_call *model, const char *what)
{
    if (model->stack == LOCUS_MODEL_CROSS)
        return cli_complain("plot", CLI_REFUSED,
                            "%s: --what %s: the scores of a decoder that asks its encoder have one "
                            "term, content; --what terms shows it",
                            model->folder, what);
    return cli_complain("plot", CLI_REFUSED,
                        "%s: --what %s: its scores have one term: positions (%s) act before "
                        "the product, in the input or by turning q and k",
                        model->folder, what, model->info.positions);
}

/* ---- share ---- */

static locus_panel share_panel(const model_shares *s, size_t term, double most)
{
    return (locus_panel){
        .size = sizeof(locus_panel),
        .kind = LOCUS_PANEL_HEATMAP,
        .title = s->term[term].name,
        .note = s->term[term].formula,
        .x = {.label = "head"},
        .y = {.label = "layer"},
        .values = s->share + (int64_t)term * s->layers * s->heads,
        .rows = (size_t)s->layers,
        .columns = (size_t)s->heads,
        .colours = LOCUS_COLOURS_DIVERGING,
        .low = -most,
        .high = most,
        .value_name = "share",
        .value_unit = "%",
        .whole = 1,
    };
}

static int draw_shares(const plot_values *v, const model_call *model, model_shares *s)
{
    char name[NAME], title[2 * NAME], caption[512];
    locus_panel panels[EXPLAIN_TERMS];
    const int64_t count = (int64_t)s->terms * s->layers * s->heads;
    double most = 100.0;
    for (int64_t i = 0; i < count; i++) {
        s->share[i] = round(100.0 * s->share[i]);
        if (isfinite(s->share[i])) most = fmax(most, fabs(s->share[i]));
    }
    for (size_t t = 0; t < s->terms; t++) panels[t] = share_panel(s, t, most);
    name_of(name, v->scheme);
    snprintf(title, sizeof title, "%s%s: what its heads look by", name, model_stack_note(model));
    snprintf(caption, sizeof caption,
             "Share of each term in what the scores vary by along the keys of a query, in percent, "
             "on \"%.120s\" (%" PRId64 " tokens): sum cov(term, score) / sum var(score). The terms "
             "of a head add up to 100; below 0 a term works against the others.",
             text_of(v), model->tokens);
    const locus_figure figure = {
        .size = sizeof figure,
        .title = title,
        .description = "One heatmap per term of the score, layers down, heads across: how much "
                       "of the variation of the scores the term makes.",
        .caption = caption,
        .panels = panels,
        .panel_count = s->terms,
        .columns = (uint32_t)s->terms,
    };
    return plot_write(v, &figure);
}

static int plot_share(const plot_values *v)
{
    model_call model;
    model_shares shares;
    const model_choice choice = {.command = "plot",
                                 .folder = v->scheme,
                                 .text = text_of(v),
                                 .tokenizer = v->tokenizer,
                                 .stack = v->stack,
                                 .decoder_ids = v->decoder_ids,
                                 .most = MOST_MODEL_TOKENS};
    int exit_code = model_call_open(&model, &choice);
    if (exit_code != CLI_DONE) return exit_code;
    exit_code = model_shares_new(&shares, &model);
    if (exit_code == CLI_DONE) {
        exit_code =
            shares.terms > 1 ? draw_shares(v, &model, &shares) : only_one_term(&model, "share");
        model_shares_free(&shares);
    }
    model_call_close(&model);
    return exit_code;
}

/* ---- terms ---- */

static int draw_terms(const plot_values *v, const explain_call *call)
{
    explain_summary summary;
    explain_picture picture;
    locus_error error = {""};
    const locus_status status = explain_summary_new(&summary, call, &error);
    if (status != LOCUS_OK) return cli_report("plot", status, v->scheme, &error);
    explain_picture_summary(&picture, call, &summary);
    const int exit_code = plot_write(v, &picture.figure);
    explain_summary_free(&summary);
    return exit_code;
}

static int plot_terms(const plot_values *v)
{
    explain_call call;
    const explain_values values = {.command = "plot",
                                   .path = v->scheme,
                                   .text = text_of(v),
                                   .layer = v->layer != PLOT_NONE ? v->layer : 0,
                                   .stack = v->stack,
                                   .decoder_ids = v->decoder_ids,
                                   .head = v->head,
                                   .batch = EXPLAIN_NONE,
                                   .query = EXPLAIN_NONE,
                                   .key = EXPLAIN_NONE};
    int exit_code = explain_open(&call, &values);
    if (exit_code != CLI_DONE) return exit_code;
    exit_code = explain_split(&call);
    if (exit_code == CLI_DONE) exit_code = draw_terms(v, &call);
    explain_close(&call);
    return exit_code;
}

/* ---- bias ---- */

typedef struct bias_map {
    const plot_values *values;
    locus_model *model;
    uint32_t stack;
    locus_model_info info;
    int64_t reach, tables; /* distances -reach .. reach; panels */
    int64_t first, width;  /* distances that are shown: `width` of them from `first` on */
    float *zeros;          /* q, k and v of reach + 1 tokens */
    float **qkv;           /* [layers], each of them those */
    double *row;           /* [terms][reach + 1] */
    double *bias;          /* [tables][heads][2 reach + 1] */
} bias_map;

static double *bias_of(const bias_map *b, int64_t table, int64_t head)
{
    return b->bias + (table * b->info.heads + head) * b->width;
}

/* A decoder sees nothing behind a token: its rows begin at distance 0. */
static void leave_out_hidden(bias_map *b)
{
    const int64_t rows = b->tables * b->info.heads, kept = b->reach + 1;
    for (int64_t i = 0; i < rows * b->width; i++)
        if (i % b->width < b->reach && !isnan(b->bias[i])) return;
    for (int64_t r = 0; r < rows; r++)
        memmove(b->bias + r * kept, b->bias + r * b->width + b->reach,
                (size_t)kept * sizeof *b->bias);
    b->first = 0;
    b->width = kept;
}

/* The term "bias"; SIZE_MAX: there is none. */
static size_t bias_term(const explain_call *call)
{
    for (size_t t = 0; t < call->info.terms; t++)
        if (strcmp(call->terms[t]->name, "bias") == 0) return t;
    return SIZE_MAX;
}

/* The bias of one head: the last query sees the distances from 0 up, the first one those below. */
static int read_head(const bias_map *b, const explain_call *call, size_t term, int64_t table,
                     int64_t head)
{
    double *to = bias_of(b, table, head) + b->reach;
    uint8_t visible[LOCUS_PICTURE_LENGTH + 1];
    for (int64_t side = 0; side < 2; side++) {
        const locus_explain_block block = {.size = sizeof block,
                                           .head = head,
                                           .query = side == 0 ? 0 : b->reach,
                                           .queries = 1,
                                           .keys = b->reach + 1};
        const locus_explained into = {.size = sizeof into, .terms = b->row, .visible = visible};
        locus_error error = {""};
        const locus_status status = locus_explain(call->explainer, &block, &into, &error);
        if (status != LOCUS_OK) return cli_report("plot", status, b->values->scheme, &error);
        for (int64_t n = 0; n <= b->reach; n++)
            to[block.query - n] =
                visible[n] ? b->row[(int64_t)term * (b->reach + 1) + n] : (double)NAN;
    }
    return CLI_DONE;
}

/* As if a text had been run. */
static model_call bias_call(const bias_map *b)
{
    return (model_call){.command = "plot",
                        .folder = b->values->scheme,
                        .model = b->model,
                        .stack = b->stack,
                        .info = b->info,
                        .tokens = b->reach + 1,
                        .q = b->qkv};
}

static int read_layer(const bias_map *b, int64_t layer)
{
    explain_call call;
    const explain_values values = {.layer = (uint32_t)layer,
                                   .head = EXPLAIN_NONE,
                                   .batch = EXPLAIN_NONE,
                                   .query = EXPLAIN_NONE,
                                   .key = EXPLAIN_NONE};
    const model_call model = bias_call(b);
    int exit_code = explain_open_layer(&call, &values, &model);
    if (exit_code != CLI_DONE) return exit_code;
    const size_t term = bias_term(&call);
    if (term == SIZE_MAX)
        exit_code = cli_complain("plot", CLI_REFUSED,
                                 "%s: --what bias: the scores of this model (%s) have no bias; "
                                 "--what share and --what terms show what they have",
                                 b->values->scheme, b->info.scheme);
    for (int64_t head = 0; exit_code == CLI_DONE && head < b->info.heads; head++)
        exit_code = read_head(b, &call, term, b->tables > 1 ? layer : 0, head);
    explain_close(&call);
    return exit_code;
}

/* Every head of table `t`, a row each. */
static locus_panel bias_heatmap(const bias_map *b, int64_t t, const char *title)
{
    return (locus_panel){.size = sizeof(locus_panel),
                         .kind = LOCUS_PANEL_HEATMAP,
                         .title = title,
                         .x = {.label = "distance m - n", .first = (double)b->first},
                         .y = {.label = "head"},
                         .aspect = 0.4,
                         .values = bias_of(b, t, 0),
                         .rows = (size_t)b->info.heads,
                         .columns = (size_t)b->width,
                         .colours = LOCUS_COLOURS_DIVERGING,
                         .value_name = "bias",
                         .cells = LOCUS_CELLS_NEVER};
}

/* The same of a model's only table as curves; `x` is the axis of its heatmap. */
typedef struct bias_curves {
    locus_series series[BIAS_CURVES];
    char names[BIAS_CURVES][16];
} bias_curves;

static locus_panel bias_lines(const bias_map *b, const locus_axis *x, bias_curves *curves)
{
    const int64_t shown = b->info.heads < BIAS_CURVES ? b->info.heads : BIAS_CURVES;
    for (int64_t h = 0; h < shown; h++) {
        snprintf(curves->names[h], sizeof curves->names[h], "head %" PRId64, h);
        curves->series[h] = (locus_series){.size = sizeof *curves->series,
                                           .steps = 1,
                                           .name = curves->names[h],
                                           .y = bias_of(b, 0, h),
                                           .count = (size_t)b->width};
    }
    return (locus_panel){.size = sizeof(locus_panel),
                         .kind = LOCUS_PANEL_LINES,
                         .title =
                             shown < b->info.heads ? "the first eight heads" : "the same as curves",
                         .x = *x,
                         .y = {.label = "added to the logit"},
                         .aspect = 0.4,
                         .series = curves->series,
                         .series_count = (size_t)shown};
}

/* Draw panels that have room for every table and one more, with room for their titles. */
static int draw_panels(const bias_map *b, locus_panel *panels, char (*titles)[NAME])
{
    char name[NAME], title[2 * NAME];
    bias_curves curves;
    size_t count = 0;
    for (int64_t t = 0; t < b->tables; t++) {
        snprintf(titles[t], NAME, b->tables > 1 ? "layer %" PRId64 : "every head, in all layers",
                 t);
        panels[count++] = bias_heatmap(b, t, titles[t]);
    }
    if (b->tables == 1) panels[count++] = bias_lines(b, &panels[0].x, &curves);
    name_of(name, b->values->scheme);
    const model_call model = bias_call(b);
    snprintf(title, sizeof title, "%s%s: its learned bias by distance", name,
             model_stack_note(&model));
    const locus_figure figure = {
        .size = sizeof figure,
        .title = title,
        .description = b->first < 0
                           ? "What is added to the score of every pair at a distance: one row per "
                             "head, keys after the query on the left, before it on the right."
                           : "What is added to the score of every pair at a distance: one row per "
                             "head, near keys on the left, far ones on the right.",
        .caption = b->first < 0
                       ? "Left of 0: keys after the query; right: before it. Added before softmax: "
                         "-1 makes a key 2.7 times less likely."
                       : "How far before the query a key is. Added before softmax: -1 makes a key "
                         "2.7 times less likely.",
        .panels = panels,
        .panel_count = count,
        .columns = b->tables > 1 ? 2 : 1,
    };
    return plot_write(b->values, &figure);
}

static int draw_bias(const bias_map *b)
{
    char(*titles)[NAME] = calloc((size_t)b->tables, sizeof *titles);
    locus_panel *panels = calloc((size_t)b->tables + 1, sizeof *panels);
    const int exit_code =
        panels == NULL || titles == NULL ? no_memory() : draw_panels(b, panels, titles);
    free(panels);
    free(titles);
    return exit_code;
}

static int make_bias(bias_map *b)
{
    const size_t tokens = (size_t)b->reach + 1;
    const int64_t layers = b->info.layers;
    b->tables = b->info.bias_each_layer ? layers : 1;
    b->first = -b->reach;
    b->width = 2 * b->reach + 1;
    b->zeros = calloc(tokens * (size_t)b->info.qkv_width, sizeof *b->zeros);
    b->qkv = calloc((size_t)layers + 1, sizeof *b->qkv);
    b->row = calloc(tokens * EXPLAIN_TERMS, sizeof *b->row);
    b->bias = calloc((size_t)(b->tables * b->info.heads) * 2 * tokens, sizeof *b->bias);
    if (b->zeros == NULL || b->qkv == NULL || b->row == NULL || b->bias == NULL) return no_memory();
    for (int64_t l = 0; l < layers; l++) b->qkv[l] = b->zeros;
    int exit_code = CLI_DONE;
    for (int64_t l = 0; exit_code == CLI_DONE && l < b->tables; l++) exit_code = read_layer(b, l);
    if (exit_code != CLI_DONE) return exit_code;
    leave_out_hidden(b);
    return draw_bias(b);
}

static int plot_bias(const plot_values *v)
{
    bias_map b = {.values = v,
                  .info = {.size = sizeof b.info},
                  .reach = v->length > 0 ? v->length : BIAS_REACH};
    int exit_code = model_stack_read("plot", v->stack, &b.stack);
    if (exit_code != CLI_DONE) return exit_code;
    if (b.stack == LOCUS_MODEL_CROSS)
        return only_one_term(&(model_call){.folder = v->scheme, .stack = b.stack}, "bias");
    exit_code = model_stack_describe("plot", v->scheme, &b.model, b.stack, &b.info);
    if (exit_code == CLI_DONE) exit_code = make_bias(&b);
    free(b.zeros);
    free(b.qkv);
    free(b.row);
    free(b.bias);
    locus_model_free(b.model);
    return exit_code;
}

/* ---- which ---- */

int plot_model(const plot_values *v)
{
    char quoted[160];
    const char *what = v->what != NULL ? v->what : "share";
    if (v->tokens != NULL || v->path != NULL || v->heads > 0 || v->dim > 0 || v->causal ||
        v->window != PLOT_NONE || v->options.count > 0)
        return cli_complain("plot", CLI_USAGE,
                            "a MODEL brings its scheme and tensors: --what, --text, --layer, "
                            "--head, --stack and --decoder-ids are what it takes");
    if (strcmp(what, "share") == 0) return plot_share(v);
    if (strcmp(what, "terms") == 0) return plot_terms(v);
    if (strcmp(what, "bias") == 0) return plot_bias(v);
    return cli_complain("plot", CLI_USAGE,
                        "--what: expected bias, terms or share of a MODEL, got \"%s\"",
                        text_quote(quoted, sizeof quoted, what));
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

/* locus explain, file by file:
 *     cmd_explain.c      options, and which of the three views is meant
 *     explain_call.c     the call: a case file, a layer of a trained model, or seeded weights
 *     explain_bands.c    a rotation in bands of frequency
 *     explain_view.c     its numbers: the pairs of one query
 *     explain_summary.c  or of all, summed up
 *     explain_print.c    the views as tables
 *     explain_data.c     the views as JSON and CSV
 *     explain_figure.c   the views as pictures
 *     explain_page.c     the position switch on them, as a page
 *     model_shares.c     the terms of every head of a model, and explain_shares.c: as a table */

#include "cli.h"
#include "model_call.h"
#include "tokens.h"
#include <locus/locus.h>
#include <locus/problem.h>

enum {
    EXPLAIN_TOKENS = 16384, /* at most: all pairs are looked at, 2.7e8 of them        */
    EXPLAIN_TERMS = 16,     /* more than any score has                                */
    EXPLAIN_CELLS = 96,     /* rows and columns of a heatmap at most                  */
};
#define EXPLAIN_NONE UINT32_MAX /* a number that was not given */

typedef struct explain_values {
    const char *command; /* for messages; NULL: explain */
    const char *path;    /* a case or the folder of a model, or: */
    const char *scheme, *tokens, *text;
    uint32_t layer;                  /* of a model, */
    const char *tokenizer;           /* of the model, where it is not in its folder  */
    const char *stack, *decoder_ids; /* and which of its attentions on what */
    uint32_t length, seed;
    cli_pairs options;
    int causal;
    uint32_t batch, head, query, key;
    const char *output;
    int json, csv;
} explain_values;

/* ---- the call ---- */

/* Pairs of channels that turn about as fast. */
enum { EXPLAIN_BANDS = 5 };
typedef struct explain_band {
    locus_explainer_term term;
    uint32_t ink;
    locus_explainer *explainer;
    locus_tensors in; /* those of the call, but for its */
    float *q;         /* with zeros in all other channels */
} explain_band;

typedef struct explain_call {
    const explain_values *values;
    locus_case *loaded;     /* the one, or       */
    locus_problem *problem; /* the other, or     */
    model_call model;       /* a layer of this: model.model is not NULL */
    locus_config layer_config;
    locus_tensors layer_in;
    float *layer_room; /* tables of its distances, or NULL */
    uint32_t level;
    const locus_config *config;
    const locus_tensors *in;
    token_list tokens;               /* [keys]; names NULL: rows have numbers, no words */
    token_list shown;                /* the same in pictures, where it differs */
    token_list asking, asking_shown; /* [queries] where these are others than the keys */
    locus_explainer *explainer;
    locus_explainer_info info;
    const locus_explainer_term *terms[EXPLAIN_TERMS];
    size_t bands; /* that the first term was split into; 0: none */
    explain_band band[EXPLAIN_BANDS];
} explain_call;

/* Words of the queries and of the keys, for tables and for pictures; NULL: they have none. */
const char *const *explain_queries(const explain_call *call);
const char *const *explain_queries_shown(const explain_call *call);
const char *const *explain_keys_shown(const explain_call *call);

/* 1: queries and keys are of two texts, so that no distance lies between them. */
int explain_across(const explain_call *call);

/* An exit code; on failure there is nothing to close. */
int explain_open(explain_call *call, const explain_values *values);
void explain_close(explain_call *call);

/* The same for layer values->layer of a model that was run and stays the caller's. */
int explain_open_layer(explain_call *call, const explain_values *values, const model_call *model);

/* Split a rotation, the only place of position in most models of today, into bands of frequency, whose sum it is exactly. An
 * exit code; a call without one stays as it is. */
int explain_split(explain_call *call);
void explain_split_close(explain_call *call);

/* The colour of a term in pictures. */
uint32_t explain_ink(const explain_call *call, size_t term);

/* ---- numbers ---- */

/* locus_explain with the terms of the call. `into` has terms. */
LOCUS_MUST_CHECK locus_status explain_numbers(const explain_call *call,
                                              const locus_explain_block *block,
                                              const locus_explained *into, locus_error *error);

/* The batch entry and head that are meant, and no pairs yet. */
locus_explain_block explain_block_of(const explain_call *call);

/* Query row `query` and some of its keys. */
typedef struct explain_row {
    int64_t query, first, keys; /* keys [first, first + keys)  */
    double lse;
    double *terms;    /* [terms][keys]  */
    double *score;    /* [keys]         */
    double *weight;   /* [keys]         */
    uint8_t *visible; /* [keys]         */
} explain_row;

LOCUS_MUST_CHECK locus_status explain_row_new(explain_row *row, const explain_call *call,
                                              int64_t query, int64_t first, int64_t keys,
                                              locus_error *error);
void explain_row_free(explain_row *row);

/* Every query and key of one head, streamed by strips of rows. Sums are kept for the terms, then the
 * score (index info.terms), then the weight (info.terms + 1). */
typedef struct explain_summary {
    size_t kinds;  /* terms + 2                                                          */
    int64_t pairs; /* that are visible                                                   */
    double mean[EXPLAIN_TERMS], mean_abs[EXPLAIN_TERMS]; /* of each kind                 */
    double share[EXPLAIN_TERMS]; /* of each term in what the score varies by along the keys
                                    of a row: sum cov(term, score) / sum var(score)      */
    int64_t least, distances;    /* m - n from `least` on                                */
    int64_t *count;              /* [distances]         visible pairs                    */
    double *by_distance;         /* [kinds][distances]  means; NaN where there is no pair */
    int64_t rows, columns;       /* of the heatmaps, at most EXPLAIN_CELLS each          */
    int64_t *cell_count;         /* [rows][columns]                                      */
    double *cells;               /* [kinds][rows][columns]  means; NaN: no visible pair  */
} explain_summary;

LOCUS_MUST_CHECK locus_status explain_summary_new(explain_summary *summary,
                                                  const explain_call *call, locus_error *error);
void explain_summary_free(explain_summary *summary);

/* ---- how they are shown ---- */

void explain_print_pair(const explain_call *call, const explain_row *row);
void explain_print_row(const explain_call *call, const explain_row *row);
void explain_print_summary(const explain_call *call, const explain_summary *summary);

void explain_json_row(const explain_call *call, const explain_row *row);
void explain_json_summary(const explain_call *call, const explain_summary *summary);
void explain_csv_row(const explain_call *call, const explain_row *row);
void explain_csv_summary(const explain_call *call, const explain_summary *summary);

/* A picture of all pairs; lives as long as the call and the summary. */
typedef struct explain_picture {
    locus_panel panels[EXPLAIN_TERMS];
    char title[256], caption[256];
    locus_figure figure;
} explain_picture;
void explain_picture_summary(explain_picture *picture, const explain_call *call,
                             const explain_summary *summary);

/* Into values->output; exit codes. */
int explain_draw_row(const explain_call *call, const explain_row *row);
int explain_draw_summary(const explain_call *call, const explain_summary *summary);

/* -o page.html: the position switch on the heads of a call; of a model without a layer, on all of them. */
int explain_page(const explain_values *values);

/* ---- every head of a model ---- */

/* What each term contributes to what the scores vary by, head by head: explain_summary.share. */
typedef struct model_shares {
    size_t terms;
    locus_explainer_term term[EXPLAIN_TERMS];
    int64_t layers, heads;
    double *share; /* [terms][layers][heads]; NaN: the scores of the head do not vary */
} model_shares;

/* An exit code; on failure there is nothing to free. */
int model_shares_new(model_shares *shares, const model_call *model);
void model_shares_free(model_shares *shares);

/* locus explain MODEL --text TEXT, without a layer. */
int explain_shares(const explain_values *values);

#endif

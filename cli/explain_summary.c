/* SPDX-License-Identifier: Apache-2.0 */
/* locus explain: all pairs of a head, a strip of query rows at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"

enum { STRIP = 16 }; /* rows: enough to keep threads busy */

typedef struct strip {
    explain_summary *into;
    int64_t keys, rows;
    double *values;   /* [kinds][rows][keys]                        */
    uint8_t *visible; /* [rows][keys]                               */
    int64_t *column;  /* [keys]  of the heatmaps                    */
    int64_t row;      /* the row at work, and for it:               */
    int64_t distance; /* index of its distance from key 0           */
    int64_t line;     /* index of the first cell of its line        */
} strip;

static int strip_new(strip *t, explain_summary *s, const explain_call *call)
{
    const size_t keys = (size_t)call->info.keys;
    *t = (strip){.into = s, .keys = call->info.keys};
    t->values = calloc(s->kinds * STRIP * keys, sizeof *t->values);
    t->visible = calloc(STRIP * keys, sizeof *t->visible);
    t->column = calloc(keys, sizeof *t->column);
    if (t->values == NULL || t->visible == NULL || t->column == NULL) return 0;
    for (int64_t n = 0; n < t->keys; n++) t->column[n] = n * s->columns / t->keys;
    return 1;
}

static void strip_free(strip *t)
{
    free(t->values);
    free(t->visible);
    free(t->column);
}

static const double *row_of(const strip *t, size_t kind)
{
    return t->values + ((int64_t)kind * t->rows + t->row) * t->keys;
}

static void count_row(const strip *t)
{
    explain_summary *s = t->into;
    const uint8_t *visible = t->visible + t->row * t->keys;
    for (int64_t n = 0; n < t->keys; n++) {
        s->pairs += visible[n];
        s->count[t->distance - n] += visible[n];
        s->cell_count[t->line + t->column[n]] += visible[n];
    }
}

/* The mean score of the keys that the row sees. */
static double mean_score(const strip *t)
{
    const uint8_t *visible = t->visible + t->row * t->keys;
    const double *score = row_of(t, t->into->kinds - 2);
    double sum = 0.0;
    int64_t count = 0;
    for (int64_t n = 0; n < t->keys; n++) {
        if (!visible[n]) continue;
        sum += score[n];
        count++;
    }
    return count > 0 ? sum / (double)count : 0.0;
}

/* One kind of numbers of the row. Softmax does not see what is the same for all keys, so
 * variation is counted around the mean of the row: sum t (s - mean s). */
static void add_row(const strip *t, size_t kind, double mean)
{
    explain_summary *s = t->into;
    const uint8_t *visible = t->visible + t->row * t->keys;
    const double *value = row_of(t, kind), *score = row_of(t, s->kinds - 2);
    double *distance = s->by_distance + (int64_t)kind * s->distances + t->distance;
    double *cell = s->cells + (int64_t)kind * s->rows * s->columns + t->line;
    for (int64_t n = 0; n < t->keys; n++) {
        if (!visible[n]) continue;
        distance[-n] += value[n];
        cell[t->column[n]] += value[n];
        s->mean[kind] += value[n];
        s->mean_abs[kind] += fabs(value[n]);
        s->share[kind] += value[n] * (score[n] - mean);
    }
}

static locus_status add_strip(strip *t, const explain_call *call, const locus_explain_block *block,
                              locus_error *error)
{
    explain_summary *s = t->into;
    const int64_t size = block->queries * block->keys;
    const locus_explained into = {
        .size = sizeof into,
        .terms = t->values,
        .score = t->values + (int64_t)(s->kinds - 2) * size,
        .weight = t->values + (int64_t)(s->kinds - 1) * size,
        .visible = t->visible,
    };
    const locus_status status = explain_numbers(call, block, &into, error);
    if (status != LOCUS_OK) return status;
    t->rows = block->queries;
    for (t->row = 0; t->row < t->rows; t->row++) {
        const int64_t i = block->query + t->row;
        t->distance = call->info.query_offset + i - s->least;
        t->line = i * s->rows / call->info.queries * s->columns;
        count_row(t);
        const double mean = mean_score(t);
        for (size_t kind = 0; kind < s->kinds; kind++) add_row(t, kind, mean);
    }
    return LOCUS_OK;
}

/* Sums into means; 0 / 0 is NaN where there is no pair. */
static void divide(explain_summary *s)
{
    const int64_t cells = s->rows * s->columns;
    const double variation = s->share[s->kinds - 2];
    for (int64_t kind = 0; kind < (int64_t)s->kinds; kind++) {
        s->mean[kind] /= (double)s->pairs;
        s->mean_abs[kind] /= (double)s->pairs;
        s->share[kind] /= variation;
        for (int64_t cell = 0; cell < cells; cell++)
            s->cells[kind * cells + cell] /= (double)s->cell_count[cell];
        for (int64_t d = 0; d < s->distances; d++)
            s->by_distance[kind * s->distances + d] /= (double)s->count[d];
    }
}

static int make_room(explain_summary *s, const explain_call *call)
{
    const locus_explainer_info *info = &call->info;
    memset(s, 0, sizeof *s);
    s->kinds = info->terms + 2;
    s->least = info->query_offset - (info->keys - 1);
    s->distances = info->queries + info->keys - 1;
    s->rows = info->queries < EXPLAIN_CELLS ? info->queries : EXPLAIN_CELLS;
    s->columns = info->keys < EXPLAIN_CELLS ? info->keys : EXPLAIN_CELLS;
    const size_t cells = (size_t)(s->rows * s->columns), distances = (size_t)s->distances;
    s->count = calloc(distances, sizeof *s->count);
    s->by_distance = calloc(distances * s->kinds, sizeof *s->by_distance);
    s->cell_count = calloc(cells, sizeof *s->cell_count);
    s->cells = calloc(cells * s->kinds, sizeof *s->cells);
    return s->kinds <= EXPLAIN_TERMS && s->count != NULL && s->by_distance != NULL &&
           s->cell_count != NULL && s->cells != NULL;
}

locus_status explain_summary_new(explain_summary *summary, const explain_call *call,
                                 locus_error *error)
{
    strip t = {.into = NULL};
    locus_explain_block block = explain_block_of(call);
    block.keys = call->info.keys;
    locus_status status = LOCUS_OK;
    if (!make_room(summary, call) || !strip_new(&t, summary, call)) status = LOCUS_ERR_MEMORY;
    for (; status == LOCUS_OK && block.query < call->info.queries; block.query += STRIP) {
        const int64_t left = call->info.queries - block.query;
        block.queries = left < STRIP ? left : STRIP;
        status = add_strip(&t, call, &block, error);
    }
    strip_free(&t);
    if (status == LOCUS_OK)
        divide(summary);
    else
        explain_summary_free(summary);
    return status;
}

void explain_summary_free(explain_summary *summary)
{
    free(summary->count);
    free(summary->by_distance);
    free(summary->cell_count);
    free(summary->cells);
    memset(summary, 0, sizeof *summary);
}

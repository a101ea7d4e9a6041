/* SPDX-License-Identifier: Apache-2.0 */
/* locus explain: views as tables. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "text.h"

enum { NUMBER = 10, MOST_PAIRS = 10 }; /* columns of a number at least; pairs of a sentence */

/* "t5, attend, 6 queries and keys, head 0 of 4, c = 1" */
static void print_head(const explain_call *call)
{
    const explain_values *v = call->values;
    const locus_explainer_info *info = &call->info;
    const locus_explain_block block = explain_block_of(call);
    if (v->path != NULL) {
        text_print(stdout, v->path);
        printf(": ");
    }
    if (call->model.model != NULL)
        printf("%s%s, layer %u of %" PRId64 ", ", call->model.info.family,
               model_stack_note(&call->model), v->layer, call->model.info.layers);
    printf("%s, %" PRId64 " quer%s, %" PRId64 " key%s, ", call->config->scheme, info->queries,
           info->queries == 1 ? "y" : "ies", info->keys, info->keys == 1 ? "" : "s");
    if (info->batch > 1) printf("batch %" PRId64 " of %" PRId64 ", ", block.batch, info->batch);
    printf("head %" PRId64 " of %" PRId64 ", c = %.6g", block.head, info->heads, info->scale);
    if (v->path == NULL) printf(", seed %u", v->seed);
    puts("\n");
}

/* "5 mat" */
static void print_token(const char *const *names, int64_t n, size_t width)
{
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, n);
    if (names == NULL) {
        text_cell(stdout, number, width);
        return;
    }
    printf("%s ", number);
    text_cell(stdout, names[n], width - strlen(number) - 1);
}

static size_t token_width(const char *heading, const char *const *names, int64_t first,
                          int64_t count)
{
    size_t width = strlen(heading);
    for (int64_t n = first; n < first + count; n++) {
        const size_t digits = (size_t)snprintf(NULL, 0, "%" PRId64, n);
        const size_t columns = digits + (names != NULL ? 1 + text_columns(names[n]) : 0);
        if (columns > width) width = columns;
    }
    return width;
}

static int term_width(const explain_call *call, size_t term)
{
    const size_t length = strlen(call->terms[term]->name);
    return (int)(length > NUMBER ? length : NUMBER);
}

static void print_query(const explain_call *call, int64_t query)
{
    const int64_t position = call->info.query_offset + query;
    printf("query %" PRId64, query);
    if (explain_queries(call) != NULL) {
        printf(" \"");
        text_print(stdout, explain_queries(call)[query]);
        putchar('"');
    }
    if (position != query) printf(" at position %" PRId64, position);
}

static void print_legend(const explain_call *call)
{
    size_t width = 0;
    for (size_t t = 0; t < call->info.terms; t++)
        if (strlen(call->terms[t]->name) > width) width = strlen(call->terms[t]->name);
    putchar('\n');
    for (size_t t = 0; t < call->info.terms; t++)
        printf("  %-*s  %s\n", (int)width, call->terms[t]->name, call->terms[t]->formula);
}

/* ---- one pair, as an equation ---- */

void explain_print_pair(const explain_call *call, const explain_row *row)
{
    const int64_t m = call->info.query_offset + row->query, n = row->first;
    print_head(call);
    print_query(call, row->query);
    printf(", key %" PRId64, n);
    if (call->tokens.names != NULL) {
        printf(" \"");
        text_print(stdout, call->tokens.names[n]);
        putchar('"');
    }
    if (!explain_across(call)) printf(", distance m - n = %" PRId64, m - n);
    puts("\n");
    if (!row->visible[0]) {
        puts("the query does not see this key");
        return;
    }
    for (size_t t = 0; t < call->info.terms; t++)
        printf("%c %-18s %-32s %14.8f\n", t == 0 ? ' ' : '+', call->terms[t]->name,
               call->terms[t]->formula, row->terms[t]);
    printf("= %s%-18s %-32s %14.8f%s\n", text_bold(), "score", "", row->score[0], text_plain());
    char formula[64];
    snprintf(formula, sizeof formula, "exp(score - lse), lse = %.6g", row->lse);
    printf("\n  %-18s %-32s %14.8f\n", "weight", formula, row->weight[0]);
}

/* ---- one query ---- */

/* The distance of a pair, where its sides are of one text. */
static void print_distance(const explain_call *call, int64_t m, int64_t n, int width)
{
    if (!explain_across(call)) printf("%*" PRId64, width, m - n);
}

static void print_columns(const explain_call *call)
{
    for (size_t t = 0; t < call->info.terms; t++)
        printf("  %*s", term_width(call, t), call->terms[t]->name);
    printf("  %*s  %8s%s\n", NUMBER, "score", "weight", text_plain());
}

/* What the query attends to, in the mean: terms weighted by attention. */
static void print_total(const explain_call *call, const explain_row *row, int width)
{
    double weights = 0.0, score = 0.0;
    printf("%s%-*s  %*s", text_bold(), width, "total", explain_across(call) ? 0 : 8, "");
    for (size_t t = 0; t < call->info.terms; t++) {
        double sum = 0.0;
        for (int64_t c = 0; c < row->keys; c++)
            if (row->visible[c]) sum += row->weight[c] * row->terms[(int64_t)t * row->keys + c];
        printf("  %*.5f", term_width(call, t), sum);
        score += sum;
    }
    for (int64_t c = 0; c < row->keys; c++) weights += row->weight[c];
    printf("  %*.5f  %8.5f%s\n", NUMBER, score, weights, text_plain());
}

void explain_print_row(const explain_call *call, const explain_row *row)
{
    const size_t width = token_width("key", call->tokens.names, row->first, row->keys);
    const int64_t m = call->info.query_offset + row->query;
    print_head(call);
    print_query(call, row->query);
    printf(", lse %.6g\n\n%s%-*s  %s", row->lse, text_bold(), (int)width, "key",
           explain_across(call) ? "" : "distance");
    print_columns(call);
    for (int64_t c = 0; c < row->keys; c++) {
        const int64_t n = row->first + c;
        print_token(call->tokens.names, n, width);
        print_distance(call, m, n, 8);
        for (size_t t = 0; t < call->info.terms; t++)
            if (row->visible[c])
                printf("  %*.5f", term_width(call, t), row->terms[(int64_t)t * row->keys + c]);
            else
                printf("  %*s", term_width(call, t), "-");
        if (row->visible[c])
            printf("  %*.5f  %8.5f\n", NUMBER, row->score[c], row->weight[c]);
        else
            printf("  %*s  %8s\n", NUMBER, "hidden", "0");
    }
    print_total(call, row, (int)width);
    puts("\ntotal: terms and scores in the mean, each key by its weight");
    print_legend(call);
}

/* ---- all pairs ---- */

static void print_terms(const explain_call *call, const explain_summary *s)
{
    printf("%s%-18s  %10s  %10s  %10s  %s%s\n", text_bold(), "term", "mean |.|", "mean",
           "variation", "formula", text_plain());
    for (size_t kind = 0; kind <= call->info.terms; kind++) {
        const int is_term = kind < call->info.terms;
        printf("%-18s  %10.5f  %10.5f  ", is_term ? call->terms[kind]->name : "score",
               s->mean_abs[kind], s->mean[kind]);
        if (isfinite(s->share[kind]))
            printf("%8.1f %%", 100.0 * s->share[kind]);
        else
            printf("%10s", "-");
        printf("  %s\n", is_term ? call->terms[kind]->formula : "their sum");
    }
    puts("\nvariation: of the score along the keys of a query, which is all that softmax sees");
}

/* ---- the strongest pairs ---- */

/* Every pair has a cell of its own, and a name. */
static int has_pairs(const explain_call *call, const explain_summary *s)
{
    return call->tokens.names != NULL && s->rows == call->info.queries &&
           s->columns == call->info.keys &&
           (explain_across(call) || call->info.queries == call->info.keys);
}

/* The visible pair with the largest weight among those below `limit`, or at it and behind `after`;
 * -1: none is left. */
static int64_t next_pair(const explain_summary *s, const double *weight, int64_t after)
{
    int64_t best = -1;
    for (int64_t at = 0; at < s->rows * s->columns; at++) {
        if (!(weight[at] > 0.0)) continue;
        if (after >= 0 &&
            (weight[at] > weight[after] || (weight[at] == weight[after] && at <= after)))
            continue;
        if (best < 0 || weight[at] > weight[best]) best = at;
    }
    return best;
}

/* What the head looks at most, and which term is to thank. */
static void print_pairs(const explain_call *call, const explain_summary *s)
{
    const int64_t cells = s->rows * s->columns;
    const double *weight = s->cells + (int64_t)(s->kinds - 1) * cells;
    const size_t asks = token_width("key", explain_queries(call), 0, call->info.queries);
    const size_t width = token_width("key", call->tokens.names, 0, call->info.keys);
    printf("\n%s%-*s  %-*s%s", text_bold(), (int)asks + 1, "query", (int)width, "key",
           explain_across(call) ? "  " : "distance");
    print_columns(call);
    int64_t at = next_pair(s, weight, -1);
    for (int shown = 0; at >= 0 && shown < MOST_PAIRS; shown++, at = next_pair(s, weight, at)) {
        const int64_t m = at / s->columns, n = at % s->columns;
        print_token(explain_queries(call), m, asks + 1);
        print_token(call->tokens.names, n, width);
        print_distance(call, call->info.query_offset + m, n, 6);
        for (size_t t = 0; t < call->info.terms; t++)
            printf("  %*.5f", term_width(call, t), s->cells[(int64_t)t * cells + at]);
        printf("  %*.5f  %8.5f\n", NUMBER, s->cells[(int64_t)(s->kinds - 2) * cells + at],
               weight[at]);
    }
}

/* Distances in bands that double: 0, 1, 2, 3..4, 5..8, ... */
static int64_t band_of(int64_t distance)
{
    int64_t band = 0;
    const int64_t size = distance < 0 ? -distance : distance;
    if (size == 0) return 0;
    for (int64_t last = 1; last < size; last *= 2) band++;
    return distance < 0 ? -band - 1 : band + 1;
}

static void print_band(const explain_call *call, const explain_summary *s, int64_t from, int64_t to)
{
    double sum[EXPLAIN_TERMS] = {0.0};
    int64_t pairs = 0;
    char name[64];
    for (int64_t d = from; d <= to; d++) {
        if (s->count[d] == 0) continue;
        pairs += s->count[d];
        for (size_t kind = 0; kind < s->kinds; kind++)
            sum[kind] += (double)s->count[d] * s->by_distance[(int64_t)kind * s->distances + d];
    }
    if (pairs == 0) return;
    snprintf(name, sizeof name, from == to ? "%" PRId64 : "%" PRId64 "..%" PRId64, s->least + from,
             s->least + to);
    printf("%-14s  %10" PRId64, name, pairs);
    for (size_t t = 0; t < call->info.terms; t++)
        printf("  %*.5f", term_width(call, t), sum[t] / (double)pairs);
    printf("  %*.5f  %8.5f\n", NUMBER, sum[s->kinds - 2] / (double)pairs,
           sum[s->kinds - 1] / (double)pairs);
}

static void print_distances(const explain_call *call, const explain_summary *s)
{
    printf("\n%s%-14s  %10s", text_bold(), "distance m - n", "pairs");
    print_columns(call);
    int64_t from = 0;
    for (int64_t d = 0; d < s->distances; d++) {
        if (d + 1 < s->distances && band_of(s->least + d + 1) == band_of(s->least + d)) continue;
        print_band(call, s, from, d);
        from = d + 1;
    }
}

void explain_print_summary(const explain_call *call, const explain_summary *s)
{
    print_head(call);
    if (s->pairs == 0) {
        puts("no query sees a key");
        return;
    }
    print_terms(call, s);
    if (!explain_across(call)) print_distances(call, s);
    if (call->model.model != NULL && has_pairs(call, s)) print_pairs(call, s);
}

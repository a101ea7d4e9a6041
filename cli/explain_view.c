/* SPDX-License-Identifier: Apache-2.0 */
/* locus explain: the numbers of one query. */
#include <stdlib.h>
#include <string.h>

#include "explain.h"

locus_explain_block explain_block_of(const explain_call *call)
{
    const explain_values *v = call->values;
    const locus_explain_block block = {
        .size = sizeof block,
        .batch = v->batch == EXPLAIN_NONE ? 0 : v->batch,
        .head = v->head == EXPLAIN_NONE ? 0 : v->head,
    };
    return block;
}

locus_status explain_row_new(explain_row *row, const explain_call *call, int64_t query,
                             int64_t first, int64_t keys, locus_error *error)
{
    const size_t count = (size_t)keys;
    memset(row, 0, sizeof *row);
    row->query = query;
    row->first = first;
    row->keys = keys;
    row->terms = calloc(count * call->info.terms + 1, sizeof *row->terms);
    row->score = calloc(count + 1, sizeof *row->score);
    row->weight = calloc(count + 1, sizeof *row->weight);
    row->visible = calloc(count + 1, sizeof *row->visible);
    locus_explain_block block = explain_block_of(call);
    block.query = query;
    block.queries = 1;
    block.key = first;
    block.keys = keys;
    const locus_explained into = {
        .size = sizeof into,
        .terms = row->terms,
        .score = row->score,
        .visible = row->visible,
        .lse = &row->lse,
        .weight = row->weight,
    };
    locus_status status = LOCUS_ERR_MEMORY;
    if (row->terms != NULL && row->score != NULL && row->weight != NULL && row->visible != NULL)
        status = locus_explain_lse(call->explainer, &block, &row->lse, error);
    if (status == LOCUS_OK) status = explain_numbers(call, &block, &into, error);
    if (status != LOCUS_OK) explain_row_free(row);
    return status;
}

void explain_row_free(explain_row *row)
{
    free(row->terms);
    free(row->score);
    free(row->weight);
    free(row->visible);
    memset(row, 0, sizeof *row);
}

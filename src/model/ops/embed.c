/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "model/ops/ops.h"
#include "model/run.h"

/* embed: sums of rows of tables, picked by ids, types and positions; the first table with a factor.
 * pick: some rows of a value. */

enum { TERMS = 3 };

static int64_t set_terms(const run *r, const op *o, locus_embedding terms[TERMS])
{
    int64_t count = 0;
    for (; count < TERMS && o->in[count] != NONE; count++)
        terms[count] =
            (locus_embedding){.table = run_at(r, o->in[count]),
                              .stride = r->p->values[o->out].width,
                              .words = r->p->values[o->in[count]].words,
                              .id = run_numbers(r, o->as.embed.by[count], o->as.embed.stack),
                              .factor = count == 0 ? o->as.embed.factor : 1.0f};
    return count;
}

static locus_status embed_forward(const run *r, const op *o)
{
    locus_embedding terms[TERMS];
    const int64_t count = set_terms(r, o, terms);
    const locus_rows y = rows_like(r, run_at(r, o->out), o->out);
    locus_embedding_forward(&r->p->workers, &y, terms, count, y.stride);
    return LOCUS_OK;
}

static locus_status embed_backward(const run *r, const op *o)
{
    locus_embedding terms[TERMS];
    const int64_t count = set_terms(r, o, terms);
    const locus_rows dy = rows_like(r, run_grad(r, o->out), o->out);
    for (int64_t i = 0; i < count; i++)
        if (run_grad(r, o->in[i]) != NULL)
            locus_embedding_backward(&r->p->workers, run_grad(r, o->in[i]), &terms[i], &dy,
                                     dy.stride);
    if (o->as.embed.input && r->input != NULL)
        r->p->workers.kernels->add(r->input, dy.data, run_size(r, o->out));
    return LOCUS_OK;
}

static locus_embedding picked(const run *r, const op *o)
{
    return (locus_embedding){.table = run_at(r, o->in[0]),
                             .stride = r->p->values[o->out].width,
                             .id = run_numbers(r, o->as.embed.by[0], 0),
                             .factor = 1.0f};
}

/* All rows: where nobody asks for some, and where the others are gone already. */
static int picks_all(const run *r, const op *o)
{
    const picker by = o->as.embed.by[0];
    return by == BY_LAST ? !r->few : r->few || (by == BY_ASKED && !r->asked);
}

static locus_status pick_forward(const run *r, const op *o)
{
    const locus_rows y = rows_like(r, run_at(r, o->out), o->out);
    const locus_embedding rows = picked(r, o);
    if (picks_all(r, o))
        memcpy(y.data, rows.table, (size_t)run_size(r, o->out) * sizeof(float));
    else
        locus_embedding_forward(&r->p->workers, &y, &rows, 1, y.stride);
    return LOCUS_OK;
}

static locus_status pick_backward(const run *r, const op *o)
{
    const locus_rows dy = rows_like(r, run_grad(r, o->out), o->out);
    const locus_embedding rows = picked(r, o);
    if (picks_all(r, o))
        run_add(r, o->in[0], dy.data);
    else
        locus_embedding_backward(&r->p->workers, run_grad(r, o->in[0]), &rows, &dy, dy.stride);
    return LOCUS_OK;
}

const op_kind op_embed = {.name = "embed", .forward = embed_forward, .backward = embed_backward};
const op_kind op_pick = {.name = "pick", .forward = pick_forward, .backward = pick_backward};

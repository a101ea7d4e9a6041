/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench: lines for the linear maps around attention. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/measure.h"

/* ---- extents ---- */

bench_extents bench_row_extents(const bench_row *row)
{
    if (row->linear != NULL)
        return (bench_extents){1, 1, row->linear->rows, row->linear->inputs, row->linear->outputs};
    const bench_group *g = row->input->group;
    return (bench_extents){g->batch, g->heads, g->n, g->d, 0};
}

char *bench_extents_text(char *buffer, size_t capacity, const bench_extents *e)
{
    if (e->outputs > 0)
        snprintf(buffer, capacity, "n %" PRId64 ", %" PRId64 " to %" PRId64, e->n, e->d,
                 e->outputs);
    else
        snprintf(buffer, capacity, "n %" PRId64 ", d %" PRId64, e->n, e->d);
    return buffer;
}

/* ---- lines ---- */

size_t bench_linear_rows(const bench_request *r)
{
    return r->token_count * r->width_count * r->width_count * LINEAR_PASSES * r->isa_count *
           r->thread_count;
}

/* `--direction backward` is both gradients. */
static int is_wanted(const bench_request *r, linear_pass pass)
{
    return r->directions[pass == LINEAR_FORWARD ? BENCH_FORWARD : BENCH_BACKWARD];
}

static void add_line(bench *b, const linear_case *which)
{
    static const bench_direction directions[LINEAR_PASSES] = {BENCH_FORWARD, BENCH_INPUT_GRAD,
                                                              BENCH_WEIGHT_GRAD};
    linear_case *c = &b->cases[b->case_count++];
    *c = *which;
    b->rows[b->row_count++] = (bench_row){.linear = c,
                                          .direction = directions[c->pass],
                                          .isa = c->isa,
                                          .threads = c->threads,
                                          .shown = 1,
                                          .workspace_bytes = linear_bytes(c),
                                          .flops = linear_flops(c)};
}

/* The lines of one map: passes x instruction sets x threads. */
static void add_map(bench *b, linear_case c)
{
    const bench_request *r = &b->request;
    for (int pass = 0; pass < LINEAR_PASSES; pass++)
        for (size_t i = 0; is_wanted(r, (linear_pass)pass) && i < r->isa_count; i++)
            for (size_t k = 0; k < r->thread_count; k++) {
                c.pass = (linear_pass)pass;
                c.isa = r->isas[i];
                c.threads = r->threads[k];
                add_line(b, &c);
            }
}

locus_status bench_build_linear(bench *b)
{
    const bench_request *r = &b->request;
    if (r->token_count == 0) return LOCUS_OK;
    b->cases = calloc(bench_linear_rows(r), sizeof *b->cases);
    if (b->cases == NULL) return LOCUS_ERR_MEMORY;
    for (size_t m = 0; m < r->token_count; m++)
        for (size_t in = 0; in < r->width_count; in++)
            for (size_t out = 0; out < r->width_count; out++)
                add_map(b, (linear_case){.rows = r->tokens[m],
                                         .second_cache = linear_second_cache(),
                                         .inputs = r->widths[in],
                                         .outputs = r->widths[out]});
    return linear_pool_new(&b->pool, b->cases, b->case_count) ? LOCUS_OK : LOCUS_ERR_MEMORY;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One call of attention, as a line has it: with its tables prepared or not. */
#include "bench/measure.h"

locus_status bench_forward(bench *b, bench_row *row, locus_error *error)
{
    if (row->tables != NULL)
        return locus_forward_prepared(row->plan, row->tables, &row->in, &row->results, b->workspace,
                                      b->workspace_bytes, error);
    return locus_forward(row->plan, &row->in, &row->results, b->workspace, b->workspace_bytes,
                         error);
}

locus_status bench_backward(bench *b, bench_row *row, const locus_tensor *dout, locus_error *error)
{
    const locus_results dresults = {.size = sizeof dresults, .out = *dout};
    if (row->backward_tables != NULL)
        return locus_backward_prepared(row->plan, row->backward_tables, &row->in, &row->results,
                                       &dresults, &row->input->grad, 0, b->workspace,
                                       b->workspace_bytes, error);
    return locus_backward(row->plan, &row->in, &row->results, &dresults, &row->input->grad, 0,
                          b->workspace, b->workspace_bytes, error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench: from times to the figures of a line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"

static int ascending(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

/* Sorts `values`; NAN of none. */
static double median(double *values, size_t count)
{
    if (count == 0) return NAN;
    qsort(values, count, sizeof *values, ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Milliseconds, sorted, of the rounds that ran. */
static size_t collect(double *values, const bench *b, const bench_times *times)
{
    size_t count = 0;
    for (uint32_t i = 0; i < b->rounds; i++)
        if (times->best[i] > 0) values[count++] = times->best[i] * 1e3;
    return count;
}

/* The median over the rounds of x / y within a round. */
static double ratio(const bench *b, const bench_times *x, const bench_times *y)
{
    double values[BENCH_ROUNDS];
    size_t count = 0;
    for (uint32_t i = 0; i < b->rounds; i++)
        if (x->best[i] > 0 && y->best[i] > 0) values[count++] = x->best[i] / y->best[i];
    return median(values, count);
}

static int is_same_call(const bench_row *x, const bench_row *y)
{
    if ((x->linear == NULL) != (y->linear == NULL) || x->direction != y->direction ||
        strcmp(x->isa, y->isa) != 0)
        return 0;
    if (x->linear == NULL)
        return x->input == y->input && x->view == y->view && x->prepared == y->prepared;
    return x->linear->rows == y->linear->rows && x->linear->inputs == y->linear->inputs &&
           x->linear->outputs == y->linear->outputs;
}

/* Time of one thread over that of `row`. */
static double speedup(const bench *b, const bench_row *row)
{
    if (row->threads == 1) return NAN;
    for (size_t i = 0; i < b->row_count; i++)
        if (b->rows[i].threads == 1 && is_same_call(&b->rows[i], row))
            return ratio(b, &b->rows[i].times, &row->times);
    return NAN;
}

static double best_peak(const bench *b, const bench_row *row)
{
    for (size_t i = 0; i < b->peak_count; i++)
        if (b->peaks[i].threads == row->threads && strcmp(b->peaks[i].loops->isa, row->isa) == 0)
            return b->peaks[i].best;
    return NAN;
}

/* Half of the last digit of a number about 1. A gradient has that of `out` in it, too. */
static double rounding(const bench_row *row)
{
    const locus_dtype dtype = row->linear != NULL ? LOCUS_F32 : row->input->group->dtype;
    const double half = dtype == LOCUS_F16 ? 0x1p-11 : dtype == LOCUS_BF16 ? 0x1p-8 : 0.0;
    return row->direction == BENCH_FORWARD ? half : 2 * half;
}

/* Logits carry rounding errors in proportion to their size. */
static double tolerance(const bench_row *row)
{
    const double exact =
        row->direction == BENCH_FORWARD ? bench_output_tolerance : bench_gradient_tolerance;
    return (exact + rounding(row)) * (row->view == BENCH_PEAKED ? BENCH_PEAK : 1);
}

void bench_figure(bench_figures *f, const bench *b, const bench_row *row)
{
    double values[BENCH_ROUNDS] = {0};
    const size_t count = collect(values, b, &row->times);
    memset(f, 0, sizeof *f);
    f->ms_median = median(values, count);
    f->ms_min = values[0];
    f->ms_max = values[count > 0 ? count - 1 : 0];
    f->gflops = row->flops / (f->ms_median * 1e6);
    f->percent = 100 * f->gflops / best_peak(b, row);
    f->over_plain = row->plain != NULL ? ratio(b, &row->times, &row->plain->times) : NAN;
    f->speedup = speedup(b, row);
    f->baseline_over_ours = NAN;
    for (size_t i = 0; i < BENCH_PEERS; i++) {
        if (row->peers[i] == NULL) continue;
        const double over = ratio(b, &row->peer_times[i], &row->times);
        if (f->baseline != NULL && over > f->baseline_over_ours) continue;
        f->baseline = row->peers[i];
        f->baseline_over_ours = over;
    }
    f->extra_bytes = row->plan_bytes + row->workspace_bytes;
    f->exact = row->max_err <= tolerance(row);
}

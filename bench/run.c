/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench: warm up and check every line, then rounds over all of them. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/measure.h"

enum { MOST_CALLS = 200, FAR_FLOATS = 1 << 24, LEAST_ROUNDS = 3 };

static const double call_seconds = 0.12; /* of a line in a round, about        */
static const double map_seconds = 0.05;  /* the same for linear maps, which are many */
static const double row_seconds = 20.0;  /* a slower line sits later rounds out */

/* ---- progress ---- */

static void progress(const char *what, const char *name)
{
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%-60s\r%s%s", "", what, name);
}

/* ---- one call ---- */

static locus_status call_row(bench *b, bench_row *row, locus_error *error)
{
    locus_status status = LOCUS_OK;
    if (row->linear != NULL) {
        linear_run(&b->pool, row->linear);
        return LOCUS_OK;
    }
    if (row->direction != BENCH_BACKWARD) status = bench_forward(b, row, error);
    if (row->direction != BENCH_FORWARD && status == LOCUS_OK)
        status = bench_backward(b, row, &row->input->group->dout, error);
    return status;
}

/* What comes before a call: weights are packed once and not timed; decoding meets a cache
 * that other work has pushed out to memory. */
static void prepare(bench *b, const bench_row *row)
{
    if (row->linear != NULL) linear_prepare(&b->pool, row->linear);
    if (row->view == BENCH_DECODE) bench_read_flush(row);
}

/* Yardstick number `peer` of a line, as assign_peers named them. */
static void call_peer(bench *b, bench_row *row, size_t peer)
{
    if (row->linear != NULL) {
        linear_run_peer(&b->pool, row->linear, &b->blas);
        return;
    }
    yardstick *y = &row->input->yardstick;
    volatile float sink;
    if (row->view == BENCH_DECODE)
        sink = bench_read(row, bench_loops_find(row->isa));
    else if (row->direction == BENCH_BACKWARD)
        yardstick_backward(y, row->input->group->dout.data);
    else if (peer == 0)
        yardstick_unfused(y);
    else
        yardstick_flash(y);
    (void)sink;
}

/* peer < 0: ours. */
static locus_status time_call(bench *b, bench_row *row, int peer, double *seconds,
                              locus_error *error)
{
    locus_status status = LOCUS_OK;
    const uint32_t clock = bench_compares_threads(&b->request) ? 2 : row->threads;
    prepare(b, row);
    const double start = limits_clock(clock);
    if (peer < 0)
        status = call_row(b, row, error);
    else
        call_peer(b, row, (size_t)peer);
    *seconds = limits_clock(clock) - start;
    return status;
}

/* ---- warming up ---- */

/* How long a call takes on the wall, flushing included, once pages and caches are warm (a
 * long one is, by its own work), and how many fill a round. */
static locus_status calibrate(bench *b, bench_row *row, int peer, uint32_t *calls,
                              locus_error *error)
{
    const double enough = row->linear != NULL ? map_seconds : call_seconds;
    double seconds = 0, unused = 0;
    locus_status status = LOCUS_OK;
    for (int i = 0; i < 2 && status == LOCUS_OK && seconds < enough; i++) {
        const double start = limits_clock(2);
        status = time_call(b, row, peer, &unused, error);
        seconds = limits_clock(2) - start;
    }
    const double fit = ceil(enough / (seconds > 1e-9 ? seconds : 1e-9));
    *calls = fit > MOST_CALLS ? MOST_CALLS : (uint32_t)fit;
    return status;
}

/* A forward line has two at most, a backward line one. Only one thread is measured, with
 * the best kernels, on calls without masks: that is where they were built for. */
static void assign_peers(bench *b, bench_row *row)
{
    if (row->view == BENCH_DECODE) {
        row->peers[0] = bench_read_name(row);
        return;
    }
    if (row->prepared) return; /* the line before has them */
    const int kept = row->view == BENCH_KEPT && row->direction == BENCH_BACKWARD;
    if (!b->has_blas || row->threads != 1 || (row->view != BENCH_WHOLE && !kept) ||
        strcmp(row->isa, b->best_isa) != 0)
        return;
    if (row->linear != NULL) {
        row->peers[0] = "OpenBLAS sgemm";
        return;
    }
    const yardstick *y = &row->input->yardstick;
    if (!row->input->has_yardstick) return;
    if (row->direction == BENCH_BACKWARD && y->has_backward) row->peers[0] = "OpenBLAS unfused";
    if (row->direction != BENCH_FORWARD) return;
    row->peers[0] = "OpenBLAS unfused";
    if (y->has_flash) row->peers[1] = "OpenBLAS flash";
}

static locus_status warm_peers(bench *b, bench_row *row, locus_error *error)
{
    char name[48];
    locus_status status = LOCUS_OK;
    assign_peers(b, row);
    for (int i = 0; i < BENCH_PEERS && status == LOCUS_OK; i++) {
        if (row->peers[i] == NULL) continue;
        if (row->direction == BENCH_BACKWARD) yardstick_unfused(&row->input->yardstick);
        status = calibrate(b, row, i, &row->peer_times[i].calls, error);
        if (status != LOCUS_OK || bench_peer_agrees(b, row)) continue;
        progress("", "");
        cli_complain("bench", 0, "%s for %s at n = %d differs from ours: left out", row->peers[i],
                     bench_row_name(name, sizeof name, row), (int)bench_row_extents(row).n);
        row->peers[i] = NULL;
    }
    return status;
}

static locus_status warm_up(bench *b, locus_error *error)
{
    char name[48];
    locus_status status = LOCUS_OK;
    for (size_t i = 0; i < b->row_count && status == LOCUS_OK; i++) {
        bench_row *row = &b->rows[i];
        progress("checking ", bench_row_name(name, sizeof name, row));
        status = bench_check(b, row, error);
        if (status == LOCUS_OK) status = calibrate(b, row, -1, &row->times.calls, error);
        if (status == LOCUS_OK) status = warm_peers(b, row, error);
    }
    return status;
}

/* ---- yardsticks ---- */

static void make_yardsticks(bench *b)
{
    if (!b->request.baseline || b->request.views[BENCH_DECODE]) return;
    b->has_blas = blas_open(&b->blas, b->best_isa);
    for (size_t i = 0; b->has_blas && i < b->row_count; i++) {
        const bench_row *row = &b->rows[i];
        bench_input *input = row->input;
        locus_plan_info info = {.size = sizeof info};
        if (input == NULL || input->has_yardstick || input->group->dtype != LOCUS_F32) continue;
        locus_plan_describe(row->plan, &info);
        input->has_yardstick =
            yardstick_new(&input->yardstick, &b->blas, bench_loops_find(b->best_isa), &b->scratch,
                          &row->config, info.scale, input->problem->in,
                          b->request.directions[BENCH_BACKWARD]);
    }
}

/* ---- limits ---- */

static void note(bench_limit *limit, double rate)
{
    if (limit->samples == 0 || rate > limit->best) limit->best = rate;
    if (limit->samples == 0 || rate < limit->lowest) limit->lowest = rate;
    limit->samples++;
}

/* GB/s over the first `count` floats of the buffer. */
static double read_rate(const bench *b, const bench_limit *limit, int64_t count, int passes)
{
    volatile float sink = 0;
    const double start = limits_clock(1);
    for (int k = 0; k < passes; k++) sink = limits_read(limit->loops, 1, b->buffer, count);
    const double seconds = limits_clock(1) - start;
    (void)sink;
    return (double)count * sizeof(float) * passes / seconds * 1e-9;
}

static void measure_limits(bench *b)
{
    const int64_t near = (int64_t)(limits_l2_bytes() / 2 / sizeof(float));
    for (size_t i = 0; i < b->peak_count; i++)
        note(&b->peaks[i], limits_fma(b->peaks[i].loops, b->peaks[i].threads));
    note(&b->near_read, read_rate(b, &b->near_read, near, 200));
    limits_flush(b->buffer, FAR_FLOATS * sizeof(float));
    note(&b->far_read, read_rate(b, &b->far_read, FAR_FLOATS, 1));
}

static locus_status prepare_limits(bench *b, locus_error *error)
{
    const bench_request *r = &b->request;
    const size_t bytes = FAR_FLOATS * sizeof(float);
    b->buffer = aligned_alloc(64, bytes);
    if (b->buffer == NULL) return LOCUS_ERR_MEMORY;
    for (size_t i = 0; i < FAR_FLOATS; i++) b->buffer[i] = 1.0f;
    b->near_read.loops = b->far_read.loops = bench_loops_find(b->best_isa);
    for (size_t i = 0; i < r->isa_count; i++)
        for (size_t k = 0; k < r->thread_count && b->peak_count < BENCH_LIMITS; k++)
            b->peaks[b->peak_count++] =
                (bench_limit){.loops = bench_loops_find(r->isas[i]), .threads = r->threads[k]};
    for (size_t i = 0; i < b->peak_count; i++)
        if (b->peaks[i].loops == NULL || b->near_read.loops == NULL) {
            snprintf(error->text, sizeof error->text, "the benchmark has no loops for %s",
                     b->peaks[i].loops == NULL ? "an instruction set" : b->best_isa);
            return LOCUS_ERR_ISA;
        }
    return LOCUS_OK;
}

/* ---- rounds ---- */

static void keep_best(double *best, double seconds, uint32_t call)
{
    if (call == 0 || seconds < *best) *best = seconds;
}

static locus_status time_round(bench *b, bench_row *row, int peer, bench_times *times,
                               uint32_t round, locus_error *error)
{
    for (uint32_t i = 0; i < times->calls; i++) {
        double seconds = 0;
        const locus_status status = time_call(b, row, peer, &seconds, error);
        if (status != LOCUS_OK) return status;
        keep_best(&times->best[round], seconds, i);
    }
    return LOCUS_OK;
}

/* Call and read in turn: the speed of memory changes from moment to moment. */
static locus_status time_decoding(bench *b, bench_row *row, uint32_t round, locus_error *error)
{
    bench_times *read = &row->peer_times[0];
    for (uint32_t i = 0; i < row->times.calls; i++) {
        double ours = 0, theirs = 0;
        locus_status status = time_call(b, row, -1, &ours, error);
        if (status == LOCUS_OK) status = time_call(b, row, 0, &theirs, error);
        if (status != LOCUS_OK) return status;
        keep_best(&row->times.best[round], ours, i);
        keep_best(&read->best[round], theirs, i);
    }
    return LOCUS_OK;
}

static locus_status run_row(bench *b, bench_row *row, uint32_t round, locus_error *error)
{
    if (row->spent > row_seconds) return LOCUS_OK;
    const double start = limits_clock(2);
    if (row->view == BENCH_DECODE && row->peers[0] != NULL) {
        const locus_status status = time_decoding(b, row, round, error);
        row->spent += limits_clock(2) - start;
        return status;
    }
    locus_status status = time_round(b, row, -1, &row->times, round, error);
    for (int i = 0; i < BENCH_PEERS && status == LOCUS_OK; i++)
        if (row->peers[i] != NULL)
            status = time_round(b, row, i, &row->peer_times[i], round, error);
    row->spent += limits_clock(2) - start;
    return status;
}

/* All lines, one after the other, so that a busy minute of the machine hits all alike. */
static locus_status run_round(bench *b, uint32_t round, locus_error *error)
{
    char what[96];
    locus_status status = LOCUS_OK;
    for (size_t i = 0; i < b->row_count && status == LOCUS_OK; i++) {
        snprintf(what, sizeof what, "round %u of %u, line %zu of %zu", (unsigned)round + 1,
                 (unsigned)b->request.rounds, i + 1, b->row_count);
        progress(what, "");
        status = run_row(b, &b->rows[i], round, error);
        if (i == b->row_count / 2) measure_limits(b);
    }
    return status;
}

/* Stop early when the time is up, once there are rounds enough for a median. */
static int time_is_up(const bench *b, double start)
{
    const double passed = limits_clock(2) - start;
    return b->rounds >= LEAST_ROUNDS && passed + passed / b->rounds > b->request.seconds;
}

locus_status bench_run(bench *b, locus_error *error)
{
    locus_status status = prepare_limits(b, error);
    if (status == LOCUS_OK) {
        measure_limits(b);
        make_yardsticks(b);
        status = warm_up(b, error);
    }
    const double start = limits_clock(2);
    while (status == LOCUS_OK && b->rounds < b->request.rounds && !time_is_up(b, start)) {
        measure_limits(b);
        status = run_round(b, b->rounds, error);
        b->rounds++;
    }
    measure_limits(b);
    progress("", "");
    return status;
}

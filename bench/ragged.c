/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench --ragged and --mask blocks: texts of any length in one row, against the same texts as
 * a batch and one by one. Both sides compute the same numbers, which is checked. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/measure.h"
#include "cli/json.h"

enum {
    DOCUMENTS = 8,
    DOCUMENT = 128,
    TEXTS = 256,
    LEAST = 8,
    MOST = 512,
    HEADS = 12,
    MIXED_HEADS = 4, /* of 66,000 rows: more take more memory than a small machine has */
    WIDTH = 64
};
static const double tolerance = 5e-6;

/* One thread in the time that it ran, more on the wall. */
static double now(uint32_t threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- calls ---- */

typedef struct ragged_call {
    locus_plan *plan;
    locus_tensors in, grad;
    locus_results results, dresults;
    void *workspace;
    size_t forward, backward;
} ragged_call;

/* What the calls of one scheme read and write: rows of texts, [T,H,D] in memory. */
typedef struct ragged_pool {
    bench_group group;
    locus_problem *problem;
    int64_t T, offsets[TEXTS + 1], count;
    float *memory, *rows[9], *lse; /* q, k, v, dout; out, dq, dk, dv, and out of the peer */
    uint8_t *mask;
} ragged_pool;

enum { Q, K, V, DOUT, OUT, DQ, DK, DV, PEER_OUT };

static void describe_call(const ragged_pool *pool, ragged_call *call, int64_t batch, int64_t rows,
                          int64_t first, int peer)
{
    const int64_t H = pool->group.heads, D = pool->group.d, at = first * H * D;
    locus_tensor view[9];
    for (int i = 0; i < 9; i++) view[i] = locus_view_bthd(pool->rows[i] + at, batch, rows, H, D);
    const int64_t shape[] = {batch, H, rows};
    *call = (ragged_call){.in = *pool->problem->in};
    call->in.q = view[Q];
    call->in.k = view[K];
    call->in.v = view[V];
    call->grad = (locus_tensors){.size = sizeof call->grad};
    call->grad.q = view[DQ];
    call->grad.k = view[DK];
    call->grad.v = view[DV];
    call->results.size = call->dresults.size = sizeof call->results;
    call->results.out = view[peer ? PEER_OUT : OUT];
    call->results.lse = locus_view(pool->lse + first * H, LOCUS_F32, 3, shape);
    call->dresults.out = view[DOUT];
}

static locus_status begin_call(const ragged_pool *pool, ragged_call *call, locus_error *error)
{
    const locus_status status =
        locus_plan_new(&call->plan, pool->problem->config, &call->in, error);
    if (status != LOCUS_OK) return status;
    call->forward = locus_forward_workspace(call->plan);
    call->backward = locus_backward_workspace(call->plan);
    call->workspace = malloc(call->forward > call->backward ? call->forward : call->backward);
    return call->workspace != NULL ? LOCUS_OK : LOCUS_ERR_MEMORY;
}

static void end_call(ragged_call *call)
{
    locus_plan_free(call->plan);
    free(call->workspace);
}

static locus_status run_call(const ragged_call *call, bench_direction direction, locus_error *error)
{
    if (direction == BENCH_FORWARD)
        return locus_forward(call->plan, &call->in, &call->results, call->workspace, call->forward,
                             error);
    return locus_backward(call->plan, &call->in, &call->results, &call->dresults, &call->grad, 0,
                          call->workspace, call->backward, error);
}

/* ---- one comparison ---- */

typedef struct ragged_line {
    const char *scheme, *what, *peer;
    bench_direction direction;
    uint32_t threads;
    double seconds, ratio, difference;
} ragged_line;

/* The fastest of some turns of each. */
static locus_status measure(const ragged_call *ours, const ragged_call *peers, int64_t count,
                            uint32_t rounds, ragged_line *line, locus_error *error)
{
    double peer = 1e30;
    locus_status status = LOCUS_OK;
    line->seconds = 1e30;
    for (uint32_t i = 0; status == LOCUS_OK && i < rounds + 1; i++) {
        const double start = now(line->threads);
        status = run_call(ours, line->direction, error);
        const double middle = now(line->threads);
        for (int64_t s = 0; status == LOCUS_OK && s < count; s++)
            status = run_call(&peers[s], line->direction, error);
        const double end = now(line->threads);
        line->seconds = fmin(line->seconds, middle - start);
        peer = fmin(peer, end - middle);
    }
    line->ratio = line->seconds / peer;
    return status;
}

static double difference(const ragged_pool *pool)
{
    const int64_t elements = pool->T * pool->group.heads * pool->group.d;
    double most = 0.0;
    for (int64_t i = 0; i < elements; i++)
        most = fmax(most, fabs((double)pool->rows[OUT][i] - (double)pool->rows[PEER_OUT][i]));
    return most;
}

/* ---- texts ---- */

static locus_status begin_pool(ragged_pool *pool, const bench_request *r, const bench_kind *kind,
                               int mixed, int masked, locus_error *error)
{
    uint32_t random = 12345;
    pool->count = mixed ? TEXTS : DOCUMENTS;
    for (int64_t i = 0; i < pool->count; i++) {
        random = random * 1664525u + 1013904223u;
        pool->offsets[i + 1] =
            pool->offsets[i] + (mixed ? LEAST + (random >> 8) % (MOST - LEAST + 1) : DOCUMENT);
    }
    pool->T = pool->offsets[pool->count];
    pool->group = (bench_group){.in = {.size = sizeof pool->group.in},
                                .batch = 1,
                                .heads = r->heads > 0 ? r->heads
                                         : mixed      ? MIXED_HEADS
                                                      : HEADS,
                                .n = masked  ? pool->T
                                     : mixed ? MOST
                                             : DOCUMENT,
                                .d = r->d_count > 0 ? r->d[0] : WIDTH};
    const size_t each = (size_t)(pool->T * pool->group.heads * pool->group.d);
    const size_t lse = (size_t)(pool->T * pool->group.heads);
    pool->memory = calloc(9 * each + lse, sizeof(float));
    pool->mask = masked ? calloc((size_t)(pool->T * pool->T), 1) : NULL;
    if (pool->memory == NULL || (masked && pool->mask == NULL)) return LOCUS_ERR_MEMORY;
    for (size_t i = 0; i < 9; i++) pool->rows[i] = pool->memory + i * each;
    pool->lse = pool->memory + 9 * each;
    for (size_t i = 0; i < 4 * each; i++) {
        random = random * 1664525u + 1013904223u;
        pool->memory[i] = (float)(random >> 8) * 0x1p-23f - 1.0f;
    }
    for (int64_t m = 0; masked && m < pool->T; m++)
        memset(pool->mask + m * pool->T + m / DOCUMENT * DOCUMENT, 1, DOCUMENT);
    return bench_build_problem(&pool->problem, &pool->group, kind, error);
}

static void end_pool(ragged_pool *pool)
{
    locus_problem_free(pool->problem);
    free(pool->memory);
    free(pool->mask);
}

/* Our call: all texts in one row, by offsets or by a mask. */
static locus_status begin_ours(ragged_pool *pool, int masked, ragged_call *call, locus_error *error)
{
    const int64_t numbers[] = {pool->count + 1}, mask[] = {1, 1, pool->T, pool->T};
    describe_call(pool, call, 1, pool->T, 0, 0);
    if (masked)
        call->in.mask = locus_view(pool->mask, LOCUS_U8, 4, mask);
    else
        call->in.q_offsets = call->in.k_offsets = locus_view(pool->offsets, LOCUS_I64, 1, numbers);
    return begin_call(pool, call, error);
}

/* What it is compared with: a batch, or a call for each text. */
static locus_status begin_peers(const ragged_pool *pool, int mixed, ragged_call *peers,
                                int64_t *count, locus_error *error)
{
    locus_status status = LOCUS_OK;
    *count = mixed ? pool->count : 1;
    for (int64_t s = 0; status == LOCUS_OK && s < *count; s++) {
        const int64_t first = pool->offsets[s];
        if (mixed)
            describe_call(pool, &peers[s], 1, pool->offsets[s + 1] - first, first, 1);
        else
            describe_call(pool, &peers[s], DOCUMENTS, DOCUMENT, 0, 1);
        status = begin_call(pool, &peers[s], error);
    }
    return status;
}

/* ---- the table ---- */

static void print_line(json *j, const ragged_line *line, int as_json, int first)
{
    if (as_json) {
        json_inline_object(j, NULL);
        json_text(j, "scheme", line->scheme);
        json_text(j, "texts", line->what);
        json_text(j, "against", line->peer);
        json_text(j, "direction", bench_direction_name(line->direction));
        json_integer(j, "threads", line->threads);
        json_real(j, "ms", 1e3 * line->seconds);
        json_real(j, "ratio", line->ratio);
        json_real(j, "max_difference", line->difference);
        json_end(j);
        return;
    }
    if (first)
        printf("%-20s %-18s %-12s %-9s %7s %9s %7s %8s\n", "scheme", "texts", "against",
               "direction", "threads", "ms", "x", "max diff");
    printf("%-20s %-18s %-12s %-9s %7u %9.2f %7.3f %8.1e\n", line->scheme, line->what, line->peer,
           bench_direction_name(line->direction), (unsigned)line->threads, 1e3 * line->seconds,
           line->ratio, line->difference);
}

typedef struct ragged_run {
    const bench_request *request;
    const bench_values *values;
    json j;
    size_t lines, wrong;
} ragged_run;

static locus_status run_lines(ragged_run *run, ragged_pool *pool, ragged_line line, int mixed,
                              int masked, locus_error *error)
{
    static ragged_call peers[TEXTS];
    ragged_call ours = {.plan = NULL};
    int64_t count = 0;
    memset(peers, 0, sizeof peers);
    locus_status status = begin_ours(pool, masked, &ours, error);
    if (status == LOCUS_OK) status = begin_peers(pool, mixed, peers, &count, error);
    for (int d = BENCH_FORWARD; status == LOCUS_OK && d <= BENCH_BACKWARD; d++) {
        line.direction = (bench_direction)d;
        if (d == BENCH_BACKWARD && !run->request->directions[d]) continue;
        status = measure(&ours, peers, count, run->request->rounds, &line, error);
        line.difference = difference(pool);
        if (!(line.difference <= tolerance)) run->wrong++;
        if (status == LOCUS_OK && run->request->directions[d])
            print_line(&run->j, &line, run->values->json, run->lines++ == 0);
    }
    end_call(&ours);
    for (int64_t s = 0; s < count; s++) end_call(&peers[s]);
    return status;
}

static locus_status run_kind(ragged_run *run, const bench_kind *kind, int mixed, int masked,
                             locus_error *error)
{
    locus_status status = LOCUS_OK;
    for (size_t k = 0; status == LOCUS_OK && k < run->request->thread_count; k++) {
        ragged_pool pool = {.T = 0};
        ragged_line line = {.scheme = kind->name,
                            .what = mixed ? "256 of 8 to 512" : "8 of 128",
                            .peer = mixed ? "one by one" : "a batch",
                            .threads = run->request->threads[k]};
        if (masked) line.what = "8 of 128, mask";
        status = begin_pool(&pool, run->request, kind, mixed, masked, error);
        if (status == LOCUS_OK) {
            pool.problem->config->threads = line.threads;
            pool.problem->config->isa = run->request->isas[0];
            status = run_lines(run, &pool, line, mixed, masked, error);
        }
        end_pool(&pool);
    }
    return status;
}

int bench_ragged(const bench_request *request, const bench_values *values)
{
    ragged_run run = {.request = request, .values = values, .j = {.out = stdout}};
    locus_error error = {""};
    locus_status status = LOCUS_OK;
    if (values->json) json_array(&run.j, NULL);
    for (size_t i = 0; status == LOCUS_OK && i < request->kind_count; i++) {
        const bench_kind *kind = &request->kinds[i];
        if (kind->dense) continue;
        if (values->ragged) status = run_kind(&run, kind, 0, 0, &error);
        if (values->ragged && status == LOCUS_OK) status = run_kind(&run, kind, 1, 0, &error);
        if (values->mask != NULL && status == LOCUS_OK) status = run_kind(&run, kind, 0, 1, &error);
    }
    if (values->json) json_end(&run.j);
    if (status != LOCUS_OK) return cli_report("bench", status, NULL, &error);
    if (run.wrong == 0) return CLI_DONE;
    return cli_complain("bench", CLI_DIFFERENT, "%zu of %zu lines differ from their peers",
                        run.wrong, run.lines);
}

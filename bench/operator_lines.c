/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench --operators: the operators beside linear maps and attention, against plain loops. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/measure.h"
#include "bench/operators.h"
#include "cli/json.h"

enum { ROWS = 512, WIDTH = 768, CALLS = 20 };
static const double tolerance = 2e-5;

/* ---- the clock ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct operator_line {
    const char *name, *isa;
    uint32_t threads;
    double seconds, ratio, bytes, difference;
} operator_line;

/* The fastest of some calls, ours and the plain loop by turns. */
static void measure(operator_line *line, operator_pool *pool, size_t which, uint32_t rounds)
{
    double plain = 1e30;
    line->seconds = 1e30;
    for (uint32_t i = 0; i < rounds * CALLS; i++) {
        const double start = now();
        operator_run(pool, which, line->isa, line->threads);
        const double middle = now();
        if (i % CALLS == 0) operator_run_plain(pool, which);
        const double end = now();
        if (middle - start < line->seconds) line->seconds = middle - start;
        if (i % CALLS == 0 && end - middle < plain) plain = end - middle;
    }
    line->ratio = plain / line->seconds;
    line->bytes = operator_bytes(pool, which);
    line->difference = operator_difference(pool);
}

/* ---- the table ---- */

static void print_text(const operator_line *line, const operator_pool *pool, int first)
{
    if (first)
        printf("%-22s %5s %5s  %-8s %7s %9s %7s %8s %8s\n", "operator", "n", "d", "isa", "threads",
               "us", "GB/s", "plain x", "max diff");
    printf("%-22s %5" PRId64 " %5" PRId64 "  %-8s %7u %9.2f %7.1f %8.2f %8.1e\n", line->name,
           pool->rows, pool->width, line->isa, (unsigned)line->threads, 1e6 * line->seconds,
           1e-9 * line->bytes / line->seconds, line->ratio, line->difference);
}

static void print_json(json *j, const operator_line *line, const operator_pool *pool)
{
    json_inline_object(j, NULL);
    json_text(j, "operator", line->name);
    json_integer(j, "n", pool->rows);
    json_integer(j, "d", pool->width);
    json_text(j, "isa", line->isa);
    json_integer(j, "threads", line->threads);
    json_real(j, "us", 1e6 * line->seconds);
    json_real(j, "gbytes_per_s", 1e-9 * line->bytes / line->seconds);
    json_real(j, "plain_over_ours", line->ratio);
    json_real(j, "max_difference", line->difference);
    json_end(j);
}

/* All operators on rows of one size. Returns the lines that differ. */
static size_t run_size(const bench_request *r, const bench_values *values, operator_pool *pool,
                       json *j, int first)
{
    size_t wrong = 0;
    for (size_t which = 0; operator_name(which) != NULL; which++)
        for (size_t i = 0; i < r->isa_count; i++)
            for (size_t k = 0; k < r->thread_count; k++) {
                operator_line line = {.name = operator_name(which),
                                      .isa = r->isas[i],
                                      .threads = r->threads[k]};
                measure(&line, pool, which, r->rounds);
                wrong += line.difference <= tolerance ? 0 : 1;
                if (values->json)
                    print_json(j, &line, pool);
                else
                    print_text(&line, pool, first);
                first = 0;
            }
    return wrong;
}

int bench_operators(const bench_request *r, const bench_values *values)
{
    static const uint32_t rows[1] = {ROWS}, widths[1] = {WIDTH};
    const size_t n_count = r->token_count > 0 ? r->token_count : 1;
    const size_t d_count = r->width_count > 0 ? r->width_count : 1;
    const uint32_t *n = r->token_count > 0 ? r->tokens : rows;
    const uint32_t *d = r->width_count > 0 ? r->widths : widths;
    size_t wrong = 0;
    json j = {.out = stdout};
    if (values->json) json_array(&j, NULL);
    for (size_t i = 0; i < n_count; i++)
        for (size_t k = 0; k < d_count; k++) {
            operator_pool pool;
            if (!operator_pool_new(&pool, n[i], d[k])) {
                operator_pool_free(&pool);
                return cli_complain("bench", CLI_RESOURCES, "no memory for %u rows of %u",
                                    (unsigned)n[i], (unsigned)d[k]);
            }
            wrong += run_size(r, values, &pool, &j, i == 0 && k == 0);
            operator_pool_free(&pool);
        }
    if (values->json) json_end(&j);
    if (wrong == 0) return CLI_DONE;
    return cli_complain("bench", CLI_DIFFERENT, "%zu lines differ from the plain loops", wrong);
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

/* locus bench, in the order in which it works: what is asked for (request.c), what the schemes
 * are set to (kind.c), tensors and plans (build.c), one call (call.c), the output against the oracle
 * (check.c), the clock (run.c), the yardstick of decoding (read.c), figures (figure.c), tables (print.c), a
 * chart (svg.c). Lines for linear maps are built in linear_lines.c and then go the same way. */

#include "bench/bench.h"
#include "bench/halves.h"
#include "bench/limits.h"
#include "bench/linear.h"
#include "bench/yardstick.h"
#include "cli/cli.h"
#include <locus/locus.h>
#include <locus/problem.h>

enum { BENCH_LIST = 16, BENCH_KINDS = 32, BENCH_ROUNDS = 99, BENCH_LIMITS = 64, BENCH_PEERS = 2 };

typedef enum bench_direction {
    BENCH_FORWARD,
    BENCH_BACKWARD,
    BENCH_TOGETHER,
    BENCH_DIRECTIONS,
    BENCH_INPUT_GRAD = BENCH_DIRECTIONS, /* the backward pass of a linear map is two */
    BENCH_WEIGHT_GRAD
} bench_direction;

/* Which keys a query sees, and what becomes of the weights. */
typedef enum bench_view {
    BENCH_WHOLE,
    BENCH_CAUSAL,
    BENCH_PADDED,
    BENCH_DROPOUT,
    BENCH_PEAKED, /* q is BENCH_PEAK times as large: most weights are all but zero */
    BENCH_KEPT,   /* forward writes the weights, backward reads them */
    BENCH_DECODE,
    BENCH_VIEWS
} bench_view;

/* Logits spread by about 24: weights from 1 down to where floats end, so that kernels meet
 * numbers below the normal ones. */
enum { BENCH_PEAK = 24 };

/* A scheme as it is measured: "t5", "none+dense". */
typedef struct bench_kind {
    char name[32];
    const locus_scheme_info *scheme;
    int dense; /* 1: with a dense bias [1,H,n,n] */
    int asked; /* 1: by its name                 */
} bench_kind;

typedef struct bench_request {
    bench_kind kinds[BENCH_KINDS];
    uint32_t n[BENCH_LIST], d[BENCH_LIST], threads[BENCH_LIST];
    const char *isas[BENCH_LIST];
    size_t kind_count, n_count, d_count, thread_count, isa_count;
    int directions[BENCH_DIRECTIONS], views[BENCH_VIEWS]; /* 1: measure it */
    uint32_t tokens[BENCH_LIST], widths[BENCH_LIST];      /* of linear maps: rows, inputs and */
    size_t token_count, width_count;                      /* outputs; 0: none is measured     */
    uint32_t heads, batch, rounds;                        /* 0: chosen by shape, ...  */
    locus_dtype dtypes[3];                                /* F32, and what is measured beside it */
    size_t dtype_count;
    int baseline;   /* 1: with yardsticks       */
    int prepared;   /* 1: also with tables packed beforehand */
    int by_tokens;  /* 1: [B,T,H,D] in memory   */
    double dropout; /* of BENCH_DROPOUT         */
    double seconds; /* about, for all rounds    */
} bench_request;

/* Everything that calls of one n, d and type share. */
typedef struct bench_group {
    int64_t batch, heads, n, d;
    locus_dtype dtype;
    int decode;          /* 1: one query                                           */
    int by_tokens;       /* 1: heads lie inside tokens                             */
    locus_problem *base; /* owns q, k, v, dout                                     */
    locus_tensors in;    /* q, k, v                                                */
    locus_tensors grad;  /* of q, k, v                                             */
    locus_tensor dout, sparse_dout, key_mask, peaked_q;
    locus_results results;
    void *blocks[16];
    size_t block_count;
} bench_group;

/* A scheme on the tensors of a group. */
typedef struct bench_input {
    bench_group *group;
    const bench_kind *kind;
    locus_problem *problem; /* owns the scheme's tensors                              */
    locus_tensors in;       /* they and those of the group                            */
    locus_tensors grad;     /* of everything but a dense bias                         */
    void *blocks[LOCUS_TENSOR_COUNT];
    size_t block_count;
    yardstick yardstick;
    int has_yardstick;
} bench_input;

typedef struct bench_times {
    double best[BENCH_ROUNDS]; /* seconds: the fastest call of each round; 0: did not run */
    uint32_t calls;            /* in a round                                              */
} bench_times;

/* One line of the table. */
typedef struct bench_row {
    bench_input *input;        /* NULL for ... */
    const linear_case *linear; /* ... a linear map */
    bench_direction direction;
    bench_view view;
    uint32_t threads;
    const char *isa;
    int prepared;                  /* 1: its calls find their tables packed              */
    int shown;                     /* 0: measured as the plain one of others only        */
    const struct bench_row *plain; /* what time_over_plain compares with: plain attention, or
                                      the same call on floats, or that packs its tables  */
    locus_allocator allocator;     /* counts ...                                         */
    size_t plan_bytes;             /* ... these                                          */
    locus_config config;
    locus_tensors in;
    locus_results results;
    void *blocks[3];
    locus_plan *plan;
    locus_tables *tables, *backward_tables; /* NULL: each call packs its own           */
    size_t workspace_bytes;
    double flops;   /* useful ones of a call */
    double max_err; /* against the oracle    */
    double spent;   /* seconds so far        */
    bench_times times;
    const char *peers[BENCH_PEERS]; /* names of the yardsticks, NULL: none                */
    bench_times peer_times[BENCH_PEERS];
} bench_row;

/* A limit of the machine, measured again and again. */
typedef struct bench_limit {
    const bench_loops *loops;
    uint32_t threads;
    double best, lowest;
    size_t samples;
} bench_limit;

typedef struct bench {
    bench_request request;
    const char *best_isa;
    bench_group *groups;
    bench_input *inputs;
    bench_row *rows;
    linear_case *cases;
    size_t group_count, input_count, row_count, case_count;
    linear_pool pool;
    void *workspace;
    size_t workspace_bytes;
    int has_blas;
    blas blas;
    yardstick_scratch scratch;
    bench_limit peaks[BENCH_LIMITS]; /* GF/s, one per instruction set and thread count    */
    size_t peak_count;
    bench_limit near_read, far_read; /* GB/s from L2 and from memory, one thread          */
    float *buffer;                   /* that they read                                    */
    uint32_t rounds;                 /* that were run                                     */
} bench;

/* ---- request.c ---- */

/* CLI_DONE, or the exit code after a complaint. */
int bench_read_request(bench_request *request, const bench_values *values);

/* What --direction takes; NULL beyond the end. */
const char *bench_direction_at(size_t index);

/* 1: one thread and more are both measured; then all lines are timed on the wall, so that they
 * can be compared. */
int bench_compares_threads(const bench_request *request);

/* ---- kind.c ---- */

/* All kinds, in the order of the schemes; those that act on a layer's input are left out,
 * since at this level they are plain attention. */
size_t bench_list_kinds(bench_kind *kinds, size_t capacity);

/* Options as the benchmark sets them, and the numbers behind them. */
LOCUS_MUST_CHECK locus_status bench_build_problem(locus_problem **p, const bench_group *group,
                                                  const bench_kind *kind, locus_error *error);

/* Useful flops of one call: only the arithmetic of the cheapest exact algorithm known. */
double bench_flops(const bench_row *row);

/* ---- build.c ---- */

LOCUS_MUST_CHECK locus_status bench_build(bench *b, locus_error *error);
void bench_free(bench *b);

/* "t5", "none+causal", "rope+f16" */
char *bench_row_name(char *buffer, size_t capacity, const bench_row *row);
const char *bench_direction_name(bench_direction direction);

/* ---- linear_lines.c ---- */

/* Lines behind those of attention: tokens x inputs x outputs x directions x ... */
size_t bench_linear_rows(const bench_request *request);
LOCUS_MUST_CHECK locus_status bench_build_linear(bench *b);

/* ---- operator_lines.c ---- */

/* Measures and prints; an exit code. */
int bench_operators(const bench_request *request, const bench_values *values);

/* ---- ragged.c ---- */

/* Measures and prints; an exit code. */
int bench_ragged(const bench_request *request, const bench_values *values);

/* ---- linear_lines.c, extents ---- */

/* What a line was measured on. */
typedef struct bench_extents {
    int64_t batch, heads, n, d; /* a linear map: 1, 1, tokens, inputs */
    int64_t outputs;            /* of a linear map, else 0            */
} bench_extents;

bench_extents bench_row_extents(const bench_row *row);

/* "n 512, d 64", "n 512, 768 to 3072" */
char *bench_extents_text(char *buffer, size_t capacity, const bench_extents *e);

/* ---- check.c ---- */

extern const double bench_output_tolerance, bench_gradient_tolerance;

/* Sets row->max_err from sampled queries. */
LOCUS_MUST_CHECK locus_status bench_check(bench *b, bench_row *row, locus_error *error);

/* What the yardstick computed last is what we did; one that computes something else measures
 * nothing. */
int bench_peer_agrees(const bench *b, const bench_row *row);

/* ---- call.c ---- */

LOCUS_MUST_CHECK locus_status bench_forward(bench *b, bench_row *row, locus_error *error);
LOCUS_MUST_CHECK locus_status bench_backward(bench *b, bench_row *row, const locus_tensor *dout,
                                             locus_error *error);

/* ---- run.c ---- */

LOCUS_MUST_CHECK locus_status bench_run(bench *b, locus_error *error);

/* ---- read.c ---- */

/* The yardstick of decoding: its name, what comes before it and before ours, the pass itself. */
const char *bench_read_name(const bench_row *row);
void bench_read_flush(const bench_row *row);
float bench_read(const bench_row *row, const bench_loops *loops);

/* ---- figure.c ---- */

typedef struct bench_figures {
    double ms_median, ms_min, ms_max; /* over the rounds                       */
    double gflops, percent;           /* percent of the best peak              */
    double over_plain;                /* NAN: no plain one to compare with     */
    double speedup;                   /* over one thread, NAN: was not measured */
    const char *baseline;             /* the fastest yardstick, NULL: none     */
    double baseline_over_ours;
    size_t extra_bytes;
    int exact; /* 1: max_err is within the tolerance */
} bench_figures;

void bench_figure(bench_figures *f, const bench *b, const bench_row *row);

/* ---- print.c, svg.c ---- */

void bench_print_text(const bench *b);
void bench_print_markdown(const bench *b);
void bench_print_json(const bench *b);

/* An exit code. */
int bench_write_svg(const bench *b, const char *path);

#endif

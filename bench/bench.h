/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

/* The door of the benchmark: what `locus bench` takes, and the command. */

#include <stdint.h>

#include "cli/cli.h"

typedef struct bench_values {
    const char *schemes, *n, *d, *direction, *isas, *threads, *dtypes, *svg, *mask;
    uint32_t heads, batch, rounds;
    double dropout;
    int causal, padded, peaked, kept, decode, prepared, by_tokens, linear, operators, full,
        no_baseline, json, markdown, mpi, ragged;
} bench_values;

extern const cli_option bench_options[]; /* into bench_values */
extern const cli_example bench_examples[];

/* Measures and prints; an exit code. */
int bench_command(const bench_values *values);

#endif

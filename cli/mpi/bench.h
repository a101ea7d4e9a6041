/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_MPI_BENCH_H
#define CLI_MPI_BENCH_H

#include "cli.h"

/* locus bench --mpi: attention over ranks, against one rank. */
extern const cli_command cmd_mpi_bench;

#endif

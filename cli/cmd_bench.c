/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench: every scheme against the limits of this machine (bench/). */
#include <string.h>

#include "bench/bench.h"
#include "commands.h"
#include "ranks.h"

static int run(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--mpi") == 0) return cli_start_mpi("bench", argc, argv, i);
    bench_values values = {.schemes = NULL};
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_bench, argc, argv, &values, &exit_code)) return exit_code;
    return bench_command(&values);
}

const cli_command cmd_bench = {
    .name = "bench",
    .summary = "measure every scheme against the limits of this machine",
    .description =
        "Measures time, useful GF/s, the share of the peak of multiply-adds that this run itself "
        "measured, the time as a multiple of plain attention and, where OpenBLAS is installed, as "
        "a multiple of the same attention built on it (of the faster of two for plain attention). "
        "Lines are measured in rounds over all of them; a ratio is the median of the ratios within "
        "a round. One thread is measured in processor time, more in time on the wall; with both, "
        "all are on the wall, and so is the speed-up over one thread. The output "
        "of sampled queries is compared with the oracle in the same run: exit code 1 where out or "
        "lse is off by more than 5e-6, or a gradient by more than 2e-5, of the largest value (or "
        "of 1, if that is larger); 24 times that with --peaked, whose logits are as many times larger.",
    .usage = "[--scheme LIST] [-n LIST] [-d LIST] [--isa LIST] [--threads LIST] [...]",
    .examples = bench_examples,
    .options = bench_options,
    .run = run,
};

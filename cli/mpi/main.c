/* SPDX-License-Identifier: Apache-2.0 */
/* locus-mpi: the commands of locus that need MPI, a program of its own so that locus needs none.
 * `locus bench --mpi` starts it. */
#include <mpi.h>

#include "cli.h"
#include "cli/mpi/bench.h"

const cli_command *const cli_commands[] = {&cmd_mpi_bench, NULL};
const cli_option cli_common_options[] = {
    {.name = "help", .letter = 'h', .help = "print this help", .kind = CLI_HELP},
    {.name = NULL},
};
const cli_option cli_program_options[] = {{.name = NULL}};

int main(int argc, char **argv)
{
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS) return CLI_RESOURCES;
    const int code = cmd_mpi_bench.run(argc - 1, argv + 1);
    MPI_Finalize();
    return code;
}

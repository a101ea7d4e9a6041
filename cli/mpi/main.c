/* SPDX-License-Identifier: Apache-2.0 */
/* locus-mpi: the commands of locus that need MPI, a program of its own so that locus needs none,
 * which starts it: `locus bench --mpi`, and `locus lab` where there are several ranks. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli/mpi/bench.h"
#include "cli/mpi/crew.h"
#include "commands.h"
#include "lab.h"
#include "ranks.h"

const cli_command *const cli_commands[] = {&cmd_mpi_bench, &cmd_lab, NULL};
const cli_option cli_common_options[] = {
    {.name = "help", .letter = 'h', .help = "print this help", .kind = CLI_HELP},
    {.name = NULL},
};
const cli_option cli_program_options[] = {{.name = NULL}};

/* All words of the command line, each with its NUL. */
static char *join_words(int argc, char **argv, size_t *bytes)
{
    *bytes = 1;
    for (int i = 1; i < argc; i++) *bytes += strlen(argv[i]) + 1;
    char *text = calloc(*bytes, 1), *at = text;
    for (int i = 1; i < argc && text != NULL; i++) {
        memcpy(at, argv[i], strlen(argv[i]) + 1);
        at += strlen(argv[i]) + 1;
    }
    return text;
}

/* Do all ranks have the arguments of rank 0? Then all go the same way, whatever comes. */
static int have_same_words(const lab_crew *crew, int argc, char **argv)
{
    size_t bytes = 0, first_bytes = 0;
    char *mine = join_words(argc, argv, &bytes), *first = NULL;
    first_bytes = bytes;
    crew->broadcast(crew->context, &first_bytes, sizeof first_bytes);
    first = calloc(first_bytes, 1);
    int same = mine != NULL && first != NULL, all = 0;
    MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all) {
        if (crew->rank == 0) memcpy(first, mine, bytes);
        crew->broadcast(crew->context, first, first_bytes);
        same = bytes == first_bytes && memcmp(mine, first, bytes) == 0;
        MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    free(mine);
    free(first);
    return all;
}

/* A mpirun of another MPI starts processes that do not know each other. */
static int check_launcher(const lab_crew *crew)
{
    int rank = 0;
    const int started = cli_ranks(&rank);
    if (started == crew->ranks || started == 1) return CLI_DONE;
    if (rank != 0) return CLI_DONE;
    return cli_complain(NULL, CLI_RESOURCES,
                        "ranks: found %d, expected %d: is mpirun that of another MPI?", crew->ranks,
                        started);
}

static int run(const lab_crew *crew, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (crew->rank != 0) { /* one rank speaks */
        if (freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
            return CLI_RESOURCES;
    }
    if (!have_same_words(crew, argc, argv))
        return cli_complain(NULL, CLI_USAGE, "ranks: found other arguments than those of rank 0");
    if (crew->ranks > 1) lab_work_with(crew);
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i]->run(argc - 2, argv + 2);
    return cli_complain(NULL, CLI_USAGE, "locus starts this program: mpirun -n 2 locus lab --help");
}

int main(int argc, char **argv)
{
    int level = 0;
    signal(SIGPIPE, SIG_IGN);
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return CLI_RESOURCES;
    const lab_crew crew = mpi_crew();
    int code = check_launcher(&crew);
    if (code == CLI_DONE) code = run(&crew, argc, argv);
    MPI_Finalize();
    return code;
}

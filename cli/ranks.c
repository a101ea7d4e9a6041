/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ranks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* A number from the environment; -1: there is none. */
static long read_number(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (text == NULL || *text == '\0') return -1;
    const long number = strtol(text, &end, 10);
    return *end == '\0' && number >= 0 && number <= INT32_MAX ? number : -1;
}

int cli_ranks(int *rank)
{
    static const struct {
        const char *count, *rank;
    } launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, /* Open MPI          */
                     {"PMI_SIZE", "PMI_RANK"},                         /* MPICH and its kin  */
                     {"SLURM_STEP_NUM_TASKS", "PMIX_RANK"}};           /* srun --mpi=pmix    */
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const long count = read_number(launchers[i].count), number = read_number(launchers[i].rank);
        if (count < 1 || number < 0) continue;
        *rank = (int)number;
        return (int)count;
    }
    *rank = 0;
    return 1;
}

/* PROGRAM beside the program that runs; 0: too long, or not known. */
static int path_beside(char *path, size_t capacity, const char *program)
{
    const ssize_t length = readlink("/proc/self/exe", path, capacity);
    if (length <= 0 || (size_t)length >= capacity) return 0;
    path[length] = '\0';
    char *name = strrchr(path, '/');
    name = name != NULL ? name + 1 : path;
    const size_t room = capacity - (size_t)(name - path);
    if (strlen(program) >= room) return 0;
    memcpy(name, program, strlen(program) + 1);
    return 1;
}

int cli_start_mpi(const char *command, int argc, char **argv, int left_out)
{
    static char program[] = "locus-mpi";
    char path[4096] = "locus-mpi", word[16];
    int rank = 0, count = 0;
    char **words = calloc((size_t)argc + 3, sizeof *words);
    if (words == NULL) return cli_complain(command, CLI_RESOURCES, "out of memory");
    snprintf(word, sizeof word, "%s", command);
    words[count++] = program;
    words[count++] = word;
    for (int i = 0; i < argc; i++)
        if (i != left_out) words[count++] = argv[i];
    if (path_beside(path, sizeof path, program)) execv(path, words);
    free(words);
    cli_ranks(&rank);
    if (rank != 0) return CLI_DONE; /* one rank speaks, and its exit code is that of all */
    return cli_complain(command, CLI_RESOURCES,
                        "ranks of MPI: no program %s (built where MPI is installed)", path);
}

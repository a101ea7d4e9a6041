/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

/* What needs MPI is in locus-mpi, a program beside this one, so that locus needs none. */

/* How many processes an MPI launcher started beside this one, itself included; 1: there is no
 * launcher. *rank: the number of this one. */
int cli_ranks(int *rank);

/* Become `locus-mpi COMMAND ARGUMENTS`, without argument `left_out` (-1: with all). Returns only where
 * that program cannot be started: an exit code, and rank 0 has said why. */
int cli_start_mpi(const char *command, int argc, char **argv, int left_out);

#endif

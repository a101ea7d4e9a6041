/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_MPI_CREW_H
#define CLI_MPI_CREW_H

#include "lab/crew.h"

/* All ranks of MPI_COMM_WORLD. */
lab_crew mpi_crew(void);

#endif

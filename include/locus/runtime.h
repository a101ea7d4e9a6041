/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_RUNTIME_H
#define LOCUS_RUNTIME_H

/* The machine: instruction sets and threads. */

#include <locus/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kernel tables of this build, worst first: "generic", then whatever was built.
 * NULL beyond the end. */
LOCUS_API const char *locus_isa_name(size_t index);

/* 1 when the CPU and the operating system offer what table `name` needs. */
LOCUS_API int locus_isa_available(const char *name);

/* The table a plan takes when its config says `ceiling` (NULL: no ceiling of its
 * own). The environment variable LOCUS_ISA, the only one the library reads, lowers
 * the ceiling further. NULL: `ceiling` or LOCUS_ISA is no name of a table. */
LOCUS_API const char *locus_isa_pick(const char *ceiling);

/* Threads used when a config says 0. 1 in a serial build. The child of a fork computes on one thread
 * whatever a config says, where its parent had called this or computed: the workers of the OpenMP
 * runtime do not survive a fork. Results have the same bits. */
LOCUS_API uint32_t locus_default_threads(void);

/* 1 when built with OpenMP. */
LOCUS_API int locus_has_threads(void);

#ifdef __cplusplus
}
#endif
#endif

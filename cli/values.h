/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

/* What the numbers of a tensor in a file look like, read in pieces of bounded size. */

#include <locus/locus.h>

typedef struct value_counts {
    uint64_t numbers; /* all of them                                  */
    uint64_t nan, plus_inf, minus_inf, subnormal, zero;
    double minimum, maximum; /* of all that are not NaN; NAN when there are none */
    double mean;             /* of the finite ones; NAN when there are none  */
} value_counts;

/* 1 when values_count can read this type. */
int values_known(const char *dtype);

LOCUS_MUST_CHECK locus_status values_count(const locus_file *file, size_t index,
                                           value_counts *counts, locus_error *error);

#endif

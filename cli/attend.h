/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_ATTEND_H
#define CLI_ATTEND_H

/* locus attend: cmd_attend.c runs a case, attend_print.c says what came out. */

#include "cli.h"

typedef struct attend_values {
    const char *path;
    const char *output;
    const char *isa;
    uint32_t threads;
    double tolerance; /* 0: the usual ones */
    int check;
    int oracle;
    int json;
} attend_values;

/* What is said about one result. */
typedef struct attend_summary {
    const char *name;
    uint64_t shape[LOCUS_MAX_RANK];
    size_t rank;
    uint64_t values, bytes, nan; /* how many, how many of them are NaN */
    double minimum, maximum;
    locus_case_difference difference;
} attend_summary;

typedef struct attend_report {
    const attend_values *values;
    const locus_case *loaded;
    locus_file *file; /* that of the case, for what it holds */
    attend_summary *results;
    size_t count;
    size_t expected, failed; /* `want.` tensors, and how many were missed */
} attend_report;

/* Neither --output nor --check: what the file holds, and what comes of it. */
int attend_describes(const attend_values *values);

void attend_print_text(const attend_report *report);
void attend_print_json(const attend_report *report);

#endif

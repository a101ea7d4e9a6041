/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_REPORT_H
#define LOCUS_LAB_REPORT_H

/* What a comparison says: DIR/report.html, DIR/results.csv, DIR/scoreboard.json, and every figure
 * as DIR/figures/NAME.svg and .csv. Nothing is trained. */

#include <locus/status.h>

typedef struct lab_report_options {
    const char *const
        *style;          /* lines of the style sheet, NULL ends them; NULL: only the report's own */
    const char *command; /* that repeats the comparison; NULL: the one that lab.json holds        */
} lab_report_options;

/* `options` may be NULL. */
locus_status lab_report(const char *dir, const lab_report_options *options, locus_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_SCOREBOARD_H
#define LOCUS_LAB_SCOREBOARD_H

/* Published findings, judged by the runs of a comparison.
 *
 * Runs are paired by seed. A finding is reproduced when its sign is right in every seed, the mean
 * difference exceeds twice the pooled standard deviation, and the margin stated with it is kept;
 * contradicted when its sign is wrong in every seed; open otherwise. With one seed the margin alone
 * decides. Ratios and orders are compared, never absolute values. */

#include "lab/results.h"

enum { LAB_CLAIMS = 12, LAB_OURS = 400 };

typedef enum lab_verdict { LAB_NOT_RUN, LAB_OPEN, LAB_CONTRADICTED, LAB_REPRODUCED } lab_verdict;
const char *lab_verdict_text(lab_verdict verdict); /* "not run", "open", ... */

typedef struct lab_claim {
    const char *id, *claim, *published, *rule; /* rule: what counts as reproduced here */
    lab_verdict verdict;
    char ours[LAB_OURS]; /* what was found, in numbers */
} lab_claim;

void lab_scoreboard(lab_claim claims[LAB_CLAIMS], const lab_results *results);
void lab_scoreboard_json(const lab_claim claims[LAB_CLAIMS], locus_text *out);

#endif

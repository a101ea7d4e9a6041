/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STOPWATCH_H
#define CLI_STOPWATCH_H

/* Processor time of one trial against another, turn by turn so that a busy machine slows
 * both alike. Both must run on one thread: only the calling thread is measured. */

#include "trial.h"

typedef struct pace {
    double forward, both;             /* seconds: forward; forward + backward           */
    double forward_ratio, both_ratio; /* against the other trial                       */
} pace;

/* Turns until `seconds` have passed, but a few at least and some at most. */
LOCUS_MUST_CHECK locus_status pace_measure(pace *result, trial *measured, trial *against,
                                           double seconds, locus_error *error);

#endif

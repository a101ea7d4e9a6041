/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

/* --option NAME=VALUE of a scheme, apart and checked against its declaration. */

#include "cli.h"
#include <locus/locus.h>
#include <locus/problem.h>

enum { SETTINGS = sizeof((cli_pairs *)NULL)->text / sizeof(char *), SETTING_NAME = 64 };

typedef struct settings {
    char names[SETTINGS][SETTING_NAME];
    locus_problem_setting list[SETTINGS + 1]; /* for locus_problem_request; names live beside it */
} settings;

/* Apart, not yet checked; values live in `pairs`. */
void settings_split(settings *s, const cli_pairs *pairs);
/* An exit code. */
int settings_read(settings *s, const char *command, const char *scheme, uint32_t level,
                  const cli_pairs *pairs);

#endif

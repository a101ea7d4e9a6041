/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PRECISION_H
#define CLI_PRECISION_H

/* --precision NAME, of every command that opens a model. */

#include <stddef.h>
#include <stdint.h>

/* What a shell offers. */
const char *precision_at(size_t index);

/* *precision of a name; NULL: exact. An exit code. */
int precision_read(const char *command, const char *name, uint32_t *precision);

/* An exit code: what a model was opened in is not what was asked for by name: `exact`, of a folder that
 * holds integers. */
int precision_check(const char *command, const char *folder, const char *name, uint32_t found);

/* Its entry in a table of options; FIELD as the command has it. */
#define PRECISION_OPTION(field)                                                                    \
    {                                                                                              \
        .name = "precision", .argument = "NAME",                                                   \
        .help = "exact (float32), i16 or int8: see docs/precision.md", .kind = CLI_LIST,           \
        .value = precision_at, field                                                               \
    }

#endif

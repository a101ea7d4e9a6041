/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_INSPECT_H
#define CLI_INSPECT_H

/* locus inspect: cmd_inspect.c for a tensor file, inspect_model.c for the folder of a model. */

#include <stdint.h>

/* An exit code. */
int inspect_model(const char *folder, uint32_t precision, int as_json);

#endif

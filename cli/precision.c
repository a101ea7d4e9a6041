/* SPDX-License-Identifier: Apache-2.0 */
#include "precision.h"

#include <locus/model.h>
#include <string.h>

#include "cli.h"
#include "text.h"

const char *precision_at(size_t index) { return locus_precision_name((uint32_t)index); }

int precision_read(const char *command, const char *name, uint32_t *precision)
{
    char quoted[160];
    *precision = LOCUS_EXACT;
    if (name == NULL) return CLI_DONE;
    for (uint32_t i = 0; locus_precision_name(i) != NULL; i++)
        if (strcmp(locus_precision_name(i), name) == 0) {
            *precision = i;
            return CLI_DONE;
        }
    text_quote(quoted, sizeof quoted, name);
    return cli_complain(command, CLI_USAGE, "--precision: expected exact, i16 or int8, got \"%s\"",
                        quoted);
}

int precision_check(const char *command, const char *folder, const char *name, uint32_t found)
{
    char quoted[160];
    if (name == NULL || strcmp(name, locus_precision_name(found)) == 0) return CLI_DONE;
    return cli_complain(command, CLI_REFUSED, "%s: holds %s, not %s",
                        text_quote(quoted, sizeof quoted, folder), locus_precision_name(found),
                        name);
}

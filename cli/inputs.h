/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

/* The texts that a command is given: arguments, or the lines of a file as they come. */

#include "cli.h"

typedef struct text_source {
    const char *command; /* for messages */
    const cli_words *texts;
    const char *pair; /* second segment of each; NULL: none, but a tab in a line begins one */
    const char *file; /* NULL: the texts; "-": standard input */
    int plain;
    uint32_t truncate;
    /* Each input in turn; an exit code that is not CLI_DONE ends the walk. `progress` is the part
     * of the file that has been read, in [0, 1], negative where it has no end. */
    int (*take)(void *to, const locus_text_input *input, double progress);
    int (*idle)(void *to); /* nothing to read at the moment; NULL: nothing to do then */
    void *to;
} text_source;

int inputs_walk(const text_source *source);

#endif

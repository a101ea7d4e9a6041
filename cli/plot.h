/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

/* locus plot, file by file:
 *     cmd_plot.c     options, tokens, refusals; the picture itself is the library's
 *     plot_model.c   the pictures of a trained model
 *     plot_write.c   SVG, CSV, JSON, letters
 *     plot_png.c     PNG */

#include "cli.h"

#define PLOT_NONE UINT32_MAX /* a head or window that was not given */

typedef struct plot_values {
    const char *scheme, *what, *tokens, *text,
        *path;                   /* text: a file of tokens, or the text for a model; path: a case */
    uint32_t length, heads, dim; /* 0: not given                         */
    uint32_t head, window, seed;
    uint32_t layer;                  /* of a model, */
    const char *tokenizer;           /* of the model, where it is not in its folder  */
    const char *stack, *decoder_ids; /* and which of its attentions on what */
    cli_pairs options;
    int causal;
    const char *output, *theme;
    uint32_t width;
    int csv, json;
} plot_values;

/* scheme is the folder of a model; an exit code. */
int plot_model(const plot_values *values);

/* Where and how `values` say; exit codes. */
int plot_write(const plot_values *values, const locus_figure *figure);
int plot_write_png(const locus_figure *figure, const locus_render *render, const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

/* locus plot, file by file:
 *     cmd_plot.c       options, the kinds of picture, which one a scheme gets by itself
 *     plot_call.c      the call behind a picture: made up, or a case file
 *     plot_picture.c   panels with the numbers they borrow
 *     plot_input.c     encoding, layouts, similarity: what is added to the input
 *     plot_rule.c      distance, rows: what becomes of m - n
 *     plot_curve.c     bias, angles, decay: functions of the distance
 *     plot_map.c       attention, variants, terms, position: functions of the pair
 *     plot_write.c     SVG, PNG, CSV, JSON, letters
 * All numbers are double: scheme rules and the explainer. */

#include "cli.h"
#include "problem.h"
#include "tokens.h"

enum {
    PLOT_LENGTH = 1024, /* positions at most                   */
    PLOT_TOKENS = 256,  /* with names                          */
    PLOT_PANELS = 24,
    PLOT_SERIES = 96, /* of all panels together              */
    PLOT_TEXT = 320,
    PLOT_HEADS = 8, /* of the curves and maps of a picture */
};
#define PLOT_NONE UINT32_MAX /* a number that was not given */

typedef struct plot_values {
    const char *scheme, *what, *tokens, *text, *path; /* text: a file of tokens, path: a case */
    uint32_t length, heads, head, dim, window, seed;
    cli_pairs options;
    int causal;
    const char *output, *theme;
    uint32_t width;
    int csv, json;
} plot_values;

/* Nothing given. */
#define PLOT_USUAL                                                                                 \
    {                                                                                              \
        .length = PLOT_NONE, .heads = PLOT_NONE, .head = PLOT_NONE, .dim = PLOT_NONE,              \
        .window = PLOT_NONE, .seed = 2017                                                          \
    }

/* ---- panels and their numbers ---- */

typedef struct picture {
    const plot_values *values;
    const locus_scheme_info *scheme;
    locus_panel panels[PLOT_PANELS];
    size_t panel_count;
    locus_series series[PLOT_SERIES];
    size_t series_count;
    size_t across; /* panels side by side, 0: any  */
    int pairs;     /* 1: some panel has a query and a key axis */
    int made_up;   /* 1: some numbers are random   */
    char title[PLOT_TEXT], description[2 * PLOT_TEXT], caption[3 * PLOT_TEXT];
    void **blocks; /* everything that is freed with the picture */
    size_t block_count, block_room;
    int failed; /* 1: out of memory             */
} picture;

/* Zeroed numbers, or a text, that live as long as the picture; NULL: no memory, remembered. */
double *picture_numbers(picture *p, size_t count);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
const char *
picture_text(picture *p, const char *format, ...);
const char *const *picture_names(picture *p, const token_list *tokens); /* NULL for none */
void picture_free(picture *p);

/* The next panel. A picture with too many fails. */
locus_panel *picture_panel(picture *p, locus_panel_kind kind, const char *title);
/* A panel of pairs: query down, key across, tokens where there are some. */
locus_panel *picture_map(picture *p, const char *title, const double *values, int64_t queries,
                         int64_t keys, int64_t offset, const char *const *names);
/* The next curve of `panel`, which must be the newest one. */
void picture_curve(picture *p, locus_panel *panel, const char *name, const double *x,
                   const double *y, size_t count, int steps);

/* ---- the call behind a picture ---- */

/* What a kind of picture asks for where the command line says nothing. */
typedef struct plot_wish {
    uint32_t level;  /* 0: where the scheme acts                                     */
    int64_t length;  /* 0: the built-in sentence                                     */
    int64_t dim;     /* 0: 16                                                        */
    int64_t stretch; /* positions made per position asked for, plus one; 0: as asked */
    int masks;       /* 1: causal and window are these, whatever the command line says */
    int causal;
    uint32_t window;     /* PLOT_NONE: none                                          */
    const char *without; /* tensor to leave out                                      */
    int ones;            /* 1: q and k are all ones                                  */
} plot_wish;

typedef struct plot_call {
    const plot_values *values;
    locus_case *loaded; /* the one or */
    problem problem;    /* the other  */
    float *ones;
    uint32_t level;
    const locus_config *config;
    const locus_tensors *in;
    token_list tokens; /* count 0: rows have numbers, no words */
    locus_explainer *explainer;
    locus_explainer_info info;
} plot_call;

/* Exit codes; on failure there is nothing to close. */
int plot_open(plot_call *call, const plot_values *values, const plot_wish *wish);
void plot_close(plot_call *call);
int plot_fail(const plot_values *values, locus_status status, const locus_error *error);

/* ---- the kinds ---- */

typedef struct plot_kind {
    const char *name, *title, *help;
    int (*applies)(const locus_scheme_info *scheme);
    int (*draw)(picture *p); /* an exit code */
} plot_kind;

extern const plot_kind plot_encoding, plot_layouts, plot_similarity, plot_distance, plot_rows,
    plot_bias, plot_angles, plot_decay, plot_attention, plot_variants, plot_terms, plot_position;

/* Has the scheme an option, a tensor of that name? */
int plot_has_option(const locus_scheme_info *scheme, const char *name);
int plot_has_tensor(const locus_scheme_info *scheme, const char *name);

/* ---- the whole picture ---- */

/* Everything that `values` ask for; an exit code. To be freed in any case. */
int plot_make(picture *p, const plot_values *values);
locus_figure plot_figure(const picture *p); /* borrows from the picture */

int plot_write(const picture *p);
/* plot_png.c: an exit code. */
int plot_write_png(const locus_figure *figure, const locus_render *render, const char *path);

#endif

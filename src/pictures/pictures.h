/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PICTURES_PICTURES_H
#define LOCUS_PICTURES_PICTURES_H

/* Pictures of schemes, file by file:
 *     picture.c   the kinds of picture, which one a scheme gets by itself, title and caption
 *     call.c      the call behind a picture: made up, or a case file
 *     panels.c    panels with the numbers they borrow
 *     input.c     encoding, layouts, similarity: what is added to the input
 *     rule.c      distance, rows: what becomes of m - n
 *     curve.c     bias, angles, decay: functions of the distance
 *     map.c       attention, variants, terms, position: functions of the pair
 *     ink.c       one colour per term of a score */

#include <locus/case.h>
#include <locus/explain.h>
#include <locus/picture.h>

#include "core/compiler.h"

enum {
    PICTURE_PANELS = 24,
    PICTURE_SERIES = 96, /* of all panels together              */
    PICTURE_TEXT = 320,
    PICTURE_HEADS = 8, /* of the curves and maps of a picture */
};

/* ---- panels and their numbers ---- */

struct locus_picture {
    locus_figure figure;
    const locus_allocator *allocator;
    const locus_scheme_info *scheme;
    locus_panel panels[PICTURE_PANELS];
    size_t panel_count;
    locus_series series[PICTURE_SERIES];
    size_t series_count;
    size_t across; /* panels side by side, 0: any  */
    int pairs;     /* 1: some panel has a query and a key axis */
    int made_up;   /* 1: some numbers are random   */
    char title[PICTURE_TEXT], description[2 * PICTURE_TEXT], caption[3 * PICTURE_TEXT];
    char options[PICTURE_TEXT]; /* those of its calls, "buckets=8, max_distance=16" */
    int options_differ;         /* from call to call: not worth saying              */
    void **blocks;              /* everything that is freed with the picture */
    size_t block_count, block_room;
    int out_of_memory, too_much; /* what went wrong on the way */

    /* While it is made, NULL afterwards. */
    const locus_picture_request *values;
    locus_case *loaded; /* NULL: calls are made up */
    locus_error *error;
};

/* Zeroed numbers, or a text, that live as long as the picture; NULL, "": no memory, remembered. */
double *picture_numbers(locus_picture *p, size_t count);
const char *picture_text(locus_picture *p, const char *format, ...) LOCUS_PRINTF(2, 3);
int picture_failed(const locus_picture *p);
void picture_let_go(locus_picture *p); /* of the blocks */

/* The next panel. A picture with too many fails. */
locus_panel *picture_panel(locus_picture *p, locus_panel_kind kind, const char *title);
/* A panel of pairs: query down, key across, tokens where there are some. */
locus_panel *picture_map(locus_picture *p, const char *title, const double *values, int64_t queries,
                         int64_t keys, int64_t offset, const char *const *names);
/* The next curve of `panel`, which must be the newest one. */
void picture_curve(locus_picture *p, locus_panel *panel, const char *name, const double *x,
                   const double *y, size_t count, int steps);

/* ---- the call behind a picture ---- */

/* What a kind of picture asks for where the request says nothing. */
typedef struct picture_wish {
    uint32_t level;  /* 0: where the scheme acts                                     */
    int64_t length;  /* 0: the built-in sentence                                     */
    int64_t dim;     /* 0: 16                                                        */
    int64_t stretch; /* positions made per position asked for, plus one; 0: as asked */
    int masks;       /* 1: causal and window are these, whatever the request says    */
    int causal;
    int64_t window;      /* -1: none                                                 */
    const char *without; /* tensor to leave out                                      */
    const locus_problem_setting *settings; /* instead of the request's; NULL: those  */
    int ones; /* 1: q and k are all ones                                  */
} picture_wish;

typedef struct picture_call {
    locus_picture *picture;
    locus_problem *problem; /* NULL for a case */
    float *ones;
    uint32_t level;
    const locus_config *config;
    const locus_tensors *in;
    const char *const *names; /* NULL: rows have numbers, no words */
    size_t name_count;
    locus_explainer *explainer;
    locus_explainer_info info;
} picture_call;

/* On failure there is nothing to close. */
locus_status picture_open(picture_call *call, locus_picture *p, const picture_wish *wish);
void picture_close(picture_call *call);
/* How far a picture of the call's rule over distances goes: beyond where it levels off. */
int64_t picture_reach(const picture_call *call);
/* What a call was refused for, behind the scheme that was asked for or the file it is from. */
locus_status picture_judge(locus_picture *p, locus_status status);
/* Names that live as long as the picture; NULL for none. */
const char *const *picture_names(locus_picture *p, const picture_call *call);

/* ---- the kinds ---- */

typedef struct picture_kind {
    locus_picture_kind about;
    int (*applies)(const locus_scheme_info *scheme);
    locus_status (*draw)(locus_picture *p);
} picture_kind;

extern const picture_kind picture_encoding, picture_layouts, picture_similarity, picture_distance,
    picture_rows, picture_bias, picture_angles, picture_decay, picture_attention, picture_variants,
    picture_terms, picture_position;

/* Has the scheme an option, a tensor of that name? */
int picture_has_option(const locus_scheme_info *scheme, const char *name);
int picture_has_tensor(const locus_scheme_info *scheme, const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

/* The page of locus demo: one HTML file that needs no network and no script.
 *     page.c            the frame: head, contents, lessons, table, foot
 *     page_style.c      how it looks, light and dark
 *     page_lesson.c     one lesson: formula, sentences, picture, code, cost
 *     page_table.c      measured numbers
 *     page_text_*.c     what the lessons say
 *     page_math.h       the words that formulas are written in */

#include "demo.h"

enum { PAGE_SENTENCES = 5 };

/* Texts are HTML, but for `said`, `code` and what names a picture. */
typedef struct page_lesson {
    const char *id;      /* of the section; NULL ends a list                  */
    const char *chapter; /* not NULL: a heading above this lesson, which is
                            then the first of several in that chapter         */
    const char *lead;    /* under that heading                                */
    int part;            /* 1: in the chapter that a lesson before began      */
    const char *title;
    const char *formula;                   /* MathML, the inside of <math>   */
    const char *said;                      /* the same as plain text         */
    const char *because;                   /* what failed before; NULL: none */
    const char *sentences[PAGE_SENTENCES]; /* they teach                     */
    const char *scheme, *what;             /* of the picture                 */
    const char *options[3];                /* NAME=VALUE                     */
    uint32_t heads;                        /* 0: the usual number            */
    const char *caption;
    const char *code;     /* C; all of them in a row make one source file    */
    const char *python;   /* three tokens of two channels, with what it prints;
                             all of them in a row make one program           */
    const char *costs[3]; /* schemes whose numbers belong here               */
    const char *papers;   /* authors, year, title                            */
} page_lesson;

extern const page_lesson page_absolute[], page_relative[], page_terms[], page_successors[];

/* Draw and write everything; an exit code. */
int page_write(const demo *d, const char *path);

/* ---- pieces ---- */

extern const char *const page_style[]; /* lines of CSS; NULL ends them */

void page_escape(FILE *out, const char *text); /* plain text inside HTML */

/* The two drawings of a lesson's picture, for wide and for narrow screens. */
typedef struct page_drawing {
    locus_text wide, narrow;
} page_drawing;
int page_draw(page_drawing *drawing, const page_lesson *lesson); /* an exit code */
void page_drawing_free(page_drawing *drawing);

void page_print_lesson(FILE *out, const demo *d, const page_lesson *lesson,
                       const page_drawing *drawing);

/* Some schemes, or with NULL all of them with their terms. */
void page_print_costs(FILE *out, const demo *d, const char *label, const char *const *schemes);

#endif

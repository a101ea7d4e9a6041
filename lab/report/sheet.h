/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_REPORT_SHEET_H
#define LOCUS_LAB_REPORT_SHEET_H

/* The page under construction, and its parts, one file each:
 *     sheet.c      head, sections, figures, foot
 *     answer.c     the answer, as sentences and as a table
 *     lengths.c    curves and heat maps beyond the trained length, controls, look-back
 *     texts.c      bits per byte by context and by index
 *     learning.c   learning curves, steps to a target
 *     learned.c    what the checkpoints hold, drawn by the picture code
 *     variants.c   clip sweep, terms, memory, random positions
 *     cost.c       time, memory, parameters
 *     verdicts.c   the scoreboard, mean reciprocal rank, all seeds, how it was run */

#include "lab/ranks.h"
#include "lab/report.h"
#include "lab/report/chart.h"
#include "lab/scoreboard.h"
#include "plot/text.h"

typedef struct lab_sheet {
    const lab_results *results;
    const lab_claim *claims;
    const lab_ranks *ranks;
    const lab_report_options *options;
    plot_text html;
    locus_text text;
    locus_status status; /* the first failure; what follows does nothing */
    locus_error *error;
    int sections, figures;
} lab_sheet;

/* printf into the page; text from files goes through sheet_escape. */
void sheet_print(lab_sheet *sheet, const char *format, ...) LOCUS_PRINTF(2, 3);
void sheet_escape(lab_sheet *sheet, const char *text);

void sheet_head(lab_sheet *sheet);
void sheet_foot(lab_sheet *sheet);
/* <section id="ID"> with a heading, and its end. */
void sheet_section(lab_sheet *sheet, const char *id, const char *title);
void sheet_section_end(lab_sheet *sheet);

/* Something that opens on demand. */
void sheet_details(lab_sheet *sheet, const char *title);
void sheet_details_end(lab_sheet *sheet);

/* Put a figure into the page, for wide and for narrow screens, and beside it into the folder:
 * figures/NAME.svg and .csv. Frees the chart; an empty one leaves nothing. */
void sheet_chart(lab_sheet *sheet, const char *name, lab_chart *chart, const char *caption);
void sheet_figure(lab_sheet *sheet, const char *name, const locus_figure *figure,
                  const char *caption);

/* The parts; each writes nothing where nothing of it was run. */
void sheet_answer(lab_sheet *sheet);
void sheet_lengths(lab_sheet *sheet);
void sheet_controls(lab_sheet *sheet);
void sheet_lookback(lab_sheet *sheet);
void sheet_texts(lab_sheet *sheet);
void sheet_masked(lab_sheet *sheet);
void sheet_learning(lab_sheet *sheet);
void sheet_learned(lab_sheet *sheet);
void sheet_variants(lab_sheet *sheet);
void sheet_cost(lab_sheet *sheet);
void sheet_scoreboard(lab_sheet *sheet);
void sheet_ranks(lab_sheet *sheet);
void sheet_seeds(lab_sheet *sheet);
void sheet_machine(lab_sheet *sheet);

#endif

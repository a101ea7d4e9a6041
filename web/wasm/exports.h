/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_WEB_EXPORTS_H
#define LOCUS_WEB_EXPORTS_H

/* What the page calls. A text goes in through the buffer of page_buffer and comes out of
 * page_text; numbers come out as pointers into the module's memory, valid until the next
 * call that is not a plain getter. Functions that may fail return 0 for done; else page_text
 * is one line that says what was wrong.
 *
 * The build exports every function that is declared here. */

#include <stddef.h>
#include <stdint.h>

enum { PAGE_SLOTS = 4 }; /* two schemes side by side, the lessons, tables of published models */

char *page_buffer(size_t bytes); /* room for a text and its NUL; NULL: no memory */
const char *page_text(void);
size_t page_text_bytes(void);

void page_random(uint32_t low, uint32_t high);  /* a seed for the names of files */
const char *page_version(void);                 /* ends with NUL                 */
uint32_t page_ink(uint32_t ink, uint32_t dark); /* 0xRRGGBB of a LOCUS_INK_      */

int page_schemes(void); /* text: JSON, every scheme as it is declared */

int page_trained(size_t bytes); /* the buffer is the file of trained layers */

/* The buffer describes a call, a line each: KEY VALUE (call.c has the keys). */
int page_call(uint32_t slot);
int page_describe(uint32_t slot); /* text: JSON, sizes and terms of the call */

/* Terms, scores and weights of one head; terms whose bit in `off` is set do not count. */
int page_explain(uint32_t slot, uint32_t head, uint32_t off);
const double *page_terms(uint32_t slot);    /* [terms][T][T]                          */
const double *page_score(uint32_t slot);    /* [T][T], -inf where hidden              */
const double *page_weight(uint32_t slot);   /* [T][T]                                 */
const uint8_t *page_visible(uint32_t slot); /* [T][T]                                 */

/* Rows that serve the distances first .. first + count - 1 (m - n): of relative tables, then
 * of `bias`; -1: none. NULL: refused. */
const double *page_rows(uint32_t slot, int32_t first, uint32_t count);
/* Frequency and logarithm of the gain of each pair; page_describe tells how many. */
const double *page_turns(uint32_t slot);

/* p_m . p_n of a LOCUS_TABLE_ of sinusoids of width 64, [count][count], count <= 64. */
const double *page_similarity(uint32_t count, int32_t table);

/* out [H][T][Dv], then lse [H][T], of locus_forward itself (a layer: out [T][E]). */
const float *page_forward(uint32_t slot);
uint32_t page_forward_count(uint32_t slot);

/* text: what was explained last as a figure; format: 0 SVG, 1 CSV. */
int page_figure(uint32_t slot, uint32_t format);
int page_case(uint32_t slot); /* text: the bytes of a case file with this call */

#endif

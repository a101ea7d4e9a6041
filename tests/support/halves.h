/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_HALVES_H
#define LOCUS_TESTS_HALVES_H

/* A problem's call on tensors of half precision, to be held to the same call on floats. */

#include <stddef.h>

#include "support/problem.h"

uint16_t halves_from_float(float value, locus_dtype type);
float halves_to_float(uint16_t half, locus_dtype type);

/* A tensor of halves with a gap behind every row, its memory begins at an odd place and ends with
 * the last row: what reads or writes beyond it, a sanitizer sees. */
typedef struct halves {
    locus_tensor view;
    uint16_t *memory;
    size_t count;
} halves;

/* Of the shape of a dense tensor, with marks in it. */
halves halves_new(const locus_tensor *shape, locus_dtype type);

/* Round the dense floats of `t` to halves, and copy those. */
halves halves_of(const locus_tensor *t, locus_dtype type);

/* The place of element `index` of the dense tensor of the same shape. */
size_t halves_place(const locus_tensor *view, int64_t index);

/* 1 where the halves are the floats of `t`, rounded, and nothing else was written. They are marks
 * again then. */
int halves_are_rounded(const halves *h, const locus_tensor *t);

/* All tensors of a problem that may be of half precision, with the numbers of the F32 side, which
 * are rounded to those. way 0: F16, 1: BF16, 2 to 4: both and F32, turn and turn about. Gradients
 * are of the type of their tensor, or (way 2 to 4) BF16. */
typedef struct half_call {
    locus_tensors in, grad;
    halves inputs[LOCUS_TENSOR_COUNT], gradients[LOCUS_TENSOR_COUNT];
    halves out, dout;
} half_call;
void half_call_new(half_call *c, test_problem *p, int way);
void half_call_free(half_call *c);

#endif

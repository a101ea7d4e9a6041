/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_COMPARE_H
#define LOCUS_TESTS_COMPARE_H

/* Compare arrays the way the golden files are judged:
 *     |got - want| <= tolerance * max(1, largest finite |want|)
 * A NaN on one side only, infinities that differ, or an infinity against a number
 * are never within tolerance. */

#include <stddef.h>
#include <stdint.h>

#include <locus/tensor.h>

typedef struct comparison {
    size_t compared;  /* elements looked at                                               */
    double scale;     /* max(1, largest finite |want|)                                    */
    double worst;     /* largest |got - want| / scale; INFINITY where a value is special
                         on one side only or infinities differ                            */
    size_t at;        /* the element with the worst error (SIZE_MAX: compared == 0)       */
    double got, want; /* the values there                                                 */
} comparison;

/* Start, then add arrays (several calls may make up one comparison, e.g. the rows of
 * a strided tensor). The scale comes from all of `want`, so give it first. */
double comparison_scale_f64(const double *want, size_t count);
double comparison_scale_f32(const float *want, size_t count);
comparison comparison_start(double scale);
void comparison_add(comparison *c, double got, double want);

/* Whole arrays at once. */
comparison compare_f32(const float *got, const float *want, size_t count);
comparison compare_f64(const double *got, const double *want, size_t count);
comparison compare_f32_f64(const float *got, const double *want, size_t count);

/* Views of any type and stride, walked in the order of their indices. Views whose
 * shapes differ compare no element at all. */
comparison compare_tensors(const locus_tensor *got, const locus_tensor *want);

/* 1 when exactly `expected` (> 0) elements were compared and all were within
 * tolerance. `text`, if not NULL, receives one line that describes the comparison. */
int comparison_passes(const comparison *c, size_t expected, double tolerance, char *text,
                      size_t capacity);

#endif

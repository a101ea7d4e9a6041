/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_ACTIVATION_H
#define LOCUS_NN_ACTIVATION_H

/* Activations of rows, plain and gated (GLU, GEGLU, SwiGLU):
 *     y = a(x) gate         dx = dy gate a'(x),  dgate = dy a(x)
 * gate NULL: 1. See locus_activation for the functions; relu'(0) = 0. */

#include "nn/rows.h"

/* y may be x or gate. */
void locus_activation_forward(const locus_workers *workers, locus_activation activation,
                              const locus_rows *y, const locus_rows *x, const locus_rows *gate,
                              int64_t width);

/* dx and dgate may be dy, x or gate; dgate is NULL where gate is. */
void locus_activation_backward(const locus_workers *workers, locus_activation activation,
                               const locus_rows *dx, const locus_rows *dgate, const locus_rows *dy,
                               const locus_rows *x, const locus_rows *gate, int64_t width);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_QUANTIZED_H
#define LOCUS_NN_QUANTIZED_H

/* Linear maps y = x W^T + b in integers, forward: see kernels/quant.h for what is computed. The bits
 * depend on nothing but the row, the weights and the kind: not on the instruction set, the threads,
 * the other rows, or blocks. A row that cannot be quantized is computed in float, by the weights as
 * they were rounded: NaN and infinities go their way. Nothing is allocated. */

#include "kernels/quant.h"
#include "nn/linear.h"

enum { LOCUS_QUANT_MOST_INPUTS = 16384 };

/* W quantized once, shared by any number of calls and threads. The memory is the caller's. */
struct locus_quantized {
    const locus_quant_kernels *kernels;
    locus_quant_kind kind;
    int64_t inputs, outputs;
    int64_t padded;         /* inputs */
    const uint8_t *weights; /* panels, one behind the other */
    const float *scales;    /* [panels][groups][16] */
};

/* Bytes of memory for it. Returns 0 when the size does not fit, else 1. */
int locus_quantized_bytes(uint64_t *bytes, locus_quant_kind kind, int64_t inputs, int64_t outputs);

/* 1: W [outputs, inputs], unit stride along the inputs, can be quantized: at most
 * LOCUS_QUANT_MOST_INPUTS inputs, and no number beyond 1e30, NaN or infinity. */
int locus_quantizes(const locus_tensor *weight);

/* Quantize such a W. `memory` has locus_quantized_bytes and stays in use as long as the handle. */
locus_quantized locus_quantize_weight(const locus_quant_kernels *kernels, locus_quant_kind kind,
                                      const locus_tensor *weight, void *memory, uint32_t threads);

/* Bytes of an integer in a file: 2 of I16, else 1. */
int locus_quantized_stored_bytes(locus_quant_kind kind);

/* Integers of an output in a file: the inputs; padded ones of H8. */
int64_t locus_quantized_columns(locus_quant_kind kind, int64_t inputs);

/* Such a W in the order of its rows, and back: integers [outputs][columns], int16 of I16, else int8;
 * scales [outputs][groups of columns]. `memory` as of locus_quantize_weight. */
void locus_quantized_to(const locus_quantized *q, void *integers, float *scales);
locus_quantized locus_quantized_from(const locus_quant_kernels *kernels, locus_quant_kind kind,
                                     int64_t inputs, int64_t outputs, const void *integers,
                                     const float *scales, void *memory);

/* to[i] = the weights of output `output` as floats, as they were rounded, i < inputs. */
void locus_quantized_weights(const locus_quantized *q, int64_t output, float *to);

/* As locus_linear_forward with f->quantized: the workspace is the same. */
void locus_quantized_forward(const locus_linear *f, const locus_row_batch *y,
                             const locus_row_batch *x, const locus_linear_end *end);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_NN_OPERAND_H
#define LOCUS_TESTS_NN_OPERAND_H

/* Rows with a gap behind each of them, for the tests of src/nn. */

#include "nn/rows.h"

typedef struct operand {
    locus_rows rows;
    int64_t width;
    size_t floats; /* of the whole buffer */
} operand;

/* Gaps of `pad` floats hold a value that operand_expect looks for afterwards. */
operand operand_new(int64_t count, int64_t width, int64_t pad);
void operand_free(operand *o);

/* Uniform in low .. high: the numbers of `stream`. */
void operand_fill(operand *o, uint64_t stream, double low, double high);

static inline float *operand_row(const operand *o, int64_t i) { return locus_row(&o->rows, i); }

int operand_same_bits(const operand *a, const operand *b);

/* Memory for `count` numbers, zeroed; ends the program when there is none. */
double *new_doubles(int64_t count);
float *new_floats(int64_t count);

/* CHECKs that got is as near to want as the plain algorithm in float, `plain`, times `factor`:
 * largest errors, over max(1, the largest |want|); a plain error below 2^-23 counts as that.
 * Special values must agree. Gaps must be intact. */
void operand_expect(const char *name, const operand *got, const double *want, const float *plain,
                    double factor);

/* The same for [count] numbers without gaps. */
void floats_expect(const char *name, const float *got, const double *want, const float *plain,
                   int64_t count, double factor);

/* Calls test(kernels) for every table that runs here; the others are counted as skipped. */
void for_each_table(void (*test)(const locus_kernels *kernels));

#endif

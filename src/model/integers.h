/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_INTEGERS_H
#define LOCUS_MODEL_INTEGERS_H

/* Weights as integers in a file (docs/precision.md has the format). A value that operators read as
 * integers is stored under the name of the tensor that it is made of:
 *     NAME.integers, NAME.scales       of a map: [outputs, inputs], [outputs, groups]; behind a transform, inputs
 *                                  padded to 128
 *     NAME.words, NAME.word_scales     of a table: [rows, width], [rows, groups]
 * A tensor whose numbers nothing needs stands there without them: its shape behind a 0. */

#include "model/program.h"

#define INTEGERS_KEY "locus.integers"
enum { INTEGERS_NAME = 512 };

/* What is stored of one value. */
typedef struct stored_integers {
    char integers[INTEGERS_NAME], scales[INTEGERS_NAME];
    locus_quant_kind kind;
    int words;         /* 1: a table, which is not multiplied */
    const char *dtype; /* of the integers */
    uint64_t rows, columns, group, groups;
} stored_integers;

/* Of input `input` of o: 0 where it stays in float, or has no name in the first files of a model. */
int integers_describe(const program *p, const op *o, int input, stored_integers *s);

/* 1: the checkpoint has integers of it. */
int integers_stored(const program *p, const op *o, int input);

/* wanted[root]: 1 where an operator needs its numbers as floats. */
void integers_wanted(const program *p, char *wanted);

/* What the checkpoint says it holds, for all that is read from now on; a precision that is another
 * one than that which was asked for is refused. */
locus_status integers_begin(program *p, model_checkpoint *c, locus_error *error);

/* Whether both tensors are there as *s says: before memory is taken. */
locus_status integers_check(const program *p, const stored_integers *s, locus_error *error);

/* Both, into memory of that size. Refused: numbers that no conversion writes. */
locus_status integers_read(const program *p, const stored_integers *s, void *integers,
                           float *scales, locus_error *error);

/* A tensor without its numbers, of which floats are asked for. */
locus_status integers_floats(const program *p, int tensor, locus_error *error);

/* convert.c: the weights of a program, which was opened in integers, to a file of that format. */
locus_status integers_write(const program *p, const char *path, locus_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_KERNELS_QUANT_H
#define LOCUS_KERNELS_QUANT_H

/* The contracts of the kernels of linear maps in integers, compiled once per instruction set. Sums of
 * integers are exact, and the few operations on floats around them are the same on every
 * instruction set, none of them fused: so all tables give the same bits.
 *
 * Kinds of a map y = x W^T, inputs padded with zeros to a multiple of LOCUS_QUANT_BLOCK:
 *
 *     kind  row of x                        weights                         a group
 *     I16   integers up to 16383            16 bits                         128 inputs
 *     W8    the same                        8 bits                          64 inputs
 *     H8    H x, integers up to 127         8 bits of W H^T                 all inputs
 *
 * H is the Walsh-Hadamard transform of every 128 inputs, not scaled: what is large in one input is
 * spread over 128, so that one scale suits them all. With a scale r of the row and a scale s of
 * every output and group,
 *     y[c] = r (sum over groups g, ascending, of s[g][c] n[g][c]) + bias[c],
 * n the sum of products of integers. That of a group stays below 2^31 for whatever row: see
 * nn/quantize.c. */

#include <stddef.h>
#include <stdint.h>

typedef enum locus_quant_kind {
    LOCUS_QUANT_I16,
    LOCUS_QUANT_W8,
    LOCUS_QUANT_H8,
    LOCUS_QUANT_KINDS
} locus_quant_kind;

enum {
    LOCUS_QUANT_BLOCK = 128,
    LOCUS_QUANT_PANEL = 16,   /* outputs of a panel of weights                      */
    LOCUS_QUANT_ROWS = 6,     /* of a tile                                          */
    LOCUS_QUANT_COLUMNS = 64, /* of a tile: all panels but the last of a map are whole */
    LOCUS_QUANT_I16_MOST = 16383,
    LOCUS_QUANT_H8_MOST = 127,
};

static inline int64_t locus_quant_padded(int64_t inputs)
{
    return (inputs + LOCUS_QUANT_BLOCK - 1) / LOCUS_QUANT_BLOCK * LOCUS_QUANT_BLOCK;
}

/* Groups of that many padded inputs. */
static inline int64_t locus_quant_groups(locus_quant_kind kind, int64_t padded)
{
    return kind == LOCUS_QUANT_I16 ? padded / 128 : kind == LOCUS_QUANT_W8 ? padded / 64 : 1;
}

/* Bytes of a panel of weights, one format for all tables:
 *     I16   [padded / 2][16][2]  int16
 *     W8    [padded / 2][16][2]  int8
 *     H8    [padded / 4][16][4]  uint8, the weight + 128 */
static inline int64_t locus_quant_panel_bytes(locus_quant_kind kind, int64_t padded)
{
    return padded * LOCUS_QUANT_PANEL * (kind == LOCUS_QUANT_I16 ? 2 : 1);
}

/* Bytes of a row of x, whatever the table; not a multiple of 4096, so that rows differ in the sets
 * of a cache. */
static inline int64_t locus_quant_row_bytes(int64_t padded) { return 2 * padded + 64; }

/* Quantize a row of x: returns its scale r. `to` has locus_quant_row_bytes of the padded inputs, in
 * the order of the table; *start is what sums of H8 begin with. `room` has `padded` floats.
 * A row of zeros has scale 0. One that holds NaN, an infinity, or no number from 1e-30 to 1e30 but
 * zeros cannot be quantized: NaN is returned and the integers are 0. */
#define LOCUS_QUANT_ROW(name)                                                                      \
    float name(void *to, int32_t *start, float *room, const float *x, int64_t inputs)
typedef LOCUS_QUANT_ROW((*locus_quant_row_fn));

/* y[i][c] for i < rows <= LOCUS_QUANT_ROWS, c < columns <= LOCUS_QUANT_COLUMNS; y overlaps nothing.
 * weights: the panels of the columns, one behind the other; scales [panels][groups][16]. */
typedef struct locus_quant_tile {
    float *y;
    int64_t y_row, rows, columns;
    const uint8_t *x; /* quantized rows, x_row bytes apart */
    int64_t x_row;
    const float *x_scale;   /* [rows] */
    const int32_t *x_start; /* [rows] */
    const uint8_t *weights;
    const float *scales;
    const float *bias; /* NULL: 0 */
    int64_t padded;    /* inputs */
} locus_quant_tile;
#define LOCUS_QUANT_MULTIPLY(name) void name(const locus_quant_tile *t)
typedef LOCUS_QUANT_MULTIPLY((*locus_quant_multiply_fn));

typedef struct locus_quant_kernels {
    const char *isa;
    const char *beside; /* the table of floats that LOCUS_ISA = isa means */
    uint32_t cpu;       /* LOCUS_CPU_ bits it needs */
    locus_quant_row_fn row[LOCUS_QUANT_KINDS];
    locus_quant_multiply_fn multiply[LOCUS_QUANT_KINDS];
} locus_quant_kernels;

/* Tables of this build, worst first; NULL beyond the end. */
const locus_quant_kernels *locus_quant_kernels_at(uint32_t index);

/* The best table that the CPU offers below `ceiling` (NULL: none) and below LOCUS_ISA, by names of
 * tables of floats or of integers; NULL when one of the two names no table. */
const locus_quant_kernels *locus_quant_kernels_pick(const char *ceiling);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of kernels/quant.h against vec/quant256.h or vec/quant512.h. QUANT_VNNI 1: products of
 * bytes and pairs are one instruction. 0: pairs of 16 bits are multiplied by vpmaddwd; weights of
 * bytes are widened to them, and a row of H8 is kept in 16 bits, 1 and 2 of every four exchanged, so
 * that even and odd bytes meet their numbers. */

#include "core/compiler.h"
#include "core/cpu.h"
#include "kernels/quant_row.h"

#if QUANT_VNNI
#define DOT_PAIRS Q_DOT_PAIRS
#else
#define DOT_PAIRS Q_MADD
#endif

enum {
    PANEL = LOCUS_QUANT_PANEL,
    PANEL_VECTORS = PANEL / QL,
    BLOCK_VECTORS = LOCUS_QUANT_BLOCK / QL,
    ROWS = LOCUS_QUANT_ROWS,
    MOST_PANELS = 4,
    MOST_VECTORS = MOST_PANELS * PANEL_VECTORS,
};

/* ---- rows ---- */

static LOCUS_QUANT_ROW(row_16)
{
    const int64_t padded = locus_quant_padded(inputs);
    qi most[4] = {q_set1(0), q_set1(0), q_set1(0), q_set1(0)};
    int64_t k = 0;
    (void)room;
    *start = 0;
    for (; k + 4 * QL <= inputs; k += 4 * QL) {
        LOCUS_UNROLL
        for (int i = 0; i < 4; i++) most[i] = q_max_magnitude(most[i], q_loadf(x + k + i * QL));
    }
    for (; k < inputs; k += QL) most[0] = q_max_magnitude(most[0], q_loadf_some(x + k, inputs - k));
    for (int i = 1; i < 4; i++) most[0] = q_max(most[0], most[i]);
    const quant_scale s = quant_scale_of(q_most(most[0]), LOCUS_QUANT_I16_MOST);
    const qf factor = q_set1f(s.factor);
    for (k = 0; k < padded; k += QL) {
        const qf a = s.factor != 0.0f ? q_loadf_some(x + k, inputs - k) : q_set1f(0.0f);
        q_store_16((int16_t *)to + k, q_nearest(q_mul(a, factor)));
    }
    return s.scale;
}

/* One block of 128: the stages 1, 2, .. 64 in ascending order. */
LOCUS_INLINE qi transform(float *to, const float *x, int64_t left, qi most)
{
    qf v[BLOCK_VECTORS];
    LOCUS_UNROLL
    for (int i = 0; i < BLOCK_VECTORS; i++)
        v[i] = q_stages_within(left >= LOCUS_QUANT_BLOCK ? q_loadf(x + i * QL)
                                                         : q_loadf_some(x + i * QL, left - i * QL));
#define STAGE(d)                                                                                   \
    LOCUS_UNROLL                                                                                   \
    for (int i = 0; i < BLOCK_VECTORS; i++)                                                        \
        if ((i & (d)) == 0 && (d) < BLOCK_VECTORS) {                                               \
            const qf a = v[i], b = v[i | (d)];                                                     \
            v[i] = q_add(a, b);                                                                    \
            v[i | (d)] = q_sub(a, b);                                                              \
        }
    STAGE(1)
    STAGE(2)
    STAGE(4)
    STAGE(BLOCK_VECTORS / 2 > 4 ? BLOCK_VECTORS / 2 : BLOCK_VECTORS)
#undef STAGE
    LOCUS_UNROLL
    for (int i = 0; i < BLOCK_VECTORS; i++) {
        most = q_max_magnitude(most, v[i]);
        q_storef(to + i * QL, v[i]);
    }
    return most;
}

static LOCUS_QUANT_ROW(row_h8)
{
    const int64_t padded = locus_quant_padded(inputs);
    qi most = q_set1(0), sum = q_set1(0);
    for (int64_t k = 0; k < padded; k += LOCUS_QUANT_BLOCK)
        most = transform(room + k, x + k, inputs - k, most);
    const quant_scale s = quant_scale_of(q_most(most), LOCUS_QUANT_H8_MOST);
    const qf factor = q_set1f(s.factor);
    for (int64_t k = 0; k < padded; k += QL) {
        const qf a = s.factor != 0.0f ? q_loadf(room + k) : q_set1f(0.0f);
        const qi n = q_nearest(q_mul(a, factor));
        sum = q_add_integers(sum, n);
#if QUANT_VNNI
        q_store_8((int8_t *)to + k, n);
#else
        q_store_16_crossed((int16_t *)to + k, n);
#endif
    }
    *start = -128 * q_sum(sum);
    return s.scale;
}

/* ---- tiles ---- */

/* What a register tile works on: all rows of t, panels from that column on. */
typedef struct part {
    const locus_quant_tile *t;
    int64_t column;
} part;

LOCUS_INLINE qi broadcast(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return q_set1(four);
}

LOCUS_INLINE void finish(part p, int i, int v, qf total)
{
    const locus_quant_tile *t = p.t;
    const int64_t column = p.column + v * QL, left = t->columns - column;
    float *y = t->y + i * t->y_row + column;
    qf z = q_mul(total, q_set1f(t->x_scale[i]));
    if (left >= QL) {
        if (t->bias != NULL) z = q_add(z, q_loadf(t->bias + column));
        q_storef(y, z);
    } else if (left > 0) {
        if (t->bias != NULL) z = q_add(z, q_loadf_some(t->bias + column, left));
        q_storef_some(y, z, left);
    }
}

/* Weights of 16 bits, or of 8 that are widened; sums of a group, then floats in memory. */
LOCUS_INLINE void tile_pairs(part p, const int rows, const int panels, const int wide)
{
    enum { VECTOR = QL * 4 }; /* bytes */
    const locus_quant_tile *t = p.t;
    const int vectors = panels * PANEL_VECTORS, group = wide ? 128 : 64, bytes = wide ? 2 : 1;
    const int64_t panel = t->padded * PANEL * bytes, groups = t->padded / group;
    const uint8_t *w = t->weights + p.column / PANEL * panel, *x = t->x;
    const float *scale = t->scales + p.column * groups;
    qf total[ROWS][MOST_VECTORS];
    LOCUS_UNROLL
    for (int i = 0; i < rows; i++) LOCUS_UNROLL
    for (int v = 0; v < vectors; v++) total[i][v] = q_set1f(0.0f);
    for (int64_t g = 0; g < groups; g++, scale += PANEL) {
        qi sum[ROWS][MOST_VECTORS];
        LOCUS_UNROLL
        for (int i = 0; i < rows; i++) LOCUS_UNROLL
        for (int v = 0; v < vectors; v++) sum[i][v] = q_set1(0);
        for (int k = 0; k < group; k += 2, w += 2 * PANEL * bytes, x += 4) {
            qi b[MOST_VECTORS];
            LOCUS_UNROLL
            for (int v = 0; v < vectors; v++) {
                const uint8_t *at =
                    w + v / PANEL_VECTORS * panel + v % PANEL_VECTORS * VECTOR / 2 * bytes;
                b[v] = wide ? q_load(at) : q_load_widened(at);
            }
            LOCUS_UNROLL
            for (int i = 0; i < rows; i++) {
                const qi a = broadcast(x + i * t->x_row);
                LOCUS_UNROLL
                for (int v = 0; v < vectors; v++) DOT_PAIRS(sum[i][v], b[v], a);
            }
        }
        LOCUS_UNROLL
        for (int v = 0; v < vectors; v++) {
            const qf s =
                q_loadf(scale + v / PANEL_VECTORS * PANEL * groups + v % PANEL_VECTORS * QL);
            LOCUS_UNROLL
            for (int i = 0; i < rows; i++)
                total[i][v] = q_add(total[i][v], q_mul(q_float(sum[i][v]), s));
        }
    }
    LOCUS_UNROLL
    for (int i = 0; i < rows; i++) LOCUS_UNROLL
    for (int v = 0; v < vectors; v++) finish(p, i, v, total[i][v]);
}

LOCUS_INLINE void tile_h8(part p, const int rows, const int panels)
{
    enum { VECTOR = QL * 4, STEP = QUANT_VNNI ? 4 : 8 /* bytes of four numbers of a row */ };
    const locus_quant_tile *t = p.t;
    const int vectors = panels * PANEL_VECTORS;
    const int64_t panel = t->padded * PANEL;
    const uint8_t *w = t->weights + p.column / PANEL * panel, *x = t->x;
    qi sum[ROWS][MOST_VECTORS];
    LOCUS_UNROLL
    for (int i = 0; i < rows; i++) LOCUS_UNROLL
    for (int v = 0; v < vectors; v++) sum[i][v] = q_set1(t->x_start[i]);
    for (int64_t k = 0; k < t->padded; k += 4, w += 4 * PANEL, x += STEP) {
        qi b[MOST_VECTORS];
        LOCUS_UNROLL
        for (int v = 0; v < vectors; v++)
            b[v] = q_load(w + v / PANEL_VECTORS * panel + v % PANEL_VECTORS * VECTOR);
#if QUANT_VNNI
        LOCUS_UNROLL
        for (int i = 0; i < rows; i++) {
            const qi a = broadcast(x + i * t->x_row);
            LOCUS_UNROLL
            for (int v = 0; v < vectors; v++) Q_DOT_BYTES(sum[i][v], b[v], a);
        }
#else
        LOCUS_UNROLL
        for (int odd = 0; odd < 2; odd++) {
            qi c[MOST_VECTORS];
            LOCUS_UNROLL
            for (int v = 0; v < vectors; v++) c[v] = odd ? q_odd(b[v]) : q_even(b[v]);
            LOCUS_UNROLL
            for (int i = 0; i < rows; i++) {
                const qi a = broadcast(x + i * t->x_row + 4 * odd);
                LOCUS_UNROLL
                for (int v = 0; v < vectors; v++) Q_MADD(sum[i][v], c[v], a);
            }
        }
#endif
    }
    LOCUS_UNROLL
    for (int v = 0; v < vectors; v++) {
        const qf s = q_loadf(t->scales + p.column + v * QL);
        LOCUS_UNROLL
        for (int i = 0; i < rows; i++)
            finish(p, i, v, q_add(q_set1f(0.0f), q_mul(q_float(sum[i][v]), s)));
    }
}

/* ---- heights ---- */

/* Panels of a register tile: as many as there are registers for. */
#define PANELS_OF(rows) (QL == 16 ? MOST_PANELS : (rows) <= 3 ? 2 : 1)

/* Each height is a function of its own, so that its sums have the registers to themselves. */
typedef void (*tile_fn)(part p);
#define TILE_OF(name, rows, call)                                                                  \
    static LOCUS_NOINLINE void name##_##rows(part p)                                               \
    {                                                                                              \
        enum { panels = PANELS_OF(rows) };                                                         \
        call(p, rows, panels);                                                                     \
    }                                                                                              \
    static LOCUS_NOINLINE void name##_one_##rows(part p) { call(p, rows, 1); }
#define TILES_OF(name, call)                                                                       \
    TILE_OF(name, 1, call)                                                                         \
    TILE_OF(name, 2, call)                                                                         \
    TILE_OF(name, 3, call)                                                                         \
    TILE_OF(name, 4, call)                                                                         \
    TILE_OF(name, 5, call)                                                                         \
    TILE_OF(name, 6, call)                                                                         \
    static const tile_fn name[2][ROWS + 1] = {{NULL, name##_one_1, name##_one_2, name##_one_3,     \
                                               name##_one_4, name##_one_5, name##_one_6},          \
                                              {NULL, name##_1, name##_2, name##_3, name##_4,       \
                                               name##_5, name##_6}};
#define WIDE(p, rows, panels) tile_pairs(p, rows, panels, 1)
#define NARROW(p, rows, panels) tile_pairs(p, rows, panels, 0)
TILES_OF(tiles_i16, WIDE)
TILES_OF(tiles_w8, NARROW)
TILES_OF(tiles_h8, tile_h8)

LOCUS_INLINE void multiply(const locus_quant_tile *t, const tile_fn tiles[2][ROWS + 1])
{
    const int64_t wide = PANELS_OF(t->rows) * PANEL;
    int64_t c = 0;
    for (; c + wide - PANEL < t->columns; c += wide) tiles[1][t->rows]((part){t, c});
    for (; c < t->columns; c += PANEL) tiles[0][t->rows]((part){t, c});
}

static LOCUS_QUANT_MULTIPLY(multiply_i16) { multiply(t, tiles_i16); }
static LOCUS_QUANT_MULTIPLY(multiply_w8) { multiply(t, tiles_w8); }
static LOCUS_QUANT_MULTIPLY(multiply_h8) { multiply(t, tiles_h8); }

const locus_quant_kernels QUANT_NAME = {
    .isa = QUANT_ISA,
    .beside = QUANT_BESIDE,
    .cpu = QUANT_CPU,
    .row = {row_16, row_16, row_h8},
    .multiply = {multiply_i16, multiply_w8, multiply_h8},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Products of integers in portable C: the formulas of kernels/quant.h, and the measure of the others. */

#include <math.h>
#include <string.h>

#include "kernels/quant_row.h"

/* ---- rows ---- */

/* To the nearest integer, ties to even, for |x| < 2^22. */
static int32_t nearest(float x)
{
    const float shift = 0x1.8p23f;
    const float moved = x + shift;
    return (int32_t)(moved - shift);
}

static float most_of(const float *x, int64_t count)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7FFFFFFFu;
        most = bits > most ? bits : most;
    }
    float value;
    memcpy(&value, &most, sizeof value);
    return value;
}

static LOCUS_QUANT_ROW(row_16)
{
    int16_t *integers = to;
    const int64_t padded = locus_quant_padded(inputs);
    const quant_scale s = quant_scale_of(most_of(x, inputs), LOCUS_QUANT_I16_MOST);
    (void)room;
    *start = 0;
    memset(integers, 0, (size_t)padded * sizeof *integers);
    for (int64_t i = 0; i < inputs && s.factor != 0.0f; i++)
        integers[i] = (int16_t)nearest(x[i] * s.factor);
    return s.scale;
}

static LOCUS_QUANT_ROW(row_h8)
{
    int8_t *integers = to;
    const int64_t padded = locus_quant_padded(inputs);
    int32_t sum = 0;
    memcpy(room, x, (size_t)inputs * sizeof *x);
    memset(room + inputs, 0, (size_t)(padded - inputs) * sizeof *room);
    for (int64_t i = 0; i < padded; i += LOCUS_QUANT_BLOCK) quant_transform(room + i);
    const quant_scale s = quant_scale_of(most_of(room, padded), LOCUS_QUANT_H8_MOST);
    for (int64_t i = 0; i < padded; i++) {
        const int32_t n = s.factor != 0.0f ? nearest(room[i] * s.factor) : 0;
        integers[i] = (int8_t)n;
        sum += n;
    }
    *start = -128 * sum;
    return s.scale;
}

/* ---- tiles ---- */

enum { PANEL = LOCUS_QUANT_PANEL };

/* y = r total + bias of one panel; sums of the last panel are cut. */
static void finish(const locus_quant_tile *t, int64_t row, int64_t column, const float total[PANEL])
{
    float *y = t->y + row * t->y_row + column;
    const int64_t count = t->columns - column < PANEL ? t->columns - column : PANEL;
    for (int64_t c = 0; c < count; c++) {
        const float scaled = total[c] * t->x_scale[row];
        y[c] = t->bias != NULL ? scaled + t->bias[column + c] : scaled;
    }
}

static void add_group(float total[PANEL], const int32_t sum[PANEL], const float *scale)
{
    for (int c = 0; c < PANEL; c++) total[c] += (float)sum[c] * scale[c];
}

static LOCUS_QUANT_MULTIPLY(multiply_i16)
{
    const int64_t groups = locus_quant_groups(LOCUS_QUANT_I16, t->padded);
    for (int64_t c = 0; c < t->columns; c += PANEL)
        for (int64_t i = 0; i < t->rows; i++) {
            const int16_t *x = (const int16_t *)(const void *)(t->x + i * t->x_row);
            const int16_t *w = (const int16_t *)(const void *)(t->weights + c * t->padded * 2);
            const float *scale = t->scales + c * groups;
            float total[PANEL] = {0};
            for (int64_t g = 0; g < groups; g++, x += 128, scale += PANEL) {
                int32_t sum[PANEL] = {0};
                for (int k = 0; k < 128; k += 2, w += 2 * PANEL)
                    for (int o = 0; o < PANEL; o++)
                        sum[o] += w[2 * o] * x[k] + w[2 * o + 1] * x[k + 1];
                add_group(total, sum, scale);
            }
            finish(t, i, c, total);
        }
}

static LOCUS_QUANT_MULTIPLY(multiply_w8)
{
    const int64_t groups = locus_quant_groups(LOCUS_QUANT_W8, t->padded);
    for (int64_t c = 0; c < t->columns; c += PANEL)
        for (int64_t i = 0; i < t->rows; i++) {
            const int16_t *x = (const int16_t *)(const void *)(t->x + i * t->x_row);
            const int8_t *w = (const int8_t *)(t->weights + c * t->padded);
            const float *scale = t->scales + c * groups;
            float total[PANEL] = {0};
            for (int64_t g = 0; g < groups; g++, x += 64, scale += PANEL) {
                int32_t sum[PANEL] = {0};
                for (int k = 0; k < 64; k += 2, w += 2 * PANEL)
                    for (int o = 0; o < PANEL; o++)
                        sum[o] += w[2 * o] * x[k] + w[2 * o + 1] * x[k + 1];
                add_group(total, sum, scale);
            }
            finish(t, i, c, total);
        }
}

static LOCUS_QUANT_MULTIPLY(multiply_h8)
{
    for (int64_t c = 0; c < t->columns; c += PANEL)
        for (int64_t i = 0; i < t->rows; i++) {
            const int8_t *x = (const int8_t *)(t->x + i * t->x_row);
            const uint8_t *w = t->weights + c * t->padded;
            int32_t sum[PANEL];
            float total[PANEL] = {0};
            for (int o = 0; o < PANEL; o++) sum[o] = t->x_start[i];
            for (int64_t k = 0; k < t->padded; k += 4, w += 4 * PANEL)
                for (int o = 0; o < PANEL; o++)
                    sum[o] += w[4 * o] * x[k] + w[4 * o + 1] * x[k + 1] + w[4 * o + 2] * x[k + 2] +
                              w[4 * o + 3] * x[k + 3];
            add_group(total, sum, t->scales + c);
            finish(t, i, c, total);
        }
}

const locus_quant_kernels locus_quant_generic = {
    .isa = "generic",
    .beside = "generic",
    .row = {row_16, row_16, row_h8},
    .multiply = {multiply_i16, multiply_w8, multiply_h8},
};

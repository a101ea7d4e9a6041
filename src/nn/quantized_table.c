/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/quantized_table.h"

#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "core/size.h"
#include "nn/product.h"

static int64_t group_of(locus_quant_kind kind) { return kind == LOCUS_QUANT_I16 ? 128 : 64; }
static size_t bytes_of(locus_quant_kind kind) { return kind == LOCUS_QUANT_I16 ? 2 : 1; }

/* Integers first, scales from the next cache line on. */
static int integer_bytes(uint64_t *bytes, locus_quant_kind kind, int64_t rows, int64_t width)
{
    uint64_t all = 0;
    return locus_product_u64(&all,
                             (const uint64_t[]){(uint64_t)rows, (uint64_t)width, bytes_of(kind)},
                             3) &&
           locus_pad_u64(bytes, all, LOCUS_ALIGNMENT);
}

int locus_quantized_table_bytes(uint64_t *bytes, locus_quant_kind kind, int64_t rows, int64_t width)
{
    const uint64_t groups = (uint64_t)locus_blocks(width, group_of(kind));
    uint64_t integers = 0, scales = 0, all = 0;
    if (!integer_bytes(&integers, kind, rows, width) ||
        !locus_product_u64(&scales, (const uint64_t[]){(uint64_t)rows, groups, sizeof(float)}, 3) ||
        !locus_add_u64(&all, integers, scales) || !locus_add_u64(&all, all, LOCUS_ALIGNMENT))
        return 0;
    *bytes = all;
    return 1;
}

typedef struct table_job {
    const locus_quantized_table *t;
    const locus_tensor *from;
    uint8_t *integers;
    float *scales;
} table_job;

static void round_group(const table_job *j, const float *x, int64_t count, uint8_t *to,
                        float *scale)
{
    const int pairs = j->t->kind == LOCUS_QUANT_I16;
    const float least = 1e-30f;
    float most = 0.0f;
    for (int64_t c = 0; c < count; c++) most = fabsf(x[c]) > most ? fabsf(x[c]) : most;
    *scale = most < least ? 0.0f : most / (pairs ? 32767.0f : 127.0f);
    for (int64_t c = 0; c < count; c++) {
        const double n = *scale > 0.0f ? rint((double)x[c] / (double)*scale) : 0.0;
        const int16_t pair = (int16_t)(n > 32767.0 ? 32767.0 : n < -32767.0 ? -32767.0 : n);
        if (pairs)
            memcpy(to + 2 * c, &pair, sizeof pair);
        else
            to[c] = (uint8_t)(int8_t)pair;
    }
}

static void round_row(void *context, size_t index, uint32_t worker)
{
    const table_job *j = context;
    const locus_quantized_table *t = j->t;
    const int64_t row = (int64_t)index, group = group_of(t->kind);
    const float *x = (const float *)j->from->data + row * j->from->stride[0];
    uint8_t *to = j->integers + row * t->width * (int64_t)bytes_of(t->kind);
    (void)worker;
    for (int64_t g = 0; g < t->groups; g++)
        round_group(j, x + g * group, locus_least(group, t->width - g * group),
                    to + g * group * (int64_t)bytes_of(t->kind), &j->scales[row * t->groups + g]);
}

locus_quantized_table locus_quantized_table_in(locus_quant_kind kind, int64_t rows, int64_t width,
                                               void *memory, void **integers, float **scales)
{
    uint64_t bytes = 0;
    (void)integer_bytes(&bytes, kind, rows, width); /* it fits: locus_quantized_table_bytes */
    *integers = line_start(memory);
    *scales = (float *)(void *)((char *)*integers + bytes);
    return (locus_quantized_table){.kind = kind,
                                   .width = width,
                                   .groups = locus_blocks(width, group_of(kind)),
                                   .integers = *integers,
                                   .scales = *scales};
}

locus_quantized_table locus_quantize_table(locus_quant_kind kind, const locus_tensor *table,
                                           void *memory, uint32_t threads)
{
    void *integers = NULL;
    table_job j = {.from = table};
    const locus_quantized_table t = locus_quantized_table_in(kind, table->shape[0], table->shape[1],
                                                             memory, &integers, &j.scales);
    j.t = &t;
    j.integers = integers;
    locus_parallel_for(threads, (size_t)table->shape[0], round_row, &j);
    return t;
}

void locus_quantized_row(const locus_quantized_table *t, int64_t row, float factor, int resume,
                         float *y)
{
    const int64_t group = group_of(t->kind);
    const int16_t *pairs = (const int16_t *)t->integers + row * t->width;
    const int8_t *bytes = (const int8_t *)t->integers + row * t->width;
    for (int64_t g = 0; g < t->groups; g++) {
        const float scale = t->scales[row * t->groups + g];
        const int64_t past = locus_least((g + 1) * group, t->width);
        for (int64_t c = g * group; c < past; c++) {
            const float n = (float)(t->kind == LOCUS_QUANT_I16 ? pairs[c] : bytes[c]);
            y[c] = (resume ? y[c] : 0.0f) + factor * (n * scale);
        }
    }
}

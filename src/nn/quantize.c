/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "core/size.h"
#include "kernels/quant_row.h"
#include "nn/product.h"
#include "nn/quantized.h"

/* Weights become integers n with one scale s for each output and group:
 *     W8   s = max |w| / 127
 *     H8   the same of w H^T; the sums count s / 128, since H H^T = 128
 *     I16  s = max(max |w| / 32767, sum |w| / (2^31 / 16383 - 64))
 * so that sum |n| <= sum |w| / s + 64 <= 2^31 / 16383: with any row of integers up to 16383, the sum
 * of a group of 128 stays below 2^31. That of W8 is at most 64 * 127 * 16383, that of H8 at most
 * 16384 * 127 * 127. */

enum { PANEL = LOCUS_QUANT_PANEL, BLOCK = LOCUS_QUANT_BLOCK, BYTE_MOST = 127, PAIR_MOST = 32767 };

static int64_t panels_of(int64_t outputs) { return locus_blocks(outputs, PANEL); }

/* Bytes of all panels; scales lie behind them. */
static int panel_bytes(uint64_t *bytes, locus_quant_kind kind, int64_t padded, int64_t outputs)
{
    const uint64_t extents[] = {(uint64_t)panels_of(outputs),
                                (uint64_t)locus_quant_panel_bytes(kind, padded)};
    return locus_product_u64(bytes, extents, 2);
}

int locus_quantized_bytes(uint64_t *bytes, locus_quant_kind kind, int64_t inputs, int64_t outputs)
{
    const int64_t padded = locus_quant_padded(inputs);
    const uint64_t extents[] = {(uint64_t)panels_of(outputs), PANEL * sizeof(float),
                                (uint64_t)locus_quant_groups(kind, padded)};
    uint64_t panels = 0, scales = 0, all = 0;
    if (!panel_bytes(&panels, kind, padded, outputs) || !locus_product_u64(&scales, extents, 3) ||
        !locus_add_u64(&all, panels, scales) || !locus_add_u64(&all, all, LOCUS_ALIGNMENT))
        return 0;
    *bytes = all;
    return 1;
}

int locus_quantizes(const locus_tensor *weight)
{
    const float most = 1e30f;
    if (weight->shape[1] < 1 || weight->shape[1] > LOCUS_QUANT_MOST_INPUTS) return 0;
    for (int64_t i = 0; i < weight->shape[0]; i++) {
        const float *row = (const float *)weight->data + i * weight->stride[0];
        for (int64_t k = 0; k < weight->shape[1]; k++)
            if (!(fabsf(row[k]) <= most)) return 0;
    }
    return 1;
}

/* ---- one block of 128 weights of an output ---- */

typedef struct quantize_job {
    const locus_quantized *q;
    const locus_tensor *weight;
    uint8_t *weights;
    float *scales;
} quantize_job;

static float scale_of(locus_quant_kind kind, const float *w, int64_t count, float most)
{
    const float least = 1e-30f;
    double sum = 0.0;
    if (most < least) return 0.0f;
    if (kind != LOCUS_QUANT_I16) return most / BYTE_MOST;
    for (int64_t k = 0; k < count; k++) sum += fabs((double)w[k]);
    const double by_sum = sum / (2147483647.0 / LOCUS_QUANT_I16_MOST - BLOCK / 2);
    const double by_most = (double)most / PAIR_MOST;
    /* to the next number above: rounding down would break the bound */
    return nextafterf((float)(by_sum > by_most ? by_sum : by_most), INFINITY);
}

static float most_of(const float *w, int64_t count)
{
    float most = 0.0f;
    for (int64_t k = 0; k < count; k++) most = fabsf(w[k]) > most ? fabsf(w[k]) : most;
    return most;
}

/* Where the integer of input k of a panel's output o lies. */
static void store(locus_quant_kind kind, uint8_t *panel, int64_t k, int o, int32_t n)
{
    switch (kind) {
    case LOCUS_QUANT_I16: {
        const int16_t pair = (int16_t)n;
        memcpy(panel + (k / 2 * PANEL + o) * 4 + k % 2 * 2, &pair, sizeof pair);
        break;
    }
    case LOCUS_QUANT_W8: panel[(k / 2 * PANEL + o) * 2 + k % 2] = (uint8_t)(int8_t)n; break;
    default: panel[(k / 4 * PANEL + o) * 4 + k % 4] = (uint8_t)(n + 128); break;
    }
}

static int32_t load(locus_quant_kind kind, const uint8_t *panel, int64_t k, int o)
{
    if (kind == LOCUS_QUANT_H8) return panel[(k / 4 * PANEL + o) * 4 + k % 4] - 128;
    if (kind == LOCUS_QUANT_W8) return (int8_t)panel[(k / 2 * PANEL + o) * 2 + k % 2];
    int16_t pair;
    memcpy(&pair, panel + (k / 2 * PANEL + o) * 4 + k % 2 * 2, sizeof pair);
    return pair;
}

/* Weights of an output from input k on, BLOCK of them, as they are quantized; 0 beyond the last. */
static void read_block(const quantize_job *j, int64_t output, int64_t k, float block[BLOCK])
{
    const locus_quantized *q = j->q;
    memset(block, 0, BLOCK * sizeof *block);
    if (output < q->outputs)
        memcpy(block, (const float *)j->weight->data + output * j->weight->stride[0] + k,
               (size_t)locus_least(BLOCK, q->inputs - k) * sizeof *block);
    if (q->kind == LOCUS_QUANT_H8) quant_transform(block);
}

static void store_group(const quantize_job *j, uint8_t *panel, int64_t k, int o, const float *w,
                        int64_t count, float scale)
{
    for (int64_t i = 0; i < count; i++) {
        const int32_t n = scale > 0.0f ? (int32_t)lrint((double)w[i] / (double)scale) : 0;
        store(j->q->kind, panel, k + i, o, n);
    }
}

static void quantize_output(const quantize_job *j, int64_t output, uint8_t *panel, float *scales)
{
    const locus_quantized *q = j->q;
    const int o = (int)(output % PANEL);
    const int64_t groups = locus_quant_groups(q->kind, q->padded);
    const int64_t group = q->padded / groups;
    float block[BLOCK], most = 0.0f;
    if (q->kind == LOCUS_QUANT_H8) {
        for (int64_t k = 0; k < q->padded; k += BLOCK) {
            read_block(j, output, k, block);
            const float greatest = most_of(block, BLOCK);
            most = greatest > most ? greatest : most;
        }
        scales[o] = scale_of(q->kind, NULL, 0, most) / BLOCK;
    }
    for (int64_t k = 0; k < q->padded; k += BLOCK) {
        read_block(j, output, k, block);
        if (q->kind == LOCUS_QUANT_H8) {
            store_group(j, panel, k, o, block, BLOCK, scales[o] * BLOCK);
            continue;
        }
        for (int64_t i = 0; i < BLOCK; i += group) {
            const float scale = scale_of(q->kind, block + i, group, most_of(block + i, group));
            scales[(k + i) / group * PANEL + o] = scale;
            store_group(j, panel, k + i, o, block + i, group, scale);
        }
    }
}

static void quantize_panel(void *context, size_t index, uint32_t worker)
{
    const quantize_job *j = context;
    const locus_quantized *q = j->q;
    uint8_t *panel = j->weights + (int64_t)index * locus_quant_panel_bytes(q->kind, q->padded);
    float *scales = j->scales + (int64_t)index * PANEL * locus_quant_groups(q->kind, q->padded);
    (void)worker;
    for (int o = 0; o < PANEL; o++) quantize_output(j, (int64_t)index * PANEL + o, panel, scales);
}

/* A handle whose panels and scales, both still to be written, lie in `memory`. */
static locus_quantized lie_in(const locus_quant_kernels *kernels, locus_quant_kind kind,
                              int64_t inputs, int64_t outputs, void *memory, quantize_job *j)
{
    locus_quantized q = {.kernels = kernels,
                         .kind = kind,
                         .inputs = inputs,
                         .outputs = outputs,
                         .padded = locus_quant_padded(inputs)};
    uint64_t bytes = 0;
    (void)panel_bytes(&bytes, kind, q.padded, q.outputs); /* it fits: locus_quantized_bytes */
    j->weights = (uint8_t *)line_start(memory);
    j->scales = (float *)(void *)(j->weights + bytes);
    q.weights = j->weights;
    q.scales = j->scales;
    return q;
}

locus_quantized locus_quantize_weight(const locus_quant_kernels *kernels, locus_quant_kind kind,
                                      const locus_tensor *weight, void *memory, uint32_t threads)
{
    quantize_job j = {.weight = weight};
    const locus_quantized q = lie_in(kernels, kind, weight->shape[1], weight->shape[0], memory, &j);
    j.q = &q;
    locus_parallel_for(threads, (size_t)panels_of(q.outputs), quantize_panel, &j);
    return q;
}

/* ---- in the order of rows, as files have them ---- */

int locus_quantized_stored_bytes(locus_quant_kind kind) { return kind == LOCUS_QUANT_I16 ? 2 : 1; }

/* The transform fills the padding; else it is zeros. */
int64_t locus_quantized_columns(locus_quant_kind kind, int64_t inputs)
{
    return kind == LOCUS_QUANT_H8 ? locus_quant_padded(inputs) : inputs;
}

static int64_t stored_groups(const locus_quantized *q, int64_t columns)
{
    return locus_blocks(columns, q->padded / locus_quant_groups(q->kind, q->padded));
}

static int32_t integer_at(const void *integers, locus_quant_kind kind, int64_t i)
{
    return kind == LOCUS_QUANT_I16 ? ((const int16_t *)integers)[i] : ((const int8_t *)integers)[i];
}

locus_quantized locus_quantized_from(const locus_quant_kernels *kernels, locus_quant_kind kind,
                                     int64_t inputs, int64_t outputs, const void *integers,
                                     const float *scales, void *memory)
{
    quantize_job j = {.q = NULL};
    const locus_quantized q = lie_in(kernels, kind, inputs, outputs, memory, &j);
    const int64_t groups = locus_quant_groups(kind, q.padded);
    const int64_t columns = locus_quantized_columns(kind, inputs),
                  some = stored_groups(&q, columns);
    for (int64_t output = 0; output < panels_of(outputs) * PANEL; output++) {
        const int o = (int)(output % PANEL), there = output < outputs;
        uint8_t *panel = j.weights + output / PANEL * locus_quant_panel_bytes(kind, q.padded);
        for (int64_t k = 0; k < q.padded; k++)
            store(kind, panel, k, o,
                  there && k < columns ? integer_at(integers, kind, output * columns + k) : 0);
        for (int64_t g = 0; g < groups; g++)
            j.scales[(output / PANEL * groups + g) * PANEL + o] =
                there && g < some ? scales[output * some + g] : 0.0f;
    }
    return q;
}

void locus_quantized_to(const locus_quantized *q, void *integers, float *scales)
{
    const int64_t groups = locus_quant_groups(q->kind, q->padded);
    const int64_t columns = locus_quantized_columns(q->kind, q->inputs);
    const int64_t some = stored_groups(q, columns);
    for (int64_t output = 0; output < q->outputs; output++) {
        const int o = (int)(output % PANEL);
        const uint8_t *panel =
            q->weights + output / PANEL * locus_quant_panel_bytes(q->kind, q->padded);
        for (int64_t k = 0; k < columns; k++) {
            const int32_t n = load(q->kind, panel, k, o);
            if (q->kind == LOCUS_QUANT_I16)
                ((int16_t *)integers)[output * columns + k] = (int16_t)n;
            else
                ((int8_t *)integers)[output * columns + k] = (int8_t)n;
        }
        for (int64_t g = 0; g < some; g++)
            scales[output * some + g] = q->scales[(output / PANEL * groups + g) * PANEL + o];
    }
}

void locus_quantized_weights(const locus_quantized *q, int64_t output, float *to)
{
    const int64_t groups = locus_quant_groups(q->kind, q->padded), group = q->padded / groups;
    const int o = (int)(output % PANEL);
    const uint8_t *panel =
        q->weights + output / PANEL * locus_quant_panel_bytes(q->kind, q->padded);
    const float *scales = q->scales + output / PANEL * PANEL * groups;
    for (int64_t k = 0; k < q->padded; k += BLOCK) {
        float block[BLOCK];
        for (int i = 0; i < BLOCK; i++) block[i] = (float)load(q->kind, panel, k + i, o);
        if (q->kind == LOCUS_QUANT_H8) quant_transform(block);
        for (int64_t i = 0; i < BLOCK && k + i < q->inputs; i++)
            to[k + i] = block[i] * scales[(k + i) / group * PANEL + o];
    }
}

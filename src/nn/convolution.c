/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/convolution.h"

#include <string.h>

#include "core/memory.h"
#include "core/size.h"

void locus_convolution_arrange(float *to, const float *from, int64_t outputs, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < outputs; o++)
        for (int64_t i = 0; i < a; i++)
            for (int64_t k = 0; k < b; k++) to[(o * b + k) * a + i] = from[(o * a + i) * b + k];
}

/* ---- one group as a linear map ---- */

typedef struct group_map {
    int64_t inputs, outputs, window; /* channels of a group; taps * inputs */
    locus_tensor weight, bias;
    locus_linear linear;
} group_map;

static int64_t inputs_of(const locus_convolution *f) { return f->inputs / f->groups; }
static int64_t outputs_of(const locus_convolution *f) { return f->outputs / f->groups; }

static locus_tensor weight_of(const locus_convolution *f, float *weight, int64_t group)
{
    const int64_t window = f->taps * inputs_of(f), outputs = outputs_of(f);
    return locus_view(weight + group * outputs * window, LOCUS_F32, 2,
                      (const int64_t[]){outputs, window});
}

static void new_map(group_map *m, const locus_convolution *f, int64_t group, void *workspace)
{
    *m = (group_map){.inputs = inputs_of(f), .outputs = outputs_of(f)};
    m->window = f->taps * m->inputs;
    m->weight = weight_of(f, (float *)(uintptr_t)f->weight, group);
    m->linear = (locus_linear){.kernels = f->workers.kernels,
                               .threads = f->workers.threads,
                               .second_cache = f->second_cache,
                               .weight = &m->weight,
                               .packed = f->packed != NULL ? &f->packed[group] : NULL,
                               .workspace = workspace};
    if (f->bias == NULL) return;
    m->bias =
        locus_view((float *)(uintptr_t)f->bias + group * m->outputs, LOCUS_F32, 1, &m->outputs);
    m->linear.bias = &m->bias;
}

int locus_convolution_packed_bytes(uint64_t *bytes, const locus_convolution *f)
{
    return locus_packed_bytes(bytes, f->taps * inputs_of(f), outputs_of(f));
}

locus_packed locus_convolution_pack(const locus_convolution *f, int64_t group, void *memory)
{
    const locus_tensor weight = weight_of(f, (float *)(uintptr_t)f->weight, group);
    return locus_pack_weight(f->workers.kernels, &weight, memory, f->workers.threads);
}

/* ---- workspace ---- */

/* x of one group of one sequence between rows of zeros, the gradient of its windows, and what the
 * linear map wants. */
typedef struct convolution_scratch {
    float *padded, *windows;
    void *linear;
} convolution_scratch;

static int lay_out(const locus_convolution *f, int64_t longest, convolution_scratch *at,
                   uint64_t *bytes)
{
    const locus_linear map = {.kernels = f->workers.kernels,
                              .threads = f->workers.threads,
                              .second_cache = f->second_cache};
    uint64_t padded = 0, windows = 0, total = 0;
    const uint64_t inputs = (uint64_t)inputs_of(f), taps = (uint64_t)f->taps;
    const uint64_t rows = (uint64_t)longest;
    if (!locus_product_u64(&padded, (const uint64_t[]){rows + taps, inputs, sizeof(float)}, 3) ||
        !locus_pad_u64(&padded, padded, LOCUS_ALIGNMENT) ||
        !locus_product_u64(&windows, (const uint64_t[]){rows, taps, inputs, sizeof(float)}, 4) ||
        !locus_pad_u64(&windows, windows, LOCUS_ALIGNMENT) ||
        !locus_add_u64(&total, padded, windows) ||
        !locus_add_u64(&total, total, locus_linear_workspace(&map)))
        return 0;
    if (bytes != NULL) *bytes = total;
    if (at == NULL) return 1;
    unsigned char *memory = f->workspace;
    at->padded = (float *)(void *)memory;
    at->windows = (float *)(void *)(memory + padded);
    at->linear = memory + padded + windows;
    return 1;
}

int locus_convolution_workspace(uint64_t *bytes, const locus_convolution *f, int64_t longest)
{
    return lay_out(f, longest, NULL, bytes);
}

static int64_t longest_of(const locus_ragged *tokens)
{
    int64_t longest = 0;
    for (int64_t s = 0; s < tokens->sequences; s++) {
        const int64_t count = tokens->offsets[s + 1] - tokens->offsets[s];
        if (count > longest) longest = count;
    }
    return longest;
}

/* ---- forward ---- */

/* x of a group of a sequence, with `before` rows of zeros ahead and the others behind. */
static void pad_rows(const locus_convolution *f, float *padded, const locus_rows *x, int64_t first,
                     int64_t count, int64_t group)
{
    const int64_t inputs = inputs_of(f);
    const size_t row = (size_t)inputs * sizeof(float);
    memset(padded, 0, (size_t)f->before * row);
    padded += f->before * inputs;
    for (int64_t t = 0; t < count; t++, padded += inputs)
        memcpy(padded, locus_row(x, first + t) + group * inputs, row);
    memset(padded, 0, (size_t)(f->taps - 1 - f->before) * row);
}

/* Windows overlap: the next begins one row of channels later. */
static locus_row_batch windows_of(float *padded, int64_t inputs, int64_t count)
{
    return (locus_row_batch){.data = padded,
                             .batches = 1,
                             .rows = count,
                             .batch_stride = count * inputs,
                             .row_stride = inputs};
}

static locus_row_batch part_of(const locus_rows *rows, int64_t first, int64_t count, int64_t column)
{
    return (locus_row_batch){.data = locus_row(rows, first) + column,
                             .batches = 1,
                             .rows = count,
                             .batch_stride = count * rows->stride,
                             .row_stride = rows->stride};
}

void locus_convolution_forward(const locus_convolution *f, const locus_rows *y, const locus_rows *x,
                               const locus_rows *residual, const locus_ragged *tokens)
{
    convolution_scratch at;
    if (!lay_out(f, longest_of(tokens), &at, NULL)) return; /* the workspace could not exist */
    for (int64_t group = 0; group < f->groups; group++) {
        group_map m;
        new_map(&m, f, group, at.linear);
        for (int64_t s = 0; s < tokens->sequences; s++) {
            const int64_t first = tokens->offsets[s], count = tokens->offsets[s + 1] - first;
            const int64_t column = group * m.outputs;
            if (count == 0) continue;
            pad_rows(f, at.padded, x, first, count, group);
            const locus_row_batch from = windows_of(at.padded, m.inputs, count);
            const locus_row_batch to = part_of(y, first, count, column);
            locus_row_batch plus;
            if (residual != NULL) plus = part_of(residual, first, count, column);
            const locus_linear_end end = {.activation = f->activation,
                                          .residual = residual != NULL ? &plus : NULL};
            locus_linear_forward(&m.linear, &to, &from, &end);
        }
    }
}

/* ---- backward ---- */

/* dx_t = the sum of what the windows that hold row t say about it, by ascending tap. */
static void fold_windows(const locus_convolution *f, const locus_rows *dx, const float *windows,
                         int64_t first, int64_t count, int64_t group)
{
    const int64_t inputs = inputs_of(f), window = f->taps * inputs;
    for (int64_t t = 0; t < count; t++) {
        float *to = locus_row(dx, first + t) + group * inputs;
        memset(to, 0, (size_t)inputs * sizeof(float));
        for (int64_t k = 0; k < f->taps; k++) {
            const int64_t from = t + f->before - k;
            if (from >= 0 && from < count)
                f->workers.kernels->add(to, windows + from * window + k * inputs, inputs);
        }
    }
}

static void group_grad(const locus_convolution *f, const locus_convolution_grad *grad,
                       const locus_rows *dz, const locus_rows *x, const locus_ragged *tokens,
                       int64_t group, const convolution_scratch *at)
{
    group_map m;
    new_map(&m, f, group, at->linear);
    const locus_tensor dw = grad->weight != NULL ? weight_of(f, grad->weight, group) : m.weight;
    const locus_tensor db = locus_view(grad->bias != NULL ? grad->bias + group * m.outputs : NULL,
                                       LOCUS_F32, 1, &m.outputs);
    int add = grad->add_parameters;
    for (int64_t s = 0; s < tokens->sequences || !add; s++) {
        /* once without rows where there is no sequence at all, so that 0 is written */
        const int64_t first = s < tokens->sequences ? tokens->offsets[s] : 0;
        const int64_t count = s < tokens->sequences ? tokens->offsets[s + 1] - first : 0;
        const locus_row_batch back = part_of(dz, first, count, group * m.outputs);
        const locus_row_batch to = {.data = at->windows,
                                    .batches = 1,
                                    .rows = count,
                                    .batch_stride = count * m.window,
                                    .row_stride = m.window};
        pad_rows(f, at->padded, x, first, count, group);
        const locus_row_batch from = windows_of(at->padded, m.inputs, count);
        const locus_linear_grad to_grad = {.x = grad->x != NULL ? &to : NULL,
                                           .weight = grad->weight != NULL ? &dw : NULL,
                                           .bias = grad->bias != NULL ? &db : NULL,
                                           .add_parameters = add};
        locus_linear_backward(&m.linear, &back, &from, &to_grad);
        if (grad->x != NULL) fold_windows(f, grad->x, at->windows, first, count, group);
        add = 1;
    }
}

void locus_convolution_backward(const locus_convolution *f, const locus_convolution_grad *grad,
                                const locus_rows *dz, const locus_rows *x,
                                const locus_ragged *tokens)
{
    convolution_scratch at;
    if (!lay_out(f, longest_of(tokens), &at, NULL)) return; /* the workspace could not exist */
    for (int64_t group = 0; group < f->groups; group++)
        group_grad(f, grad, dz, x, tokens, group, &at);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "support/halves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"

uint16_t halves_from_float(float value, locus_dtype type)
{
    return type == LOCUS_F16 ? locus_float_to_f16(value) : locus_float_to_bf16(value);
}

float halves_to_float(uint16_t half, locus_dtype type)
{
    return type == LOCUS_F16 ? locus_f16_to_float(half) : locus_bf16_to_float(half);
}

enum { GAP = 3, MARK = 0x1234 };

halves halves_new(const locus_tensor *t, locus_dtype type)
{
    halves h = {.view = *t};
    int64_t step = t->shape[t->rank - 1] + (t->rank > 1 ? GAP : 0);
    h.view.dtype = type;
    for (uint32_t axis = t->rank - 1; axis-- > 0;) {
        h.view.stride[axis] = step;
        step *= t->shape[axis];
    }
    h.count = (size_t)step + 1 - (t->rank > 1 && step > 0 ? GAP : 0);
    h.memory = malloc(h.count * sizeof *h.memory);
    for (size_t i = 0; i < h.count; i++) h.memory[i] = MARK;
    h.view.data = h.memory + 1;
    return h;
}

size_t halves_place(const locus_tensor *view, int64_t index)
{
    int64_t at = 0;
    for (uint32_t axis = view->rank; axis-- > 0;) {
        at += index % view->shape[axis] * view->stride[axis];
        index /= view->shape[axis];
    }
    return (size_t)at;
}

halves halves_of(const locus_tensor *t, locus_dtype type)
{
    halves h = halves_new(t, type);
    float *floats = t->data;
    for (int64_t i = 0; i < locus_tensor_elements(t); i++) {
        const uint16_t half = halves_from_float(floats[i], type);
        ((uint16_t *)h.view.data)[halves_place(&h.view, i)] = half;
        floats[i] = halves_to_float(half, type);
    }
    return h;
}

int halves_are_rounded(const halves *h, const locus_tensor *t)
{
    size_t wrong = 0, marks = 0;
    for (int64_t i = 0; i < locus_tensor_elements(t); i++) {
        const float x = ((const float *)t->data)[i];
        uint16_t *found = &((uint16_t *)h->view.data)[halves_place(&h->view, i)];
        const uint16_t want = halves_from_float(x, h->view.dtype);
        const int is_nan = isnan(halves_to_float(*found, h->view.dtype)) != 0;
        /* a float sum that was added to 0 has lost the sign of a zero */
        const int zeros = ((*found | want) & 0x7FFF) == 0;
        wrong += (isnan(x) ? !is_nan : *found != want && !zeros) ? 1u : 0u;
        *found = MARK;
    }
    for (size_t i = 0; i < h->count; i++) marks += h->memory[i] == MARK;
    return wrong == 0 && marks == h->count;
}

/* Which type a tensor has: F16, BF16, or turn and turn about with F32. */
static locus_dtype type_of(int way, size_t index)
{
    static const locus_dtype mixed[] = {LOCUS_F16, LOCUS_BF16, LOCUS_F32};
    return way == 0 ? LOCUS_F16 : way == 1 ? LOCUS_BF16 : mixed[(index + (size_t)way - 2) % 3];
}

static int may_be_half(size_t index, const locus_tensor *t)
{
    const char *name = locus_tensor_name(index);
    return t->rank != 0 && t->dtype == LOCUS_F32 && strcmp(name, "sink") != 0 &&
           strcmp(name, "frequencies") != 0;
}

void half_call_new(half_call *c, test_problem *p, int way)
{
    memset(c, 0, sizeof *c);
    c->in = p->in[1];
    c->grad = p->grad[1];
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(&p->in[1], i);
        const locus_tensor *g = locus_tensor_at_const(&p->grad[1], i);
        const locus_dtype type = type_of(way, i);
        if (!may_be_half(i, t) || type == LOCUS_F32) continue;
        c->inputs[i] = halves_of(t, type);
        *locus_tensor_at(&c->in, i) = c->inputs[i].view;
        if (g->rank == 0) continue;
        c->gradients[i] = halves_new(g, way >= 2 ? LOCUS_BF16 : type);
        *locus_tensor_at(&c->grad, i) = c->gradients[i].view;
    }
    c->dout = halves_of(&p->dout[1], type_of(way >= 2 ? 0 : way, 0));
    c->out = halves_new(&p->results[1].out, type_of(way >= 2 ? 0 : way, 0));
}

void half_call_free(half_call *c)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        free(c->inputs[i].memory);
        free(c->gradients[i].memory);
    }
    free(c->dout.memory);
    free(c->out.memory);
}

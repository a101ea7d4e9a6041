/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "support/views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/tensor.h"

enum { MOST = 2 * LOCUS_TENSOR_COUNT + 3, EDGE = 8 };
static const uint32_t gap_bits = 0x7fc0dead; /* a NaN that no computation makes */

typedef struct block {
    const char *name;
    locus_tensor view;
    void *base;
    size_t bytes;
    int is_output;
} block;

struct test_views {
    int kind;
    uint64_t seed, drawn;
    size_t count;
    block blocks[MOST];
};

static int64_t draw(test_views *v, int64_t below)
{
    return (int64_t)(test_uniform(v->seed, v->drawn++) * (double)below);
}

/* ---- elements ---- */

/* The offset of element `index` (in the order of indices) of a view. */
static int64_t offset_of(const locus_tensor *t, int64_t index)
{
    int64_t offset = 0;
    for (uint32_t i = t->rank; i-- > 0;) {
        offset += index % t->shape[i] * t->stride[i];
        index /= t->shape[i];
    }
    return offset;
}

static void copy_elements(const locus_tensor *to, const locus_tensor *from)
{
    const size_t size = locus_dtype_bytes(to->dtype);
    for (int64_t i = 0; i < locus_tensor_elements(to); i++)
        memcpy((char *)to->data + size * (size_t)offset_of(to, i),
               (const char *)from->data + size * (size_t)offset_of(from, i), size);
}

/* Copy the last slice of `axis` of a dense tensor over the others. (The first row of a mask sees
 * nothing, see problem.c.) */
static void spread(const locus_tensor *t, uint32_t axis)
{
    const size_t size = locus_dtype_bytes(t->dtype);
    for (int64_t i = 0; i < locus_tensor_elements(t); i++) {
        const int64_t at = i / t->stride[axis] % t->shape[axis];
        const int64_t last = i + (t->shape[axis] - 1 - at) * t->stride[axis];
        memmove((char *)t->data + size * (size_t)i, (char *)t->data + size * (size_t)last, size);
    }
}

/* ---- layout ---- */

/* Strides for the axes in a random order. The last axis of floats stays inside, dense. */
static void choose_strides(test_views *v, locus_tensor *t)
{
    const int is_mask = t->dtype == LOCUS_U8;
    const uint32_t free_axes = is_mask ? t->rank : t->rank - 1;
    uint32_t order[LOCUS_MAX_RANK] = {0, 1, 2, 3};
    for (uint32_t i = free_axes; i > 1; i--) {
        const uint32_t j = (uint32_t)draw(v, i), swapped = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swapped;
    }
    int64_t next = is_mask ? 1 + draw(v, 3) : t->shape[t->rank - 1] + draw(v, 4);
    if (!is_mask) t->stride[t->rank - 1] = 1;
    for (uint32_t i = free_axes; i-- > 0;) {
        const uint32_t axis = order[i];
        if (v->kind == TEST_VIEWS_FAR && t->shape[axis] > 1 && next < INT64_C(1) << 31)
            next = (INT64_C(1) << 31) + 13;
        t->stride[axis] = next;
        next = next * (t->shape[axis] > 0 ? t->shape[axis] : 1) + draw(v, 4);
    }
}

static void choose_broadcast(test_views *v, const locus_tensor *dense, locus_tensor *t)
{
    const uint32_t axes = t->dtype == LOCUS_U8 ? t->rank : t->rank - 1;
    for (uint32_t axis = 0; axis < axes; axis++)
        if (t->shape[axis] > 1 && draw(v, 5) == 0) {
            spread(dense, axis);
            t->stride[axis] = 0;
        }
}

static int64_t extent_of(const locus_tensor *t)
{
    int64_t extent = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->shape[i] > 1) extent += (t->shape[i] - 1) * t->stride[i];
    return extent;
}

static void fill_gaps(test_views *v, const block *b)
{
    uint32_t *words = b->base;
    if (v->kind == TEST_VIEWS_FAR) return;
    for (size_t i = 0; i < b->bytes / sizeof *words; i++) words[i] = gap_bits;
    if (b->view.dtype != LOCUS_U8) return;
    for (size_t i = 0; i < b->bytes; i++) ((uint8_t *)b->base)[i] = (uint8_t)draw(v, 2);
}

static int take(test_views *v, block *b)
{
    const size_t size = locus_dtype_bytes(b->view.dtype);
    const size_t elements = (size_t)extent_of(&b->view) + 2 * EDGE;
    b->bytes = (elements * size + 63) / 64 * 64;
    b->base = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->base == MAP_FAILED) return 0;
    b->view.data = (char *)b->base + size * (size_t)(1 + draw(v, EDGE));
    return 1;
}

/* `wide`: the oracle's tensor, where that has the values (inputs); else NULL. */
static int lay_out(test_views *v, const char *name, locus_tensor *t, const locus_tensor *wide)
{
    if (t->rank == 0) return 1;
    block *b = &v->blocks[v->count];
    *b = (block){.name = name, .view = *t, .is_output = wide == NULL};
    choose_strides(v, &b->view);
    if (v->kind == TEST_VIEWS_BROADCAST && wide != NULL) {
        test_views again = *v; /* the same choices for both sides */
        choose_broadcast(v, t, &b->view);
        locus_tensor ignored = b->view;
        if (wide->data != t->data) choose_broadcast(&again, wide, &ignored);
    }
    if (!take(v, b)) return 0;
    v->count++;
    fill_gaps(v, b);
    copy_elements(&b->view, t);
    *t = b->view;
    return 1;
}

test_views *test_views_new(test_problem *problem, int kind, uint64_t seed)
{
    test_views *v = calloc(1, sizeof *v);
    if (v == NULL) exit(2);
    v->kind = kind;
    v->seed = seed;
    int ok = 1;
    for (size_t i = 0; ok && i < LOCUS_TENSOR_COUNT; i++) {
        const char *name = locus_tensor_name(i);
        ok = lay_out(v, name, locus_tensor_at(&problem->in[1], i),
                     locus_tensor_at(&problem->in[0], i)) &&
             lay_out(v, name, locus_tensor_at(&problem->grad[1], i), NULL);
    }
    ok = ok && lay_out(v, "dout", &problem->dout[1], &problem->dout[0]) &&
         lay_out(v, "out", &problem->results[1].out, NULL) &&
         lay_out(v, "lse", &problem->results[1].lse, NULL);
    if (ok) return v;
    test_views_free(v);
    return NULL;
}

void test_views_free(test_views *views)
{
    if (views == NULL) return;
    for (size_t i = 0; i < views->count; i++) munmap(views->blocks[i].base, views->blocks[i].bytes);
    free(views);
}

/* ---- outputs ---- */

static void fill_tensor(const locus_tensor *t, double value)
{
    for (int64_t i = 0; i < locus_tensor_elements(t); i++)
        test_set_value(t, offset_of(t, i), value);
}

void test_views_fill(const test_problem *problem, double value)
{
    fill_tensor(&problem->results[1].out, value);
    fill_tensor(&problem->results[1].lse, value);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        fill_tensor(locus_tensor_at_const(&problem->grad[1], i), value);
}

/* An output has no stride of 0, so as many words as it has elements may differ. */
static int is_damaged(const block *b)
{
    const uint32_t *words = b->base;
    const size_t count = b->bytes / sizeof *words;
    size_t untouched = 0;
    for (size_t i = 0; i < count; i++) untouched += words[i] == gap_bits;
    return untouched + (size_t)locus_tensor_elements(&b->view) < count;
}

const char *test_views_damaged(const test_views *views)
{
    for (size_t i = 0; i < views->count && views->kind != TEST_VIEWS_FAR; i++)
        if (views->blocks[i].is_output && is_damaged(&views->blocks[i]))
            return views->blocks[i].name;
    return NULL;
}

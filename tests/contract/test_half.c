/* SPDX-License-Identifier: Apache-2.0 */
/* F16 and BF16 tensors. A call on halves has the bits of the same call on the floats that these
 * halves are, rounded once: so what is tested about floats holds for halves. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contract/variants.h"
#include "core/half.h"
#include "support/check.h"

/* ---- conversions ---- */

static uint16_t to_half(float x, locus_dtype type)
{
    return type == LOCUS_F16 ? locus_float_to_f16(x) : locus_float_to_bf16(x);
}
static float to_float(uint16_t x, locus_dtype type)
{
    return type == LOCUS_F16 ? locus_f16_to_float(x) : locus_bf16_to_float(x);
}

/* A tensor of halves with a gap behind every row, its memory begins at an odd place and ends with
 * the last row: what reads or writes beyond it, a sanitizer sees. */
typedef struct halves {
    locus_tensor view;
    uint16_t *memory;
    size_t count;
} halves;
enum { GAP = 3, MARK = 0x1234 };

static halves halves_new(const locus_tensor *t, locus_dtype type)
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

/* The place of element `index` of the dense tensor of the same shape. */
static size_t place(const locus_tensor *view, int64_t index)
{
    int64_t at = 0;
    for (uint32_t axis = view->rank; axis-- > 0;) {
        at += index % view->shape[axis] * view->stride[axis];
        index /= view->shape[axis];
    }
    return (size_t)at;
}

/* Round the dense floats of `t` to halves, and copy those. */
static halves halves_of(const locus_tensor *t, locus_dtype type)
{
    halves h = halves_new(t, type);
    float *floats = t->data;
    for (int64_t i = 0; i < locus_tensor_elements(t); i++) {
        const uint16_t half = to_half(floats[i], type);
        ((uint16_t *)h.view.data)[place(&h.view, i)] = half;
        floats[i] = to_float(half, type);
    }
    return h;
}

/* 1 where the halves are the floats of `t`, rounded, and nothing else was written. */
static int are_rounded(const halves *h, const locus_tensor *t)
{
    size_t wrong = 0, marks = 0;
    for (int64_t i = 0; i < locus_tensor_elements(t); i++) {
        const float x = ((const float *)t->data)[i];
        uint16_t *found = &((uint16_t *)h->view.data)[place(&h->view, i)];
        const uint16_t want = to_half(x, h->view.dtype);
        const int is_nan = isnan(to_float(*found, h->view.dtype)) != 0;
        wrong += (isnan(x) ? !is_nan : *found != want) ? 1u : 0u;
        *found = MARK;
    }
    for (size_t i = 0; i < h->count; i++) marks += h->memory[i] == MARK;
    return wrong == 0 && marks == h->count;
}

/* ---- one call ---- */

typedef struct half_call {
    locus_tensors in, grad;
    halves inputs[LOCUS_TENSOR_COUNT], gradients[LOCUS_TENSOR_COUNT];
    halves out, dout;
} half_call;

/* Which type a tensor has: F16, BF16, or turn and turn about with F32. */
static locus_dtype type_of(int way, size_t index)
{
    static const locus_dtype mixed[] = {LOCUS_F16, LOCUS_BF16, LOCUS_F32};
    return way == 0 ? LOCUS_F16 : way == 1 ? LOCUS_BF16 : mixed[index % 3];
}

static int may_be_half(size_t index, const locus_tensor *t)
{
    const char *name = locus_tensor_name(index);
    return t->rank != 0 && t->dtype == LOCUS_F32 && strcmp(name, "sink") != 0 &&
           strcmp(name, "frequencies") != 0;
}

static void half_call_new(half_call *c, test_problem *p, int way)
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
        c->gradients[i] = halves_new(g, way == 2 ? LOCUS_BF16 : type);
        *locus_tensor_at(&c->grad, i) = c->gradients[i].view;
    }
    c->dout = halves_of(&p->dout[1], type_of(way == 2 ? 0 : way, 0));
    c->out = halves_new(&p->results[1].out, type_of(way == 2 ? 1 : way, 0));
}

static void half_call_free(half_call *c)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        free(c->inputs[i].memory);
        free(c->gradients[i].memory);
    }
    free(c->dout.memory);
    free(c->out.memory);
}

static void check_forward(const half_call *c, const test_problem *p, const locus_plan *plan)
{
    locus_error error = {""};
    const int64_t elements = locus_tensor_elements(&p->results[1].lse);
    locus_results to = p->results[1];
    const size_t bytes = locus_forward_workspace(plan);
    void *workspace = malloc(bytes + 1);
    to.out = c->out.view;
    to.lse.data = malloc((size_t)elements * sizeof(float) + 1);
    const locus_status status = locus_forward(plan, &c->in, &to, workspace, bytes, &error);
    CHECK(status == LOCUS_OK, "%s", error.text);
    CHECK(are_rounded(&c->out, &p->results[1].out), "out is not that of floats, rounded");
    CHECK(elements == 0 ||
              !memcmp(to.lse.data, p->results[1].lse.data, (size_t)elements * sizeof(float)),
          "lse differs");
    free(to.lse.data);
    free(workspace);
}

static void test_same(const test_variant *v, const char *name, test_spec shape)
{
    static const char *const ways[] = {"F16", "BF16", "mixed"};
    for (int way = 0; way < 3; way++) {
        if (!check_begin("half/%s/%s/%s", name, ways[way], v->name)) continue;
        test_problem *p = test_variant_problem(v, shape);
        locus_error error = {""};
        locus_plan *plan = NULL;
        half_call c;
        if (p == NULL) continue;
        p->config.threads = 1 + (uint32_t)way;
        half_call_new(&c, p, way);
        CHECK(test_problem_run(p, TEST_FLOAT, 0, &error) == LOCUS_OK, "%s", error.text);
        if (CHECK(locus_plan_new(&plan, &p->config, &c.in, &error) == LOCUS_OK, "%s", error.text)) {
            check_forward(&c, p, plan);
        }
        locus_plan_free(plan);
        half_call_free(&c);
        test_problem_free(p);
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t i = 0; i < TEST_VARIANTS; i++) {
        const test_variant *v = &test_variants[i];
        test_same(v, "tiles", (test_spec){.B = 2, .H = 3, .Tq = 70, .Tk = 75, .D = 10});
        test_same(v, "rows", (test_spec){.B = 2, .H = 4, .Hk = 2, .Tq = 1, .Tk = 150, .D = 32});
        test_same(v, "few", (test_spec){.B = 1, .H = 2, .Tq = 3, .Tk = 140, .D = 12, .Dv = 20});
    }
    return check_finish("contract/half");
}

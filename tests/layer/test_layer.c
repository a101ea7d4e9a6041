/* SPDX-License-Identifier: Apache-2.0 */

/* The layer against the oracle in every scheme, and its manners: bits, strides, chosen
 * gradients, adding, refusals, memory. */

#include <locus/layer.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/specs.h"
#include "support/allocator.h"
#include "support/check.h"
#include "support/judge.h"
#include "support/problem.h"

enum { GUARD = 64 };

/* A case of spec i. */
static int begin(const char *what, size_t i)
{
    const test_spec *s = &layer_specs[i];
    return check_begin("layer/%s/%s-%d", what, s->scheme, (int)i);
}

/* ---- a layer with its memory, guarded ---- */

typedef struct bench {
    locus_layer *layer;
    size_t saved_bytes, forward_bytes, backward_bytes;
    char *saved, *forward, *backward;
} bench;

static char *guarded(size_t bytes)
{
    char *memory = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
    if (memory == NULL) exit(2);
    memset(memory, 0x5A, bytes + GUARD);
    return memory;
}

static int guard_holds(const char *memory, size_t bytes)
{
    for (size_t i = 0; i < GUARD; i++)
        if (memory[bytes + i] != 0x5A) return 0;
    return 1;
}

static int bench_open(bench *b, const test_problem *p, const locus_tensors *shapes)
{
    locus_error error = {""};
    memset(b, 0, sizeof *b);
    const locus_status status = locus_layer_new(&b->layer, &p->config, shapes, &error);
    if (!CHECK(status == LOCUS_OK, "layer: %s", error.text)) return 0;
    b->saved_bytes = locus_layer_saved_bytes(b->layer);
    b->forward_bytes = locus_layer_forward_workspace(b->layer);
    b->backward_bytes = locus_layer_backward_workspace(b->layer);
    b->saved = guarded(b->saved_bytes);
    b->forward = guarded(b->forward_bytes);
    b->backward = guarded(b->backward_bytes);
    return 1;
}

static void bench_close(bench *b)
{
    if (b->layer != NULL)
        CHECK(guard_holds(b->saved, b->saved_bytes) && guard_holds(b->forward, b->forward_bytes) &&
                  guard_holds(b->backward, b->backward_bytes),
              "written beyond a workspace");
    free(b->saved);
    free(b->forward);
    free(b->backward);
    locus_layer_free(b->layer);
}

static int run_forward(const bench *b, const locus_tensors *in, const locus_results *results)
{
    locus_error error = {""};
    const locus_status status = locus_layer_forward(b->layer, in, results, b->saved, b->saved_bytes,
                                                    b->forward, b->forward_bytes, &error);
    return CHECK(status == LOCUS_OK, "forward: %s", error.text);
}

static int run_backward(const bench *b, const locus_tensors *in, const locus_tensor *dout,
                        const locus_tensors *grad, uint32_t flags)
{
    locus_error error = {""};
    const locus_results dresults = {.size = sizeof dresults, .out = *dout};
    const locus_status status =
        locus_layer_backward(b->layer, in, &dresults, grad, flags, b->saved, b->saved_bytes,
                             b->backward, b->backward_bytes, &error);
    return CHECK(status == LOCUS_OK, "backward: %s", error.text);
}

/* ---- against the oracle ---- */

static void test_oracle(size_t i)
{
    if (!begin("oracle", i)) return;
    test_problem *p = layer_problem(i);
    locus_error error = {""};
    CHECK(test_problem_run(p, TEST_ORACLE, 1, &error) == LOCUS_OK, "oracle: %s", error.text);
    CHECK(test_problem_run(p, TEST_FLOAT, 1, &error) == LOCUS_OK, "layer: %s", error.text);
    test_judge_tensor("out", &p->results[1].out, &p->results[0].out, 5e-6);
    test_judge_tensor("lse", &p->results[1].lse, &p->results[0].lse, 5e-6);
    for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++)
        if (locus_tensor_at_const(&p->grad[1], k)->rank != 0)
            test_judge_tensor(locus_tensor_name(k), locus_tensor_at_const(&p->grad[1], k),
                              locus_tensor_at_const(&p->grad[0], k), 2e-5);
    test_problem_free(p);
}

/* ---- bits ---- */

static int same_bits(const locus_tensor *a, const locus_tensor *b)
{
    const int64_t elements = locus_tensor_elements(a);
    return elements == locus_tensor_elements(b) &&
           (elements == 0 || memcmp(a->data, b->data, (size_t)elements * sizeof(float)) == 0);
}

static void test_threads(size_t i)
{
    static const uint32_t threads[] = {2, 3, 7};
    if (!begin("threads", i)) return;
    test_problem *one = layer_problem(i), *many = layer_problem(i);
    locus_error error = {""};
    CHECK(test_problem_run(one, TEST_FLOAT, 1, &error) == LOCUS_OK, "layer: %s", error.text);
    for (size_t t = 0; t < 3; t++) {
        many->config.threads = threads[t];
        CHECK(test_problem_run(many, TEST_FLOAT, 1, &error) == LOCUS_OK, "layer: %s", error.text);
        CHECK(same_bits(&one->results[1].out, &many->results[1].out) &&
                  same_bits(&one->results[1].lse, &many->results[1].lse),
              "results differ with %u threads", (unsigned)threads[t]);
        for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++)
            CHECK(same_bits(locus_tensor_at_const(&one->grad[1], k),
                            locus_tensor_at_const(&many->grad[1], k)),
                  "grad.%s differs with %u threads", locus_tensor_name(k), (unsigned)threads[t]);
    }
    test_problem_free(one);
    test_problem_free(many);
}

/* Entry b of a [B, ...] tensor. */
static locus_tensor entry(const locus_tensor *t, int64_t b)
{
    locus_tensor one = *t;
    if (t->rank == 0) return one;
    one.shape[0] = 1;
    one.data = (char *)t->data + (size_t)(b * t->stride[0]) * (t->dtype == LOCUS_U8 ? 1 : 4);
    return one;
}

/* The last entry of the batch alone gives the same bits as among the others. */
static void test_batch(size_t i)
{
    if (layer_specs[i].B < 2 || layer_specs[i].with != NULL || layer_specs[i].Tk == 0) return;
    if (!begin("batch", i)) return;
    test_problem *all = layer_problem(i), *alone = layer_problem(i);
    const int64_t last = layer_specs[i].B - 1;
    bench b;
    locus_error error = {""};
    CHECK(test_problem_run(all, TEST_FLOAT, 1, &error) == LOCUS_OK, "layer: %s", error.text);
    locus_tensors in = alone->in[1],
                  grad = {.size = sizeof grad, .x = entry(&alone->grad[1].x, last)};
    in.x = entry(&in.x, last);
    in.memory = entry(&in.memory, last);
    const locus_results results = {.size = sizeof results,
                                   .out = entry(&alone->results[1].out, last),
                                   .lse = entry(&alone->results[1].lse, last)};
    const locus_tensor dout = entry(&alone->dout[1], last);
    const locus_tensor out = entry(&all->results[1].out, last);
    const locus_tensor dx = entry(&all->grad[1].x, last);
    if (bench_open(&b, alone, &in) && run_forward(&b, &in, &results) &&
        run_backward(&b, &in, &dout, &grad, 0)) {
        CHECK(same_bits(&out, &results.out), "out depends on the other entries");
        CHECK(same_bits(&dx, &grad.x), "grad.x depends on the other entries");
    }
    bench_close(&b);
    test_problem_free(all);
    test_problem_free(alone);
}

/* ---- chosen gradients, adding ---- */

static void test_chosen(size_t i)
{
    if (!begin("chosen", i)) return;
    test_problem *all = layer_problem(i), *one = layer_problem(i);
    locus_error error = {""};
    bench b;
    CHECK(test_problem_run(all, TEST_FLOAT, 1, &error) == LOCUS_OK, "layer: %s", error.text);
    if (bench_open(&b, one, &one->in[1]) && run_forward(&b, &one->in[1], &one->results[1])) {
        for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++) {
            locus_tensors grad = {.size = sizeof grad, .q = {.rank = 0}};
            const locus_tensor *t = locus_tensor_at_const(&one->grad[1], k);
            if (t->rank == 0) continue;
            *locus_tensor_at(&grad, k) = *t;
            if (run_backward(&b, &one->in[1], &one->dout[1], &grad, 0))
                CHECK(same_bits(t, locus_tensor_at_const(&all->grad[1], k)),
                      "grad.%s differs when it is alone", locus_tensor_name(k));
        }
        const locus_tensors none = {.size = sizeof none, .q = {.rank = 0}};
        run_backward(&b, &one->in[1], &one->dout[1], &none, 0);
    }
    bench_close(&b);
    test_problem_free(all);
    test_problem_free(one);
}

static void test_adding(size_t i)
{
    if (!begin("adding", i)) return;
    test_problem *p = layer_problem(i), *added = layer_problem(i);
    locus_error error = {""};
    bench b;
    CHECK(test_problem_run(p, TEST_FLOAT, 1, &error) == LOCUS_OK, "layer: %s", error.text);
    for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++) {
        const locus_tensor *start = locus_tensor_at_const(&added->grad[1], k);
        const locus_tensor *wide = locus_tensor_at_const(&added->grad[0], k);
        for (int64_t e = 0; e < locus_tensor_elements(start); e++) {
            const double value = 0.25 * (double)(e % 5) - 0.5;
            test_set_value(start, e, value);
            test_set_value(wide, e, value + test_value(locus_tensor_at_const(&p->grad[1], k), e));
        }
    }
    if (bench_open(&b, added, &added->in[1]) &&
        run_forward(&b, &added->in[1], &added->results[1]) &&
        run_backward(&b, &added->in[1], &added->dout[1], &added->grad[1], LOCUS_ACCUMULATE))
        for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++)
            if (locus_tensor_at_const(&added->grad[1], k)->rank != 0)
                test_judge_tensor(locus_tensor_name(k), locus_tensor_at_const(&added->grad[1], k),
                                  locus_tensor_at_const(&added->grad[0], k), 2e-6);
    bench_close(&b);
    test_problem_free(p);
    test_problem_free(added);
}

/* ---- strides ---- */

typedef struct wide_copy {
    locus_tensor view;
    float *memory;
    size_t floats;
} wide_copy;

/* The same values with gaps after every axis but the last. */
static wide_copy widen(const locus_tensor *t)
{
    wide_copy w = {.view = *t};
    int64_t stride = t->shape[t->rank - 1] + 3;
    for (uint32_t a = t->rank - 1; a-- > 0; stride = stride * t->shape[a] + 5)
        w.view.stride[a] = stride;
    w.floats = (size_t)stride + 16;
    w.memory = malloc(w.floats * sizeof(float));
    if (w.memory == NULL) exit(2);
    for (size_t i = 0; i < w.floats; i++) w.memory[i] = -77777.0f;
    w.view.data = w.memory;
    return w;
}

/* Copy between a dense tensor and its wide twin; the last axis is whole rows. */
static void copy_wide(const wide_copy *w, const locus_tensor *dense, int to_wide)
{
    const locus_tensor *v = &w->view;
    const int64_t columns = v->shape[v->rank - 1];
    if (columns == 0) return;
    for (int64_t r = 0; r < locus_tensor_elements(v) / columns; r++) {
        int64_t rest = r, at = 0;
        for (uint32_t a = v->rank - 1; a-- > 0; rest /= v->shape[a])
            at += rest % v->shape[a] * v->stride[a];
        float *there = w->memory + at, *here = (float *)dense->data + r * columns;
        memcpy(to_wide ? there : here, to_wide ? here : there, (size_t)columns * sizeof(float));
    }
}

static int gaps_hold(const wide_copy *w)
{
    size_t gaps = 0;
    for (size_t i = 0; i < w->floats; i++) gaps += w->memory[i] == -77777.0f;
    return gaps == w->floats - (size_t)locus_tensor_elements(&w->view);
}

static void test_strides(size_t i)
{
    if (!begin("strides", i)) return;
    test_problem *dense = layer_problem(i), *p = layer_problem(i);
    locus_error error = {""};
    wide_copy in[LOCUS_TENSOR_COUNT] = {{.floats = 0}}, grad[LOCUS_TENSOR_COUNT] = {{.floats = 0}};
    bench b;
    CHECK(test_problem_run(dense, TEST_FLOAT, 1, &error) == LOCUS_OK, "layer: %s", error.text);
    for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++) {
        locus_tensor *t = locus_tensor_at(&p->in[1], k), *g = locus_tensor_at(&p->grad[1], k);
        if (t->rank == 0 || t->dtype != LOCUS_F32) continue;
        in[k] = widen(t);
        grad[k] = widen(g);
        copy_wide(&in[k], t, 1);
        *t = in[k].view;
        *g = grad[k].view;
    }
    const wide_copy out = widen(&p->results[1].out), lse = widen(&p->results[1].lse);
    const wide_copy dout = widen(&p->dout[1]);
    const locus_results results = {.size = sizeof results, .out = out.view, .lse = lse.view};
    copy_wide(&dout, &p->dout[1], 1);
    if (bench_open(&b, p, &p->in[1]) && run_forward(&b, &p->in[1], &results) &&
        run_backward(&b, &p->in[1], &dout.view, &p->grad[1], 0)) {
        copy_wide(&out, &p->results[1].out, 0);
        copy_wide(&lse, &p->results[1].lse, 0);
        CHECK(same_bits(&p->results[1].out, &dense->results[1].out), "out differs");
        CHECK(same_bits(&p->results[1].lse, &dense->results[1].lse), "lse differs");
        CHECK(gaps_hold(&out) && gaps_hold(&lse), "a gap of a result was written");
        for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++) {
            if (grad[k].memory == NULL) continue;
            CHECK(gaps_hold(&grad[k]), "a gap of grad.%s was written", locus_tensor_name(k));
            copy_wide(&grad[k], locus_tensor_at_const(&p->grad[0], k), 0);
            CHECK(same_bits(locus_tensor_at_const(&p->grad[0], k),
                            locus_tensor_at_const(&dense->grad[1], k)),
                  "grad.%s differs", locus_tensor_name(k));
        }
    }
    bench_close(&b);
    for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++) free(in[k].memory), free(grad[k].memory);
    free(out.memory), free(lse.memory), free(dout.memory);
    test_problem_free(dense);
    test_problem_free(p);
}

void test_layer_manners(void);

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t i = 0; i < LAYER_SPECS; i++) {
        test_oracle(i);
        test_threads(i);
        test_batch(i);
        test_chosen(i);
        test_adding(i);
        test_strides(i);
    }
    test_layer_manners();
    return check_finish("layer");
}

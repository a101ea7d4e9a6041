/* SPDX-License-Identifier: Apache-2.0 */

/* What a layer refuses, and what it does with memory. */

#include <locus/layer.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/allocator.h"
#include "support/check.h"
#include "support/problem.h"

void test_layer_manners(void);

static const test_spec plain = {.scheme = "none",
                                .level = LOCUS_LAYER,
                                .B = 2,
                                .H = 2,
                                .Tq = 5,
                                .Tk = 8,
                                .D = 3,
                                .E = 4,
                                .with = "mask:11",
                                .seed = 9};

/* One layer, one call; tests change an argument and expect a refusal. */
typedef struct call {
    test_problem *p;
    locus_layer *layer;
    locus_tensors in, grad;
    locus_results results;
    locus_results dresults;
    void *saved, *work, *blocks[2];
    size_t saved_bytes, forward_bytes, backward_bytes;
    uint32_t flags;
} call;

static void open_call(call *c)
{
    locus_error error = {""};
    memset(c, 0, sizeof *c);
    c->p = test_problem_new(&plain);
    c->in = c->p->in[1];
    c->grad = c->p->grad[1];
    c->results = c->p->results[1];
    c->dresults = test_problem_gradient(c->p, TEST_FLOAT);
    if (locus_layer_new(&c->layer, &c->p->config, &c->in, &error) != LOCUS_OK) exit(2);
    c->saved_bytes = locus_layer_saved_bytes(c->layer);
    c->forward_bytes = locus_layer_forward_workspace(c->layer);
    c->backward_bytes = locus_layer_backward_workspace(c->layer);
    const size_t most = c->forward_bytes > c->backward_bytes ? c->forward_bytes : c->backward_bytes;
    c->saved = c->blocks[0] = malloc(c->saved_bytes + 8);
    c->work = c->blocks[1] = malloc(most + 8);
    if (c->saved == NULL || c->work == NULL) exit(2);
    memset(c->saved, 0, c->saved_bytes);
}

static void close_call(call *c)
{
    locus_layer_free(c->layer);
    free(c->blocks[0]);
    free(c->blocks[1]);
    test_problem_free(c->p);
}

static locus_status forward(const call *c, locus_error *error)
{
    return locus_layer_forward(c->layer, &c->in, &c->results, c->saved, c->saved_bytes, c->work,
                               c->forward_bytes, error);
}

static locus_status backward(const call *c, locus_error *error)
{
    return locus_layer_backward(c->layer, &c->in, &c->dresults, &c->grad, c->flags, c->saved,
                                c->saved_bytes, c->work, c->backward_bytes, error);
}

typedef locus_status (*pass)(const call *c, locus_error *error);

static void expect(const call *c, pass run, locus_status status, const char *words)
{
    locus_error error = {""};
    const locus_status found = run(c, &error);
    CHECK(found == status, "found %s (%s), expected %s", locus_status_text(found), error.text,
          locus_status_text(status));
    CHECK(strstr(error.text, words) != NULL, "\"%s\" does not say \"%s\"", error.text, words);
    CHECK(run(c, NULL) == status, "another verdict without a locus_error");
}

/* Each row changes one thing of a good call. */
#define REFUSED(name, run, status, words, change)                                                  \
    if (check_begin("layer/refused/%s", name)) {                                                   \
        call c;                                                                                    \
        open_call(&c);                                                                             \
        change;                                                                                    \
        expect(&c, run, status, words);                                                            \
        close_call(&c);                                                                            \
    }

static void test_refused_inputs(void)
{
    REFUSED("shape", forward, LOCUS_ERR_TENSOR, "tensor w_k", c.in.w_k.shape[0]--)
    REFUSED("missing", forward, LOCUS_ERR_TENSOR, "tensor memory", c.in.memory.rank = 0)
    REFUSED("extra", forward, LOCUS_ERR_TENSOR, "tensor w", c.in.w = c.in.b_q)
    REFUSED("type", forward, LOCUS_ERR_TENSOR, "tensor x", c.in.x.dtype = LOCUS_F64)
    REFUSED("mask-type", forward, LOCUS_ERR_TENSOR, "tensor mask", c.in.mask.dtype = LOCUS_F32)
    REFUSED("stride", forward, LOCUS_ERR_TENSOR, "tensor x", c.in.x.stride[2] = 2)
    REFUSED("negative", forward, LOCUS_ERR_TENSOR, "tensor x", c.in.x.stride[1] = -4)
    REFUSED("no-data", forward, LOCUS_ERR_TENSOR, "tensor w_v", c.in.w_v.data = NULL)
    REFUSED("out-shape", forward, LOCUS_ERR_TENSOR, "tensor out", c.results.out.shape[1]++)
    REFUSED("lse-shape", forward, LOCUS_ERR_TENSOR, "tensor lse", c.results.lse.rank = 2)
    REFUSED("dout-shape", backward, LOCUS_ERR_TENSOR, "tensor dout", c.dresults.out.shape[2]--)
    REFUSED("grad-shape", backward, LOCUS_ERR_TENSOR, "grad.b_o", c.grad.b_o.shape[0]--)
    REFUSED("grad-mask", backward, LOCUS_ERR_TENSOR, "grad.mask", c.grad.mask = c.in.mask)
    REFUSED("grad-of-nothing", backward, LOCUS_ERR_TENSOR, "grad.pos", c.grad.pos = c.grad.w_q)
    REFUSED("flags", backward, LOCUS_ERR_ARGUMENT, "flags", c.flags = 2)
}

static void test_refused_memory(void)
{
    REFUSED("saved-small", forward, LOCUS_ERR_WORKSPACE, "saved", c.saved_bytes--)
    REFUSED("work-small", forward, LOCUS_ERR_WORKSPACE, "workspace", c.forward_bytes--)
    REFUSED("saved-small-backward", backward, LOCUS_ERR_WORKSPACE, "saved", c.saved_bytes--)
    REFUSED("work-small-backward", backward, LOCUS_ERR_WORKSPACE, "workspace", c.backward_bytes--)
    if (check_begin("layer/refused/null")) {
        call c;
        locus_layer *layer = (locus_layer *)&c;
        open_call(&c);
        void *const saved = c.saved, *const work = c.work;
        c.saved = NULL;
        expect(&c, forward, LOCUS_ERR_ARGUMENT, "saved");
        c.saved = (char *)saved + 4;
        expect(&c, forward, LOCUS_ERR_ARGUMENT, "saved: found address");
        c.saved = saved, c.work = NULL;
        expect(&c, backward, LOCUS_ERR_ARGUMENT, "workspace");
        c.work = work;
        CHECK(locus_layer_new(&layer, NULL, &c.in, NULL) == LOCUS_ERR_ARGUMENT, "config NULL");
        CHECK(locus_layer_new(NULL, &c.p->config, &c.in, NULL) == LOCUS_ERR_ARGUMENT, "out NULL");
        CHECK(locus_layer_new(&layer, &c.p->config, NULL, NULL) == LOCUS_ERR_ARGUMENT,
              "shapes NULL");
        locus_layer_free(NULL);
        close_call(&c);
    }
}

static void test_refused_overlaps(void)
{
    REFUSED("out-on-x", forward, LOCUS_ERR_OVERLAP, "out overlaps x",
            c.results.out.data = c.in.x.data)
    REFUSED("lse-on-out", forward, LOCUS_ERR_OVERLAP, "lse overlaps out",
            c.results.lse.data = (float *)c.results.out.data + 3)
    REFUSED("out-on-saved", forward, LOCUS_ERR_OVERLAP, "out overlaps saved",
            c.results.out.data = c.saved)
    REFUSED("work-on-saved", forward, LOCUS_ERR_OVERLAP, "workspace overlaps saved",
            c.saved = (char *)c.work + 8)
    REFUSED("out-on-itself", forward, LOCUS_ERR_OVERLAP, "out overlaps itself",
            c.results.out.stride[0] = 0)
    REFUSED("out-rows-meet", forward, LOCUS_ERR_OVERLAP, "out overlaps itself",
            c.results.out.stride[1]--)
    REFUSED("grad-rows-meet", backward, LOCUS_ERR_OVERLAP, "grad.w_q overlaps itself",
            c.grad.w_q.stride[0]--)
    REFUSED("grad-on-input", backward, LOCUS_ERR_OVERLAP, "grad.w_q overlaps w_q",
            c.grad.w_q.data = c.in.w_q.data)
    REFUSED("grad-on-grad", backward, LOCUS_ERR_OVERLAP, "grad.w_v overlaps grad.w_k",
            c.grad.w_v.data = c.grad.w_k.data)
    REFUSED("grad-on-dout", backward, LOCUS_ERR_OVERLAP, "grad.x overlaps dout",
            c.grad.x.data = c.dresults.out.data)
    REFUSED("grad-on-saved", backward, LOCUS_ERR_OVERLAP, "grad.x overlaps saved",
            c.grad.x.data = c.saved)
    REFUSED("grad-on-work", backward, LOCUS_ERR_OVERLAP, "workspace overlaps grad.x",
            c.grad.x.data = c.work)
    if (check_begin("layer/refused/none")) {
        call c;
        open_call(&c);
        expect(&c, forward, LOCUS_OK, "");
        expect(&c, backward, LOCUS_OK, "");
        close_call(&c);
    }
}

/* Shapes that no memory holds are refused by arithmetic, not by luck. */
static void test_huge(void)
{
    if (!check_begin("layer/refused/huge")) return;
    const int64_t B = 1 << 24, T = 1 << 20, H = 1 << 24, D = 1024;
    locus_config config;
    locus_error error = {""};
    locus_layer *layer = NULL;
    CHECK(locus_config_init(&config, "none") == LOCUS_OK, "config");
    config.heads = (uint32_t)H;
    locus_tensors shapes = {.size = sizeof shapes,
                            .x = locus_view(NULL, LOCUS_F32, 3, (const int64_t[]){B, T, 0})};
    shapes.w_q = shapes.w_k = shapes.w_v =
        locus_view(NULL, LOCUS_F32, 2, (const int64_t[]){H * D, 0});
    CHECK(locus_layer_new(&layer, &config, &shapes, &error) == LOCUS_ERR_MEMORY, "%s", error.text);
    CHECK(layer == NULL, "a layer came out");
}

/* Every k-th allocation of locus_layer_new fails; computing allocates nothing. */
static void test_allocations(void)
{
    static const test_spec spec = {.scheme = "transformer_xl",
                                   .level = LOCUS_LAYER,
                                   .B = 1,
                                   .H = 2,
                                   .Tq = 5,
                                   .Tk = 5,
                                   .D = 4,
                                   .E = 6,
                                   .settings = "table=half"};
    if (!check_begin("layer/allocations")) return;
    test_problem *p = test_problem_new(&spec);
    test_allocator memory;
    size_t k = 1;
    for (;; k++) {
        locus_layer *layer = NULL;
        locus_error error = {""};
        test_allocator_init(&memory);
        memory.fail_at = k;
        p->config.allocator = &memory.interface;
        const locus_status status = locus_layer_new(&layer, &p->config, &p->in[1], &error);
        if (memory.failures == 0) {
            CHECK(status == LOCUS_OK, "%s", error.text);
            locus_layer_free(layer);
            CHECK(memory.live_blocks == 0 && memory.misuse == 0, "leak");
            break;
        }
        CHECK(status == LOCUS_ERR_MEMORY && layer == NULL, "allocation %zu: %s", k, error.text);
        CHECK(memory.live_blocks == 0 && memory.misuse == 0, "allocation %zu: leak", k);
    }
    CHECK(k > 3, "only %zu allocations", k - 1);

    locus_error error = {""};
    test_allocator_init(&memory);
    CHECK(test_problem_run(p, TEST_FLOAT, 1, &error) == LOCUS_OK, "%s", error.text);
    CHECK(memory.calls == k - 1, "computing allocated: %zu calls", memory.calls);
    CHECK(memory.live_blocks == 0, "leak");
    test_problem_free(p);
}

/* b_o belongs to w_o. */
static void test_bias_alone(void)
{
    if (!check_begin("layer/refused/b_o-alone")) return;
    test_problem *p = test_problem_new(&plain);
    locus_layer *layer = NULL;
    locus_error error = {""};
    p->in[1].w_o.rank = 0;
    CHECK(locus_layer_new(&layer, &p->config, &p->in[1], &error) == LOCUS_ERR_TENSOR, "accepted");
    CHECK(strstr(error.text, "tensor b_o") != NULL, "\"%s\"", error.text);
    test_problem_free(p);
}

void test_layer_manners(void)
{
    test_refused_inputs();
    test_refused_memory();
    test_refused_overlaps();
    test_huge();
    test_allocations();
    test_bias_alone();
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Layers on tables that were projected and packed before: the bits of any other call, refusals,
 * memory. */

#include <locus/layer.h>
#include <stdlib.h>
#include <string.h>

#include "layer/specs.h"
#include "support/allocator.h"
#include "support/check.h"
#include "support/judge.h"

static int same_bits(const locus_tensor *a, const locus_tensor *b)
{
    const size_t bytes = (size_t)locus_tensor_elements(a) * sizeof(float);
    return bytes == 0 || memcmp(a->data, b->data, bytes) == 0;
}

static void test_bits(size_t i)
{
    if (!check_begin("layer-prepared/bits/%s-%d", layer_specs[i].scheme, (int)i)) return;
    test_problem *plain = layer_problem(i), *prepared = layer_problem(i);
    for (uint32_t threads = 1; threads <= 2; threads++) {
        locus_error error = {""};
        plain->config.threads = prepared->config.threads = threads;
        const test_manner before = {.prepared = 1};
        CHECK(test_run(plain, &(test_manner){0}, &error) == LOCUS_OK, "%s", error.text);
        CHECK(test_run(prepared, &before, &error) == LOCUS_OK, "%s", error.text);
        CHECK(same_bits(&plain->results[1].out, &prepared->results[1].out), "out differs");
        CHECK(same_bits(&plain->results[1].lse, &prepared->results[1].lse), "lse differs");
        for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++)
            CHECK(same_bits(locus_tensor_at_const(&plain->grad[1], k),
                            locus_tensor_at_const(&prepared->grad[1], k)),
                  "grad.%s differs", locus_tensor_name(k));
    }
    test_problem_free(plain);
    test_problem_free(prepared);
}

/* ---- refusals ---- */

static const test_spec relative = {.scheme = "deberta",
                                   .level = LOCUS_LAYER,
                                   .B = 1,
                                   .H = 2,
                                   .Tq = 9,
                                   .Tk = 9,
                                   .D = 4,
                                   .E = 6,
                                   .settings = "span=4 c2p=1 p2c=1",
                                   .seed = 3};

typedef struct call {
    test_problem *p;
    locus_layer *layer;
    void *saved, *work;
    locus_results dresults;
} call;

static call begin(void)
{
    locus_error error = {""};
    call c = {.p = test_problem_new(&relative)};
    CHECK(locus_layer_new(&c.layer, &c.p->config, &c.p->in[1], &error) == LOCUS_OK, "%s",
          error.text);
    c.saved = malloc(locus_layer_saved_bytes(c.layer));
    c.work =
        malloc(locus_layer_forward_workspace(c.layer) + locus_layer_backward_workspace(c.layer));
    c.dresults = test_problem_gradient(c.p, TEST_FLOAT);
    return c;
}

static void end(call *c)
{
    free(c->saved);
    free(c->work);
    locus_layer_free(c->layer);
    test_problem_free(c->p);
}

static locus_status forward(const call *c, const locus_layer_tables *tables, locus_error *error)
{
    return locus_layer_forward_prepared(c->layer, tables, &c->p->in[1], &c->p->results[1], c->saved,
                                        locus_layer_saved_bytes(c->layer), c->work,
                                        locus_layer_forward_workspace(c->layer), error);
}

static locus_status backward(const call *c, const locus_layer_tables *tables, locus_error *error)
{
    return locus_layer_backward_prepared(c->layer, tables, &c->p->in[1], &c->dresults,
                                         &c->p->grad[1], 0, c->saved,
                                         locus_layer_saved_bytes(c->layer), c->work,
                                         locus_layer_backward_workspace(c->layer), error);
}

static locus_status plain_backward(const call *c, locus_error *error)
{
    return locus_layer_backward(c->layer, &c->p->in[1], &c->dresults, &c->p->grad[1], 0, c->saved,
                                locus_layer_saved_bytes(c->layer), c->work,
                                locus_layer_backward_workspace(c->layer), error);
}

static void expect(locus_status got, locus_status want, const locus_error *error, const char *words)
{
    CHECK(got == want, "found %s (%s), expected %s", locus_status_text(got), error->text,
          locus_status_text(want));
    CHECK(strstr(error->text, words) != NULL, "\"%s\" does not say \"%s\"", error->text, words);
}

static void test_refusals(void)
{
    if (!check_begin("layer-prepared/refusals")) return;
    call c = begin(), other = begin();
    locus_layer_tables *ahead = NULL, *both = NULL, *none = NULL;
    locus_error error = {""};
    locus_tensors in = c.p->in[1];
    in.x.data = NULL; /* not read */
    CHECK(locus_layer_tables_new(&ahead, c.layer, &in, 0, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_layer_tables_new(&both, c.layer, &in, LOCUS_TABLES_BACKWARD, &error) == LOCUS_OK,
          "%s", error.text);
    expect(forward(&c, NULL, &error), LOCUS_ERR_ARGUMENT, &error, "found NULL");
    expect(forward(&other, ahead, &error), LOCUS_ERR_ARGUMENT, &error, "another layer");
    CHECK(forward(&c, ahead, &error) == LOCUS_OK, "%s", error.text);
    expect(backward(&c, NULL, &error), LOCUS_ERR_ARGUMENT, &error, "found NULL");
    expect(backward(&c, ahead, &error), LOCUS_ERR_ARGUMENT, &error, "the forward pass alone");
    expect(backward(&other, both, &error), LOCUS_ERR_ARGUMENT, &error, "another layer");
    expect(plain_backward(&c, &error), LOCUS_ERR_ARGUMENT, &error, "has no tables");
    CHECK(backward(&c, both, &error) == LOCUS_OK, "%s", error.text);
    expect(locus_layer_tables_new(&none, c.layer, &in, 2, &error), LOCUS_ERR_ARGUMENT, &error,
           "unknown flag");
    in.w_k.data = NULL;
    expect(locus_layer_tables_new(&none, c.layer, &in, 0, &error), LOCUS_ERR_TENSOR, &error,
           "tensor w_k");
    in.w_k = c.p->in[1].w_q;
    in.rel.shape[0]--;
    expect(locus_layer_tables_new(&none, c.layer, &in, 0, &error), LOCUS_ERR_TENSOR, &error,
           "tensor rel");
    CHECK(none == NULL, "tables came out");
    locus_layer_tables_free(ahead);
    locus_layer_tables_free(both);
    locus_layer_tables_free(NULL);
    end(&c);
    end(&other);
}

/* A prepared backward pass takes what an unprepared forward pass has saved. */
static void test_mixed(void)
{
    if (!check_begin("layer-prepared/mixed")) return;
    call plain = begin(), mixed = begin();
    locus_layer_tables *both = NULL;
    locus_error error = {""};
    call *const calls[] = {&plain, &mixed};
    for (size_t i = 0; i < 2; i++) {
        const call *c = calls[i];
        CHECK(locus_layer_forward(c->layer, &c->p->in[1], &c->p->results[1], c->saved,
                                  locus_layer_saved_bytes(c->layer), c->work,
                                  locus_layer_forward_workspace(c->layer), &error) == LOCUS_OK,
              "%s", error.text);
    }
    CHECK(plain_backward(&plain, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_layer_tables_new(&both, mixed.layer, &mixed.p->in[1], LOCUS_TABLES_BACKWARD,
                                 &error) == LOCUS_OK,
          "%s", error.text);
    CHECK(backward(&mixed, both, &error) == LOCUS_OK, "%s", error.text);
    for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++)
        CHECK(same_bits(locus_tensor_at_const(&plain.p->grad[1], k),
                        locus_tensor_at_const(&mixed.p->grad[1], k)),
              "grad.%s differs", locus_tensor_name(k));
    locus_layer_tables_free(both);
    end(&plain);
    end(&mixed);
}

/* ---- memory ---- */

static void test_allocations(void)
{
    if (!check_begin("layer-prepared/allocations")) return;
    test_problem *p = test_problem_new(&relative);
    test_allocator memory;
    locus_layer *layer = NULL;
    locus_error error = {""};
    test_allocator_init(&memory);
    p->config.allocator = &memory.interface;
    CHECK(locus_layer_new(&layer, &p->config, &p->in[1], &error) == LOCUS_OK, "%s", error.text);
    const size_t before = memory.calls, blocks = memory.live_blocks;
    for (size_t k = 1;; k++) {
        locus_layer_tables *tables = NULL;
        memory.fail_at = memory.calls + k;
        memory.failures = 0;
        const locus_status status =
            locus_layer_tables_new(&tables, layer, &p->in[1], LOCUS_TABLES_BACKWARD, &error);
        const int failed = memory.failures > 0;
        CHECK(failed ? status == LOCUS_ERR_MEMORY && tables == NULL : status == LOCUS_OK,
              "allocation %zu: %s", k, error.text);
        locus_layer_tables_free(tables);
        CHECK(memory.live_blocks == blocks && memory.misuse == 0, "allocation %zu: leak", k);
        if (!failed) break;
    }
    CHECK(memory.calls > before + 4, "only %zu allocations", memory.calls - before);
    locus_layer_free(layer);
    CHECK(memory.live_blocks == 0, "leak");
    test_problem_free(p);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t i = 0; i < LAYER_SPECS; i++) test_bits(i);
    test_refusals();
    test_mixed();
    test_allocations();
    return check_finish("layer-prepared");
}

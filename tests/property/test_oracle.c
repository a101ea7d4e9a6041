/* SPDX-License-Identifier: Apache-2.0 */

/* The oracle's door: what it refuses, that it leaves nothing behind when memory runs out,
 * and that types and strides of the inputs do not matter. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <locus/oracle.h>

#include "property/ways.h"
#include "support/allocator.h"

static test_problem *make_layer(void)
{
    return test_problem_new(&(test_spec){.scheme = "deberta",
                                         .level = LOCUS_LAYER,
                                         .B = 2,
                                         .H = 2,
                                         .Tq = 4,
                                         .Tk = 6,
                                         .D = 3,
                                         .E = 5,
                                         .settings = "span=3",
                                         .with = "bias_dense key_mask",
                                         .seed = 8});
}

/* ---- memory ---- */

static void out_of_memory(test_problem *p, const char *name)
{
    if (!check_begin("property/oracle/memory/%s", name)) return;
    size_t failed = 0;
    for (size_t k = 1; k < 500; k++) {
        test_allocator memory;
        locus_error error = {""};
        test_allocator_init(&memory);
        memory.fail_at = k;
        p->config.allocator = &memory.interface;
        const locus_status status = test_problem_run(p, TEST_ORACLE, 1, &error);
        CHECK(memory.live_blocks == 0 && memory.misuse == 0, "allocation %zu: %zu blocks left", k,
              memory.live_blocks);
        if (memory.failures == 0) {
            CHECK(status == LOCUS_OK, "without a failure: %s", error.text);
            break;
        }
        failed++;
        CHECK(status == LOCUS_ERR_MEMORY && error.text[0] != '\0', "allocation %zu: status %d", k,
              (int)status);
    }
    CHECK(failed > 5, "only %zu allocations failed", failed);
    p->config.allocator = NULL;
}

/* ---- refusals ---- */

static void refuse(const test_problem *p, const locus_tensors *in, const locus_results *results,
                   const locus_tensor *dout, const locus_tensors *grad, locus_status expected,
                   const char *name)
{
    locus_error error = {""};
    const locus_results dresults = test_problem_gradient(p, TEST_ORACLE);
    const locus_status status = locus_oracle(p->spec.level, &p->config, in, results,
                                             dout != NULL ? &dresults : NULL, grad, &error);
    CHECK(status == expected, "%s: status %d (%s), expected %d", name, (int)status, error.text,
          (int)expected);
    CHECK(status == LOCUS_OK || error.text[0] != '\0', "%s: no message", name);
}

static void refusals(void)
{
    if (!check_begin("property/oracle/refusals")) return;
    test_problem *p = make(&ways[0], 4, 5, "", "");
    const locus_tensors *in = &p->in[0];
    const locus_results *good = &p->results[0];
    refuse(p, in, good, NULL, NULL, LOCUS_OK, "a good call");
    refuse(p, in, good, &p->dout[0], NULL, LOCUS_ERR_ARGUMENT, "dout without grad");
    refuse(p, in, good, NULL, &p->grad[0], LOCUS_ERR_ARGUMENT, "grad without dout");
    refuse(p, in, NULL, NULL, NULL, LOCUS_ERR_ARGUMENT, "no results");
    CHECK(locus_oracle(3, &p->config, in, good, NULL, NULL, NULL) == LOCUS_ERR_ARGUMENT,
          "level 3, without a place for the message");

    locus_results results = *good;
    results.out = p->results[1].out;
    refuse(p, in, &results, NULL, NULL, LOCUS_ERR_TENSOR, "out is F32");
    results = *good;
    results.lse.shape[2]++;
    refuse(p, in, &results, NULL, NULL, LOCUS_ERR_TENSOR, "lse has another shape");
    results = *good;
    results.out.data = in->v.data;
    refuse(p, in, &results, NULL, NULL, LOCUS_ERR_OVERLAP, "out lies on v");
    results = *good;
    results.lse.data = results.out.data;
    refuse(p, in, &results, NULL, NULL, LOCUS_ERR_OVERLAP, "lse lies on out");

    locus_tensors tensors = *in;
    tensors.k.data = NULL;
    refuse(p, &tensors, good, NULL, NULL, LOCUS_ERR_ARGUMENT, "k has no data");
    tensors = *in;
    tensors.rel_k = tensors.k;
    refuse(p, &tensors, good, NULL, NULL, LOCUS_ERR_TENSOR, "rel_k is a stranger");

    locus_tensors grad = p->grad[0];
    grad.u = grad.q;
    refuse(p, in, good, &p->dout[0], &grad, LOCUS_ERR_TENSOR, "gradient of an absent tensor");
    grad = p->grad[0];
    grad.q.stride[2]++;
    refuse(p, in, good, &p->dout[0], &grad, LOCUS_ERR_TENSOR, "a gradient that is not dense");
    test_problem_free(p);
}

/* ---- the same numbers in other clothes ---- */

/* F32 inputs hold the same values as F64 ones, so the results are the same bits. */
static void types_do_not_matter(test_problem *p, const char *name)
{
    if (!check_begin("property/oracle/types/%s", name)) return;
    if (!run(p, TEST_ORACLE, 1)) return;
    locus_error error = {""};
    const locus_results dresults = test_problem_gradient(p, TEST_FLOAT);
    const locus_tensor *out = &p->results[0].out, *x = locus_tensor_at_const(&p->grad[0], 0);
    if (x->rank == 0) x = &p->grad[0].x;
    const size_t bytes = (size_t)locus_tensor_elements(out) * sizeof(double);
    const size_t grad_bytes = (size_t)locus_tensor_elements(x) * sizeof(double);
    double *before = malloc(bytes), *grad_before = malloc(grad_bytes);
    if (CHECK(before != NULL && grad_before != NULL, "no memory")) {
        memcpy(before, out->data, bytes);
        memcpy(grad_before, x->data, grad_bytes);
        const locus_status status = locus_oracle(p->spec.level, &p->config, &p->in[1],
                                                 &p->results[0], &dresults, &p->grad[0], &error);
        CHECK(status == LOCUS_OK, "%s", error.text);
        CHECK(memcmp(before, out->data, bytes) == 0, "out differs");
        CHECK(memcmp(grad_before, x->data, grad_bytes) == 0, "the gradient differs");
    }
    free(before);
    free(grad_before);
}

/* q stored as (B, T, H, D), its rows apart. */
static void strides_do_not_matter(void)
{
    if (!check_begin("property/oracle/strides")) return;
    test_problem *p = make(&ways[1], 4, 5, "", ""), *s = make(&ways[1], 4, 5, "", "");
    enum { B = 2, H = 2, ROWS = 4, D = 6, GAP = 3, ROW = H * (D + GAP) };
    static double store[B * ROWS * ROW];
    locus_tensor *q = &s->in[0].q;
    for (size_t i = 0; i < sizeof store / sizeof *store; i++) store[i] = (double)NAN;
    for (int64_t i = 0; i < B * H * ROWS * D; i++) {
        const int64_t d = i % D, t = i / D % ROWS, h = i / D / ROWS % H, b = i / D / ROWS / H;
        store[(b * ROWS + t) * ROW + h * (D + GAP) + d] = test_value(&p->in[0].q, i);
    }
    q->data = store;
    q->stride[0] = ROWS * ROW;
    q->stride[1] = D + GAP;
    q->stride[2] = ROW;
    if (run(p, TEST_ORACLE, 1) && run(s, TEST_ORACLE, 1)) {
        CHECK(same_bits(&p->results[0].out, &s->results[0].out), "out differs");
        CHECK(same_bits(&p->grad[0].q, &s->grad[0].q), "grad.q differs");
        CHECK(same_bits(&p->grad[0].rel_k, &s->grad[0].rel_k), "grad.rel_k differs");
    }
    test_problem_free(p);
    test_problem_free(s);
}

/* Gains far beyond the range of doubles at one position, harmless at a distance. */
static void xpos_does_not_overflow(void)
{
    static const struct way far = {"xpos", "far", "scale_base=1", ""};
    if (!check_begin("property/oracle/xpos-far")) return;
    test_problem *p = make(&far, 4, 1500, "window_left=3 causal=1", "");
    if (run(p, TEST_ORACLE, 1)) {
        int finite = 1;
        for (int64_t i = 0; i < locus_tensor_elements(&p->results[0].out); i++)
            finite &= isfinite(test_value(&p->results[0].out, i)) != 0;
        for (int64_t i = 0; i < locus_tensor_elements(&p->grad[0].k); i++)
            finite &= isfinite(test_value(&p->grad[0].k, i)) != 0;
        CHECK(finite, "a result is not finite");
    }
    test_problem_free(p);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_problem *attend = make(&ways[1], 4, 6, "dropout=0.2", "mask bias_dense");
    test_problem *layer = make_layer();
    out_of_memory(attend, "attend");
    out_of_memory(layer, "layer");
    types_do_not_matter(attend, "attend");
    types_do_not_matter(layer, "layer");
    refusals();
    strides_do_not_matter();
    xpos_does_not_overflow();
    test_problem_free(attend);
    test_problem_free(layer);
    return check_finish("property/oracle");
}

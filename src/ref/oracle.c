/* SPDX-License-Identifier: Apache-2.0 */
#include <locus/oracle.h>

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/tensor.h"
#include "ref/ref.h"

/* ---- checks: what locus_call_resolve does not see ---- */

static int same_shape(const locus_tensor *t, uint32_t rank, const int64_t *shape)
{
    if (t->rank != rank) return 0;
    for (uint32_t i = 0; i < rank; i++)
        if (t->shape[i] != shape[i]) return 0;
    return 1;
}

static int is_dense(const locus_tensor *t)
{
    const locus_tensor dense = locus_view(t->data, t->dtype, t->rank, t->shape);
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->shape[i] > 1 && t->stride[i] != dense.stride[i]) return 0;
    return 1;
}

/* A view with data, of the given shape, that is read or written by rows. */
static locus_status check_view(const locus_tensor *t, const char *name, uint32_t rank,
                               const int64_t *shape, locus_error *error)
{
    if (!same_shape(t, rank, shape))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found missing or of another shape than the call gives", name);
    if (rank > 0 && shape[rank - 1] > 1 && t->stride[rank - 1] != 1)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found a stride on the last axis, expected 1", name);
    if (t->data == NULL && locus_tensor_elements(t) > 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "tensor %s: found no data", name);
    return LOCUS_OK;
}

static locus_status check_output(const locus_tensor *t, const char *name, uint32_t rank,
                                 const int64_t *shape, const locus_tensors *in, locus_error *error)
{
    LOCUS_TRY(check_view(t, name, rank, shape, error));
    if (t->dtype != LOCUS_F64)
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: expected F64", name);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        if (locus_tensors_overlap(t, locus_tensor_at_const(in, i)))
            return locus_fail(error, LOCUS_ERR_OVERLAP, "tensor %s overlaps input %s", name,
                              locus_tensor_name(i));
    return LOCUS_OK;
}

static locus_status check_gradient(const locus_tensor *t, const char *name, uint32_t rank,
                                   const int64_t *shape, locus_error *error)
{
    if (!locus_is_floating(t->dtype))
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: expected a floating type", name);
    return check_view(t, name, rank, shape, error);
}

static locus_status check_results(const locus_call *call, const locus_tensors *in,
                                  const locus_results *results, const locus_results *dresults,
                                  locus_error *error)
{
    const int64_t attend[] = {call->B, call->H, call->Tq, call->Dv};
    const int64_t width = locus_present(&in->w_o) ? call->E : call->H * call->D;
    const int64_t layer[] = {call->B, call->T, width};
    const int64_t *shape = call->level == LOCUS_LAYER ? layer : attend;
    const uint32_t rank = call->level == LOCUS_LAYER ? 3 : 4;
    LOCUS_TRY(check_output(&results->out, "out", rank, shape, in, error));
    LOCUS_TRY(check_output(&results->lse, "lse", 3, attend, in, error));
    if (locus_tensors_overlap(&results->out, &results->lse))
        return locus_fail(error, LOCUS_ERR_OVERLAP, "tensor out overlaps lse");
    if (locus_present(&results->lse_low))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor lse_low: found, expected none (lse is F64 and loses nothing)");
    if (locus_present(&results->weights))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor weights: found, expected none (locus_explain has them)");
    if (dresults == NULL) return LOCUS_OK;
    LOCUS_TRY(check_gradient(&dresults->out, "dout", rank, shape, error));
    return locus_present(&dresults->lse) ? check_gradient(&dresults->lse, "dlse", 3, attend, error)
                                         : LOCUS_OK;
}

static locus_status check_gradients(const locus_call *call, const locus_tensors *in,
                                    const locus_tensors *grad, locus_error *error)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(in, i);
        const locus_tensor *d = locus_tensor_at_const(grad, i);
        char name[32];
        if (!locus_present(d)) continue;
        snprintf(name, sizeof name, "grad.%s", locus_tensor_name(i));
        LOCUS_TRY(check_output(d, name, t->rank, t->shape, in, error));
        if (!is_dense(d) || !locus_has_gradient(call->scheme, i))
            return locus_fail(error, LOCUS_ERR_TENSOR,
                              "tensor %s: expected the dense gradient of a tensor that has one",
                              name);
    }
    return LOCUS_OK;
}

locus_status locus_ref_check_inputs(const locus_tensors *in, locus_error *error)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(in, i);
        if (t->data == NULL && locus_tensor_elements(t) > 0)
            return locus_fail(error, LOCUS_ERR_ARGUMENT, "tensor %s: found no data",
                              locus_tensor_name(i));
    }
    return LOCUS_OK;
}

/* ---- the call ---- */

locus_tensors locus_ref_widen_all(ref_memory *memory, const locus_tensors *in)
{
    locus_tensors wide = {.size = sizeof wide};
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(in, i);
        *locus_tensor_at(&wide, i) = t == &in->bias_dense ? *t : locus_ref_widen(memory, t);
    }
    return wide;
}

static void clear_gradients(const locus_tensors *grad)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *d = locus_tensor_at_const(grad, i);
        const size_t elements = (size_t)locus_tensor_elements(d);
        if (elements > 0) memset(d->data, 0, elements * sizeof(double));
    }
}

static locus_status run(const locus_call *call, const locus_tensors *in,
                        const locus_results *results, const locus_results *dresults,
                        const locus_tensors *grad, ref_memory *memory)
{
    const locus_tensors wide = locus_ref_widen_all(memory, in);
    locus_results gradients = {.size = sizeof gradients};
    if (dresults != NULL) {
        gradients.out = locus_ref_widen(memory, &dresults->out);
        gradients.lse = locus_ref_widen(memory, &dresults->lse);
    }
    const locus_results *d = dresults != NULL ? &gradients : NULL;
    if (memory->failed) return LOCUS_ERR_MEMORY;
    if (grad != NULL) clear_gradients(grad);
    return call->level == LOCUS_LAYER ? locus_ref_layer(call, &wide, results, d, grad, memory)
                                      : locus_ref_attend(call, &wide, results, d, grad, memory);
}

/* The structs of a caller, whatever their sizes. */
typedef struct adopted {
    locus_config config;
    locus_tensors in, grad;
    locus_results results, dresults;
} adopted;

locus_status locus_oracle(uint32_t level, const locus_config *config, const locus_tensors *in,
                          const locus_results *results, const locus_results *dresults,
                          const locus_tensors *grad, locus_error *error)
{
    if (config == NULL || in == NULL || results == NULL || (dresults == NULL) != (grad == NULL))
        return locus_fail(
            error, LOCUS_ERR_ARGUMENT,
            "oracle: config, tensors or results are NULL, or one of dresults and grad");
    if (level != LOCUS_ATTEND && level != LOCUS_LAYER)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "oracle: found level %u, expected LOCUS_ATTEND or LOCUS_LAYER",
                          (unsigned)level);
    locus_call call;
    adopted own;
    LOCUS_TRY(locus_adopt_config(&own.config, config, error));
    LOCUS_TRY(locus_adopt_tensors(&in, &own.in, "tensors", error));
    LOCUS_TRY(locus_adopt_results(&results, &own.results, "results", error));
    if (grad != NULL) {
        LOCUS_TRY(locus_adopt_results(&dresults, &own.dresults, "dresults", error));
        LOCUS_TRY(locus_adopt_tensors(&grad, &own.grad, "grad", error));
    }
    LOCUS_TRY(locus_call_resolve(&call, level, &own.config, in, error));
    LOCUS_TRY(locus_ref_check_inputs(in, error));
    LOCUS_TRY(check_results(&call, in, results, dresults, error));
    if (grad != NULL) LOCUS_TRY(check_gradients(&call, in, grad, error));

    ref_memory memory = {.allocator = own.config.allocator};
    const locus_status status = run(&call, in, results, dresults, grad, &memory);
    locus_ref_release(&memory);
    if (status == LOCUS_ERR_MEMORY)
        return locus_fail(error, status, "oracle: the allocator returned no memory");
    return status;
}

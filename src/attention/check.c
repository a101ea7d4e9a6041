/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/check.h"

#include <inttypes.h>

#include "core/error.h"
#include "core/tensor.h"

/* `types`: 1 << each type that it may have. */
static locus_status check_shape(const locus_tensor *t, const locus_tensor *wanted, uint32_t types,
                                const char *name, locus_error *error)
{
    if (!locus_same_shape(t, wanted))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found another shape than the plan was made for", name);
    if (locus_dtype_name(t->dtype) == NULL || (types >> t->dtype & 1u) == 0)
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found another type, expected %s",
                          name, locus_types_text(types));
    if (!locus_strides_fit(t))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found strides that are negative or not 1 on the last axis",
                          name);
    return LOCUS_OK;
}

static locus_status check_view(const locus_tensor *t, const locus_tensor *wanted, uint32_t types,
                               const char *name, locus_error *error)
{
    LOCUS_TRY(check_shape(t, wanted, types, name, error));
    if (t->data == NULL && locus_tensor_elements(t) > 0)
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found no data", name);
    return LOCUS_OK;
}

locus_status locus_check_inputs(const locus_plan *plan, const locus_tensors *in, locus_error *error)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *wanted = locus_tensor_at_const(&plan->shapes, i);
        const locus_tensor *t = locus_tensor_at_const(in, i);
        if (!locus_present(wanted) && !locus_present(t)) continue;
        LOCUS_TRY(check_view(t, wanted, locus_input_types(wanted), locus_tensor_name(i), error));
    }
    return LOCUS_OK;
}

locus_status locus_check_table_inputs(const locus_plan *plan, const locus_tensors *in,
                                      locus_error *error)
{
    const locus_tensor *const of_calls[] = {
        &in->q,          &in->k,         &in->v,    &in->mask,     &in->key_mask,
        &in->bias_dense, &in->pos_query, &in->gate, &in->log_gate, locus_log_decay(plan, in)};
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *wanted = locus_tensor_at_const(&plan->shapes, i);
        const locus_tensor *t = locus_tensor_at_const(in, i);
        int needed = 1;
        for (size_t k = 0; k < sizeof of_calls / sizeof *of_calls; k++) needed &= t != of_calls[k];
        if (!locus_present(wanted) && !locus_present(t)) continue;
        LOCUS_TRY((needed ? check_view : check_shape)(t, wanted, locus_input_types(wanted),
                                                      locus_tensor_name(i), error));
    }
    return LOCUS_OK;
}

/* Those of one tile: no n x n array, however long a call is. */
static locus_status check_weights(const locus_plan *plan, const locus_tensor *weights,
                                  locus_error *error)
{
    const locus_call *c = &plan->call;
    const locus_tensor all =
        locus_view(NULL, LOCUS_F32, 4, (const int64_t[]){c->B, c->H, c->Tq, c->Tk});
    if (plan->ragged != NULL)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor weights: found with a ragged batch, expected none");
    if (c->Tq > LOCUS_KEPT_WEIGHTS || c->Tk > LOCUS_KEPT_WEIGHTS)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor weights: found %" PRId64 " queries and %" PRId64
                          " keys, expected at most %d of each (longer calls keep none)",
                          c->Tq, c->Tk, LOCUS_KEPT_WEIGHTS);
    return check_view(weights, &all, LOCUS_TYPES_FLOAT, "weights", error);
}

locus_status locus_check_results(const locus_plan *plan, const locus_results *results,
                                 locus_error *error)
{
    const locus_call *c = &plan->call;
    const locus_tensor out =
        locus_view(NULL, LOCUS_F32, 4, (const int64_t[]){c->B, c->H, c->Tq, c->Dv});
    const locus_tensor lse = locus_view(NULL, LOCUS_F32, 3, (const int64_t[]){c->B, c->H, c->Tq});
    const uint32_t lse_types =
        locus_present(&results->lse_low) ? LOCUS_TYPES_FLOAT : LOCUS_TYPES_ANY_FLOAT;
    LOCUS_TRY(check_view(&results->out, &out, LOCUS_TYPES_ANY_FLOAT, "out", error));
    LOCUS_TRY(check_view(&results->lse, &lse, lse_types, "lse", error));
    if (locus_present(&results->lse_low))
        LOCUS_TRY(check_view(&results->lse_low, &lse, LOCUS_TYPES_FLOAT, "lse_low", error));
    return locus_present(&results->weights) ? check_weights(plan, &results->weights, error)
                                            : LOCUS_OK;
}

static int overlap(const locus_tensor *a, const locus_tensor *b)
{
    return locus_present(a) && locus_present(b) && locus_tensors_overlap(a, b);
}

static locus_status check_apart(const locus_tensor *a, const char *a_name, const locus_tensor *b,
                                const char *b_name, locus_error *error)
{
    if (overlap(a, b))
        return locus_fail(error, LOCUS_ERR_OVERLAP, "output %s overlaps %s", a_name, b_name);
    return LOCUS_OK;
}

locus_status locus_check_output_overlap(const locus_tensors *in, const locus_tensor *outputs,
                                        const char *const *names, size_t count, locus_error *error)
{
    /* A call has few of the tensors that there are; a name is looked for where it is needed. */
    size_t inputs[LOCUS_TENSOR_COUNT], present = 0;
    for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++)
        if (locus_present(locus_tensor_at_const(in, k))) inputs[present++] = k;
    for (size_t i = 0; i < count; i++) {
        if (locus_overlaps_itself(&outputs[i]))
            return locus_fail(error, LOCUS_ERR_OVERLAP, "output %s overlaps itself", names[i]);
        for (size_t k = 0; k < present; k++)
            if (overlap(&outputs[i], locus_tensor_at_const(in, inputs[k])))
                return locus_fail(error, LOCUS_ERR_OVERLAP, "output %s overlaps %s", names[i],
                                  locus_tensor_name(inputs[k]));
        for (size_t k = 0; k < i; k++)
            LOCUS_TRY(check_apart(&outputs[i], names[i], &outputs[k], names[k], error));
    }
    return LOCUS_OK;
}

locus_status locus_check_gradients(const locus_plan *plan, const locus_tensors *in,
                                   const locus_results *results, const locus_results *dresults,
                                   const locus_tensors *grad, locus_error *error)
{
    const locus_tensor *dout = &dresults->out, *dlse = &dresults->lse;
    locus_tensor outputs[LOCUS_TENSOR_COUNT];
    const char *names[LOCUS_TENSOR_COUNT];
    size_t count = 0;
    if (results->lse.dtype != LOCUS_F32)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor lse: found %s, expected F32 (backward takes weights from it)",
                          locus_dtype_name(results->lse.dtype));
    LOCUS_TRY(check_view(dout, &results->out, LOCUS_TYPES_ANY_FLOAT, "dout", error));
    if (locus_present(dlse))
        LOCUS_TRY(check_view(dlse, &results->lse, LOCUS_TYPES_ANY_FLOAT, "dlse", error));
    if (locus_present(&dresults->lse_low))
        return locus_fail(error, LOCUS_ERR_TENSOR, "dresults.lse_low: lse_low has no gradient");
    if (locus_present(&dresults->weights))
        return locus_fail(error, LOCUS_ERR_TENSOR, "dresults.weights: weights have no gradient");
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(grad, i);
        if (!locus_present(t)) continue;
        const locus_tensor *wanted = locus_tensor_at_const(&plan->shapes, i);
        const char *name = locus_tensor_name(i);
        if (!locus_has_gradient(plan->call.scheme, i))
            return locus_fail(error, LOCUS_ERR_TENSOR, "grad.%s: %s has no gradient", name, name);
        LOCUS_TRY(check_view(t, wanted, locus_gradient_types(wanted), name, error));
        LOCUS_TRY(check_apart(t, name, dout, "dout", error));
        LOCUS_TRY(check_apart(t, name, dlse, "dlse", error));
        LOCUS_TRY(check_apart(t, name, &results->out, "out", error));
        LOCUS_TRY(check_apart(t, name, &results->lse, "lse", error));
        LOCUS_TRY(check_apart(t, name, &results->lse_low, "lse_low", error));
        LOCUS_TRY(check_apart(t, name, &results->weights, "weights", error));
        outputs[count] = *t;
        names[count++] = name;
    }
    return locus_check_output_overlap(in, outputs, names, count, error);
}

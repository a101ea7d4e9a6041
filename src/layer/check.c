/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of one call against its layer: the tensors that it was made for, results and
 * gradients of types that may be, outputs apart from everything else. */

#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "layer/layer.h"

/* ---- shapes, types, strides ---- */

/* `types`: 1 << each type that it may have. */
static locus_status check_shape(const locus_tensor *t, const locus_tensor *wanted, uint32_t types,
                                const char *prefix, const char *name, locus_error *error)
{
    if (!locus_same_shape(t, wanted))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s%s: found another shape than the layer was made for", prefix,
                          name);
    if (locus_dtype_name(t->dtype) == NULL || (types >> t->dtype & 1u) == 0)
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s%s: found another type, expected %s",
                          prefix, name, locus_types_text(types));
    if (!locus_strides_fit(t))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s%s: found strides that are negative or not 1 on the last axis",
                          prefix, name);
    return LOCUS_OK;
}

static locus_status check_view(const locus_tensor *t, const locus_tensor *wanted, uint32_t types,
                               const char *prefix, const char *name, locus_error *error)
{
    LOCUS_TRY(check_shape(t, wanted, types, prefix, name, error));
    if (t->data == NULL && locus_tensor_elements(t) > 0)
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s%s: found no data", prefix, name);
    return LOCUS_OK;
}

static locus_status check_inputs(const locus_layer *layer, const locus_tensors *in,
                                 locus_error *error)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(in, i);
        const locus_tensor *wanted = locus_tensor_at_const(&layer->shapes, i);
        if (!locus_present(t) && !locus_present(wanted)) continue;
        LOCUS_TRY(
            check_view(t, wanted, locus_input_types(wanted), "", locus_tensor_name(i), error));
    }
    return LOCUS_OK;
}

locus_status locus_layer_check_tables(const locus_layer *layer, const locus_tensors *in,
                                      locus_error *error)
{
    const locus_tensor *const of_calls[] = {&in->x, &in->memory, &in->mask, &in->key_mask,
                                            &in->bias_dense};
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(in, i);
        const locus_tensor *wanted = locus_tensor_at_const(&layer->shapes, i);
        int needed = 1;
        for (size_t k = 0; k < sizeof of_calls / sizeof *of_calls; k++) needed &= t != of_calls[k];
        if (!locus_present(t) && !locus_present(wanted)) continue;
        LOCUS_TRY((needed ? check_view : check_shape)(t, wanted, locus_input_types(wanted), "",
                                                      locus_tensor_name(i), error));
    }
    return LOCUS_OK;
}

locus_tensor locus_layer_out_shape(const locus_layer *layer)
{
    const locus_call *call = &layer->call;
    const int64_t width = locus_present(&layer->shapes.w_o) ? call->E : call->H * call->D;
    return locus_view(NULL, LOCUS_F32, 3, (const int64_t[]){call->B, call->T, width});
}

static locus_tensor lse_shape(const locus_layer *layer)
{
    const locus_call *call = &layer->call;
    return locus_view(NULL, LOCUS_F32, 3, (const int64_t[]){call->B, call->H, call->T});
}

/* ---- memory that must lie apart ---- */

enum { MOST_VIEWS = LOCUS_TENSOR_COUNT + 4 };

typedef struct view_list {
    locus_tensor views[MOST_VIEWS];
    const char *names[MOST_VIEWS];
    const char *prefix; /* of the tensors: "" or "grad." */
    size_t count;
} view_list;

static void list_view(view_list *list, const locus_tensor *t, const char *name)
{
    if (!locus_present(t) || list->count == MOST_VIEWS) return;
    list->views[list->count] = *t;
    list->names[list->count++] = name;
}

static void list_tensors(view_list *list, const locus_tensors *tensors)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        list_view(list, locus_tensor_at_const(tensors, i), locus_tensor_name(i));
}

static locus_status list_block(view_list *list, const void *memory, size_t bytes, size_t needed,
                               const char *name, locus_error *error)
{
    LOCUS_TRY(locus_check_memory(name, memory, bytes, needed, error));
    const locus_tensor block =
        locus_view((void *)(uintptr_t)memory, LOCUS_U8, 1, (const int64_t[]){(int64_t)needed});
    list_view(list, &block, name);
    return LOCUS_OK;
}

static locus_status refuse_overlap(const view_list *outputs, size_t output, const view_list *others,
                                   size_t other, locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_OVERLAP, "output %s%s overlaps %s%s", outputs->prefix,
                      outputs->names[output], others->prefix, others->names[other]);
}

static locus_status check_apart(const view_list *outputs, const view_list *inputs,
                                locus_error *error)
{
    for (size_t i = 0; i < outputs->count; i++) {
        const locus_tensor *t = &outputs->views[i];
        if (locus_overlaps_itself(t))
            return locus_fail(error, LOCUS_ERR_OVERLAP, "output %s%s overlaps itself",
                              outputs->prefix, outputs->names[i]);
        for (size_t k = 0; k < inputs->count; k++)
            if (locus_tensors_overlap(t, &inputs->views[k]))
                return refuse_overlap(outputs, i, inputs, k, error);
        for (size_t k = 0; k < i; k++)
            if (locus_tensors_overlap(t, &outputs->views[k]))
                return refuse_overlap(outputs, i, outputs, k, error);
    }
    return LOCUS_OK;
}

/* ---- the two calls ---- */

locus_status locus_layer_check_forward(const locus_layer *layer, const locus_tensors *in,
                                       const locus_results *results, void *saved,
                                       size_t saved_bytes, void *workspace, size_t workspace_bytes,
                                       locus_error *error)
{
    const locus_tensor out = locus_layer_out_shape(layer);
    const locus_tensor lse = lse_shape(layer);
    LOCUS_TRY(check_inputs(layer, in, error));
    LOCUS_TRY(check_view(&results->out, &out, LOCUS_TYPES_ANY_FLOAT, "", "out", error));
    LOCUS_TRY(check_view(&results->lse, &lse, LOCUS_TYPES_ANY_FLOAT, "", "lse", error));
    if (locus_present(&results->lse_low))
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor lse_low: layers do not give it");
    if (locus_present(&results->weights))
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor weights: layers do not give them");

    view_list outputs = {.prefix = ""}, inputs = {.prefix = ""};
    LOCUS_TRY(list_block(&outputs, saved, saved_bytes, layer->saved_bytes, "saved", error));
    LOCUS_TRY(
        list_block(&outputs, workspace, workspace_bytes, layer->forward_bytes, "workspace", error));
    list_view(&outputs, &results->out, "out");
    list_view(&outputs, &results->lse, "lse");
    list_tensors(&inputs, in);
    return check_apart(&outputs, &inputs, error);
}

static locus_status check_gradients(const locus_layer *layer, const locus_tensors *grad,
                                    locus_error *error)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(grad, i);
        const locus_tensor *wanted = locus_tensor_at_const(&layer->shapes, i);
        const char *name = locus_tensor_name(i);
        if (!locus_present(t)) continue;
        if (!locus_present(wanted))
            return locus_fail(error, LOCUS_ERR_TENSOR, "tensor grad.%s: found, but there is no %s",
                              name, name);
        if (!locus_has_gradient(layer->call.scheme, i))
            return locus_fail(error, LOCUS_ERR_TENSOR, "tensor grad.%s: %s has no gradient", name,
                              name);
        LOCUS_TRY(check_view(t, wanted, locus_gradient_types(wanted), "grad.", name, error));
    }
    return LOCUS_OK;
}

locus_status locus_layer_check_backward(const locus_layer *layer, const locus_tensors *in,
                                        const locus_results *dresults, const locus_tensors *grad,
                                        uint32_t flags, const void *saved, size_t saved_bytes,
                                        void *workspace, size_t workspace_bytes, locus_error *error)
{
    const locus_tensor *dout = &dresults->out;
    if ((flags & ~LOCUS_ACCUMULATE) != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "flags: found 0x%x, expected 0 or 0x%x",
                          (unsigned)flags, LOCUS_ACCUMULATE);
    const locus_tensor out = locus_layer_out_shape(layer);
    LOCUS_TRY(check_inputs(layer, in, error));
    LOCUS_TRY(check_view(dout, &out, LOCUS_TYPES_ANY_FLOAT, "", "dout", error));
    const locus_tensor lse = lse_shape(layer);
    if (locus_present(&dresults->lse))
        LOCUS_TRY(check_view(&dresults->lse, &lse, LOCUS_TYPES_ANY_FLOAT, "", "dlse", error));
    LOCUS_TRY(check_gradients(layer, grad, error));

    view_list outputs = {.prefix = "grad."}, inputs = {.prefix = ""};
    LOCUS_TRY(list_block(&inputs, saved, saved_bytes, layer->saved_bytes, "saved", error));
    list_tensors(&inputs, in);
    list_view(&inputs, dout, "dout");
    list_view(&inputs, &dresults->lse, "dlse");
    list_tensors(&outputs, grad);
    LOCUS_TRY(check_apart(&outputs, &inputs, error));

    /* The workspace, against all of them. */
    view_list work = {.prefix = ""};
    LOCUS_TRY(
        list_block(&work, workspace, workspace_bytes, layer->backward_bytes, "workspace", error));
    LOCUS_TRY(check_apart(&work, &inputs, error));
    return check_apart(&work, &outputs, error);
}

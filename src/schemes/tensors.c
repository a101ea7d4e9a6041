/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a call against the declarations: none missing, none unknown, each of a type
 * and shape that its declaration allows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* clang-format off */
#define MASK(field) .name = #field, .offset = offsetof(locus_tensors, field), .dtypes = 1u << LOCUS_U8
/* clang-format on */

/* Tensors that every scheme takes. */
static const locus_tensor_info common[] = {
    {LOCUS_PARAMETER(q), .shape = "B H Tq D", .levels = LOCUS_ATTEND, .required = 1},
    {LOCUS_PARAMETER(k), .shape = "B Hk Tk D", .levels = LOCUS_ATTEND, .required = 1},
    {LOCUS_PARAMETER(v), .shape = "B Hk Tk Dv", .levels = LOCUS_ATTEND, .required = 1},
    {LOCUS_PARAMETER(bias_dense), .shape = "1|B 1|H Tq Tk", .levels = LOCUS_BOTH},
    {MASK(key_mask), .shape = "B Tk", .levels = LOCUS_BOTH},
    {MASK(mask), .shape = "1|B 1|H Tq Tk", .levels = LOCUS_BOTH},
    {
        .name = "sink",
        .offset = offsetof(locus_tensors, sink),
        .dtypes = 1u << LOCUS_F32 | 1u << LOCUS_F64,
        .uses = LOCUS_USE_GRADIENT,
        .help = "e^sink joins the sum below the softmax and brings no value",
        .shape = "H",
        .levels = LOCUS_BOTH,
    },
    {
        LOCUS_PLAN_TENSOR(q_offsets, 1u << LOCUS_I64),
        .help = "rows offsets[s] .. offsets[s+1]-1 of q are sequence s of a ragged batch",
        .shape = "S1",
        .levels = LOCUS_ATTEND,
    },
    {
        LOCUS_PLAN_TENSOR(k_offsets, 1u << LOCUS_I64),
        .help = "the same for k and v",
        .shape = "S1",
        .levels = LOCUS_ATTEND,
    },
    {
        LOCUS_GATE_TENSOR(log_gate),
        .help = "pair (m, n) has the sum of those of n + 1 .. m, beside bias_dense; with causal",
        .shape = "B H N",
        .levels = LOCUS_ATTEND,
    },
    {
        LOCUS_GATE_TENSOR(w_f),
        .help = "makes log_gate = ln sigmoid(w_f x + b_f) of memory and x",
        .shape = "H E",
        .levels = LOCUS_LAYER,
    },
    {LOCUS_GATE_TENSOR(b_f), .shape = "H", .levels = LOCUS_LAYER},
    {LOCUS_PARAMETER(x), .shape = "B T E", .levels = LOCUS_LAYER, .required = 1},
    {LOCUS_PARAMETER(memory), .shape = "B M E", .levels = LOCUS_LAYER},
    {LOCUS_PARAMETER(w_q), .shape = "HD E", .levels = LOCUS_LAYER, .required = 1},
    {LOCUS_PARAMETER(w_k), .shape = "HD E", .levels = LOCUS_LAYER, .required = 1},
    {LOCUS_PARAMETER(w_v), .shape = "HD E", .levels = LOCUS_LAYER, .required = 1},
    {LOCUS_PARAMETER(w_o), .shape = "E HD", .levels = LOCUS_LAYER},
    {LOCUS_PARAMETER(b_q), .shape = "HD", .levels = LOCUS_LAYER},
    {LOCUS_PARAMETER(b_k), .shape = "HD", .levels = LOCUS_LAYER},
    {LOCUS_PARAMETER(b_v), .shape = "HD", .levels = LOCUS_LAYER},
    {LOCUS_PARAMETER(b_o), .shape = "E", .levels = LOCUS_LAYER},
    LOCUS_TENSOR_END,
};

const locus_tensor_info *locus_common_list(void) { return common; }

const locus_tensor_info *locus_common_tensor(size_t index)
{
    return index < sizeof common / sizeof *common - 1 ? &common[index] : NULL;
}

static const locus_tensor *declared(const locus_tensors *tensors, const locus_tensor_info *info)
{
    return (const locus_tensor *)(const void *)((const char *)tensors + info->offset);
}

void locus_lend_tensors(const locus_scheme *scheme, locus_tensors *inner,
                        const locus_tensors *outer)
{
    const locus_tensor_info *const lists[] = {common, scheme->tensors};
    for (size_t i = 0; i < 2; i++)
        for (const locus_tensor_info *info = lists[i]; info->name != NULL; info++)
            if ((info->levels & LOCUS_ATTEND) != 0)
                *(locus_tensor *)(void *)((char *)inner + info->offset) = *declared(outer, info);
}

int locus_has_gradient(const locus_scheme *scheme, size_t index)
{
    const size_t offset = offsetof(locus_tensors, q) + index * sizeof(locus_tensor);
    const locus_tensor_info *const lists[] = {common, scheme->tensors};
    for (size_t i = 0; i < 2; i++)
        for (const locus_tensor_info *info = lists[i]; info->name != NULL; info++)
            if (info->offset == offset) return (info->uses & LOCUS_USE_GRADIENT) != 0;
    return 0;
}

/* ---- one tensor ---- */

static locus_extents extents_of(const locus_call *call, const locus_tensors *shapes)
{
    return (locus_extents){
        .B = call->B,
        .H = call->H,
        .Hk = call->Hk,
        .Tq = call->Tq,
        .Tk = call->Tk,
        .D = call->D,
        .Dv = call->Dv,
        .E = call->E,
        .T = call->level == LOCUS_LAYER ? call->T : -1,
        .M = call->M,
        .HD = call->H * call->D,
        .HF = -1, /* the scheme checks it */
        .R = call->R,
        .Ry = call->Ry,
        .Rx = call->Rx,
        .S1 = shapes->q_offsets.rank == 1 ? shapes->q_offsets.shape[0] : -1,
        .pairs = -1, /* the scheme checks it */
        .axes = call->options.axes,
        .buckets = call->options.buckets,
    };
}

/* "[3,16,8]" */
static const char *found_text(const locus_tensor *t, char *text, size_t capacity)
{
    size_t used = 0;
    for (uint32_t i = 0; i < t->rank && used < capacity; i++)
        used += (size_t)snprintf(text + used, capacity - used, "%s%" PRId64, i == 0 ? "[" : ",",
                                 t->shape[i]);
    if (used < capacity) snprintf(text + used, capacity - used, "]");
    return text;
}

/* "F32 or F64" */
static const char *types_text(uint32_t dtypes, char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    if (dtypes == LOCUS_FLOATS) return "a floating type";
    for (int dtype = 0; locus_dtype_name((locus_dtype)dtype) != NULL && used < capacity; dtype++)
        if ((dtypes >> dtype & 1u) != 0)
            used += (size_t)snprintf(text + used, capacity - used, "%s%s", used > 0 ? " or " : "",
                                     locus_dtype_name((locus_dtype)dtype));
    return text;
}

static locus_status check_dtype(const locus_tensor_info *info, const locus_tensor *t,
                                locus_error *error)
{
    char expected[64];
    const char *found = locus_dtype_name(t->dtype);
    if (found != NULL && (info->dtypes >> t->dtype & 1u) != 0) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found %s, expected %s", info->name,
                      found != NULL ? found : "an unknown type",
                      types_text(info->dtypes, expected, sizeof expected));
}

static int is_dense(const locus_tensor *t)
{
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0; stride *= t->shape[i])
        if (t->shape[i] > 1 && t->stride[i] != stride) return 0;
    return 1;
}

static int strides_fit(const locus_tensor *t)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->stride[i] < 0) return 0;
    return t->dtype == LOCUS_U8 || t->shape[t->rank - 1] <= 1 || t->stride[t->rank - 1] == 1;
}

/* What is read when a plan is made: there, and dense. */
static locus_status check_plan_tensor(const locus_tensor_info *info, const locus_tensor *t,
                                      locus_error *error)
{
    if ((info->uses & LOCUS_USE_PLAN) == 0) return LOCUS_OK;
    if (!is_dense(t))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found strides, expected dense memory", info->name);
    if (t->data == NULL && locus_tensor_elements(t) > 0)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found no data, which a plan is made from", info->name);
    return LOCUS_OK;
}

static locus_status check_tensor(locus_extents *extents, const locus_tensor_info *info,
                                 const locus_tensor *t, locus_error *error)
{
    if (!locus_present(t))
        return info->required
                   ? locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s is missing", info->name)
                   : LOCUS_OK;
    LOCUS_TRY(check_dtype(info, t, error));
    if (!locus_shape_fits(extents, info->shape, t)) {
        char found[96], wanted[128];
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found shape %s, expected %s",
                          info->name, found_text(t, found, sizeof found),
                          locus_shape_text(extents, info->shape, wanted, sizeof wanted));
    }
    if (!strides_fit(t))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found strides that are negative or not 1 on the last axis",
                          info->name);
    return check_plan_tensor(info, t, error);
}

static locus_status check_list(const locus_call *call, const locus_tensor_info *list,
                               const locus_tensors *shapes, locus_error *error)
{
    locus_extents extents = extents_of(call, shapes);
    for (; list->name != NULL; list++)
        if ((list->levels & call->level) != 0)
            LOCUS_TRY(check_tensor(&extents, list, declared(shapes, list), error));
    return LOCUS_OK;
}

locus_status locus_check_common(const locus_call *call, const locus_tensors *shapes,
                                locus_error *error)
{
    return check_list(call, common, shapes, error);
}

locus_status locus_check_declared(const locus_call *call, const locus_tensors *shapes,
                                  locus_error *error)
{
    return check_list(call, call->scheme->tensors, shapes, error);
}

/* ---- which tensors there are ---- */

static int is_listed(const locus_tensor_info *list, uint32_t level, size_t offset)
{
    for (; list->name != NULL; list++)
        if ((list->levels & level) != 0 && list->offset == offset) return 1;
    return 0;
}

static locus_status refuse_beside(const locus_tensor *found, const char *name, const char *why,
                                  locus_error *error)
{
    if (!locus_present(found)) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found, but %s", name, why);
}

static locus_status refuse_combinations(const locus_call *call, const locus_tensors *shapes,
                                        locus_error *error)
{
    static const char ragged[] = "a ragged batch takes none (q_offsets, k_offsets)";
    const int has_queries = locus_present(&shapes->q_offsets);
    if (locus_present(&shapes->b_o) && !locus_present(&shapes->w_o))
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor b_o: found without w_o, expected both");
    if (locus_present(&shapes->b_f) && !locus_present(&shapes->w_f))
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor b_f: found without w_f, expected both");
    if (has_queries != locus_present(&shapes->k_offsets))
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found without %s, expected both",
                          has_queries ? "q_offsets" : "k_offsets",
                          has_queries ? "k_offsets" : "q_offsets");
    if (has_queries) {
        LOCUS_TRY(refuse_beside(&shapes->mask, "mask", ragged, error));
        LOCUS_TRY(refuse_beside(&shapes->bias_dense, "bias_dense", ragged, error));
    }
    if (call->scheme->embed != NULL && locus_present(&shapes->memory))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor memory: found, but scheme %s takes none (absolute positions)",
                          call->scheme->info.name);
    return LOCUS_OK;
}

locus_status locus_refuse_strangers(const locus_call *call, const locus_tensors *shapes,
                                    locus_error *error)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(shapes, i);
        if (!locus_present(t)) continue;
        const size_t offset = (size_t)((const char *)t - (const char *)shapes);
        if (is_listed(common, call->level, offset) ||
            is_listed(call->scheme->tensors, call->level, offset))
            continue;
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s is not known to scheme %s (%s)",
                          locus_tensor_name(i), call->scheme->info.name,
                          call->level == LOCUS_LAYER ? "layer" : "attend");
    }
    return refuse_combinations(call, shapes, error);
}

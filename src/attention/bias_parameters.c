/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/bias_parameters.h"

#include "core/shape.h"
#include "core/tensor.h"

/* The next parameter from `info` on that the plan has, or NULL. */
static const locus_tensor_info *parameter(const locus_plan *plan, const locus_tensor_info *info)
{
    if (!plan->has_bias && !plan->has_pair_bias) return NULL;
    for (; info->name != NULL; info++)
        if ((info->uses & LOCUS_USE_BIAS) != 0 &&
            locus_tensor_slot(&plan->shapes, info->offset) != NULL)
            return info;
    return NULL;
}

#define EACH_PARAMETER(plan, info)                                                                 \
    const locus_tensor_info *info = parameter(plan, (plan)->call.scheme->tensors);                 \
    info != NULL;                                                                                  \
    info = parameter(plan, info + 1)

int64_t locus_bias_numbers(const locus_plan *plan)
{
    int64_t numbers = 0;
    for (EACH_PARAMETER(plan, info))
        numbers += locus_tensor_elements(locus_tensor_slot(&plan->shapes, info->offset));
    return numbers;
}

locus_tensors locus_bias_twins(const locus_plan *plan, double *data)
{
    locus_tensors twins = {.size = sizeof twins};
    for (EACH_PARAMETER(plan, info)) {
        const locus_tensor *shape = locus_tensor_slot(&plan->shapes, info->offset);
        *(locus_tensor *)(void *)((char *)&twins + info->offset) =
            locus_view(data, LOCUS_F64, shape->rank, shape->shape);
        if (data != NULL) data += locus_tensor_elements(shape);
    }
    return twins;
}

int locus_bias_is_wanted(const locus_plan *plan, const locus_tensors *grad)
{
    for (EACH_PARAMETER(plan, info))
        if (locus_tensor_slot(grad, info->offset) != NULL) return 1;
    return 0;
}

int locus_bias_is_shared(const locus_plan *plan)
{
    for (EACH_PARAMETER(plan, info))
        if (!locus_shape_names(info->shape, "H")) return 1;
    return 0;
}

/* A parameter has one axis or two. */
static void add_twin(const locus_tensor *to, const locus_tensor *from)
{
    int64_t extent[3] = {1, 1, 1};
    for (uint32_t axis = 0; axis < to->rank; axis++) extent[axis] = to->shape[axis];
    const double *sums = from->data;
    for (int64_t i = 0; i < extent[0]; i++)
        for (int64_t j = 0; j < extent[1]; j++)
            for (int64_t k = 0; k < extent[2]; k++) {
                float *at = (float *)to->data + locus_offset(to, i, j, k, 0);
                *at = (float)((double)*at + *sums++);
            }
}

void locus_bias_add_twins(const locus_plan *plan, const locus_tensors *grad,
                          const locus_tensors *twins)
{
    for (EACH_PARAMETER(plan, info)) {
        const locus_tensor *to = locus_tensor_slot(grad, info->offset);
        if (to != NULL) add_twin(to, locus_tensor_slot(twins, info->offset));
    }
}

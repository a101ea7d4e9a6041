/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/halves.h"

#include "core/tensor.h"

/* Ascending: no float is written over before it was read. */
void bench_narrow(locus_tensor *tensor, locus_dtype dtype)
{
    const float *from = tensor->data;
    const int64_t count = locus_tensor_elements(tensor);
    tensor->dtype = dtype;
    for (int64_t i = 0; i < count; i++) {
        const float number = from[i];
        locus_put(tensor, i, number);
    }
}

double bench_number(const locus_tensor *tensor, int64_t at)
{
    const locus_tensor one = {
        .data = tensor->data, .dtype = tensor->dtype, .rank = 1, .shape = {at + 1}, .stride = {1}};
    return locus_get(&one, at, 0, 0, 0);
}

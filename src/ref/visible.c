/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/tensor.h"
#include "ref/ref.h"

double locus_ref_pair_value(const ref_attention *at, const locus_tensor *t, int64_t n)
{
    const int64_t b = t->shape[0] == 1 ? 0 : at->b, h = t->shape[1] == 1 ? 0 : at->h;
    return locus_get(t, b, h, at->i, n);
}

int locus_ref_visible(const ref_attention *at, int64_t n)
{
    const locus_tensors *in = at->in;
    const int64_t key = locus_ref_key_position(at, n);
    if (key < 0 || key >= at->sequence.keys) return 0;
    if (!locus_in_window(at->call, locus_ref_query_position(at) - key)) return 0;
    if (locus_present(&in->key_mask) && locus_get(&in->key_mask, at->b, n, 0, 0) == 0.0) return 0;
    if (locus_present(&in->mask) && locus_ref_pair_value(at, &in->mask, n) == 0.0) return 0;
    return !locus_present(&in->bias_dense) ||
           locus_ref_pair_value(at, &in->bias_dense, n) != -INFINITY;
}

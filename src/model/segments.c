/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "model/pass.h"

/* XLNet's third term: (q_m + z) . seg[t_m != t_n] / sqrt(D). What it gives to all keys of a query
 * alike does not change the weights, so pairs of two types get the difference and the others 0. */

int model_has_segments(const locus_model_pass *p, const locus_model_batch *batch, int64_t s)
{
    if (!p->model->description.segments || batch->types == NULL) return 0;
    for (int64_t i = p->offsets[s] + 1; i < p->offsets[s + 1]; i++)
        if (batch->types[i] != batch->types[i - 1]) return 1;
    return 0;
}

/* (q + z) . (seg_1 - seg_0) / sqrt(D) of one head, in ascending order of the columns. */
static float difference(const model_description *d, const model_layer *layer, const float *q,
                        int64_t head)
{
    const int64_t D = d->head_dim;
    const float *z = layer->segment_bias + head * D, *same = layer->segment + head * D;
    const float *other = same + d->heads * D;
    double sum = 0.0;
    for (int64_t i = 0; i < D; i++) sum += (double)(q[i] + z[i]) * (double)(other[i] - same[i]);
    return (float)(sum / sqrt((double)D));
}

locus_tensor model_segment_scores(const locus_model_pass *p, const locus_model_batch *batch,
                                  const model_layer *layer, const pass_work *w, int64_t s)
{
    const model_description *d = &p->model->description;
    const int64_t first = p->offsets[s], length = p->offsets[s + 1] - first;
    const int64_t stride = 3 * d->heads * d->head_dim;
    const int32_t *types = batch->types + first;
    for (int64_t h = 0; h < d->heads; h++)
        for (int64_t i = 0; i < length; i++) {
            const float *q = w->qkv + (first + i) * stride + h * d->head_dim;
            float *row = w->pairs + (h * length + i) * length;
            const float score = difference(d, layer, q, h);
            for (int64_t j = 0; j < length; j++) row[j] = types[i] != types[j] ? score : 0.0f;
        }
    return locus_view(w->pairs, LOCUS_F32, 4, (const int64_t[]){1, d->heads, length, length});
}

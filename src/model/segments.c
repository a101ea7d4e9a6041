/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "model/backward.h"

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

locus_tensor model_segment_pairs(const model_description *d, const model_layer *layer,
                                 const float *q, int64_t stride, const int32_t *types,
                                 int64_t length, float *pairs)
{
    for (int64_t h = 0; h < d->heads; h++)
        for (int64_t i = 0; i < length; i++) {
            float *row = pairs + (h * length + i) * length;
            const float score = difference(d, layer, q + i * stride + h * d->head_dim, h);
            for (int64_t j = 0; j < length; j++) row[j] = types[i] != types[j] ? score : 0.0f;
        }
    return locus_view(pairs, LOCUS_F32, 4, (const int64_t[]){1, d->heads, length, length});
}

locus_tensor model_segment_scores(const locus_model_pass *p, const locus_model_batch *batch,
                                  const model_layer *layer, const pass_work *w, int64_t s)
{
    const model_description *d = &p->model->description;
    const int64_t first = p->offsets[s], length = p->offsets[s + 1] - first;
    const int64_t stride = 3 * d->heads * d->head_dim;
    return model_segment_pairs(d, layer, w->qkv + first * stride, stride, batch->types + first,
                               length, w->pairs);
}

/* ---- the way back ---- */

locus_tensor model_segment_again(const model_description *d, const tape_attention *a, float *pairs)
{
    const locus_tensor *q = &a->kept->q;
    return model_segment_pairs(d, a->layer, q->data, q->stride[2], a->types, a->length, pairs);
}

/* One query of one head: g is the gradient of its score. */
static void difference_back(const model_description *d, const model_layer *layer, const float *q,
                            int64_t head, double g, float *dq, float *dbias, float *dsegment)
{
    const int64_t D = d->head_dim, at = head * D, next = d->heads * D;
    const double factor = g / sqrt((double)D);
    for (int64_t i = 0; i < D; i++) {
        const double delta = (double)(layer->segment[next + at + i] - layer->segment[at + i]);
        const float both = (float)(factor * (double)(q[i] + layer->segment_bias[at + i]));
        dq[i] += (float)(factor * delta);
        dbias[at + i] += (float)(factor * delta);
        dsegment[next + at + i] += both;
        dsegment[at + i] -= both;
    }
}

void model_segment_back(const model_description *d, const tape_attention *a, const float *dpairs,
                        float *dq, float *dbias, float *dsegment)
{
    const int64_t stride = a->kept->q.stride[2], length = a->length;
    const float *q = a->kept->q.data;
    for (int64_t h = 0; h < d->heads; h++)
        for (int64_t i = 0; i < length; i++) {
            const float *row = dpairs + (h * length + i) * length;
            const int64_t at = i * stride + h * d->head_dim;
            double sum = 0.0;
            for (int64_t j = 0; j < length; j++)
                if (a->types[i] != a->types[j]) sum += (double)row[j];
            difference_back(d, a->layer, q + at, h, sum, dq + at, dbias, dsegment);
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "model/run.h"

/* XLNet's third term: (q_m + z) . seg[t_m != t_n] / sqrt(D). What it gives to all keys of a query
 * alike does not change the weights, so pairs of two types get the difference and the others 0. */

int segments_differ(const int32_t *types, int64_t count)
{
    for (int64_t i = 1; types != NULL && i < count; i++)
        if (types[i] != types[i - 1]) return 1;
    return 0;
}

/* (q + z) . (seg_1 - seg_0) / sqrt(D) of one head, in ascending order of the columns. */
static float difference(const segment_rule *rule, const float *q, int64_t head)
{
    const int64_t D = rule->head_dim;
    const float *z = rule->bias + head * D, *same = rule->segment + head * D;
    const float *other = same + rule->heads * D;
    double sum = 0.0;
    for (int64_t i = 0; i < D; i++) sum += (double)(q[i] + z[i]) * (double)(other[i] - same[i]);
    return (float)(sum / sqrt((double)D));
}

locus_tensor segment_scores(const segment_rule *rule, const float *q, const int32_t *types,
                            int64_t length, float *pairs)
{
    for (int64_t h = 0; h < rule->heads; h++)
        for (int64_t i = 0; i < length; i++) {
            float *row = pairs + (h * length + i) * length;
            const float score = difference(rule, q + i * rule->stride + h * rule->head_dim, h);
            for (int64_t j = 0; j < length; j++) row[j] = types[i] != types[j] ? score : 0.0f;
        }
    return locus_view(pairs, LOCUS_F32, 4, (const int64_t[]){1, rule->heads, length, length});
}

/* One query of one head: g is the gradient of its score. */
static void difference_back(const segment_rule *rule, const float *q, int64_t head, double g,
                            float *dq, float *dbias, float *dsegment)
{
    const int64_t D = rule->head_dim, at = head * D, next = rule->heads * D;
    const double factor = g / sqrt((double)D);
    for (int64_t i = 0; i < D; i++) {
        const double delta = (double)(rule->segment[next + at + i] - rule->segment[at + i]);
        const float both = (float)(factor * (double)(q[i] + rule->bias[at + i]));
        dq[i] += (float)(factor * delta);
        dbias[at + i] += (float)(factor * delta);
        dsegment[next + at + i] += both;
        dsegment[at + i] -= both;
    }
}

void segment_back(const segment_rule *rule, const float *q, const int32_t *types, int64_t length,
                  const float *dpairs, float *dq, float *dbias, float *dsegment)
{
    for (int64_t h = 0; h < rule->heads; h++)
        for (int64_t i = 0; i < length; i++) {
            const float *row = dpairs + (h * length + i) * length;
            const int64_t at = i * rule->stride + h * rule->head_dim;
            double sum = 0.0;
            for (int64_t j = 0; j < length; j++)
                if (types[i] != types[j]) sum += (double)row[j];
            difference_back(rule, q + at, h, sum, dq + at, dbias, dsegment);
        }
}

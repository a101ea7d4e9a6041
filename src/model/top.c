/* SPDX-License-Identifier: Apache-2.0 */
#include <locus/model.h>
#include <math.h>

#include "nn/top.h"

int64_t locus_model_top(const float *logits, int64_t width, int64_t count, int64_t *best,
                        double *probability)
{
    if (logits == NULL || best == NULL || probability == NULL || width < 1 || count < 1) return 0;
    const int64_t found = locus_top(best, count, logits, width);
    const double most = (double)logits[best[0]];
    double sum = 0.0;
    for (int64_t i = 0; i < width; i++) sum += exp((double)logits[i] - most);
    for (int64_t i = 0; i < found; i++) probability[i] = exp((double)logits[best[i]] - most) / sum;
    return found;
}

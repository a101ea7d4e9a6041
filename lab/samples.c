/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/samples.h"

#include <math.h>

sample sample_take(const lab_results *r, const char *task, const char *scheme, const char *metric,
                   int64_t length)
{
    sample out = {.count = 0};
    size_t count;
    const lab_value *v =
        lab_range(r, lab_task_index(r, task), lab_scheme_index(r, scheme), metric, &count);
    for (size_t i = 0; i < count && out.count < SAMPLE_SEEDS; i++) {
        if (v[i].length != length || v[i].seed == LAB_MEAN || isnan(v[i].value)) continue;
        out.seed[out.count] = v[i].seed;
        out.value[out.count++] = v[i].value;
    }
    return out;
}

double sample_mean(const sample *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) sum += s->value[i];
    return s->count > 0 ? sum / (double)s->count : NAN;
}

static double variance(const sample *s)
{
    const double centre = sample_mean(s);
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) sum += pow(s->value[i] - centre, 2);
    return s->count > 1 ? sum / (double)(s->count - 1) : 0;
}

void sample_join(sample *into, const sample *other, join how, int first)
{
    sample out = {.count = 0};
    if (first) {
        *into = *other;
        return;
    }
    for (size_t i = 0; i < into->count; i++) {
        for (size_t j = 0; j < other->count; j++) {
            if (into->seed[i] != other->seed[j]) continue;
            const double a = into->value[i], b = other->value[j];
            out.seed[out.count] = into->seed[i];
            out.value[out.count++] = how == LEAST ? fmin(a, b) : how == MOST ? fmax(a, b) : a + b;
        }
    }
    *into = out;
}

void sample_pair(sample *a, sample *b)
{
    sample left = *a, right = *b;
    a->count = b->count = 0;
    for (size_t i = 0; i < left.count; i++) {
        for (size_t j = 0; j < right.count; j++) {
            if (left.seed[i] != right.seed[j]) continue;
            a->seed[a->count] = b->seed[b->count] = left.seed[i];
            a->value[a->count++] = left.value[i];
            b->value[b->count++] = right.value[j];
        }
    }
}

void sample_common(sample *const *each, size_t count)
{
    for (int round = 0; round < 2; round++) /* the first has what all have; then so have they */
        for (size_t i = 1; i < count; i++) sample_pair(each[0], each[i]);
}

lab_verdict sample_judge(sample larger, sample smaller, int margin)
{
    size_t right = 0, wrong = 0;
    sample_pair(&larger, &smaller);
    const size_t count = larger.count;
    for (size_t i = 0; i < count; i++) {
        right += larger.value[i] > smaller.value[i];
        wrong += larger.value[i] < smaller.value[i];
    }
    if (count == 0) return LAB_NOT_RUN;
    if (wrong == count) return LAB_CONTRADICTED;
    if (right < count || !margin) return LAB_OPEN;
    const double pooled = sqrt((variance(&larger) + variance(&smaller)) / 2);
    return count == 1 || sample_mean(&larger) - sample_mean(&smaller) > 2 * pooled ? LAB_REPRODUCED
                                                                                   : LAB_OPEN;
}

lab_verdict verdict_both(lab_verdict a, lab_verdict b)
{
    if (a == LAB_NOT_RUN || b == LAB_NOT_RUN) return LAB_NOT_RUN;
    if (a == LAB_CONTRADICTED || b == LAB_CONTRADICTED) return LAB_CONTRADICTED;
    return a == LAB_REPRODUCED && b == LAB_REPRODUCED ? LAB_REPRODUCED : LAB_OPEN;
}

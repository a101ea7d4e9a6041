/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/top.h"

#include <math.h>

/* A total order: NaN above numbers, then by value, then by place. */
static int is_before(const float *x, int64_t a, int64_t b)
{
    const int a_nan = isnan(x[a]) != 0, b_nan = isnan(x[b]) != 0;
    if (a_nan != b_nan) return a_nan;
    if (!a_nan && x[a] != x[b]) return x[a] > x[b];
    return a < b;
}

int64_t locus_argmax(const float *x, int64_t width)
{
    int64_t best = 0;
    for (int64_t c = 1; c < width && !isnan(x[best]); c++)
        if (x[c] > x[best] || isnan(x[c])) best = c;
    return best;
}

/* A heap whose root comes last of all that are in it. */
static void sink(int64_t *heap, int64_t at, int64_t count, const float *x)
{
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_before(x, heap[child], heap[child + 1])) child++;
        if (!is_before(x, heap[at], heap[child])) return;
        const int64_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

int64_t locus_top(int64_t *places, int64_t count, const float *x, int64_t width)
{
    if (count > width) count = width;
    if (count <= 0) return 0;
    for (int64_t c = 0; c < count; c++) places[c] = c;
    for (int64_t at = count / 2; at-- > 0;) sink(places, at, count, x);
    for (int64_t c = count; c < width; c++)
        if (is_before(x, c, places[0])) {
            places[0] = c;
            sink(places, 0, count, x);
        }
    for (int64_t left = count - 1; left > 0; left--) {
        const int64_t last = places[0];
        places[0] = places[left];
        places[left] = last;
        sink(places, 0, left, x);
    }
    return count;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Included by bench/isa/NAME.c after a vector vocabulary, with LOOPS_NAME, LOOPS_ISA and
 * LOOPS_CHAINS. */
#include <math.h>
#include <string.h>

#include "bench/loops.h"

static inline void fma_step(vf *chain, vf a, vf b)
{
    for (int i = 0; i < LOOPS_CHAINS; i++) chain[i] = v_fma(chain[i], a, b);
}

/* Chains start beside 1, where x a + b is x again: a compiler that sees this drops one.
 * Several steps a turn, because the counter takes slots of the same units. */
static float fma_turns(int64_t turns)
{
    const vf a = v_set1(0.999f), b = v_set1(1e-3f);
    vf chain[LOOPS_CHAINS];
    for (int i = 0; i < LOOPS_CHAINS; i++) chain[i] = v_set1((float)i + 2.0f);
    for (int64_t t = 0; t < turns; t++) {
        fma_step(chain, a, b);
        fma_step(chain, a, b);
        fma_step(chain, a, b);
        fma_step(chain, a, b);
    }
    vf total = chain[0];
    for (int i = 1; i < LOOPS_CHAINS; i++) total = v_add(total, chain[i]);
    return v_sum(total);
}

static float sum(const float *x, int64_t n)
{
    vf part[8];
    for (int i = 0; i < 8; i++) part[i] = v_set1(0.0f);
    int64_t j = 0;
    for (; j + 8 * VL <= n; j += 8 * VL)
        for (int i = 0; i < 8; i++) part[i] = v_add(part[i], v_load(x + j + i * VL));
    for (; j + VL <= n; j += VL) part[0] = v_add(part[0], v_load(x + j));
    for (int i = 1; i < 8; i++) part[0] = v_add(part[0], part[i]);
    float total = v_sum(part[0]);
    for (; j < n; j++) total += x[j];
    return total;
}

static void add(float *y, const float *x, int64_t n)
{
    int64_t j = 0;
    for (; j + VL <= n; j += VL) v_store(y + j, v_add(v_load(y + j), v_load(x + j)));
    for (; j < n; j++) y[j] += x[j];
}

static void axpy(float *y, const float *x, float a, int64_t n)
{
    const vf by = v_set1(a);
    int64_t j = 0;
    for (; j + VL <= n; j += VL) v_store(y + j, v_fma(v_load(x + j), by, v_load(y + j)));
    for (; j < n; j++) y[j] += a * x[j];
}

static void shift(float *y, float a, int64_t n)
{
    const vf by = v_set1(a);
    int64_t j = 0;
    for (; j + VL <= n; j += VL) v_store(y + j, v_add(v_load(y + j), by));
    for (; j < n; j++) y[j] += a;
}

static void scale(float *y, float a, int64_t n)
{
    const vf by = v_set1(a);
    int64_t j = 0;
    for (; j + VL <= n; j += VL) v_store(y + j, v_mul(v_load(y + j), by));
    for (; j < n; j++) y[j] *= a;
}

static float dot(const float *x, const float *y, int64_t n)
{
    vf part[2] = {v_set1(0.0f), v_set1(0.0f)};
    int64_t j = 0;
    for (; j + 2 * VL <= n; j += 2 * VL)
        for (int i = 0; i < 2; i++)
            part[i] = v_fma(v_load(x + j + i * VL), v_load(y + j + i * VL), part[i]);
    float total = v_sum(v_add(part[0], part[1]));
    for (; j < n; j++) total += x[j] * y[j];
    return total;
}

static float greatest(const float *x, int64_t n)
{
    vf part[4];
    for (int i = 0; i < 4; i++) part[i] = v_set1(-INFINITY);
    int64_t j = 0;
    for (; j + 4 * VL <= n; j += 4 * VL)
        for (int i = 0; i < 4; i++) part[i] = v_max(v_load(x + j + i * VL), part[i]);
    float top = v_greatest(v_max(v_max(part[0], part[1]), v_max(part[2], part[3])));
    for (; j < n; j++) top = x[j] > top ? x[j] : top;
    return top;
}

/* 2^n for the whole number n in `shifted` = n + 1.5 * 2^23. */
static inline vf power_of_two(vf shifted)
{
    typedef uint32_t words __attribute__((vector_size(sizeof(vf))));
    words bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits - 0x4B400000u + 127u) << 23;
    memcpy(&shifted, &bits, sizeof bits);
    return shifted;
}

/* e^x for x <= 0: the polynomial of Cephes' expf. */
static inline vf exponential(vf x)
{
    const vf magic = v_set1(12582912.0f);
    const vf bounded = v_max(v_set1(-87.0f), x);
    const vf shifted = v_fma(bounded, v_set1(1.44269504088896341f), magic);
    const vf whole = v_sub(shifted, magic);
    vf r = v_fma(whole, v_set1(-0.693359375f), bounded);
    r = v_fma(whole, v_set1(2.12194440e-4f), r);
    vf p = v_set1(1.9875691500e-4f);
    p = v_fma(p, r, v_set1(1.3981999507e-3f));
    p = v_fma(p, r, v_set1(8.3334519073e-3f));
    p = v_fma(p, r, v_set1(4.1665795894e-2f));
    p = v_fma(p, r, v_set1(1.6666665459e-1f));
    p = v_fma(p, r, v_set1(5.0000001201e-1f));
    p = v_add(v_fma(p, v_mul(r, r), r), v_set1(1.0f));
    return v_mul(p, power_of_two(shifted));
}

static float exps(float *y, float top, int64_t n)
{
    const vf from = v_set1(top);
    vf part[4];
    for (int i = 0; i < 4; i++) part[i] = v_set1(0.0f);
    int64_t j = 0;
    for (; j + 4 * VL <= n; j += 4 * VL)
        for (int i = 0; i < 4; i++) {
            const vf e = exponential(v_sub(v_load(y + j + i * VL), from));
            v_store(y + j + i * VL, e);
            part[i] = v_add(part[i], e);
        }
    float total = v_sum(v_add(v_add(part[0], part[1]), v_add(part[2], part[3])));
    for (; j < n; j++) total += y[j] = expf(y[j] - top);
    return total;
}

static void unsoftmax(float *dp, const float *p, float delta, int64_t n)
{
    const vf from = v_set1(delta);
    int64_t j = 0;
    for (; j + VL <= n; j += VL) v_store(dp + j, v_mul(v_load(p + j), v_sub(v_load(dp + j), from)));
    for (; j < n; j++) dp[j] = p[j] * (dp[j] - delta);
}

/* The compiler has gathers for this where the machine has them. */
static void gather(float *restrict y, const float *restrict x, const int32_t *restrict map,
                   int64_t n)
{
    for (int64_t j = 0; j < n; j++) y[j] += x[map[j]];
}

/* In order: neighbours may share a row. */
static void scatter(float *y, const float *x, const int32_t *map, int64_t n)
{
    for (int64_t j = 0; j < n; j++) y[map[j]] += x[j];
}

static inline void turn_pairs(float *restrict y, const float *restrict x, const float *restrict c,
                              const float *restrict s, int64_t count, int64_t step, int64_t gap,
                              float sign)
{
    for (int64_t t = 0; t < count; t++) {
        const float x0 = x[t * step], x1 = x[t * step + gap], sine = sign * s[t];
        y[t * step] = x0 * c[t] - x1 * sine;
        y[t * step + gap] = x1 * c[t] + x0 * sine;
    }
}

/* With steps that the compiler knows it finds the vectors itself. */
static void turn(float *y, const float *x, const float *c, const float *s, const bench_pairs *how)
{
    const float sign = how->back ? -1.0f : 1.0f;
    if (how->interleaved)
        turn_pairs(y, x, c, s, how->count, 2, 1, sign);
    else
        turn_pairs(y, x, c, s, how->count, 1, how->count, sign);
}

const bench_loops LOOPS_NAME = {
    .isa = LOOPS_ISA,
    .turn_flops = 4 * 2.0 * VL * LOOPS_CHAINS,
    .fma = fma_turns,
    .sum = sum,
    .add = add,
    .axpy = axpy,
    .shift = shift,
    .scale = scale,
    .dot = dot,
    .greatest = greatest,
    .exps = exps,
    .unsoftmax = unsoftmax,
    .gather = gather,
    .scatter = scatter,
    .turn = turn,
};

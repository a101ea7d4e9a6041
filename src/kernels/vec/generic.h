/* SPDX-License-Identifier: Apache-2.0 */
/* The vector vocabulary in portable C: four lanes, which every compiler of interest
 * maps to SSE2, NEON or SIMD128. No fused multiply-add. */

#include <stdint.h>
#include <string.h>

#include "core/half.h"

#define VL 4
#define GEMM_ROWS 4    /* rows of the register tile    */
#define GEMM_VECTORS 2 /* vectors of the register tile */
#define LINEAR_ROWS 4
#define LINEAR_VECTORS 2
#define LINEAR_INNER 256
#define LINEAR_LEFT_IN_PLACE 0
#define LINEAR_LOADS_ALONE 0

typedef float vf __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));

static inline vf v_load(const float *p)
{
    vf x;
    memcpy(&x, p, sizeof x);
    return x;
}
static inline void v_store(float *p, vf x) { memcpy(p, &x, sizeof x); }

/* 0 < n < VL lanes; the others read as 0 and are not written. */
static inline vf v_loadn(const float *p, int64_t n)
{
    vf x = {0};
    memcpy(&x, p, (size_t)n * sizeof *p);
    return x;
}
static inline void v_storen(float *p, vf x, int64_t n) { memcpy(p, &x, (size_t)n * sizeof *p); }

/* Without the first n lanes, which read as 0. */
static inline vf v_load_from(const float *p, int64_t n)
{
    vf x = {0};
    for (int64_t k = n; k < VL; k++) x[k] = p[k];
    return x;
}

/* VL halves; stored to the nearest, ties to even. */
static inline vf v_load_f16(const void *p)
{
    uint16_t half[VL];
    memcpy(half, p, sizeof half);
    vf x;
    for (int k = 0; k < VL; k++) x[k] = locus_f16_to_float(half[k]);
    return x;
}
static inline vf v_load_bf16(const void *p)
{
    uint16_t half[VL];
    memcpy(half, p, sizeof half);
    const vu bits = {half[0], half[1], half[2], half[3]};
    return (vf)(bits << 16);
}
static inline void v_store_f16(void *p, vf x)
{
    uint16_t half[VL];
    for (int k = 0; k < VL; k++) half[k] = locus_float_to_f16(x[k]);
    memcpy(p, half, sizeof half);
}
static inline void v_store_bf16(void *p, vf x)
{
    uint16_t half[VL];
    for (int k = 0; k < VL; k++) half[k] = locus_float_to_bf16(x[k]);
    memcpy(p, half, sizeof half);
}

static inline vf v_set1(float a) { return (vf){a, a, a, a}; }
static inline vf v_add(vf a, vf b) { return a + b; }
static inline vf v_sub(vf a, vf b) { return a - b; }
static inline vf v_mul(vf a, vf b) { return a * b; }
static inline vf v_div(vf a, vf b) { return a / b; }
static inline vf v_fma(vf a, vf b, vf c) { return a * b + c; }

/* Bring the line of p into the first cache, or the second. Macros: gcc 12 takes a function
 * that does nothing else for pure and drops the call. */
#define v_prefetch(p) __builtin_prefetch(p, 0, 3)
#define v_prefetch_far(p) __builtin_prefetch(p, 0, 2)

/* a > b ? a : b, so b where one of the two is NaN. */
static inline vf v_max(vf a, vf b)
{
    const vi greater = a > b;
    return (vf)(((vi)a & greater) | ((vi)b & ~greater));
}

/* a > b ? x : y, so y where a or b is NaN. */
static inline vf v_if_greater(vf a, vf b, vf x, vf y)
{
    const vi greater = a > b;
    return (vf)(((vi)x & greater) | ((vi)y & ~greater));
}

/* x where a is not equal to b (or one is NaN), else 0. */
static inline vf v_unless_equal(vf a, vf b, vf x) { return (vf)((vi)x & ~(a == b)); }

/* f = t - n for the nearest whole number n; t below -127 counts as -127. *n is for v_times_pow2 only: here
 * n + 1.5 * 2^23, whose low bits are n, so no lane is ever converted to an integer. */
static inline vf v_split(vf t, vf *n)
{
    const vf shift = v_set1(12582912.0f);
    const vf bounded = v_max(v_set1(-127.0f), t); /* keeps a NaN in t */
    *n = v_add(bounded, shift);
    return v_sub(bounded, v_sub(*n, shift));
}

/* p 2^n; 0 for n = -127. */
static inline vf v_times_pow2(vf p, vf n)
{
    const vu bits = (vu)n - 0x4B400000u + 127u;
    return v_mul(p, (vf)(bits << 23));
}

/* x = m 2^n, 3/4 <= m < 3/2, for normal x > 0; m is NaN for NaN. */
static inline vf v_mantissa(vf x, vf *n)
{
    const vi power = ((vi)x - 0x3F400000) >> 23;
    const vi m = (vi)x - (vi)((vu)power << 23);
    *n = (vf){(float)power[0], (float)power[1], (float)power[2], (float)power[3]};
    return v_add(v_mul(x, v_set1(0.0f)), (vf)m);
}

static inline float v_sum(vf a) { return (a[0] + a[2]) + (a[1] + a[3]); }
static inline float v_greatest(vf a)
{
    const float x = a[0] > a[2] ? a[0] : a[2], y = a[1] > a[3] ? a[1] : a[3];
    return x > y ? x : y;
}

/* Transpose VL x VL. */
static inline void v_transpose(vf r[VL])
{
    for (int i = 0; i < VL; i++)
        for (int j = i + 1; j < VL; j++) {
            const float x = r[i][j];
            r[i][j] = r[j][i];
            r[j][i] = x;
        }
}

/* Lane k from b where k has the bit, 1, 2, .. VL / 2, else from a. */
static inline vf v_choose(vf a, vf b, const int bit)
{
    for (int k = 0; k < VL; k++)
        if (k & bit) a[k] = b[k];
    return a;
}

/* Lane k is v_sum(r[k]); r is lost. */
static inline vf v_sums(vf r[VL])
{
    v_transpose(r);
    return v_add(v_add(r[0], r[2]), v_add(r[1], r[3]));
}

/* Lane k is table[index[k] - index[0]], where the last index is less than VL above the first;
 * VL floats of the table are readable. */
static inline vf v_permute(const float *table, const int32_t *index)
{
    vf x;
    for (int k = 0; k < VL; k++) x[k] = table[index[k] - index[0]];
    return x;
}

/* v_take: lane k is x[places[k]], or 0 where places[k] is -1. */
typedef struct vplaces {
    int32_t place[VL];
} vplaces;
static inline vplaces v_places(const int32_t places[VL])
{
    vplaces p;
    memcpy(p.place, places, sizeof p.place);
    return p;
}
static inline vf v_take(vf x, vplaces p)
{
    vf y;
    for (int k = 0; k < VL; k++) y[k] = p.place[k] < 0 ? 0.0f : x[p.place[k]];
    return y;
}

/* (p0, p0, p1, p1, ...), VL / 2 floats read. */
static inline vf v_twice(const float *p) { return (vf){p[0], p[0], p[1], p[1]}; }

/* (x1, x0, x3, x2, ...) */
static inline vf v_swap_pairs(vf x) { return (vf){x[1], x[0], x[3], x[2]}; }

/* Philox in lanes of 64 bits, VL / 2 of them, whose low halves count. w_counters: first,
 * first + 1, ... in the order that w_words wants: the words of 2 VL consecutive numbers, four
 * to a counter, from the words 0 to 3 of the counters. w_keep: x where the word is at least
 * `threshold`, else 0. */
typedef uint64_t vw __attribute__((vector_size(16)));
static inline vw w_set1(uint32_t a) { return (vw){a, a}; }
static inline vw w_counters(uint32_t first) { return (vw){first, first + 1u}; }
static inline vw w_mul(vw a, vw b) { return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu); }
static inline vw w_high(vw a) { return a >> 32; }
static inline vw w_xor3(vw a, vw b, vw c) { return a ^ b ^ c; }
static inline void w_words(vw a, vw b, vw c, vw d, vw words[2])
{
    for (int i = 0; i < 2; i++) {
        const uint32_t in_order[4] = {(uint32_t)a[i], (uint32_t)b[i], (uint32_t)c[i],
                                      (uint32_t)d[i]};
        memcpy(&words[i], in_order, sizeof in_order);
    }
}
static inline vf w_keep(vw words, uint32_t threshold, vf x)
{
    const vu at_least = (vu)((vu)words >= (vu){threshold, threshold, threshold, threshold});
    return (vf)((vu)x & at_least);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The vector vocabulary for NEON (aarch64): eight lanes in two registers, which gives every sum the
 * order that it has with AVX2. The two are fields, not an array: so gcc keeps them in registers. */

#if !defined(__ARM_NEON) || !defined(__aarch64__)
#error "vec/neon.h needs aarch64 with NEON; see cmake/isa.cmake"
#endif

#include <arm_neon.h>
#include <stdint.h>

#define VL 8
#define GEMM_ROWS 6 /* 24 accumulators, 4 registers for B, 1 or 2 broadcasts of 32 */
#define GEMM_VECTORS 2
#define LINEAR_ROWS 6
#define LINEAR_VECTORS 2
#define LINEAR_INNER 256 /* a right panel takes 16 KB of the first cache */
#define LINEAR_LEFT_IN_PLACE 0
#define LINEAR_LOADS_ALONE 1 /* a product takes no operand from memory: registers are short */

typedef struct vf {
    float32x4_t lo, hi;
} vf;

static inline vf v_load(const float *p) { return (vf){vld1q_f32(p), vld1q_f32(p + 4)}; }
static inline void v_store(float *p, vf x)
{
    vst1q_f32(p, x.lo);
    vst1q_f32(p + 4, x.hi);
}

/* 0 <= n < 4 lanes of one register. */
static inline float32x4_t q_loadn(const float *p, int64_t n)
{
    float32x4_t x = vdupq_n_f32(0.0f);
    if (n >= 1) x = vld1q_lane_f32(p, x, 0);
    if (n >= 2) x = vld1q_lane_f32(p + 1, x, 1);
    if (n >= 3) x = vld1q_lane_f32(p + 2, x, 2);
    return x;
}
static inline void q_storen(float *p, float32x4_t x, int64_t n)
{
    if (n >= 1) vst1q_lane_f32(p, x, 0);
    if (n >= 2) vst1q_lane_f32(p + 1, x, 1);
    if (n >= 3) vst1q_lane_f32(p + 2, x, 2);
}
static inline float32x4_t q_load_from(const float *p, int64_t n)
{
    float32x4_t x = vdupq_n_f32(0.0f);
    if (n < 1) x = vld1q_lane_f32(p, x, 0);
    if (n < 2) x = vld1q_lane_f32(p + 1, x, 1);
    if (n < 3) x = vld1q_lane_f32(p + 2, x, 2);
    return vld1q_lane_f32(p + 3, x, 3);
}

/* 0 < n < VL lanes; the others read as 0 and are not written. */
static inline vf v_loadn(const float *p, int64_t n)
{
    if (n < 4) return (vf){q_loadn(p, n), vdupq_n_f32(0.0f)};
    return (vf){vld1q_f32(p), q_loadn(p + 4, n - 4)};
}
static inline void v_storen(float *p, vf x, int64_t n)
{
    if (n < 4) {
        q_storen(p, x.lo, n);
        return;
    }
    vst1q_f32(p, x.lo);
    q_storen(p + 4, x.hi, n - 4);
}

/* Without the first n lanes, which read as 0. */
static inline vf v_load_from(const float *p, int64_t n)
{
    if (n < 4) return (vf){q_load_from(p, n), vld1q_f32(p + 4)};
    return (vf){vdupq_n_f32(0.0f), q_load_from(p + 4, n - 4)};
}

/* VL halves; stored to the nearest, ties to even. */
static inline vf v_load_f16(const void *p)
{
    const float16x8_t x = vreinterpretq_f16_u16(vld1q_u16((const uint16_t *)p));
    return (vf){vcvt_f32_f16(vget_low_f16(x)), vcvt_high_f32_f16(x)};
}
static inline vf v_load_bf16(const void *p)
{
    const uint16x8_t x = vld1q_u16((const uint16_t *)p);
    return (vf){vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(x), 16)),
                vreinterpretq_f32_u32(vshll_high_n_u16(x, 16))};
}
static inline void v_store_f16(void *p, vf x)
{
    const float16x8_t half = vcvt_high_f16_f32(vcvt_f16_f32(x.lo), x.hi);
    vst1q_u16((uint16_t *)p, vreinterpretq_u16_f16(half));
}
static inline uint16x4_t q_bf16(float32x4_t x)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(x), high = vshrq_n_u32(bits, 16);
    const uint32x4_t odd = vandq_u32(high, vdupq_n_u32(1));
    const uint32x4_t up = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
    const uint32x4_t quiet = vorrq_u32(high, vdupq_n_u32(0x40));
    return vmovn_u32(vbslq_u32(vceqq_f32(x, x), vshrq_n_u32(up, 16), quiet));
}
static inline void v_store_bf16(void *p, vf x)
{
    vst1q_u16((uint16_t *)p, vcombine_u16(q_bf16(x.lo), q_bf16(x.hi)));
}

static inline vf v_set1(float a) { return (vf){vdupq_n_f32(a), vdupq_n_f32(a)}; }
static inline vf v_add(vf a, vf b) { return (vf){vaddq_f32(a.lo, b.lo), vaddq_f32(a.hi, b.hi)}; }
static inline vf v_sub(vf a, vf b) { return (vf){vsubq_f32(a.lo, b.lo), vsubq_f32(a.hi, b.hi)}; }
static inline vf v_mul(vf a, vf b) { return (vf){vmulq_f32(a.lo, b.lo), vmulq_f32(a.hi, b.hi)}; }
static inline vf v_div(vf a, vf b) { return (vf){vdivq_f32(a.lo, b.lo), vdivq_f32(a.hi, b.hi)}; }
static inline vf v_fma(vf a, vf b, vf c)
{
    return (vf){vfmaq_f32(c.lo, a.lo, b.lo), vfmaq_f32(c.hi, a.hi, b.hi)};
}

/* Bring the line of p into the first cache, or the second. */
#define v_prefetch(p) __builtin_prefetch(p, 0, 3)
#define v_prefetch_far(p) __builtin_prefetch(p, 0, 2)

/* a > b ? a : b, so b where one of the two is NaN: FMAX would give the NaN. */
static inline vf v_max(vf a, vf b)
{
    return (vf){vbslq_f32(vcgtq_f32(a.lo, b.lo), a.lo, b.lo),
                vbslq_f32(vcgtq_f32(a.hi, b.hi), a.hi, b.hi)};
}

/* a > b ? x : y, so y where a or b is NaN. */
static inline vf v_if_greater(vf a, vf b, vf x, vf y)
{
    return (vf){vbslq_f32(vcgtq_f32(a.lo, b.lo), x.lo, y.lo),
                vbslq_f32(vcgtq_f32(a.hi, b.hi), x.hi, y.hi)};
}

/* x where a is not equal to b (or one is NaN), else 0. */
static inline float32x4_t q_unless(uint32x4_t mask, float32x4_t x)
{
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(x), mask));
}
static inline vf v_unless_equal(vf a, vf b, vf x)
{
    return (vf){q_unless(vceqq_f32(a.lo, b.lo), x.lo), q_unless(vceqq_f32(a.hi, b.hi), x.hi)};
}

/* f = t - n for the nearest whole number n; t below -127 counts as -127. *n is for v_times_pow2 only: here
 * n + 1.5 * 2^23, whose low bits are n. */
static inline vf v_split(vf t, vf *n)
{
    const vf shift = v_set1(12582912.0f);
    const vf bounded = v_max(v_set1(-127.0f), t); /* keeps a NaN in t */
    *n = v_add(bounded, shift);
    return v_sub(bounded, v_sub(*n, shift));
}

/* p 2^n; 0 for n = -127. */
static inline float32x4_t q_pow2(float32x4_t n)
{
    const uint32x4_t bits = vsubq_u32(vreinterpretq_u32_f32(n), vdupq_n_u32(0x4B400000 - 127));
    return vreinterpretq_f32_u32(vshlq_n_u32(bits, 23));
}
static inline vf v_times_pow2(vf p, vf n) { return v_mul(p, (vf){q_pow2(n.lo), q_pow2(n.hi)}); }

/* x = m 2^n, 3/4 <= m < 3/2, for normal x > 0; m is NaN for NaN. */
static inline float32x4_t q_mantissa(float32x4_t x, float32x4_t *n)
{
    const int32x4_t bits = vreinterpretq_s32_f32(x);
    const int32x4_t power = vshrq_n_s32(vsubq_s32(bits, vdupq_n_s32(0x3F400000)), 23);
    const int32x4_t m = vsubq_s32(bits, vshlq_n_s32(power, 23));
    *n = vcvtq_f32_s32(power);
    return vfmaq_f32(vreinterpretq_f32_s32(m), x, vdupq_n_f32(0.0f));
}
static inline vf v_mantissa(vf x, vf *n)
{
    return (vf){q_mantissa(x.lo, &n->lo), q_mantissa(x.hi, &n->hi)};
}

static inline float v_sum(vf a)
{
    const float32x4_t half = vaddq_f32(a.lo, a.hi);
    const float32x2_t pair = vadd_f32(vget_low_f32(half), vget_high_f32(half));
    return vget_lane_f32(pair, 0) + vget_lane_f32(pair, 1);
}

static inline float v_greatest(vf a)
{
    const float32x4_t half = vbslq_f32(vcgtq_f32(a.lo, a.hi), a.lo, a.hi);
    const float32x2_t low = vget_low_f32(half), high = vget_high_f32(half);
    const float32x2_t pair = vbsl_f32(vcgt_f32(low, high), low, high);
    const float x = vget_lane_f32(pair, 0), y = vget_lane_f32(pair, 1);
    return x > y ? x : y;
}

/* The first, or the last, two lanes of a and of b. */
static inline float32x4_t q_firsts(float32x4_t a, float32x4_t b)
{
    return vreinterpretq_f32_f64(vzip1q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}
static inline float32x4_t q_lasts(float32x4_t a, float32x4_t b)
{
    return vreinterpretq_f32_f64(vzip2q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}

static inline void q_transpose(float32x4_t *a, float32x4_t *b, float32x4_t *c, float32x4_t *d)
{
    const float32x4_t even = vtrn1q_f32(*a, *b), odd = vtrn2q_f32(*a, *b);
    const float32x4_t even_below = vtrn1q_f32(*c, *d), odd_below = vtrn2q_f32(*c, *d);
    *a = q_firsts(even, even_below);
    *b = q_firsts(odd, odd_below);
    *c = q_lasts(even, even_below);
    *d = q_lasts(odd, odd_below);
}

/* Transpose VL x VL: four blocks, two of which trade places. */
static inline void v_transpose(vf r[VL])
{
    for (int i = 0; i < VL; i += 4) {
        q_transpose(&r[i].lo, &r[i + 1].lo, &r[i + 2].lo, &r[i + 3].lo);
        q_transpose(&r[i].hi, &r[i + 1].hi, &r[i + 2].hi, &r[i + 3].hi);
    }
    for (int i = 0; i < 4; i++) {
        const float32x4_t right = r[i].hi;
        r[i].hi = r[i + 4].lo;
        r[i + 4].lo = right;
    }
}

/* Lane k from b where k has the bit, 1, 2, .. VL / 2, else from a. */
static inline vf v_choose(vf a, vf b, const int bit)
{
    const uint64x2_t odd = vdupq_n_u64(0xFFFFFFFF00000000u);
    const uint64x2_t upper = vcombine_u64(vdup_n_u64(0), vdup_n_u64(UINT64_MAX));
    const uint32x4_t from_b = vreinterpretq_u32_u64(bit == 1 ? odd : upper);
    if (bit == 4) return (vf){a.lo, b.hi};
    return (vf){vbslq_f32(from_b, b.lo, a.lo), vbslq_f32(from_b, b.hi, a.hi)};
}

/* Lane k is v_sum(r[k]); r is lost. */
static inline float32x4_t q_sums(const vf r[4])
{
    float32x4_t half[4], pair[2];
    for (int i = 0; i < 4; i++) half[i] = vaddq_f32(r[i].lo, r[i].hi);
    for (int i = 0; i < 2; i++)
        pair[i] = vaddq_f32(vzip1q_f32(half[2 * i], half[2 * i + 1]),
                            vzip2q_f32(half[2 * i], half[2 * i + 1]));
    return vaddq_f32(q_firsts(pair[0], pair[1]), q_lasts(pair[0], pair[1]));
}
static inline vf v_sums(vf r[VL]) { return (vf){q_sums(r), q_sums(r + 4)}; }

/* Places of lanes as places of bytes; -1 lies outside every table. */
static inline uint8x16_t q_bytes(int32x4_t place)
{
    const uint32x4_t first = vmulq_n_u32(vreinterpretq_u32_s32(place), 0x04040404);
    return vreinterpretq_u8_u32(vaddq_u32(first, vdupq_n_u32(0x03020100)));
}
static inline uint8x16x2_t v_table(vf x)
{
    return (uint8x16x2_t){{vreinterpretq_u8_f32(x.lo), vreinterpretq_u8_f32(x.hi)}};
}

/* v_take: lane k is x[places[k]], or 0 where places[k] is -1. */
typedef struct vplaces {
    uint8x16_t lo, hi;
} vplaces;
static inline vplaces v_places(const int32_t places[VL])
{
    return (vplaces){q_bytes(vld1q_s32(places)), q_bytes(vld1q_s32(places + 4))};
}
static inline vf v_take(vf x, vplaces p)
{
    const uint8x16x2_t table = v_table(x);
    return (vf){vreinterpretq_f32_u8(vqtbl2q_u8(table, p.lo)),
                vreinterpretq_f32_u8(vqtbl2q_u8(table, p.hi))};
}

/* Lane k is table[index[k] - index[0]], where the last index is less than VL above the first;
 * VL floats of the table are readable. */
static inline vf v_permute(const float *table, const int32_t *index)
{
    const int32x4_t first = vdupq_n_s32(index[0]);
    return v_take(v_load(table), (vplaces){q_bytes(vsubq_s32(vld1q_s32(index), first)),
                                           q_bytes(vsubq_s32(vld1q_s32(index + 4), first))});
}

/* (p0, p0, p1, p1, ...), VL / 2 floats read. */
static inline vf v_twice(const float *p)
{
    const float32x4_t x = vld1q_f32(p);
    return (vf){vzip1q_f32(x, x), vzip2q_f32(x, x)};
}

/* (x1, x0, x3, x2, ...) */
static inline vf v_swap_pairs(vf x) { return (vf){vrev64q_f32(x.lo), vrev64q_f32(x.hi)}; }

/* Philox in lanes of 64 bits, VL / 2 of them, whose low halves count. w_counters: first,
 * first + 1, ... in the order that w_words wants: the words of 2 VL consecutive numbers, four
 * to a counter, from the words 0 to 3 of the counters. w_keep: x where the word is at least
 * `threshold`, else 0. */
typedef struct vw {
    uint64x2_t lo, hi;
} vw;
static inline vw w_set1(uint32_t a) { return (vw){vdupq_n_u64(a), vdupq_n_u64(a)}; }
static inline vw w_counters(uint32_t first)
{
    const uint32x4_t above = {first, first + 1u, first + 2u, first + 3u};
    return (vw){vmovl_u32(vget_low_u32(above)), vmovl_high_u32(above)};
}
static inline vw w_mul(vw a, vw b)
{
    return (vw){vmull_u32(vmovn_u64(a.lo), vmovn_u64(b.lo)),
                vmull_u32(vmovn_u64(a.hi), vmovn_u64(b.hi))};
}
static inline vw w_high(vw a) { return (vw){vshrq_n_u64(a.lo, 32), vshrq_n_u64(a.hi, 32)}; }
static inline vw w_xor3(vw a, vw b, vw c)
{
    return (vw){veorq_u64(veorq_u64(a.lo, b.lo), c.lo), veorq_u64(veorq_u64(a.hi, b.hi), c.hi)};
}
static inline vw q_words(uint64x2_t a, uint64x2_t b, uint64x2_t c, uint64x2_t d)
{
    const uint64x2_t ab = vsliq_n_u64(a, b, 32), cd = vsliq_n_u64(c, d, 32);
    return (vw){vzip1q_u64(ab, cd), vzip2q_u64(ab, cd)};
}
static inline void w_words(vw a, vw b, vw c, vw d, vw words[2])
{
    words[0] = q_words(a.lo, b.lo, c.lo, d.lo);
    words[1] = q_words(a.hi, b.hi, c.hi, d.hi);
}
static inline vf w_keep(vw words, uint32_t threshold, vf x)
{
    const uint32x4_t least = vdupq_n_u32(threshold);
    return (vf){q_unless(vcltq_u32(vreinterpretq_u32_u64(words.lo), least), x.lo),
                q_unless(vcltq_u32(vreinterpretq_u32_u64(words.hi), least), x.hi)};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The vector vocabulary for AVX2 with FMA: eight lanes. */

#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "vec/avx2.h needs -mavx2 -mfma -mf16c; see cmake/isa.cmake"
#endif

#include <immintrin.h>
#include <stdint.h>

#define VL 8
#define GEMM_ROWS 6 /* 12 accumulators, 2 registers for B, 1 broadcast of 16 */
#define GEMM_VECTORS 2
#define LINEAR_ROWS 6
#define LINEAR_VECTORS 2
#define LINEAR_INNER 256 /* a right panel takes half of the first cache: 16 KB */
#define LINEAR_LEFT_IN_PLACE 0
#define LINEAR_LOADS_ALONE 0

typedef __m256 vf;

/* All ones in the first n lanes. */
static inline __m256i v_first(int64_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

static inline vf v_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void v_store(float *p, vf x) { _mm256_storeu_ps(p, x); }

/* 0 < n < VL lanes; the others read as 0 and are not written. */
static inline vf v_loadn(const float *p, int64_t n) { return _mm256_maskload_ps(p, v_first(n)); }
static inline void v_storen(float *p, vf x, int64_t n) { _mm256_maskstore_ps(p, v_first(n), x); }

/* Without the first n lanes, which read as 0. */
static inline vf v_load_from(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, _mm256_xor_si256(v_first(n), _mm256_set1_epi32(-1)));
}

/* VL halves; stored to the nearest, ties to even. */
static inline vf v_load_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
static inline vf v_load_bf16(const void *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}
static inline void v_store_f16(void *p, vf x)
{
    _mm_storeu_si128(p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
static inline void v_store_bf16(void *p, vf x)
{
    const __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i half = _mm256_blendv_epi8(_mm256_srli_epi32(up, 16), quiet, nan);
    const __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(half, half), 0x08);
    _mm_storeu_si128(p, _mm256_castsi256_si128(both));
}

static inline vf v_set1(float a) { return _mm256_set1_ps(a); }
static inline vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }

/* Bring the line of p into the first cache, or the second. Macros: gcc 12 takes a function
 * that does nothing else for pure and drops the call. */
#define v_prefetch(p) _mm_prefetch((const char *)(p), _MM_HINT_T0)
#define v_prefetch_far(p) _mm_prefetch((const char *)(p), _MM_HINT_T1)

/* a > b ? a : b, so b where one of the two is NaN. */
static inline vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }

/* a > b ? x : y, so y where a or b is NaN. */
static inline vf v_if_greater(vf a, vf b, vf x, vf y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
}

/* x where a is not equal to b (or one is NaN), else 0. */
static inline vf v_unless_equal(vf a, vf b, vf x)
{
    return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_NEQ_UQ), x);
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
static inline vf v_times_pow2(vf p, vf n)
{
    const __m256i bits =
        _mm256_sub_epi32(_mm256_castps_si256(n), _mm256_set1_epi32(0x4B400000 - 127));
    return v_mul(p, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23)));
}

/* x = m 2^n, 3/4 <= m < 3/2, for normal x > 0; m is NaN for NaN. */
static inline vf v_mantissa(vf x, vf *n)
{
    const __m256i bits = _mm256_castps_si256(x), low = _mm256_set1_epi32(0x3F400000);
    const __m256i power = _mm256_srai_epi32(_mm256_sub_epi32(bits, low), 23);
    const __m256i m = _mm256_sub_epi32(bits, _mm256_slli_epi32(power, 23));
    *n = _mm256_cvtepi32_ps(power);
    return v_fma(x, v_set1(0.0f), _mm256_castsi256_ps(m));
}

static inline float v_sum(vf a)
{
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}

static inline float v_greatest(vf a)
{
    const __m128 half = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 pair = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
}

/* Transpose VL x VL: pairs, quads, then halves. */
static inline void v_transpose(vf r[VL])
{
    vf t[VL];
    for (int i = 0; i < VL; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < VL; i += 4)
        for (int k = 0; k < 2; k++) {
            r[i + 2 * k] = _mm256_shuffle_ps(t[i + k], t[i + k + 2], 0x44);
            r[i + 2 * k + 1] = _mm256_shuffle_ps(t[i + k], t[i + k + 2], 0xee);
        }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
    for (int i = 0; i < VL; i++) r[i] = t[i];
}

/* Lane k from b where k has the bit, 1, 2, .. VL / 2, else from a. */
static inline vf v_choose(vf a, vf b, const int bit)
{
    return bit == 1   ? _mm256_blend_ps(a, b, 0xAA)
           : bit == 2 ? _mm256_blend_ps(a, b, 0xCC)
                      : _mm256_blend_ps(a, b, 0xF0);
}

/* Lane k is v_sum(r[k]); r is lost. */
static inline vf v_sums(vf r[VL])
{
    for (int i = 0; i < 4; i++)
        r[i] = v_add(_mm256_permute2f128_ps(r[i], r[i + 4], 0x20),
                     _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    for (int i = 0; i < 2; i++)
        r[i] = v_add(_mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]),
                     _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]));
    return v_add(_mm256_shuffle_ps(r[0], r[1], 0x44), _mm256_shuffle_ps(r[0], r[1], 0xee));
}

/* Lane k is table[index[k] - index[0]], where the last index is less than VL above the first;
 * VL floats of the table are readable. */
static inline vf v_permute(const float *table, const int32_t *index)
{
    const __m256i place = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(const void *)index),
                                           _mm256_set1_epi32(index[0]));
    return _mm256_permutevar8x32_ps(v_load(table), place);
}

/* v_take: lane k is x[places[k]], or 0 where places[k] is -1. */
typedef struct vplaces {
    __m256i place;
} vplaces;
static inline vplaces v_places(const int32_t places[VL])
{
    return (vplaces){_mm256_loadu_si256((const __m256i *)(const void *)places)};
}
static inline vf v_take(vf x, vplaces p)
{
    return _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_srai_epi32(p.place, 31)),
                            _mm256_permutevar8x32_ps(x, p.place));
}

/* (p0, p0, p1, p1, ...), VL / 2 floats read. */
static inline vf v_twice(const float *p)
{
    const __m256i place = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), place);
}

/* (x1, x0, x3, x2, ...) */
static inline vf v_swap_pairs(vf x) { return _mm256_permute_ps(x, 0xB1); }

/* Philox in lanes of 64 bits, VL / 2 of them, whose low halves count. w_counters: first,
 * first + 1, ... in the order that w_words wants: the words of 2 VL consecutive numbers, four
 * to a counter, from the words 0 to 3 of the counters. w_keep: x where the word is at least
 * `threshold`, else 0. */
typedef __m256i vw;
static inline vw w_set1(uint32_t a) { return _mm256_set1_epi64x(a); }
static inline vw w_counters(uint32_t first)
{
    return _mm256_add_epi32(w_set1(first), _mm256_setr_epi64x(0, 2, 1, 3));
}
static inline vw w_mul(vw a, vw b) { return _mm256_mul_epu32(a, b); }
static inline vw w_high(vw a) { return _mm256_shuffle_epi32(a, 0xF5); }
static inline vw w_xor3(vw a, vw b, vw c) { return _mm256_xor_si256(_mm256_xor_si256(a, b), c); }
static inline void w_words(vw a, vw b, vw c, vw d, vw words[2])
{
    const vw ab = _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xAA);
    const vw cd = _mm256_blend_epi32(c, _mm256_slli_epi64(d, 32), 0xAA);
    words[0] = _mm256_unpacklo_epi64(ab, cd);
    words[1] = _mm256_unpackhi_epi64(ab, cd);
}
static inline vf w_keep(vw words, uint32_t threshold, vf x)
{
    const vw greater = _mm256_max_epu32(words, _mm256_set1_epi32((int)threshold));
    return _mm256_and_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(greater, words)), x);
}

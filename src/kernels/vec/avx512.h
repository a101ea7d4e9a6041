/* SPDX-License-Identifier: Apache-2.0 */
/* The vector vocabulary for AVX-512 (F, BW, DQ, VL): sixteen lanes, fused multiply-add. */

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) ||                   \
    !defined(__AVX512VL__)
#error "vec/avx512.h needs -mavx512f -mavx512bw -mavx512dq -mavx512vl; see cmake/isa.cmake"
#endif

#include <immintrin.h>
#include <stdint.h>

#define VL 16
#define GEMM_ROWS 6 /* 24 accumulators, 4 registers for B, 1 broadcast of 32 */
#define GEMM_VECTORS 4
#define LINEAR_ROWS 6
#define LINEAR_VECTORS 4
#define LINEAR_INNER 512 /* right panels come from the second cache: 128 KB */
#define LINEAR_LEFT_IN_PLACE 1
#define LINEAR_LOADS_ALONE 0

typedef __m512 vf;

static inline __mmask16 v_first(int64_t n) { return (__mmask16)((1u << n) - 1u); }

static inline vf v_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void v_store(float *p, vf x) { _mm512_storeu_ps(p, x); }

/* 0 < n < VL lanes; the others read as 0 and are not written. */
static inline vf v_loadn(const float *p, int64_t n) { return _mm512_maskz_loadu_ps(v_first(n), p); }
static inline void v_storen(float *p, vf x, int64_t n) { _mm512_mask_storeu_ps(p, v_first(n), x); }

/* Without the first n lanes, which read as 0. */
static inline vf v_load_from(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(_knot_mask16(v_first(n)), p);
}

/* VL halves; stored to the nearest, ties to even. */
static inline vf v_load_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
static inline vf v_load_bf16(const void *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}
static inline void v_store_f16(void *p, vf x)
{
    _mm256_storeu_si256(p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
static inline void v_store_bf16(void *p, vf x)
{
    const __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i half = _mm512_mask_mov_epi32(_mm512_srli_epi32(up, 16), nan, quiet);
    _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(half));
}

static inline vf v_set1(float a) { return _mm512_set1_ps(a); }
static inline vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }

/* Bring the line of p into the first cache, or the second. Macros: gcc 12 takes a function
 * that does nothing else for pure and drops the call. */
#define v_prefetch(p) _mm_prefetch((const char *)(p), _MM_HINT_T0)
#define v_prefetch_far(p) _mm_prefetch((const char *)(p), _MM_HINT_T1)

/* a > b ? a : b, so b where one of the two is NaN. */
static inline vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }

/* a > b ? x : y, so y where a or b is NaN. */
static inline vf v_if_greater(vf a, vf b, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x);
}

/* x where a is not equal to b (or one is NaN), else 0. */
static inline vf v_unless_equal(vf a, vf b, vf x)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ), x);
}

/* f = t - n for the nearest whole number n; -inf gives f = 0, n = -inf. *n is for v_times_pow2 only. */
static inline vf v_split(vf t, vf *n)
{
    const vf f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    *n = v_sub(t, f);
    return f;
}

/* p 2^n; 0 for n < -126, as other vocabularies have it. */
static inline vf v_times_pow2(vf p, vf n)
{
    const __mmask16 normal = _mm512_cmp_ps_mask(n, v_set1(-126.0f), _CMP_NLT_UQ);
    return _mm512_maskz_scalef_ps(normal, p, n);
}

/* x = m 2^n, 3/4 <= m < 3/2, for normal x > 0; m is NaN for NaN. */
static inline vf v_mantissa(vf x, vf *n)
{
    const vf m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
    *n = v_sub(_mm512_getexp_ps(x), _mm512_getexp_ps(m));
    return m;
}

static inline float v_sum(vf a) { return _mm512_reduce_add_ps(a); }
static inline float v_greatest(vf a) { return _mm512_reduce_max_ps(a); }

/* Transpose VL x VL: pairs, quads, then 128-bit lanes twice. */
static inline void v_transpose(vf r[VL])
{
    vf t[VL];
    for (int i = 0; i < VL; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < VL; i += 4)
        for (int k = 0; k < 2; k++) {
            const __m512d a = _mm512_castps_pd(t[i + k]), b = _mm512_castps_pd(t[i + k + 2]);
            r[i + 2 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            r[i + 2 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

/* Lane k from b where k has the bit, 1, 2, .. VL / 2, else from a. */
static inline vf v_choose(vf a, vf b, const int bit)
{
    const __mmask16 mask = bit == 1 ? 0xAAAA : bit == 2 ? 0xCCCC : bit == 4 ? 0xF0F0 : 0xFF00;
    return _mm512_mask_blend_ps(mask, a, b);
}

/* Lane k is v_sum(r[k]); r is lost. */
static inline vf v_sums(vf r[VL])
{
    for (int i = 0; i < 8; i++) { /* rows i and i + 4, then i + 8 and i + 12 */
        const int k = i < 4 ? i : i + 4;
        r[i] = v_add(_mm512_shuffle_f32x4(r[k], r[k + 4], 0x44),
                     _mm512_shuffle_f32x4(r[k], r[k + 4], 0xee));
    }
    for (int i = 0; i < 4; i++)
        r[i] = v_add(_mm512_shuffle_f32x4(r[i], r[i + 4], 0x88),
                     _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd));
    for (int i = 0; i < 2; i++)
        r[i] = v_add(_mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]),
                     _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]));
    return v_add(_mm512_shuffle_ps(r[0], r[1], 0x44), _mm512_shuffle_ps(r[0], r[1], 0xee));
}

/* Lane k is table[index[k] - index[0]], where the last index is less than VL above the first;
 * VL floats of the table are readable. */
static inline vf v_permute(const float *table, const int32_t *index)
{
    const __m512i place = _mm512_sub_epi32(_mm512_loadu_si512(index), _mm512_set1_epi32(index[0]));
    return _mm512_permutexvar_ps(place, v_load(table));
}

/* v_take: lane k is x[places[k]], or 0 where places[k] is -1. */
typedef struct vplaces {
    __m512i place;
    __mmask16 taken;
} vplaces;
static inline vplaces v_places(const int32_t places[VL])
{
    const __m512i place = _mm512_loadu_si512(places);
    return (vplaces){place, _mm512_cmpge_epi32_mask(place, _mm512_setzero_si512())};
}
static inline vf v_take(vf x, vplaces p)
{
    return _mm512_maskz_permutexvar_ps(p.taken, p.place, x);
}

/* (p0, p0, p1, p1, ...), VL / 2 floats read. */
static inline vf v_twice(const float *p)
{
    const __m512i place = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(place, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}

/* (x1, x0, x3, x2, ...) */
static inline vf v_swap_pairs(vf x) { return _mm512_permute_ps(x, 0xB1); }

/* Philox in lanes of 64 bits, VL / 2 of them, whose low halves count. w_counters: first,
 * first + 1, ... in the order that w_words wants: the words of 2 VL consecutive numbers, four
 * to a counter, from the words 0 to 3 of the counters. w_keep: x where the word is at least
 * `threshold`, else 0. */
typedef __m512i vw;
static inline vw w_set1(uint32_t a) { return _mm512_set1_epi64(a); }
static inline vw w_counters(uint32_t first)
{
    return _mm512_add_epi32(w_set1(first), _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7));
}
static inline vw w_mul(vw a, vw b) { return _mm512_mul_epu32(a, b); }
static inline vw w_high(vw a) { return _mm512_shuffle_epi32(a, _MM_PERM_DDBB); }
static inline vw w_xor3(vw a, vw b, vw c) { return _mm512_ternarylogic_epi32(a, b, c, 0x96); }
static inline void w_words(vw a, vw b, vw c, vw d, vw words[2])
{
    const vw ab = _mm512_mask_mov_epi32(a, 0xAAAA, _mm512_slli_epi64(b, 32));
    const vw cd = _mm512_mask_mov_epi32(c, 0xAAAA, _mm512_slli_epi64(d, 32));
    words[0] = _mm512_unpacklo_epi64(ab, cd);
    words[1] = _mm512_unpackhi_epi64(ab, cd);
}
static inline vf w_keep(vw words, uint32_t threshold, vf x)
{
    return _mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask(words, _mm512_set1_epi32((int)threshold)),
                               x);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of products of integers for AVX-512: sixteen lanes of 32 bits. */

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512VL__)
#error "vec/quant512.h needs -mavx512f -mavx512bw -mavx512vl; see cmake/isa.cmake"
#endif

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define QL 16

typedef __m512i qi;
typedef __m512 qf;

/* One statement for each product, on the sum itself: by intrinsics, gcc 12 copies sums around them,
 * and moves all vpmaddwd in front of all vpaddd. */
#define Q_MADD(sum, w, x)                                                                          \
    do {                                                                                           \
        __m512i product_;                                                                          \
        __asm__("vpmaddwd %2, %3, %1\n\tvpaddd %1, %0, %0"                                         \
                : "+v"(sum), "=&v"(product_)                                                       \
                : "v"(w), "v"(x));                                                                 \
    } while (0)
#define Q_DOT_PAIRS(sum, w, x) __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x))
#define Q_DOT_BYTES(sum, w, x) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x))

static inline qi q_load(const void *p) { return _mm512_loadu_si512(p); }
static inline qi q_load_widened(const void *p)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(p));
}
static inline qi q_set1(int32_t a) { return _mm512_set1_epi32(a); }
static inline qi q_add_integers(qi a, qi b) { return _mm512_add_epi32(a, b); }
static inline int32_t q_sum(qi a) { return _mm512_reduce_add_epi32(a); }
/* Bytes 0 and 2, and bytes 1 and 3, of every lane as pairs of 16 bits. */
static inline qi q_even(qi a) { return _mm512_and_si512(a, _mm512_set1_epi16(0xFF)); }
static inline qi q_odd(qi a) { return _mm512_srli_epi16(a, 8); }

static inline qf q_float(qi a) { return _mm512_cvtepi32_ps(a); }
static inline qi q_nearest(qf a) { return _mm512_cvtps_epi32(a); }
static inline qf q_set1f(float a) { return _mm512_set1_ps(a); }
static inline qf q_mul(qf a, qf b) { return _mm512_mul_ps(a, b); }
static inline qf q_add(qf a, qf b) { return _mm512_add_ps(a, b); }
static inline qf q_sub(qf a, qf b) { return _mm512_sub_ps(a, b); }
static inline qf q_loadf(const float *p) { return _mm512_loadu_ps(p); }
static inline void q_storef(float *p, qf a) { _mm512_storeu_ps(p, a); }

static inline __mmask16 q_first(int64_t n)
{
    return n >= QL ? (__mmask16)0xFFFF : n <= 0 ? (__mmask16)0 : (__mmask16)((1u << n) - 1u);
}
/* The first n lanes, 0 behind them; n may be anything. */
static inline qf q_loadf_some(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(q_first(n), p);
}
static inline void q_storef_some(float *p, qf a, int64_t n)
{
    _mm512_mask_storeu_ps(p, q_first(n), a);
}

/* Magnitudes, compared as bits: NaN is above infinity. */
static inline qi q_max_magnitude(qi most, qf a)
{
    const __m512i bits = _mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32(0x7FFFFFFF));
    return _mm512_max_epu32(most, bits);
}
static inline qi q_max(qi a, qi b) { return _mm512_max_epu32(a, b); }
static inline float q_most(qi most)
{
    const uint32_t bits = _mm512_reduce_max_epu32(most);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void q_store_16(void *p, qi a) { _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(a)); }
static inline void q_store_8(void *p, qi a) { _mm_storeu_si128(p, _mm512_cvtepi32_epi8(a)); }
/* 16 bits each, numbers 1 and 2 of every four exchanged. */
static inline void q_store_16_crossed(void *p, qi a)
{
    q_store_16(p, _mm512_shuffle_epi32(a, _MM_PERM_DBCA));
}

/* The stages of the transform within a vector: a + b in the lower lanes of a pair, a - b in the
 * upper ones; multiplying by 1 and -1 is exact. */
static inline qf q_stages_within(qf a)
{
    const __m512 plus = _mm512_set1_ps(1.0f), minus = _mm512_set1_ps(-1.0f);
    const __m512 sign1 = _mm512_mask_blend_ps(0xAAAA, plus, minus);
    const __m512 sign2 = _mm512_mask_blend_ps(0xCCCC, plus, minus);
    const __m512 sign4 = _mm512_mask_blend_ps(0xF0F0, plus, minus);
    const __m512 sign8 = _mm512_mask_blend_ps(0xFF00, plus, minus);
    a = _mm512_fmadd_ps(a, sign1, _mm512_permute_ps(a, 0xB1));
    a = _mm512_fmadd_ps(a, sign2, _mm512_permute_ps(a, 0x4E));
    a = _mm512_fmadd_ps(a, sign4, _mm512_shuffle_f32x4(a, a, 0xB1));
    return _mm512_fmadd_ps(a, sign8, _mm512_shuffle_f32x4(a, a, 0x4E));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary of products of integers for AVX2: eight lanes of 32 bits. Comments: quant512.h. */

#if !defined(__AVX2__) || !defined(__FMA__)
#error "vec/quant256.h needs -mavx2 -mfma; see cmake/isa.cmake"
#endif

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define QL 8

typedef __m256i qi;
typedef __m256 qf;

#define Q_MADD(sum, w, x)                                                                          \
    do {                                                                                           \
        __m256i product_;                                                                          \
        __asm__("vpmaddwd %2, %3, %1\n\tvpaddd %1, %0, %0"                                         \
                : "+x"(sum), "=&x"(product_)                                                       \
                : "x"(w), "x"(x));                                                                 \
    } while (0)
#define Q_DOT_PAIRS(sum, w, x) __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(w), "x"(x))
#define Q_DOT_BYTES(sum, w, x) __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(w), "x"(x))

static inline qi q_load(const void *p) { return _mm256_loadu_si256(p); }
static inline qi q_load_widened(const void *p) { return _mm256_cvtepi8_epi16(_mm_loadu_si128(p)); }
static inline qi q_set1(int32_t a) { return _mm256_set1_epi32(a); }
static inline qi q_add_integers(qi a, qi b) { return _mm256_add_epi32(a, b); }
static inline int32_t q_sum(qi a)
{
    int32_t lane[QL], sum = 0;
    _mm256_storeu_si256((__m256i *)lane, a);
    for (int i = 0; i < QL; i++) sum += lane[i];
    return sum;
}
static inline qi q_even(qi a) { return _mm256_and_si256(a, _mm256_set1_epi16(0xFF)); }
static inline qi q_odd(qi a) { return _mm256_srli_epi16(a, 8); }

static inline qf q_float(qi a) { return _mm256_cvtepi32_ps(a); }
static inline qi q_nearest(qf a) { return _mm256_cvtps_epi32(a); }
static inline qf q_set1f(float a) { return _mm256_set1_ps(a); }
static inline qf q_mul(qf a, qf b) { return _mm256_mul_ps(a, b); }
static inline qf q_add(qf a, qf b) { return _mm256_add_ps(a, b); }
static inline qf q_sub(qf a, qf b) { return _mm256_sub_ps(a, b); }
static inline qf q_loadf(const float *p) { return _mm256_loadu_ps(p); }
static inline void q_storef(float *p, qf a) { _mm256_storeu_ps(p, a); }

static inline qi q_first(int64_t n)
{
    const int32_t count = n >= QL ? QL : n <= 0 ? 0 : (int32_t)n;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline qf q_loadf_some(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, q_first(n));
}
static inline void q_storef_some(float *p, qf a, int64_t n)
{
    _mm256_maskstore_ps(p, q_first(n), a);
}

static inline qi q_max_magnitude(qi most, qf a)
{
    const __m256i bits = _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(0x7FFFFFFF));
    return _mm256_max_epu32(most, bits);
}
static inline qi q_max(qi a, qi b) { return _mm256_max_epu32(a, b); }
static inline float q_most(qi most)
{
    uint32_t lane[QL], bits = 0;
    float value;
    _mm256_storeu_si256((__m256i *)lane, most);
    for (int i = 0; i < QL; i++) bits = lane[i] > bits ? lane[i] : bits;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void q_store_16(void *p, qi a)
{
    _mm_storeu_si128(p, _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)));
}
static inline void q_store_8(void *p, qi a)
{
    const __m128i pairs =
        _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    _mm_storel_epi64(p, _mm_packs_epi16(pairs, pairs));
}
static inline void q_store_16_crossed(void *p, qi a)
{
    q_store_16(p, _mm256_shuffle_epi32(a, 0xD8));
}

static inline qf q_stages_within(qf a)
{
    const __m256 sign1 = _mm256_setr_ps(1, -1, 1, -1, 1, -1, 1, -1);
    const __m256 sign2 = _mm256_setr_ps(1, 1, -1, -1, 1, 1, -1, -1);
    const __m256 sign4 = _mm256_setr_ps(1, 1, 1, 1, -1, -1, -1, -1);
    a = _mm256_fmadd_ps(a, sign1, _mm256_permute_ps(a, 0xB1));
    a = _mm256_fmadd_ps(a, sign2, _mm256_permute_ps(a, 0x4E));
    return _mm256_fmadd_ps(a, sign4, _mm256_permute2f128_ps(a, a, 1));
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_HALF_H
#define LOCUS_CORE_HALF_H

/* Half precision one number at a time: for the oracle, files, tests and the portable kernels. None of
 * it needs subnormal floats, which kernels flush. */

#include <stdint.h>
#include <string.h>

static inline float locus_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* BF16 is the upper half of a float. */
static inline float locus_bf16_to_float(uint16_t half)
{
    return locus_float_of_bits((uint32_t)half << 16);
}

/* F16: sign, 5 bits of exponent (bias 15), 10 of fraction. Every value is a float's. */
static inline float locus_f16_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, fraction = half & 0x3FFu;
    const uint32_t exponent = (half >> 10) & 31u;
    if (exponent == 31) return locus_float_of_bits(sign | 0x7F800000u | fraction << 13);
    if (exponent > 0) return locus_float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const float tiny = (float)fraction * 0x1p-24f; /* subnormal: fraction 2^-24 */
    return sign != 0 ? -tiny : tiny;
}

static inline uint32_t locus_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* To the nearest, ties to even; a NaN stays one. */
static inline uint16_t locus_float_to_bf16(float value)
{
    const uint32_t bits = locus_bits_of_float(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

static inline uint16_t locus_float_to_f16(float value)
{
    const uint32_t bits = locus_bits_of_float(value), size = bits & 0x7FFFFFFFu;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    if (size > 0x7F800000u) return (uint16_t)(sign | 0x7E00u | (size >> 13 & 0x3FFu));
    if (size >= 0x477FF000u) return (uint16_t)(sign | 0x7C00u); /* 65520 and more */
    if (size < 0x38800000u) { /* subnormal: the addition rounds at 2^-24 */
        const float shifted = locus_float_of_bits(size) + 0.5f;
        return (uint16_t)(sign | (locus_bits_of_float(shifted) - 0x3F000000u));
    }
    return (uint16_t)(sign | (((size + 0xFFFu + (size >> 13 & 1u)) >> 13) - (112u << 10)));
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_HALF_H
#define LOCUS_CORE_HALF_H

/* Half precision one number at a time: for the oracle, files and tests. */

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

#endif

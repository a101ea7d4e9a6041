/* SPDX-License-Identifier: Apache-2.0 */
/* The exponential and the logarithm of attention, and what the backward pass makes of a score. */

/* 2^f for |f| <= 1/2 and a little more: 2^0 = 1, error 9e-8. */
static inline vf v_pow2(vf f)
{
    vf p = v_set1(1.32647272e-3f);
    p = v_fma(p, f, v_set1(9.67151269e-3f));
    p = v_fma(p, f, v_set1(5.55073374e-2f));
    p = v_fma(p, f, v_set1(2.40222421e-1f));
    p = v_fma(p, f, v_set1(6.93146978e-1f));
    return v_fma(p, f, v_set1(1.0f));
}

/* e^x = 2^t, t = x log2 e, for x <= 0 (a few ulp above 0 will do): e^0 = 1 exactly, 0 below
 * the normal range, NaN for NaN and +inf. t = n + f, |f| <= 1/2. The relative error is below 2 ulp, plus |x| 2^-24 from rounding t,
 * which is the less the smaller e^x is. */
static inline vf v_exp(vf x)
{
    vf n;
    const vf f = v_split(v_mul(x, v_set1(1.44269504f)), &n);
    return v_times_pow2(v_pow2(f), n);
}

/* ln x for normal x > 0 below infinity, NaN for NaN; ln 1 = 0 exactly. x = m 2^n, f = m - 1,
 * ln (1 + f) = f - f^2 / 2 + f^3 P(f) with a minimax P (4e-8); ln 2 in two parts. */
static inline vf v_log(vf x)
{
    vf n;
    const vf f = v_sub(v_mantissa(x, &n), v_set1(1.0f)), square = v_mul(f, f);
    vf p = v_set1(5.55972308e-2f);
    p = v_fma(p, f, v_set1(-1.21141352e-1f));
    p = v_fma(p, f, v_set1(1.49044409e-1f));
    p = v_fma(p, f, v_set1(-1.67888179e-1f));
    p = v_fma(p, f, v_set1(1.99823201e-1f));
    p = v_fma(p, f, v_set1(-2.49963611e-1f));
    p = v_fma(p, f, v_set1(3.33334714e-1f));
    p = v_fma(v_mul(p, f), square, v_fma(v_set1(-0.5f), square, f));
    return v_fma(n, v_set1(6.93145752e-1f), v_fma(n, v_set1(1.42860677e-6f), p));
}

/* A row that has seen nothing but -inf subtracts 0, so that -inf - (-inf) never arises. */
static inline float reference(float max) { return max == -INFINITY ? 0.0f : max; }

/* e^(s - max) factor; exactly 0 where s is -inf. */
LOCUS_INLINE vf weight_from_lse(vf s, vf minus_top, vf factor)
{
    const vf weight = v_mul(v_exp(v_add(s, minus_top)), factor);
    return v_unless_equal(s, v_set1(-INFINITY), weight);
}

/* dS = P (dP - row_dot); 0 where P is 0. */
LOCUS_INLINE vf score_grad(vf weight, vf grad, vf minus_delta)
{
    const vf ds = v_mul(weight, v_add(grad, minus_delta));
    return v_unless_equal(weight, v_set1(0.0f), ds);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Activations and their derivatives as functions of one vector, for whoever has one in a register:
 * the ends of products and the rows of activate.inc.c. Infinities give the limits, NaN gives NaN.
 * The exponentials are all of numbers that are not positive, so nothing overflows. */

static inline vf v_negate(vf x) { return v_sub(v_set1(0.0f), x); }
static inline vf v_absolute(vf x) { return v_max(v_negate(x), x); }
static inline vf v_least(vf a, vf b) { return v_negate(v_max(v_negate(a), v_negate(b))); }

/* x within -1e4 .. 1e4, where every activation has reached its limits: x times 0 is 0. */
static inline vf v_bounded(vf x) { return v_least(v_set1(1e4f), v_max(v_set1(-1e4f), x)); }

/* 1 / (1 + e^-z) = e^min(0, z) / (1 + e^-|z|); both exponentials are e^-|z| or 1. */
static inline vf v_sigmoid(vf z)
{
    const vf e = v_exp(v_negate(v_absolute(z))), one = v_set1(1.0f);
    return v_div(v_if_greater(z, v_set1(0.0f), one, e), v_add(one, e));
}

/* Its derivative, e / (1 + e)^2 with e = e^-|z|. */
static inline vf v_sigmoid_grad(vf z)
{
    const vf e = v_exp(v_negate(v_absolute(z))), below = v_add(v_set1(1.0f), e);
    return v_div(v_div(e, below), below);
}

/* x / (1 + e^-z), z of the sign of x: neither factor overflows, and -inf gives 0. */
static inline vf v_gated(vf x, vf z)
{
    const vf zero = v_set1(0.0f);
    const vf e = v_exp(v_negate(v_absolute(z)));
    const vf below = v_max(v_set1(-1e4f), v_negate(v_max(zero, v_negate(x))));
    return v_div(v_add(v_max(zero, x), v_mul(below, e)), v_add(v_set1(1.0f), e));
}

/* The normal distribution beyond t >= 0: q(t) = erfc(t / sqrt 2) / 2 = e^(-t^2 / 2) r(t), where r
 * is a minimax polynomial in 1 / (1 + 0.3 t), relative error 4e-7 up to t = 14. *e = e^(-t^2 / 2). */
static inline vf v_normal_tail(vf t, vf *e)
{
    const vf one = v_set1(1.0f), w = v_div(one, v_fma(t, v_set1(0.3f), one));
    vf r = v_set1(3.56745683e-2f);
    r = v_fma(r, w, v_set1(-1.57201841e-1f));
    r = v_fma(r, w, v_set1(2.06350729e-1f));
    r = v_fma(r, w, v_set1(-5.36805578e-2f));
    r = v_fma(r, w, v_set1(1.28559768e-1f));
    r = v_fma(r, w, v_set1(9.99140963e-2f));
    r = v_fma(r, w, v_set1(1.20753855e-1f));
    r = v_fma(r, w, v_set1(1.19629309e-1f));
    *e = v_exp(v_mul(v_mul(t, t), v_set1(-0.5f)));
    return v_mul(v_mul(r, w), *e);
}

/* x Phi(x) = max(0, x) - t q(t), t = |x|. */
static inline vf v_gelu(vf x)
{
    vf e;
    const vf t = v_least(v_set1(1e4f), v_absolute(x));
    return v_sub(v_max(v_set1(0.0f), x), v_mul(t, v_normal_tail(t, &e)));
}

/* Phi(x) + x phi(x), phi(x) = e^(-x^2 / 2) / sqrt(2 pi). */
static inline vf v_gelu_grad(vf x)
{
    vf e;
    const vf zero = v_set1(0.0f), bounded = v_bounded(x);
    const vf tail = v_normal_tail(v_absolute(bounded), &e);
    const vf below = v_if_greater(bounded, zero, v_sub(v_set1(1.0f), tail), tail);
    return v_fma(v_mul(bounded, v_set1(3.98942280e-1f)), e, below);
}

/* z of gelu_tanh = x / (1 + e^-z): 2 sqrt(2 / pi) (x + 0.044715 x^3). */
static inline vf v_gelu_inner(vf x)
{
    return v_mul(x, v_fma(v_mul(x, x), v_set1(0.0713548163f), v_set1(1.59576912f)));
}

/* The derivative of x s(z(x)): s + x z' s'; dz = z'. */
static inline vf v_gated_grad(vf x, vf z, vf dz)
{
    return v_fma(v_mul(x, dz), v_sigmoid_grad(z), v_sigmoid(z));
}

static inline vf v_gelu_tanh_grad(vf x)
{
    const vf b = v_bounded(x);
    const vf dz = v_fma(v_mul(b, b), v_set1(0.214064449f), v_set1(1.59576912f));
    return v_gated_grad(b, v_gelu_inner(b), dz);
}

/* tanh x: an odd minimax polynomial below 0.6 (3e-9), else 1 - 2 / (1 + e^2x) of |x|. */
static inline vf v_tanh(vf x)
{
    const vf t = v_absolute(x), square = v_mul(x, x), one = v_set1(1.0f);
    vf p = v_set1(-5.905868357e-3f);
    p = v_fma(p, square, v_set1(2.080538455e-2f));
    p = v_fma(p, square, v_set1(-5.378668356e-2f));
    p = v_fma(p, square, v_set1(1.333195824e-1f));
    p = v_fma(p, square, v_set1(-3.333329927e-1f));
    const vf near = v_fma(v_mul(p, square), x, x);
    const vf e = v_exp(v_mul(t, v_set1(-2.0f)));
    const vf far = v_sub(one, v_div(v_add(e, e), v_add(one, e)));
    const vf turned = v_if_greater(x, v_set1(0.0f), far, v_negate(far));
    return v_if_greater(t, v_set1(0.6f), turned, near);
}

static inline vf v_activate(vf x, locus_activation activation)
{
    switch (activation) {
    case LOCUS_RELU: return v_max(v_set1(0.0f), x);
    case LOCUS_GELU: return v_gelu(x);
    case LOCUS_GELU_TANH: return v_gated(x, v_gelu_inner(x));
    case LOCUS_SILU: return v_gated(x, x);
    case LOCUS_TANH: return v_tanh(x);
    case LOCUS_SIGMOID: return v_sigmoid(x);
    case LOCUS_IDENTITY: break;
    }
    return x;
}

/* activation'(x); relu'(0) = 0. */
static inline vf v_activate_grad(vf x, locus_activation activation)
{
    const vf zero = v_set1(0.0f), one = v_set1(1.0f);
    switch (activation) {
    case LOCUS_RELU: {
        const vf positive = v_max(zero, x); /* x where it is NaN */
        return v_if_greater(positive, zero, one, positive);
    }
    case LOCUS_GELU: return v_gelu_grad(x);
    case LOCUS_GELU_TANH: return v_gelu_tanh_grad(x);
    case LOCUS_SILU: return v_gated_grad(v_bounded(x), x, one);
    case LOCUS_TANH: return v_mul(v_set1(4.0f), v_sigmoid_grad(v_add(x, x)));
    case LOCUS_SIGMOID: return v_sigmoid_grad(x);
    case LOCUS_IDENTITY: break;
    }
    return one;
}

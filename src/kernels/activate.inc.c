/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of rows, plain and gated, there and back. One loop per activation, so that none is
 * chosen inside a loop. */

LOCUS_INLINE void activate_loop(float *y, const float *x, const float *gate, int64_t columns,
                                const locus_activation activation)
{
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        vf a = v_activate(load_some(x + c, tail), activation);
        if (gate != NULL) a = v_mul(a, load_some(gate + c, tail));
        store_some(y + c, a, tail);
    }
}

LOCUS_INLINE void activate_grad_loop(float *dx, float *dgate, const float *dy, const float *x,
                                     const float *gate, int64_t columns,
                                     const locus_activation activation)
{
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        const vf at = load_some(x + c, tail), slope = v_activate_grad(at, activation);
        const vf back = load_some(dy + c, tail);
        if (gate == NULL) {
            store_some(dx + c, v_mul(back, slope), tail);
            continue;
        }
        const vf factor = load_some(gate + c, tail);
        store_some(dx + c, v_mul(v_mul(back, factor), slope), tail);
        store_some(dgate + c, v_mul(back, v_activate(at, activation)), tail);
    }
}

/* The value of an enumeration as a constant of the loop. */
#define EACH_ACTIVATION(loop)                                                                      \
    switch (activation) {                                                                          \
    case LOCUS_IDENTITY: loop(LOCUS_IDENTITY); break;                                              \
    case LOCUS_RELU: loop(LOCUS_RELU); break;                                                      \
    case LOCUS_GELU: loop(LOCUS_GELU); break;                                                      \
    case LOCUS_GELU_TANH: loop(LOCUS_GELU_TANH); break;                                            \
    case LOCUS_SILU: loop(LOCUS_SILU); break;                                                      \
    case LOCUS_TANH: loop(LOCUS_TANH); break;                                                      \
    case LOCUS_SIGMOID: loop(LOCUS_SIGMOID); break;                                                \
    }

static LOCUS_ACTIVATE_ROWS(activate_rows)
{
#define LOOP(which) activate_loop(y, x, gate, columns, which)
    EACH_ACTIVATION(LOOP)
#undef LOOP
}

static LOCUS_ACTIVATE_GRAD(activate_grad)
{
#define LOOP(which) activate_grad_loop(dx, dgate, dy, x, gate, columns, which)
    EACH_ACTIVATION(LOOP)
#undef LOOP
}
#undef EACH_ACTIVATION

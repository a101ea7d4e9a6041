/* SPDX-License-Identifier: Apache-2.0 */
/* Softcap, there and back. */

static LOCUS_CAP(cap_scores)
{
    const vf limit = v_set1(cap), inverse = v_set1(1.0f / cap), one = v_set1(1.0f);
    for (int64_t c = 0; c < count; c += VL) {
        const int64_t tail = count - c < VL ? count - c : 0;
        const vf t = v_tanh(v_mul(load_some(S + c, tail), inverse));
        if (slope != NULL) store_some(slope + c, v_sub(one, v_mul(t, t)), tail);
        store_some(S + c, v_mul(limit, t), tail);
    }
}

static LOCUS_CAP_GRAD(cap_grad)
{
    for (int64_t c = 0; c < count; c += VL) {
        const int64_t tail = count - c < VL ? count - c : 0;
        const vf ds = load_some(dS + c, tail);
        store_some(dS + c, v_unless_equal(ds, v_set1(0.0f), v_mul(ds, load_some(slope + c, tail))),
                   tail);
    }
}

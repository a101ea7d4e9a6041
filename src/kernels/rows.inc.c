/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on single rows. */

static LOCUS_ADD(add)
{
    int64_t c = 0;
    for (; c + VL <= columns; c += VL) v_store(y + c, v_add(v_load(y + c), v_load(x + c)));
    for (; c < columns; c++) y[c] += x[c];
}

static LOCUS_SCALE(scale)
{
    const vf f = v_set1(factor);
    int64_t c = 0;
    for (; c + VL <= columns; c += VL) v_store(y + c, v_mul(v_load(y + c), f));
    for (; c < columns; c++) y[c] *= factor;
}

static LOCUS_DOT(dot)
{
    vf sum = v_set1(0.0f);
    int64_t c = 0;
    for (; c + VL <= columns; c += VL) sum = v_fma(v_load(x + c), v_load(y + c), sum);
    if (c < columns) sum = v_fma(v_loadn(x + c, columns - c), v_loadn(y + c, columns - c), sum);
    return v_sum(sum);
}

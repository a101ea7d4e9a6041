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

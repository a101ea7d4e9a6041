/* SPDX-License-Identifier: Apache-2.0 */
/* The last columns of a row, fewer than a vector, are `tail` lanes wide; 0: a whole vector. */

LOCUS_INLINE vf load_some(const float *p, int64_t tail)
{
    return tail == 0 ? v_load(p) : v_loadn(p, tail);
}
LOCUS_INLINE void store_some(float *p, vf x, int64_t tail)
{
    if (tail == 0)
        v_store(p, x);
    else
        v_storen(p, x, tail);
}

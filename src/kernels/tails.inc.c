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

/* Numbers of any floating type, as floats. `type` is a constant wherever these stand. */
LOCUS_INLINE const void *number_at(const void *numbers, int64_t index, const locus_dtype type)
{
    return (const char *)numbers + index * (type == LOCUS_F32 ? 4 : 2);
}
LOCUS_INLINE vf load_numbers(const void *p, int64_t tail, const locus_dtype type)
{
    if (type == LOCUS_F32) return load_some(p, tail);
    uint16_t some[VL] = {0};
    if (tail != 0) p = memcpy(some, p, (size_t)tail * sizeof *some);
    return type == LOCUS_F16 ? v_load_f16(p) : v_load_bf16(p);
}
LOCUS_INLINE void store_half(void *p, vf x, int64_t tail, const locus_dtype type)
{
    uint16_t some[VL];
    void *to = tail == 0 ? p : some;
    if (type == LOCUS_F16)
        v_store_f16(to, x);
    else
        v_store_bf16(to, x);
    if (tail != 0) memcpy(p, some, (size_t)tail * sizeof *some);
}

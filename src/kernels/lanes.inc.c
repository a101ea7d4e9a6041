/* SPDX-License-Identifier: Apache-2.0 */
/* Sums by lanes. There are LOCUS_LANES of them however wide a vector is, and in the end they are added
 * up half to half: so a sum has the same order, and with fused multiply-add the same bits, on every
 * processor. */

enum { PARTS = LOCUS_LANES / VL };

typedef struct lane_sums {
    vf part[PARTS];
} lane_sums;

LOCUS_INLINE lane_sums lanes_zero(void)
{
    LOCUS_UNINITIALIZED lane_sums a;
    LOCUS_UNROLL
    for (int p = 0; p < PARTS; p++) a.part[p] = v_set1(0.0f);
    return a;
}

LOCUS_INLINE lane_sums lanes_add(lane_sums a, lane_sums b)
{
    LOCUS_UNROLL
    for (int p = 0; p < PARTS; p++) a.part[p] = v_add(a.part[p], b.part[p]);
    return a;
}

/* VL lanes with the sum of all. */
LOCUS_INLINE vf lanes_folded(lane_sums a)
{
    LOCUS_UNROLL
    for (int width = PARTS / 2; width > 0; width /= 2) {
        LOCUS_UNROLL
        for (int p = 0; p < width; p++) a.part[p] = v_add(a.part[p], a.part[p + width]);
    }
    return a.part[0];
}

LOCUS_INLINE float lanes_sum(lane_sums a) { return v_sum(lanes_folded(a)); }

/* Lanes of part `part` where `left` columns are left, in the form of load_some (0: all of them); -1:
 * none, which counts as zeros. */
LOCUS_INLINE int64_t part_tail(int64_t left, const int part)
{
    const int64_t rest = left - part * VL;
    return rest >= VL ? 0 : rest > 0 ? rest : -1;
}
LOCUS_INLINE vf load_part(const float *p, int64_t tail)
{
    return tail < 0 ? v_set1(0.0f) : load_some(p, tail);
}

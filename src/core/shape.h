/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_SHAPE_H
#define LOCUS_CORE_SHAPE_H

/* Shapes as declarations write them: axes by name, a blank between them, ", " between two
 * shapes that are both allowed: "R D, H R D". An axis is
 *     B, H, Tq, ...   one of the names below: the extent that the call has
 *     2               a number
 *     1|B             1 or the extent
 *     >=T             at least the extent
 *     F               any other name: whatever the first tensor with it has */

#include <locus/tensor.h>

/* Every name that a call gives an extent to; -1: not known (yet). */
#define LOCUS_AXIS_NAMES(X)                                                                        \
    X(B)                                                                                           \
    X(H)                                                                                           \
    X(Hk)                                                                                          \
    X(Tq)                                                                                          \
    X(Tk) X(D) X(Dv) X(E) X(T) X(M) X(HD) X(HF) X(R) X(Ry) X(Rx) X(S1) X(pairs) X(axes) X(buckets)

enum { LOCUS_FREE_AXES = 4 };

typedef struct locus_extents {
#define LOCUS_AXIS(name) int64_t name;
    LOCUS_AXIS_NAMES(LOCUS_AXIS)
#undef LOCUS_AXIS
    /* names beyond the list, bound by the first tensor that has them */
    struct {
        const char *name;
        size_t length;
        int64_t extent;
    } free[LOCUS_FREE_AXES];
    size_t free_count;
} locus_extents;

/* The extent of one axis of a shape, without "1|" or ">="; -1: not known. */
int64_t locus_axis_extent(const locus_extents *extents, const char *axis, size_t length);

/* 1 when tensor `t` has the shape; binds free names. */
int locus_shape_fits(locus_extents *extents, const char *shape, const locus_tensor *t);

/* The first of the shapes as numbers; an axis without a known extent becomes `otherwise`.
 * 0: more axes than a tensor has. */
int locus_shape_make(const locus_extents *extents, const char *shape, int64_t otherwise,
                     int64_t *made, uint32_t *rank);

/* 1 when the shape names the axis. */
int locus_shape_names(const char *shape, const char *axis);

/* "[3,16,8] (H R D)": the extents that are known, beside the names. */
const char *locus_shape_text(const locus_extents *extents, const char *shape, char *text,
                             size_t capacity);

#endif

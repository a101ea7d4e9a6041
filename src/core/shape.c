/* SPDX-License-Identifier: Apache-2.0 */
#include "core/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int same(const char *name, const char *axis, size_t length)
{
    return strlen(name) == length && memcmp(name, axis, length) == 0;
}

/* Length of the axis that `text` begins with; 0 at the end of a shape. */
static size_t axis_length(const char *text) { return strcspn(text, " ,"); }

/* The next shape after ", ", or NULL. */
static const char *next_shape(const char *shape)
{
    const char *comma = strchr(shape, ',');
    return comma != NULL ? comma + 2 : NULL;
}

static const char *next_axis(const char *axis)
{
    const size_t length = axis_length(axis);
    return axis + length + (axis[length] == ' ');
}

static int at_end(const char *axis) { return *axis == '\0' || *axis == ','; }

int64_t locus_axis_extent(const locus_extents *extents, const char *axis, size_t length)
{
#define LOCUS_AXIS(name)                                                                           \
    if (same(#name, axis, length)) return extents->name;
    LOCUS_AXIS_NAMES(LOCUS_AXIS)
#undef LOCUS_AXIS
    if (length == 1 && axis[0] >= '0' && axis[0] <= '9') return axis[0] - '0';
    for (size_t i = 0; i < extents->free_count; i++)
        if (extents->free[i].length == length && memcmp(extents->free[i].name, axis, length) == 0)
            return extents->free[i].extent;
    return -1;
}

static int is_listed(const char *axis, size_t length)
{
#define LOCUS_AXIS(name)                                                                           \
    if (same(#name, axis, length)) return 1;
    LOCUS_AXIS_NAMES(LOCUS_AXIS)
#undef LOCUS_AXIS
    return 0;
}

static void bind(locus_extents *extents, const char *axis, size_t length, int64_t found)
{
    if (is_listed(axis, length) || extents->free_count == LOCUS_FREE_AXES) return;
    const size_t i = extents->free_count++;
    extents->free[i].name = axis;
    extents->free[i].length = length;
    extents->free[i].extent = found;
}

static int axis_fits(locus_extents *extents, const char *axis, size_t length, int64_t found)
{
    if (length > 2 && memcmp(axis, "1|", 2) == 0)
        return found == 1 || found == locus_axis_extent(extents, axis + 2, length - 2);
    if (length > 2 && memcmp(axis, ">=", 2) == 0)
        return found >= locus_axis_extent(extents, axis + 2, length - 2);
    const int64_t wanted = locus_axis_extent(extents, axis, length);
    if (wanted < 0) bind(extents, axis, length, found);
    return wanted < 0 || found == wanted;
}

/* Two rounds, so that a shape that does not fit binds nothing. */
static int one_fits(locus_extents *extents, const char *shape, const locus_tensor *t)
{
    uint32_t rank = 0;
    for (const char *axis = shape; !at_end(axis); axis = next_axis(axis)) rank++;
    if (rank != t->rank) return 0;
    locus_extents trial = *extents;
    rank = 0;
    for (const char *axis = shape; !at_end(axis); axis = next_axis(axis))
        if (!axis_fits(&trial, axis, axis_length(axis), t->shape[rank++])) return 0;
    *extents = trial;
    return 1;
}

int locus_shape_fits(locus_extents *extents, const char *shape, const locus_tensor *t)
{
    for (; shape != NULL; shape = next_shape(shape))
        if (one_fits(extents, shape, t)) return 1;
    return 0;
}

int locus_shape_make(const locus_extents *extents, const char *shape, int64_t otherwise,
                     int64_t *made, uint32_t *rank)
{
    *rank = 0;
    for (const char *axis = shape; !at_end(axis); axis = next_axis(axis)) {
        const size_t length = axis_length(axis);
        const int marked = length > 2 && (memcmp(axis, ">=", 2) == 0 || memcmp(axis, "1|", 2) == 0);
        const int64_t extent =
            locus_axis_extent(extents, axis + 2 * marked, length - 2 * (size_t)marked);
        if (*rank == LOCUS_MAX_RANK) return 0;
        made[(*rank)++] = extent >= 0 ? extent : otherwise;
    }
    return *rank > 0;
}

int locus_shape_names(const char *shape, const char *name)
{
    for (; shape != NULL; shape = next_shape(shape))
        for (const char *axis = shape; !at_end(axis); axis = next_axis(axis))
            if (same(name, axis, axis_length(axis))) return 1;
    return 0;
}

const char *locus_shape_text(const locus_extents *extents, const char *shape, char *text,
                             size_t capacity)
{
    size_t used = 0;
    for (const char *axis = shape; !at_end(axis) && used < capacity; axis = next_axis(axis)) {
        const size_t length = axis_length(axis);
        const int64_t value = locus_axis_extent(extents, axis, length);
        const char *mark = axis == shape ? "[" : ",";
        used +=
            value >= 0
                ? (size_t)snprintf(text + used, capacity - used, "%s%" PRId64, mark, value)
                : (size_t)snprintf(text + used, capacity - used, "%s%.*s", mark, (int)length, axis);
    }
    if (used < capacity) snprintf(text + used, capacity - used, "] (%s)", shape);
    return text;
}

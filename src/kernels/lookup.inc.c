/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and adding to tables by an index that ascends in steps of 0 or 1: VL of it lie within
 * VL entries, so a load and a permutation will do. No gather. */

/* The permutation of a vector is the same for all rows. */
static LOCUS_EXPAND(expand)
{
    for (int64_t c = 0; c < columns; c += VL) {
        const int32_t *places = index + c;
        const float *from = X + (places[0] - first);
        for (int64_t i = 0; i < rows; i++)
            v_store(Y + i * y_stride + c, v_permute(from + i * x_stride, places));
    }
}

/* The vector of x[j ..], 0 outside x[0 .. width - 1]. */
LOCUS_INLINE vf load_within(const float *x, int64_t j, int64_t width)
{
    if (j >= 0 && j + VL <= width) return v_load(x + j);
    if (j <= -VL || j >= width) return v_set1(0.0f);
    if (j >= 0) return v_loadn(x + j, width - j);
    if (j + VL <= width) return v_load_from(x + j, -j);
    float few[VL] = {0};
    for (int64_t at = 0; at < width; at++) few[at - j] = x[at];
    return v_load(few);
}

/* The vector of row i that begins at place c of the index. */
LOCUS_INLINE vf fold_load(const locus_fold_tile *t, int64_t i, int64_t c)
{
    return load_within(t->x + i * t->x_stride, c - t->start + i, t->width);
}

/* The LOCUS_LANES places from place c on. */
LOCUS_INLINE lane_sums fold_lanes(const locus_fold_tile *t, int64_t i, int64_t c)
{
    LOCUS_UNINITIALIZED lane_sums x;
    LOCUS_UNROLL
    for (int p = 0; p < PARTS; p++) x.part[p] = fold_load(t, i, c + p * VL);
    return x;
}

/* The groups of LOCUS_LANES places from place c up to `end` that row i uses. */
LOCUS_INLINE void fold_reach(const locus_fold_tile *t, int64_t i, int64_t *c, int64_t *end)
{
    const int64_t low = t->start - i, high = low + t->width;
    while (*c + LOCUS_LANES <= low && *c < *end) *c += LOCUS_LANES;
    while (*end - LOCUS_LANES >= high && *end > *c) *end -= LOCUS_LANES;
}

/* Groups of one entry. */
LOCUS_INLINE void fold_far(const locus_fold_tile *t, float *to, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t c = begin, last = end;
        fold_reach(t, i, &c, &last);
        if (c == last) continue;
        const float *x = t->x + i * t->x_stride - t->start + i;
        lane_sums sum = fold_lanes(t, i, c);
        for (c += LOCUS_LANES; c < last - LOCUS_LANES; c += LOCUS_LANES) {
            LOCUS_UNROLL
            for (int p = 0; p < PARTS; p++)
                sum.part[p] = v_add(sum.part[p], v_load(x + c + p * VL));
        }
        if (c < last) sum = lanes_add(sum, fold_lanes(t, i, c));
        to[i * t->y_stride] += lanes_sum(sum);
    }
}

/* Groups of consecutive entries: the sums of a row are its own, so they may begin anywhere. */
LOCUS_INLINE void fold_consecutive(const locus_fold_tile *t, float *to, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < t->rows; i++) {
        const int64_t low = t->start - i, high = low + t->width;
        const int64_t last = end < high ? end : high;
        const float *x = t->x + i * t->x_stride - low;
        float *row = to + i * t->y_stride - begin;
        int64_t c = begin > low ? begin : low;
        for (; c + VL <= last; c += VL) v_store(row + c, v_add(v_load(row + c), v_load(x + c)));
        if (c < last)
            v_storen(row + c, v_add(v_loadn(row + c, last - c), v_loadn(x + c, last - c)),
                     last - c);
    }
}

/* The runs of entries in one vector of a group: turn[k] takes the k-th number of every run. The first
 * run may go on from the vector before, whose sum `carry` takes; the last one may go on into the next,
 * which writes it: `written` entries are this vector's own. */
typedef struct fold_part {
    vplaces turn[VL], carry;
    int longest; /* run; 0: no places */
    int32_t entry;
    int64_t written;
} fold_part;

LOCUS_INLINE void find_runs(fold_part *part, const int32_t *index, int from, int count)
{
    int32_t place[VL][VL], length[VL] = {0};
    memset(place, -1, sizeof place);
    part->longest = 0;
    for (int k = from; k < from + count; k++) {
        const int32_t entry = index[k] - index[from];
        place[length[entry]++][entry] = k;
        if (length[entry] > part->longest) part->longest = length[entry];
    }
    for (int k = 0; k < part->longest; k++) part->turn[k] = v_places(place[k]);
    part->entry = index[from];
    part->written = index[from + count - 1] - part->entry + 1;
}

/* The run that begins `part` goes on from the last one of `before`. */
LOCUS_INLINE void join_runs(fold_part *part, fold_part *before)
{
    int32_t place[VL];
    memset(place, -1, sizeof place);
    if (before != NULL && before->longest > 0 &&
        before->entry + before->written - 1 == part->entry) {
        place[0] = (int32_t)--before->written;
    }
    part->carry = v_places(place);
}

LOCUS_INLINE void write_runs(const fold_part *part, float *y, vf sum)
{
    float *row = y + part->entry;
    if (part->written == VL)
        v_store(row, v_add(v_load(row), sum));
    else if (part->written > 0)
        v_storen(row, v_add(v_loadn(row, part->written), sum), part->written);
}

/* One group; the rows reach its places from `first` on up to `last`. */
LOCUS_INLINE void fold_runs(const locus_fold_tile *t, int64_t c, int64_t first, int64_t last)
{
    LOCUS_UNINITIALIZED fold_part parts[PARTS];
    for (int p = 0; p < PARTS; p++) {
        const int64_t at = c + p * VL;
        const int from = first > at ? (int)(first - at < VL ? first - at : VL) : 0;
        const int end = last < at + VL ? (int)(last > at ? last - at : 0) : VL;
        parts[p].longest = 0;
        parts[p].written = 0;
        if (from >= end) continue;
        find_runs(&parts[p], t->index + at, from, end - from);
        join_runs(&parts[p], p > 0 ? &parts[p - 1] : NULL);
    }
    for (int64_t i = 0; i < t->rows; i++) {
        float *y = t->y + i * t->y_stride - t->first;
        vf sum = v_set1(0.0f);
        for (int p = 0; p < PARTS; p++) {
            const fold_part *part = &parts[p];
            if (part->longest == 0) continue;
            const vf x = fold_load(t, i, c + p * VL), first_of_runs = v_take(x, part->turn[0]);
            sum = PARTS > 1 ? v_add(v_take(sum, part->carry), first_of_runs) : first_of_runs;
            for (int k = 1; k < part->longest; k++) sum = v_add(sum, v_take(x, part->turn[k]));
            write_runs(part, y, sum);
        }
    }
}

static LOCUS_FOLD(fold)
{
    if (t->rows <= 0 || t->width <= 0) return;
    const int64_t first = t->start - (t->rows - 1), last = t->start + t->width;
    for (int64_t c = first / LOCUS_LANES * LOCUS_LANES, next; c < last; c = next) {
        if (c >= t->skip_from && c < t->skip_to) {
            next = t->skip_to;
            continue;
        }
        const int64_t end = c < t->skip_from && t->skip_from < last ? t->skip_from : last;
        const int32_t *past = t->index + LOCUS_LANES - 1; /* the last place of a group */
        const int32_t low = t->index[c], rise = past[c] - low;
        float *to = t->y + (low - t->first);
        next = c + LOCUS_LANES;
        if (rise == 0) {
            while (next < end && past[next] == low) next += LOCUS_LANES;
            fold_far(t, to, c, next);
        } else if (rise == LOCUS_LANES - 1) {
            while (next < end && past[next] - low == next + LOCUS_LANES - 1 - c)
                next += LOCUS_LANES;
            fold_consecutive(t, to, c, next);
        } else
            fold_runs(t, c, first, last);
    }
}

/* LOCUS_LANES rows at a time: what a load reads was then stored whole. */
static LOCUS_DIAGONALS(diagonals)
{
    for (int64_t first = 0, count; first < rows; first += count) {
        count = rows - first < LOCUS_LANES ? rows - first : LOCUS_LANES;
        float *to = y + rows - first - count;
        const float *from = T + first * t_stride - (count - 1); /* row r stands r places further */
        const int64_t places = columns + count - 1;
        for (int64_t c = 0; c < places; c += VL) {
            const int64_t tail = places - c < VL ? places - c : 0;
            vf sum = load_some(to + c, tail);
            if (c >= count - 1 && c + VL <= columns)
                for (int64_t r = 0; r < count; r++)
                    sum = v_add(sum, v_load(from + r * (t_stride + 1) + c));
            else
                for (int64_t r = 0; r < count; r++)
                    sum = v_add(sum, load_within(T + (first + r) * t_stride, c - (count - 1) + r,
                                                 columns));
            store_some(to + c, sum, tail);
        }
    }
}

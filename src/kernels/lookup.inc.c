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

/* The vectors from place c up to `end` that row i uses. */
LOCUS_INLINE void fold_reach(const locus_fold_tile *t, int64_t i, int64_t *c, int64_t *end)
{
    const int64_t low = t->start - i, high = low + t->width;
    while (*c + VL <= low && *c < *end) *c += VL;
    while (*end - VL >= high && *end > *c) *end -= VL;
}

/* Vectors of one entry. */
LOCUS_INLINE void fold_far(const locus_fold_tile *t, float *to, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t c = begin, last = end;
        fold_reach(t, i, &c, &last);
        if (c == last) continue;
        const float *x = t->x + i * t->x_stride - t->start + i;
        vf sum = fold_load(t, i, c);
        for (c += VL; c < last - VL; c += VL) sum = v_add(sum, v_load(x + c));
        if (c < last) sum = v_add(sum, fold_load(t, i, c));
        to[i * t->y_stride] += v_sum(sum);
    }
}

/* Vectors of consecutive entries: the sums of a row are its own, so they may begin anywhere. */
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

/* Of `count` places from `from` on, turn[k] takes the k-th number of every entry's run. Returns the
 * length of the longest. */
LOCUS_INLINE int find_runs(const int32_t *index, int from, int count, vplaces turn[VL])
{
    int32_t place[VL][VL], length[VL] = {0};
    int longest = 0;
    memset(place, -1, sizeof place);
    for (int k = from; k < from + count; k++) {
        const int32_t entry = index[k] - index[from];
        place[length[entry]++][entry] = k;
        if (length[entry] > longest) longest = length[entry];
    }
    for (int k = 0; k < longest; k++) turn[k] = v_places(place[k]);
    return longest;
}

/* One vector; the rows reach its places from `first` on up to `last`. */
LOCUS_INLINE void fold_runs(const locus_fold_tile *t, int64_t c, int64_t first, int64_t last)
{
    vplaces turn[VL];
    const int from = first > c ? (int)(first - c) : 0, end = last < c + VL ? (int)(last - c) : VL;
    const int32_t *index = t->index + c;
    const int longest = find_runs(index, from, end - from, turn);
    const int64_t lanes = index[end - 1] - index[from] + 1;
    float *to = t->y + (index[from] - t->first);
    for (int64_t i = 0; i < t->rows; i++) {
        float *row = to + i * t->y_stride;
        const vf x = fold_load(t, i, c);
        vf sum = v_take(x, turn[0]);
        for (int k = 1; k < longest; k++) sum = v_add(sum, v_take(x, turn[k]));
        if (lanes < VL)
            v_storen(row, v_add(v_loadn(row, lanes), sum), lanes);
        else
            v_store(row, v_add(v_load(row), sum));
    }
}

static LOCUS_FOLD(fold)
{
    if (t->rows <= 0 || t->width <= 0) return;
    const int64_t first = t->start - (t->rows - 1), last = t->start + t->width;
    for (int64_t c = first / VL * VL, next; c < last; c = next) {
        if (c >= t->skip_from && c < t->skip_to) {
            next = t->skip_to;
            continue;
        }
        const int64_t end = c < t->skip_from && t->skip_from < last ? t->skip_from : last;
        const int32_t low = t->index[c], rise = t->index[c + VL - 1] - low;
        float *to = t->y + (low - t->first);
        next = c + VL;
        if (rise == 0) {
            while (next < end && t->index[next + VL - 1] == low) next += VL;
            fold_far(t, to, c, next);
        } else if (rise == VL - 1) {
            while (next < end && t->index[next + VL - 1] - low == next + VL - 1 - c) next += VL;
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

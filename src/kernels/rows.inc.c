/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on single rows. */

/* Ascending, so that what is read was not yet written. */
static LOCUS_SLIDE(slide)
{
    for (int64_t r = 0; r < count; r++) {
        float *to = rows + r * row_stride;
        const float *from = to + shift;
        int64_t c = 0;
        for (; c + VL <= kept; c += VL) v_store(to + c, v_load(from + c));
        for (; c < kept; c++) to[c] = from[c];
    }
}

static LOCUS_ADD(add)
{
    int64_t c = 0;
    for (; c + VL <= columns; c += VL) v_store(y + c, v_add(v_load(y + c), v_load(x + c)));
    for (; c < columns; c++) y[c] += x[c];
}

static LOCUS_ADD_BIAS(add_bias)
{
    const vf masked = v_set1(-INFINITY);
    int64_t c = 0;
    for (; c + VL <= columns; c += VL) {
        const vf bias = v_load(x + c);
        v_store(y + c, v_add(v_unless_equal(bias, masked, v_load(y + c)), bias));
    }
    for (; c < columns; c++) y[c] = x[c] == -INFINITY ? -INFINITY : y[c] + x[c];
}

static LOCUS_ADD_AFFINE(add_affine)
{
    const vf a = v_set1(slope), b = v_set1(shift);
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        const vf value = v_fma(load_some(x + c, tail), a, b);
        store_some(y + c, v_add(load_some(y + c, tail), value), tail);
    }
}

static LOCUS_ADD_SPLIT(add_split)
{
    const vf a = v_set1(shift), b = v_set1(shift_low);
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        const vf value =
            v_add(v_add(load_some(x + c, tail), a), v_add(load_some(low + c, tail), b));
        store_some(y + c, v_add(load_some(y + c, tail), value), tail);
    }
}

static LOCUS_MOMENTS(moments)
{
    lane_sums all = lanes_zero(), weighted = lanes_zero();
    for (int64_t c = 0; c < columns; c += LOCUS_LANES) {
        LOCUS_UNROLL
        for (int p = 0; p < PARTS; p++) {
            const int64_t at = c + p * VL, tail = part_tail(columns - c, p);
            if (tail < 0) continue;
            const vf weight = load_some(t + at, tail);
            all.part[p] = v_add(all.part[p], weight);
            weighted.part[p] = v_fma(weight, load_some(x + at, tail), weighted.part[p]);
        }
    }
    sums[0] += (double)lanes_sum(all);
    sums[1] += (double)lanes_sum(weighted);
}

static LOCUS_SCALE(scale)
{
    const vf f = v_set1(factor);
    int64_t c = 0;
    for (; c + VL <= columns; c += VL) v_store(y + c, v_mul(v_load(x + c), f));
    for (; c < columns; c++) y[c] = x[c] * factor;
}

LOCUS_INLINE void scale_row(float *to, const float *row, const float *shift, vf factor,
                            int64_t width, const int shifts, const int resume)
{
    for (int64_t c = 0; c < width; c += VL) {
        const int64_t tail = width - c < VL ? width - c : 0;
        vf x = load_some(row + c, tail);
        if (shifts) x = v_add(x, load_some(shift + c, tail));
        x = v_mul(x, factor);
        x = v_add(resume ? load_some(to + c, tail) : v_set1(0.0f), x);
        store_some(to + c, x, tail);
    }
}

static LOCUS_SCALE_ROWS(scale_rows)
{
    const vf f = v_set1(factor);
#define ROWS(shifts, resumes)                                                                      \
    for (int64_t r = 0; r < count; r++)                                                            \
    scale_row(to + r * to_stride, rows + r * row_stride, shift, f, width, shifts, resumes)
    if (shift != NULL && resume)
        ROWS(1, 1);
    else if (shift != NULL)
        ROWS(1, 0);
    else if (resume)
        ROWS(0, 1);
    else
        ROWS(0, 0);
#undef ROWS
}

static LOCUS_MUL_GAIN(mul_gain)
{
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        const vf start = resume ? load_some(y + c, tail) : v_set1(0.0f);
        store_some(y + c, v_fma(load_some(x + c, tail), load_some(gain + c, tail), start), tail);
    }
}

static LOCUS_SIGMOIDS(sigmoids)
{
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        store_some(y + c, v_sigmoid(load_some(x + c, tail)), tail);
    }
}

/* e^(to - from) of up to VL doubles: 2^n e^r, n the nearest whole number to x log2 e. ln 2 in two
 * parts, of which the first times n is exact, leaves r what a float has lost of x. */
LOCUS_INLINE vf exp_between(const double *to, const double *from, int64_t count)
{
    float x[VL] = {0.0f}, rest[VL] = {0.0f};
    for (int64_t k = 0; k < count; k++) {
        const double exact = to[k] - from[k];
        x[k] = exact < -86.0 ? -126.0f : (float)exact;
        rest[k] = exact < -86.0 ? 0.0f : (float)(exact - (double)x[k]);
    }
    const vf t = v_mul(v_load(x), v_set1(1.44269504f));
    vf power;
    const vf n = v_sub(t, v_split(t, &power));
    vf r = v_fma(n, v_set1(-0.693359375f), v_load(x));
    r = v_add(r, v_fma(n, v_set1(2.12194440e-4f), v_load(rest)));
    return v_times_pow2(v_pow2(v_mul(r, v_set1(1.44269504f))), power);
}

static LOCUS_DECAY(decay)
{
    int64_t c = 0;
    for (; c + VL <= columns; c += VL) {
        const vf start = resume ? v_load(y + c) : v_set1(0.0f);
        v_store(y + c, v_fma(v_load(x + c), exp_between(to + c, from + c, VL), start));
    }
    if (c < columns) {
        const int64_t tail = columns - c;
        const vf start = resume ? load_some(y + c, tail) : v_set1(0.0f);
        store_some(y + c, v_fma(load_some(x + c, tail), exp_between(to + c, from + c, tail), start),
                   tail);
    }
}

/* VL rows at a time, one to a lane. */
static LOCUS_ROW_DOTS(row_dots)
{
    int64_t i = 0;
    for (; i + VL <= rows; i += VL) {
        vf sum = v_set1(0.0f);
        int64_t c = 0;
        for (; c + VL <= width; c += VL) {
            vf x[VL], y_block[VL];
            for (int r = 0; r < VL; r++) {
                x[r] = v_load(X + (i + r) * x_stride + c);
                y_block[r] = v_load(Y + (i + r) * y_stride + c);
            }
            v_transpose(x);
            v_transpose(y_block);
            for (int k = 0; k < VL; k++) sum = v_fma(x[k], y_block[k], sum);
        }
        for (; c < width; c++) {
            float x[VL], y_column[VL];
            for (int r = 0; r < VL; r++) {
                x[r] = X[(i + r) * x_stride + c];
                y_column[r] = Y[(i + r) * y_stride + c];
            }
            sum = v_fma(v_load(x), v_load(y_column), sum);
        }
        v_store(y + i, sum);
    }
    for (; i < rows; i++)
        gemm(y + i, 1, X + i * x_stride, width, 1, Y + i * y_stride, 1, 1, width, 1, 0);
}

/* 0 times a row sums to 0, unless a NaN or an infinity makes it NaN. */
LOCUS_INLINE vf zero_times(const void *row, int64_t width, vf sum, const locus_dtype type)
{
    const vf zero = v_set1(0.0f);
    for (int64_t c = 0; c < width; c += VL) {
        const int64_t tail = width - c < VL ? width - c : 0;
        sum = v_fma(load_numbers(number_at(row, c, type), tail, type), zero, sum);
    }
    return sum;
}

/* All rows at once first: almost always that is all. */
LOCUS_INLINE int find_bad_rows(uint8_t *bad, const void *rows, int64_t row_stride, int64_t count,
                               int64_t width, const locus_dtype type)
{
    const vf zero = v_set1(0.0f);
    vf sum[4] = {zero, zero, zero, zero};
    int64_t r = 0;
#define ROW(r) number_at(rows, (r)*row_stride, type)
    for (; r + 4 <= count; r += 4)
        for (int i = 0; i < 4; i++) sum[i] = zero_times(ROW(r + i), width, sum[i], type);
    for (; r < count; r++) sum[0] = zero_times(ROW(r), width, sum[0], type);
    if (v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]))) == 0.0f) return 0;
    for (r = 0; r < count; r++)
        bad[r] = (uint8_t)(v_sum(zero_times(ROW(r), width, zero, type)) != 0.0f);
#undef ROW
    return 1;
}

static LOCUS_BAD_ROWS(bad_rows)
{
    if (count <= 0) return 0;
    memset(bad, 0, (size_t)count);
#define FIND(type) find_bad_rows(bad, rows, row_stride, count, width, type)
    return type == LOCUS_F32   ? FIND(LOCUS_F32)
           : type == LOCUS_F16 ? FIND(LOCUS_F16)
                               : FIND(LOCUS_BF16);
#undef FIND
}

LOCUS_INLINE void turn_pair(float *to_x, float *to_y, float x, float y, float cosine, float sine)
{
    *to_x = x * cosine - y * sine + 0.0f;
    *to_y = y * cosine + x * sine + 0.0f;
}

LOCUS_INLINE void turn_vectors(float *to, const float *row, const float *turn, int64_t pairs,
                               vf sign)
{
    const vf x = v_load(row), y = v_load(row + pairs), cosine = v_load(turn);
    const vf zero = v_set1(0.0f);
    const vf sine = v_mul(v_load(turn + pairs), sign);
    v_store(to, v_add(v_sub(v_mul(x, cosine), v_mul(y, sine)), zero));
    v_store(to + pairs, v_add(v_add(v_mul(y, cosine), v_mul(x, sine)), zero));
}

LOCUS_INLINE void turn_halves(float *to, const float *row, const float *turn, int64_t pairs,
                              float direction)
{
    const vf sign = v_set1(direction);
    int64_t t = 0;
    for (; t + 2 * VL <= pairs; t += 2 * VL) {
        turn_vectors(to + t, row + t, turn + t, pairs, sign);
        turn_vectors(to + t + VL, row + t + VL, turn + t + VL, pairs, sign);
    }
    for (; t + VL <= pairs; t += VL) turn_vectors(to + t, row + t, turn + t, pairs, sign);
    for (; t < pairs; t++)
        turn_pair(to + t, to + pairs + t, row[t], row[pairs + t], turn[t],
                  turn[pairs + t] * direction);
}

/* Neighbours trade places: x cos + (the other one) (-sin, +sin). */
LOCUS_INLINE void turn_neighbours(float *to, const float *row, const float *turn, int64_t pairs,
                                  float direction)
{
    const vf sign = alternating(direction), zero = v_set1(0.0f);
    int64_t t = 0;
    for (; t + VL / 2 <= pairs; t += VL / 2) {
        const vf x = v_load(row + 2 * t), sine = v_mul(v_twice(turn + pairs + t), sign);
        const vf turned = v_add(v_mul(x, v_twice(turn + t)), v_mul(v_swap_pairs(x), sine));
        v_store(to + 2 * t, v_add(turned, zero));
    }
    for (; t < pairs; t++)
        turn_pair(to + 2 * t, to + 2 * t + 1, row[2 * t], row[2 * t + 1], turn[t],
                  turn[pairs + t] * direction);
}

LOCUS_INLINE void turn_all(float *to, int64_t to_stride, const float *rows, int64_t row_stride,
                           const float *turn, int64_t pairs, int64_t count, float direction,
                           int64_t width, fetch *next, const int interleaved)
{
    for (int64_t r = 0; r < count; r++) {
        fetch_some(next);
        float *at = to + r * to_stride;
        const float *row = rows + r * row_stride, *by = turn + r * 2 * pairs;
        if (interleaved)
            turn_neighbours(at, row, by, pairs, direction);
        else
            turn_halves(at, row, by, pairs, direction);
        for (int64_t c = 2 * pairs; c < width; c++) at[c] = row[c] + 0.0f;
    }
}

/* The compiler knows the pairs of heads of 4 vectors: see dots.inc.c. */
static LOCUS_TURN(turn_rows)
{
    fetch f = fetch_begin(prefetch, count);
#define TURN(pairs, interleaved)                                                                   \
    turn_all(to, to_stride, rows, row_stride, turn, pairs, count, direction, width, &f, interleaved)
    if (interleaved && pairs == 2 * VL)
        TURN(2 * VL, 1);
    else if (interleaved)
        TURN(pairs, 1);
    else if (pairs == 2 * VL)
        TURN(2 * VL, 0);
    else
        TURN(pairs, 0);
#undef TURN
}

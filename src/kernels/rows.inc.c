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

static LOCUS_SCALE(scale)
{
    const vf f = v_set1(factor);
    int64_t c = 0;
    for (; c + VL <= columns; c += VL) v_store(y + c, v_mul(v_load(x + c), f));
    for (; c < columns; c++) y[c] = x[c] * factor;
}

static LOCUS_LOAD_ROWS(load_rows)
{
    const vf times = v_set1(factor);
    for (int64_t r = 0; r < count; r++, rows += row_stride, to += to_row) {
        int64_t c = 0;
        for (; c + VL <= width; c += VL) {
            const vf x = v_load(rows + c);
            v_store(to + c, v_mul(shift != NULL ? v_add(x, v_load(shift + c)) : x, times));
        }
        for (; c < width; c++) to[c] = (shift != NULL ? rows[c] + shift[c] : rows[c]) * factor;
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
                x[r] = v_load(X + (i + r) * x_row + c);
                y_block[r] = v_load(Y + (i + r) * y_row + c);
            }
            v_transpose(x);
            v_transpose(y_block);
            for (int k = 0; k < VL; k++) sum = v_fma(x[k], y_block[k], sum);
        }
        for (; c < width; c++) {
            float x[VL], y_column[VL];
            for (int r = 0; r < VL; r++) {
                x[r] = X[(i + r) * x_row + c];
                y_column[r] = Y[(i + r) * y_row + c];
            }
            sum = v_fma(v_load(x), v_load(y_column), sum);
        }
        v_store(y + i, sum);
    }
    for (; i < rows; i++) gemm(y + i, 1, X + i * x_row, width, 1, Y + i * y_row, 1, 1, width, 1, 0);
}

/* 0 times a row sums to 0, unless a NaN or an infinity makes it NaN. */
LOCUS_INLINE vf zero_times(const float *row, int64_t width, vf sum)
{
    const vf zero = v_set1(0.0f);
    int64_t c = 0;
    for (; c + VL <= width; c += VL) sum = v_fma(v_load(row + c), zero, sum);
    if (c < width) sum = v_fma(v_loadn(row + c, width - c), zero, sum);
    return sum;
}

/* All rows at once first: almost always that is all. */
static LOCUS_BAD_ROWS(bad_rows)
{
    const vf zero = v_set1(0.0f);
    vf sum[4] = {zero, zero, zero, zero};
    int64_t r = 0;
    for (; r + 4 <= count; r += 4)
        for (int i = 0; i < 4; i++) sum[i] = zero_times(rows + (r + i) * row_stride, width, sum[i]);
    for (; r < count; r++) sum[0] = zero_times(rows + r * row_stride, width, sum[0]);
    memset(bad, 0, (size_t)count);
    if (v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]))) == 0.0f) return 0;
    for (r = 0; r < count; r++)
        bad[r] = (uint8_t)(v_sum(zero_times(rows + r * row_stride, width, zero)) != 0.0f);
    return 1;
}

LOCUS_INLINE void turn_pair(float *to_x, float *to_y, float x, float y, float cosine, float sine)
{
    *to_x = x * cosine - y * sine;
    *to_y = y * cosine + x * sine;
}

LOCUS_INLINE void turn_halves(float *to, const float *row, const float *turn, int64_t pairs,
                              float direction)
{
    const vf sign = v_set1(direction);
    int64_t t = 0;
    for (; t + VL <= pairs; t += VL) {
        const vf x = v_load(row + t), y = v_load(row + pairs + t), cosine = v_load(turn + t);
        const vf sine = v_mul(v_load(turn + pairs + t), sign);
        v_store(to + t, v_sub(v_mul(x, cosine), v_mul(y, sine)));
        v_store(to + pairs + t, v_add(v_mul(y, cosine), v_mul(x, sine)));
    }
    for (; t < pairs; t++)
        turn_pair(to + t, to + pairs + t, row[t], row[pairs + t], turn[t],
                  turn[pairs + t] * direction);
}

/* Neighbours trade places: x cos + (the other one) (-sin, +sin). */
LOCUS_INLINE void turn_neighbours(float *to, const float *row, const float *turn, int64_t pairs,
                                  float direction)
{
    float alternating[VL];
    for (int k = 0; k < VL; k++) alternating[k] = k % 2 == 0 ? -direction : direction;
    const vf sign = v_load(alternating);
    int64_t t = 0;
    for (; t + VL / 2 <= pairs; t += VL / 2) {
        const vf x = v_load(row + 2 * t), sine = v_mul(v_twice(turn + pairs + t), sign);
        v_store(to + 2 * t, v_add(v_mul(x, v_twice(turn + t)), v_mul(v_swap_pairs(x), sine)));
    }
    for (; t < pairs; t++)
        turn_pair(to + 2 * t, to + 2 * t + 1, row[2 * t], row[2 * t + 1], turn[t],
                  turn[pairs + t] * direction);
}

static LOCUS_TURN(turn)
{
    for (int64_t r = 0; r < count; r++) {
        fetch_share(&next, r, count);
        if (interleaved)
            turn_neighbours(to, rows, turn, pairs, direction);
        else
            turn_halves(to, rows, turn, pairs, direction);
        to += to_row;
        rows += row_stride;
        turn += 2 * pairs;
    }
}

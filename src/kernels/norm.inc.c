/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm and RMSNorm of rows, there and back. A row stays in the first cache between its passes;
 * sums run over NORM_CHAINS times LOCUS_LANES columns side by side, then over the columns behind the
 * last whole LOCUS_LANES of them. */

enum { NORM_CHAINS = 4 };

LOCUS_INLINE float chains_sum(const lane_sums sum[NORM_CHAINS])
{
    return lanes_sum(lanes_add(lanes_add(sum[0], sum[1]), lanes_add(sum[2], sum[3])));
}

LOCUS_INLINE lane_sums add_columns(lane_sums sum, const float *x, vf middle, const int squares)
{
    LOCUS_UNROLL
    for (int p = 0; p < PARTS; p++) {
        const vf a = v_load(x + p * VL), d = squares ? v_sub(a, middle) : a;
        sum.part[p] = squares ? v_fma(d, d, sum.part[p]) : v_add(sum.part[p], d);
    }
    return sum;
}

/* The sum of x[c], or of (x[c] - mean)^2. */
LOCUS_INLINE float row_total(const float *x, float mean, int64_t width, const int squares)
{
    LOCUS_UNINITIALIZED lane_sums sum[NORM_CHAINS];
    const vf middle = v_set1(mean);
    float rest = 0.0f;
    int64_t c = 0;
    LOCUS_UNROLL
    for (int k = 0; k < NORM_CHAINS; k++) sum[k] = lanes_zero();
    for (; c + NORM_CHAINS * LOCUS_LANES <= width; c += NORM_CHAINS * LOCUS_LANES) {
        LOCUS_UNROLL
        for (int k = 0; k < NORM_CHAINS; k++)
            sum[k] = add_columns(sum[k], x + c + k * LOCUS_LANES, middle, squares);
    }
    for (; c + LOCUS_LANES <= width; c += LOCUS_LANES)
        sum[0] = add_columns(sum[0], x + c, middle, squares);
    for (; c < width; c++) {
        const float d = x[c] - mean;
        rest += squares ? d * d : x[c];
    }
    return chains_sum(sum) + rest;
}

typedef struct row_norm {
    float mean, factor;
    float spread; /* sqrt(v) */
} row_norm;

static inline row_norm norm_of(const locus_norm_rule *rule, const float *x)
{
    const float width = (float)rule->width;
    row_norm n = {0.0f, 0.0f, 0.0f};
    if (rule->centred) n.mean = row_total(x, 0.0f, rule->width, 0) / width;
    const float v = row_total(x, n.mean, rule->width, 1) / width;
    n.spread = sqrtf(v);
    n.factor = 1.0f / (rule->epsilon_outside ? n.spread + rule->epsilon : sqrtf(v + rule->epsilon));
    return n;
}

static LOCUS_NORM_ROWS(norm_rows)
{
    for (int64_t i = 0; i < rows; i++, x += x_row, y += y_row) {
        const row_norm n = norm_of(rule, x);
        const vf mean = v_set1(n.mean), factor = v_set1(n.factor);
        for (int64_t c = 0; c < rule->width; c += VL) {
            const int64_t tail = rule->width - c < VL ? rule->width - c : 0;
            vf a = v_mul(v_sub(load_some(x + c, tail), mean), factor);
            if (rule->gain != NULL) a = v_mul(a, load_some(rule->gain + c, tail));
            if (rule->shift != NULL) a = v_add(a, load_some(rule->shift + c, tail));
            store_some(y + c, a, tail);
        }
    }
}

/* g = dy gain. */
LOCUS_INLINE vf norm_back(const locus_norm_rule *rule, const float *dy, int64_t c, int64_t tail)
{
    const vf back = load_some(dy + c, tail);
    return rule->gain != NULL ? v_mul(back, load_some(rule->gain + c, tail)) : back;
}

/* The sums of g and of g n. Lanes behind the last column have g = 0; n is finite there unless the
 * row is not. */
LOCUS_INLINE void norm_back_sums(const locus_norm_rule *rule, const float *dy, const float *x,
                                 const row_norm *n, float *sum, float *dot)
{
    const vf mean = v_set1(n->mean), factor = v_set1(n->factor);
    lane_sums s[2] = {lanes_zero(), lanes_zero()}, d[2] = {lanes_zero(), lanes_zero()};
    for (int64_t c = 0; c < rule->width; c += 2 * LOCUS_LANES) {
        LOCUS_UNROLL
        for (int k = 0; k < 2 * PARTS; k++) {
            const int64_t at = c + k * VL, tail = part_tail(rule->width - c, k);
            if (tail < 0) continue;
            const vf g = norm_back(rule, dy, at, tail);
            const vf normal = v_mul(v_sub(load_some(x + at, tail), mean), factor);
            vf *s_part = &s[k / PARTS].part[k % PARTS], *d_part = &d[k / PARTS].part[k % PARTS];
            *s_part = v_add(*s_part, g);
            *d_part = v_fma(g, normal, *d_part);
        }
    }
    *sum = lanes_sum(lanes_add(s[0], s[1]));
    *dot = lanes_sum(lanes_add(d[0], d[1]));
}

static inline void norm_row_grad(const locus_norm_rule *rule, float *dx, int add, const float *dy,
                                 const float *x, const row_norm *n)
{
    float sum, dot;
    norm_back_sums(rule, dy, x, n, &sum, &dot);
    const float width = (float)rule->width;
    float share = 1.0f;
    if (rule->epsilon_outside)
        share = n->spread == 0.0f ? 0.0f : (n->spread + rule->epsilon) / n->spread;
    const vf mean = v_set1(n->mean), factor = v_set1(n->factor);
    const vf middle = v_set1(rule->centred ? sum / width : 0.0f);
    const vf slope = v_set1(-dot / width * share);
    for (int64_t c = 0; c < rule->width; c += VL) {
        const int64_t tail = rule->width - c < VL ? rule->width - c : 0;
        const vf normal = v_mul(v_sub(load_some(x + c, tail), mean), factor);
        const vf g = v_sub(norm_back(rule, dy, c, tail), middle);
        vf back = v_mul(factor, v_fma(normal, slope, g));
        if (add) back = v_add(load_some(dx + c, tail), back);
        store_some(dx + c, back, tail);
    }
}

static LOCUS_NORM_GRAD(norm_grad)
{
    for (int64_t i = 0; i < rows; i++) {
        const row_norm n = norm_of(rule, x + i * x_row);
        statistics[i][0] = n.mean;
        statistics[i][1] = n.factor;
        if (dx != NULL)
            norm_row_grad(rule, dx + i * dx_row, add, dy + i * dy_row, x + i * x_row, &n);
    }
}

static LOCUS_NORM_PARAMETER_GRAD(norm_parameter_grad)
{
    for (int64_t c = 0; c < columns; c += VL) {
        const int64_t tail = columns - c < VL ? columns - c : 0;
        vf gain = v_set1(0.0f), shift = v_set1(0.0f);
        for (int64_t i = 0; i < rows; i++) {
            const vf back = load_some(dy + i * dy_row + c, tail);
            const vf d = v_sub(load_some(x + i * x_row + c, tail), v_set1(statistics[i][0]));
            gain = v_fma(back, v_mul(d, v_set1(statistics[i][1])), gain);
            shift = v_add(shift, back);
        }
        if (dgain != NULL) store_some(dgain + c, v_add(load_some(dgain + c, tail), gain), tail);
        if (dshift != NULL) store_some(dshift + c, v_add(load_some(dshift + c, tail), shift), tail);
    }
}

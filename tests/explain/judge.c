/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/judge.h"

#include <math.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/tensor.h"
#include "support/check.h"
#include "support/compare.h"

/* Odd on purpose: blocks end inside rows, columns and tables. */
enum { ROWS = 5, KEYS = 37, TERMS = 16 };

typedef struct judge {
    uint32_t level;
    const locus_config *config;
    const locus_tensors *in;
    locus_explainer *explainer;
    locus_explainer_info info;
    int64_t width;  /* Dv                                          */
    double *values; /* [B][heads of v][keys][Dv]                   */
    int64_t value_heads;
    double *lse;   /* [B][H][queries]                             */
    double *mixed; /* [B][queries][H][Dv]                         */
} judge;

static double *room(int64_t count)
{
    double *numbers = calloc((size_t)count + 1, sizeof *numbers);
    if (numbers == NULL) abort();
    return numbers;
}

/* ---- values, made here and not asked of the library ---- */

/* sum_e row[e] weight[out][e] + bias[out] */
static double project(const double *row, const locus_tensor *weight, const locus_tensor *bias,
                      int64_t out)
{
    double sum = locus_present(bias) ? locus_get(bias, out, 0, 0, 0) : 0.0;
    for (int64_t e = 0; e < weight->shape[1]; e++) sum += row[e] * locus_get(weight, out, e, 0, 0);
    return sum;
}

/* Row n of memory and x, with its position where the scheme adds one. */
static void input_row(const judge *j, int64_t b, int64_t n, double *row)
{
    const locus_tensor *x = &j->in->x, *memory = &j->in->memory;
    const int64_t E = x->shape[2], M = locus_present(memory) ? memory->shape[1] : 0;
    const char scheme = j->config->scheme[0] == 's' && j->config->scheme[1] == 'i'   ? 's'
                        : j->config->scheme[0] == 'l' && j->config->scheme[1] == 'e' ? 'l'
                                                                                     : '-';
    double *p = room(E);
    if (scheme == 's')
        locus_sinusoid(j->config->options.table, E, j->config->options.first_position + n, p);
    for (int64_t e = 0; e < E; e++) {
        if (scheme == 'l') p[e] = locus_get(&j->in->pos, n, e, 0, 0);
        const double factor = scheme == 's' ? j->config->options.x_scale : 1.0;
        row[e] =
            n < M ? locus_get(memory, b, n, e, 0) : factor * locus_get(x, b, n - M, e, 0) + p[e];
    }
    free(p);
}

static void make_values(judge *j)
{
    const int layer = j->level == LOCUS_LAYER;
    const locus_tensor *w_v = &j->in->w_v;
    const int64_t B = j->info.batch, keys = j->info.keys;
    j->value_heads = layer ? j->info.heads : j->in->v.shape[1];
    j->width = layer ? j->info.head_dim : j->in->v.shape[3];
    j->values = room(B * j->value_heads * keys * j->width);
    double *row = room(layer ? w_v->shape[1] : 1), *next = j->values;
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < j->value_heads; h++)
            for (int64_t n = 0; n < keys; n++) {
                if (layer) input_row(j, b, n, row);
                for (int64_t d = 0; d < j->width; d++)
                    *next++ = layer ? project(row, w_v, &j->in->b_v, h * j->width + d)
                                    : locus_get(&j->in->v, b, h, n, d);
            }
    free(row);
}

/* Shaw's row for values: clip(n - m, -left, right) + left. */
static double value_position(const judge *j, int64_t m, int64_t n, int64_t d)
{
    int64_t row = -1;
    if (!locus_present(&j->in->rel_v)) return 0.0;
    CHECK(locus_call_rows(j->level, j->config, j->in, m - n, 1, &row, NULL, NULL) == LOCUS_OK &&
              row >= 0,
          "no row for distance %d", (int)(m - n));
    return locus_get(&j->in->rel_v, row, d, 0, 0);
}

static void add_value(judge *j, const locus_explain_block *at, int64_t i, int64_t n, double weight)
{
    const locus_config *c = j->config;
    if (c->dropout > 0.0) {
        if (!locus_dropout_keeps(c->dropout_seed, locus_dropout_threshold(c->dropout),
                                 (uint32_t)at->batch, (uint32_t)at->head, (uint32_t)i, (uint32_t)n))
            return;
        weight /= 1.0 - c->dropout;
    }
    const int64_t head = at->head / (j->info.heads / j->value_heads);
    const double *v =
        j->values + ((at->batch * j->value_heads + head) * j->info.keys + n) * j->width;
    double *to =
        j->mixed + ((at->batch * j->info.queries + i) * j->info.heads + at->head) * j->width;
    for (int64_t d = 0; d < j->width; d++)
        to[d] += weight * (v[d] + value_position(j, j->info.query_offset + i, n, d));
}

/* ---- one block ---- */

/* What is kept of a row between its blocks. */
typedef struct row_sum {
    double largest, sum, weights;
} row_sum;

static void judge_pair(const judge *j, const double *terms, int64_t stride, double score,
                       int visible)
{
    double sum = 0.0, largest = 0.0;
    for (size_t t = 0; t < j->info.terms; t++) {
        sum += terms[(int64_t)t * stride];
        largest = fmax(largest, fabs(terms[(int64_t)t * stride]));
    }
    if (visible)
        CHECK(fabs(sum - score) <= 1e-12 * largest || sum == score || (isnan(sum) && isnan(score)),
              "terms add up to %.17g, the score is %.17g", sum, score);
    else
        CHECK(sum == 0.0 && largest == 0.0 && score == -INFINITY, "hidden pair: terms %g, score %g",
              sum, score);
}

static void judge_block(judge *j, const locus_explain_block *block, const double *lse,
                        row_sum *rows)
{
    static double terms[TERMS * ROWS * KEYS], score[ROWS * KEYS], weight[ROWS * KEYS];
    static uint8_t visible[ROWS * KEYS];
    const locus_explained into = {.size = sizeof into,
                                  .terms = terms,
                                  .score = score,
                                  .visible = visible,
                                  .lse = lse,
                                  .weight = weight};
    locus_error error = {""};
    if (!CHECK(locus_explain(j->explainer, block, &into, &error) == LOCUS_OK, "%s", error.text))
        return;
    for (int64_t r = 0; r < block->queries; r++)
        for (int64_t c = 0; c < block->keys; c++) {
            const int64_t at = r * block->keys + c;
            judge_pair(j, terms + at, block->queries * block->keys, score[at], visible[at]);
            if (!visible[at]) continue;
            const double largest = fmax(rows[r].largest, score[at]);
            if (largest > -INFINITY)
                rows[r].sum =
                    rows[r].sum * exp(rows[r].largest - largest) + exp(score[at] - largest);
            rows[r].largest = largest;
            rows[r].weights += weight[at];
            if (weight[at] != 0.0)
                add_value(j, block, block->query + r, block->key + c, weight[at]);
        }
}

static void judge_rows(judge *j, locus_explain_block block)
{
    double *lse =
        j->lse + (block.batch * j->info.heads + block.head) * j->info.queries + block.query;
    row_sum rows[ROWS];
    locus_error error = {""};
    const locus_tensor *sink = &j->in->sink;
    const double extra = locus_present(sink) ? locus_get(sink, block.head, 0, 0, 0) : -INFINITY;
    for (int r = 0; r < ROWS; r++)
        rows[r] = (row_sum){extra, extra > -INFINITY ? 1.0 : 0.0, 0.0}; /* it has no value */
    if (!CHECK(locus_explain_lse(j->explainer, &block, lse, &error) == LOCUS_OK, "%s", error.text))
        return;
    for (block.key = 0; block.key < j->info.keys; block.key += KEYS) {
        const int64_t left = j->info.keys - block.key;
        block.keys = left < KEYS ? left : KEYS;
        judge_block(j, &block, lse, rows);
    }
    for (int64_t r = 0; r < block.queries; r++) {
        const double own = rows[r].sum == 0.0 ? -INFINITY : rows[r].largest + log(rows[r].sum);
        CHECK(own == lse[r] || fabs(own - lse[r]) <= 1e-12 * fmax(1.0, fabs(own)),
              "row %d: the scores give lse %.17g, found %.17g", (int)(block.query + r), own,
              lse[r]);
        const double keys = 1.0 - exp(extra - own);
        CHECK(own == -INFINITY ? rows[r].weights == 0.0 : fabs(rows[r].weights - keys) < 1e-9,
              "row %d: weights add up to %.17g", (int)(block.query + r), rows[r].weights);
    }
}

/* ---- the whole call ---- */

/* out = Wo mixed + bo, or mixed as it is, compared element by element. */
static comparison judge_out(const judge *j, const locus_tensor *want)
{
    const int layer = j->level == LOCUS_LAYER;
    const int64_t H = j->info.heads, T = j->info.queries, HD = H * j->width;
    const int64_t width = layer ? want->shape[2] : j->width;
    double scale = 1.0;
    for (int pass = 0;; pass++) { /* the first one finds the scale */
        comparison c = comparison_start(scale);
        for (int64_t b = 0; b < j->info.batch; b++)
            for (int64_t i = 0; i < T; i++)
                for (int64_t o = 0; o < (layer ? width : HD); o++) {
                    const double *row = j->mixed + (b * T + i) * HD;
                    const double wanted = layer ? locus_get(want, b, i, o, 0)
                                                : locus_get(want, b, o / j->width, i, o % j->width);
                    if (isfinite(wanted)) scale = fmax(scale, fabs(wanted));
                    if (pass == 0) continue;
                    const int projected = layer && locus_present(&j->in->w_o);
                    comparison_add(&c,
                                   projected ? project(row, &j->in->w_o, &j->in->b_o, o) : row[o],
                                   wanted);
                }
        if (pass > 0) return c;
    }
}

static void judge_results(const judge *j, const locus_results *results, double lse_tolerance,
                          double out_tolerance)
{
    const int64_t shape[] = {j->info.batch, j->info.heads, j->info.queries};
    const locus_tensor lse = locus_view(j->lse, LOCUS_F64, 3, shape);
    const size_t count = (size_t)locus_tensor_elements(&results->out);
    char text[256] = "";
    comparison c = compare_tensors(&lse, &results->lse);
    const size_t rows = (size_t)locus_tensor_elements(&lse);
    CHECK(rows == 0 || comparison_passes(&c, rows, lse_tolerance, text, sizeof text), "lse: %s",
          text);
    c = judge_out(j, &results->out);
    CHECK(count == 0 || comparison_passes(&c, count, out_tolerance, text, sizeof text), "out: %s",
          text);
}

void judge_call(uint32_t level, const locus_config *config, const locus_tensors *in,
                const locus_results *results, double lse_tolerance, double out_tolerance)
{
    judge j = {.level = level, .config = config, .in = in};
    locus_error error = {""};
    if (!CHECK(locus_explainer_new(&j.explainer, level, config, in, &error) == LOCUS_OK, "%s",
               error.text))
        return;
    j.info.size = sizeof j.info;
    locus_explainer_describe(j.explainer, &j.info);
    make_values(&j);
    j.lse = room(j.info.batch * j.info.heads * j.info.queries);
    j.mixed = room(j.info.batch * j.info.queries * j.info.heads * j.width);
    locus_explain_block block = {.size = sizeof block};
    for (block.batch = 0; block.batch < j.info.batch; block.batch++)
        for (block.head = 0; block.head < j.info.heads; block.head++)
            for (block.query = 0; block.query < j.info.queries; block.query += ROWS) {
                const int64_t left = j.info.queries - block.query;
                block.queries = left < ROWS ? left : ROWS;
                judge_rows(&j, block);
            }
    judge_results(&j, results, lse_tolerance, out_tolerance);
    free(j.values);
    free(j.lse);
    free(j.mixed);
    locus_explainer_free(j.explainer);
}

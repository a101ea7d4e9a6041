/* SPDX-License-Identifier: Apache-2.0 */
#include "support/naive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long double real;

/* One pair: batch entry, head, query row, key row; position of the query. */
typedef struct pair {
    int64_t b, h, i, n, m;
    real count; /* of counted positions: gates from the query down to the key */
} pair;

static int is(const test_problem *p, const char *scheme)
{
    return strcmp(p->spec.scheme, scheme) == 0;
}

/* Row [a][b][c] of a dense F64 tensor, whose axes of extent 1 are shared. */
static const double *row_at(const locus_tensor *t, int64_t a, int64_t b, int64_t c)
{
    const int64_t index[] = {a, b, c};
    int64_t at = 0;
    for (uint32_t i = 0; i + 1 < t->rank; i++)
        at = at * t->shape[i] + (t->shape[i] == 1 ? 0 : index[i]);
    return (const double *)t->data + at * t->shape[t->rank - 1];
}

static real dot(const double *x, const double *y, int64_t count)
{
    real sum = 0;
    for (int64_t d = 0; d < count; d++) sum += (real)x[d] * (real)y[d];
    return sum;
}

/* ---- which row serves a distance ---- */

/* A tie of logarithms is a whole number but for rounding. */
static const real tie = 1e-13L;

int64_t test_naive_t5(int64_t rho, int64_t buckets, int64_t max_distance, int both)
{
    const int64_t side = both ? buckets / 2 : buckets, single = side / 2;
    const int64_t base = both && rho > 0 ? side : 0;
    const int64_t x = rho < 0 ? -rho : both ? rho : 0;
    if (x < single) return base + x;
    const real steps = logl((real)x / (real)single) / logl((real)max_distance / (real)single) *
                       (real)(side - single);
    const int64_t bucket = single + (int64_t)floorl(steps + tie);
    return base + (bucket < side ? bucket : side - 1);
}

int64_t test_naive_deberta(int64_t delta, int64_t buckets, int64_t max_distance)
{
    const int64_t mid = buckets / 2, x = delta < 0 ? -delta : delta;
    if (buckets == 0 || x <= mid) return delta;
    const real steps =
        logl((real)x / (real)mid) / logl((real)(max_distance - 1) / (real)mid) * (real)(mid - 1);
    const int64_t beta = mid + (int64_t)ceill(steps - tie);
    return delta < 0 ? -beta : beta;
}

static int64_t clip(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static int64_t table_row(const test_problem *p, int64_t delta)
{
    const locus_options *o = &p->config.options;
    if (is(p, "shaw")) return clip(-delta, -o->clip_left, o->clip_right) + o->clip_left;
    if (is(p, "transformer_xl"))
        return (o->clamp == 0 ? delta : clip(delta, -o->clamp, o->clamp)) - o->delta_min;
    if (is(p, "table")) return ((const int64_t *)p->in[0].rows.data)[delta - o->delta_min];
    if (is(p, "inkling")) return delta; /* rows before the first and behind the last add nothing */
    if (is(p, "deberta"))
        return clip(test_naive_deberta(delta, o->buckets, o->max_distance) + o->span, 0,
                    2 * o->span - 1);
    return delta + (p->in[0].rel_k.shape[0] - 1) / 2;
}

/* Row `row` of a table [R,D] or [H,R,D]. */
static const double *table_at(const locus_tensor *t, int64_t head, int64_t row)
{
    return t->rank == 2 ? row_at(t, row, 0, 0) : row_at(t, head, row, 0);
}

/* ---- positions that the call brings ---- */

/* How far query and key are apart on an axis; with one set of positions, the other side has those
 * of its rows. */
static int64_t place(const locus_tensor *t, int64_t b, int64_t row, int axis, uint32_t axes,
                     int64_t own)
{
    const uint32_t batched = axes + 1;
    if (t->rank == 0) return own;
    const int64_t entry = t->rank == batched && t->shape[0] > 1 ? b : 0;
    const int64_t rows = t->shape[t->rank == batched ? 1 : 0];
    return ((const int64_t *)t->data)[(entry * rows + row) * axes + axis];
}

static int64_t apart(const test_problem *p, const pair *at, int axis)
{
    const locus_tensors *in = &p->in[0];
    const uint32_t axes = is(p, "sam") || is(p, "swin") ? 2 : 1;
    if (is(p, "rope") || is(p, "xpos")) return at->m - at->n;
    return place(&in->q_positions, at->b, at->i, axis, axes, at->m) -
           place(&in->k_positions, at->b, at->n, axis, axes, at->n);
}

static const locus_tensor *tensor_of(const test_problem *p, const char *name)
{
    return locus_tensor_named((locus_tensors *)&p->in[0], name);
}

/* The middle row of a table of one axis is that of distance 0. */
static const double *grid_row(const test_problem *p, const char *name, const pair *at, int axis)
{
    const locus_tensor *t = tensor_of(p, name);
    return table_at(t, at->h, apart(p, at, axis) + (t->shape[t->rank - 2] - 1) / 2);
}

static real swin_bias(const test_problem *p, const pair *at)
{
    const locus_tensor *bias = &p->in[0].bias, *cls = &p->in[0].cls;
    const int first_row = at->m == 0, first_key = at->n == 0;
    if (cls->rank != 0 && (first_row || first_key))
        return (real)row_at(cls, first_row && first_key ? 2 : first_row ? 0 : 1, 0, 0)[at->h];
    return (real)row_at(bias, apart(p, at, 0) + (bias->shape[0] - 1) / 2,
                        apart(p, at, 1) + (bias->shape[1] - 1) / 2, 0)[at->h];
}

/* ---- terms ---- */

static real scale_of(const test_problem *p)
{
    const real D = (real)p->spec.D;
    if (p->config.scale != LOCUS_UNSET_REAL) return (real)p->config.scale;
    if (p->spec.D == 0 || is(p, "t5")) return 1;
    if (is(p, "tupe")) return 1 / sqrtl(2 * D);
    if (is(p, "deberta"))
        return 1 / sqrtl(D * (1 + (p->in[0].rel_k.rank != 0) + (p->in[0].rel_q.rank != 0)));
    return 1 / sqrtl(D);
}

/* q and k turned by their positions: only the distance is left, and the decay of xpos. */
static real turned_product(const test_problem *p, const double *q, const double *k, int64_t delta)
{
    const locus_options *o = &p->config.options;
    const int decays = is(p, "xpos");
    const int64_t width = decays || o->width == 0 ? p->spec.D : o->width, half = width / 2;
    const real speed = decays ? 1 : (real)o->theta_scale;
    real sum = dot(q + width, k + width, p->spec.D - width);
    for (int64_t t = 0; t < half; t++) {
        const int side_by_side = decays || o->pairing == LOCUS_PAIRING_INTERLEAVED;
        const int64_t x = side_by_side ? 2 * t : t, y = side_by_side ? 2 * t + 1 : t + half;
        const real angle = (real)delta * speed * powl((real)o->base, -2 * (real)t / (real)width);
        const real zeta = (2 * (real)t + 0.4L * (real)width) / (1.4L * (real)width);
        const real gain = decays ? powl(zeta, (real)delta / (real)o->scale_base) : 1;
        const real along = (real)q[x] * (real)k[x] + (real)q[y] * (real)k[y];
        const real across = (real)q[x] * (real)k[y] - (real)q[y] * (real)k[x];
        sum += gain * (along * cosl(angle) + across * sinl(angle));
    }
    return sum;
}

/* Every channel decays from the key to the query. */
static real decayed_product(const test_problem *p, const pair *at, const double *q, const double *k)
{
    const locus_tensor *decays = locus_tensor_named((locus_tensors *)&p->in[0], "log_decay");
    real sum = 0;
    for (int64_t d = 0; d < p->spec.D; d++) {
        real exponent = 0;
        for (int64_t t = at->n + 1; t <= at->m; t++)
            exponent += (real)row_at(decays, at->b, at->h, t)[d];
        sum += (real)q[d] * (real)k[d] * expl(exponent);
    }
    return sum;
}

static real published_slope(int64_t head, int64_t heads)
{
    int64_t power = 1;
    while (2 * power <= heads) power *= 2;
    const real step =
        head < power ? (real)(head + 1) / (real)power : ((real)(head - power) + 0.5L) / (real)power;
    return powl(2, -8 * step);
}

static real number(const test_problem *p, const char *name, int64_t at)
{
    return (real)((const double *)locus_tensor_named((locus_tensors *)&p->in[0], name)->data)[at];
}

/* FIRE: the distance over the distance to the threshold or to the first token, through a layer. */
static real fire_of(const test_problem *p, int64_t head, int64_t m, int64_t delta)
{
    const real c = number(p, "c", 0), threshold = fabsl(number(p, "threshold", 0));
    const real reach = (real)m > threshold ? (real)m : threshold;
    const real z = log1pl(fabsl(c * (real)delta)) / (log1pl(fabsl(c * reach)) + 1e-6L);
    const int64_t features = locus_tensor_named((locus_tensors *)&p->in[0], "w_1")->shape[0];
    real sum = number(p, "b_2", head);
    for (int64_t f = 0; f < features; f++) {
        const real x = number(p, "w_1", f) * z + number(p, "b_1", f);
        if (!(x <= 0)) sum += number(p, "w_2", head * features + f) * x;
    }
    return sum;
}

static real bias_of(const test_problem *p, int64_t head, int64_t m, int64_t delta)
{
    const locus_options *o = &p->config.options;
    const locus_tensors *in = &p->in[0];
    const real r = fabsl((real)delta);
    if (is(p, "fire")) return fire_of(p, head, m, delta);
    if (is(p, "distance")) return (real)row_at(&in->bias, head, 0, 0)[delta - o->delta_min];
    if (is(p, "table"))
        return in->bias.rank != 0 ? (real)row_at(&in->bias, table_row(p, delta), 0, 0)[head] : 0;
    if (in->bias.rank != 0)
        return (real)row_at(
            &in->bias, test_naive_t5(-delta, o->buckets, o->max_distance, o->bidirectional != 0), 0,
            0)[head];
    if (is(p, "alibi"))
        return -r * (in->slopes.rank != 0 ? (real)((const double *)in->slopes.data)[head]
                                          : published_slope(head, p->spec.H));
    if (!is(p, "kerple")) return 0;
    const real a = (real)((const double *)in->a.data)[head];
    const real power = (real)((const double *)in->p.data)[head];
    return o->form == LOCUS_FORM_LOG ? -power * log1pl(a * r) : r == 0 ? 0 : -a * powl(r, power);
}

/* The position query's own product, where there is one. */
static real own_query_part(const test_problem *p, const pair *at)
{
    const locus_tensors *in = &p->in[0];
    const int64_t row = table_row(p, apart(p, at, 0));
    if (is(p, "inkling") && (row < 0 || row >= in->rel_k.shape[in->rel_k.rank - 2])) return 0;
    return dot(row_at(&in->pos_query, at->b, at->h, at->i), table_at(&in->rel_k, at->h, row),
               in->pos_query.shape[3]);
}

/* TUPE: rows by position; the reset replaces them and the bias. */
static real position_part(const test_problem *p, const pair *at, real c)
{
    const locus_tensors *in = &p->in[0];
    if (in->cls.rank != 0 && !is(p, "swin") && (at->m == 0 || at->n == 0))
        return (real)row_at(&in->cls, at->m == 0 ? 0 : 1, 0, 0)[at->h];
    if (is(p, "swin")) return swin_bias(p, at);
    real bias = bias_of(p, at->h,
                        is(p, "fire") ? place(&in->q_positions, at->b, at->i, 0, 1, at->m) : at->m,
                        apart(p, at, 0));
    if (in->gate.rank != 0) bias *= (real)row_at(&in->gate, at->b, at->h, 0)[at->i];
    if (in->pos_query.rank != 0) bias += own_query_part(p, at);
    if (in->pos_q.rank == 0) return bias;
    return bias + c * dot(row_at(&in->pos_q, at->h, at->m, 0), row_at(&in->pos_k, at->h, at->n, 0),
                          p->spec.D);
}

static real capped(const test_problem *p, real score)
{
    const real cap = (real)p->config.softcap;
    return p->config.softcap > 0.0 ? cap * tanhl(score / cap) : score;
}

/* What no softcap covers. */
static real outside(const test_problem *p, const pair *at)
{
    const locus_tensors *in = &p->in[0];
    real score = 0;
    if (in->log_gate.rank != 0)
        for (int64_t t = at->n + 1; t <= at->m; t++)
            score += (real)row_at(&in->log_gate, at->b, at->h, 0)[t];
    if (in->bias_dense.rank != 0)
        score += (real)row_at(&in->bias_dense, at->b, at->h, at->i)[at->n];
    return score;
}

/* The gate of a key, and what the position that the gates up to it make is worth. */
static real gate_of(const test_problem *p, const pair *at)
{
    const locus_tensors *in = &p->in[0];
    const double *k = row_at(&in->k, at->b, at->h / (p->spec.H / p->spec.Hk), at->n);
    return 1 / (1 + expl(-scale_of(p) * dot(row_at(&in->q, at->b, at->h, at->i), k, p->spec.D)));
}

static real counted_part(const test_problem *p, const pair *at)
{
    const locus_tensor *table = &p->in[0].rel_k;
    const double *q = row_at(&p->in[0].q, at->b, at->h, at->i);
    const int64_t last = table->shape[table->rank - 2] - 1;
    if (isnan(at->count)) return at->count;
    const real position = at->count < (real)last ? at->count : (real)last;
    const int64_t low = (int64_t)position;
    const real share = position - (real)low;
    const real part = (1 - share) * dot(q, table_at(table, at->h, low), p->spec.D);
    return low == last ? part : part + share * dot(q, table_at(table, at->h, low + 1), p->spec.D);
}

static real score_of(const test_problem *p, const pair *at)
{
    const locus_tensors *in = &p->in[0];
    const int64_t D = p->spec.D, delta = apart(p, at, 0);
    const double *q = row_at(&in->q, at->b, at->h, at->i);
    const double *k = row_at(&in->k, at->b, at->h / (p->spec.H / p->spec.Hk), at->n);
    const real c = scale_of(p);
    const int turns = is(p, "rope") || is(p, "xpos");
    if (is(p, "cope")) return capped(p, c * dot(q, k, D) + counted_part(p, at)) + outside(p, at);
    real score = turns           ? turned_product(p, q, k, delta)
                 : is(p, "wall") ? decayed_product(p, at, q, k)
                                 : dot(q, k, D);
    if (in->u.rank != 0) score += dot(row_at(&in->u, at->h, 0, 0), k, D);
    if (in->rel_k.rank != 0 && in->pos_query.rank == 0) {
        const double *row = table_at(&in->rel_k, at->h, table_row(p, delta));
        score += dot(q, row, D);
        if (in->w.rank != 0) score += dot(row_at(&in->w, at->h, 0, 0), row, D);
        if (is(p, "relative_key_query")) score += dot(k, row, D);
    }
    if (in->rel_q.rank != 0) score += dot(table_at(&in->rel_q, at->h, table_row(p, delta)), k, D);
    score = c * score + position_part(p, at, c);
    if (is(p, "sam"))
        score += dot(q, grid_row(p, "rel_h", at, 0), D) + dot(q, grid_row(p, "rel_w", at, 1), D);
    return capped(p, score) + outside(p, at);
}

/* ---- which pairs there are ---- */

static int mask_at(const locus_tensor *t, const pair *at)
{
    const int64_t b = t->shape[0] == 1 ? 0 : at->b, h = t->shape[1] == 1 ? 0 : at->h;
    const int64_t row = (b * t->shape[1] + h) * t->shape[2] + at->i;
    return ((const uint8_t *)t->data)[row * t->shape[3] + at->n];
}

static int is_seen(const test_problem *p, const pair *at)
{
    const locus_config *c = &p->config;
    const locus_tensors *in = &p->in[0];
    if (c->causal && at->n > at->m) return 0;
    if (c->window_left >= 0 && at->n < at->m - c->window_left) return 0;
    if (c->window_right >= 0 && at->n > at->m + c->window_right) return 0;
    if (in->key_mask.rank != 0 && !((const uint8_t *)in->key_mask.data)[at->b * p->spec.Tk + at->n])
        return 0;
    if (in->mask.rank != 0 && !mask_at(&in->mask, at)) return 0;
    return in->bias_dense.rank == 0 ||
           row_at(&in->bias_dense, at->b, at->h, at->i)[at->n] != (double)-INFINITY;
}

/* Word n mod 4 of Philox4x32-10 at the counter (n / 4, i, h, b), keyed by the seed. */
static uint32_t philox_word(uint64_t seed, const pair *at)
{
    uint32_t x[4] = {(uint32_t)(at->n / 4), (uint32_t)at->i, (uint32_t)at->h, (uint32_t)at->b};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        const uint64_t first = (uint64_t)x[0] * 0xD2511F53u, second = (uint64_t)x[2] * 0xCD9E8D57u;
        const uint32_t next[4] = {(uint32_t)(second >> 32) ^ x[1] ^ key[0], (uint32_t)second,
                                  (uint32_t)(first >> 32) ^ x[3] ^ key[1], (uint32_t)first};
        memcpy(x, next, sizeof x);
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return x[at->n % 4];
}

static real kept_share(const test_problem *p, const pair *at)
{
    const double drop = p->config.dropout;
    if (drop == 0.0) return 1;
    const real word = (real)philox_word(p->config.dropout_seed, at);
    return word >= floorl((real)drop * 0x1p32L) ? 1 / (1 - (real)drop) : 0;
}

/* ---- one query ---- */

static void add_value(const test_problem *p, const pair *at, real weight, real *sum)
{
    const locus_tensors *in = &p->in[0];
    const double *v = row_at(&in->v, at->b, at->h / (p->spec.H / p->spec.Hk), at->n);
    const double *extra =
        in->rel_v.rank != 0 ? table_at(&in->rel_v, at->h, table_row(p, apart(p, at, 0))) : NULL;
    for (int64_t d = 0; d < p->spec.Dv; d++)
        sum[d] += weight * ((real)v[d] + (extra != NULL ? (real)extra[d] : 0));
}

/* `score` has room for Tk, `sum` for Dv. */
static void one_row(const test_problem *p, pair at, real *score, real *sum, double *out,
                    double *lse)
{
    const locus_tensor *sink = &p->in[0].sink;
    const real extra = sink->rank != 0 ? (real)row_at(sink, 0, 0, 0)[at.h] : -(real)INFINITY;
    real largest = extra, total = 0;
    for (at.n = p->spec.Tk; at.n-- > 0;) {
        const int seen = is_seen(p, &at);
        if (seen && is(p, "cope")) at.count += gate_of(p, &at);
        score[at.n] = seen ? score_of(p, &at) : -(real)INFINITY;
        if (score[at.n] > largest || isnan(score[at.n])) largest = score[at.n];
    }
    memset(sum, 0, (size_t)p->spec.Dv * sizeof *sum);
    for (at.n = 0; at.n < p->spec.Tk && largest != -(real)INFINITY; at.n++) {
        if (!is_seen(p, &at)) continue;
        const real weight = expl(score[at.n] - largest), kept = kept_share(p, &at);
        total += weight;
        if (kept != 0) add_value(p, &at, weight * kept, sum);
    }
    if (sink->rank != 0) total += expl(extra - largest);
    *lse = largest == -(real)INFINITY ? (double)-INFINITY : (double)(largest + logl(total));
    for (int64_t d = 0; d < p->spec.Dv; d++)
        out[d] = largest == -(real)INFINITY ? 0.0 : (double)(sum[d] / total);
}

void test_naive(const test_problem *problem, double *out, double *lse)
{
    const test_spec *s = &problem->spec;
    const int64_t offset =
        problem->config.query_offset != LOCUS_UNSET ? problem->config.query_offset : s->Tk - s->Tq;
    real *score = malloc((size_t)(s->Tk + s->Dv + 1) * sizeof *score);
    if (score == NULL) exit(2);
    int64_t row = 0;
    for (int64_t b = 0; b < s->B; b++)
        for (int64_t h = 0; h < s->H; h++)
            for (int64_t i = 0; i < s->Tq; i++, row++)
                one_row(problem, (pair){b, h, i, 0, offset + i, 0}, score, score + s->Tk,
                        out + row * s->Dv, lse + row);
    free(score);
}

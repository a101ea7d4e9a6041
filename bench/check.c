/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench: what is timed is also right. The oracle computes single queries of single
 * heads over all keys; gradients of keys, values and tables are those of a dout that is
 * zero but in these queries, so they can be checked at any length. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"

const double bench_output_tolerance = 5e-6, bench_gradient_tolerance = 2e-5;
static const double peer_tolerance = 1e-4;

enum { SAMPLES = 3 };

/* One query of one head of one sequence. */
typedef struct sample {
    int64_t b, h, m;
} sample;

/* ---- slices ---- */

/* The axes of a tensor by name, "H R D", as the scheme declares them. */
static const char *shape_of(const bench_row *row, size_t index)
{
    const char *name = locus_tensor_name(index);
    const locus_tensor_info *info;
    for (size_t i = 0; (info = locus_scheme_tensor(row->input->kind->scheme, i)) != NULL; i++)
        if (strcmp(info->name, name) == 0) return info->shape;
    for (size_t i = 0; (info = locus_common_tensor(i)) != NULL; i++)
        if (strcmp(info->name, name) == 0) return info->shape;
    return "";
}

/* Keep of every axis that goes over sequences, heads or queries only the sampled one. */
static locus_tensor slice(const locus_tensor *tensor, const char *shape, const sample *s)
{
    locus_tensor part = *tensor;
    size_t offset = 0;
    for (uint32_t axis = 0; axis < part.rank; axis++) {
        const size_t length = strcspn(shape, " ");
        const char *token = strncmp(shape, "1|", 2) == 0 ? shape + 2 : shape;
        const size_t left = length - (size_t)(token - shape);
        int64_t index = -1;
        if (left == 1 && *token == 'B') index = s->b;
        if ((left == 1 && *token == 'H') || (left == 2 && memcmp(token, "Hk", 2) == 0))
            index = s->h;
        if (left == 2 && memcmp(token, "Tq", 2) == 0) index = s->m;
        if (index >= 0 && part.shape[axis] > 1) offset += (size_t)(index * part.stride[axis]);
        if (index >= 0) part.shape[axis] = 1;
        shape += length + strspn(shape + length, " ");
    }
    part.data = (char *)part.data + offset * locus_dtype_bytes(part.dtype);
    return part;
}

static void slice_all(const bench_row *row, const locus_tensors *from, const sample *s,
                      locus_tensors *to)
{
    memset(to, 0, sizeof *to);
    to->size = sizeof *to;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *tensor = locus_tensor_at_const(from, i);
        if (tensor->rank != 0) *locus_tensor_at(to, i) = slice(tensor, shape_of(row, i), s);
    }
}

/* ---- comparing ---- */

typedef struct error_scale {
    double worst, largest; /* |got - want|, |want| */
} error_scale;

static void compare_one(error_scale *e, double got, double want)
{
    const double apart = got == want ? 0.0 : fabs(got - want); /* equal infinities too */
    if (isfinite(want) && fabs(want) > e->largest) e->largest = fabs(want);
    if (isnan(apart) || apart > e->worst) e->worst = apart;
}

static void compare(error_scale *e, const locus_tensor *got, const double *want)
{
    const int64_t count = locus_tensor_elements(got);
    for (int64_t i = 0; i < count; i++) {
        int64_t offset = 0, rest = i;
        for (uint32_t axis = got->rank; axis-- > 0; rest /= got->shape[axis])
            offset += rest % got->shape[axis] * got->stride[axis];
        compare_one(e, bench_number(got, offset), want[i]);
    }
}

/* |got - want| / max(1, max |want|); NaN stays. */
static double relative(const error_scale *e) { return e->worst / fmax(1.0, e->largest); }

static double worse(double a, double b) { return isnan(a) || a > b ? a : b; }

/* ---- outputs ---- */

static locus_config config_of(const bench_row *row, const sample *s)
{
    locus_config config = row->config;
    config.allocator = NULL;
    config.query_offset = row->view == BENCH_DECODE ? row->input->group->n - 1 : s->m;
    return config;
}

/* out and lse of one query; they fit on the stack at the widths that are allowed. */
static locus_status check_output(const bench_row *row, const sample *s, error_scale *e,
                                 locus_error *error)
{
    double out[1024], lse = 0;
    locus_tensors in;
    const locus_config config = config_of(row, s);
    const int64_t shape[] = {1, 1, 1, row->input->group->d};
    const locus_results want = {.size = sizeof want,
                                .out = locus_view(out, LOCUS_F64, 4, shape),
                                .lse = locus_view(&lse, LOCUS_F64, 3, shape)};
    slice_all(row, &row->in, s, &in);
    const locus_status status = locus_oracle(LOCUS_ATTEND, &config, &in, &want, NULL, NULL, error);
    if (status != LOCUS_OK) return status;
    const locus_tensor got_out = slice(&row->results.out, "B H Tq D", s);
    const locus_tensor got_lse = slice(&row->results.lse, "B H Tq", s);
    compare(&e[0], &got_out, out);
    compare(&e[1], &got_lse, &lse);
    return LOCUS_OK;
}

/* What dropout draws goes by the place of a weight, which a slice moves; only the first query
 * of the first head stays where it is. */
static void choose_samples(const bench_row *row, sample *samples)
{
    const bench_group *g = row->input->group;
    memset(samples, 0, SAMPLES * sizeof *samples);
    if (row->view == BENCH_DROPOUT) return;
    const int64_t last = g->decode ? 0 : g->n - 1;
    for (int64_t i = 0; i < SAMPLES; i++)
        samples[i] = (sample){g->batch - 1, g->heads - 1, i * last / (SAMPLES - 1)};
}

static locus_status check_outputs(const bench_row *row, const sample *samples, double *worst,
                                  locus_error *error)
{
    error_scale e[2] = {{0, 0}, {0, 0}};
    locus_status status = LOCUS_OK;
    for (int i = 0; status == LOCUS_OK && i < SAMPLES; i++)
        status = check_output(row, &samples[i], e, error);
    const sample first = {0, 0, samples[1].m};
    if (status == LOCUS_OK) status = check_output(row, &first, e, error);
    *worst = worse(relative(&e[0]), relative(&e[1]));
    return status;
}

/* ---- gradients ---- */

typedef struct gradients {
    locus_tensors one; /* F64: of one query                  */
    double *sums[LOCUS_TENSOR_COUNT];
    error_scale q;
} gradients;

static void gradients_free(gradients *g)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        free(locus_tensor_at(&g->one, i)->data);
        free(g->sums[i]);
    }
}

static int gradients_new(gradients *g, const bench_row *row, const sample *s)
{
    locus_tensors shapes;
    memset(g, 0, sizeof *g);
    g->one.size = sizeof g->one;
    slice_all(row, &row->input->grad, s, &shapes);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *like = locus_tensor_at_const(&shapes, i);
        locus_tensor *one = locus_tensor_at(&g->one, i);
        if (like->rank == 0) continue;
        const size_t count = (size_t)locus_tensor_elements(like);
        *one = locus_view(calloc(count + 1, sizeof(double)), LOCUS_F64, like->rank, like->shape);
        g->sums[i] = calloc(count + 1, sizeof(double));
        if (one->data == NULL || g->sums[i] == NULL) return 0;
    }
    return 1;
}

/* Numbers of each query: q, and what the scheme lets a query bring beside it. */
static int is_of_queries(const bench_row *row, size_t index)
{
    const locus_scheme_info *scheme = locus_scheme_find(row->config.scheme);
    const locus_tensor_info *t;
    for (size_t i = 0; (t = locus_scheme_tensor(scheme, i)) != NULL; i++)
        if ((t->uses & LOCUS_USE_QUERY) != 0 && strstr(t->shape, "Tq") != NULL &&
            locus_tensor_index(t->name) == (int)index)
            return 1;
    return index == (size_t)locus_tensor_index("q");
}

/* Of one query after the other. */
static void compare_query(gradients *g, const bench_row *row, const sample *s)
{
    locus_tensors got;
    slice_all(row, &row->input->grad, s, &got);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *tensor = locus_tensor_at_const(&got, i);
        if (tensor->rank != 0 && is_of_queries(row, i))
            compare(&g->q, tensor, locus_tensor_at_const(&g->one, i)->data);
    }
}

static locus_status add_gradients(gradients *g, const bench_row *row, const sample *s,
                                  locus_error *error)
{
    double out[1024], lse = 0;
    locus_tensors in;
    const locus_config config = config_of(row, s);
    const int64_t shape[] = {1, 1, 1, row->input->group->d};
    const locus_results results = {.size = sizeof results,
                                   .out = locus_view(out, LOCUS_F64, 4, shape),
                                   .lse = locus_view(&lse, LOCUS_F64, 3, shape)};
    const locus_results dresults = {.size = sizeof dresults,
                                    .out = slice(&row->input->group->sparse_dout, "B H Tq D", s)};
    slice_all(row, &row->in, s, &in);
    const locus_status status =
        locus_oracle(LOCUS_ATTEND, &config, &in, &results, &dresults, &g->one, error);
    if (status != LOCUS_OK) return status;
    compare_query(g, row, s);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *one = locus_tensor_at_const(&g->one, i);
        const int64_t count = locus_tensor_elements(one);
        for (int64_t k = 0; k < count; k++) g->sums[i][k] += ((const double *)one->data)[k];
    }
    return LOCUS_OK;
}

static double worst_gradient(const gradients *g, const bench_row *row, const sample *s)
{
    locus_tensors got;
    double worst = relative(&g->q);
    slice_all(row, &row->input->grad, s, &got);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        error_scale e = {0, 0};
        const locus_tensor *tensor = locus_tensor_at_const(&got, i);
        if (tensor->rank == 0 || is_of_queries(row, i)) continue;
        compare(&e, tensor, g->sums[i]);
        worst = worse(relative(&e), worst);
    }
    return worst;
}

static void make_sparse(const bench_group *g, const sample *samples)
{
    const size_t bytes = locus_dtype_bytes(g->dtype);
    memset(g->sparse_dout.data, 0, (size_t)locus_tensor_elements(&g->sparse_dout) * bytes);
    for (int i = 0; i < SAMPLES; i++) {
        const locus_tensor from = slice(&g->dout, "B H Tq D", &samples[i]);
        const locus_tensor to = slice(&g->sparse_dout, "B H Tq D", &samples[i]);
        memcpy(to.data, from.data, (size_t)g->d * bytes);
    }
}

static locus_status check_gradients(bench *b, bench_row *row, const sample *samples, int count,
                                    double *worst, locus_error *error)
{
    const bench_group *group = row->input->group;
    gradients g;
    make_sparse(group, samples);
    locus_status status = bench_backward(b, row, &group->sparse_dout, error);
    if (status != LOCUS_OK) return status;
    status = gradients_new(&g, row, &samples[0]) ? LOCUS_OK : LOCUS_ERR_MEMORY;
    for (int i = 0; status == LOCUS_OK && i < count; i++)
        status = add_gradients(&g, row, &samples[i], error);
    if (status == LOCUS_OK) *worst = worst_gradient(&g, row, &samples[0]);
    gradients_free(&g);
    return status;
}

/* Samples of a short sequence may coincide; each counts once. */
static int distinct(sample *samples)
{
    int count = 1;
    for (int i = 1; i < SAMPLES; i++)
        if (samples[i].m != samples[count - 1].m) samples[count++] = samples[i];
    return count;
}

locus_status bench_check(bench *b, bench_row *row, locus_error *error)
{
    sample samples[SAMPLES];
    double outputs = 0, gradients_worst = 0;
    if (row->linear != NULL) {
        linear_prepare(&b->pool, row->linear);
        linear_run(&b->pool, row->linear);
        row->max_err = linear_error(&b->pool, row->linear, 0);
        return LOCUS_OK;
    }
    choose_samples(row, samples);
    locus_status status = bench_forward(b, row, error);
    if (status == LOCUS_OK) status = check_outputs(row, samples, &outputs, error);
    if (status == LOCUS_OK && row->direction != BENCH_FORWARD)
        status = check_gradients(b, row, samples, distinct(samples), &gradients_worst, error);
    row->max_err = row->direction == BENCH_FORWARD    ? outputs
                   : row->direction == BENCH_BACKWARD ? gradients_worst
                                                      : worse(outputs, gradients_worst);
    return status;
}

/* ---- yardsticks ---- */

static int agree(const float *x, const float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)x[i] - (double)y[i]) <= peer_tolerance * fmax(1, fabs((double)y[i]))))
            return 0;
    return 1;
}

/* Rows of a strip go by key in the yardstick, by distance in ours. */
static int tables_agree(const yardstick *y, const float *theirs, const locus_tensor *ours)
{
    if (theirs == NULL || ours->rank == 0) return 1;
    const int64_t heads = ours->rank == 3 ? ours->shape[0] : 1;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t r = 0; r < y->R; r++) {
            const int64_t at = y->rule == YARDSTICK_STRIP ? y->R - 1 - r : r;
            if (!agree(theirs + (h * y->R + at) * y->D,
                       (const float *)ours->data + (h * y->R + r) * y->D, y->D))
                return 0;
        }
    return 1;
}

int bench_peer_agrees(const bench *b, const bench_row *row)
{
    if (row->linear != NULL)
        return linear_error(&b->pool, row->linear, 1) <= bench_gradient_tolerance;
    const yardstick *y = &row->input->yardstick;
    const bench_group *g = row->input->group;
    const int64_t count = g->batch * g->heads * g->n * g->d;
    if (row->view == BENCH_DECODE) return 1;
    if (row->direction == BENCH_FORWARD) return agree(y->out, row->results.out.data, count);
    return agree(y->dq, g->grad.q.data, count) && agree(y->dk, g->grad.k.data, count) &&
           agree(y->dv, g->grad.v.data, count) &&
           tables_agree(y, y->dtable, &row->input->grad.rel_k) &&
           tables_agree(y, y->dquery_table, &row->input->grad.rel_q) &&
           tables_agree(y, y->dvalue_table, &row->input->grad.rel_v);
}

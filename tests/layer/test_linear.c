/* SPDX-License-Identifier: Apache-2.0 */

/* nn/linear against the formulas in double: every kernel table, sizes around the tiles
 * and blocks, strides, adding, threads. */

#include <locus/runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/linear.h"
#include "support/check.h"
#include "support/compare.h"
#include "support/problem.h"

/* So small a cache that a few hundred rows and inputs make several blocks of both. */
enum { PAD = 3, MOST_THREADS = 7, SMALL_CACHE = 1 };
static const float canary = -123456.0f;

/* ---- matrices with a gap after every row and every batch ---- */

typedef struct matrix {
    locus_row_batch rows;
    int64_t width;
    size_t floats; /* of the whole buffer */
} matrix;

static matrix new_matrix(int64_t batches, int64_t rows, int64_t width, int64_t pad)
{
    matrix m = {.width = width};
    m.rows = (locus_row_batch){.batches = batches, .rows = rows, .row_stride = width + pad};
    m.rows.batch_stride = rows * m.rows.row_stride + pad;
    m.floats = (size_t)(batches * m.rows.batch_stride + 1);
    m.rows.data = malloc(m.floats * sizeof(float));
    if (m.rows.data == NULL) exit(2);
    for (size_t i = 0; i < m.floats; i++) m.rows.data[i] = canary;
    return m;
}

static float *at(const matrix *m, int64_t b, int64_t t)
{
    return m->rows.data + b * m->rows.batch_stride + t * m->rows.row_stride;
}

static void fill(const matrix *m, uint64_t stream)
{
    uint64_t n = 0;
    for (int64_t b = 0; b < m->rows.batches; b++)
        for (int64_t t = 0; t < m->rows.rows; t++)
            for (int64_t c = 0; c < m->width; c++)
                at(m, b, t)[c] = (float)(2.0 * test_uniform(stream, n++) - 1.0);
}

/* Gaps hold what new_matrix put there. */
static int gaps_are_intact(const matrix *m)
{
    size_t found = 0;
    for (size_t i = 0; i < m->floats; i++) found += m->rows.data[i] == canary;
    return found == m->floats - (size_t)(m->rows.batches * m->rows.rows * m->width);
}

static locus_tensor as_tensor(const matrix *m)
{
    return (locus_tensor){.data = m->rows.data,
                          .dtype = LOCUS_F32,
                          .rank = 2,
                          .shape = {m->rows.rows, m->width},
                          .stride = {m->rows.row_stride, 1}};
}

static locus_tensor as_vector(const matrix *m)
{
    return locus_view(m->rows.data, LOCUS_F32, 1, &m->width);
}

/* ---- one linear layer with everything around it ---- */

typedef struct setup {
    int64_t B, T, in, out;
    matrix x, w, b, y, dy, dx, dw, db, gate;
    locus_tensor weight, bias, weight_grad, bias_grad;
    void *workspace;
    size_t workspace_bytes;
    locus_linear f;
} setup;

/* Blocks for a second cache of so many bytes. */
static void set_cache(setup *s, size_t bytes)
{
    free(s->workspace);
    s->f.second_cache = bytes;
    s->workspace_bytes = (size_t)locus_linear_workspace(&s->f);
    s->workspace = malloc(s->workspace_bytes + 64);
    if (s->workspace == NULL) exit(2);
    memset(s->workspace, 0x7F, s->workspace_bytes + 64);
    s->f.workspace = s->workspace;
}

static setup new_setup(const locus_kernels *kernels, int64_t B, int64_t T, int64_t in, int64_t out,
                       int64_t pad, uint32_t threads)
{
    setup s = {.B = B, .T = T, .in = in, .out = out};
    matrix *const all[] = {&s.x, &s.w, &s.b, &s.y, &s.dy, &s.dx, &s.dw, &s.db, &s.gate};
    const int64_t shapes[][3] = {{B, T, in}, {1, out, in}, {1, 1, out}, {B, T, out}, {B, T, out},
                                 {B, T, in}, {1, out, in}, {1, 1, out}, {B, T, out}};
    for (size_t i = 0; i < 9; i++) {
        *all[i] = new_matrix(shapes[i][0], shapes[i][1], shapes[i][2], pad);
        fill(all[i], i);
    }
    s.weight = as_tensor(&s.w);
    s.bias = as_vector(&s.b);
    s.weight_grad = as_tensor(&s.dw);
    s.bias_grad = as_vector(&s.db);
    s.f = (locus_linear){.kernels = kernels, .threads = threads};
    set_cache(&s, SMALL_CACHE);
    return s;
}

/* The tensors live in the setup: point at them once it has its final address. */
static void attach(setup *s)
{
    s->f.weight = &s->weight;
    s->f.bias = &s->bias;
}

static void free_setup(setup *s)
{
    matrix *const all[] = {&s->x, &s->w, &s->b, &s->y, &s->dy, &s->dx, &s->dw, &s->db, &s->gate};
    for (size_t i = 0; i < 9; i++) free(all[i]->rows.data);
    free(s->workspace);
}

static void run(setup *s, int add)
{
    const locus_linear_grad grad = {.x = &s->dx.rows,
                                    .weight = &s->weight_grad,
                                    .bias = &s->bias_grad,
                                    .add_x = add,
                                    .add_parameters = add};
    attach(s);
    locus_linear_forward(&s->f, &s->y.rows, &s->x.rows, NULL);
    locus_linear_backward(&s->f, &s->dy.rows, &s->x.rows, &grad);
}

/* ---- the formulas ---- */

static void expect(const char *name, const matrix *got, const double *want, double tolerance)
{
    const size_t count = (size_t)(got->rows.batches * got->rows.rows * got->width);
    comparison c = comparison_start(comparison_scale_f64(want, count));
    size_t i = 0;
    char text[256];
    for (int64_t b = 0; b < got->rows.batches; b++)
        for (int64_t t = 0; t < got->rows.rows; t++)
            for (int64_t k = 0; k < got->width; k++)
                comparison_add(&c, (double)at(got, b, t)[k], want[i++]);
    CHECK(count == 0 || comparison_passes(&c, count, tolerance, text, sizeof text), "%s: %s", name,
          text);
    CHECK(gaps_are_intact(got), "%s: a gap was written", name);
}

static double *doubles(int64_t count, const matrix *from, int add)
{
    double *d = calloc((size_t)count + 1, sizeof *d);
    if (d == NULL) exit(2);
    size_t i = 0;
    for (int64_t b = 0; add && b < from->rows.batches; b++)
        for (int64_t t = 0; t < from->rows.rows; t++)
            for (int64_t k = 0; k < from->width; k++) d[i++] = (double)at(from, b, t)[k];
    return d;
}

static void check_formulas(const locus_kernels *kernels, int64_t B, int64_t T, int64_t in,
                           int64_t out, int add)
{
    setup s = new_setup(kernels, B, T, in, out, PAD, 2);
    double *y = doubles(B * T * out, NULL, 0), *dx = doubles(B * T * in, &s.dx, add);
    double *dw = doubles(out * in, &s.dw, add), *db = doubles(out, &s.db, add);
    for (int64_t r = 0; r < B * T; r++) {
        const float *x = at(&s.x, r / T, r % T), *dy = at(&s.dy, r / T, r % T);
        for (int64_t o = 0; o < out; o++) {
            const float *w = at(&s.w, 0, o);
            y[r * out + o] = (double)s.b.rows.data[o];
            db[o] += (double)dy[o];
            for (int64_t i = 0; i < in; i++) {
                y[r * out + o] += (double)x[i] * (double)w[i];
                dx[r * in + i] += (double)dy[o] * (double)w[i];
                dw[o * in + i] += (double)dy[o] * (double)x[i];
            }
        }
    }
    run(&s, add);
    expect("y", &s.y, y, 2e-6);
    expect("dx", &s.dx, dx, 2e-6);
    expect("dW", &s.dw, dw, 2e-6);
    expect("db", &s.db, db, 2e-6);
    int intact = 1;
    for (size_t i = 0; i < 64; i++)
        intact &= ((unsigned char *)s.workspace)[s.workspace_bytes + i] == 0x7F;
    CHECK(intact, "written beyond the workspace");
    free_setup(&s);
    free(y), free(dx), free(dw), free(db);
}

static void test_formulas(const locus_kernels *kernels)
{
    static const int64_t shapes[][4] = {{1, 1, 1, 1},    {2, 3, 5, 7},       {1, 64, 64, 64},
                                        {3, 65, 63, 66}, {2, 130, 257, 129}, {1, 515, 16, 33},
                                        {0, 4, 3, 2},    {2, 0, 3, 2},       {2, 4, 0, 3},
                                        {2, 4, 3, 0},    {40, 1, 31, 17},    {1, 7, 520, 65},
                                        {3, 300, 20, 9}, {1, 7, 33, 530}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int add = 0; add < 2; add++) {
            const int64_t *n = shapes[i];
            if (check_begin("linear/%s/B%dT%dI%dO%d%s", kernels->isa, (int)n[0], (int)n[1],
                            (int)n[2], (int)n[3], add ? "/add" : ""))
                check_formulas(kernels, n[0], n[1], n[2], n[3], add);
        }
}

/* Around what cuts a product: register tiles and blocks of the table, and the least blocks of rows
 * (LEAST_ROWS, which a small cache leads to), at two multiples. TASKS_PER_THREAD and LEAST_PANELS cut
 * them further for threads: test_threads. */
static void test_cuts(const locus_kernels *kernels)
{
    enum { LEAST_ROWS = 48 };
    const locus_linear_kernels *cuts = kernels->linear;
    for (int64_t multiple = 1; multiple <= 2; multiple++)
        for (int64_t step = -1; step <= 1; step++) {
            if (!check_begin("linear/%s/cuts/%d%+d", kernels->isa, (int)multiple, (int)step))
                continue;
            check_formulas(kernels, 1, multiple * LEAST_ROWS + step, 19, 21, 0);
            check_formulas(kernels, 2, multiple * cuts->rows + step, 19, 21, 1);
            check_formulas(kernels, 1, 13, multiple * cuts->inner + step, 9, 0);
            check_formulas(kernels, 1, multiple * cuts->inner + step, 11, 9, 1);
            check_formulas(kernels, 1, 13, 11, multiple * cuts->inner + step, 0);
            check_formulas(kernels, 3, 13, 11, multiple * cuts->columns + step, 1);
            check_formulas(kernels, 1, 13, 11, multiple * LOCUS_RIGHT_COLUMNS + step, 0);
            check_formulas(kernels, 1, multiple * LEAST_ROWS + step, multiple * cuts->inner + step,
                           multiple * LOCUS_RIGHT_COLUMNS + step, 0);
        }
}

/* ---- packed weights, activations, residual ---- */

static double activated(double z, locus_activation activation)
{
    switch (activation) {
    case LOCUS_RELU: return z < 0.0 ? 0.0 : z;
    case LOCUS_GELU: return 0.5 * z * erfc(-z / sqrt(2.0));
    case LOCUS_GELU_TANH: return z / (1.0 + exp(-1.5957691216057308 * (z + 0.044715 * z * z * z)));
    case LOCUS_SILU: return z / (1.0 + exp(-z));
    case LOCUS_TANH: return tanh(z);
    case LOCUS_SIGMOID: return 1.0 / (1.0 + exp(-z));
    case LOCUS_IDENTITY: break;
    }
    return z;
}

/* The weights of a setup, packed into memory of the exact size between guard bytes. */
typedef struct packed_copy {
    unsigned char *memory;
    size_t bytes;
    locus_packed packed;
} packed_copy;

static packed_copy pack_setup(const setup *s)
{
    packed_copy p = {.memory = NULL};
    uint64_t bytes = 0;
    if (!locus_packed_bytes(&bytes, s->in, s->out)) exit(2);
    p.bytes = (size_t)bytes;
    p.memory = malloc(p.bytes + 128);
    if (p.memory == NULL) exit(2);
    memset(p.memory, 0x7F, p.bytes + 128);
    p.packed = locus_pack_weight(s->f.kernels, &s->weight, p.memory + 64, s->f.threads);
    return p;
}

static void free_packed(packed_copy *p)
{
    int intact = 1;
    for (size_t i = 0; i < 64; i++)
        intact &= p->memory[i] == 0x7F && p->memory[64 + p->bytes + i] == 0x7F;
    CHECK(intact, "written beside the packed weights");
    free(p->memory);
}

/* y with everything: dy is the residual. */
static void run_end(setup *s, locus_activation activation)
{
    const locus_linear_end end = {activation, &s->gate.rows, &s->dy.rows};
    locus_linear_forward(&s->f, &s->y.rows, &s->x.rows, &end);
}

/* The same by packed weights and without the tensor. */
static void run_packed(setup *s, const locus_packed *packed, locus_activation activation)
{
    attach(s);
    s->f.weight = NULL;
    s->f.packed = packed;
    run_end(s, activation);
    s->f.packed = NULL;
}

static void check_epilogue(const locus_kernels *kernels, int64_t B, int64_t T, int64_t in,
                           int64_t out, locus_activation activation)
{
    setup s = new_setup(kernels, B, T, in, out, PAD, 2);
    double *y = doubles(B * T * out, NULL, 0);
    for (int64_t r = 0; r < B * T; r++)
        for (int64_t o = 0; o < out; o++) {
            double z = (double)s.b.rows.data[o];
            for (int64_t i = 0; i < in; i++)
                z += (double)at(&s.x, r / T, r % T)[i] * (double)at(&s.w, 0, o)[i];
            y[r * out + o] = activated(z, activation) * (double)at(&s.gate, r / T, r % T)[o] +
                             (double)at(&s.dy, r / T, r % T)[o];
        }
    packed_copy p = pack_setup(&s);
    run_packed(&s, &p.packed, activation);
    expect("y", &s.y, y, 2e-6);

    setup plain = new_setup(kernels, B, T, in, out, PAD, 1);
    attach(&plain);
    run_end(&plain, activation);
    CHECK(memcmp(plain.y.rows.data, s.y.rows.data, s.y.floats * sizeof(float)) == 0,
          "packed weights give other bits");
    free_packed(&p);
    free_setup(&s), free_setup(&plain);
    free(y);
}

static void test_epilogues(const locus_kernels *kernels)
{
    for (int a = LOCUS_IDENTITY; a <= LOCUS_SILU; a++) {
        const locus_activation activation = (locus_activation)a;
        if (check_begin("linear/%s/activation%d/small", kernels->isa, a))
            for (int64_t n = 0; n < (check_sample() ? 10 : 60); n++)
                check_epilogue(kernels, 1 + n % 2, 1 + 13 * n % 70, 1 + 29 * n % 70,
                               1 + 37 * n % 70, activation);
        if (check_begin("linear/%s/activation%d/large", kernels->isa, a)) {
            check_epilogue(kernels, 2, 67, 300, 131, activation);
            check_epilogue(kernels, 1, 140, 1100 + a, 65, activation);
        }
    }
}

/* ---- bits ---- */

static int same_bits(const matrix *a, const matrix *b)
{
    return memcmp(a->rows.data, b->rows.data, a->floats * sizeof(float)) == 0;
}

/* One packed copy for all threads and calls. */
static void test_packed_threads(const locus_kernels *kernels)
{
    static const uint32_t threads[] = {2, 3, MOST_THREADS};
    if (!check_begin("linear/%s/packed/threads", kernels->isa)) return;
    setup one = new_setup(kernels, 2, 150, 1030, 130, PAD, 1);
    packed_copy p = pack_setup(&one);
    run_packed(&one, &p.packed, LOCUS_GELU);
    for (size_t i = 0; i < 3; i++) {
        setup many = new_setup(kernels, 2, 150, 1030, 130, PAD, threads[i]);
        run_packed(&many, &p.packed, LOCUS_GELU);
        CHECK(same_bits(&one.y, &many.y), "%u threads give other bits than 1",
              (unsigned)threads[i]);
        free_setup(&many);
    }
    free_packed(&p);
    free_setup(&one);
}

/* A row of y is the same alone and in a batch of any size. */
static void test_packed_rows(const locus_kernels *kernels)
{
    static const int64_t counts[] = {1, 2, 5, 6, 7, 131, 132, 133, 269};
    if (!check_begin("linear/%s/packed/rows", kernels->isa)) return;
    setup all = new_setup(kernels, 1, 270, 1030, 70, 0, 2);
    packed_copy p = pack_setup(&all);
    run_packed(&all, &p.packed, LOCUS_SILU);
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        const int64_t count = counts[n], first = (270 - count) * (int64_t)n / 9;
        setup some = new_setup(kernels, 1, count, 1030, 70, 0, 2);
        memcpy(some.x.rows.data, at(&all.x, 0, first), (size_t)(count * 1030) * sizeof(float));
        memcpy(some.dy.rows.data, at(&all.dy, 0, first), (size_t)(count * 70) * sizeof(float));
        memcpy(some.gate.rows.data, at(&all.gate, 0, first), (size_t)(count * 70) * sizeof(float));
        run_packed(&some, &p.packed, LOCUS_SILU);
        CHECK(memcmp(some.y.rows.data, at(&all.y, 0, first),
                     (size_t)(count * 70) * sizeof(float)) == 0,
              "%d rows from %d on depend on the others", (int)count, (int)first);
        free_setup(&some);
    }
    free_packed(&p);
    free_setup(&all);
}

/* Nor on the size of the second cache. */
static void test_caches(const locus_kernels *kernels)
{
    static const size_t caches[] = {0, 1 << 20, 3 << 20};
    if (!check_begin("linear/%s/caches", kernels->isa)) return;
    setup small = new_setup(kernels, 3, 150, 530, 130, PAD, 2);
    run(&small, 1);
    for (size_t i = 0; i < 3; i++) {
        setup large = new_setup(kernels, 3, 150, 530, 130, PAD, 1);
        set_cache(&large, caches[i]);
        run(&large, 1);
        CHECK(same_bits(&small.y, &large.y) && same_bits(&small.dx, &large.dx) &&
                  same_bits(&small.dw, &large.dw) && same_bits(&small.db, &large.db),
              "a cache of %u bytes gives other bits", (unsigned)caches[i]);
        free_setup(&large);
    }
    free_setup(&small);
}

static void test_threads(const locus_kernels *kernels)
{
    static const uint32_t threads[] = {2, 3, MOST_THREADS};
    if (!check_begin("linear/%s/threads", kernels->isa)) return;
    setup one = new_setup(kernels, 2, 150, 300, 130, PAD, 1);
    run(&one, 0);
    for (size_t i = 0; i < 3; i++) {
        setup many = new_setup(kernels, 2, 150, 300, 130, PAD, threads[i]);
        run(&many, 0);
        CHECK(same_bits(&one.y, &many.y) && same_bits(&one.dx, &many.dx) &&
                  same_bits(&one.dw, &many.dw) && same_bits(&one.db, &many.db),
              "%u threads give other bits than 1", (unsigned)threads[i]);
        free_setup(&many);
    }
    free_setup(&one);
}

/* y and dx of a row are the same when it is alone. */
static void test_rows(const locus_kernels *kernels)
{
    if (!check_begin("linear/%s/rows", kernels->isa)) return;
    setup all = new_setup(kernels, 2, 70, 300, 130, 0, 2);
    setup alone = new_setup(kernels, 1, 1, 300, 130, PAD, 2);
    run(&all, 0);
    alone.weight = all.weight;
    alone.bias = all.bias;
    for (int64_t r = 0; r < 140; r += 23) {
        memcpy(at(&alone.x, 0, 0), at(&all.x, r / 70, r % 70), 300 * sizeof(float));
        memcpy(at(&alone.dy, 0, 0), at(&all.dy, r / 70, r % 70), 130 * sizeof(float));
        run(&alone, 0);
        CHECK(memcmp(at(&alone.y, 0, 0), at(&all.y, r / 70, r % 70), 130 * sizeof(float)) == 0,
              "y of row %d depends on the other rows", (int)r);
        CHECK(memcmp(at(&alone.dx, 0, 0), at(&all.dx, r / 70, r % 70), 300 * sizeof(float)) == 0,
              "dx of row %d depends on the other rows", (int)r);
    }
    free_setup(&all);
    free_setup(&alone);
}

/* One NaN in x reaches its row of y and its column of dW, nothing else. */
static void test_nan(const locus_kernels *kernels)
{
    if (!check_begin("linear/%s/nan", kernels->isa)) return;
    setup s = new_setup(kernels, 1, 70, 20, 30, 0, 1);
    at(&s.x, 0, 66)[5] = NAN;
    run(&s, 0);
    int rows = 0, columns = 0;
    for (int64_t t = 0; t < 70; t++)
        for (int64_t o = 0; o < 30; o++) rows += isnan(at(&s.y, 0, t)[o]) && t == 66;
    for (int64_t o = 0; o < 30; o++)
        for (int64_t i = 0; i < 20; i++) columns += isnan(at(&s.dw, 0, o)[i]) && i == 5;
    CHECK(rows == 30, "%d NaNs in row 66 of y, expected 30", rows);
    CHECK(columns == 30, "%d NaNs in column 5 of dW, expected 30", columns);
    int others = 0;
    for (size_t i = 0; i < s.y.floats; i++) others += isnan(s.y.rows.data[i]);
    for (size_t i = 0; i < s.dw.floats; i++) others += isnan(s.dw.rows.data[i]);
    for (size_t i = 0; i < s.dx.floats; i++) others += isnan(s.dx.rows.data[i]);
    CHECK(others == 60, "%d NaNs in all, expected 60", others);
    free_setup(&s);
}

static void test_sizes(void)
{
    if (!check_begin("linear/packed_bytes")) return;
    uint64_t bytes = 7;
    CHECK(!locus_packed_bytes(&bytes, INT64_MAX / 2, INT64_MAX / 2) && bytes == 7,
          "a size that does not fit was accepted");
    CHECK(locus_packed_bytes(&bytes, 0, 0), "empty sizes were refused");
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (uint32_t i = 0; locus_kernels_at(i) != NULL; i++) {
        const locus_kernels *kernels = locus_kernels_at(i);
        if (!locus_isa_available(kernels->isa)) {
            if (check_begin("linear/%s", kernels->isa)) check_skip("not on this CPU");
            continue;
        }
        test_formulas(kernels);
        test_cuts(kernels);
        test_epilogues(kernels);
        test_threads(kernels);
        test_caches(kernels);
        test_packed_threads(kernels);
        test_packed_rows(kernels);
        test_rows(kernels);
        test_nan(kernels);
    }
    test_sizes();
    return check_finish("linear");
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Layers of F16 and BF16 tensors. A layer of halves has the bits of the layer of floats that these
 * halves are, rounded once, whatever the threads; and the layer of floats is held to the oracle on
 * the same numbers. */

#include <locus/layer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/maps.h"
#include "layer/specs.h"
#include "nn/rows.h"
#include "support/check.h"
#include "support/halves.h"
#include "support/judge.h"

static const char *const isas[] = {NULL, "avx2", "generic"};
static const char *const ways[] = {"F16", "BF16", "mixed-0", "mixed-1", "mixed-2"};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- one layer ---- */

typedef struct run {
    const locus_config *config;
    const locus_tensors *in, *grad;
    locus_results results, dresults;
    uint32_t flags;
    int prepared;
} run;

static locus_status run_passes(const run *r, locus_layer *layer, const locus_layer_tables *tables,
                               locus_error *error)
{
    const size_t ahead = locus_layer_forward_workspace(layer);
    const size_t back = locus_layer_backward_workspace(layer);
    const size_t saved_bytes = locus_layer_saved_bytes(layer);
    void *saved = malloc(saved_bytes), *forward = malloc(ahead), *backward = malloc(back);
    locus_status status =
        tables == NULL ? locus_layer_forward(layer, r->in, &r->results, saved, saved_bytes, forward,
                                             ahead, error)
                       : locus_layer_forward_prepared(layer, tables, r->in, &r->results, saved,
                                                      saved_bytes, forward, ahead, error);
    if (status == LOCUS_OK && r->grad != NULL)
        status = tables == NULL
                     ? locus_layer_backward(layer, r->in, &r->dresults, r->grad, r->flags, saved,
                                            saved_bytes, backward, back, error)
                     : locus_layer_backward_prepared(layer, tables, r->in, &r->dresults, r->grad,
                                                     r->flags, saved, saved_bytes, backward, back,
                                                     error);
    free(saved);
    free(forward);
    free(backward);
    return status;
}

static locus_status run_layer(const run *r, locus_error *error)
{
    locus_layer *layer = NULL;
    locus_layer_tables *tables = NULL;
    locus_status status = locus_layer_new(&layer, r->config, r->in, error);
    if (status == LOCUS_OK && r->prepared)
        status = locus_layer_tables_new(&tables, layer, r->in, LOCUS_TABLES_BACKWARD, error);
    if (status == LOCUS_OK) status = run_passes(r, layer, tables, error);
    locus_layer_tables_free(tables);
    locus_layer_free(layer);
    return status;
}

/* ---- the same numbers, rounded ---- */

static int same_floats(const locus_tensor *a, const locus_tensor *b)
{
    const float *x = a->data, *y = b->data;
    int same = 1;
    for (int64_t i = 0; i < locus_tensor_elements(a); i++) same &= x[i] == y[i];
    return same;
}

/* The doubles of the oracle's side become what the floats were rounded to. */
static void sync_doubles(test_problem *p)
{
    for (size_t i = 0; i <= LOCUS_TENSOR_COUNT; i++) {
        const int is_dout = i == LOCUS_TENSOR_COUNT;
        const locus_tensor *from = is_dout ? &p->dout[1] : locus_tensor_at_const(&p->in[1], i);
        const locus_tensor *to = is_dout ? &p->dout[0] : locus_tensor_at_const(&p->in[0], i);
        if (from->rank == 0 || from->dtype != LOCUS_F32) continue;
        for (int64_t k = 0; k < locus_tensor_elements(from); k++)
            test_set_value(to, k, test_value(from, k));
    }
}

static void check_oracle(test_problem *p)
{
    locus_error error = {""};
    sync_doubles(p);
    CHECK(test_problem_run(p, TEST_ORACLE, 1, &error) == LOCUS_OK, "oracle: %s", error.text);
    test_judge_tensor("out", &p->results[1].out, &p->results[0].out, 5e-6);
    test_judge_tensor("lse", &p->results[1].lse, &p->results[0].lse, 5e-6);
    for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++)
        if (locus_tensor_at_const(&p->grad[1], k)->rank != 0)
            test_judge_tensor(locus_tensor_name(k), locus_tensor_at_const(&p->grad[1], k),
                              locus_tensor_at_const(&p->grad[0], k), 2e-5);
}

/* Gradients that stay floats, in memory of their own; `start`: what all of them hold before, if
 * they are added to. */
static locus_tensors own_gradients(const half_call *c, float start)
{
    locus_tensors grad = c->grad;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        locus_tensor *t = locus_tensor_at(&grad, i);
        const int64_t count = locus_tensor_elements(t);
        if (t->rank == 0) continue;
        if (t->dtype == LOCUS_F32) t->data = malloc((size_t)count * sizeof(float) + 1);
        for (int64_t k = 0; start != 0 && k < count; k++) {
            if (t->dtype == LOCUS_F32)
                ((float *)t->data)[k] = start;
            else
                ((uint16_t *)t->data)[halves_place(t, k)] = halves_from_float(start, t->dtype);
        }
    }
    return grad;
}

static void check_gradients(const half_call *c, const locus_tensors *grad,
                            const locus_tensors *wanted)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(grad, i);
        const locus_tensor *want = locus_tensor_at_const(wanted, i);
        if (t->rank == 0) continue;
        if (t->dtype == LOCUS_F32) {
            CHECK(same_floats(t, want), "grad.%s differs", locus_tensor_name(i));
            free(t->data);
        } else {
            CHECK(halves_are_rounded(&c->gradients[i], want),
                  "grad.%s is not that of floats, rounded", locus_tensor_name(i));
        }
    }
}

/* The half call with so many threads, against the float call that p has run. */
static void check_halves(test_problem *p, const half_call *c, uint32_t threads, int prepared)
{
    locus_error error = {""};
    locus_config config = p->config;
    const locus_tensors grad = own_gradients(c, 0);
    const int64_t rows = locus_tensor_elements(&p->results[1].lse);
    run r = {.config = &config,
             .in = &c->in,
             .grad = &grad,
             .results = p->results[1],
             .dresults = test_problem_gradient(p, TEST_FLOAT),
             .prepared = prepared};
    config.threads = threads;
    r.results.out = c->out.view;
    r.results.lse.data = malloc((size_t)rows * sizeof(float) + 1);
    r.dresults.out = c->dout.view;
    CHECK(run_layer(&r, &error) == LOCUS_OK, "%u threads: %s", (unsigned)threads, error.text);
    CHECK(halves_are_rounded(&c->out, &p->results[1].out), "out is not that of floats, rounded");
    CHECK(same_floats(&r.results.lse, &p->results[1].lse), "lse differs");
    check_gradients(c, &grad, &p->grad[1]);
    free(r.results.lse.data);
}

static void test_same(const test_spec *spec, const char *name, int way, int against_oracle)
{
    static const uint32_t threads[] = {1, 2, 3, 7};
    if (!check_begin("layer-half/same/%s/%s", name, ways[way])) return;
    test_problem *p = test_problem_new(spec);
    locus_error error = {""};
    half_call c;
    half_call_new(&c, p, way);
    p->config.isa = isas[(spec->seed + (uint64_t)way) % 3];
    CHECK(test_problem_run(p, TEST_FLOAT, 1, &error) == LOCUS_OK, "%s", error.text);
    if (against_oracle) check_oracle(p);
    for (size_t t = against_oracle ? 0 : 2; t < sizeof threads / sizeof *threads; t++)
        check_halves(p, &c, threads[t], t % 2 == 1);
    half_call_free(&c);
    test_problem_free(p);
}

/* ---- blocks ---- */

/* Block ends inside batch entries; a table that shares its weights with the content. */
static const test_spec large[] = {
    {.scheme = "none", .B = 3, .H = 9, .Tq = 190, .Tk = 190, .D = 60, .E = 530, .seed = 1},
    {.scheme = "deberta",
     .B = 2,
     .H = 2,
     .Tq = 3,
     .Tk = 5,
     .D = 3,
     .E = 5,
     .settings = "span=300",
     .without = "w_rk b_rk w_rq b_rq",
     .seed = 2},
};
static const char *const large_names[] = {"batch-blocks", "table-blocks"};

/* Rows of x, or rows and columns of weights, around the ends of blocks. These are multiples of
 * COPIED_ROWS, the rows that a thread converts at a time, too. */
static void test_cuts(void)
{
    const int64_t extents[] = {LOCUS_LAYER_BLOCK - 1, LOCUS_LAYER_BLOCK, LOCUS_LAYER_BLOCK + 1,
                               2 * LOCUS_LAYER_BLOCK - 1, 2 * LOCUS_LAYER_BLOCK + 1};
    for (int i = 0; i < 2 * (int)(sizeof extents / sizeof *extents); i++) {
        const int64_t extent = extents[i / 2];
        test_spec spec = {.scheme = "none", .level = LOCUS_LAYER, .B = 1, .H = 1, .D = 2};
        char name[64];
        spec.seed = (uint64_t)i;
        spec.Tq = i % 2 ? 3 : extent;
        spec.Tk = spec.Tq + (i % 2 ? 2 : 17);
        spec.E = i % 2 ? extent : 3;
        snprintf(name, sizeof name, "%s-%d", i % 2 ? "weights" : "rows", (int)extent);
        test_same(&spec, name, i % WAYS, 0);
    }
}

/* What the bits rest on: no block ends inside of what a product sums at a time. */
static void test_multiple(void)
{
    if (!check_begin("layer-half/multiple")) return;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        const locus_kernels *kernels = locus_kernels_pick(isas[i]);
        if (kernels != NULL)
            CHECK(LOCUS_LAYER_BLOCK % kernels->linear->inner == 0, "%s: %d", kernels->isa,
                  (int)kernels->linear->inner);
    }
    CHECK(LOCUS_LAYER_BLOCK % LOCUS_ROW_BLOCK == 0, "sums of biases");
}

/* ---- results and their gradients alone ---- */

static void test_results(void)
{
    if (!check_begin("layer-half/results")) return;
    test_problem *p = layer_problem(3);
    locus_error error = {""};
    halves dout = halves_of(&p->dout[1], LOCUS_BF16);
    CHECK(test_problem_run(p, TEST_FLOAT, 1, &error) == LOCUS_OK, "%s", error.text);
    halves out = halves_new(&p->results[1].out, LOCUS_F16);
    halves lse = halves_new(&p->results[1].lse, LOCUS_BF16);
    half_call none = {.grad = p->grad[1]};
    const locus_tensors grad = own_gradients(&none, 0);
    run r = {.config = &p->config,
             .in = &p->in[1],
             .grad = &grad,
             .results = {.size = sizeof r.results, .out = out.view, .lse = lse.view},
             .dresults = test_problem_gradient(p, TEST_FLOAT)};
    r.dresults.out = dout.view;
    CHECK(run_layer(&r, &error) == LOCUS_OK, "%s", error.text);
    CHECK(halves_are_rounded(&out, &p->results[1].out), "out is not that of floats, rounded");
    CHECK(halves_are_rounded(&lse, &p->results[1].lse), "lse is not that of floats, rounded");
    check_gradients(&none, &grad, &p->grad[1]);
    free(out.memory);
    free(lse.memory);
    free(dout.memory);
    test_problem_free(p);
}

/* ---- LOCUS_ACCUMULATE ---- */

/* What was there and the new gradient are added in float, and rounded once. */
static void test_accumulate(size_t i, int way)
{
    const float start = 0.75f; /* in all types */
    if (!check_begin("layer-half/accumulate/%s-%d/%s", layer_specs[i].scheme, (int)i, ways[way]))
        return;
    test_problem *p = layer_problem(i);
    locus_error error = {""};
    half_call c, floats = {.grad = p->grad[1]};
    half_call_new(&c, p, way);
    const locus_tensors wanted = own_gradients(&floats, start);
    const locus_tensors grad = own_gradients(&c, start);
    run r = {.config = &p->config,
             .in = &p->in[1],
             .grad = &wanted,
             .results = p->results[1],
             .dresults = test_problem_gradient(p, TEST_FLOAT),
             .flags = LOCUS_ACCUMULATE};
    CHECK(run_layer(&r, &error) == LOCUS_OK, "%s", error.text);
    r.in = &c.in;
    r.grad = &grad;
    r.results.out = c.out.view;
    r.dresults.out = c.dout.view;
    CHECK(run_layer(&r, &error) == LOCUS_OK, "%s", error.text);
    check_gradients(&c, &grad, &wanted);
    for (size_t k = 0; k < LOCUS_TENSOR_COUNT; k++) {
        const locus_tensor *t = locus_tensor_at_const(&wanted, k);
        if (t->rank != 0) free(t->data);
    }
    half_call_free(&c);
    test_problem_free(p);
}

/* ---- place in the batch ---- */

static locus_tensor entry(const locus_tensor *t, int64_t b)
{
    locus_tensor one = *t;
    one.shape[0] = 1;
    one.data = (char *)t->data + (size_t)(b * t->stride[0]) * locus_dtype_bytes(t->dtype);
    return one;
}

/* Equal halves, or floats, of two views of one shape. */
static int same_numbers(const locus_tensor *a, const locus_tensor *b)
{
    const size_t bytes = locus_dtype_bytes(a->dtype);
    int same = 1;
    for (int64_t i = 0; i < locus_tensor_elements(a); i++)
        same &= memcmp((const char *)a->data + halves_place(a, i) * bytes,
                       (const char *)b->data + halves_place(b, i) * bytes, bytes) == 0;
    return same;
}

/* Each entry of a batch alone gives the bits that it has among the others. */
static void test_batch(void)
{
    if (!check_begin("layer-half/batch")) return;
    test_spec spec = large[0];
    spec.level = LOCUS_LAYER;
    spec.H = 2;
    spec.E = 33;
    test_problem *p = test_problem_new(&spec);
    locus_error error = {""};
    half_call c;
    half_call_new(&c, p, 1);
    run all = {.config = &p->config,
               .in = &c.in,
               .grad = &c.grad,
               .results = p->results[1],
               .dresults = {.size = sizeof all.dresults, .out = c.dout.view}};
    all.results.out = c.out.view;
    CHECK(run_layer(&all, &error) == LOCUS_OK, "%s", error.text);
    for (int64_t b = 0; b < spec.B; b++) {
        locus_tensors in = c.in, grad = {.size = sizeof grad};
        in.x = entry(&c.in.x, b);
        const locus_tensor shape = locus_view(NULL, LOCUS_BF16, 3, (int64_t[]){1, spec.Tq, spec.E});
        halves out = halves_new(&shape, LOCUS_BF16);
        halves dx = halves_new(&in.x, LOCUS_BF16);
        const locus_tensor out_there = entry(&c.out.view, b), dx_there = entry(&c.grad.x, b);
        grad.x = dx.view;
        run one = all;
        one.in = &in;
        one.grad = &grad;
        one.results.out = out.view;
        one.results.lse = entry(&p->results[1].lse, b);
        one.dresults.out = entry(&c.dout.view, b);
        CHECK(run_layer(&one, &error) == LOCUS_OK, "%s", error.text);
        CHECK(same_numbers(&out.view, &out_there), "out of entry %d depends on the others", (int)b);
        CHECK(same_numbers(&dx.view, &dx_there), "grad.x of entry %d depends on the others",
              (int)b);
        free(out.memory);
        free(dx.memory);
    }
    half_call_free(&c);
    test_problem_free(p);
}

/* ---- memory ---- */

/* Halves need rooms beside what floats need, and those do not grow with the rows. */
static void test_memory(void)
{
    if (!check_begin("layer-half/memory")) return;
    for (int i = 0; i < 2; i++) {
        const int64_t T = i == 0 ? 2000 : 6000, E = 32;
        size_t bytes[2][2];
        for (int half = 0; half < 2; half++) {
            const locus_dtype type = half ? LOCUS_BF16 : LOCUS_F32;
            locus_config config;
            locus_layer *layer = NULL;
            locus_error error = {""};
            locus_tensors shapes = {.size = sizeof shapes};
            shapes.x = locus_view(NULL, type, 3, (const int64_t[]){1, T, E});
            shapes.w_q = shapes.w_k = shapes.w_v = shapes.w_o =
                locus_view(NULL, type, 2, (const int64_t[]){E, E});
            CHECK(locus_config_init(&config, "none") == LOCUS_OK, "config");
            config.heads = 2;
            config.threads = 1;
            CHECK(locus_layer_new(&layer, &config, &shapes, &error) == LOCUS_OK, "%s", error.text);
            bytes[half][0] = locus_layer_forward_workspace(layer);
            bytes[half][1] = locus_layer_backward_workspace(layer);
            locus_layer_free(layer);
        }
        for (int k = 0; k < 2; k++)
            CHECK(bytes[1][k] <= bytes[0][k] + (size_t)(3 * 512 * E * 4),
                  "%zu bytes for floats, %zu for halves", bytes[0][k], bytes[1][k]);
    }
}

/* ---- refusals ---- */

static void expect_words(locus_status status, const locus_error *error, const char *words)
{
    CHECK(status == LOCUS_ERR_TENSOR && strstr(error->text, words) != NULL,
          "\"%s\" does not say \"%s\"", error->text, words);
    CHECK(strchr(error->text, '\n') == NULL, "more than a line");
}

static void test_refused(void)
{
    if (!check_begin("layer-half/refused")) return;
    test_problem *p = layer_problem(0);
    half_call c;
    half_call_new(&c, p, 0);
    locus_layer *of_floats = NULL, *of_halves = NULL, *none = NULL;
    locus_error error = {""};
    CHECK(locus_layer_new(&of_floats, &p->config, &p->in[1], &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_layer_new(&of_halves, &p->config, &c.in, &error) == LOCUS_OK, "%s", error.text);
    run r = {.in = &c.in,
             .grad = &p->grad[1],
             .results = p->results[1],
             .dresults = test_problem_gradient(p, TEST_FLOAT)};
    expect_words(run_passes(&r, of_floats, NULL, &error), &error,
                 "tensor x: found another type, expected F32");
    locus_tensors in = c.in;
    in.w_k.dtype = LOCUS_BF16;
    r.in = &in;
    expect_words(run_passes(&r, of_halves, NULL, &error), &error,
                 "tensor w_k: found another type, expected F16");
    r.in = &p->in[1];
    locus_tensors grad = p->grad[1];
    grad.x = c.grad.x;
    r.grad = &grad;
    expect_words(run_passes(&r, of_floats, NULL, &error), &error,
                 "tensor grad.x: found another type, expected F32");
    r.in = &c.in;
    grad.x.dtype = LOCUS_I64;
    expect_words(run_passes(&r, of_halves, NULL, &error), &error,
                 "tensor grad.x: found another type, expected F32, F16 or BF16");
    r.dresults.out.dtype = LOCUS_U8;
    expect_words(run_passes(&r, of_halves, NULL, &error), &error,
                 "tensor dout: found another type, expected F32, F16 or BF16");
    r.results.out.dtype = LOCUS_F64;
    expect_words(run_passes(&r, of_halves, NULL, &error), &error,
                 "tensor out: found another type, expected F32, F16 or BF16");
    in = p->in[1];
    in.sink = locus_view(NULL, LOCUS_F16, 1, &(int64_t){layer_specs[0].H});
    expect_words(locus_layer_new(&none, &p->config, &in, &error), &error, "tensor sink: found F16");
    CHECK(none == NULL, "a layer came out");
    locus_layer_free(of_floats);
    locus_layer_free(of_halves);
    half_call_free(&c);
    test_problem_free(p);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t i = 0; i < LAYER_SPECS; i++) {
        test_spec spec = layer_specs[i];
        char name[64];
        spec.level = LOCUS_LAYER;
        spec.seed = i + 1;
        snprintf(name, sizeof name, "%s-%d", spec.scheme, (int)i);
        for (int way = 0; way < WAYS; way++)
            if (!check_sample() || way == (int)i % WAYS) test_same(&spec, name, way, 1);
        test_accumulate(i, (int)i % WAYS);
    }
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        test_spec spec = large[i];
        spec.level = LOCUS_LAYER;
        for (int way = 0; way < WAYS; way++)
            if (way == (int)i || (!check_sample() && i > 0))
                test_same(&spec, large_names[i], way, 0);
    }
    test_cuts();
    test_multiple();
    test_results();
    test_batch();
    test_memory();
    test_refused();
    return check_finish("layer-half");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The manners of the calls: refusals, accumulation, selective gradients, guard pages,
 * failing allocations. */

#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "contract/variants.h"
#include "support/allocator.h"
#include "support/check.h"

static const test_spec small = {.B = 2, .H = 2, .Tq = 9, .Tk = 9, .D = 4};
static const test_variant plain = {"none", "none", NULL, NULL, NULL};

typedef struct call {
    test_problem *p;
    locus_plan *plan;
    size_t bytes;
    char *workspace;
} call;

static call begin(const test_variant *v, test_spec shape)
{
    call c = {.p = test_variant_problem(v, shape)};
    locus_error error = {{0}};
    CHECK(locus_plan_new(&c.plan, &c.p->config, &c.p->in[1], &error) == LOCUS_OK, "%s", error.text);
    c.bytes = locus_forward_workspace(c.plan) > locus_backward_workspace(c.plan)
                  ? locus_forward_workspace(c.plan)
                  : locus_backward_workspace(c.plan);
    c.workspace = malloc(c.bytes);
    return c;
}

static void end(call *c)
{
    free(c->workspace);
    locus_plan_free(c->plan);
    test_problem_free(c->p);
}

static locus_status forward(const call *c, const locus_tensors *in, const locus_results *results,
                            size_t bytes, locus_error *error)
{
    return locus_forward(c->plan, in, results, c->workspace, bytes, error);
}

static locus_status backward(const call *c, const locus_tensors *grad, uint32_t flags,
                             locus_error *error)
{
    const locus_results dresults = test_problem_gradient(c->p, TEST_FLOAT);
    return locus_backward(c->plan, &c->p->in[1], &c->p->results[1], &dresults, grad, flags,
                          c->workspace, c->bytes, error);
}

/* ---- refusals ---- */

static void expect(locus_status got, locus_status want, const locus_error *error,
                   const char *mention)
{
    CHECK(got == want, "status %s, expected %s", locus_status_text(got), locus_status_text(want));
    CHECK(strstr(error->text, mention) != NULL, "\"%s\" does not mention %s", error->text, mention);
}

static void test_refusals(void)
{
    if (!check_begin("calls/refusals")) return;
    call c = begin(&plain, small);
    locus_error error = {{0}};
    locus_tensors in = c.p->in[1];
    locus_results results = c.p->results[1];

    expect(forward(&c, &in, &results, locus_forward_workspace(c.plan) - 1, &error),
           LOCUS_ERR_WORKSPACE, &error, "workspace");
    in.k.shape[2] = 8;
    expect(forward(&c, &in, &results, c.bytes, &error), LOCUS_ERR_TENSOR, &error, "tensor k");
    in = c.p->in[1];
    in.v.dtype = LOCUS_F64;
    expect(forward(&c, &in, &results, c.bytes, &error), LOCUS_ERR_TENSOR, &error, "tensor v");
    in = c.p->in[1];
    in.bias = in.q;
    expect(forward(&c, &in, &results, c.bytes, &error), LOCUS_ERR_TENSOR, &error, "tensor bias");
    in = c.p->in[1];
    in.q.data = NULL;
    expect(forward(&c, &in, &results, c.bytes, &error), LOCUS_ERR_TENSOR, &error, "tensor q");
    in = c.p->in[1];
    in.q.stride[3] = 2;
    expect(forward(&c, &in, &results, c.bytes, &error), LOCUS_ERR_TENSOR, &error, "tensor q");
    in = c.p->in[1];
    results.out.data = in.q.data;
    expect(forward(&c, &in, &results, c.bytes, &error), LOCUS_ERR_OVERLAP, &error, "out");
    results.out.data = (float *)in.k.data + 1;
    expect(forward(&c, &in, &results, c.bytes, &error), LOCUS_ERR_OVERLAP, &error, "out");
    expect(forward(&c, NULL, &results, c.bytes, &error), LOCUS_ERR_ARGUMENT, &error, "NULL");
    end(&c);
}

static void test_gradient_refusals(void)
{
    if (!check_begin("calls/gradient-refusals")) return;
    static const test_variant masked = {"masked", "none", NULL, "key_mask", NULL};
    call c = begin(&masked, small);
    locus_error error = {{0}};
    CHECK(forward(&c, &c.p->in[1], &c.p->results[1], c.bytes, &error) == LOCUS_OK, "forward");
    locus_tensors grad = c.p->grad[1];
    grad.k.data = grad.q.data;
    expect(backward(&c, &grad, 0, &error), LOCUS_ERR_OVERLAP, &error, "overlaps");
    grad = c.p->grad[1];
    grad.q.data = c.p->results[1].out.data;
    expect(backward(&c, &grad, 0, &error), LOCUS_ERR_OVERLAP, &error, "out");
    grad = c.p->grad[1];
    grad.key_mask = c.p->in[1].key_mask;
    expect(backward(&c, &grad, 0, &error), LOCUS_ERR_TENSOR, &error, "mask");
    grad = c.p->grad[1];
    expect(backward(&c, &grad, 6, &error), LOCUS_ERR_ARGUMENT, &error, "flag");
    end(&c);
}

/* Tables belong to one plan and one direction. */
static void test_table_refusals(void)
{
    if (!check_begin("calls/table-refusals")) return;
    static const test_variant shaw = {"shaw", "shaw", "clip_left=2 clip_right=2", NULL, NULL};
    call c = begin(&shaw, small), other = begin(&shaw, small);
    locus_tensors *in = &c.p->in[1], *grad = &c.p->grad[1];
    const locus_results *results = &c.p->results[1];
    const locus_results dresults = test_problem_gradient(c.p, TEST_FLOAT);
    locus_tables *ahead = NULL, *back = NULL, *none = NULL;
    locus_error error = {{0}};
    CHECK(locus_tables_new(&ahead, c.plan, in, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_tables_new_backward(&back, c.plan, in, &error) == LOCUS_OK, "%s", error.text);
#define FORWARD(plan, tables)                                                                      \
    locus_forward_prepared(plan, tables, in, results, c.workspace, c.bytes, &error)
#define BACKWARD(plan, tables)                                                                     \
    locus_backward_prepared(plan, tables, in, results, &dresults, grad, 0, c.workspace, c.bytes,   \
                            &error)
    expect(FORWARD(c.plan, NULL), LOCUS_ERR_ARGUMENT, &error, "found NULL");
    expect(FORWARD(other.plan, ahead), LOCUS_ERR_ARGUMENT, &error, "another plan");
    expect(FORWARD(c.plan, back), LOCUS_ERR_ARGUMENT, &error, "the other direction");
    expect(BACKWARD(c.plan, NULL), LOCUS_ERR_ARGUMENT, &error, "found NULL");
    expect(BACKWARD(other.plan, back), LOCUS_ERR_ARGUMENT, &error, "another plan");
    expect(BACKWARD(c.plan, ahead), LOCUS_ERR_ARGUMENT, &error, "the other direction");
    CHECK(FORWARD(c.plan, ahead) == LOCUS_OK && BACKWARD(c.plan, back) == LOCUS_OK, "%s",
          error.text);
#undef FORWARD
#undef BACKWARD
    in->rel_k.dtype = LOCUS_BF16;
    expect(locus_tables_new_backward(&none, c.plan, in, &error), LOCUS_ERR_TENSOR, &error,
           "tensor rel_k");
    in->rel_k.dtype = LOCUS_F32;
    in->rel_v.data = NULL;
    expect(locus_tables_new_backward(&none, c.plan, in, &error), LOCUS_ERR_TENSOR, &error,
           "tensor rel_v: found no data");
    CHECK(none == NULL, "tables came out");
    expect(locus_tables_new_backward(&none, c.plan, NULL, &error), LOCUS_ERR_ARGUMENT, &error,
           "NULL");
    locus_tables_free(ahead);
    locus_tables_free(back);
    end(&c);
    end(&other);
}

/* Strides of out, [B,H,T,D] = [2,2,9,4]: those that nest are taken, others write an element twice. */
static void test_self_overlap(void)
{
    static const struct {
        const char *what;
        int64_t stride[4];
        int fits;
    } layouts[] = {
        {"bhtd", {72, 36, 4, 1}, 1},       {"bthd", {72, 4, 8, 1}, 1},
        {"hbtd", {36, 72, 4, 1}, 1},       {"padded", {90, 45, 5, 1}, 1},
        {"rows-0", {72, 36, 0, 1}, 0},     {"heads-0", {72, 0, 4, 1}, 0},
        {"batch-0", {0, 36, 4, 1}, 0},     {"rows-below-width", {72, 36, 3, 1}, 0},
        {"heads-meet", {72, 35, 4, 1}, 0}, {"batches-meet", {71, 36, 4, 1}, 0},
    };
    call c = begin(&plain, small);
    float room[512];
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (!check_begin("calls/self-overlap/%s", layouts[i].what)) continue;
        locus_error error = {{0}};
        locus_results results = c.p->results[1];
        locus_tensors grad = {.size = sizeof grad, .q = results.out};
        results.out.data = grad.q.data = room;
        memcpy(results.out.stride, layouts[i].stride, sizeof layouts[i].stride);
        memcpy(grad.q.stride, layouts[i].stride, sizeof layouts[i].stride);
        const locus_status want = layouts[i].fits ? LOCUS_OK : LOCUS_ERR_OVERLAP;
        expect(forward(&c, &c.p->in[1], &results, c.bytes, &error), want, &error,
               layouts[i].fits ? "" : "output out overlaps itself");
        expect(backward(&c, &grad, 0, &error), want, &error,
               layouts[i].fits ? "" : "q overlaps itself");
    }
    if (check_begin("calls/self-overlap/lse")) {
        locus_error error = {{0}};
        locus_results results = c.p->results[1];
        results.lse.stride[1] = 8; /* of 9 queries */
        expect(forward(&c, &c.p->in[1], &results, c.bytes, &error), LOCUS_ERR_OVERLAP, &error,
               "output lse overlaps itself");
    }
    end(&c);
}

/* One rule for every block of the caller's: see include/locus/attention.h. */
static void test_workspace_address(void)
{
    if (!check_begin("calls/workspace-address")) return;
    call c = begin(&plain, small);
    const locus_tensors *in = &c.p->in[1];
    const locus_results *results = &c.p->results[1];
    char *const memory = c.workspace, *const room = malloc(c.bytes + 64);
    for (size_t shift = 0; shift < 64; shift++) {
        locus_error error = {{0}};
        const locus_status want = shift % 8 == 0 ? LOCUS_OK : LOCUS_ERR_ARGUMENT;
        const char *mention = shift % 8 == 0 ? "" : "workspace: found address";
        c.workspace = room + shift;
        expect(forward(&c, in, results, c.bytes, &error), want, &error, mention);
        expect(backward(&c, &c.p->grad[1], 0, &error), want, &error, mention);
    }
    locus_error error = {{0}};
    c.workspace = NULL;
    expect(forward(&c, in, results, c.bytes, &error), LOCUS_ERR_ARGUMENT, &error, "found NULL");
    expect(backward(&c, &c.p->grad[1], 0, &error), LOCUS_ERR_ARGUMENT, &error, "found NULL");
    c.workspace = memory;
    free(room);
    end(&c);
}

static void test_config_refusals(void)
{
    static const struct {
        const char *what;
        locus_status status;
        int64_t window;
        double scale, dropout;
        uint32_t causal, threads;
        const char *scheme, *isa;
    } wrong[] = {
        {"window", LOCUS_ERR_OPTION, -2, 1.0, 0.0, 0, 1, "none", NULL},
        {"scale", LOCUS_ERR_OPTION, -1, (double)NAN, 0.0, 0, 1, "none", NULL},
        {"dropout", LOCUS_ERR_OPTION, -1, 1.0, 1.0, 0, 1, "none", NULL},
        {"causal", LOCUS_ERR_OPTION, -1, 1.0, 0.0, 2, 1, "none", NULL},
        {"threads", LOCUS_ERR_OPTION, -1, 1.0, 0.0, 0, 100000, "none", NULL},
        {"scheme", LOCUS_ERR_SCHEME, -1, 1.0, 0.0, 0, 1, "nones", NULL},
        {"isa", LOCUS_ERR_ISA, -1, 1.0, 0.0, 0, 1, "none", "sse9"},
    };
    test_problem *p = test_variant_problem(&plain, small);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (!check_begin("calls/config/%s", wrong[i].what)) continue;
        locus_config config = p->config;
        locus_plan *plan = (locus_plan *)p;
        locus_error error = {{0}};
        config.window_left = wrong[i].window;
        config.scale = wrong[i].scale;
        config.dropout = wrong[i].dropout;
        config.causal = wrong[i].causal;
        config.threads = wrong[i].threads;
        config.scheme = wrong[i].scheme;
        config.isa = wrong[i].isa;
        expect(locus_plan_new(&plan, &config, &p->in[1], &error), wrong[i].status, &error,
               wrong[i].what);
        CHECK(plan == NULL, "the plan must be NULL after a failure");
    }
    test_problem_free(p);
}

/* ---- accumulate, select ---- */

static void test_accumulate(const test_variant *v)
{
    if (!check_begin("calls/accumulate/%s", v->name)) return;
    call c = begin(v, small);
    locus_error error = {{0}};
    CHECK(forward(&c, &c.p->in[1], &c.p->results[1], c.bytes, &error) == LOCUS_OK, "forward");
    CHECK(backward(&c, &c.p->grad[1], 0, &error) == LOCUS_OK, "%s", error.text);
    test_problem *twice = test_variant_problem(v, small);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(&twice->grad[1], i);
        for (int64_t e = 0; e < locus_tensor_elements(t); e++) test_set_value(t, e, 3.0);
    }
    CHECK(backward(&c, &twice->grad[1], LOCUS_ACCUMULATE, &error) == LOCUS_OK, "%s", error.text);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *once = locus_tensor_at_const(&c.p->grad[1], i);
        const locus_tensor *added = locus_tensor_at_const(&twice->grad[1], i);
        for (int64_t e = 0; e < locus_tensor_elements(once); e++)
            CHECK(fabs(test_value(added, e) - test_value(once, e) - 3.0) < 1e-5, "grad.%s at %d",
                  locus_tensor_name(i), (int)e);
    }
    test_problem_free(twice);
    end(&c);
}

/* Each gradient asked for alone has the same bits as among the others. */
static void test_select(const test_variant *v)
{
    if (!check_begin("calls/select/%s", v->name)) return;
    call c = begin(v, small);
    locus_error error = {{0}};
    CHECK(forward(&c, &c.p->in[1], &c.p->results[1], c.bytes, &error) == LOCUS_OK, "forward");
    CHECK(backward(&c, &c.p->grad[1], 0, &error) == LOCUS_OK, "%s", error.text);
    test_problem *other = test_variant_problem(v, small);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *all = locus_tensor_at_const(&c.p->grad[1], i);
        if (all->rank == 0) continue;
        locus_tensors alone = {.size = sizeof alone};
        *locus_tensor_at(&alone, i) = *locus_tensor_at(&other->grad[1], i);
        CHECK(backward(&c, &alone, 0, &error) == LOCUS_OK, "%s", error.text);
        CHECK(memcmp(locus_tensor_at(&alone, i)->data, all->data,
                     (size_t)locus_tensor_elements(all) * sizeof(float)) == 0,
              "grad.%s alone differs", locus_tensor_name(i));
    }
    test_problem_free(other);
    end(&c);
}

/* ---- guard pages ---- */

/* Memory of exactly `bytes` that ends at a page without access. */
static void *guarded(size_t bytes, void **base, size_t *mapped)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t room = (bytes + page - 1) / page * page;
    *mapped = room + page;
    *base = mmap(NULL, *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*base == MAP_FAILED) return NULL;
    mprotect((char *)*base + room, page, PROT_NONE);
    return (char *)*base + room - bytes;
}

static void guard_tensor(locus_tensor *t, void **base, size_t *mapped)
{
    const size_t bytes = (size_t)locus_tensor_elements(t) * (t->dtype == LOCUS_U8 ? 1 : 4);
    void *memory = guarded(bytes, base, mapped);
    memcpy(memory, t->data, bytes);
    t->data = memory;
}

static void test_guards(const test_variant *v, test_spec shape)
{
    enum { MOST = 2 * LOCUS_TENSOR_COUNT + 4 };
    if (!check_begin("calls/guards/%s/q%dk%dd%d", v->name, (int)shape.Tq, (int)shape.Tk,
                     (int)shape.D))
        return;
    call c = begin(v, shape);
    void *bases[MOST];
    size_t sizes[MOST], count = 0;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        locus_tensor *in = locus_tensor_at(&c.p->in[1], i), *g = locus_tensor_at(&c.p->grad[1], i);
        if (in->rank != 0) guard_tensor(in, &bases[count], &sizes[count]), count++;
        if (g->rank != 0) guard_tensor(g, &bases[count], &sizes[count]), count++;
    }
    guard_tensor(&c.p->results[1].out, &bases[count], &sizes[count]), count++;
    guard_tensor(&c.p->results[1].lse, &bases[count], &sizes[count]), count++;
    guard_tensor(&c.p->dout[1], &bases[count], &sizes[count]), count++;
    free(c.workspace);
    c.workspace = guarded(c.bytes, &bases[count], &sizes[count]), count++;
    locus_error error = {{0}};
    CHECK(forward(&c, &c.p->in[1], &c.p->results[1], c.bytes, &error) == LOCUS_OK, "%s",
          error.text);
    CHECK(backward(&c, &c.p->grad[1], 0, &error) == LOCUS_OK, "%s", error.text);
    for (size_t i = 0; i < count; i++) munmap(bases[i], sizes[i]);
    c.workspace = NULL;
    end(&c);
}

/* ---- allocation failure ---- */

static void test_allocation(const test_variant *v)
{
    if (!check_begin("calls/allocation/%s", v->name)) return;
    test_problem *p = test_variant_problem(v, small);
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (size_t k = 1;; k++) {
            test_allocator memory;
            test_allocator_init(&memory);
            memory.fail_at = k;
            memory.fail_for_ever = for_ever;
            p->config.allocator = &memory.interface;
            locus_plan *plan = NULL;
            locus_error error = {{0}};
            locus_tables *ahead = NULL, *back = NULL;
            locus_status status = locus_plan_new(&plan, &p->config, &p->in[1], &error);
            if (status == LOCUS_OK) status = locus_tables_new(&ahead, plan, &p->in[1], &error);
            if (status == LOCUS_OK)
                status = locus_tables_new_backward(&back, plan, &p->in[1], &error);
            const int whole = back != NULL;
            locus_tables_free(ahead);
            locus_tables_free(back);
            locus_plan_free(plan);
            CHECK(memory.live_blocks == 0 && memory.misuse == 0, "leak at allocation %zu", k);
            if (memory.failures == 0) {
                CHECK(status == LOCUS_OK, "%s", error.text);
                break;
            }
            CHECK(status == LOCUS_ERR_MEMORY && !whole, "allocation %zu: %s", k,
                  locus_status_text(status));
        }
    test_problem_free(p);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_refusals();
    test_gradient_refusals();
    test_table_refusals();
    test_self_overlap();
    test_workspace_address();
    test_config_refusals();
    for (size_t v = 0; v < TEST_VARIANTS; v += (check_sample() ? 2 : 1)) {
        test_accumulate(&test_variants[v]);
        test_select(&test_variants[v]);
        test_allocation(&test_variants[v]);
        test_guards(&test_variants[v], (test_spec){.B = 1, .H = 2, .Tq = 65, .Tk = 67, .D = 6});
        test_guards(&test_variants[v], (test_spec){.B = 1, .H = 1, .Tq = 3, .Tk = 64, .D = 14});
    }
    return check_finish("calls");
}

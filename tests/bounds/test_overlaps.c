/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that share a byte with something else are refused: every output of both directions on
 * every tensor of a call. */

#include <stdlib.h>
#include <string.h>

#include "contract/variants.h"
#include "support/check.h"

static const test_spec small = {.B = 2, .H = 2, .Tq = 9, .Tk = 9, .D = 4};

typedef struct call {
    test_problem *p;
    locus_plan *plan;
    size_t bytes;
    char *workspace;
} call;

static call begin(const test_variant *v)
{
    call c = {.p = test_variant_problem(v, small)};
    locus_error error = {{0}};
    CHECK(locus_plan_new(&c.plan, &c.p->config, &c.p->in[1], &error) == LOCUS_OK, "%s", error.text);
    c.bytes = locus_forward_workspace(c.plan) + locus_backward_workspace(c.plan);
    c.workspace = malloc(c.bytes);
    return c;
}

static void end(call *c)
{
    free(c->workspace);
    locus_plan_free(c->plan);
    test_problem_free(c->p);
}

/* All tensors of a call, with the views that a case may move. */
typedef struct views {
    locus_tensors in, grad;
    locus_results results;
    locus_tensor dout;
} views;

static views views_of(const call *c)
{
    return (views){c->p->in[1], c->p->grad[1], c->p->results[1], c->p->dout[1]};
}

static char *shared; /* room for two tensors */

/* Move both into `shared`, where the last element of `on` is the first one of `output`. */
static void place(locus_tensor *output, locus_tensor *on)
{
    const size_t bytes = on->dtype == LOCUS_U8 ? 1 : sizeof(float);
    const size_t last = ((size_t)locus_tensor_elements(on) - 1) * bytes;
    on->data = shared + (sizeof(float) - last % sizeof(float)) % sizeof(float);
    output->data = (char *)on->data + last;
}

static void refuse(const call *c, const views *v, int is_forward, const char *output,
                   const char *on)
{
    locus_error error = {{0}};
    const locus_results dresults = {.size = sizeof dresults, .out = v->dout};
    const locus_status status =
        is_forward ? locus_forward(c->plan, &v->in, &v->results, c->workspace, c->bytes, &error)
                   : locus_backward(c->plan, &v->in, &v->results, &dresults, &v->grad, 0,
                                    c->workspace, c->bytes, &error);
    CHECK(status == LOCUS_ERR_OVERLAP, "%s on %s: status %s", output, on,
          locus_status_text(status));
    CHECK(strstr(error.text, output) != NULL && strstr(error.text, on) != NULL,
          "\"%s\" does not mention %s and %s", error.text, output, on);
}

static void refuse_results(const call *c)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        for (int lse = 0; lse < 2; lse++) {
            views v = views_of(c);
            locus_tensor *on = locus_tensor_at(&v.in, i);
            if (on->rank == 0) continue;
            place(lse ? &v.results.lse : &v.results.out, on);
            refuse(c, &v, 1, lse ? "lse" : "out", locus_tensor_name(i));
        }
    views v = views_of(c);
    place(&v.results.out, &v.results.lse);
    refuse(c, &v, 1, "out", "lse");
    v = views_of(c);
    place(&v.results.lse, &v.results.out);
    refuse(c, &v, 1, "out", "lse");
}

/* Tensor `on` of a call: the inputs, the other gradients, then dout, out and lse. */
static locus_tensor *tensor_of(views *v, size_t on, const char **name)
{
    static const char *const last[] = {"dout", "out", "lse"};
    locus_tensor *const rest[] = {&v->dout, &v->results.out, &v->results.lse};
    const size_t count = LOCUS_TENSOR_COUNT;
    *name = on < 2 * count ? locus_tensor_name(on % count) : last[on - 2 * count];
    return on < count       ? locus_tensor_at(&v->in, on)
           : on < 2 * count ? locus_tensor_at(&v->grad, on - count)
                            : rest[on - 2 * count];
}

static void refuse_gradient(const call *c, size_t index)
{
    if (locus_tensor_at_const(&c->p->grad[1], index)->rank == 0) return;
    for (size_t on = 0; on < 2 * LOCUS_TENSOR_COUNT + 3; on++) {
        views v = views_of(c);
        const char *name;
        locus_tensor *other = tensor_of(&v, on, &name), *output = locus_tensor_at(&v.grad, index);
        if (other->rank == 0 || other == output) continue;
        place(output, other);
        refuse(c, &v, 0, locus_tensor_name(index), name);
    }
}

/* Every output of both directions on every tensor of the call. */
static void test_overlaps(const test_variant *v)
{
    if (!check_begin("bounds/overlaps/%s", v->name)) return;
    call c = begin(v);
    shared = malloc((size_t)1 << 20);
    refuse_results(&c);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) refuse_gradient(&c, i);
    free(shared);
    end(&c);
}

/* Side by side in one block of memory is not an overlap. */
static void test_neighbours(void)
{
    if (!check_begin("bounds/neighbours")) return;
    call c = begin(&test_variants[0]);
    const int64_t each = locus_tensor_elements(&c.p->in[1].q);
    float *block = calloc((size_t)(3 * each), sizeof *block);
    locus_results results = c.p->results[1];
    locus_tensors in = c.p->in[1];
    locus_error error = {{0}};
    in.q.data = block;
    results.out.data = block + each;
    results.lse.data = block + 2 * each;
    CHECK(locus_forward(c.plan, &in, &results, c.workspace, c.bytes, &error) == LOCUS_OK, "%s",
          error.text);
    free(block);
    end(&c);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t v = 0; v < TEST_VARIANTS; v += check_sample() ? 2 : 1)
        test_overlaps(&test_variants[v]);
    test_neighbours();
    return check_finish("bounds/overlaps");
}

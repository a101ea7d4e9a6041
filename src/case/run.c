/* SPDX-License-Identifier: Apache-2.0 */
#include <locus/layer.h>
#include <locus/oracle.h>
#include <stdio.h>
#include <string.h>

#include "case/case.h"
#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "core/tensor.h"

/* ---- memory of the results ---- */

static void add_result(case_results *results, const char *prefix, const char *name, size_t slot,
                       const locus_tensor *shape, locus_dtype dtype)
{
    case_result *r = &results->list[results->count++];
    snprintf(r->name, sizeof r->name, "%s%s", prefix, name);
    r->slot = slot;
    r->tensor = locus_view(NULL, dtype, shape->rank, shape->shape);
}

/* Does the declaration of this input say that it has one? */
static int has_gradient(const locus_case *c, const char *name)
{
    const locus_tensor_info *info = locus_case_declaration(c, name);
    return info != NULL && (info->uses & LOCUS_USE_GRADIENT) != 0;
}

static void list_results(const locus_case *c, case_results *results, locus_dtype dtype)
{
    add_result(results, "", "out", CASE_OUT, &c->out_shape, dtype);
    add_result(results, "", "lse", CASE_LSE, &c->lse_shape, dtype);
    for (size_t i = 0; c->grad && i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(&c->inputs, i);
        if (locus_present(t) && has_gradient(c, locus_tensor_name(i)))
            add_result(results, "grad.", locus_tensor_name(i), CASE_GRADS + i, t, dtype);
    }
}

static int bytes_of(const locus_tensor *t, uint64_t *bytes)
{
    uint64_t extents[LOCUS_MAX_RANK + 1];
    for (uint32_t i = 0; i < t->rank; i++) extents[i] = (uint64_t)t->shape[i];
    extents[t->rank] = locus_dtype_bytes(t->dtype);
    return locus_product_u64(bytes, extents, t->rank + 1) &&
           locus_pad_u64(bytes, *bytes, LOCUS_ALIGNMENT);
}

static locus_status allocate_results(const locus_case *c, case_results *results, locus_error *error)
{
    uint64_t total = 0, bytes = 0;
    size_t size = 0;
    int fits = 1;
    for (size_t i = 0; i < results->count; i++)
        fits = fits && bytes_of(&results->list[i].tensor, &bytes) &&
               locus_add_u64(&total, total, bytes);
    if (fits && locus_to_size(&size, total))
        results->memory = locus_allocate(c->allocator, size, 1);
    if (results->memory == NULL)
        return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the results");
    char *at = results->memory;
    for (size_t i = 0; i < results->count; i++) {
        results->list[i].tensor.data = at;
        if (bytes_of(&results->list[i].tensor, &bytes)) at += bytes;
    }
    return LOCUS_OK;
}

/* ---- the three ways to run ---- */

/* What a run reads and writes. */
typedef struct run {
    const locus_case *c;
    locus_config config;
    locus_results results;
    locus_tensors grad;
    case_results *into;
} run;

static void note_plan(run *r, const locus_plan *plan)
{
    locus_plan_info info = {.size = sizeof info};
    locus_plan_describe(plan, &info);
    snprintf(r->into->isa, sizeof r->into->isa, "%s", info.isa);
    snprintf(r->into->path, sizeof r->into->path, "%s", info.path);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static locus_status allocate_work(const run *r, size_t bytes, void **memory, locus_error *error)
{
    *memory = locus_allocate(r->c->allocator, bytes, 1);
    if (*memory != NULL) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for %zu bytes of workspace", bytes);
}

static locus_status compute_attend(const run *r, const locus_plan *plan, locus_error *error)
{
    const locus_case *c = r->c;
    const size_t backward = c->grad ? locus_backward_workspace(plan) : 0;
    const size_t bytes = larger(locus_forward_workspace(plan), backward);
    void *work = NULL;
    LOCUS_TRY(allocate_work(r, bytes, &work, error));
    locus_status status = locus_forward(plan, &c->inputs, &r->results, work, bytes, error);
    if (status == LOCUS_OK && c->grad)
        status = locus_backward(plan, &c->inputs, &r->results, &c->dresults, &r->grad, 0, work,
                                bytes, error);
    locus_release(c->allocator, work);
    return status;
}

static locus_status run_attend(run *r, locus_error *error)
{
    locus_plan *plan = NULL;
    LOCUS_TRY(locus_plan_new(&plan, &r->config, &r->c->inputs, error));
    note_plan(r, plan);
    const locus_status status = compute_attend(r, plan, error);
    locus_plan_free(plan);
    return status;
}

static locus_status compute_layer(const run *r, const locus_layer *layer, locus_error *error)
{
    const locus_case *c = r->c;
    const size_t backward = c->grad ? locus_layer_backward_workspace(layer) : 0;
    const size_t bytes = larger(locus_layer_forward_workspace(layer), backward);
    const size_t saved_bytes = locus_layer_saved_bytes(layer);
    void *work = NULL, *saved = NULL;
    locus_status status = allocate_work(r, bytes, &work, error);
    if (status == LOCUS_OK) status = allocate_work(r, saved_bytes, &saved, error);
    if (status == LOCUS_OK)
        status = locus_layer_forward(layer, &c->inputs, &r->results, saved, saved_bytes, work,
                                     bytes, error);
    if (status == LOCUS_OK && c->grad)
        status = locus_layer_backward(layer, &c->inputs, &c->dresults, &r->grad, 0, saved,
                                      saved_bytes, work, bytes, error);
    locus_release(c->allocator, saved);
    locus_release(c->allocator, work);
    return status;
}

static locus_status run_layer(run *r, locus_error *error)
{
    locus_layer *layer = NULL;
    LOCUS_TRY(locus_layer_new(&layer, &r->config, &r->c->inputs, error));
    note_plan(r, locus_layer_plan(layer));
    const locus_status status = compute_layer(r, layer, error);
    locus_layer_free(layer);
    return status;
}

static locus_status run_oracle(run *r, locus_error *error)
{
    const locus_case *c = r->c;
    snprintf(r->into->isa, sizeof r->into->isa, "double");
    snprintf(r->into->path, sizeof r->into->path, "oracle");
    return locus_oracle(c->level, &r->config, &c->inputs, &r->results,
                        c->grad ? &c->dresults : NULL, c->grad ? &r->grad : NULL, error);
}

/* ---- the door ---- */

static locus_status run_into(const locus_case *c, const locus_case_run_options *options,
                             case_results *results, locus_error *error)
{
    run r = {.c = c,
             .config = c->config,
             .results = {.size = sizeof r.results},
             .grad = {.size = sizeof r.grad},
             .into = results};
    r.config.allocator = c->allocator;
    r.config.threads = options->threads;
    r.config.isa = options->isa;
    list_results(c, results, options->oracle ? LOCUS_F64 : LOCUS_F32);
    LOCUS_TRY(allocate_results(c, results, error));
    r.results.out = results->list[CASE_OUT].tensor;
    r.results.lse = results->list[CASE_LSE].tensor;
    for (size_t i = CASE_GRADS; i < results->count; i++)
        *locus_tensor_at(&r.grad, results->list[i].slot - CASE_GRADS) = results->list[i].tensor;
    if (options->oracle) return run_oracle(&r, error);
    return c->level == LOCUS_LAYER ? run_layer(&r, error) : run_attend(&r, error);
}

locus_status locus_case_run(locus_case *c, const locus_case_run_options *options,
                            locus_error *error)
{
    locus_case_run_options own = {.size = sizeof own};
    if (c == NULL) return locus_fail(error, LOCUS_ERR_ARGUMENT, "case: NULL argument");
    if (options == NULL) options = &own;
    LOCUS_ADOPT(options, own, "run options", error);
    case_results results = {.count = 0};
    const locus_status status = run_into(c, options, &results, error);
    if (status != LOCUS_OK) {
        locus_release(c->allocator, results.memory);
        return locus_case_fail_in(c, status, error);
    }
    locus_release(c->allocator, c->results.memory);
    c->results = results;
    return LOCUS_OK;
}

const char *locus_case_isa(const locus_case *c) { return c->results.isa; }

const char *locus_case_path(const locus_case *c) { return c->results.path; }

size_t locus_case_result_count(const locus_case *c) { return c->results.count; }

const char *locus_case_result_name(const locus_case *c, size_t index)
{
    return index < c->results.count ? c->results.list[index].name : NULL;
}

const locus_tensor *locus_case_result(const locus_case *c, size_t index)
{
    return index < c->results.count ? &c->results.list[index].tensor : NULL;
}

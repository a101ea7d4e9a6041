/* SPDX-License-Identifier: Apache-2.0 */
#include "model/memory.h"

#include <string.h>

#include "core/carve.h"
#include "core/memory.h"
#include "core/size.h"
#include "model/ops/ops.h"

/* ---- extents ---- */

void pass_rows(const locus_model_pass *p, int64_t rows[EXTENTS])
{
    memset(rows, 0, EXTENTS * sizeof *rows);
    rows[FIXED] = 1;
    rows[TOKENS] = rows[ASKED] = p->tokens[0];
    rows[TARGET] = p->tokens[1];
    rows[SEQUENCES] = rows[NEXT] = p->sequences;
    rows[LAST] = p->tokens[p->first_stack + p->stack_count - 1];
    rows[DISTANCES] = p->distance_rows;
    rows[TURNED] = p->cache != NULL ? p->tokens[p->first_stack] : 0;
}

/* ---- buffers ---- */

/* The largest value that is ever in a buffer. */
static float *carve_buffer(locus_carver *c, const buffer *b, const int64_t rows[EXTENTS])
{
    uint64_t most = 0;
    for (int e = 0; e < EXTENTS; e++) {
        if (b->width[e] == 0 || rows[e] == 0) continue;
        const uint64_t extents[] = {(uint64_t)rows[e], (uint64_t)b->width[e], sizeof(float)};
        uint64_t bytes = 0;
        if (!locus_product_u64(&bytes, extents, 3)) c->failed = 1;
        if (bytes > most) most = bytes;
    }
    return locus_carve(c, most);
}

/* ---- values ---- */

/* Memory of the caller or of the pass. */
static float *elsewhere(const run *r, value v)
{
    const value_info *i = &r->p->values[v];
    const locus_model_results *to = r->results;
    if (v == r->p->sinusoid) return r->pass->sinusoid;
    if (v == r->p->features)
        return r->batch != NULL ? (float *)(uintptr_t)r->batch->features : NULL;
    if (to == NULL) return NULL;
    switch (i->gives) {
    case GIVES_LOGITS: return to->logits;
    case GIVES_NEXT: return to->next;
    case GIVES_EMBEDDING: return to->embedding;
    default: return NULL;
    }
}

static void place_values(run *r, run_mode mode, float *const *buffers, locus_carver *kept)
{
    const program *p = r->p;
    for (value v = 0; v < p->value_count; v++) {
        const value_info *i = &p->values[v];
        if (i->constant)
            r->at[v] = i->data;
        else if (mode != RUN_FORWARD && i->kept)
            r->at[v] = locus_carve_floats(kept, 1, r->rows[i->rows], i->width);
        else
            r->at[v] = i->buffer != NONE && buffers != NULL ? buffers[i->buffer] : elsewhere(r, v);
    }
}

static void measure_kept(const run *r, locus_carver *kept)
{
    for (value v = 0; v < r->p->value_count; v++) {
        const value_info *i = &r->p->values[v];
        if (i->kept) (void)locus_carve_floats(kept, 1, r->rows[i->rows], i->width);
    }
}

/* k and v of the encoder's states, which a session has. */
static void place_source(run *r)
{
    const model_cache *c = r->pass->cache;
    if (c == NULL || c->source == NULL) return;
    for (int i = r->p->first_op[1]; i < r->p->first_op[2]; i++) {
        const op *o = &r->p->ops[i];
        if (o->kind != &op_attend || !r->p->attentions[o->as.attend->attention].cross) continue;
        const value kv = o->as.attend->k.of;
        r->at[kv] = c->source + o->as.attend->layer * c->source_tokens * r->p->values[kv].width;
    }
}

/* ---- gradients ---- */

static void place_gradient(run *r, value v, const locus_model_gradients *gradients)
{
    float *const *buffers = r->buffers;
    const program *p = r->p;
    const value_info *i = &p->values[v];
    r->grad[v] = NULL;
    if (i->constant && program_trains(p, i->data))
        r->grad[v] = gradients->parameters + (i->data - p->trained);
    else if (i->base != NONE) {
        const value root = root_of(p, v);
        float *base = p->values[root].gradient != NONE ? buffers[p->values[root].gradient] : NULL;
        r->grad[v] = base != NULL ? base + (i->data - p->values[root].data) : NULL;
    } else if (i->gradient != NONE)
        r->grad[v] = buffers[i->gradient];
    else if (v == p->features)
        r->grad[v] = gradients->input;
    else if (i->gives == GIVES_LOGITS)
        r->grad[v] = (float *)(uintptr_t)gradients->logits; /* read alone: no activation follows */
    else if (i->gives == GIVES_EMBEDDING)
        r->grad[v] = (float *)(uintptr_t)gradients->embedding;
}

void run_place_gradients(run *r, const locus_model_gradients *gradients)
{
    for (value v = 0; v < r->p->value_count; v++) place_gradient(r, v, gradients);
}

/* ---- scratch ---- */

static uint64_t most_of_plans(const run *r, size_t (*bytes_of)(const locus_plan *))
{
    uint64_t most = 0;
    for (size_t i = 0; i < r->pass->plan_count; i++) {
        const size_t bytes = bytes_of(r->pass->plans[i].plan);
        if (bytes > most) most = bytes;
    }
    return most;
}

static uint64_t most_of_convolutions(const run *r, locus_carver *c)
{
    uint64_t most = 0, bytes = 0;
    for (int i = 0; i < r->p->op_count && r->p->convolves; i++) {
        const op *o = &r->p->ops[i];
        if (o->kind != &op_convolve) continue;
        const locus_convolution f = convolution_of(r->p, o, NULL);
        if (!locus_convolution_workspace(&bytes, &f, r->pass->longest[stack_of(r, o->out)]))
            c->failed = 1;
        if (bytes > most) most = bytes;
    }
    return most;
}

static void carve_attention(run *r, run_mode mode, locus_carver *c)
{
    const int back = mode == RUN_BACK;
    r->attention_bytes =
        most_of_plans(r, back ? locus_backward_workspace : locus_forward_workspace);
    r->attention = locus_carve(c, r->attention_bytes);
    for (int k = 0; k < r->p->attention_count; k++) {
        const attention *a = &r->p->attentions[k];
        const int64_t longest = r->pass->longest[a->stack], A = a->heads * a->head_dim;
        if (!pass_runs(r->pass, a->stack)) continue;
        if (a->memory > 0) {
            r->before = locus_carve_floats(c, 1, a->memory, 3 * A);
            r->joined = locus_carve_floats(c, 1, a->memory + longest, 2 * A);
        }
        if (a->segments) r->pairs = locus_carve_floats(c, (1 + back) * a->heads, longest, longest);
    }
}

/* q, k and v of the largest call. */
static int64_t most_parts(const run *r)
{
    int64_t most = 0;
    for (size_t i = 0; i < r->pass->plan_count; i++) {
        const pass_plan *plan = &r->pass->plans[i];
        const attention *a = &r->p->attentions[plan->attention];
        const int64_t floats =
            (plan->queries * a->heads + 2 * plan->keys * a->kv_heads) * a->head_dim;
        if (floats > most) most = floats;
    }
    return most;
}

static void carve_back(run *r, locus_carver *c)
{
    int64_t rows = r->p->norm_rows;
    for (int e = TOKENS; e < EXTENTS; e++)
        if (r->rows[e] > rows) rows = r->rows[e];
    r->other = carve_buffer(c, &r->p->spare, r->rows);
    r->parts = locus_carve_floats(c, 1, 1, most_parts(r));
    r->norm = locus_carve(c, locus_norm_workspace(rows));
}

static void carve_numbers(run *r, locus_carver *c)
{
    for (int s = 0; s < 2; s++)
        r->position[s] = locus_carve(c, (uint64_t)r->pass->tokens[s] * sizeof(int32_t));
}

/* Copies of what a batch may take away with it. */
static void carve_copies(run *r, locus_carver *c)
{
    int32_t **copies[] = {(int32_t **)(uintptr_t)&r->ids[0], (int32_t **)(uintptr_t)&r->ids[1],
                          (int32_t **)(uintptr_t)&r->types, (int32_t **)(uintptr_t)&r->picked};
    for (int i = 0; i < 4; i++)
        *copies[i] = locus_carve(c, (uint64_t)r->pass->tokens[i == 1] * sizeof(int32_t));
}

/* ---- all of it ---- */

static char *line(void *memory)
{
    return (char *)(((uintptr_t)memory + LOCUS_ALIGNMENT - 1) & ~(uintptr_t)(LOCUS_ALIGNMENT - 1));
}

int run_lay_out(run *r, run_mode mode, run_memory *m, kept_head **head)
{
    const program *p = r->p;
    locus_carver work = {.base = m->work != NULL ? line(m->work) : NULL};
    locus_carver kept = {.base = m->kept != NULL ? line(m->kept) : NULL};
    const int back = mode == RUN_BACK, count = back ? p->gradient_count : p->buffer_count;
    r->at = locus_carve(&work, (uint64_t)p->value_count * sizeof *r->at);
    if (back) r->grad = locus_carve(&work, (uint64_t)p->value_count * sizeof *r->grad);
    float **buffers = locus_carve(&work, (uint64_t)count * sizeof *buffers);
    for (int b = 0; b < count; b++) {
        float *at = carve_buffer(&work, back ? &p->gradients[b] : &p->buffers[b], r->rows);
        if (buffers != NULL) buffers[b] = at;
    }
    carve_attention(r, mode, &work);
    r->convolution = locus_carve(&work, most_of_convolutions(r, &work));
    r->linear = locus_carve(&work, locus_linear_workspace(&p->linear));
    r->next = locus_carve(&work, (uint64_t)r->rows[NEXT] * sizeof *r->next);
    if (back) carve_back(r, &work);
    *head = locus_carve(&kept, mode != RUN_FORWARD ? sizeof **head : 0);
    if (mode != RUN_FORWARD) carve_copies(r, &kept);
    carve_numbers(r, mode == RUN_FORWARD ? &work : &kept);
    r->buffers = buffers;
    if (r->at != NULL)
        place_values(r, mode, back ? NULL : buffers, &kept);
    else if (mode != RUN_FORWARD)
        measure_kept(r, &kept);
    if (r->at != NULL) place_source(r);
    return !work.failed && !kept.failed &&
           locus_to_size(&m->work_bytes, work.used + LOCUS_ALIGNMENT) &&
           locus_to_size(&m->kept_bytes, kept.used + LOCUS_ALIGNMENT);
}

int model_measure(locus_model_pass *pass)
{
    const program *p = &pass->model->program;
    run r = {.p = p, .pass = pass};
    run_memory m = {.work = NULL};
    kept_head *head;
    pass_rows(pass, r.rows);
    if (!run_lay_out(&r, RUN_FORWARD, &m, &head)) return 0;
    pass->bytes = m.work_bytes;
    if (!p->trains) return 1;
    if (!run_lay_out(&r, RUN_KEEPING, &m, &head)) return 0;
    pass->kept_bytes = m.kept_bytes;
    if (m.work_bytes > pass->bytes) pass->bytes = m.work_bytes;
    if (!run_lay_out(&r, RUN_BACK, &m, &head)) return 0;
    pass->back_bytes = m.work_bytes;
    return 1;
}

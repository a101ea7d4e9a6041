/* SPDX-License-Identifier: Apache-2.0 */
#include "model/run.h"

#include <inttypes.h>
#include <string.h>

#include "core/adopt.h"
#include "core/carve.h"
#include "core/error.h"
#include "core/memory.h"
#include "model/memory.h"

/* ---- the numbers that pick rows ---- */

const int32_t *run_numbers(const run *r, picker by, int stack)
{
    switch (by) {
    case BY_IDS: return r->ids[stack];
    case BY_TYPES: return r->types;
    case BY_POSITIONS: return r->position[stack];
    case BY_ASKED: return r->picked;
    case BY_LAST: return (r->serves & SERVES_NEXT) != 0 ? r->next : r->picked;
    default: return r->next;
    }
}

/* Rows of the position table. Padding, where the model knows it, is not counted; what lies before a
 * step counts whole, as in transformers. */
static void set_positions(const run *r, int stack)
{
    const model_description *d = &r->pass->model->stacks[stack];
    const int64_t *offsets = r->pass->offsets[stack];
    for (int64_t s = 0; s < r->pass->sequences; s++) {
        int64_t next = d->first_position + pass_past(r->pass, s);
        for (int64_t i = offsets[s]; i < offsets[s + 1]; i++) {
            const int padding = d->padding >= 0 && r->ids[stack][i] == d->padding;
            r->position[stack][i] = (int32_t)(padding ? d->padding : next++);
        }
    }
}

static void set_next(const run *r)
{
    const int64_t *offsets = r->pass->offsets[r->pass->first_stack];
    int64_t count = 0;
    for (int64_t s = 0; s < r->pass->sequences; s++)
        if (offsets[s + 1] > offsets[s]) r->next[count++] = (int32_t)(offsets[s + 1] - 1);
}

/* ---- forward ---- */

/* 1: operator o runs in this pass. */
int run_wants(const run *r, const op *o)
{
    return (o->serves & r->serves) != 0 && !r->p->values[o->out].constant &&
           !(o->once && r->pass->cache != NULL);
}

static void give(const run *r, value v)
{
    const value_info *i = &r->p->values[v];
    if (i->gives != GIVES_HIDDEN) return;
    float *const *to =
        i->stack > r->pass->first_stack ? r->results->decoder_hidden : r->results->hidden;
    if (to != NULL && to[i->index] != NULL)
        memcpy(to[i->index], r->at[v], (size_t)run_size(r, v) * sizeof(float));
}

locus_status model_forward_ops(run *r)
{
    const locus_model_pass *pass = r->pass;
    for (int s = 0; s < 2; s++)
        if (pass_runs(pass, s) && r->ids[s] != NULL) set_positions(r, s);
    if ((r->serves & SERVES_NEXT) != 0) set_next(r);
    for (int i = r->p->first_op[pass->first_stack];
         i < r->p->first_op[pass->first_stack + pass->stack_count]; i++) {
        const op *o = &r->p->ops[i];
        if (!run_wants(r, o)) continue;
        LOCUS_TRY(o->kind->forward(r, o));
        give(r, o->out);
    }
    return LOCUS_OK;
}

/* ---- backward ---- */

static void clear(const run *r, value v)
{
    const value_info *i = &r->p->values[v];
    if (i->base == NONE && i->gradient != NONE && r->grad[v] != NULL)
        memset(r->grad[v], 0, (size_t)run_size(r, v) * sizeof(float));
}

/* A gradient is 0 from the last reader of the value on; who reads the value adds to it. */
static void begin_gradients(const run *r, int index)
{
    const op *o = &r->p->ops[index];
    for (int k = 0; k < OP_INPUTS; k++) {
        if (o->in[k] == NONE) continue;
        const value root = root_of(r->p, o->in[k]);
        if (r->p->values[root].last == index) clear(r, root);
    }
    const value out = root_of(r->p, o->out);
    if (r->p->values[out].last == index) clear(r, out);
}

/* What the caller says about states that it was given. */
static void take_given(const run *r, const locus_model_gradients *g, value v)
{
    const value_info *i = &r->p->values[v];
    if (i->gives != GIVES_HIDDEN) return;
    const float *const *from = i->stack > 0 ? g->decoder_hidden : g->hidden;
    if (from != NULL && from[i->index] != NULL) run_add(r, v, from[i->index]);
}

/* 1: operator o ran, or was made when the model was opened. */
static int goes_back(const run *r, int index)
{
    const locus_model_pass *pass = r->pass;
    const op *o = &r->p->ops[index];
    if (index < r->p->first_op[pass->first_stack] ||
        index >= r->p->first_op[pass->first_stack + pass->stack_count])
        return 0;
    return (o->serves & r->serves) != 0;
}

locus_status model_backward_ops(run *r, const locus_model_gradients *gradients)
{
    for (int late = 0; late < 2; late++)
        for (int i = r->p->op_count; i-- > 0;) {
            const op *o = &r->p->ops[i];
            if (!late) begin_gradients(r, i);
            if (o->late != late || !goes_back(r, i)) continue;
            take_given(r, gradients, o->out);
            if (run_grad(r, o->out) != NULL && run_size(r, o->out) > 0)
                LOCUS_TRY(o->kind->backward(r, o));
        }
    return LOCUS_OK;
}

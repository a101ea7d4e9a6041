/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "core/error.h"
#include "core/memory.h"
#include "model/ops/ops.h"
#include "model/program.h"

/* ---- how long values live ---- */

static void begin(program *p, value v, int i)
{
    value_info *root = &p->values[root_of(p, v)];
    if (root->first == NONE || root->first > i) root->first = i;
    if (root->last < i) root->last = i;
}

static void mark_inputs(program *p, const op *o, int i)
{
    for (int k = 0; k < OP_INPUTS; k++) {
        if (o->in[k] == NONE) continue;
        value_info *root = &p->values[root_of(p, o->in[k])];
        if (root->last < i) root->last = i;
        if (p->trains && (o->kind->reads >> k & 1) && !root->constant && !root->given)
            root->kept = 1;
    }
}

static void mark_lives(program *p)
{
    for (int i = 0; i < p->op_count; i++) {
        const op *o = &p->ops[i];
        begin(p, o->out, i);
        mark_inputs(p, o, i);
        if (o->inside != NONE) begin(p, o->inside, i);
        if (!p->trains) continue;
        if (o->inside != NONE) p->values[o->inside].kept = 1;
        if ((o->kind->reads & READS_OUT) != 0) p->values[o->out].kept = 1;
    }
}

/* ---- buffers ---- */

static int64_t width_of(const value_info *v)
{
    return v->rows == FIXED ? v->count * v->width : v->width;
}

static void widen(buffer *b, const value_info *v)
{
    if (width_of(v) > b->width[v->rows]) b->width[v->rows] = width_of(v);
}

/* What a buffer would have to grow by; the least is the best. */
static int64_t growth(const buffer *b, const value_info *v)
{
    const int64_t more = width_of(v) - b->width[v->rows];
    if (b->width[v->rows] == 0) return INT64_MAX - 1; /* of another extent: the last choice */
    return more > 0 ? more : 0;
}

/* The buffer that is free at operator i and fits best, or a new one. */
static int choose(buffer *buffers, int *count, int from, const value_info *v, int i)
{
    int best = NONE;
    for (int b = from; b < *count; b++)
        if (buffers[b].free_from <= i &&
            (best == NONE || growth(&buffers[b], v) < growth(&buffers[best], v)))
            best = b;
    if (best == NONE) best = (*count)++;
    widen(&buffers[best], v);
    buffers[best].free_from = v->last + 1;
    return best;
}

/* Given to the caller as it is made: its memory is the caller's. */
static int is_handed_out(const value_info *v)
{
    return v->gives == GIVES_LOGITS || v->gives == GIVES_NEXT || v->gives == GIVES_EMBEDDING;
}

static int needs_buffer(const value_info *v, value root)
{
    return v->base == NONE && root != NONE && !v->constant && !v->given && !is_handed_out(v) &&
           v->buffer == NONE;
}

static void choose_forward(program *p)
{
    for (int i = 0; i < p->op_count; i++) {
        const op *o = &p->ops[i];
        const value made[2] = {o->out, o->kind == &op_attend ? o->inside : NONE};
        for (int k = 0; k < 2; k++) {
            if (made[k] == NONE || !needs_buffer(&p->values[made[k]], made[k])) continue;
            value_info *v = &p->values[made[k]];
            v->buffer = choose(p->buffers, &p->buffer_count, 0, v, i);
        }
    }
}

static int has_gradient(const op *o, const value_info *v)
{
    return v->gradient == NONE && !is_handed_out(v) && o->kind != &op_sinusoid &&
           o->kind != &op_turns;
}

/* A gradient lives as its value does, the other way round; of a copy of tensors to the very end. */
static void choose_gradients(program *p)
{
    for (int late = 1; late >= 0; late--) {
        const int from = p->gradient_count;
        for (int i = 0; i < p->op_count; i++) {
            const op *o = &p->ops[i];
            value_info *v = &p->values[root_of(p, o->out)];
            if (o->late != late || !has_gradient(o, v)) continue;
            v->gradient =
                late ? p->gradient_count++ : choose(p->gradients, &p->gradient_count, from, v, i);
            widen(&p->gradients[v->gradient], v);
        }
    }
}

/* ---- what backward functions need beside ---- */

static void measure(program *p)
{
    for (int i = 0; i < p->op_count; i++) {
        const op *o = &p->ops[i];
        const value_info *out = &p->values[o->out];
        if (o->kind == &op_map && o->in[3] != NONE) widen(&p->spare, out);
        if (o->kind == &op_convolve || o->kind == &op_depthwise || o->kind == &op_pool ||
            o->kind == &op_pool_max || o->kind == &op_unit)
            widen(&p->spare, &p->values[o->in[0]]);
        if (o->kind == &op_norm && out->rows == FIXED && out->count > p->norm_rows)
            p->norm_rows = out->count;
    }
}

locus_status program_lay_out(program *p, locus_error *error)
{
    const size_t most = 2 * (size_t)p->op_count + 1;
    p->buffers = locus_allocate(p->allocator, most, sizeof *p->buffers);
    p->gradients = locus_allocate(p->allocator, p->trains ? most : 1, sizeof *p->gradients);
    if (p->buffers == NULL || p->gradients == NULL)
        return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    mark_lives(p);
    choose_forward(p);
    if (!p->trains) return LOCUS_OK;
    choose_gradients(p);
    measure(p);
    return LOCUS_OK;
}

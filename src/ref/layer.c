/* SPDX-License-Identifier: Apache-2.0 */
#include "ref/layer.h"

#include <string.h>

#include "core/tensor.h"

/* dx += dy W,  dW += dy^T x,  db += sum dy; absent gradients are skipped. */
static void linear_grad(double *dx, const locus_tensor *dw, const locus_tensor *db,
                        const double *dy, const double *x, const locus_tensor *w, int64_t rows)
{
    const int64_t outs = w->shape[0], ins = w->shape[1];
    double *dbias = db != NULL ? locus_ref_at(db, 0, 0, 0) : NULL;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < outs; o++) {
            const double g = dy[r * outs + o];
            if (dx != NULL) locus_ref_add(dx + r * ins, g, locus_ref_at(w, o, 0, 0), ins);
            if (dw != NULL) locus_ref_add(locus_ref_at(dw, o, 0, 0), g, x + r * ins, ins);
            if (dbias != NULL) dbias[o] += g;
        }
}

/* out = Wo mixed + bo, or mixed itself. */
static void project_output(const ref_layer *l, const locus_tensor *out, double *row)
{
    const int64_t HD = l->call->H * l->call->D, T = l->call->T, width = out->shape[2];
    for (int64_t b = 0; b < l->call->B; b++)
        for (int64_t i = 0; i < T; i++) {
            const double *mixed = l->mixed + (b * T + i) * HD;
            if (locus_present(&l->in->w_o))
                locus_ref_linear(row, mixed, &l->in->w_o, &l->in->b_o, 1);
            else
                memcpy(row, mixed, (size_t)HD * sizeof *row);
            memcpy(locus_ref_at(out, b, i, 0), row, (size_t)width * sizeof *row);
        }
}

/* ---- backward ---- */

/* Gradients of what the layer made itself; the rest is the caller's own. */
static void take_inner_gradients(ref_layer *l)
{
    const locus_call *call = l->call;
    const locus_projection *p = call->scheme->projections;
    locus_lend_tensors(call->scheme, &l->dinner, l->grad);
    l->dinner.q = locus_ref_take_heads(l, call->T, call->D);
    l->dinner.k = locus_ref_take_heads(l, call->M + call->T, call->D);
    l->dinner.v = locus_ref_take_heads(l, call->M + call->T, call->D);
    locus_ref_take_query_rows(l, &l->dinner);
    locus_ref_take_gate_gradients(l);
    for (size_t x = 0; p != NULL && p[x].table != LOCUS_NO_TENSOR; x++)
        if (l->sources[x] != NULL)
            *locus_ref_slot(&l->dinner, p[x].table) =
                locus_ref_take_table(l, locus_ref_slot(&l->inner, p[x].table)->shape[1]);
    l->dy = locus_ref_take(l->memory, call->B * (call->M + call->T), call->E, sizeof(double));
    l->dmixed = locus_ref_take(l->memory, call->B * call->T, call->H * call->D, sizeof(double));
}

static void project_output_grad(ref_layer *l, const locus_tensor *dout)
{
    const int64_t HD = l->call->H * l->call->D, T = l->call->T;
    for (int64_t b = 0; b < l->call->B; b++)
        for (int64_t i = 0; i < T; i++) {
            const int64_t at = (b * T + i) * HD;
            const double *row = locus_ref_at(dout, b, i, 0);
            if (locus_present(&l->in->w_o))
                linear_grad(l->dmixed + at, &l->grad->w_o, &l->grad->b_o, row, l->mixed + at,
                            &l->in->w_o, 1);
            else
                memcpy(l->dmixed + at, row, (size_t)HD * sizeof *row);
        }
}

static void project_tables_grad(ref_layer *l)
{
    const locus_projection *p = l->call->scheme->projections;
    for (size_t x = 0; p != NULL && p[x].table != LOCUS_NO_TENSOR; x++) {
        if (l->sources[x] == NULL) continue;
        const locus_tensor *weight, *bias, *dweight, *dbias;
        const locus_tensor *dtable = locus_ref_slot(&l->dinner, p[x].table);
        const locus_tensor *dsource = locus_tensor_slot(l->grad, p[x].source);
        locus_ref_projection(l, &p[x], l->in, &weight, &bias);
        locus_ref_projection(l, &p[x], l->grad, &dweight, &dbias);
        linear_grad(dsource != NULL ? dsource->data : NULL, dweight, dbias, dtable->data,
                    l->sources[x], weight, dtable->shape[1]);
    }
}

static void project_content_grad(ref_layer *l)
{
    const locus_call *call = l->call;
    const locus_tensors *in = l->in, *grad = l->grad;
    const int64_t E = call->E, HD = call->H * call->D, M = call->M, T = call->T;
    for (int64_t b = 0; b < call->B; b++) {
        const int64_t at = (b * (M + T) + M) * E;
        linear_grad(l->dy + at, &grad->w_q, &grad->b_q,
                    (const double *)l->dinner.q.data + b * T * HD, l->y + at, &in->w_q, T);
    }
    linear_grad(l->dy, &grad->w_k, &grad->b_k, l->dinner.k.data, l->y, &in->w_k, call->B * (M + T));
    linear_grad(l->dy, &grad->w_v, &grad->b_v, l->dinner.v.data, l->y, &in->w_v, call->B * (M + T));
}

static void gate_row_grad(const ref_layer *l, int64_t row)
{
    const locus_call *call = l->call;
    const locus_gate_rule *rule = call->scheme->gate;
    const int64_t h = row / call->T % call->H, D = call->D;
    const double *x = locus_ref_gate_columns(l, l->y, row);
    double y[LOCUS_GATE_OUTPUTS], dy[LOCUS_GATE_OUTPUTS];
    locus_ref_gate_inputs(l, row, y);
    rule->gate_grad(call, l->in, h, y, ((const double *)l->dinner.gate.data)[row], dy, l->grad);
    for (int64_t o = 0; o < LOCUS_GATE_OUTPUTS; o++) {
        for (int64_t d = 0; d < D; d++) {
            locus_ref_gate_columns(l, l->dy, row)[d] += dy[o] * rule->weight(call, l->in, h, o, d);
            rule->weight_grad(call, h, o, d, dy[o] * x[d], l->grad);
        }
        rule->weight_grad(call, h, o, D, dy[o], l->grad);
    }
}

static void project_query_rows_grad(ref_layer *l)
{
    const locus_call *call = l->call;
    const locus_tensors *in = l->in, *grad = l->grad;
    const int64_t E = call->E, M = call->M, T = call->T;
    for (int64_t b = 0; locus_present(&l->dinner.pos_query) && b < call->B; b++) {
        const int64_t at = (b * (M + T) + M) * E;
        linear_grad(l->dy + at, &grad->w_r, &grad->b_r, locus_ref_at(&l->dinner.pos_query, b, 0, 0),
                    l->y + at, &in->w_r, T);
    }
    for (int64_t row = 0; call->scheme->gate != NULL && row < call->B * call->H * T; row++)
        gate_row_grad(l, row);
}

/* dmemory = dy of its rows, dx = x_scale dy, and p_i = pos[i] takes dy of row i. */
static void scatter_input_grad(const ref_layer *l)
{
    const locus_call *call = l->call;
    const int64_t E = call->E, M = call->M, T = call->T;
    const double factor = locus_ref_x_scale(call);
    for (int64_t b = 0; b < call->B; b++) {
        const double *row = l->dy + b * (M + T) * E;
        for (int64_t i = 0; i < M; i++, row += E)
            locus_ref_add(locus_ref_at(&l->grad->memory, b, i, 0), 1.0, row, E);
        for (int64_t i = 0; i < T; i++, row += E) {
            locus_ref_add(locus_ref_at(&l->grad->x, b, i, 0), factor, row, E);
            if (call->scheme->embed != NULL)
                locus_ref_add(locus_ref_at(&l->grad->pos, i, 0, 0), 1.0, row, E);
        }
    }
}

/* ---- both ---- */

/* [B,T,H*D] storage seen as [B,H,T,D]. */
static locus_tensor heads_of(const locus_call *call, double *data)
{
    const int64_t H = call->H, T = call->T, D = call->D;
    const locus_tensor view = {
        .data = data,
        .dtype = LOCUS_F64,
        .rank = 4,
        .shape = {call->B, H, T, D},
        .stride = {T * H * D, D, H * D, 1},
    };
    return view;
}

locus_status locus_ref_layer(const locus_call *call, const locus_tensors *in,
                             const locus_results *results, const locus_results *dresults,
                             const locus_tensors *grad, ref_memory *memory)
{
    const int64_t HD = call->H * call->D;
    ref_layer l = {.call = call,
                   .in = in,
                   .grad = grad,
                   .memory = memory,
                   .inner = {.size = sizeof l.inner},
                   .dinner = {.size = sizeof l.dinner}};
    locus_call inner;
    locus_call_inner(&inner, call);
    locus_ref_project(&l);
    l.mixed = locus_ref_take(memory, call->B * call->T, HD, sizeof(double));
    double *row = locus_ref_take(memory, call->E > HD ? call->E : HD, 1, sizeof(double));
    if (dresults != NULL) take_inner_gradients(&l);
    if (memory->failed) return LOCUS_ERR_MEMORY;

    const locus_results mixed = {.out = heads_of(call, l.mixed), .lse = results->lse};
    locus_status status = locus_ref_attend(&inner, &l.inner, &mixed, NULL, NULL, memory);
    if (status != LOCUS_OK) return status;
    project_output(&l, &results->out, row);
    if (dresults == NULL) return LOCUS_OK;

    project_output_grad(&l, &dresults->out);
    const locus_results dmixed = {.out = heads_of(call, l.dmixed), .lse = dresults->lse};
    status = locus_ref_attend(&inner, &l.inner, &mixed, &dmixed, &l.dinner, memory);
    if (status != LOCUS_OK) return status;
    project_tables_grad(&l);
    project_content_grad(&l);
    project_query_rows_grad(&l);
    locus_ref_project_gates_grad(&l);
    scatter_input_grad(&l);
    return LOCUS_OK;
}

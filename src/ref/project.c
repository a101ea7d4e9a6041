/* SPDX-License-Identifier: Apache-2.0 */
#include "ref/layer.h"

#include <string.h>

#include "core/tensor.h"

void locus_ref_linear(double *y, const double *x, const locus_tensor *w, const locus_tensor *b,
                      int64_t rows)
{
    const int64_t outs = w->shape[0], ins = w->shape[1];
    const double *bias = b != NULL ? locus_ref_at(b, 0, 0, 0) : NULL;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < outs; o++)
            y[r * outs + o] = locus_ref_dot(x + r * ins, locus_ref_at(w, o, 0, 0), ins) +
                              (bias != NULL ? bias[o] : 0.0);
}

/* ---- options that only some schemes have ---- */

static int declares(const locus_call *call, const char *option)
{
    for (const locus_option_info *o = call->scheme->options; o->name != NULL; o++)
        if (strcmp(o->name, option) == 0) return 1;
    return 0;
}

double locus_ref_x_scale(const locus_call *call)
{
    return declares(call, "x_scale") ? call->options.x_scale : 1.0;
}

/* DeBERTa can leave one of its two tables out. */
static int table_is_used(const locus_call *call, size_t table)
{
    if (table == offsetof(locus_tensors, rel_k) && declares(call, "c2p"))
        return call->options.c2p != 0;
    if (table == offsetof(locus_tensors, rel_q) && declares(call, "p2c"))
        return call->options.p2c != 0;
    return 1;
}

/* ---- what attention is given ---- */

static void gather_input(ref_layer *l)
{
    const locus_call *call = l->call;
    const int64_t E = call->E, M = call->M, T = call->T;
    const double factor = locus_ref_x_scale(call);
    double *p = locus_ref_take(l->memory, E, 1, sizeof(double));
    l->y = locus_ref_take(l->memory, call->B * (M + T), E, sizeof(double));
    if (l->memory->failed) return;
    for (int64_t b = 0; b < call->B; b++) {
        double *row = l->y + b * (M + T) * E;
        for (int64_t i = 0; i < M; i++, row += E)
            locus_ref_add(row, 1.0, locus_ref_at(&l->in->memory, b, i, 0), E);
        for (int64_t i = 0; i < T; i++, row += E) {
            if (call->scheme->embed == NULL) {
                memcpy(row, locus_ref_at(&l->in->x, b, i, 0), (size_t)E * sizeof *row);
                continue;
            }
            call->scheme->embed(call, l->in, i, p);
            locus_ref_add(row, factor, locus_ref_at(&l->in->x, b, i, 0), E);
            locus_ref_add(row, 1.0, p, E);
        }
    }
}

locus_tensor locus_ref_take_heads(ref_layer *l, int64_t rows, int64_t width)
{
    const locus_call *call = l->call;
    const int64_t H = call->H, D = width;
    const locus_tensor view = {
        .data = locus_ref_take(l->memory, call->B * rows, H * D, sizeof(double)),
        .dtype = LOCUS_F64,
        .rank = 4,
        .shape = {call->B, H, rows, D},
        .stride = {rows * H * D, D, H * D, 1},
    };
    return view;
}

locus_tensor locus_ref_take_table(ref_layer *l, int64_t rows)
{
    const int64_t H = l->call->H, D = l->call->D;
    const locus_tensor view = {
        .data = locus_ref_take(l->memory, rows, H * D, sizeof(double)),
        .dtype = LOCUS_F64,
        .rank = 3,
        .shape = {H, rows, D},
        .stride = {D, H * D, 1},
    };
    return view;
}

static void project_content(ref_layer *l)
{
    const locus_call *call = l->call;
    const locus_tensors *in = l->in;
    const int64_t E = call->E, HD = call->H * call->D, M = call->M, T = call->T;
    l->inner.q = locus_ref_take_heads(l, T, call->D);
    l->inner.k = locus_ref_take_heads(l, M + T, call->D);
    l->inner.v = locus_ref_take_heads(l, M + T, call->D);
    if (l->memory->failed) return;
    for (int64_t b = 0; b < call->B; b++)
        locus_ref_linear((double *)l->inner.q.data + b * T * HD, l->y + (b * (M + T) + M) * E,
                         &in->w_q, &in->b_q, T);
    locus_ref_linear(l->inner.k.data, l->y, &in->w_k, &in->b_k, call->B * (M + T));
    locus_ref_linear(l->inner.v.data, l->y, &in->w_v, &in->b_v, call->B * (M + T));
}

/* Rows of the table that a projection makes. Rows of `pos` beyond every position of the call take
 * no part in it: their gradient is 0, whatever the weights hold. */
static int64_t table_rows(const locus_call *call, const locus_projection *projection,
                          const locus_tensor *source)
{
    const int64_t queries = call->query_offset + call->T, keys = call->M + call->T;
    const int64_t positions = queries > keys ? queries : keys;
    if (source == NULL) return call->R;
    if (projection->source != offsetof(locus_tensors, pos) || source->shape[0] < positions)
        return source->shape[0];
    return positions;
}

/* The rows that a projection starts from: [*rows][E]. */
static double *source_rows(ref_layer *l, const locus_projection *projection, int64_t *rows)
{
    const locus_call *call = l->call;
    const locus_tensor *tensor = locus_tensor_slot(l->in, projection->source);
    *rows = table_rows(call, projection, tensor);
    double *source = locus_ref_take(l->memory, *rows, call->E, sizeof(double));
    for (int64_t r = 0; source != NULL && r < *rows; r++) {
        double *row = source + r * call->E;
        if (tensor != NULL)
            locus_ref_add(row, 1.0, locus_ref_at(tensor, r, 0, 0), call->E);
        else
            locus_sinusoid(call->options.table, call->E, call->options.delta_min + r, row);
    }
    return source;
}

void locus_ref_projection(const ref_layer *l, const locus_projection *projection,
                          const locus_tensors *from, const locus_tensor **weight,
                          const locus_tensor **bias)
{
    const int own = locus_tensor_slot(l->in, projection->weight) != NULL;
    *weight = locus_tensor_slot(from, own ? projection->weight : projection->shared_weight);
    *bias = locus_tensor_slot(from, own ? projection->bias : projection->shared_bias);
}

static void project_tables(ref_layer *l)
{
    const locus_projection *p = l->call->scheme->projections;
    for (size_t x = 0; p != NULL && p[x].table != LOCUS_NO_TENSOR; x++) {
        if (!table_is_used(l->call, p[x].table)) continue;
        int64_t rows;
        const locus_tensor *weight, *bias;
        l->sources[x] = source_rows(l, &p[x], &rows);
        locus_tensor *table = locus_ref_slot(&l->inner, p[x].table);
        *table = locus_ref_take_table(l, rows);
        if (l->memory->failed) return;
        locus_ref_projection(l, &p[x], l->in, &weight, &bias);
        locus_ref_linear(table->data, l->sources[x], weight, bias, rows);
    }
}

void locus_ref_take_query_rows(ref_layer *l, locus_tensors *inner)
{
    const locus_call *call = l->call;
    if (locus_projects_pos_query(call, l->in))
        inner->pos_query = locus_ref_take_heads(l, call->T, l->in->w_r.shape[0] / call->H);
    if (call->scheme->gate == NULL) return;
    const int64_t shape[] = {call->B, call->H, call->T};
    inner->gate = locus_view(locus_ref_take(l->memory, call->B * call->H, call->T, sizeof(double)),
                             LOCUS_F64, 3, shape);
}

double *locus_ref_gate_columns(const ref_layer *l, double *rows, int64_t row)
{
    const locus_call *call = l->call;
    const int64_t T = call->T, b = row / (call->H * T), h = row / T % call->H;
    return rows + (b * (call->M + T) + call->M + row % T) * call->E + h * call->D;
}

void locus_ref_gate_inputs(const ref_layer *l, int64_t row, double *y)
{
    const locus_call *call = l->call;
    const int64_t D = call->D, h = row / call->T % call->H;
    const double *x = locus_ref_gate_columns(l, l->y, row);
    for (int64_t o = 0; o < LOCUS_GATE_OUTPUTS; o++) {
        y[o] = call->scheme->gate->weight(call, l->in, h, o, D);
        for (int64_t d = 0; d < D; d++)
            y[o] += call->scheme->gate->weight(call, l->in, h, o, d) * x[d];
    }
}

/* What a query has of its own, from x alone. */
static void project_query_rows(ref_layer *l)
{
    const locus_call *call = l->call;
    const locus_tensors *in = l->in;
    const int64_t E = call->E, M = call->M, T = call->T;
    locus_ref_take_query_rows(l, &l->inner);
    if (l->memory->failed) return;
    for (int64_t b = 0; locus_present(&l->inner.pos_query) && b < call->B; b++)
        locus_ref_linear(locus_ref_at(&l->inner.pos_query, b, 0, 0), l->y + (b * (M + T) + M) * E,
                         &in->w_r, locus_present(&in->b_r) ? &in->b_r : NULL, T);
    for (int64_t row = 0; call->scheme->gate != NULL && row < call->B * call->H * T; row++) {
        double y[LOCUS_GATE_OUTPUTS];
        locus_ref_gate_inputs(l, row, y);
        ((double *)l->inner.gate.data)[row] =
            call->scheme->gate->gate(call, in, row / T % call->H, y);
    }
}

void locus_ref_project(ref_layer *l)
{
    locus_lend_tensors(l->call->scheme, &l->inner, l->in);
    gather_input(l);
    project_content(l);
    if (!l->memory->failed) project_query_rows(l);
    if (!l->memory->failed) locus_ref_project_gates(l);
    project_tables(l);
}

void locus_ref_split_input(ref_layer *l)
{
    const locus_call *call = l->call;
    const locus_tensors *in = l->in;
    const int64_t E = call->E, T = call->T;
    if (call->scheme->embed == NULL) return;
    double *p = locus_ref_take(l->memory, T, E, sizeof(double));
    double *x = locus_ref_take(l->memory, call->B * T, E, sizeof(double));
    l->inner.pos_q = locus_ref_take_table(l, T);
    l->inner.pos_k = locus_ref_take_table(l, T);
    if (l->memory->failed) return;
    for (int64_t i = 0; i < T; i++) call->scheme->embed(call, in, i, p + i * E);
    for (int64_t row = 0; row < call->B * T; row++)
        locus_ref_add(x + row * E, locus_ref_x_scale(call),
                      locus_ref_at(&in->x, row / T, row % T, 0), E);
    locus_ref_linear(l->inner.pos_q.data, p, &in->w_q, NULL, T);
    locus_ref_linear(l->inner.pos_k.data, p, &in->w_k, NULL, T);
    locus_ref_linear(l->inner.q.data, x, &in->w_q, &in->b_q, call->B * T);
    locus_ref_linear(l->inner.k.data, x, &in->w_k, &in->b_k, call->B * T);
}

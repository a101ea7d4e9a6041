/* SPDX-License-Identifier: Apache-2.0 */
#include "ref/ref.h"

#include <string.h>

#include "core/tensor.h"

/* The attention sublayer:
 *     y     = memory, then x;  or x_scale x_i + p_i where the scheme embeds positions
 *     q     = Wq y + bq (rows of x),   k = Wk y + bk,   v = Wv y + bv (all rows)
 *     table = W source + b             for each projection that the scheme lists
 *     out   = Wo attend(q, k, v, tables) + bo
 * Rows are stored (B, T, H, D), so a projection is a matrix and a head is a view. */

typedef struct layer {
    const locus_call *call; /* of the layer */
    const locus_tensors *in, *grad;
    ref_memory *memory;
    double *y, *dy;              /* [B][M+T][E]                                          */
    double *mixed, *dmixed;      /* [B][T][H*D]: what attention gives, before w_o        */
    locus_tensors inner, dinner; /* the tensors of attention and their gradients         */
    double *sources[4];          /* [rows][E] of each projection                         */
} layer;

/* ---- y = x W^T + b, W [outs, ins], on `rows` rows ---- */

static void linear(double *y, const double *x, const locus_tensor *w, const locus_tensor *b,
                   int64_t rows)
{
    const int64_t outs = w->shape[0], ins = w->shape[1];
    const double *bias = b != NULL ? locus_ref_at(b, 0, 0, 0) : NULL;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < outs; o++)
            y[r * outs + o] = locus_ref_dot(x + r * ins, locus_ref_at(w, o, 0, 0), ins) +
                              (bias != NULL ? bias[o] : 0.0);
}

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

/* ---- options that only some schemes have ---- */

static int declares(const locus_call *call, const char *option)
{
    for (const locus_option_info *o = call->scheme->info.options; o->name != NULL; o++)
        if (strcmp(o->name, option) == 0) return 1;
    return 0;
}

static double x_scale(const locus_call *call)
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

/* ---- forward ---- */

static void gather_input(layer *l)
{
    const locus_call *call = l->call;
    const int64_t E = call->E, M = call->M, T = call->T;
    const double factor = x_scale(call);
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

/* A zeroed [B,H,rows,D] tensor stored as (B, rows, H, D). */
static locus_tensor take_heads(layer *l, int64_t rows)
{
    const locus_call *call = l->call;
    const int64_t H = call->H, D = call->D;
    const locus_tensor view = {
        .data = locus_ref_take(l->memory, call->B * rows, H * D, sizeof(double)),
        .dtype = LOCUS_F64,
        .rank = 4,
        .shape = {call->B, H, rows, D},
        .stride = {rows * H * D, D, H * D, 1},
    };
    return view;
}

/* A zeroed [H,rows,D] table stored as (rows, H, D). */
static locus_tensor take_table(layer *l, int64_t rows)
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

static void project_content(layer *l)
{
    const locus_call *call = l->call;
    const locus_tensors *in = l->in;
    const int64_t E = call->E, HD = call->H * call->D, M = call->M, T = call->T;
    l->inner.q = take_heads(l, T);
    l->inner.k = take_heads(l, M + T);
    l->inner.v = take_heads(l, M + T);
    if (l->memory->failed) return;
    for (int64_t b = 0; b < call->B; b++)
        linear((double *)l->inner.q.data + b * T * HD, l->y + (b * (M + T) + M) * E, &in->w_q,
               &in->b_q, T);
    linear(l->inner.k.data, l->y, &in->w_k, &in->b_k, call->B * (M + T));
    linear(l->inner.v.data, l->y, &in->w_v, &in->b_v, call->B * (M + T));
}

/* The rows that a projection starts from: [*rows][E]. */
static double *source_rows(layer *l, const locus_projection *projection, int64_t *rows)
{
    const locus_call *call = l->call;
    const locus_tensor *tensor = locus_tensor_slot(l->in, projection->source);
    *rows = tensor != NULL ? tensor->shape[0] : call->R;
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

/* Weight and bias of a projection, or their gradients: its own, else the shared ones. */
static void projection_tensors(const layer *l, const locus_projection *projection,
                               const locus_tensors *from, const locus_tensor **weight,
                               const locus_tensor **bias)
{
    const int own = locus_tensor_slot(l->in, projection->weight) != NULL;
    *weight = locus_tensor_slot(from, own ? projection->weight : projection->shared_weight);
    *bias = locus_tensor_slot(from, own ? projection->bias : projection->shared_bias);
}

static locus_tensor *slot(locus_tensors *tensors, size_t offset)
{
    return locus_tensor_at(tensors, offset / sizeof(locus_tensor));
}

static void project_tables(layer *l)
{
    const locus_projection *p = l->call->scheme->projections;
    for (size_t x = 0; p != NULL && p[x].table != LOCUS_NO_TENSOR; x++) {
        if (!table_is_used(l->call, p[x].table)) continue;
        int64_t rows;
        const locus_tensor *weight, *bias;
        l->sources[x] = source_rows(l, &p[x], &rows);
        locus_tensor *table = slot(&l->inner, p[x].table);
        *table = take_table(l, rows);
        if (l->memory->failed) return;
        projection_tensors(l, &p[x], l->in, &weight, &bias);
        linear(table->data, l->sources[x], weight, bias, rows);
    }
}

/* The tensors that a layer hands to attention as they are. */
static void lend(locus_tensors *inner, const locus_tensors *outer)
{
    static const size_t lent[] = {
        offsetof(locus_tensors, rel_k),    offsetof(locus_tensors, rel_q),
        offsetof(locus_tensors, rel_v),    offsetof(locus_tensors, u),
        offsetof(locus_tensors, w),        offsetof(locus_tensors, bias),
        offsetof(locus_tensors, cls),      offsetof(locus_tensors, slopes),
        offsetof(locus_tensors, a),        offsetof(locus_tensors, p),
        offsetof(locus_tensors, mask),     offsetof(locus_tensors, bias_dense),
        offsetof(locus_tensors, key_mask),
    };
    for (size_t x = 0; x < sizeof lent / sizeof *lent; x++) {
        const locus_tensor *tensor = locus_tensor_slot(outer, lent[x]);
        if (tensor != NULL) *slot(inner, lent[x]) = *tensor;
    }
}

/* out = Wo mixed + bo, or mixed itself. */
static void project_output(const layer *l, const locus_tensor *out, double *row)
{
    const int64_t HD = l->call->H * l->call->D, T = l->call->T, width = out->shape[2];
    for (int64_t b = 0; b < l->call->B; b++)
        for (int64_t i = 0; i < T; i++) {
            const double *mixed = l->mixed + (b * T + i) * HD;
            if (locus_present(&l->in->w_o))
                linear(row, mixed, &l->in->w_o, &l->in->b_o, 1);
            else
                memcpy(row, mixed, (size_t)HD * sizeof *row);
            memcpy(locus_ref_at(out, b, i, 0), row, (size_t)width * sizeof *row);
        }
}

/* ---- backward ---- */

/* Gradients of what the layer made itself; the rest is the caller's own. */
static void take_inner_gradients(layer *l)
{
    const locus_call *call = l->call;
    const locus_projection *p = call->scheme->projections;
    lend(&l->dinner, l->grad);
    l->dinner.q = take_heads(l, call->T);
    l->dinner.k = take_heads(l, call->M + call->T);
    l->dinner.v = take_heads(l, call->M + call->T);
    for (size_t x = 0; p != NULL && p[x].table != LOCUS_NO_TENSOR; x++)
        if (l->sources[x] != NULL)
            *slot(&l->dinner, p[x].table) = take_table(l, slot(&l->inner, p[x].table)->shape[1]);
    l->dy = locus_ref_take(l->memory, call->B * (call->M + call->T), call->E, sizeof(double));
    l->dmixed = locus_ref_take(l->memory, call->B * call->T, call->H * call->D, sizeof(double));
}

static void project_output_grad(layer *l, const locus_tensor *dout)
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

static void project_tables_grad(layer *l)
{
    const locus_projection *p = l->call->scheme->projections;
    for (size_t x = 0; p != NULL && p[x].table != LOCUS_NO_TENSOR; x++) {
        if (l->sources[x] == NULL) continue;
        const locus_tensor *weight, *bias, *dweight, *dbias;
        const locus_tensor *dtable = slot(&l->dinner, p[x].table);
        const locus_tensor *dsource = locus_tensor_slot(l->grad, p[x].source);
        projection_tensors(l, &p[x], l->in, &weight, &bias);
        projection_tensors(l, &p[x], l->grad, &dweight, &dbias);
        linear_grad(dsource != NULL ? dsource->data : NULL, dweight, dbias, dtable->data,
                    l->sources[x], weight, dtable->shape[1]);
    }
}

static void project_content_grad(layer *l)
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

/* dmemory = dy of its rows, dx = x_scale dy, and p_i = pos[i] takes dy of row i. */
static void scatter_input_grad(const layer *l)
{
    const locus_call *call = l->call;
    const int64_t E = call->E, M = call->M, T = call->T;
    const double factor = x_scale(call);
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
                             const locus_results *results, const locus_tensor *dout,
                             const locus_tensors *grad, ref_memory *memory)
{
    const int64_t HD = call->H * call->D;
    layer l = {.call = call, .in = in, .grad = grad, .memory = memory};
    locus_call inner;
    locus_call_inner(&inner, call);
    lend(&l.inner, in);
    gather_input(&l);
    project_content(&l);
    project_tables(&l);
    l.mixed = locus_ref_take(memory, call->B * call->T, HD, sizeof(double));
    double *row = locus_ref_take(memory, call->E > HD ? call->E : HD, 1, sizeof(double));
    if (dout != NULL) take_inner_gradients(&l);
    if (memory->failed) return LOCUS_ERR_MEMORY;

    const locus_results mixed = {.out = heads_of(call, l.mixed), .lse = results->lse};
    const locus_tensor dmixed = heads_of(call, l.dmixed);
    locus_status status = locus_ref_attend(&inner, &l.inner, &mixed, NULL, NULL, memory);
    if (status != LOCUS_OK) return status;
    project_output(&l, &results->out, row);
    if (dout == NULL) return LOCUS_OK;

    project_output_grad(&l, dout);
    status = locus_ref_attend(&inner, &l.inner, &mixed, &dmixed, &l.dinner, memory);
    if (status != LOCUS_OK) return status;
    project_tables_grad(&l);
    project_content_grad(&l);
    scatter_input_grad(&l);
    return LOCUS_OK;
}

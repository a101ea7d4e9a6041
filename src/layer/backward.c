/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/tensor.h"
#include "layer/layer.h"

#define SLOT(name) offsetof(locus_tensors, name)

/* One backward call at work. */
typedef struct pass {
    const locus_layer *layer;
    const locus_layer_tables *tables; /* NULL: `saved` has them */
    const locus_tensors *in, *grad;
    int add; /* LOCUS_ACCUMULATE */
    layer_saved saved;
    layer_backward work;
} pass;

static int wanted(const pass *p, size_t slot) { return locus_tensor_slot(p->grad, slot) != NULL; }

/* ---- which gradients of attention are needed ---- */

/* With positions in the input, grad.pos comes through x. */
static int input_is_wanted(const pass *p)
{
    return wanted(p, SLOT(x)) || (p->work.dinput != NULL && wanted(p, SLOT(pos)));
}

static int content_parts(const pass *p)
{
    const int x = input_is_wanted(p);
    const int rows = x || wanted(p, SLOT(memory));
    return (x || wanted(p, SLOT(w_q)) || wanted(p, SLOT(b_q)) ? LAYER_Q : 0) |
           (rows || wanted(p, SLOT(w_k)) || wanted(p, SLOT(b_k)) ? LAYER_K : 0) |
           (rows || wanted(p, SLOT(w_v)) || wanted(p, SLOT(b_v)) ? LAYER_V : 0);
}

static int table_parts(const pass *p)
{
    int parts = 0;
    for (size_t i = 0; i < p->layer->table_count; i++) {
        const layer_table *t = &p->layer->tables[i];
        if (wanted(p, t->source) || wanted(p, t->weight) || wanted(p, t->bias))
            parts |= LAYER_TABLE_0 << i;
    }
    return parts;
}

static int any_tensor(const locus_tensors *tensors)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        if (locus_present(locus_tensor_at_const(tensors, i))) return 1;
    return 0;
}

/* ---- attention ---- */

static void clear(float *data, int64_t rows, int64_t width)
{
    memset(data, 0, (size_t)rows * (size_t)width * sizeof(float));
}

/* Gradients that pass straight through obey the caller's flag; where that says "add",
 * our own buffers have to start at 0. */
static void clear_buffers(const pass *p)
{
    const locus_call *call = &p->layer->call;
    const int64_t width = call->H * call->D;
    clear(p->work.rows.q, call->B * call->Tq, width);
    clear(p->work.rows.k, call->B * call->Tk, width);
    clear(p->work.rows.v, call->B * call->Tk, width);
    for (size_t i = 0; i < p->layer->table_count; i++)
        clear(p->work.rows.tables[i], p->layer->tables[i].rows, width);
}

static locus_status attention_backward(const pass *p, const locus_results *dresults, int parts,
                                       locus_error *error)
{
    const locus_layer *layer = p->layer;
    const uint32_t flags = p->add ? LOCUS_ACCUMULATE : 0;
    const size_t bytes = locus_backward_workspace(layer->plan);
    layer_rows rows = p->saved.rows;
    if (p->tables != NULL) memcpy(rows.tables, p->tables->rows, sizeof rows.tables);
    const locus_tensors in = locus_layer_inner(layer, p->in, &rows, LAYER_ALL);
    const locus_tensors grad = locus_layer_inner(layer, p->grad, &p->work.rows, parts);
    const locus_results results = locus_layer_inner_results(layer, &p->saved);
    if (!any_tensor(&grad)) return LOCUS_OK;
    if (p->add) clear_buffers(p);
    if (p->tables == NULL)
        return locus_backward(layer->plan, &in, &results, dresults, &grad, flags, p->work.attention,
                              bytes, error);
    return locus_backward_prepared(layer->plan, p->tables->backward, &in, &results, dresults, &grad,
                                   flags, p->work.attention, bytes, error);
}

/* ---- projections ---- */

/* dy of the output projection, as attention sees it: [B,H,T,D]. */
static locus_tensor output_backward(const pass *p, const locus_tensor *dout)
{
    const locus_call *call = &p->layer->call;
    const int64_t width = call->H * call->D;
    if (p->work.dout == NULL)
        return (locus_tensor){
            .data = dout->data,
            .dtype = LOCUS_F32,
            .rank = 4,
            .shape = {call->B, call->H, call->T, call->D},
            .stride = {dout->stride[0], call->D, dout->stride[1], 1},
        };
    const locus_row_batch dy = locus_layer_tensor_rows(dout);
    const locus_row_batch x =
        locus_layer_buffer_rows(p->saved.out, call->B, call->T, width, 0, call->T);
    const locus_row_batch dx =
        locus_layer_buffer_rows(p->work.dout, call->B, call->T, width, 0, call->T);
    const locus_linear linear =
        locus_layer_linear(p->layer, p->in, SLOT(w_o), SLOT(b_o), p->work.linear);
    locus_linear_backward(&linear, &dy, &x,
                          &(const locus_linear_grad){
                              .x = &dx,
                              .weight = locus_tensor_slot(p->grad, SLOT(w_o)),
                              .bias = locus_tensor_slot(p->grad, SLOT(b_o)),
                              .add_parameters = p->add,
                          });
    return locus_view_bthd(p->work.dout, call->B, call->T, call->H, call->D);
}

/* One projection of content. dx may be NULL. */
static void content_backward(const pass *p, size_t weight, size_t bias, const locus_row_batch *dy,
                             const locus_row_batch *x, const locus_row_batch *dx, int add_x,
                             int add_parameters)
{
    const locus_linear linear = locus_layer_linear(p->layer, p->in, weight, bias, p->work.linear);
    locus_linear_backward(&linear, dy, x,
                          &(const locus_linear_grad){
                              .x = dx,
                              .weight = locus_tensor_slot(p->grad, weight),
                              .bias = locus_tensor_slot(p->grad, bias),
                              .add_x = add_x,
                              .add_parameters = add_parameters,
                          });
}

static void queries_keys_values_backward(const pass *p, int parts)
{
    const locus_call *call = &p->layer->call;
    const int64_t B = call->B, T = call->T, M = call->M, Tk = call->Tk, width = call->H * call->D;
    const locus_tensor *grad_memory = locus_tensor_slot(p->grad, SLOT(memory));
    const locus_tensor *memory = locus_tensor_slot(p->in, SLOT(memory));
    const locus_row_batch x = locus_layer_input(p->layer, p->in, &p->saved);
    const int has_dx = input_is_wanted(p);
    locus_row_batch dx = {.rows = 0};
    if (p->work.dinput != NULL)
        dx = locus_layer_buffer_rows(p->work.dinput, B, T, call->E, 0, T);
    else if (has_dx)
        dx = locus_layer_tensor_rows(&p->grad->x);

    if (parts & LAYER_Q) {
        const locus_row_batch dq = locus_layer_buffer_rows(p->work.rows.q, B, T, width, 0, T);
        content_backward(p, SLOT(w_q), SLOT(b_q), &dq, &x, has_dx ? &dx : NULL,
                         p->add && p->work.dinput == NULL, p->add);
    }
    const struct {
        int part;
        size_t weight, bias;
        float *buffer;
    } sides[] = {{LAYER_K, SLOT(w_k), SLOT(b_k), p->work.rows.k},
                 {LAYER_V, SLOT(w_v), SLOT(b_v), p->work.rows.v}};
    for (size_t i = 0; i < 2; i++) {
        if (!(parts & sides[i].part)) continue;
        const locus_row_batch last = locus_layer_buffer_rows(sides[i].buffer, B, Tk, width, M, T);
        content_backward(p, sides[i].weight, sides[i].bias, &last, &x, has_dx ? &dx : NULL, 1,
                         p->add);
        if (memory == NULL) continue;
        const locus_row_batch first = locus_layer_buffer_rows(sides[i].buffer, B, Tk, width, 0, M);
        const locus_row_batch from = locus_layer_tensor_rows(memory);
        locus_row_batch to = {.rows = 0};
        if (grad_memory != NULL) to = locus_layer_tensor_rows(grad_memory);
        content_backward(p, sides[i].weight, sides[i].bias, &first, &from,
                         grad_memory != NULL ? &to : NULL, p->add || i > 0, 1);
    }
}

/* Rows of a source that no table was made from: their gradient is 0. */
static void clear_spare_rows(const pass *p, const locus_tensor *source, int64_t rows)
{
    if (p->add) return;
    for (int64_t r = rows; r < source->shape[0]; r++)
        memset(locus_f32(source, r, 0, 0), 0, (size_t)source->shape[1] * sizeof(float));
}

/* 1 when a table before number `index` has written the gradient of the same source. */
static int source_is_started(const locus_layer *layer, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (layer->tables[i].source == layer->tables[index].source) return 1;
    return 0;
}

/* Tables come after the content: what they share with it is there to be added to. */
static void tables_backward(const pass *p, int parts)
{
    const locus_layer *layer = p->layer;
    const int64_t width = layer->call.H * layer->call.D;
    for (size_t i = 0; i < layer->table_count; i++) {
        const layer_table *t = &layer->tables[i];
        if (!(parts & (LAYER_TABLE_0 << i))) continue;
        const locus_row_batch dy =
            locus_layer_buffer_rows(p->work.rows.tables[i], 1, t->rows, width, 0, t->rows);
        const locus_row_batch x = locus_layer_source(layer, p->in, t);
        const locus_tensor *grad_source = locus_tensor_slot(p->grad, t->source);
        locus_row_batch dx = {.rows = 0};
        if (grad_source != NULL) {
            dx = locus_layer_tensor_rows(grad_source);
            dx.rows = t->rows;
            clear_spare_rows(p, grad_source, t->rows);
        }
        content_backward(p, t->weight, t->bias, &dy, &x, grad_source != NULL ? &dx : NULL,
                         p->add || source_is_started(layer, i), p->add || t->shared);
    }
}

/* ---- x_scale x + p ---- */

static void input_row(void *context, size_t index, uint32_t worker)
{
    const pass *p = context;
    const locus_call *call = &p->layer->call;
    const int64_t i = (int64_t)index, E = call->E;
    const locus_tensor *dx = locus_tensor_slot(p->grad, SLOT(x));
    const locus_tensor *dpos = locus_tensor_slot(p->grad, SLOT(pos));
    (void)worker;
    if (dpos != NULL && !p->add) clear(locus_f32(dpos, i, 0, 0), 1, E);
    for (int64_t b = 0; b < call->B; b++) {
        const float *from = p->work.dinput + (b * call->T + i) * E;
        if (dpos != NULL) p->layer->kernels->add(locus_f32(dpos, i, 0, 0), from, E);
        float *to = dx != NULL ? locus_f32(dx, b, i, 0) : NULL;
        for (int64_t e = 0; to != NULL && e < E; e++) {
            const float scaled = (float)(p->layer->x_scale * (double)from[e]);
            to[e] = p->add ? to[e] + scaled : scaled;
        }
    }
}

static void input_backward(pass *p)
{
    const locus_tensor *dpos = locus_tensor_slot(p->grad, SLOT(pos));
    if (p->work.dinput == NULL || !input_is_wanted(p)) return;
    locus_parallel_for(p->layer->threads, (size_t)p->layer->call.T, input_row, p);
    if (dpos != NULL) clear_spare_rows(p, dpos, p->layer->call.T);
}

static locus_status backward(const locus_layer *layer, const locus_layer_tables *tables,
                             const locus_tensors *in, const locus_results *dresults,
                             const locus_tensors *grad, uint32_t flags, const void *saved,
                             size_t saved_bytes, void *workspace, size_t workspace_bytes,
                             locus_error *error)
{
    locus_tensors own_in, own_grad;
    locus_results own_dresults;
    if (layer == NULL || in == NULL || dresults == NULL || grad == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "layer: NULL argument");
    LOCUS_TRY(locus_adopt_tensors(&in, &own_in, "tensors", error));
    LOCUS_TRY(locus_adopt_results(&dresults, &own_dresults, "dresults", error));
    LOCUS_TRY(locus_adopt_tensors(&grad, &own_grad, "grad", error));
    LOCUS_TRY(locus_layer_check_backward(layer, in, dresults, grad, flags, saved, saved_bytes,
                                         workspace, workspace_bytes, error));
    pass p = {.layer = layer,
              .tables = tables,
              .in = in,
              .grad = grad,
              .add = (flags & LOCUS_ACCUMULATE) != 0};
    locus_layer_carve_saved(layer, (void *)(uintptr_t)saved, &p.saved);
    if (tables == NULL && *p.saved.without_tables == 1)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "saved: found that of locus_layer_forward_prepared, which has no tables, "
                          "expected that of locus_layer_forward");
    locus_layer_carve_backward(layer, workspace, &p.work);

    const int content = content_parts(&p), relative = table_parts(&p);
    const locus_results inner = {.size = sizeof inner,
                                 .out = output_backward(&p, &dresults->out),
                                 .lse = dresults->lse};
    LOCUS_TRY(attention_backward(&p, &inner, content | relative, error));
    queries_keys_values_backward(&p, content);
    tables_backward(&p, relative);
    input_backward(&p);
    return LOCUS_OK;
}

locus_status locus_layer_backward(const locus_layer *layer, const locus_tensors *in,
                                  const locus_results *dresults, const locus_tensors *grad,
                                  uint32_t flags, const void *saved, size_t saved_bytes,
                                  void *workspace, size_t workspace_bytes, locus_error *error)
{
    return backward(layer, NULL, in, dresults, grad, flags, saved, saved_bytes, workspace,
                    workspace_bytes, error);
}

locus_status locus_layer_backward_prepared(const locus_layer *layer,
                                           const locus_layer_tables *tables,
                                           const locus_tensors *in, const locus_results *dresults,
                                           const locus_tensors *grad, uint32_t flags,
                                           const void *saved, size_t saved_bytes, void *workspace,
                                           size_t workspace_bytes, locus_error *error)
{
    if (tables == NULL || tables->layer != layer || tables->backward == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "layer: tables: found %s, expected those made for this layer with "
                          "LOCUS_TABLES_BACKWARD",
                          tables == NULL           ? "NULL"
                          : tables->layer != layer ? "those of another layer"
                                                   : "those of the forward pass alone");
    return backward(layer, tables, in, dresults, grad, flags, saved, saved_bytes, workspace,
                    workspace_bytes, error);
}

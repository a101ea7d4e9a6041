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

/* What each query has of its own. */
static int query_parts(const pass *p)
{
    const locus_layer *layer = p->layer;
    const int x = input_is_wanted(p);
    int parts = layer->query_width > 0 && (x || wanted(p, SLOT(w_r)) || wanted(p, SLOT(b_r)))
                    ? LAYER_POS_QUERY
                    : 0;
    for (size_t i = 0; layer->call.scheme->gate != NULL && i < LOCUS_OWN_TENSORS; i++)
        if (x || locus_present(&p->grad->own[i])) parts |= LAYER_GATE;
    return parts;
}

/* What each position has, from x itself and from memory. */
static int position_parts(const pass *p)
{
    int parts = 0;
    for (int number = 0; number < LAYER_POSITION_GATES; number++) {
        layer_position_gate gate;
        if (locus_layer_position_gate(p->layer, number, &gate) &&
            (wanted(p, SLOT(x)) || wanted(p, SLOT(memory)) || wanted(p, gate.weight) ||
             wanted(p, gate.bias)))
            parts |= gate.part;
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
    if (data != NULL) memset(data, 0, (size_t)rows * (size_t)width * sizeof(float));
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
    clear(p->work.rows.pos_query, call->B * call->Tq, call->H * p->layer->query_width);
    clear(p->work.rows.gate, call->B * call->H, call->Tq);
    clear(p->work.rows.log_gate, call->B * call->H, call->M + call->T);
    clear(p->work.rows.log_decay, call->B * (call->M + call->T), width);
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
            .dtype = dout->dtype,
            .rank = 4,
            .shape = {call->B, call->H, call->T, call->D},
            .stride = {dout->stride[0], call->D, dout->stride[1], 1},
        };
    const layer_multiplier *m = &p->work.multiplier;
    const locus_tensor *dw = locus_tensor_slot(p->grad, SLOT(w_o));
    const locus_tensor *db = locus_tensor_slot(p->grad, SLOT(b_o));
    const layer_matrix dx =
        locus_layer_buffer_rows(p->work.dout, call->B, call->T, width, 0, call->T);
    const layer_map map = {.weight = &p->in->w_o,
                           .x = locus_layer_buffer_rows(p->saved.out, call->B, call->T, width, 0,
                                                        call->T),
                           .y = locus_layer_tensor_rows(dout)};
    locus_layer_source_gradient(m, &map, 1, &dx, 0);
    if (dw != NULL) locus_layer_weight_gradient(m, &map, 1, dw, p->add);
    if (db != NULL) locus_layer_bias_gradient(m, &map, 1, db, p->add);
    return locus_view_bthd(p->work.dout, call->B, call->T, call->H, call->D);
}

/* The maps between the layer's inputs and attention, with what attention gave back: content of x
 * and of memory, gates of both, then tables. A gradient that several of them have a part in is summed in this
 * order. */
enum { MOST_MAPS = 7 + LOCUS_LAYER_TABLES + 2 * LAYER_POSITION_GATES };
typedef struct input_maps {
    layer_map maps[MOST_MAPS];
    size_t weights[MOST_MAPS], biases[MOST_MAPS], sources[MOST_MAPS]; /* slots */
    size_t count;
    locus_tensor gate_weight; /* of the map to the gates */
    size_t gate;              /* its number; MOST_MAPS: none */
} input_maps;

static void add_map(const pass *p, input_maps *list, size_t weight, size_t bias, size_t source,
                    layer_matrix x, layer_matrix dy)
{
    const size_t i = list->count++;
    list->maps[i] = (layer_map){.weight = locus_tensor_slot(p->in, weight), .x = x, .y = dy};
    list->weights[i] = weight;
    list->biases[i] = bias;
    list->sources[i] = source;
}

static void list_content(const pass *p, int parts, input_maps *list)
{
    const locus_call *call = &p->layer->call;
    const int64_t B = call->B, T = call->T, M = call->M, Tk = call->Tk, width = call->H * call->D;
    const layer_matrix x = locus_layer_input(p->layer, p->in, &p->saved);
    if (parts & LAYER_Q)
        add_map(p, list, SLOT(w_q), SLOT(b_q), SLOT(x), x,
                locus_layer_buffer_rows(p->work.rows.q, B, T, width, 0, T));
    const struct {
        int part;
        size_t weight, bias;
        float *buffer;
    } sides[] = {{LAYER_K, SLOT(w_k), SLOT(b_k), p->work.rows.k},
                 {LAYER_V, SLOT(w_v), SLOT(b_v), p->work.rows.v}};
    for (size_t i = 0; i < 2; i++) {
        if (!(parts & sides[i].part)) continue;
        add_map(p, list, sides[i].weight, sides[i].bias, SLOT(x), x,
                locus_layer_buffer_rows(sides[i].buffer, B, Tk, width, M, T));
        if (!locus_present(&p->in->memory)) continue;
        add_map(p, list, sides[i].weight, sides[i].bias, SLOT(memory),
                locus_layer_tensor_rows(&p->in->memory),
                locus_layer_buffer_rows(sides[i].buffer, B, Tk, width, 0, M));
    }
}

static void list_query_rows(const pass *p, int parts, input_maps *list)
{
    const locus_layer *layer = p->layer;
    const locus_call *call = &layer->call;
    const layer_matrix x = locus_layer_input(layer, p->in, &p->saved);
    if (parts & LAYER_POS_QUERY)
        add_map(p, list, SLOT(w_r), SLOT(b_r), SLOT(x), x,
                locus_layer_buffer_rows(p->work.rows.pos_query, call->B, call->T,
                                        call->H * layer->query_width, 0, call->T));
    list->gate = MOST_MAPS;
    if (!(parts & LAYER_GATE)) return;
    locus_layer_gates_backward(layer, p->in, &p->saved.rows, &p->work.rows, p->grad,
                               p->work.gate_twins);
    list->gate = list->count;
    add_map(p, list, LOCUS_NO_TENSOR, LOCUS_NO_TENSOR, SLOT(x), x, x);
    list->maps[list->gate] =
        locus_layer_gate_map(layer, &p->saved.rows, &p->work.rows, &x, &list->gate_weight);
}

/* Of the source of a map that reads x without its positions, where there are some. */
#define RAW_X (LOCUS_NO_TENSOR - 2)

static void list_position_gates(const pass *p, int parts, input_maps *list)
{
    for (int number = 0; number < LAYER_POSITION_GATES; number++) {
        layer_position_gate gate;
        if (!locus_layer_position_gate(p->layer, number, &gate) || !(parts & gate.part)) continue;
        locus_layer_position_gate_gradient(p->layer, &gate, &p->saved.rows, &p->work.rows);
        add_map(p, list, gate.weight, gate.bias, p->work.dinput != NULL ? RAW_X : SLOT(x),
                locus_layer_tensor_rows(&p->in->x),
                locus_layer_gate_side(p->layer, &p->work.rows, &gate, 0));
        if (locus_present(&p->in->memory))
            add_map(p, list, gate.weight, gate.bias, SLOT(memory),
                    locus_layer_tensor_rows(&p->in->memory),
                    locus_layer_gate_side(p->layer, &p->work.rows, &gate, 1));
    }
}

static void list_tables(const pass *p, int parts, input_maps *list)
{
    const locus_layer *layer = p->layer;
    const int64_t width = layer->call.H * layer->call.D;
    for (size_t i = 0; i < layer->table_count; i++) {
        const layer_table *t = &layer->tables[i];
        if (!(parts & (LAYER_TABLE_0 << i))) continue;
        add_map(p, list, t->weight, t->bias, t->source, locus_layer_source(layer, p->in, t),
                locus_layer_buffer_rows(p->work.rows.tables[i], 1, t->rows, width, 0, t->rows));
    }
}

/* Those of `list` whose slot is that of number `index`, into `some`. 0: an earlier one is among
 * them, so they are done. */
static size_t pick_maps(const input_maps *list, const size_t *slots, size_t index, layer_map *some)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (slots[i] != slots[index]) continue;
        if (i < index) return 0;
        some[count++] = list->maps[i];
    }
    return count;
}

/* Rows of a source that no table was made from: their gradient is 0. */
static void clear_spare_rows(const pass *p, const locus_tensor *source, int64_t rows)
{
    const size_t bytes = locus_dtype_bytes(source->dtype);
    if (p->add) return;
    for (int64_t r = rows; r < source->shape[0]; r++)
        memset((char *)source->data + (size_t)(r * source->stride[0]) * bytes, 0,
               (size_t)source->shape[1] * bytes);
}

/* The gradient of what map number `index` reads, with all that read the same. */
static void source_backward(const pass *p, const input_maps *list, size_t index)
{
    const size_t slot = list->sources[index];
    const layer_matrix *x = &list->maps[index].x;
    const locus_tensor *grad = slot != RAW_X ? locus_tensor_slot(p->grad, slot) : NULL;
    const int by_input = slot == SLOT(x) && p->work.dinput != NULL;
    layer_map some[MOST_MAPS];
    if (by_input ? !input_is_wanted(p) : grad == NULL) return;
    const size_t count = pick_maps(list, list->sources, index, some);
    if (count == 0) return;
    layer_matrix dx;
    if (by_input) {
        dx = locus_layer_buffer_rows(p->work.dinput, x->batches, x->rows, x->width, 0, x->rows);
    } else {
        dx = locus_layer_tensor_rows(grad);
        if (grad->rank == 2) clear_spare_rows(p, grad, x->rows);
        dx.rows = x->rows;
    }
    locus_layer_source_gradient(&p->work.multiplier, some, count, &dx, p->add && !by_input);
}

static void parameters_backward(const pass *p, const input_maps *list, size_t index)
{
    const locus_tensor *dw = locus_tensor_slot(p->grad, list->weights[index]);
    const locus_tensor *db = locus_tensor_slot(p->grad, list->biases[index]);
    layer_map some[MOST_MAPS];
    size_t count = dw != NULL ? pick_maps(list, list->weights, index, some) : 0;
    if (count > 0) locus_layer_weight_gradient(&p->work.multiplier, some, count, dw, p->add);
    count = db != NULL ? pick_maps(list, list->biases, index, some) : 0;
    if (count > 0) locus_layer_bias_gradient(&p->work.multiplier, some, count, db, p->add);
}

static void maps_backward(const pass *p, int parts, input_maps *list)
{
    list_content(p, parts, list);
    list_query_rows(p, parts, list);
    list_position_gates(p, parts, list);
    list_tables(p, parts, list);
    for (size_t i = 0; i < list->count; i++) {
        source_backward(p, list, i);
        parameters_backward(p, list, i);
    }
    if (list->gate < list->count)
        locus_layer_gate_parameters(p->layer, &p->work.multiplier, &list->maps[list->gate],
                                    &p->work.rows, p->grad, p->work.gate_twins, p->add);
}

/* ---- x_scale x + p ---- */

/* Row `row` of a gradient as floats: zero, or what is there where the caller adds to it. */
static void begin_row(const pass *p, const layer_matrix *to, int64_t row, float *floats)
{
    if (p->add)
        locus_layer_load(p->layer->kernels, floats, to, row, 1);
    else
        clear(floats, 1, to->width);
}

/* Positions are the same for all batch entries; what is left of dinput is scaled to grad.x. */
static void input_row(void *context, size_t index, uint32_t worker)
{
    const pass *p = context;
    const locus_call *call = &p->layer->call;
    const locus_kernels *kernels = p->layer->kernels;
    const int64_t i = (int64_t)index, E = call->E;
    const locus_tensor *dx = locus_tensor_slot(p->grad, SLOT(x));
    const locus_tensor *dpos = locus_tensor_slot(p->grad, SLOT(pos));
    float *row = p->work.row + worker * E;
    if (dpos != NULL) {
        const layer_matrix to = locus_layer_tensor_rows(dpos);
        begin_row(p, &to, i, row);
        for (int64_t b = 0; b < call->B; b++)
            kernels->add(row, p->work.dinput + (b * call->T + i) * E, E);
        locus_layer_store(kernels, &to, row, i, 1);
    }
    for (int64_t b = 0; dx != NULL && b < call->B; b++) {
        const layer_matrix to = locus_layer_tensor_rows(dx);
        float *from = p->work.dinput + (b * call->T + i) * E;
        for (int64_t e = 0; e < E; e++) from[e] = (float)(p->layer->x_scale * (double)from[e]);
        if (p->add) {
            begin_row(p, &to, b * call->T + i, row);
            kernels->add(from, row, E);
        }
        locus_layer_store(kernels, &to, from, b * call->T + i, 1);
    }
}

static void input_backward(pass *p)
{
    const locus_tensor *dpos = locus_tensor_slot(p->grad, SLOT(pos));
    if (p->work.dinput == NULL || !input_is_wanted(p)) return;
    locus_parallel_for(p->layer->threads, (size_t)p->layer->call.T, input_row, p);
    if (dpos != NULL) clear_spare_rows(p, dpos, p->layer->call.T);
}

/* What reads x beside its positions adds to a gradient that holds the rest. */
static void raw_input_backward(const pass *p, const input_maps *list)
{
    const locus_tensor *grad = locus_tensor_slot(p->grad, SLOT(x));
    for (size_t i = 0; grad != NULL && i < list->count; i++) {
        layer_map some[MOST_MAPS];
        const size_t count =
            list->sources[i] == RAW_X ? pick_maps(list, list->sources, i, some) : 0;
        const layer_matrix dx = locus_layer_tensor_rows(grad);
        if (count > 0) locus_layer_source_gradient(&p->work.multiplier, some, count, &dx, 1);
    }
}

static LOCUS_NOINLINE locus_status run(const locus_layer *layer, const locus_layer_tables *tables,
                                       const locus_tensors *in, const locus_results *dresults,
                                       const locus_tensors *grad, uint32_t flags, const void *saved,
                                       size_t saved_bytes, void *workspace, size_t workspace_bytes,
                                       locus_error *error)
{
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

    input_maps list = {.count = 0};
    const int content = content_parts(&p) | query_parts(&p) | position_parts(&p);
    const int relative = table_parts(&p);
    const locus_results inner = {.size = sizeof inner,
                                 .out = output_backward(&p, &dresults->out),
                                 .lse = dresults->lse};
    LOCUS_TRY(attention_backward(&p, &inner, content | relative, error));
    maps_backward(&p, content | relative, &list);
    input_backward(&p);
    raw_input_backward(&p, &list);
    return LOCUS_OK;
}

/* Structs of another version are copied first, 17 KB of stack that a call of this version does without. */
static LOCUS_NOINLINE locus_status adopt_and_run(
    const locus_layer *layer, const locus_layer_tables *tables, const locus_tensors *in,
    const locus_results *dresults, const locus_tensors *grad, uint32_t flags, const void *saved,
    size_t saved_bytes, void *workspace, size_t workspace_bytes, locus_error *error)
{
    locus_tensors own_in, own_grad;
    locus_results own_dresults;
    LOCUS_TRY(locus_adopt_tensors(&in, &own_in, "tensors", error));
    LOCUS_TRY(locus_adopt_results(&dresults, &own_dresults, "dresults", error));
    LOCUS_TRY(locus_adopt_tensors(&grad, &own_grad, "grad", error));
    return run(layer, tables, in, dresults, grad, flags, saved, saved_bytes, workspace,
               workspace_bytes, error);
}

static locus_status backward(const locus_layer *layer, const locus_layer_tables *tables,
                             const locus_tensors *in, const locus_results *dresults,
                             const locus_tensors *grad, uint32_t flags, const void *saved,
                             size_t saved_bytes, void *workspace, size_t workspace_bytes,
                             locus_error *error)
{
    if (layer == NULL || in == NULL || dresults == NULL || grad == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "layer: NULL argument");
    const int current =
        in->size == sizeof *in && dresults->size == sizeof *dresults && grad->size == sizeof *grad;
    return (current ? run : adopt_and_run)(layer, tables, in, dresults, grad, flags, saved,
                                           saved_bytes, workspace, workspace_bytes, error);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/carve.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/tensor.h"
#include "layer/layer.h"

/* ---- memory of the passes ---- */

static void carve_rows(const locus_layer *layer, locus_carver *c, layer_rows *rows)
{
    const locus_call *call = &layer->call;
    const int64_t width = call->H * call->D;
    rows->q = locus_carve_floats(c, call->B, call->Tq, width);
    rows->k = locus_carve_floats(c, call->B, call->Tk, width);
    rows->v = locus_carve_floats(c, call->B, call->Tk, width);
    for (size_t i = 0; i < layer->table_count; i++)
        rows->tables[i] = locus_carve_floats(c, 1, layer->tables[i].rows, width);
    if (layer->query_width > 0)
        rows->pos_query = locus_carve_floats(c, call->B, call->Tq, call->H * layer->query_width);
    for (int number = 0; number < LAYER_POSITION_GATES; number++) {
        layer_position_gate gate;
        if (!locus_layer_position_gate(layer, number, &gate)) continue;
        float *of_rows = locus_carve_floats(c, call->B, call->M + call->T, gate.width);
        if (gate.part == LAYER_LOG_DECAY) {
            rows->log_decay = of_rows;
        } else {
            rows->gate_rows = of_rows;
            rows->log_gate = locus_carve_floats(c, call->B, call->H, call->M + call->T);
        }
    }
    if (call->scheme->gate == NULL) return;
    rows->gate = locus_carve_floats(c, call->B, call->H, call->Tq);
    rows->gate_inputs = locus_carve_floats(c, call->B, call->Tq, call->H * LOCUS_GATE_OUTPUTS);
    rows->gate_weight = locus_carve_floats(c, call->H, LOCUS_GATE_OUTPUTS, call->E);
    rows->gate_bias = locus_carve_floats(c, 1, call->H, LOCUS_GATE_OUTPUTS);
}

int locus_layer_carve_saved(const locus_layer *layer, void *base, layer_saved *saved)
{
    const locus_call *call = &layer->call;
    locus_carver c = {.base = base};
    if (call->scheme->embed != NULL)
        saved->input = locus_carve_floats(&c, call->B, call->T, call->E);
    carve_rows(layer, &c, &saved->rows);
    saved->out = locus_carve_floats(&c, call->B, call->T, call->H * call->D);
    saved->lse = locus_carve_floats(&c, call->B, call->H, call->T);
    saved->without_tables = locus_carve(&c, sizeof *saved->without_tables);
    return locus_carved_bytes(&c, &saved->bytes);
}

int locus_layer_carve_maps(const locus_layer *layer, void *base, layer_multiplier *multiplier,
                           size_t *bytes)
{
    locus_carver c = {.base = base};
    *multiplier = (layer_multiplier){.kernels = layer->kernels,
                                     .threads = layer->threads,
                                     .second_cache = layer->second_cache};
    locus_layer_carve_multiplier(&c, &layer->extents, multiplier);
    return locus_carved_bytes(&c, bytes);
}

/* Workspaces that are used one after the other lie on top of each other. */
static void carve_shared(const locus_layer *layer, locus_carver *c, layer_multiplier *multiplier,
                         void **attention, uint64_t attention_size)
{
    size_t maps = 0;
    if (!locus_layer_carve_maps(layer, NULL, multiplier, &maps)) c->failed = 1;
    *attention = locus_carve(c, maps > attention_size ? maps : attention_size);
    if (*attention != NULL) locus_layer_carve_maps(layer, *attention, multiplier, &maps);
}

int locus_layer_carve_forward(const locus_layer *layer, void *base, layer_forward *work)
{
    locus_carver c = {.base = base};
    const uint64_t extents[] = {layer->threads, (uint64_t)layer->call.E, sizeof(double)};
    const uint64_t attention = locus_forward_workspace(layer->plan);
    uint64_t row = 0;
    if (!locus_product_u64(&row, extents, 3)) c.failed = 1;
    carve_shared(layer, &c, &work->multiplier, &work->attention, attention > row ? attention : row);
    work->row = work->attention;
    return locus_carved_bytes(&c, &work->bytes);
}

int locus_layer_carve_backward(const locus_layer *layer, void *base, layer_backward *work)
{
    const locus_call *call = &layer->call;
    locus_carver c = {.base = base};
    if (call->scheme->embed != NULL) {
        work->dinput = locus_carve_floats(&c, call->B, call->T, call->E);
        work->row = locus_carve_floats(&c, 1, layer->threads, call->E);
    }
    if (locus_present(&layer->shapes.w_o))
        work->dout = locus_carve_floats(&c, call->B, call->T, call->H * call->D);
    work->gate_twins =
        locus_carve(&c, (uint64_t)locus_layer_gate_numbers(layer) * sizeof *work->gate_twins);
    carve_rows(layer, &c, &work->rows);
    carve_shared(layer, &c, &work->multiplier, &work->attention,
                 locus_backward_workspace(layer->plan));
    return locus_carved_bytes(&c, &work->bytes);
}

/* ---- what the scheme asks of a layer ---- */

static int declares(const locus_call *call, size_t option)
{
    for (const locus_option_info *o = call->scheme->options; o->name != NULL; o++)
        if (o->offset == option) return 1;
    return 0;
}

/* DeBERTa can leave one of its two tables out. */
static int table_is_used(const locus_call *call, size_t table)
{
    if (table == offsetof(locus_tensors, rel_k) && declares(call, offsetof(locus_options, c2p)))
        return call->options.c2p != 0;
    if (table == offsetof(locus_tensors, rel_q) && declares(call, offsetof(locus_options, p2c)))
        return call->options.p2c != 0;
    return 1;
}

/* Rows of a table that attention can reach. Where a row is a position, those that no
 * query and no key has are left alone. */
static int64_t table_rows(const locus_call *call, const locus_projection *p,
                          const locus_tensors *shapes)
{
    if (p->source != offsetof(locus_tensors, pos)) return call->R;
    const int64_t rows = shapes->pos.shape[0], past = call->query_offset + call->Tq;
    const int64_t used = past > call->Tk ? past : call->Tk;
    return rows < used ? rows : used;
}

static void list_tables(locus_layer *layer)
{
    const locus_projection *p = layer->call.scheme->projections;
    for (; p != NULL && p->table != LOCUS_NO_TENSOR; p++) {
        if (!table_is_used(&layer->call, p->table) || layer->table_count == LOCUS_LAYER_TABLES)
            continue;
        const int own = locus_tensor_slot(&layer->shapes, p->weight) != NULL;
        layer->tables[layer->table_count++] = (layer_table){
            .table = p->table,
            .source = p->source,
            .weight = own ? p->weight : p->shared_weight,
            .bias = own ? p->bias : p->shared_bias,
            .rows = table_rows(&layer->call, p, &layer->shapes),
            .shared = !own,
        };
    }
}

typedef struct sinusoid_job {
    const locus_layer *layer;
    double *rows; /* [threads, E] */
} sinusoid_job;

/* Row r of Transformer-XL's table is the sinusoid of distance delta_min + r. */
static void sinusoid_row(void *context, size_t index, uint32_t worker)
{
    const sinusoid_job *job = context;
    const locus_call *call = &job->layer->call;
    double *row = job->rows + worker * call->E;
    float *to = job->layer->sinusoid + (int64_t)index * call->E;
    locus_sinusoid(call->options.table, call->E, call->options.delta_min + (int64_t)index, row);
    for (int64_t e = 0; e < call->E; e++) to[e] = (float)row[e];
}

static locus_status make_sinusoid(locus_layer *layer, locus_error *error)
{
    const locus_call *call = &layer->call;
    int wanted = 0;
    for (size_t i = 0; i < layer->table_count; i++)
        wanted |= layer->tables[i].source == LOCUS_SINUSOID;
    if (!wanted) return LOCUS_OK;
    const size_t E = (size_t)call->E; /* at most 2^24 */
    sinusoid_job job = {layer,
                        locus_allocate(layer->allocator, layer->threads, E * sizeof(double))};
    if (job.rows != NULL)
        layer->sinusoid = locus_allocate(layer->allocator, (size_t)call->R, E * sizeof(float));
    if (layer->sinusoid != NULL)
        locus_parallel_for(layer->threads, (size_t)call->R, sinusoid_row, &job);
    locus_release(layer->allocator, job.rows);
    return layer->sinusoid != NULL
               ? LOCUS_OK
               : locus_fail(error, LOCUS_ERR_MEMORY, "layer: no memory for the sinusoid table");
}

/* ---- the attention inside ---- */

static locus_tensor heads_view(float *data, int64_t rows, const locus_call *call)
{
    return locus_view_bthd(data, call->B, rows, call->H, call->D);
}

static locus_tensor table_view(float *data, int64_t rows, const locus_call *call)
{
    return (locus_tensor){
        .data = data,
        .dtype = LOCUS_F32,
        .rank = 3,
        .shape = {call->H, rows, call->D},
        .stride = {call->D, call->H * call->D, 1},
    };
}

static void take_position_gates(const locus_layer *layer, const layer_rows *rows, int parts,
                                locus_tensors *inner)
{
    const locus_call *call = &layer->call;
    const int64_t N = call->M + call->T;
    layer_position_gate gate;
    if ((parts & LAYER_LOG_GATE) && locus_layer_position_gate(layer, 0, &gate))
        inner->log_gate =
            locus_view(rows->log_gate, LOCUS_F32, 3, (const int64_t[]){call->B, call->H, N});
    if ((parts & LAYER_LOG_DECAY) && locus_layer_position_gate(layer, 1, &gate))
        *(locus_tensor *)(void *)((char *)inner + call->scheme->log_decay) =
            heads_view(rows->log_decay, N, call);
}

locus_tensors locus_layer_inner(const locus_layer *layer, const locus_tensors *outer,
                                const layer_rows *rows, int parts)
{
    const locus_call *call = &layer->call;
    locus_tensors inner = {.size = sizeof inner};
    locus_lend_tensors(call->scheme, &inner, outer);
    if (parts & LAYER_Q) inner.q = heads_view(rows->q, call->Tq, call);
    if (parts & LAYER_K) inner.k = heads_view(rows->k, call->Tk, call);
    if (parts & LAYER_V) inner.v = heads_view(rows->v, call->Tk, call);
    if ((parts & LAYER_POS_QUERY) && layer->query_width > 0)
        inner.pos_query =
            locus_view_bthd(rows->pos_query, call->B, call->Tq, call->H, layer->query_width);
    if ((parts & LAYER_GATE) && call->scheme->gate != NULL)
        inner.gate =
            locus_view(rows->gate, LOCUS_F32, 3, (const int64_t[]){call->B, call->H, call->Tq});
    take_position_gates(layer, rows, parts, &inner);
    for (size_t i = 0; i < layer->table_count; i++)
        if (parts & (LAYER_TABLE_0 << i))
            *(locus_tensor *)(void *)((char *)&inner + layer->tables[i].table) =
                table_view(rows->tables[i], layer->tables[i].rows, call);
    return inner;
}

locus_results locus_layer_inner_results(const locus_layer *layer, const layer_saved *saved)
{
    const locus_call *call = &layer->call;
    return (locus_results){
        .size = sizeof(locus_results),
        .out = heads_view(saved->out, call->T, call),
        .lse = locus_view(saved->lse, LOCUS_F32, 3, (const int64_t[]){call->B, call->H, call->T}),
    };
}

static locus_status plan_attention(locus_layer *layer, const locus_config *config,
                                   locus_error *error)
{
    const locus_call *call = &layer->call;
    const layer_rows none = {.q = NULL};
    const locus_tensors shapes = locus_layer_inner(layer, &layer->shapes, &none, LAYER_ALL);
    locus_config inner = *config;
    inner.options = call->options; /* with the delta_min that the layer chose */
    inner.query_offset = call->query_offset;
    inner.scale = call->scale;
    LOCUS_TRY(locus_plan_new(&layer->plan, &inner, &shapes, error));

    locus_plan_info info = {.size = sizeof info};
    locus_plan_describe(layer->plan, &info);
    layer->threads = info.threads;
    layer->kernels = locus_kernels_pick(info.isa);
    layer->second_cache = locus_cpu_caches().second;
    return layer->kernels != NULL
               ? LOCUS_OK
               : locus_fail(error, LOCUS_ERR_ISA, "isa \"%s\" is not available", info.isa);
}

/* ---- the layer ---- */

/* Of all linear maps. Rows are rows of `saved`, whose size fits. */
static layer_extents find_extents(const locus_layer *layer)
{
    const locus_call *call = &layer->call;
    const int64_t width = call->H * call->D;
    layer_extents extents = {.rows = call->B * call->Tk,
                             .width = width > call->E ? width : call->E};
    const int64_t own = call->H * (call->scheme->gate != NULL ? LOCUS_GATE_OUTPUTS : 0);
    if (call->H * layer->query_width > extents.width) extents.width = call->H * layer->query_width;
    if (own > extents.width) extents.width = own;
    for (int number = 0; number < LAYER_POSITION_GATES; number++) {
        layer_position_gate gate;
        if (locus_layer_position_gate(layer, number, &gate) && gate.width > extents.width)
            extents.width = gate.width;
    }
    for (size_t i = 0; i < layer->table_count; i++)
        if (layer->tables[i].rows > extents.rows) extents.rows = layer->tables[i].rows;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(&layer->shapes, i);
        if (locus_present(t) && locus_is_half(t)) extents.halves = 1;
    }
    return extents;
}

static locus_status measure(locus_layer *layer, locus_error *error)
{
    layer_saved saved = {.bytes = 0};
    layer_forward forward = {.bytes = 0};
    layer_backward backward = {.bytes = 0};
    if (!locus_layer_carve_saved(layer, NULL, &saved) ||
        !locus_layer_carve_forward(layer, NULL, &forward) ||
        !locus_layer_carve_backward(layer, NULL, &backward))
        return locus_fail(error, LOCUS_ERR_MEMORY,
                          "layer: these shapes need more memory than a machine can address");
    layer->saved_bytes = saved.bytes;
    layer->forward_bytes = forward.bytes;
    layer->backward_bytes = backward.bytes;
    return LOCUS_OK;
}

/* Sizes first: what cannot be addressed is refused before anything large is made. */
static locus_status build(locus_layer *layer, const locus_config *config, locus_error *error)
{
    layer_saved saved = {.bytes = 0};
    list_tables(layer);
    if (locus_projects_pos_query(&layer->call, &layer->shapes))
        layer->query_width = layer->shapes.w_r.shape[0] / layer->call.H;
    if (!locus_layer_carve_saved(layer, NULL, &saved))
        return locus_fail(error, LOCUS_ERR_MEMORY,
                          "layer: these shapes need more memory than a machine can address");
    layer->extents = find_extents(layer);
    LOCUS_TRY(plan_attention(layer, config, error));
    LOCUS_TRY(make_sinusoid(layer, error));
    return measure(layer, error);
}

locus_status locus_layer_new(locus_layer **out, const locus_config *config,
                             const locus_tensors *shapes, locus_error *error)
{
    if (out == NULL || config == NULL || shapes == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "layer: NULL argument");
    *out = NULL;
    locus_call call;
    locus_config own;
    locus_tensors copy;
    LOCUS_TRY(locus_adopt_config(&own, config, error));
    LOCUS_TRY(locus_adopt_tensors(&shapes, &copy, "shapes", error));
    config = &own;
    LOCUS_TRY(locus_call_resolve(&call, LOCUS_LAYER, config, shapes, error));
    locus_layer *layer = locus_allocate(config->allocator, 1, sizeof *layer);
    if (layer == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "layer: out of memory");
    layer->allocator = config->allocator;
    layer->call = call;
    layer->shapes = *shapes;
    layer->x_scale = declares(&call, offsetof(locus_options, x_scale)) ? call.options.x_scale : 1.0;
    const locus_status status = build(layer, config, error);
    if (status != LOCUS_OK) {
        locus_layer_free(layer);
        return status;
    }
    *out = layer;
    return LOCUS_OK;
}

void locus_layer_free(locus_layer *layer)
{
    if (layer == NULL) return;
    locus_plan_free(layer->plan);
    locus_release(layer->allocator, layer->sinusoid);
    locus_release(layer->allocator, layer);
}

const locus_plan *locus_layer_plan(const locus_layer *layer) { return layer->plan; }

size_t locus_layer_saved_bytes(const locus_layer *layer) { return layer->saved_bytes; }

size_t locus_layer_forward_workspace(const locus_layer *layer) { return layer->forward_bytes; }

size_t locus_layer_backward_workspace(const locus_layer *layer) { return layer->backward_bytes; }

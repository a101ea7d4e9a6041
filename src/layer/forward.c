/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/tensor.h"
#include "layer/layer.h"

/* ---- x_scale x + p ---- */

typedef struct embed_job {
    const locus_layer *layer;
    const locus_tensors *in;
    float *to;    /* [B, T, E]    */
    double *rows; /* [threads, E] */
} embed_job;

static void embed_row(void *context, size_t index, uint32_t worker)
{
    const embed_job *job = context;
    const locus_call *call = &job->layer->call;
    const int64_t i = (int64_t)index, E = call->E;
    double *p = job->rows + worker * E;
    const layer_matrix x = locus_layer_tensor_rows(&job->in->x);
    call->scheme->embed(call, job->in, i, p);
    for (int64_t b = 0; b < call->B; b++) {
        float *to = job->to + (b * call->T + i) * E;
        locus_layer_load(job->layer->kernels, to, &x, b * call->T + i, 1);
        for (int64_t e = 0; e < E; e++) to[e] = (float)(job->layer->x_scale * (double)to[e] + p[e]);
    }
}

/* ---- the steps ---- */

#define SLOT(name) offsetof(locus_tensors, name)

static void project_content(const locus_layer *layer, const layer_multiplier *multiplier,
                            const locus_tensors *in, const layer_saved *saved)
{
    const locus_call *call = &layer->call;
    const int64_t B = call->B, T = call->T, M = call->M, Tk = call->Tk, width = call->H * call->D;
    const layer_matrix x = locus_layer_input(layer, in, saved);
    const struct {
        size_t weight, bias;
        float *buffer;
        int64_t rows; /* of the buffer: those of memory, then those of x */
    } sides[] = {{SLOT(w_q), SLOT(b_q), saved->rows.q, T},
                 {SLOT(w_k), SLOT(b_k), saved->rows.k, Tk},
                 {SLOT(w_v), SLOT(b_v), saved->rows.v, Tk}};
    for (size_t i = 0; i < 3; i++) {
        const int64_t rows = sides[i].rows;
        layer_map map = {.weight = locus_tensor_slot(in, sides[i].weight),
                         .bias = locus_tensor_slot(in, sides[i].bias),
                         .x = x,
                         .y =
                             locus_layer_buffer_rows(sides[i].buffer, B, rows, width, rows - T, T)};
        locus_layer_map_forward(multiplier, &map);
        if (!locus_present(&in->memory) || i == 0) continue;
        map.x = locus_layer_tensor_rows(&in->memory);
        map.y = locus_layer_buffer_rows(sides[i].buffer, B, Tk, width, 0, M);
        locus_layer_map_forward(multiplier, &map);
    }
    locus_layer_project_query_rows(layer, multiplier, in, &x, &saved->rows);
    locus_layer_project_position_gates(layer, multiplier, in, &saved->rows);
}

void locus_layer_project_tables(const locus_layer *layer, const layer_multiplier *multiplier,
                                const locus_tensors *in, float *const *to)
{
    const int64_t width = layer->call.H * layer->call.D;
    for (size_t i = 0; i < layer->table_count; i++) {
        const layer_table *table = &layer->tables[i];
        const layer_map map = {.weight = locus_tensor_slot(in, table->weight),
                               .bias = locus_tensor_slot(in, table->bias),
                               .x = locus_layer_source(layer, in, table),
                               .y = locus_layer_buffer_rows(to[i], 1, table->rows, width, 0,
                                                            table->rows)};
        locus_layer_map_forward(multiplier, &map);
    }
}

/* Floats, side by side, to rows of any type. */
static void store_rows(const locus_layer *layer, const locus_tensor *to, const float *from)
{
    const layer_matrix rows = locus_layer_tensor_rows(to);
    locus_layer_store(layer->kernels, &rows, from, 0, rows.batches * rows.rows);
}

static void project_output(const locus_layer *layer, const layer_multiplier *multiplier,
                           const locus_tensors *in, const layer_saved *saved,
                           const locus_tensor *out)
{
    const locus_call *call = &layer->call;
    const int64_t width = call->H * call->D;
    if (locus_tensor_elements(out) == 0) return;
    if (!locus_present(&in->w_o)) {
        store_rows(layer, out, saved->out);
        return;
    }
    const layer_map map = {.weight = &in->w_o,
                           .bias = locus_tensor_slot(in, SLOT(b_o)),
                           .x = locus_layer_buffer_rows(saved->out, call->B, call->T, width, 0,
                                                        call->T),
                           .y = locus_layer_tensor_rows(out)};
    locus_layer_map_forward(multiplier, &map);
}

/* Attention on projected rows: those of this call, and tables of this call or of before. */
static locus_status attend(const locus_layer *layer, const locus_layer_tables *tables,
                           const locus_tensors *in, const layer_saved *saved,
                           const layer_forward *work, locus_error *error)
{
    const size_t bytes = locus_forward_workspace(layer->plan);
    const locus_results results = locus_layer_inner_results(layer, saved);
    layer_rows rows = saved->rows;
    *saved->without_tables = tables != NULL;
    if (tables == NULL) {
        locus_layer_project_tables(layer, &work->multiplier, in, rows.tables);
        const locus_tensors inner = locus_layer_inner(layer, in, &rows, LAYER_ALL);
        return locus_forward(layer->plan, &inner, &results, work->attention, bytes, error);
    }
    memcpy(rows.tables, tables->rows, sizeof rows.tables);
    const locus_tensors inner = locus_layer_inner(layer, in, &rows, LAYER_ALL);
    return locus_forward_prepared(layer->plan, tables->forward, &inner, &results, work->attention,
                                  bytes, error);
}

static locus_status forward(const locus_layer *layer, const locus_layer_tables *tables,
                            const locus_tensors *in, const locus_results *results,
                            void *saved_memory, size_t saved_bytes, void *workspace,
                            size_t workspace_bytes, locus_error *error)
{
    locus_tensors own_in;
    locus_results own_results;
    if (layer == NULL || in == NULL || results == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "layer: NULL argument");
    LOCUS_TRY(locus_adopt_tensors(&in, &own_in, "tensors", error));
    LOCUS_TRY(locus_adopt_results(&results, &own_results, "results", error));
    LOCUS_TRY(locus_layer_check_forward(layer, in, results, saved_memory, saved_bytes, workspace,
                                        workspace_bytes, error));
    const locus_call *call = &layer->call;
    layer_saved saved = {.bytes = 0};
    layer_forward work = {.bytes = 0};
    locus_layer_carve_saved(layer, saved_memory, &saved);
    locus_layer_carve_forward(layer, workspace, &work);

    if (saved.input != NULL) {
        embed_job job = {layer, in, saved.input, work.row};
        locus_parallel_for(layer->threads, (size_t)call->T, embed_row, &job);
    }
    project_content(layer, &work.multiplier, in, &saved);
    LOCUS_TRY(attend(layer, tables, in, &saved, &work, error));
    project_output(layer, &work.multiplier, in, &saved, &results->out);
    if (call->T > 0) store_rows(layer, &results->lse, saved.lse);
    return LOCUS_OK;
}

locus_status locus_layer_forward(const locus_layer *layer, const locus_tensors *in,
                                 const locus_results *results, void *saved, size_t saved_bytes,
                                 void *workspace, size_t workspace_bytes, locus_error *error)
{
    return forward(layer, NULL, in, results, saved, saved_bytes, workspace, workspace_bytes, error);
}

locus_status locus_layer_forward_prepared(const locus_layer *layer,
                                          const locus_layer_tables *tables, const locus_tensors *in,
                                          const locus_results *results, void *saved,
                                          size_t saved_bytes, void *workspace,
                                          size_t workspace_bytes, locus_error *error)
{
    if (tables == NULL || tables->layer != layer)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "layer: tables: found %s, expected those made for this layer",
                          tables == NULL ? "NULL" : "those of another layer");
    return forward(layer, tables, in, results, saved, saved_bytes, workspace, workspace_bytes,
                   error);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/tensor.h"
#include "layer/layer.h"

/* ---- rows ---- */

locus_row_batch locus_layer_tensor_rows(const locus_tensor *t)
{
    const int has_batches = t->rank == 3;
    return (locus_row_batch){
        .data = t->data,
        .batches = has_batches ? t->shape[0] : 1,
        .rows = t->shape[has_batches],
        .batch_stride = has_batches ? t->stride[0] : 0,
        .row_stride = t->stride[has_batches],
    };
}

locus_row_batch locus_layer_buffer_rows(float *data, int64_t batches, int64_t rows, int64_t width,
                                        int64_t first, int64_t count)
{
    return (locus_row_batch){
        .data = data + first * width,
        .batches = batches,
        .rows = count,
        .batch_stride = rows * width,
        .row_stride = width,
    };
}

locus_row_batch locus_layer_input(const locus_layer *layer, const locus_tensors *in,
                                  const layer_saved *saved)
{
    const locus_call *call = &layer->call;
    if (saved->input == NULL) return locus_layer_tensor_rows(&in->x);
    return locus_layer_buffer_rows(saved->input, call->B, call->T, call->E, 0, call->T);
}

locus_row_batch locus_layer_source(const locus_layer *layer, const locus_tensors *in,
                                   const layer_table *table)
{
    const int64_t E = layer->call.E;
    if (table->source == LOCUS_SINUSOID)
        return locus_layer_buffer_rows(layer->sinusoid, 1, table->rows, E, 0, table->rows);
    locus_row_batch rows = locus_layer_tensor_rows(locus_tensor_slot(in, table->source));
    rows.rows = table->rows;
    return rows;
}

locus_linear locus_layer_linear(const locus_layer *layer, const locus_tensors *in, size_t weight,
                                size_t bias, void *workspace)
{
    return (locus_linear){
        .kernels = layer->kernels,
        .threads = layer->threads,
        .second_cache = layer->second_cache,
        .weight = locus_tensor_slot(in, weight),
        .bias = locus_tensor_slot(in, bias),
        .workspace = workspace,
    };
}

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
    call->scheme->embed(call, job->in, i, p);
    for (int64_t b = 0; b < call->B; b++) {
        const float *x = locus_f32(&job->in->x, b, i, 0);
        float *to = job->to + (b * call->T + i) * E;
        for (int64_t e = 0; e < E; e++) to[e] = (float)(job->layer->x_scale * (double)x[e] + p[e]);
    }
}

/* ---- the steps ---- */

#define SLOT(name) offsetof(locus_tensors, name)

static void project_content(const locus_layer *layer, const locus_tensors *in,
                            const layer_saved *saved, void *workspace)
{
    const locus_call *call = &layer->call;
    const int64_t width = call->H * call->D;
    const locus_row_batch x = locus_layer_input(layer, in, saved);
    const locus_linear to_q = locus_layer_linear(layer, in, SLOT(w_q), SLOT(b_q), workspace);
    const locus_linear to_k = locus_layer_linear(layer, in, SLOT(w_k), SLOT(b_k), workspace);
    const locus_linear to_v = locus_layer_linear(layer, in, SLOT(w_v), SLOT(b_v), workspace);
    const locus_row_batch q =
        locus_layer_buffer_rows(saved->rows.q, call->B, call->T, width, 0, call->T);
    locus_linear_forward(&to_q, &q, &x, NULL);

    /* Keys and values: the rows of memory, then those of x. */
    const struct {
        locus_linear linear;
        float *buffer;
    } sides[] = {{to_k, saved->rows.k}, {to_v, saved->rows.v}};
    for (size_t i = 0; i < 2; i++) {
        const locus_linear linear = sides[i].linear;
        const locus_row_batch last =
            locus_layer_buffer_rows(sides[i].buffer, call->B, call->Tk, width, call->M, call->T);
        locus_linear_forward(&linear, &last, &x, NULL);
        if (!locus_present(&in->memory)) continue;
        const locus_row_batch memory = locus_layer_tensor_rows(&in->memory);
        const locus_row_batch first =
            locus_layer_buffer_rows(sides[i].buffer, call->B, call->Tk, width, 0, call->M);
        locus_linear_forward(&linear, &first, &memory, NULL);
    }
}

void locus_layer_project_tables(const locus_layer *layer, const locus_tensors *in, float *const *to,
                                void *workspace)
{
    const int64_t width = layer->call.H * layer->call.D;
    for (size_t i = 0; i < layer->table_count; i++) {
        const layer_table *table = &layer->tables[i];
        const locus_linear linear =
            locus_layer_linear(layer, in, table->weight, table->bias, workspace);
        const locus_row_batch source = locus_layer_source(layer, in, table);
        const locus_row_batch rows =
            locus_layer_buffer_rows(to[i], 1, table->rows, width, 0, table->rows);
        locus_linear_forward(&linear, &rows, &source, NULL);
    }
}

static void copy_rows(const locus_row_batch *to, const locus_row_batch *from, int64_t width)
{
    for (int64_t b = 0; b < to->batches; b++)
        for (int64_t t = 0; t < to->rows; t++)
            memcpy(to->data + b * to->batch_stride + t * to->row_stride,
                   from->data + b * from->batch_stride + t * from->row_stride,
                   (size_t)width * sizeof(float));
}

static void project_output(const locus_layer *layer, const locus_tensors *in,
                           const layer_saved *saved, const locus_tensor *out, void *workspace)
{
    const locus_call *call = &layer->call;
    const int64_t width = call->H * call->D;
    const locus_row_batch from =
        locus_layer_buffer_rows(saved->out, call->B, call->T, width, 0, call->T);
    const locus_row_batch to = locus_layer_tensor_rows(out);
    if (locus_tensor_elements(out) == 0) return;
    if (locus_present(&in->w_o)) {
        const locus_linear linear = locus_layer_linear(layer, in, SLOT(w_o), SLOT(b_o), workspace);
        locus_linear_forward(&linear, &to, &from, NULL);
    } else {
        copy_rows(&to, &from, width);
    }
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
        locus_layer_project_tables(layer, in, rows.tables, work->linear);
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
    project_content(layer, in, &saved, work.linear);
    LOCUS_TRY(attend(layer, tables, in, &saved, &work, error));
    project_output(layer, in, &saved, &results->out, work.linear);
    const locus_row_batch lse = locus_layer_tensor_rows(&results->lse);
    const locus_row_batch saved_lse =
        locus_layer_buffer_rows(saved.lse, call->B, call->H, call->T, 0, call->H);
    if (call->T > 0) copy_rows(&lse, &saved_lse, call->T);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that attention takes, layer by layer: as stored, or projected once. */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "model/loader.h"
#include "model/trainable.h"
#include "schemes/scheme.h"

/* A table [R, A], row r of head h at r * A + h * D, as [H, R, D]. */
static locus_tensor table_view(const model_description *d, float *table)
{
    const int64_t A = d->heads * d->head_dim;
    return (locus_tensor){.data = table,
                          .dtype = LOCUS_F32,
                          .rank = 3,
                          .shape = {d->heads, d->relative_rows, d->head_dim},
                          .stride = {d->head_dim, A, 1}};
}

/* Positions by a projection of a layer: its own, or that of q or k. */
static locus_status project_table(loader *r, model_slot own, model_slot shared, int64_t layer,
                                  const float *relative, locus_tensor *table)
{
    const model_description *d = r->d;
    const model_slot slot = d->relative_shared ? shared : own;
    const int64_t A = d->heads * d->head_dim;
    float *rows = model_keep_floats(r->m, d->relative_rows * A);
    if (rows == NULL) return model_no_memory(r->error);
    const size_t before = r->m->block_count;
    model_map map = {.bias = {.rank = 0}};
    const int64_t counted = r->c->parameters;
    LOCUS_TRY(model_read_map(r, slot, layer, A, d->width, &map));
    if (d->relative_shared) r->c->parameters = counted; /* they are counted as q and k */
    model_map_apply(r->m, r->linear, &map, rows, relative, d->relative_rows, NULL);
    while (r->m->block_count > before) /* the projection is not needed again */
        locus_release(r->m->allocator, r->m->blocks[--r->m->block_count]);
    *table = table_view(d, rows);
    return LOCUS_OK;
}

/* A table of the distances within the window, and a row of zeros for all others. */
static locus_status read_window(loader *r, model_slot slot, int64_t layer, locus_tensor *table)
{
    const int64_t rows = 2 * r->d->window + 1, D = r->d->head_dim;
    float *data = model_keep_floats(r->m, (rows + 1) * D);
    if (data == NULL) return model_no_memory(r->error);
    *table = locus_view(data, LOCUS_F32, 2, (const int64_t[]){rows + 1, D});
    memset(data + rows * D, 0, (size_t)D * sizeof(float));
    if (r->m->trainable != NULL) return model_place_window(r, slot, layer, data);
    return model_checkpoint_read(r->c, slot, layer, data, r->error);
}

locus_status model_make_window_rows(loader *r)
{
    const int64_t window = r->d->window, count = 2 * window + 3;
    if (window == 0) return LOCUS_OK;
    r->m->window_rows = model_keep(r->m, (uint64_t)count * sizeof *r->m->window_rows);
    if (r->m->window_rows == NULL) return model_no_memory(r->error);
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = 2 * window + 1 - i;
        r->m->window_rows[i] = row < 0 || row > 2 * window ? 2 * window + 1 : row;
    }
    return LOCUS_OK;
}

/* Tensors that the scheme takes as they are. */
static locus_status read_own_tables(loader *r, int64_t layer, locus_tensors *tables)
{
    for (int64_t i = 0; i < r->d->table_count; i++) {
        const model_slot slot = (model_slot)(SLOT_TABLE_0 + i);
        uint64_t extents[4];
        int64_t shape[4];
        const float *numbers;
        const size_t rank = model_slot_shape(r->d, slot, extents);
        for (size_t axis = 0; axis < rank; axis++) shape[axis] = (int64_t)extents[axis];
        LOCUS_TRY(model_read_array(r, slot, layer, &numbers));
        *locus_tensor_named(tables, r->d->tables[i].tensor) =
            locus_view((float *)(uintptr_t)numbers, LOCUS_F32, (uint32_t)rank, shape);
    }
    return LOCUS_OK;
}

/* The projections of a model that is trained: its tables are made in every pass (relative.c). */
static locus_status place_projections(loader *r, int64_t layer, model_layer *to)
{
    if (r->d->to_position) {
        LOCUS_TRY(model_place_projection(r, SLOT_RELATIVE_K, SLOT_K, layer, to, &to->relative_k));
        to->tables.rel_k = table_view(r->d, NULL);
    }
    if (r->d->from_position) {
        LOCUS_TRY(model_place_projection(r, SLOT_RELATIVE_Q, SLOT_Q, layer, to, &to->relative_q));
        to->tables.rel_q = table_view(r->d, NULL);
    }
    return LOCUS_OK;
}

/* Both projections of the positions, made once. */
static locus_status read_position_pairs(loader *r, int64_t layer, const float *positions,
                                        locus_tensors *tables)
{
    if (r->m->trainable != NULL)
        return locus_fail(r->error, LOCUS_ERR_FORMAT,
                          "%s: positions that are projected once for all layers (%s) cannot be "
                          "trained",
                          r->m->family->type, r->d->scheme);
    if (layer > 0) {
        tables->pos_q = r->m->layers[0].tables.pos_q;
        tables->pos_k = r->m->layers[0].tables.pos_k;
        return LOCUS_OK;
    }
    LOCUS_TRY(project_table(r, SLOT_RELATIVE_Q, SLOT_Q, layer, positions, &tables->pos_q));
    return project_table(r, SLOT_RELATIVE_K, SLOT_K, layer, positions, &tables->pos_k);
}

locus_status model_read_tables(loader *r, int64_t layer, const float *relative, const float *bias,
                               model_layer *to)
{
    const model_description *d = r->d;
    locus_tensors *tables = &to->tables;
    LOCUS_TRY(read_own_tables(r, layer, tables));
    if (d->position_pairs) return read_position_pairs(r, layer, relative, tables);
    if (d->bias_each_layer) LOCUS_TRY(model_read_array(r, SLOT_LAYER_BIAS, layer, &bias));
    if (bias != NULL)
        tables->bias = locus_view((float *)(uintptr_t)bias, LOCUS_F32, 2,
                                  (const int64_t[]){d->bias_rows, d->heads});
    if (d->distances) {
        const float *u, *w;
        LOCUS_TRY(model_read_array(r, SLOT_CONTENT_BIAS, layer, &u));
        LOCUS_TRY(model_read_array(r, SLOT_POSITION_BIAS, layer, &w));
        tables->u = locus_view((float *)(uintptr_t)u, LOCUS_F32, 2,
                               (const int64_t[]){d->heads, d->head_dim});
        tables->w = tables->u;
        tables->w.data = (float *)(uintptr_t)w;
    }
    if (d->window > 0) {
        LOCUS_TRY(read_window(r, SLOT_DISTANCE, layer, &tables->rel_k));
        LOCUS_TRY(read_window(r, SLOT_DISTANCE_VALUE, layer, &tables->rel_v));
        tables->rows =
            locus_view(r->m->window_rows, LOCUS_I64, 1, (const int64_t[]){2 * d->window + 3});
    } else if (model_slot_wanted(d, SLOT_DISTANCE)) {
        const float *rows;
        LOCUS_TRY(model_read_array(r, SLOT_DISTANCE, layer, &rows));
        tables->rel_k = locus_view((float *)(uintptr_t)rows, LOCUS_F32, 2,
                                   (const int64_t[]){d->relative_rows, d->head_dim});
    }
    if (r->m->trainable != NULL) LOCUS_TRY(place_projections(r, layer, to));
    if (d->to_position && r->m->trainable == NULL)
        LOCUS_TRY(project_table(r, SLOT_RELATIVE_K, SLOT_K, layer, relative, &tables->rel_k));
    if (d->from_position && r->m->trainable == NULL)
        LOCUS_TRY(project_table(r, SLOT_RELATIVE_Q, SLOT_Q, layer, relative, &tables->rel_q));
    if (d->rope.base > 0.0 && !d->turned_input)
        tables->frequencies = locus_view((float *)(uintptr_t)r->m->frequencies, LOCUS_F32, 1,
                                         (const int64_t[]){d->head_dim / 2});
    return LOCUS_OK;
}

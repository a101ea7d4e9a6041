/* SPDX-License-Identifier: Apache-2.0 */
#include "core/carve.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "layer/layer.h"

/* The handle and its rows, on one block. */
static locus_layer_tables *carve(const locus_layer *layer, locus_carver *c, float **rows)
{
    locus_layer_tables *tables = locus_carve(c, sizeof *tables);
    for (size_t i = 0; i < layer->table_count; i++)
        rows[i] = locus_carve_floats(c, 1, layer->tables[i].rows, layer->call.H * layer->call.D);
    return tables;
}

/* NULL: no memory. Extents are those of `saved`, whose size was checked with the layer. */
static locus_layer_tables *allocate(const locus_layer *layer)
{
    float *rows[LOCUS_LAYER_TABLES] = {NULL};
    locus_carver c = {.base = NULL};
    size_t bytes = 0;
    carve(layer, &c, rows);
    if (!locus_carved_bytes(&c, &bytes)) return NULL;
    c = (locus_carver){.base = locus_allocate(layer->allocator, bytes, 1)};
    if (c.base == NULL) return NULL;
    locus_layer_tables *tables = carve(layer, &c, rows);
    *tables = (locus_layer_tables){.layer = layer};
    for (size_t i = 0; i < layer->table_count; i++) tables->rows[i] = rows[i];
    return tables;
}

/* Project, then have attention pack what it reads. */
static locus_status fill(locus_layer_tables *tables, const locus_tensors *in, uint32_t flags,
                         locus_error *error)
{
    const locus_layer *layer = tables->layer;
    layer_rows rows = {.q = NULL};
    for (size_t i = 0; i < layer->table_count; i++) rows.tables[i] = tables->rows[i];
    if (layer->table_count > 0) {
        layer_multiplier multiplier;
        size_t bytes = 0;
        const int fits = locus_layer_carve_maps(layer, NULL, &multiplier, &bytes);
        void *workspace = fits ? locus_allocate(layer->allocator, bytes, 1) : NULL;
        if (workspace == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "tables: out of memory");
        locus_layer_carve_maps(layer, workspace, &multiplier, &bytes);
        locus_layer_project_tables(layer, &multiplier, in, rows.tables);
        locus_release(layer->allocator, workspace);
    }
    const locus_tensors inner = locus_layer_inner(layer, in, &rows, LAYER_ALL);
    LOCUS_TRY(locus_tables_new(&tables->forward, layer->plan, &inner, error));
    if (!(flags & LOCUS_TABLES_BACKWARD)) return LOCUS_OK;
    return locus_tables_new_backward(&tables->backward, layer->plan, &inner, error);
}

locus_status locus_layer_tables_new(locus_layer_tables **out, const locus_layer *layer,
                                    const locus_tensors *in, uint32_t flags, locus_error *error)
{
    if (out == NULL || layer == NULL || in == NULL || (flags & ~LOCUS_TABLES_BACKWARD) != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "tables: NULL argument or unknown flag");
    *out = NULL;
    locus_tensors own_in;
    LOCUS_TRY(locus_adopt_tensors(&in, &own_in, "tensors", error));
    LOCUS_TRY(locus_layer_check_tables(layer, in, error));
    locus_layer_tables *tables = allocate(layer);
    if (tables == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "tables: out of memory");
    const locus_status status = fill(tables, in, flags, error);
    if (status != LOCUS_OK) {
        locus_layer_tables_free(tables);
        return status;
    }
    *out = tables;
    return LOCUS_OK;
}

void locus_layer_tables_free(locus_layer_tables *tables)
{
    if (tables == NULL) return;
    locus_tables_free(tables->forward);
    locus_tables_free(tables->backward);
    locus_release(tables->layer->allocator, tables);
}

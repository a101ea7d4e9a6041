/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_LOADER_H
#define LOCUS_MODEL_LOADER_H

/* How weights get into a model: weights.c goes through its parts, reading.c packs them; of a model
 * that is trained, places.c puts them where they can change. */

#include "model/checkpoint.h"
#include "model/model.h"

typedef struct loader {
    locus_model *m;
    model_checkpoint *c;
    const model_description *d;
    float *scratch; /* the largest tensor that is packed, or q, k and v together */
    void *linear;   /* workspace of maps */
    float factor;   /* of maps that are read; 0: 1 */
    locus_error *error;
} loader;

/* ---- blocks.c ---- */

/* Memory that lives as long as the model; NULL: there is none. */
void *model_keep(locus_model *m, uint64_t bytes);
float *model_keep_floats(locus_model *m, int64_t count);
locus_status model_no_memory(locus_error *error);

/* ---- reading.c ---- */

/* A tensor as it is; *to = NULL where the model has none. */
locus_status model_read_array(loader *r, model_slot slot, int64_t layer, const float **to);
locus_status model_read_norm(loader *r, model_slot gain, int64_t layer, model_norm *norm);

/* The weights in scratch, for products. */
locus_status model_pack_map(loader *r, model_map *map, int64_t outputs, int64_t inputs);

/* `count` maps as one, their outputs one behind the other, `all` of them; each weight is followed
 * by its bias in the list of slots. */
locus_status model_read_maps(loader *r, const model_slot *slots, size_t count, int64_t layer,
                             int64_t all, int64_t inputs, model_map *map);
locus_status model_read_map(loader *r, model_slot slot, int64_t layer, int64_t outputs,
                            int64_t inputs, model_map *map);

/* q, k and v from one tensor; without fused biases k has none. */
locus_status model_read_fused(loader *r, int64_t layer, model_map *map);
locus_status model_read_gate(loader *r, int64_t layer, model_map *map);

/* ---- tables.c ---- */

/* Which row serves the distances m - n = -(window + 1) .. window + 1: the first is n - m = -window. */
locus_status model_make_window_rows(loader *r);

/* Those of a layer; relative, bias: tables that layers share, or NULL. */
locus_status model_read_tables(loader *r, int64_t layer, const float *relative, const float *bias,
                               model_layer *to);

/* ---- places.c: twins of what weights.c packs, for models that are trained ---- */

/* Room for all tensors of the model. */
locus_status model_place_all(loader *r);

locus_status model_place_array(loader *r, model_slot slot, int64_t layer, const float **to);

/* `count` maps as one, their outputs one behind the other; biases: each has one. */
locus_status model_place_maps(loader *r, const model_slot *slots, size_t count, int64_t layer,
                              int64_t inputs, int biases, model_map *map);
locus_status model_place_fused(loader *r, int64_t layer, model_map *map);

/* A map of weights [outputs, inputs] that are there. */
void model_set_plain(model_map *map, const float *weight, int64_t outputs, int64_t inputs);

/* The projection of relative positions by a layer's own map, or that of q or k. */
locus_status model_place_projection(loader *r, model_slot own, model_slot shared, int64_t layer,
                                    model_layer *to, model_map *map);

/* A table of a window with a row of zeros behind it, in data. */
locus_status model_place_window(loader *r, model_slot slot, int64_t layer, float *data);

/* Convolutions with their axes exchanged: [outputs, inputs, taps] to [outputs, taps, inputs]. */
locus_status model_place_taps(loader *r, model_slot slot, int64_t layer, int64_t outputs,
                              int64_t inputs, int64_t taps, const float **weight);
locus_status model_place_depth(loader *r, int64_t layer, model_layer *to);

/* The parts of a word table, each with its map; a pass puts them together (words.c). */
locus_status model_place_clusters(loader *r);

/* Logits by the word table, divided. */
locus_status model_place_tied(loader *r, float divisor, model_map *map);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_CHECKPOINT_H
#define LOCUS_MODEL_CHECKPOINT_H

/* The tensors of a folder: model.safetensors or pytorch_model.bin, or the shards that their index
 * names. */

#include <locus/tensorfile.h>

#include "model/description.h"

enum { MODEL_SHARDS = 256, MODEL_NAME = 256 };

/* Where a tensor is. */
typedef struct model_place {
    size_t file, index;
    const locus_file_tensor *tensor;
    uint64_t heads_in_pairs; /* GGUF: whose rows lie in pairs; 0: in order */
} model_place;

typedef struct model_checkpoint {
    const locus_allocator *allocator;
    locus_file *files[MODEL_SHARDS];
    const char *names[MODEL_SHARDS]; /* of the files, for messages */
    size_t file_count, own_count;    /* own: of the model itself; the others belong to modules */
    locus_arena arena;
    const model_family *family;
    const model_description *description;
    /* NULL, or who hears of tensors that a program asks for and that are not there, which then is no
     * failure: to list what a configuration wants */
    void (*listen)(void *listener, const char *name, const uint64_t *shape, size_t rank);
    void *listener;
    uint32_t precision;                   /* of a file of integers (integers.h); else LOCUS_EXACT */
    const struct gguf_architecture *gguf; /* of a GGUF file, whose names are others; else NULL */
} model_checkpoint;

locus_status model_checkpoint_open(model_checkpoint *c, const char *folder,
                                   const model_family *family, const model_description *d,
                                   const locus_allocator *allocator, locus_error *error);
/* FOLDER/BESIDE/model.safetensors, of a module behind the model. */
locus_status model_checkpoint_open_beside(model_checkpoint *c, const char *folder,
                                          const char *beside, size_t *file, locus_error *error);
void model_checkpoint_close(model_checkpoint *c);

/* 1 when a model of this description has the slot. */
int model_slot_wanted(const model_description *d, model_slot slot);

/* Its extents as the checkpoint has them; returns the rank. */
size_t model_slot_shape(const model_description *d, model_slot slot, uint64_t shape[4]);

/* 1: the checkpoint has it as [rows, columns], the executor the other way round. */
int model_slot_transposed(const model_description *d, model_slot slot, int64_t *rows,
                          int64_t *columns);

/* The table of a slot; NULL: it is that of something else. */
const model_table *model_slot_table(const model_description *d, model_slot slot);

/* Numbers of a slot. */
int64_t model_slot_elements(const model_description *d, model_slot slot);

/* 1 when the checkpoint has the tensor. */
int model_checkpoint_has(const model_checkpoint *c, model_slot slot, int64_t layer);

/* Where the tensor of a slot is. Refused: absent, of another type (F32, F16, BF16, F64) or shape. */
locus_status model_checkpoint_find(const model_checkpoint *c, model_slot slot, int64_t layer,
                                   model_place *place, locus_error *error);

/* The same by a name, # for the layer, behind one of the prefixes of the family: 1 when it is there;
 * `spelt` is its name, or the last tried. */
int model_checkpoint_look(const model_checkpoint *c, const char *name, int64_t layer,
                          char spelt[MODEL_NAME], model_place *found);
/* As model_checkpoint_find; where somebody listens, place->tensor may be NULL. */
locus_status model_checkpoint_named(const model_checkpoint *c, const char *name, int64_t layer,
                                    const uint64_t *shape, size_t rank, model_place *place,
                                    locus_error *error);
/* The same by its name in one file. */
locus_status model_checkpoint_take(const model_checkpoint *c, size_t file, const char *name,
                                   const uint64_t *shape, size_t rank, model_place *place,
                                   locus_error *error);

/* What a tensor is called among all: behind the folder of its module. NULL: no memory. */
const char *model_checkpoint_name(const model_checkpoint *c, const model_place *place,
                                  locus_arena *arena);

/* `count` numbers of it as F32. */
locus_status model_checkpoint_values(model_checkpoint *c, const model_place *place, float *to,
                                     uint64_t count, locus_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_MODEL_FOLDER_H
#define LOCUS_TESTS_MODEL_FOLDER_H

/* Folders with small models of random weights, made from the declarations of the families. */

#include <locus/model.h>

#include "model/description.h"
#include "model/lengths.h"

/* A configuration that a family understands, by name. */
typedef struct test_model {
    const char *name, *type, *config;
} test_model;

extern const test_model test_models[];
extern const size_t test_model_count;

/* What to do differently. */
typedef struct folder_change {
    const char *without; /* leave out tensors whose name contains this     */
    const char *wrong;   /* give those one column more                     */
    const char *dtype;   /* "F16", "BF16", "F64"; NULL: F32                */
    int shards;          /* 1: an index and two files                      */
    double scale;        /* of the numbers; 0: 0.1                         */
} folder_change;

/* Makes the folder `path` (its files are replaced). Ends the program when that fails. */
void write_model(const char *path, const test_model *model, const folder_change *change);

/* 1: a decoder is behind an encoder. */
int has_decoder(const locus_model *model);

/* What its configuration says about its first layers. */
const struct model_description *described(const locus_model *model);

/* 1: one ragged call attends in all sequences; how many plans an attention has. */
int attends_together(const locus_model_pass *pass, int *plans);

/* Numbers of an input: of an embedding, or of features. */
int64_t input_width(const locus_model *model);

/* The bend of relu is no place for differences: gelu instead of it, in a model that is open. */
void replace_relu(locus_model *model);

/* 1: the layers of the family name their tensors where they are used, 0: they fill slots. */
int names_its_own(const model_family *family);

/* Removes it with the files that tests write. */
void remove_model(const char *path);

/* One file of text in it. */
void write_text(const char *folder, const char *name, const char *text);

/* A folder of this program's own; the same one for the same name. */
const char *test_folder(const char *name);

#endif

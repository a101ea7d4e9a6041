/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_GGUF_H
#define LOCUS_MODEL_GGUF_H

/* A model in one GGUF file: its values as the config.json that they stand for, its tensors by the
 * names that families know. */

#include <locus/tensorfile.h>

#include "model/settings.h"

/* Names with # for the layer. */
typedef struct gguf_name {
    const char *name, *stored;
} gguf_name;

/* A key of config.json, and the value behind "ARCHITECTURE."; ? in front: it may be absent. */
typedef struct gguf_key {
    const char *key, *stored;
} gguf_key;

typedef struct gguf_architecture {
    const char *name, *type; /* general.architecture, model_type */
    const char *gate;        /* a tensor that it has; NULL: none in particular */
    const gguf_name *names;  /* name NULL ends the list */
    const gguf_key *keys;    /* key NULL ends the list  */
    const char *classes;     /* architectures.0         */
    int in_pairs; /* 1: rows of q and k are turned in pairs of neighbours; families have halves */
} gguf_architecture;

int model_is_gguf(const char *path);

/* The settings of the file; on failure nothing is left to free. */
locus_status model_gguf_settings(model_settings *settings, const char *path,
                                 const locus_allocator *allocator, locus_error *error);

/* What an open file is of; NULL: none that is known. */
const gguf_architecture *model_gguf_architecture(const locus_file *file);

/* The name of a tensor in the file. 0: it has none. */
int model_gguf_name(const gguf_architecture *a, const char *name, char *out, size_t capacity);

/* The heads whose rows of this tensor lie in pairs; 0: its rows are in order. */
uint64_t model_gguf_heads(const gguf_architecture *a, const locus_file *file, const char *stored);

#endif

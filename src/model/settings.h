/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_SETTINGS_H
#define LOCUS_MODEL_SETTINGS_H

/* A configuration file (config.json and its kin). A value is named by its path: "hidden_size",
 * "id2label.3", "architectures.0"; a key with a dot in it is the end of no path. Strict JSON within
 * limits: 16 MiB, depth 32, 400,000 values, strings of 64 KiB. A key that occurs twice in an object is
 * refused: Python would take the last, and others the first. Messages name the file and the key. */

#include <locus/status.h>

#include "io/json_tree.h"
#include "io/store.h"

typedef struct model_settings {
    const locus_allocator *allocator;
    const char *file; /* for messages */
    json_tree tree;   /* with its index */
} model_settings;

/* FOLDER/FILE. On failure nothing is left to free. */
locus_status model_settings_read(model_settings *settings, const char *folder, const char *file,
                                 const locus_allocator *allocator, locus_error *error);
/* The same of a text in memory; `file` names it in messages. */
locus_status model_settings_parse(model_settings *settings, const char *file, const char *text,
                                  const locus_allocator *allocator, locus_error *error);
void model_settings_free(model_settings *settings);

/* A scalar; NULL: there is none of that path, or it is null. */
const json_value *model_setting_find(const model_settings *settings, const char *path);

/* 1: the file has a value at the path, be it null. */
int model_setting_there(const model_settings *settings, const char *path);

/* A list or an object, for those who walk over its members ("": that of the whole file); NULL: none. */
const json_value *model_setting_members(const model_settings *settings, const char *path);

/* How many members it has; 0: there is none. */
int64_t model_setting_count(const model_settings *settings, const char *path);

/* Typed values: an absent one is `preset`; another type, or a number out of range, is refused. A
 * preset below `least` makes the setting required. */
locus_status model_setting_integer(const model_settings *settings, const char *path, int64_t preset,
                                   int64_t least, int64_t most, int64_t *value, locus_error *error);
locus_status model_setting_real(const model_settings *settings, const char *path, double preset,
                                double *value, locus_error *error);
locus_status model_setting_flag(const model_settings *settings, const char *path, int preset,
                                int *value, locus_error *error);
locus_status model_setting_text(const model_settings *settings, const char *path,
                                const char *preset, const char **value, locus_error *error);

/* FILE: KEY: found ..., expected EXPECTED. LOCUS_ERR_FORMAT. */
locus_status model_setting_refuse(const model_settings *settings, const char *path,
                                  const char *expected, locus_error *error);

/* The same for a member of the container at `path`. */
locus_status model_member_refuse(const model_settings *settings, const char *path,
                                 const json_value *member, const char *expected,
                                 locus_error *error);

/* A path of two parts, in memory of the arena; NULL: no memory. */
char *model_join(locus_arena *arena, const char *folder, const char *name, char between);

#endif

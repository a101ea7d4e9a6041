/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/number.h"
#include "io/system.h"

enum { MOST_BYTES = 16 << 20, MOST_VALUES = 400000, MOST_STRING = 1 << 16 };

char *model_join(locus_arena *arena, const char *folder, const char *name, char between)
{
    const size_t a = strlen(folder), b = strlen(name);
    char *path = locus_arena_take(arena, a + b + 2, 1);
    if (path == NULL) return NULL;
    memcpy(path, folder, a);
    path[a] = between;
    memcpy(path + a + 1, name, b + 1);
    return path;
}

/* ---- reading ---- */

static locus_status no_memory(const model_settings *s, locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "%s: out of memory", s->file);
}

typedef struct source_file {
    int descriptor;
} source_file;

static locus_status read_source(void *context, uint64_t at, void *out, size_t count,
                                locus_error *error)
{
    return locus_system_read(((source_file *)context)->descriptor, at, out, count, error);
}

static const json_limits limits = {.text = MOST_STRING, .values = MOST_VALUES};

/* What was parsed becomes settings: with its index, and a container at its root. */
static locus_status take(model_settings *s, locus_status parsed, locus_error *error)
{
    if (parsed == LOCUS_OK) parsed = locus_json_tree_index(&s->tree, error);
    if (parsed != LOCUS_OK) return locus_fail_in(error, parsed, s->file);
    const locus_json_kind kind = s->tree.root->kind;
    if (kind != LOCUS_JSON_OBJECT && kind != LOCUS_JSON_ARRAY)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: expected an object or a list", s->file);
    return LOCUS_OK;
}

static locus_status scan(model_settings *s, int descriptor, uint64_t bytes, locus_error *error)
{
    source_file file = {descriptor};
    const locus_json_source source = {.read = read_source, .context = &file, .end = bytes};
    return take(s, locus_json_tree_read(&s->tree, &source, &limits, s->allocator, error), error);
}

locus_status model_settings_parse(model_settings *s, const char *file, const char *text,
                                  const locus_allocator *allocator, locus_error *error)
{
    *s = (model_settings){.allocator = allocator, .file = file};
    const locus_status status =
        take(s, locus_json_tree_parse(&s->tree, text, strlen(text), &limits, allocator, error),
             error);
    if (status != LOCUS_OK) model_settings_free(s);
    return status;
}

locus_status model_settings_read(model_settings *s, const char *folder, const char *file,
                                 const locus_allocator *allocator, locus_error *error)
{
    *s = (model_settings){.allocator = allocator, .file = file};
    locus_arena names = {.allocator = allocator};
    uint64_t bytes = 0;
    int descriptor = -1;
    const char *path = model_join(&names, folder, file, '/');
    locus_status status =
        path != NULL ? locus_system_open(&descriptor, &bytes, path, error) : no_memory(s, error);
    if (path != NULL && status != LOCUS_OK) locus_fail_in(error, status, file);
    locus_arena_clear(&names);
    if (status == LOCUS_OK && bytes > MOST_BYTES)
        status =
            locus_fail(error, LOCUS_ERR_FORMAT, "%s: found %" PRIu64 " bytes, expected at most %d",
                       file, bytes, (int)MOST_BYTES);
    if (status == LOCUS_OK) status = scan(s, descriptor, bytes, error);
    locus_system_close(descriptor);
    if (status != LOCUS_OK) model_settings_free(s);
    return status;
}

void model_settings_free(model_settings *s) { locus_json_tree_free(&s->tree); }

/* ---- values ---- */

static int is_container(const json_value *value)
{
    return value->kind == LOCUS_JSON_OBJECT || value->kind == LOCUS_JSON_ARRAY;
}

/* What lies at the end of a path, step by step from the root; NULL: nothing. */
static const json_value *value_at(const model_settings *s, const char *path)
{
    const json_value *value = s->tree.root;
    while (value != NULL && *path != '\0') {
        const size_t step = strcspn(path, ".");
        value = locus_tree_member(value, path, step);
        path += step + (path[step] == '.');
    }
    return value;
}

const json_value *model_setting_find(const model_settings *s, const char *path)
{
    const json_value *found = value_at(s, path);
    return found == NULL || is_container(found) || found->kind == LOCUS_JSON_NULL ? NULL : found;
}

int model_setting_there(const model_settings *s, const char *path)
{
    return value_at(s, path) != NULL;
}

const json_value *model_setting_members(const model_settings *s, const char *path)
{
    const json_value *found = value_at(s, path);
    return found != NULL && is_container(found) ? found : NULL;
}

int64_t model_setting_count(const model_settings *s, const char *path)
{
    const json_value *found = model_setting_members(s, path);
    return found != NULL ? (int64_t)found->count : 0;
}

static locus_status refuse(const model_settings *s, const char *path, const json_value *found,
                           const char *expected, locus_error *error)
{
    char text[100];
    if (found == NULL || found->kind == LOCUS_JSON_NULL)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: %s is missing, expected %s", s->file, path,
                          expected);
    if (found->kind == LOCUS_JSON_STRING)
        locus_escape(text, sizeof text, found->text, found->bytes);
    else if (found->kind == LOCUS_JSON_INTEGER || found->kind == LOCUS_JSON_NUMBER)
        snprintf(text, sizeof text, "%.60s", found->text);
    else
        locus_tree_describe(text, sizeof text, found);
    return locus_fail(error, LOCUS_ERR_FORMAT, "%s: %s: found %s, expected %s", s->file, path, text,
                      expected);
}

locus_status model_setting_refuse(const model_settings *s, const char *path, const char *expected,
                                  locus_error *error)
{
    return refuse(s, path, value_at(s, path), expected, error);
}

locus_status model_member_refuse(const model_settings *s, const char *path,
                                 const json_value *member, const char *expected, locus_error *error)
{
    char key[100], name[200];
    locus_escape(key, sizeof key, member->key != NULL ? member->key : "", member->key_bytes);
    snprintf(name, sizeof name, "%.90s.%s", path, key);
    return refuse(s, name, member, expected, error);
}

locus_status model_setting_integer(const model_settings *s, const char *path, int64_t preset,
                                   int64_t least, int64_t most, int64_t *value, locus_error *error)
{
    const json_value *found = model_setting_find(s, path);
    char expected[96];
    snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64, least, most);
    if (found == NULL && (preset < least || preset > most))
        return model_setting_refuse(s, path, expected, error);
    *value = preset;
    if (found == NULL) return LOCUS_OK;
    if ((found->kind != LOCUS_JSON_INTEGER && found->kind != LOCUS_JSON_NUMBER) ||
        !locus_parse_integer(found->text, value) || *value < least || *value > most)
        return model_setting_refuse(s, path, expected, error);
    return LOCUS_OK;
}

locus_status model_setting_real(const model_settings *s, const char *path, double preset,
                                double *value, locus_error *error)
{
    const json_value *found = model_setting_find(s, path);
    *value = preset;
    if (found == NULL) return LOCUS_OK;
    if ((found->kind != LOCUS_JSON_INTEGER && found->kind != LOCUS_JSON_NUMBER) ||
        !locus_parse_real(found->text, value))
        return model_setting_refuse(s, path, "a number", error);
    return LOCUS_OK;
}

locus_status model_setting_flag(const model_settings *s, const char *path, int preset, int *value,
                                locus_error *error)
{
    const json_value *found = model_setting_find(s, path);
    *value = preset;
    if (found == NULL) return LOCUS_OK;
    if (found->kind != LOCUS_JSON_TRUE && found->kind != LOCUS_JSON_FALSE)
        return model_setting_refuse(s, path, "true or false", error);
    *value = found->kind == LOCUS_JSON_TRUE;
    return LOCUS_OK;
}

locus_status model_setting_text(const model_settings *s, const char *path, const char *preset,
                                const char **value, locus_error *error)
{
    const json_value *found = model_setting_find(s, path);
    *value = preset;
    if (found == NULL) return LOCUS_OK;
    if (found->kind != LOCUS_JSON_STRING) return model_setting_refuse(s, path, "a string", error);
    *value = found->text;
    return LOCUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/number.h"
#include "io/system.h"

enum { MOST_BYTES = 16 << 20, MOST_SCALARS = 200000, MOST_STRING = 1 << 16, MOST_PATH = 4096 };

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

/* Where the scanner is: the path of every open container, one behind the other in `path`. */
typedef struct walk {
    model_settings *settings;
    char path[MOST_PATH];
    size_t ends[LOCUS_JSON_MAX_DEPTH + 1]; /* bytes of the path of the container at each depth */
    uint64_t places[LOCUS_JSON_MAX_DEPTH + 1];
    int is_array[LOCUS_JSON_MAX_DEPTH + 1];
    unsigned depth;
} walk;

static locus_status no_memory(const model_settings *s, locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "%s: out of memory", s->file);
}

/* Put the name of the next member behind the path of its container. */
static int step_into(walk *w, const char *key)
{
    size_t end = w->ends[w->depth];
    char number[24];
    if (w->depth == 0) return 1;
    if (w->is_array[w->depth]) {
        snprintf(number, sizeof number, "%" PRIu64, w->places[w->depth]++);
        key = number;
    } else if (key == NULL) {
        return 1; /* the key set it */
    }
    const size_t bytes = strlen(key);
    if (end + bytes + 2 > MOST_PATH) return 0;
    if (end > 0) w->path[end++] = '.';
    memcpy(w->path + end, key, bytes + 1);
    return 1;
}

static locus_status add_scalar(walk *w, const locus_json_token *t, locus_error *error)
{
    model_settings *s = w->settings;
    if (s->list.count == MOST_SCALARS)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: more than %d values", s->file,
                          (int)MOST_SCALARS);
    model_setting *setting = locus_list_push(&s->list, s->allocator);
    if (setting == NULL) return no_memory(s, error);
    setting->kind = t->kind;
    setting->path = locus_arena_copy(&s->arena, w->path, strlen(w->path));
    setting->text =
        locus_arena_copy(&s->arena, t->text != NULL ? t->text : "", t->text != NULL ? t->bytes : 0);
    if (setting->path == NULL || setting->text == NULL) return no_memory(s, error);
    return LOCUS_OK;
}

static locus_status take_token(walk *w, const locus_json_token *t, locus_error *error)
{
    const int opens = t->kind == LOCUS_JSON_OBJECT || t->kind == LOCUS_JSON_ARRAY;
    if (t->cut || (t->kind == LOCUS_JSON_STRING && strlen(t->text) != t->bytes))
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: byte %" PRIu64 ": found %s",
                          w->settings->file, t->at,
                          t->cut ? "a string of more than 64 KiB" : "a string with a NUL");
    if (t->kind == LOCUS_JSON_OBJECT_END || t->kind == LOCUS_JSON_ARRAY_END) {
        w->depth--;
        return LOCUS_OK;
    }
    if (w->depth == 0 && t->kind != LOCUS_JSON_OBJECT && t->kind != LOCUS_JSON_ARRAY)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: expected an object or a list",
                          w->settings->file);
    if (!step_into(w, t->kind == LOCUS_JSON_KEY ? t->text : NULL))
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: byte %" PRIu64 ": keys of more than %d bytes", w->settings->file,
                          t->at, (int)MOST_PATH);
    if (t->kind == LOCUS_JSON_KEY) return LOCUS_OK;
    if (!opens) return add_scalar(w, t, error);
    w->depth++;
    w->ends[w->depth] = w->depth == 1 ? 0 : strlen(w->path);
    w->places[w->depth] = 0;
    w->is_array[w->depth] = t->kind == LOCUS_JSON_ARRAY;
    return LOCUS_OK;
}

typedef struct source_file {
    int descriptor;
} source_file;

static locus_status read_source(void *context, uint64_t at, void *out, size_t count,
                                locus_error *error)
{
    return locus_system_read(((source_file *)context)->descriptor, at, out, count, error);
}

static locus_status scan(model_settings *s, int descriptor, uint64_t bytes, locus_error *error)
{
    source_file file = {descriptor};
    const locus_json_source source = {.read = read_source, .context = &file, .end = bytes};
    locus_json json;
    locus_json_token token;
    walk *w = locus_arena_take(&s->arena, sizeof *w, 16);
    if (w == NULL) return no_memory(s, error);
    w->settings = s;
    locus_status status = locus_json_open(&json, &source, s->allocator, error);
    while (status == LOCUS_OK) {
        status = locus_json_next(&json, MOST_STRING, &token);
        if (status != LOCUS_OK) locus_fail_in(error, status, s->file);
        if (status != LOCUS_OK || token.kind == LOCUS_JSON_END) break;
        status = take_token(w, &token, error);
    }
    locus_json_close(&json);
    return status;
}

locus_status model_settings_read(model_settings *s, const char *folder, const char *file,
                                 const locus_allocator *allocator, locus_error *error)
{
    *s = (model_settings){.allocator = allocator, .file = file, .arena = {.allocator = allocator}};
    s->list.item_bytes = sizeof(model_setting);
    uint64_t bytes = 0;
    int descriptor = -1;
    const char *path = model_join(&s->arena, folder, file, '/');
    locus_status status =
        path != NULL ? locus_system_open(&descriptor, &bytes, path, error) : no_memory(s, error);
    if (path != NULL && status != LOCUS_OK) locus_fail_in(error, status, file);
    if (status == LOCUS_OK && bytes > MOST_BYTES)
        status =
            locus_fail(error, LOCUS_ERR_FORMAT, "%s: found %" PRIu64 " bytes, expected at most %d",
                       file, bytes, (int)MOST_BYTES);
    if (status == LOCUS_OK) status = scan(s, descriptor, bytes, error);
    locus_system_close(descriptor);
    if (status != LOCUS_OK) model_settings_free(s);
    return status;
}

void model_settings_free(model_settings *s)
{
    locus_list_clear(&s->list, s->allocator);
    locus_arena_clear(&s->arena);
}

/* ---- values ---- */

const model_setting *model_setting_find(const model_settings *s, const char *path)
{
    for (size_t i = s->list.count; i-- > 0;) { /* the last of equal keys */
        const model_setting *setting = locus_list_at(&s->list, i);
        if (strcmp(setting->path, path) == 0)
            return setting->kind == LOCUS_JSON_NULL ? NULL : setting;
    }
    return NULL;
}

locus_status model_setting_refuse(const model_settings *s, const char *path, const char *expected,
                                  locus_error *error)
{
    const model_setting *found = model_setting_find(s, path);
    char text[80];
    if (found == NULL)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: %s is missing, expected %s", s->file, path,
                          expected);
    const char *value = found->kind == LOCUS_JSON_TRUE    ? "true"
                        : found->kind == LOCUS_JSON_FALSE ? "false"
                                                          : found->text;
    return locus_fail(error, LOCUS_ERR_FORMAT, "%s: %s: found %s, expected %s", s->file, path,
                      locus_escape(text, sizeof text, value, strlen(value)), expected);
}

locus_status model_setting_integer(const model_settings *s, const char *path, int64_t preset,
                                   int64_t least, int64_t most, int64_t *value, locus_error *error)
{
    const model_setting *found = model_setting_find(s, path);
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
    const model_setting *found = model_setting_find(s, path);
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
    const model_setting *found = model_setting_find(s, path);
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
    const model_setting *found = model_setting_find(s, path);
    *value = preset;
    if (found == NULL) return LOCUS_OK;
    if (found->kind != LOCUS_JSON_STRING) return model_setting_refuse(s, path, "a string", error);
    *value = found->text;
    return LOCUS_OK;
}

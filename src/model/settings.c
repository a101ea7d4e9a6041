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

static locus_status no_memory(const model_settings *s, locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "%s: out of memory", s->file);
}

/* The settings, and the path of the value at hand. */
typedef struct walk {
    model_settings *settings;
    char path[MOST_PATH];
    locus_error *error;
} walk;

/* Put the name of a member behind the path of its container, which ends at `end`. */
static locus_status step_into(walk *w, size_t *end, const json_value *member, uint64_t place)
{
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, place);
    const char *key = member->key != NULL ? member->key : number;
    const size_t bytes = member->key != NULL ? member->key_bytes : strlen(number);
    if (strlen(key) != bytes)
        return locus_fail(w->error, LOCUS_ERR_FORMAT, "%s: found a key with a NUL",
                          w->settings->file);
    if (*end + bytes + 2 > MOST_PATH)
        return locus_fail(w->error, LOCUS_ERR_FORMAT, "%s: %.80s...: keys of more than %d bytes",
                          w->settings->file, *end > 0 ? w->path : key, (int)MOST_PATH);
    if (*end > 0) w->path[(*end)++] = '.';
    memcpy(w->path + *end, key, bytes + 1);
    *end += bytes;
    return LOCUS_OK;
}

static locus_status add_scalar(walk *w, const json_value *value, size_t end)
{
    model_settings *s = w->settings;
    if (s->list.count == MOST_SCALARS)
        return locus_fail(w->error, LOCUS_ERR_FORMAT, "%s: more than %d values", s->file,
                          (int)MOST_SCALARS);
    if (value->kind == LOCUS_JSON_STRING && strlen(value->text) != value->bytes)
        return locus_fail(w->error, LOCUS_ERR_FORMAT, "%s: %.80s: found a string with a NUL",
                          s->file, w->path);
    model_setting *setting = locus_list_push(&s->list, s->allocator);
    if (setting == NULL) return no_memory(s, w->error);
    setting->kind = value->kind;
    setting->place = s->list.count - 1;
    setting->path = locus_arena_copy(&s->arena, w->path, end);
    setting->text = value->text != NULL ? value->text : "";
    return setting->path != NULL ? LOCUS_OK : no_memory(s, w->error);
}

/* All scalars of a container whose path ends at `end`. As deep as the tree, at most 32. */
static locus_status flatten(walk *w, const json_value *container, size_t end)
{
    uint64_t place = 0;
    for (const json_value *v = container->child; v != NULL; v = v->next) {
        size_t own = end;
        w->path[end] = '\0';
        LOCUS_TRY(step_into(w, &own, v, place++));
        LOCUS_TRY(v->kind == LOCUS_JSON_OBJECT || v->kind == LOCUS_JSON_ARRAY
                      ? flatten(w, v, own)
                      : add_scalar(w, v, own));
    }
    return LOCUS_OK;
}

static int compare_settings(const void *a, const void *b)
{
    const model_setting *x = *(const model_setting *const *)a;
    const model_setting *y = *(const model_setting *const *)b;
    const int order = strcmp(x->path, y->path);
    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

static locus_status sort(model_settings *s, locus_error *error)
{
    s->sorted = locus_allocate(s->allocator, s->list.count + 1, sizeof *s->sorted);
    if (s->sorted == NULL) return no_memory(s, error);
    for (size_t i = 0; i < s->list.count; i++) s->sorted[i] = locus_list_at(&s->list, i);
    qsort(s->sorted, s->list.count, sizeof *s->sorted, compare_settings);
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

/* A container beside every scalar is more than any configuration has. */
static const json_limits limits = {.text = MOST_STRING, .values = 2 * (size_t)MOST_SCALARS};

/* The list of what the tree holds. */
static locus_status list_scalars(model_settings *s, locus_error *error)
{
    walk w = {.settings = s, .error = error};
    const locus_json_kind kind = s->tree.root->kind;
    if (kind != LOCUS_JSON_OBJECT && kind != LOCUS_JSON_ARRAY)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: expected an object or a list", s->file);
    LOCUS_TRY(flatten(&w, s->tree.root, 0));
    return sort(s, error);
}

static locus_status scan(model_settings *s, int descriptor, uint64_t bytes, locus_error *error)
{
    source_file file = {descriptor};
    const locus_json_source source = {.read = read_source, .context = &file, .end = bytes};
    const locus_status status =
        locus_json_tree_read(&s->tree, &source, &limits, s->allocator, error);
    if (status != LOCUS_OK) return locus_fail_in(error, status, s->file);
    return list_scalars(s, error);
}

static void begin(model_settings *s, const char *file, const locus_allocator *allocator)
{
    *s = (model_settings){.allocator = allocator, .file = file, .arena = {.allocator = allocator}};
    s->list.item_bytes = sizeof(model_setting);
}

locus_status model_settings_parse(model_settings *s, const char *file, const char *text,
                                  const locus_allocator *allocator, locus_error *error)
{
    begin(s, file, allocator);
    locus_status status =
        locus_json_tree_parse(&s->tree, text, strlen(text), &limits, allocator, error);
    status = status == LOCUS_OK ? list_scalars(s, error) : locus_fail_in(error, status, file);
    if (status != LOCUS_OK) model_settings_free(s);
    return status;
}

locus_status model_settings_read(model_settings *s, const char *folder, const char *file,
                                 const locus_allocator *allocator, locus_error *error)
{
    begin(s, file, allocator);
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
    locus_release(s->allocator, s->sorted);
    locus_list_clear(&s->list, s->allocator);
    locus_json_tree_free(&s->tree);
    locus_arena_clear(&s->arena);
}

/* ---- values ---- */

/* The first setting whose path lies behind `path` in the order of `bytes` bytes of it; or at it, where
 * equal ones do not count as before. */
static size_t first_behind(const model_settings *s, const char *path, size_t bytes, int equal)
{
    size_t low = 0, high = s->sorted != NULL ? s->list.count : 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strncmp(s->sorted[middle]->path, path, bytes);
        if (order < 0 || (order == 0 && equal))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The last of equal keys. */
static const model_setting *find_last(const model_settings *s, const char *path)
{
    const size_t behind = first_behind(s, path, strlen(path) + 1, 1);
    const model_setting *found = behind > 0 ? s->sorted[behind - 1] : NULL;
    return found != NULL && strcmp(found->path, path) == 0 ? found : NULL;
}

const model_setting *model_setting_find(const model_settings *s, const char *path)
{
    const model_setting *found = find_last(s, path);
    return found == NULL || found->kind == LOCUS_JSON_NULL ? NULL : found;
}

int model_setting_there(const model_settings *s, const char *path)
{
    return find_last(s, path) != NULL;
}

int64_t model_setting_count(const model_settings *s, const char *path)
{
    char inside[MOST_PATH];
    const int bytes = snprintf(inside, sizeof inside, "%s.", path);
    if (bytes >= (int)sizeof inside) return 0; /* no path is so long */
    return (int64_t)(first_behind(s, inside, (size_t)bytes, 1) -
                     first_behind(s, inside, (size_t)bytes, 0));
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

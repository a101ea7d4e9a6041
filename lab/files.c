/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "lab/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/number.h"
#include "core/size.h"
#include "io/json_scan.h"
#include "io/system.h"
#include "io/tensorfile.h"

enum { RECORD_BYTES = 1 << 20, RECORD_SETTINGS = 4096, NAME_TEXT = 256 };

int lab_path(char out[LAB_PATH], const char *folder, const char *name)
{
    const int length = snprintf(out, LAB_PATH, "%s/%s", folder, name);
    return length > 0 && length < LAB_PATH;
}

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the comparison");
}

static char *copy_text(const char *text)
{
    char *copy = locus_allocate(NULL, strlen(text) + 1, 1);
    if (copy != NULL) memcpy(copy, text, strlen(text));
    return copy;
}

void *lab_grow(void *items, size_t count, size_t bytes, size_t *room)
{
    const size_t wanted = count < 16 ? 32 : 2 * count;
    void *moved = locus_allocate(NULL, wanted, bytes);
    if (moved == NULL) return NULL;
    if (count > 0) memcpy(moved, items, count * bytes);
    locus_release(NULL, items);
    *room = wanted;
    return moved;
}

/* ---- folders ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static locus_status add_name(lab_list *list, const char *name, const char *folder,
                             locus_error *error)
{
    if (name[0] == '.') return LOCUS_OK;
    if (list->count == LAB_FOLDER_ENTRIES)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: found more than %d entries", folder,
                          LAB_FOLDER_ENTRIES);
    char *copy = copy_text(name);
    if (copy == NULL) return no_memory(error);
    list->names[list->count++] = copy;
    return LOCUS_OK;
}

locus_status lab_list_read(lab_list *list, const char *folder, locus_error *error)
{
    locus_status status = LOCUS_OK;
    *list = (lab_list){.count = 0};
    DIR *stream = opendir(folder);
    if (stream == NULL && errno == ENOENT) return LOCUS_OK;
    if (stream == NULL)
        return locus_file_fail_in(error, locus_system_fail(error, "cannot open", errno), folder);
    list->names = locus_allocate(NULL, LAB_FOLDER_ENTRIES, sizeof *list->names);
    if (list->names == NULL) status = no_memory(error);
    for (const struct dirent *entry; status == LOCUS_OK && (entry = readdir(stream)) != NULL;)
        status = add_name(list, entry->d_name, folder, error);
    closedir(stream);
    if (status == LOCUS_OK)
        qsort(list->names, list->count, sizeof *list->names, by_name);
    else
        lab_list_free(list);
    return status;
}

void lab_list_free(lab_list *list)
{
    for (size_t i = 0; i < list->count; i++) locus_release(NULL, list->names[i]);
    locus_release(NULL, list->names);
    *list = (lab_list){.count = 0};
}

locus_status lab_folder_make(const char *path, locus_error *error)
{
    struct stat found;
    if (mkdir(path, 0777) == 0) return LOCUS_OK;
    const int code = errno;
    if (code == EEXIST && stat(path, &found) == 0 && S_ISDIR(found.st_mode)) return LOCUS_OK;
    return locus_file_fail_in(error, locus_system_fail(error, "cannot make the folder", code),
                              path);
}

locus_status lab_folders_make(const char *path, locus_error *error)
{
    char above[LAB_PATH];
    if (strlen(path) >= sizeof above || path[0] == '\0')
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is empty or too long");
    for (size_t i = 1; path[i] != '\0'; i++) {
        if (path[i] != '/') continue;
        snprintf(above, sizeof above, "%.*s", (int)i, path);
        LOCUS_TRY(lab_folder_make(above, error));
    }
    return lab_folder_make(path, error);
}

/* ---- whole files ---- */

locus_status lab_file_read(char **text, size_t *bytes, const char *path, size_t most,
                           locus_error *error)
{
    int descriptor = -1;
    uint64_t size = 0;
    *text = NULL;
    locus_status status = locus_system_open(&descriptor, &size, path, error);
    if (status == LOCUS_OK && (size > most || !locus_to_size(bytes, size)))
        status = locus_fail(error, LOCUS_ERR_FORMAT, "found %llu bytes, expected at most %zu",
                            (unsigned long long)size, most);
    if (status == LOCUS_OK && (*text = locus_allocate(NULL, *bytes + 1, 1)) == NULL)
        status = no_memory(error);
    if (status == LOCUS_OK) status = locus_system_read(descriptor, 0, *text, *bytes, error);
    locus_system_close(descriptor);
    if (status == LOCUS_OK) return LOCUS_OK;
    locus_release(NULL, *text);
    *text = NULL;
    return locus_file_fail_in(error, status, path);
}

locus_status lab_file_write(const char *folder, const char *name, const locus_text *text,
                            locus_error *error)
{
    char path[LAB_PATH];
    locus_system_output output = {.folder = -1, .file = -1};
    if (!lab_path(path, folder, name))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    locus_status status = locus_system_output_open(&output, path, error);
    if (status == LOCUS_OK) status = locus_system_output_begin(&output, error);
    if (status == LOCUS_OK)
        status = locus_system_output_write(&output, text->data, text->length, error);
    if (status == LOCUS_OK) status = locus_system_output_finish(&output, error);
    locus_system_output_close(&output);
    return status == LOCUS_OK ? LOCUS_OK : locus_file_fail_in(error, status, path);
}

/* ---- small JSON files ---- */

static locus_status read_memory(void *context, uint64_t at, void *out, size_t count,
                                locus_error *error)
{
    (void)error;
    memcpy(out, (const char *)context + at, count);
    return LOCUS_OK;
}

/* name: value, or value behind a comma where the name is the newest one. */
static locus_status add_setting(lab_record *r, const char *name, const char *value,
                                locus_error *error)
{
    struct lab_setting *last = r->count > 0 ? &r->settings[r->count - 1] : NULL;
    if (last != NULL && strcmp(last->name, name) == 0) {
        const size_t bytes = strlen(last->value) + strlen(value) + 2;
        char *joined = locus_allocate(NULL, bytes, 1);
        if (joined == NULL) return no_memory(error);
        snprintf(joined, bytes, "%s,%s", last->value, value);
        locus_release(NULL, last->value);
        last->value = joined;
        return LOCUS_OK;
    }
    if (r->count == RECORD_SETTINGS)
        return locus_fail(error, LOCUS_ERR_FORMAT, "found more than %d settings", RECORD_SETTINGS);
    if (r->count == r->room) {
        struct lab_setting *moved = lab_grow(r->settings, r->count, sizeof *moved, &r->room);
        if (moved == NULL) return no_memory(error);
        r->settings = moved;
    }
    const struct lab_setting added = {.name = copy_text(name), .value = copy_text(value)};
    r->settings[r->count++] = added;
    return added.name != NULL && added.value != NULL ? LOCUS_OK : no_memory(error);
}

static const char *scalar_text(const locus_json_token *token)
{
    switch (token->kind) {
    case LOCUS_JSON_STRING:
    case LOCUS_JSON_INTEGER:
    case LOCUS_JSON_NUMBER: return token->text;
    case LOCUS_JSON_TRUE: return "true";
    case LOCUS_JSON_FALSE: return "false";
    case LOCUS_JSON_NULL: return "";
    default: return NULL;
    }
}

/* The scalars of a value, objects inside it included: `name` grows and shrinks with the depth. */
static locus_status scan(lab_record *r, locus_json *json, locus_error *error)
{
    char name[NAME_TEXT] = "";
    size_t length[LOCUS_JSON_MAX_DEPTH + 1] = {0}; /* of the name at each depth */
    size_t depth = 0;
    for (;;) {
        locus_json_token token;
        LOCUS_TRY(locus_json_next(json, RECORD_BYTES, &token));
        const char *text = scalar_text(&token);
        if (token.kind == LOCUS_JSON_END) return LOCUS_OK;
        if (depth == 0 && token.kind != LOCUS_JSON_OBJECT)
            return locus_fail(error, LOCUS_ERR_FORMAT, "byte 0: expected an object");
        if (token.kind == LOCUS_JSON_KEY) {
            const size_t at = length[depth];
            const int written =
                snprintf(name + at, NAME_TEXT - at, "%s%s", at > 0 ? "." : "", token.text);
            if (written < 0 || (size_t)written >= NAME_TEXT - at)
                return locus_fail(error, LOCUS_ERR_FORMAT, "a name is too long");
        } else if (token.kind == LOCUS_JSON_OBJECT || token.kind == LOCUS_JSON_ARRAY) {
            length[++depth] = strlen(name);
        } else if (token.kind == LOCUS_JSON_OBJECT_END || token.kind == LOCUS_JSON_ARRAY_END) {
            depth--;
        } else if (text != NULL) {
            LOCUS_TRY(add_setting(r, name, text, error));
        }
    }
}

locus_status lab_record_read(lab_record *record, const char *path, locus_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    locus_json json;
    *record = (lab_record){.count = 0};
    LOCUS_TRY(lab_file_read(&text, &bytes, path, RECORD_BYTES, error));
    const locus_json_source source = {.read = read_memory, .context = text, .end = bytes};
    locus_status status = locus_json_open(&json, &source, NULL, error);
    if (status == LOCUS_OK) {
        status = scan(record, &json, error);
        locus_json_close(&json);
    }
    locus_release(NULL, text);
    if (status == LOCUS_OK) return LOCUS_OK;
    lab_record_free(record);
    return locus_file_fail_in(error, status, path);
}

void lab_record_free(lab_record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        locus_release(NULL, record->settings[i].name);
        locus_release(NULL, record->settings[i].value);
    }
    locus_release(NULL, record->settings);
    *record = (lab_record){.count = 0};
}

const char *lab_record_text(const lab_record *record, const char *name)
{
    for (size_t i = 0; i < record->count; i++)
        if (strcmp(record->settings[i].name, name) == 0) return record->settings[i].value;
    return "";
}

uint64_t lab_record_number(const lab_record *record, const char *name)
{
    uint64_t value = 0;
    return locus_parse_unsigned(lab_record_text(record, name), &value) ? value : 0;
}

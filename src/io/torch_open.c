/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "io/dtype.h"
#include "io/pickle.h"
#include "io/sources.h"
#include "io/system.h"
#include "io/zip.h"

/* What torch.save writes since 1.6: a ZIP of NAME/data.pkl, which is a dict of tensors, and
 * NAME/data/KEY, the bytes of a storage that tensors are views of. */

enum { PREFIX = 512 }; /* bytes of NAME */

typedef struct storage {
    uint64_t at, numbers;
    const locus_file_dtype *dtype;
} storage;

typedef struct view {
    size_t storage;
    uint64_t first;
    uint32_t rank;
    uint64_t shape[LOCUS_FILE_MAX_RANK], strides[LOCUS_FILE_MAX_RANK];
} view;

typedef struct archive {
    locus_zip zip;
    char prefix[PREFIX]; /* NAME/ */
    locus_list storages, views;
} archive;

/* ---- names of Python ---- */

enum { ORDERED_DICT, TENSOR, PARAMETER, STORAGES };

static const struct {
    const char *name, *dtype;
} globals[] = {
    {"collections OrderedDict", NULL},
    {"torch._utils _rebuild_tensor_v2", NULL},
    {"torch._utils _rebuild_parameter", NULL},
    {"torch FloatStorage", "F32"},
    {"torch HalfStorage", "F16"},
    {"torch BFloat16Storage", "BF16"},
    {"torch DoubleStorage", "F64"},
    {"torch LongStorage", "I64"},
    {"torch IntStorage", "I32"},
    {"torch ShortStorage", "I16"},
    {"torch CharStorage", "I8"},
    {"torch ByteStorage", "U8"},
    {"torch BoolStorage", "BOOL"},
    {"torch ComplexFloatStorage", "C64"},
};

static locus_status find_global(locus_pickle *p, const char *name, locus_pickle_value *out)
{
    char text[LOCUS_FILE_NAME_TEXT], found[LOCUS_FILE_NAME_TEXT + 32];
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++) {
        if (strcmp(globals[i].name, name) != 0) continue;
        *out = (locus_pickle_value){LOCUS_PICKLE_GLOBAL, 0, i};
        return LOCUS_OK;
    }
    locus_escape(text, sizeof text, name, strlen(name));
    snprintf(found, sizeof found, "the Python name \"%s\"", text);
    return locus_pickle_refuse(p, found, "a dict of plain tensors (nothing is executed)");
}

/* ---- storages ---- */

static int is_text(const locus_pickle *p, const locus_pickle_value *v, const char *text)
{
    return v->kind == LOCUS_PICKLE_TEXT && v->count == strlen(text) &&
           memcmp(p->bytes + v->at, text, v->count) == 0;
}

/* NAME/data/KEY */
static const locus_zip_entry *find_data(const archive *a, const locus_pickle *p,
                                        const locus_pickle_value *key)
{
    char name[PREFIX + 64];
    if (key->count > 48 || memchr(p->bytes + key->at, '\0', key->count) != NULL) return NULL;
    snprintf(name, sizeof name, "%sdata/%.*s", a->prefix, (int)key->count,
             (const char *)p->bytes + key->at);
    return locus_zip_find(&a->zip, name);
}

/* ("storage", type, key, device, numbers) */
static locus_status find_storage(locus_pickle *p, const locus_pickle_value *id,
                                 locus_pickle_value *out)
{
    archive *a = p->context;
    const int whole = id->kind == LOCUS_PICKLE_TUPLE && id->count == 5;
    const locus_pickle_value *cell[5] = {NULL};
    for (uint32_t i = 0; whole && i < 5; i++) cell[i] = locus_pickle_cell(p, id, i);
    if (!whole || !is_text(p, cell[0], "storage") || cell[1]->kind != LOCUS_PICKLE_GLOBAL ||
        cell[1]->at < STORAGES || cell[2]->kind != LOCUS_PICKLE_TEXT ||
        cell[3]->kind != LOCUS_PICKLE_TEXT || cell[4]->kind != LOCUS_PICKLE_INTEGER)
        return locus_pickle_refuse(p, "another id", "one of a storage");
    storage s = {.numbers = cell[4]->at,
                 .dtype = locus_file_dtype_find(globals[cell[1]->at].dtype)};
    const locus_zip_entry *entry = find_data(a, p, cell[2]);
    if (entry == NULL)
        return locus_pickle_refuse(p, "a storage that the ZIP lacks", "one of its entries");
    if (s.numbers > entry->bytes || s.numbers * (s.dtype->bits / 8) != entry->bytes)
        return locus_pickle_refuse(p, "a storage of another size than its entry", "the same");
    LOCUS_TRY(locus_zip_place(&a->zip, entry, &s.at, p->error));
    storage *kept = locus_list_push(&a->storages, p->allocator);
    if (kept == NULL) return locus_pickle_no_room(p, &a->storages);
    *kept = s;
    *out = (locus_pickle_value){LOCUS_PICKLE_STORAGE, 0, a->storages.count - 1};
    return LOCUS_OK;
}

/* ---- tensors ---- */

static int take_extents(const locus_pickle *p, const locus_pickle_value *tuple, uint64_t *out)
{
    for (uint32_t i = 0; i < tuple->count; i++) {
        const locus_pickle_value *cell = locus_pickle_cell(p, tuple, i);
        if (cell->kind != LOCUS_PICKLE_INTEGER || cell->at > LOCUS_FILE_MAX_DIM) return 0;
        out[i] = cell->at;
    }
    return 1;
}

/* Its numbers are no more than the storage's, and the last of them lies in it. */
static int fits(const view *v, uint64_t numbers)
{
    uint64_t count = 0, last = v->first, part = 0;
    if (!locus_product_u64(&count, v->shape, v->rank)) return 0;
    if (count == 0) return v->first <= numbers;
    for (uint32_t i = 0; i < v->rank; i++)
        if (!locus_mul_u64(&part, v->shape[i] - 1, v->strides[i]) ||
            !locus_add_u64(&last, last, part))
            return 0;
    return count <= numbers && last < numbers;
}

/* (storage, offset, shape, strides, requires_grad, hooks[, metadata]) */
static locus_status make_tensor(locus_pickle *p, const locus_pickle_value *args,
                                locus_pickle_value *out)
{
    archive *a = p->context;
    const locus_pickle_value *cell[4] = {NULL};
    for (uint32_t i = 0; args->count >= 6 && i < 4; i++) cell[i] = locus_pickle_cell(p, args, i);
    if (args->count < 6 || args->count > 7 || cell[0]->kind != LOCUS_PICKLE_STORAGE ||
        cell[1]->kind != LOCUS_PICKLE_INTEGER || cell[2]->kind != LOCUS_PICKLE_TUPLE ||
        cell[3]->kind != LOCUS_PICKLE_TUPLE || cell[2]->count != cell[3]->count)
        return locus_pickle_refuse(p, "other arguments of a tensor",
                                   "a storage, an offset, a shape and its strides");
    view v = {.storage = (size_t)cell[0]->at, .first = cell[1]->at, .rank = cell[2]->count};
    const storage *s = locus_list_at(&a->storages, v.storage);
    if (v.rank > LOCUS_FILE_MAX_RANK)
        return locus_pickle_refuse(p, "a rank above 16", "at most 16");
    if (!take_extents(p, cell[2], v.shape) || !take_extents(p, cell[3], v.strides) ||
        !fits(&v, s->numbers))
        return locus_pickle_refuse(p, "a tensor that its storage cannot hold", "one that fits");
    view *kept = locus_list_push(&a->views, p->allocator);
    if (kept == NULL) return locus_pickle_no_room(p, &a->views);
    *kept = v;
    *out = (locus_pickle_value){LOCUS_PICKLE_TENSOR, 0, a->views.count - 1};
    return LOCUS_OK;
}

static locus_status make(locus_pickle *p, uint64_t global, const locus_pickle_value *args,
                         locus_pickle_value *out)
{
    if (global == TENSOR) return make_tensor(p, args, out);
    if (global == ORDERED_DICT && args->count == 0) {
        *out = locus_pickle_new_dict(p);
        return LOCUS_OK;
    }
    const locus_pickle_value *first = args->count == 3 ? locus_pickle_cell(p, args, 0) : NULL;
    if (global == PARAMETER && first != NULL && first->kind == LOCUS_PICKLE_TENSOR) {
        *out = *first;
        return LOCUS_OK;
    }
    return locus_pickle_refuse(p, "other arguments", "those of a dict or a parameter");
}

/* ---- the file ---- */

static locus_status add_tensor(locus_file *file, const archive *a, const locus_pickle *p,
                               const locus_pickle_item *item, locus_error *error)
{
    char name[LOCUS_FILE_NAME_TEXT];
    const char *text = (const char *)p->bytes + item->key.at;
    if (item->key.kind != LOCUS_PICKLE_TEXT || memchr(text, '\0', item->key.count) != NULL)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "data.pkl: found a key that is no name, expected names of tensors");
    if (item->value.kind != LOCUS_PICKLE_TENSOR) {
        locus_escape(name, sizeof name, text, item->key.count);
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "data.pkl: \"%s\": found %s, expected a tensor (python -m locus.convert "
                          "reads more)",
                          name, locus_pickle_describe(&item->value));
    }
    const view *v = locus_list_at(&a->views, (size_t)item->value.at);
    const storage *s = locus_list_at(&a->storages, v->storage);
    const char *whole = locus_arena_copy(&file->arena, text, item->key.count);
    if (whole == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the header");
    const locus_file_tensor tensor = {.name = whole,
                                      .dtype = s->dtype->name,
                                      .bits = s->dtype->bits,
                                      .rank = v->rank,
                                      .shape = v->shape};
    const locus_file_source source = {.at = s->at, .first = v->first, .strides = v->strides};
    return locus_file_add(file, &tensor, &source, error);
}

static locus_status add_tensors(locus_file *file, const archive *a, locus_pickle *p,
                                locus_error *error)
{
    locus_pickle_value root = {0};
    LOCUS_TRY(locus_pickle_run(p, &root));
    if (root.kind != LOCUS_PICKLE_DICT)
        return locus_fail(error, LOCUS_ERR_FORMAT, "data.pkl: found %s, expected a dict of tensors",
                          locus_pickle_describe(&root));
    for (size_t i = 0; i < p->items.count; i++) {
        const locus_pickle_item *item = locus_list_at(&p->items, i);
        if (item->dict == root.at) LOCUS_TRY(add_tensor(file, a, p, item, error));
    }
    return LOCUS_OK;
}

/* The one entry NAME/data.pkl; NAME/ is the prefix of the others. */
static const locus_zip_entry *find_pickle(archive *a)
{
    static const char last[] = "data.pkl";
    for (size_t i = 0; i < a->zip.entries.count; i++) {
        const locus_zip_entry *entry = locus_list_at(&a->zip.entries, i);
        const char *slash = strchr(entry->name, '/');
        if (slash == NULL || strcmp(slash + 1, last) != 0) continue;
        const size_t bytes = (size_t)(slash + 1 - entry->name);
        if (bytes >= PREFIX) return NULL;
        memcpy(a->prefix, entry->name, bytes);
        a->prefix[bytes] = '\0';
        return entry;
    }
    return NULL;
}

static locus_status check_order(const archive *a, locus_error *error)
{
    char name[PREFIX + 16], order[6];
    uint64_t at = 0;
    snprintf(name, sizeof name, "%sbyteorder", a->prefix);
    const locus_zip_entry *entry = locus_zip_find(&a->zip, name);
    if (entry == NULL) return LOCUS_OK;
    LOCUS_TRY(locus_zip_place(&a->zip, entry, &at, error));
    if (entry->bytes == sizeof order)
        LOCUS_TRY(locus_system_read(a->zip.descriptor, at, order, sizeof order, error));
    if (entry->bytes == sizeof order && memcmp(order, "little", sizeof order) == 0) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT, "byteorder: found another, expected little");
}

static locus_status read_archive(locus_file *file, archive *a, locus_error *error)
{
    uint64_t at = 0;
    const locus_zip_entry *entry = find_pickle(a);
    if (entry == NULL)
        return locus_fail(
            error, LOCUS_ERR_FORMAT,
            "found a ZIP archive without NAME/data.pkl, expected what torch.save writes");
    if (entry->bytes > LOCUS_FILE_MAX_HEADER)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "data.pkl: found %" PRIu64 " bytes, expected at most %u", entry->bytes,
                          LOCUS_FILE_MAX_HEADER);
    LOCUS_TRY(check_order(a, error));
    LOCUS_TRY(locus_zip_place(&a->zip, entry, &at, error));
    unsigned char *bytes = locus_allocate(file->allocator, (size_t)entry->bytes, 1);
    if (bytes == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for data.pkl");
    locus_pickle p = {.bytes = bytes,
                      .count = (size_t)entry->bytes,
                      .allocator = file->allocator,
                      .error = error,
                      .global = find_global,
                      .persistent = find_storage,
                      .call = make,
                      .context = a};
    file->header_bytes = entry->bytes;
    locus_status status = locus_system_read(file->descriptor, at, bytes, p.count, error);
    if (status == LOCUS_OK) status = add_tensors(file, a, &p, error);
    locus_pickle_clear(&p);
    locus_release(file->allocator, bytes);
    return status;
}

locus_status locus_file_parse_torch(locus_file *file, locus_error *error)
{
    archive *a = locus_allocate(file->allocator, 1, sizeof *a);
    if (a == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the directory");
    a->storages.item_bytes = sizeof(storage);
    a->views.item_bytes = sizeof(view);
    locus_status status =
        locus_zip_open(&a->zip, file->descriptor, file->bytes, file->allocator, error);
    if (status == LOCUS_OK) status = read_archive(file, a, error);
    locus_zip_close(&a->zip);
    locus_list_clear(&a->storages, file->allocator);
    locus_list_clear(&a->views, file->allocator);
    locus_release(file->allocator, a);
    return status;
}

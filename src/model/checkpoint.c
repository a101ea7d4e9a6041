/* SPDX-License-Identifier: Apache-2.0 */
#include "model/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/half.h"
#include "core/memory.h"
#include "io/system.h"
#include "io/tensorfile.h"
#include "model/gguf.h"

/* ---- files ---- */

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
}

/* An ONNX file is there instead: the message names what converts it. */
static locus_status name_other(model_checkpoint *c, const char *folder, const char *name,
                               locus_status status, locus_error *error)
{
    static const char *const others[] = {"model.onnx", "onnx/model.onnx"};
    char quoted[320];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *other = model_join(&c->arena, folder, others[i], '/');
        if (other == NULL || !locus_system_exists(other)) continue;
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: found %s instead; \"python -m locus.convert %s -o NEW\" makes a "
                          "folder with it",
                          name, others[i],
                          locus_escape(quoted, sizeof quoted, folder, strlen(folder)));
    }
    return status;
}

static locus_status open_file(model_checkpoint *c, const char *folder, const char *name,
                              const char *index, locus_error *error)
{
    for (size_t i = 0; i < c->file_count; i++)
        if (strcmp(c->names[i], name) == 0) return LOCUS_OK;
    if (c->file_count == MODEL_SHARDS)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: more than %d files", index,
                          (int)MODEL_SHARDS);
    const char *path = model_join(&c->arena, folder, name, '/');
    const char *kept = locus_arena_copy(&c->arena, name, strlen(name));
    if (path == NULL || kept == NULL) return no_memory(error);
    const locus_status status =
        locus_weights_open(&c->files[c->file_count], path, c->allocator, error);
    if (status == LOCUS_ERR_IO) return name_other(c, folder, name, status, error);
    LOCUS_TRY(status);
    c->names[c->file_count++] = kept;
    return LOCUS_OK;
}

/* Files of an index lie beside it. */
static int is_plain_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
}

static locus_status open_shards(model_checkpoint *c, const char *folder, const char *index,
                                locus_error *error)
{
    static const char map[] = "weight_map";
    model_settings s;
    LOCUS_TRY(model_settings_read(&s, folder, index, c->allocator, error));
    locus_status status = LOCUS_OK;
    const json_value *names = model_setting_members(&s, map);
    const json_value *entry = names != NULL ? names->child : NULL;
    for (; status == LOCUS_OK && entry != NULL; entry = entry->next)
        status =
            entry->kind == LOCUS_JSON_STRING && is_plain_name(entry->text)
                ? open_file(c, folder, entry->text, index, error)
                : model_member_refuse(&s, map, entry, "the name of a file in the folder", error);
    model_settings_free(&s);
    if (status == LOCUS_OK && c->file_count == 0)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: names no file", index);
    return status;
}

/* A model that is one GGUF file. */
static locus_status open_gguf(model_checkpoint *c, const char *path, locus_error *error)
{
    const char *slash = strrchr(path, '/');
    LOCUS_TRY(locus_weights_open(&c->files[0], path, c->allocator, error));
    c->file_count = 1;
    c->names[0] = locus_arena_copy(&c->arena, slash == NULL ? path : slash + 1,
                                   strlen(slash == NULL ? path : slash + 1));
    c->gguf = model_gguf_architecture(c->files[0]);
    return c->names[0] != NULL ? LOCUS_OK : no_memory(error);
}

/* The first of these that is there; safetensors, where nothing is. */
static locus_status open_any(model_checkpoint *c, const char *folder, locus_error *error)
{
    static const struct {
        const char *name;
        int is_index;
    } known[] = {{"model.safetensors.index.json", 1},
                 {"model.safetensors", 0},
                 {"pytorch_model.bin.index.json", 1},
                 {"pytorch_model.bin", 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *path = model_join(&c->arena, folder, known[i].name, '/');
        if (path == NULL) return no_memory(error);
        if (!locus_system_exists(path)) continue;
        return known[i].is_index ? open_shards(c, folder, known[i].name, error)
                                 : open_file(c, folder, known[i].name, known[i].name, error);
    }
    return open_file(c, folder, known[1].name, known[1].name, error);
}

locus_status model_checkpoint_open(model_checkpoint *c, const char *folder,
                                   const model_family *family, const model_description *d,
                                   const locus_allocator *allocator, locus_error *error)
{
    *c = (model_checkpoint){.allocator = allocator,
                            .arena = {.allocator = allocator},
                            .family = family,
                            .description = d};
    const locus_status status =
        model_is_gguf(folder) ? open_gguf(c, folder, error) : open_any(c, folder, error);
    c->own_count = c->file_count;
    if (status != LOCUS_OK) model_checkpoint_close(c);
    return status;
}

locus_status model_checkpoint_open_beside(model_checkpoint *c, const char *folder,
                                          const char *beside, size_t *file, locus_error *error)
{
    const char *name = model_join(&c->arena, beside, "model.safetensors", '/');
    const char *torch = model_join(&c->arena, beside, "pytorch_model.bin", '/');
    if (name == NULL || torch == NULL) return no_memory(error);
    const char *path = model_join(&c->arena, folder, name, '/');
    const char *other = model_join(&c->arena, folder, torch, '/');
    if (path == NULL || other == NULL) return no_memory(error);
    if (!locus_system_exists(path) && locus_system_exists(other)) name = torch;
    *file = c->file_count;
    return open_file(c, folder, name, name, error);
}

void model_checkpoint_close(model_checkpoint *c)
{
    for (size_t i = 0; i < c->file_count; i++) locus_file_close(c->files[i]);
    c->file_count = 0;
    locus_arena_clear(&c->arena);
}

enum { NAME = 256 };

/* ---- names ---- */

/* Prefix and name with # replaced by the layer. 0: too long. */
static int spell(char *out, const char *prefix, const char *name, int64_t layer)
{
    const char *mark = strchr(name, '#');
    const int bytes = mark == NULL ? snprintf(out, MODEL_NAME, "%s%s", prefix, name)
                                   : snprintf(out, MODEL_NAME, "%s%.*s%" PRId64 "%s", prefix,
                                              (int)(mark - name), name, layer, mark + 1);
    return bytes > 0 && bytes < MODEL_NAME;
}

/* Norms of old files: gamma and beta instead of weight and bias. */
static int spell_old(char *out)
{
    char *last = strrchr(out, '.');
    if (last == NULL || last - out < 4 || strstr(out, "orm.") == NULL) return 0;
    if (strcmp(last, ".weight") == 0) return snprintf(last, 7, ".gamma") > 0;
    return strcmp(last, ".bias") == 0 && snprintf(last, 6, ".beta") > 0;
}

static int find_name(const model_checkpoint *c, const char *name, model_place *found)
{
    char stored[NAME];
    if (c->gguf != NULL) {
        if (!model_gguf_name(c->gguf, name, stored, sizeof stored)) return 0;
        name = stored;
    }
    for (size_t f = 0; f < c->own_count; f++) {
        const size_t i = locus_names_find(&c->files[f]->tensor_names, name);
        const locus_file_tensor *tensor = locus_file_tensor_at(c->files[f], i);
        if (tensor == NULL) continue;
        *found = (model_place){f, i, tensor, 0};
        if (c->gguf != NULL) found->heads_in_pairs = model_gguf_heads(c->gguf, c->files[f], name);
        return 1;
    }
    return 0;
}

int model_checkpoint_look(const model_checkpoint *c, const char *name, int64_t layer,
                          char spelt[MODEL_NAME], model_place *found)
{
    for (const char *const *prefix = c->family->prefixes; *prefix != NULL; prefix++) {
        if (!spell(spelt, *prefix, name, layer)) continue;
        if (find_name(c, spelt, found)) return 1;
        if (spell_old(spelt) && find_name(c, spelt, found)) return 1;
        (void)spell(spelt, *prefix, name, layer);
    }
    return 0;
}

/* The first of those names for the slot that is there; `name` is it, or the last tried. */
static int find_among(const model_checkpoint *c, const model_name *names, model_slot slot,
                      int64_t layer, char *name, model_place *found)
{
    for (const model_name *n = names; n->name != NULL; n++)
        if (n->slot == slot && model_checkpoint_look(c, n->name, layer, name, found)) return 1;
    return 0;
}

/* By the names of heads that families share, or by the family's own, which messages name. */
static int find_slot(const model_checkpoint *c, model_slot slot, int64_t layer, char *name,
                     model_place *found)
{
    const model_table *table = model_slot_table(c->description, slot);
    snprintf(name, MODEL_NAME, "(no name)");
    if (table != NULL) return spell(name, "", table->name, layer) && find_name(c, name, found);
    return find_among(c, model_head_names, slot, layer, name, found) ||
           find_among(c, c->family->names, slot, layer, name, found);
}

int model_checkpoint_has(const model_checkpoint *c, model_slot slot, int64_t layer)
{
    char name[MODEL_NAME];
    model_place found;
    return find_slot(c, slot, layer, name, &found);
}

/* ---- values ---- */

static char *shape_text(char *out, size_t capacity, const uint64_t *shape, size_t rank)
{
    size_t at = (size_t)snprintf(out, capacity, "[");
    for (size_t i = 0; i < rank && at < capacity; i++)
        at += (size_t)snprintf(out + at, capacity - at, "%s%" PRIu64, i > 0 ? "," : "", shape[i]);
    if (at < capacity) snprintf(out + at, capacity - at, "]");
    return out;
}

/* Axes of one element do not count: a convolution over one token is a map. */
static int same_shape(const uint64_t *a, size_t a_rank, const uint64_t *b, size_t b_rank)
{
    size_t i = 0, j = 0;
    while (1) {
        while (i < a_rank && a[i] == 1) i++;
        while (j < b_rank && b[j] == 1) j++;
        if (i == a_rank || j == b_rank) return i == a_rank && j == b_rank;
        if (a[i++] != b[j++]) return 0;
    }
}

/* F32, F16, BF16 or F64, of that shape. */
static locus_status check_tensor(const model_checkpoint *c, const char *name, const model_place *p,
                                 const uint64_t *want, size_t rank, locus_error *error)
{
    static const char *const types[] = {"F32", "F16", "BF16", "F64"};
    char found[96], expected[96];
    int known = 0;
    for (size_t i = 0; i < 4; i++) known |= strcmp(p->tensor->dtype, types[i]) == 0;
    if (!known)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: tensor %s: found %s, expected F32, F16, BF16 or F64",
                          c->names[p->file], name, p->tensor->dtype);
    /* a tensor without its numbers: the shape behind a 0 */
    const uint32_t hollow =
        c->precision != 0 && p->tensor->rank > 0 && p->tensor->shape[0] == 0 ? 1 : 0;
    if (same_shape(p->tensor->shape + hollow, p->tensor->rank - hollow, want, rank))
        return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT, "%s: tensor %s: found %s, expected %s",
                      c->names[p->file], name,
                      shape_text(found, sizeof found, p->tensor->shape, p->tensor->rank),
                      shape_text(expected, sizeof expected, want, rank));
}

/* The reader delivers little-endian bytes; so are all machines with a kernel table. */
static void convert(float *to, const void *from, const char *dtype, size_t count)
{
    if (strcmp(dtype, "F64") == 0) {
        for (size_t i = 0; i < count; i++) {
            double value;
            memcpy(&value, (const char *)from + i * sizeof value, sizeof value);
            to[i] = (float)value;
        }
        return;
    }
    const int half = strcmp(dtype, "F16") == 0;
    for (size_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, (const char *)from + i * sizeof bits, sizeof bits);
        to[i] = half ? locus_f16_to_float(bits) : locus_bf16_to_float(bits);
    }
}

enum { PIECE = 1 << 16 }; /* numbers converted at a time */

/* Numbers [first, first + count) as they lie in the file. */
static locus_status read_values(model_checkpoint *c, const model_place *p, float *to,
                                uint64_t first, uint64_t count, locus_error *error)
{
    const locus_file *file = c->files[p->file];
    const uint64_t bytes = p->tensor->bits / 8;
    if (strcmp(p->tensor->dtype, "F32") == 0)
        return locus_file_read(file, p->index, first * bytes, count * bytes, to, error);
    void *piece = locus_allocate(c->allocator, PIECE, sizeof(double));
    locus_status status = piece != NULL ? LOCUS_OK : no_memory(error);
    for (uint64_t at = 0; status == LOCUS_OK && at < count; at += PIECE) {
        const uint64_t some = count - at < PIECE ? count - at : PIECE;
        status = locus_file_read(file, p->index, (first + at) * bytes, some * bytes, piece, error);
        if (status == LOCUS_OK) convert(to + at, piece, p->tensor->dtype, (size_t)some);
    }
    locus_release(c->allocator, piece);
    return status;
}

/* Row h D + D/2 s + i of a head h is row h D + 2 i + s of the file. */
static locus_status read_pairs(model_checkpoint *c, const model_place *p, float *to, uint64_t count,
                               locus_error *error)
{
    const uint64_t rows = p->tensor->shape[0], row = count / rows;
    const uint64_t head = rows / p->heads_in_pairs, half = head / 2;
    for (uint64_t r = 0; r < rows; r++) {
        const uint64_t in = r % head, from = r - in + 2 * (in % half) + in / half;
        LOCUS_TRY(read_values(c, p, to + r * row, from * row, row, error));
    }
    return LOCUS_OK;
}

locus_status model_checkpoint_values(model_checkpoint *c, const model_place *p, float *to,
                                     uint64_t count, locus_error *error)
{
    const uint64_t heads = p->heads_in_pairs;
    if (heads == 0) return read_values(c, p, to, 0, count, error);
    if (count == 0 || p->tensor->shape[0] % (2 * heads) != 0)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: tensor %s: found rows that are no pairs",
                          c->names[p->file], p->tensor->name);
    return read_pairs(c, p, to, count, error);
}

static locus_status missing(const model_checkpoint *c, const char *name, const uint64_t *shape,
                            size_t rank, model_place *p, locus_error *error)
{
    *p = (model_place){.tensor = NULL};
    if (c->listen == NULL)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: tensor %s is missing",
                          c->own_count == 1 ? c->names[0] : "the shards", name);
    c->listen(c->listener, name, shape, rank);
    return LOCUS_OK;
}

locus_status model_checkpoint_named(const model_checkpoint *c, const char *name, int64_t layer,
                                    const uint64_t *shape, size_t rank, model_place *p,
                                    locus_error *error)
{
    char spelt[MODEL_NAME];
    if (!model_checkpoint_look(c, name, layer, spelt, p))
        return missing(c, spelt, shape, rank, p, error);
    return check_tensor(c, spelt, p, shape, rank, error);
}

locus_status model_checkpoint_find(const model_checkpoint *c, model_slot slot, int64_t layer,
                                   model_place *p, locus_error *error)
{
    char name[MODEL_NAME];
    uint64_t shape[4];
    const size_t rank = model_slot_shape(c->description, slot, shape);
    if (!find_slot(c, slot, layer, name, p)) return missing(c, name, shape, rank, p, error);
    return check_tensor(c, name, p, shape, rank, error);
}

locus_status model_checkpoint_take(const model_checkpoint *c, size_t file, const char *name,
                                   const uint64_t *shape, size_t rank, model_place *p,
                                   locus_error *error)
{
    const size_t index = locus_names_find(&c->files[file]->tensor_names, name);
    *p = (model_place){.file = file,
                       .index = index,
                       .tensor = locus_file_tensor_at(c->files[file], index)};
    if (p->tensor == NULL)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: tensor %s is missing", c->names[file],
                          name);
    return check_tensor(c, name, p, shape, rank, error);
}

const char *model_checkpoint_name(const model_checkpoint *c, const model_place *p,
                                  locus_arena *arena)
{
    const char *file = c->names[p->file], *slash = strchr(file, '/'), *name = p->tensor->name;
    if (p->file < c->own_count || slash == NULL) return locus_arena_copy(arena, name, strlen(name));
    const char *folder = locus_arena_copy(arena, file, (size_t)(slash - file));
    return folder != NULL ? model_join(arena, folder, name, '.') : NULL;
}

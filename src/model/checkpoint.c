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

/* ---- slots ---- */

static const char *const shapes[SLOT_COUNT] = {
#define MODEL_SLOT(name, each_layer, shape) [SLOT_##name] = shape,
#include "model/slots.inc"
#undef MODEL_SLOT
};

static int64_t extent_of(const model_description *d, char letter)
{
    switch (letter) {
    case '2': return 2;
    case 'M': return d->depth_taps;
    case 'J': return d->forward_taps > 1 ? d->forward_taps : 1;
    case 'V': return d->vocabulary;
    case 'W': return d->embedding_width;
    case 'E': return d->width;
    case 'A': return d->heads * d->head_dim;
    case 'C': return (d->kv_heads > 0 ? d->kv_heads : d->heads) * d->head_dim;
    case '1': return 1;
    case 'D': return d->head_dim;
    case 'X': return 3 * d->heads * d->head_dim;
    case 'F': return d->feed_forward;
    case 'P': return d->positions;
    case 'Z': return d->late_positions ? d->width : d->embedding_width;
    case 'Y': return d->types;
    case 'R': return d->relative_rows;
    case 'B': return d->bias_rows;
    case 'H': return d->heads;
    case 'L': return d->labels;
    case 'G': return d->groups > 0 ? d->width / d->groups : 0;
    case 'T': return d->table_rows;
    case 'N': return d->table_features;
    default: return d->taps; /* K */
    }
}

/* The table of a slot; NULL: it is that of something else. */
static const model_table *table_of(const model_description *d, model_slot slot)
{
    const int64_t index = (int64_t)slot - SLOT_TABLE_0;
    return index >= 0 && index < d->table_count ? &d->tables[index] : NULL;
}

static const char *letters_of(const model_description *d, model_slot slot)
{
    const model_table *table = table_of(d, slot);
    return table != NULL ? table->shape : shapes[slot];
}

/* Stored [E, H, D] and read as [A, E]. */
static int is_turned(const model_description *d, model_slot slot)
{
    return d->head_tensors &&
           (slot == SLOT_Q || slot == SLOT_K || slot == SLOT_V || slot == SLOT_RELATIVE_K);
}

/* GPT-2 keeps its maps the other way round. */
static int is_transposed(const model_description *d, model_slot slot)
{
    return d->transposed &&
           (slot == SLOT_FUSED_QKV || slot == SLOT_O || slot == SLOT_IN || slot == SLOT_OUT);
}

int model_slot_transposed(const model_description *d, model_slot slot, int64_t *rows,
                          int64_t *columns)
{
    uint64_t shape[4]; /* as it is wanted: a file may have more or fewer axes of one element */
    if (!is_turned(d, slot) && !is_transposed(d, slot)) return 0;
    (void)model_slot_shape(d, slot, shape);
    *rows = (int64_t)shape[0];
    *columns = model_slot_elements(d, slot) / *rows;
    return 1;
}

size_t model_slot_shape(const model_description *d, model_slot slot, uint64_t shape[4])
{
    if (is_turned(d, slot) || (d->head_tensors && slot == SLOT_O)) {
        shape[0] = (uint64_t)d->width;
        shape[1] = (uint64_t)d->heads;
        shape[2] = (uint64_t)d->head_dim;
        return 3;
    }
    const char *letters = letters_of(d, slot);
    size_t rank = strlen(letters);
    for (size_t i = 0; i < rank; i++) shape[i] = (uint64_t)extent_of(d, letters[i]);
    if (rank > 0 && letters[rank - 1] == 'J' && shape[rank - 1] == 1) rank--;
    if (is_transposed(d, slot)) {
        const uint64_t outputs = shape[0];
        shape[0] = shape[1];
        shape[1] = outputs;
    }
    if (slot == SLOT_GLU) { /* [2 E, E] */
        shape[0] *= shape[1];
        shape[1] = shape[2];
        rank = 2;
    }
    return rank;
}

int64_t model_slot_elements(const model_description *d, model_slot slot)
{
    int64_t count = 1;
    for (const char *letter = letters_of(d, slot); *letter != '\0'; letter++)
        count *= extent_of(d, *letter);
    return count;
}

static int has_shifts(const model_description *d) { return d->norm_centred && !d->norm_unshifted; }
static int is_fused(const model_description *d) { return d->fused_heads || d->fused_parts; }

int model_slot_wanted(const model_description *d, model_slot slot)
{
    switch (slot) {
    case SLOT_WORD: return !d->shared_words && d->features == 0 && d->clusters == 0;
    case SLOT_POSITION: return d->positions > 0 && !d->sinusoidal;
    case SLOT_TYPE: return d->types > 0 && !d->segments;
    case SLOT_EMBEDDING_NORM_GAIN: return d->embedding_norm;
    case SLOT_EMBEDDING_NORM_SHIFT: return d->embedding_norm && has_shifts(d);
    case SLOT_EMBEDDING_MAP: return d->always_mapped || d->embedding_width != d->width;
    case SLOT_EMBEDDING_MAP_BIAS: return 0; /* where the checkpoint has one */
    case SLOT_RELATIVE: return d->relative_rows > 0 && (d->to_position || d->from_position);
    case SLOT_CONTENT_BIAS:
    case SLOT_POSITION_BIAS: return d->distances;
    case SLOT_SEGMENT_BIAS:
    case SLOT_SEGMENT: return d->segments;
    case SLOT_RELATIVE_NORM_GAIN:
    case SLOT_RELATIVE_NORM_SHIFT: return d->relative_norm;
    case SLOT_BIAS: return d->bias_rows > 0 && !d->bias_each_layer;
    case SLOT_LAYER_BIAS: return d->bias_rows > 0 && d->bias_each_layer;
    case SLOT_FUSED_QKV: return is_fused(d);
    case SLOT_FUSED_QKV_BIAS: return d->fused_biases;
    case SLOT_Q:
    case SLOT_K:
    case SLOT_V: return !is_fused(d);
    case SLOT_CONVOLUTION:
    case SLOT_CONVOLUTION_BIAS:
    case SLOT_CONVOLUTION_NORM_GAIN:
    case SLOT_CONVOLUTION_NORM_SHIFT: return d->taps > 0;
    case SLOT_HEAD_MAP:
    case SLOT_HEAD_MAP_BIAS: return d->head == LOCUS_MODEL_CLASSIFY && !d->head_plain;
    case SLOT_HEAD_OUT: return d->labels > 0;
    case SLOT_HEAD_OUT_BIAS:
        return d->labels > 0 && !(d->head == LOCUS_MODEL_CLASSIFY && d->head_plain);
    case SLOT_FILL_MAP:
    case SLOT_FILL_MAP_BIAS:
    case SLOT_FILL_NORM_GAIN: return model_has_fill(d) && !d->fill_plain;
    case SLOT_FILL_NORM_SHIFT: return model_has_fill(d) && !d->fill_plain && d->norm_centred;
    case SLOT_FILL_OUT: return model_has_fill(d) && !d->fill_tied;
    case SLOT_FILL_OUT_BIAS: return model_has_fill(d) && !d->fill_unbiased;
    case SLOT_LOGITS: return d->head == LOCUS_MODEL_GENERATE && !d->tied && !d->fill_next;
    case SLOT_LOGITS_BIAS: return 0; /* where the checkpoint has one */
    case SLOT_NARROW: return d->narrows;
    case SLOT_NARROW_BIAS: return 0;
    case SLOT_FINAL_NORM_GAIN: return d->final_norm;
    case SLOT_FINAL_NORM_SHIFT: return d->final_norm && has_shifts(d);
    case SLOT_K_BIAS: return d->biases && !d->attention_unbiased && !is_fused(d);
    case SLOT_Q_BIAS:
    case SLOT_V_BIAS: return d->biases && !d->attention_unbiased && !d->fused_biases;
    case SLOT_O_BIAS: return d->biases && !d->attention_unbiased;
    case SLOT_CROSS_Q:
    case SLOT_CROSS_K:
    case SLOT_CROSS_V:
    case SLOT_CROSS_O:
    case SLOT_CROSS_NORM_GAIN: return d->cross;
    case SLOT_CROSS_Q_BIAS:
    case SLOT_CROSS_K_BIAS:
    case SLOT_CROSS_V_BIAS:
    case SLOT_CROSS_O_BIAS: return d->cross && d->biases;
    case SLOT_CROSS_NORM_SHIFT: return d->cross && has_shifts(d);
    case SLOT_IN_BIAS:
    case SLOT_OUT_BIAS: return d->biases;
    case SLOT_DISTANCE_VALUE: return d->window > 0;
    case SLOT_FIRST_NORM_GAIN:
    case SLOT_FIRST_NORM_SHIFT:
    case SLOT_FIRST_IN:
    case SLOT_FIRST_IN_BIAS:
    case SLOT_FIRST_OUT:
    case SLOT_FIRST_OUT_BIAS:
    case SLOT_GLU_NORM_GAIN:
    case SLOT_GLU_NORM_SHIFT:
    case SLOT_GLU:
    case SLOT_DEPTH:
    case SLOT_DEPTH_NORM_GAIN:
    case SLOT_DEPTH_NORM_SHIFT:
    case SLOT_DEPTH_OUT:
    case SLOT_LAST_NORM_GAIN:
    case SLOT_LAST_NORM_SHIFT: return d->conformer;
    case SLOT_DEPTH_OUT_BIAS: return 0;
    case SLOT_DEPTH_MEAN:
    case SLOT_DEPTH_VARIANCE: return d->depth_batch_norm;
    case SLOT_DISTANCE: return d->relative_rows > 0 && !d->to_position && !d->from_position;
    case SLOT_RELATIVE_K: return d->distances || (d->to_position && !d->relative_shared);
    case SLOT_RELATIVE_K_BIAS:
        return d->to_position && !d->relative_shared && !d->fused_heads && d->biases;
    case SLOT_RELATIVE_Q: return d->from_position && !d->relative_shared;
    case SLOT_RELATIVE_Q_BIAS: return d->from_position && !d->relative_shared && d->biases;
    case SLOT_TABLE_0:
    case SLOT_TABLE_1:
    case SLOT_TABLE_2:
    case SLOT_TABLE_3:
    case SLOT_TABLE_4:
    case SLOT_TABLE_5: return table_of(d, slot) != NULL;
    case SLOT_ATTENTION_NORM_SHIFT:
    case SLOT_FORWARD_NORM_SHIFT: return has_shifts(d);
    case SLOT_GATE: return d->gated;
    default: return 1;
    }
}

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
    const model_table *table = table_of(c->description, slot);
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

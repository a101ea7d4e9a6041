/* SPDX-License-Identifier: Apache-2.0 */
#include "io/sources.h"

#include <string.h>

#include "core/error.h"
#include "core/half.h"
#include "core/memory.h"
#include "core/size.h"
#include "io/bytes.h"
#include "io/dtype.h"
#include "io/system.h"

/* ---- adding ---- */

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the header");
}

static int is_dense(const locus_file_tensor *t, const uint64_t *strides)
{
    uint64_t step = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (t->shape[i] != 1 && strides[i] != step) return 0;
        step *= t->shape[i];
    }
    return 1;
}

static locus_status judge(const locus_file *file, const locus_file_tensor *t, uint64_t *bytes,
                          locus_error *error)
{
    const char *fault = locus_file_name_fault(t->name, strlen(t->name));
    if (fault == NULL && locus_names_find(&file->tensor_names, t->name) != LOCUS_NAMES_NONE)
        fault = "found the name twice, expected once";
    if (fault == NULL && file->tensors.count == LOCUS_FILE_MAX_TENSORS)
        fault = "found one more, expected at most 1000000";
    if (fault != NULL) return locus_fail(error, LOCUS_ERR_FORMAT, "%s", fault);
    const locus_file_dtype *dtype = locus_file_dtype_find(t->dtype);
    return locus_file_dtype_bytes(bytes, dtype, t->rank, t->shape, error);
}

static locus_status store(locus_file *file, const locus_file_tensor *t, uint64_t bytes,
                          const locus_file_source *s, locus_error *error)
{
    const size_t extents = t->rank * sizeof(uint64_t);
    const uint64_t begin =
        file->tensors.count == 0
            ? 0
            : ((locus_file_tensor *)locus_list_at(&file->tensors, file->tensors.count - 1))->end;
    const char *name = locus_arena_copy(&file->arena, t->name, strlen(t->name));
    uint64_t *kept = locus_arena_take(&file->arena, 2 * extents, sizeof *kept);
    locus_file_source *source = locus_list_push(&file->sources, file->allocator);
    if (name == NULL || kept == NULL || source == NULL) return no_memory(error);
    if (extents > 0) memcpy(kept, t->shape, extents);
    *source = *s;
    if (s->strides != NULL && is_dense(t, s->strides)) source->strides = NULL;
    if (source->strides != NULL) {
        memcpy(kept + t->rank, s->strides, extents);
        source->strides = kept + t->rank;
    }
    locus_file_tensor *tensor = locus_list_push(&file->tensors, file->allocator);
    if (tensor == NULL) return no_memory(error);
    *tensor = *t;
    tensor->name = name;
    tensor->shape = kept;
    tensor->begin = begin;
    if (!locus_add_u64(&tensor->end, begin, bytes))
        return locus_fail(error, LOCUS_ERR_FORMAT, "found more than 2^64 bytes, expected fewer");
    return locus_names_add(&file->tensor_names, file->allocator) ? LOCUS_OK : no_memory(error);
}

locus_status locus_file_add(locus_file *file, const locus_file_tensor *tensor,
                            const locus_file_source *source, locus_error *error)
{
    char name[LOCUS_FILE_NAME_TEXT];
    uint64_t bytes = 0;
    locus_status status = judge(file, tensor, &bytes, error);
    if (status == LOCUS_OK) status = store(file, tensor, bytes, source, error);
    if (status == LOCUS_OK) return LOCUS_OK;
    locus_escape(name, sizeof name, tensor->name, strlen(tensor->name));
    return locus_fail_in(error, status, name);
}

locus_status locus_file_add_metadata(locus_file *file, const char *key, const char *value,
                                     locus_error *error)
{
    char name[LOCUS_FILE_NAME_TEXT];
    const size_t key_bytes = strlen(key) + 1, value_bytes = strlen(value) + 1;
    const char *fault = locus_file_name_fault(key, key_bytes - 1);
    if (fault == NULL && locus_names_find(&file->metadata_names, key) != LOCUS_NAMES_NONE)
        fault = "found the key twice, expected once";
    if (fault == NULL && file->metadata.count == LOCUS_FILE_MAX_METADATA)
        fault = "found one more key, expected at most 1000000";
    if (fault != NULL)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: %s",
                          locus_escape(name, sizeof name, key, key_bytes - 1), fault);
    char *pair = locus_arena_take(&file->arena, key_bytes + value_bytes, 1);
    if (pair == NULL) return no_memory(error);
    memcpy(pair, key, key_bytes);
    memcpy(pair + key_bytes, value, value_bytes);
    locus_file_entry *entry = locus_list_push(&file->metadata, file->allocator);
    if (entry == NULL) return no_memory(error);
    entry->key = pair;
    return locus_names_add(&file->metadata_names, file->allocator) ? LOCUS_OK : no_memory(error);
}

/* ---- reading ---- */

enum { BLOCKS = 64 }; /* read at a time */

typedef struct reading {
    const locus_file *file;
    const locus_file_tensor *tensor;
    const locus_file_source *source;
    uint64_t word; /* bytes of a number */
    locus_error *error;
} reading;

/* w = scale * q, which F32 holds exactly: 11 and 8 bits. */
static void decode_q8_0(unsigned char *out, const unsigned char *block, uint64_t from, uint64_t to)
{
    const float scale = locus_f16_to_float((uint16_t)(block[0] | block[1] << 8));
    for (uint64_t i = from; i < to; i++, out += sizeof(float)) {
        const float number = scale * (float)(int8_t)block[2 + i];
        memcpy(out, &number, sizeof number);
        locus_swap_words(out, sizeof number, sizeof number);
    }
}

/* Numbers [number, number + count) as they lie in the file. */
static locus_status read_q8_0(const reading *r, uint64_t number, uint64_t count, unsigned char *out)
{
    unsigned char blocks[BLOCKS * LOCUS_Q8_0_BYTES];
    const uint64_t end = number + count;
    while (number < end) {
        const uint64_t block = number / LOCUS_Q8_0_NUMBERS;
        const uint64_t left = (end - 1) / LOCUS_Q8_0_NUMBERS + 1 - block;
        const size_t some = left < BLOCKS ? (size_t)left : BLOCKS;
        LOCUS_TRY(locus_system_read(r->file->descriptor, r->source->at + block * LOCUS_Q8_0_BYTES,
                                    blocks, some * LOCUS_Q8_0_BYTES, r->error));
        for (size_t i = 0; i < some; i++) {
            const uint64_t base = (block + i) * LOCUS_Q8_0_NUMBERS;
            const uint64_t until =
                end - base < LOCUS_Q8_0_NUMBERS ? end - base : LOCUS_Q8_0_NUMBERS;
            decode_q8_0(out, blocks + i * LOCUS_Q8_0_BYTES, number - base, until);
            out += (base + until - number) * sizeof(float);
            number = base + until;
        }
    }
    return LOCUS_OK;
}

static locus_status read_run(const reading *r, uint64_t number, uint64_t count, unsigned char *out)
{
    if (r->source->is_q8_0) return read_q8_0(r, number, count, out);
    return locus_system_read(r->file->descriptor, r->source->at + number * r->word, out,
                             (size_t)(count * r->word), r->error);
}

/* The number at `element` of the tensor's own order. */
static uint64_t number_at(const reading *r, uint64_t element)
{
    uint64_t number = r->source->first;
    for (uint32_t i = r->tensor->rank; i-- > 0;) {
        number += element % r->tensor->shape[i] * r->source->strides[i];
        element /= r->tensor->shape[i];
    }
    return number;
}

/* Rows that lie in one piece each. */
static locus_status read_rows(const reading *r, uint64_t element, uint64_t count,
                              unsigned char *out)
{
    const uint64_t row = r->tensor->shape[r->tensor->rank - 1];
    while (count > 0) {
        const uint64_t left = row - element % row, some = left < count ? left : count;
        LOCUS_TRY(read_run(r, number_at(r, element), some, out));
        out += some * r->word;
        element += some;
        count -= some;
    }
    return LOCUS_OK;
}

/* A transposed view: everything between its first and its last number, then one by one. */
static locus_status read_scattered(const reading *r, uint64_t element, uint64_t count,
                                   unsigned char *out)
{
    const locus_file_tensor *t = r->tensor;
    uint64_t span = 1;
    size_t bytes = 0;
    for (uint32_t i = 0; i < t->rank; i++) span += (t->shape[i] - 1) * r->source->strides[i];
    unsigned char *all =
        locus_to_size(&bytes, span * r->word) ? locus_allocate(r->file->allocator, bytes, 1) : NULL;
    if (all == NULL)
        return locus_fail(r->error, LOCUS_ERR_MEMORY, "no memory to turn a view round");
    const locus_status status = read_run(r, r->source->first, span, all);
    for (uint64_t i = 0; status == LOCUS_OK && i < count; i++, out += r->word)
        memcpy(out, all + (number_at(r, element + i) - r->source->first) * r->word,
               (size_t)r->word);
    locus_release(r->file->allocator, all);
    return status;
}

locus_status locus_source_read(const locus_file *file, size_t index, uint64_t from, size_t count,
                               void *out, locus_error *error)
{
    const locus_file_tensor *t = locus_list_at(&file->tensors, index);
    const locus_file_source *s = locus_list_at(&file->sources, index);
    const reading r = {file, t, s, t->bits / 8, error};
    if (count == 0) return LOCUS_OK;
    if (s->strides == NULL && !s->is_q8_0)
        return locus_system_read(file->descriptor, s->at + s->first * r.word + from, out, count,
                                 error);
    if (from % r.word != 0 || count % r.word != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "found a part of a number, expected whole ones");
    if (s->strides == NULL) return read_run(&r, s->first + from / r.word, count / r.word, out);
    if (s->is_q8_0 || s->strides[t->rank - 1] == 1)
        return read_rows(&r, from / r.word, count / r.word, out);
    return read_scattered(&r, from / r.word, count / r.word, out);
}

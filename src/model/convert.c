/* SPDX-License-Identifier: Apache-2.0 */
#include <locus/model.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "io/tensorfile.h"
#include "model/integers.h"
#include "model/ops/ops.h"

/* A program in integers to a file. What is written stays in memory until the file is whole. */

typedef struct conversion {
    const program *p;
    locus_file_writer *to;
    locus_arena arena;
    char *wanted, *written; /* of values; written: 1 as a map, 2 as a table */
    locus_error *error;
} conversion;

static locus_status no_memory(const conversion *c)
{
    return locus_fail(c->error, LOCUS_ERR_MEMORY, "model: out of memory for its integers");
}

static void *room(conversion *c, uint64_t count, uint64_t each)
{
    uint64_t bytes = 0;
    size_t size = 0;
    if (!locus_product_u64(&bytes, (const uint64_t[]){count, each}, 2) ||
        !locus_to_size(&size, bytes))
        return NULL;
    return locus_arena_take(&c->arena, size + 1, 16);
}

/* As the checkpoint has it, or its shape behind a 0 and no numbers. */
static locus_status write_tensor(conversion *c, const store_tensor *t)
{
    const locus_file_tensor *from = t->place.tensor;
    const uint64_t bytes = from->end - from->begin;
    uint64_t shape[LOCUS_FILE_MAX_RANK] = {0};
    if (t->place.file >= c->p->checkpoint->own_count) return LOCUS_OK;
    if (!c->wanted[root_of(c->p, t->of)] && from->rank < LOCUS_FILE_MAX_RANK) {
        memcpy(shape + 1, from->shape, from->rank * sizeof *shape);
        return locus_file_put(c->to, from->name, from->dtype, from->rank + 1, shape, "", c->error);
    }
    void *data = room(c, bytes, 1);
    if (data == NULL) return no_memory(c);
    LOCUS_TRY(locus_file_read(c->p->checkpoint->files[t->place.file], t->place.index, 0, bytes,
                              data, c->error));
    return locus_file_put(c->to, from->name, from->dtype, from->rank, from->shape, data, c->error);
}

static locus_status write_integers(conversion *c, const op *o, int input)
{
    const value_info *v = &c->p->values[o->in[input]];
    const int words = o->kind == &op_embed, bit = words ? 2 : 1;
    stored_integers s;
    if ((words ? v->words == NULL : v->quantized == NULL) ||
        (c->written[o->in[input]] & bit) != 0 || !integers_describe(c->p, o, input, &s))
        return LOCUS_OK;
    c->written[o->in[input]] |= (char)bit;
    const void *integers = words ? v->words->integers : NULL;
    const float *scales = words ? v->words->scales : NULL;
    if (!words) {
        void *rows = room(c, s.rows * s.columns, (uint64_t)locus_quantized_stored_bytes(s.kind));
        float *each = room(c, s.rows * s.groups, sizeof *each);
        if (rows == NULL || each == NULL) return no_memory(c);
        locus_quantized_to(v->quantized, rows, each);
        integers = rows;
        scales = each;
    }
    LOCUS_TRY(locus_file_put(c->to, s.integers, s.dtype, 2, (const uint64_t[]){s.rows, s.columns},
                             integers, c->error));
    return locus_file_put(c->to, s.scales, "F32", 2, (const uint64_t[]){s.rows, s.groups}, scales,
                          c->error);
}

static locus_status write_all(conversion *c)
{
    const program *p = c->p;
    char said[32];
    snprintf(said, sizeof said, "1 %s", locus_precision_name(p->precision));
    LOCUS_TRY(locus_file_put_metadata(c->to, INTEGERS_KEY, said, c->error));
    integers_wanted(p, c->wanted);
    for (int t = 0; t < p->tensor_count; t++) LOCUS_TRY(write_tensor(c, &p->tensors[t]));
    for (int i = 0; i < p->op_count; i++)
        for (int k = 0; k < OP_INPUTS; k++)
            if (p->ops[i].in[k] != NONE) LOCUS_TRY(write_integers(c, &p->ops[i], k));
    return LOCUS_OK;
}

locus_status integers_write(const program *p, const char *path, locus_error *error)
{
    conversion c = {.p = p, .arena = {.allocator = p->allocator}, .error = error};
    LOCUS_TRY(locus_file_create(&c.to, path, p->allocator, error));
    c.wanted = room(&c, (uint64_t)p->value_count, 1);
    c.written = room(&c, (uint64_t)p->value_count, 1);
    locus_status status = c.wanted != NULL && c.written != NULL ? write_all(&c) : no_memory(&c);
    if (status == LOCUS_OK)
        status = locus_file_commit(c.to, error);
    else
        locus_file_abandon(c.to);
    locus_arena_clear(&c.arena);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "model/integers.h"
#include "model/ops/ops.h"
#include "model/precision.h"
#include "model/run.h"

/* Tensors are read when the first operator asks for them, and go with the last one unless passes read
 * them, too: at no time is much more in memory than stays there. */

typedef struct loader {
    program *p;
    run r;
    int32_t *uses; /* of every value without base: operators that read it now  */
    char *stays;   /* 1: operators of a pass read it as it is                  */
    char *wanted;  /* 1: some operator reads it as floats                      */
    locus_error *error;
} loader;

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory for the weights");
}

/* ---- memory ---- */

static locus_status take(program *p, uint64_t bytes, void **to, locus_error *error)
{
    size_t size = 0;
    *to = locus_to_size(&size, bytes) ? locus_allocate(p->allocator, 1, size) : NULL;
    if (*to == NULL) return no_memory(error);
    p->bytes += bytes;
    return LOCUS_OK;
}

static locus_status take_value(program *p, value v, locus_error *error)
{
    value_info *i = &p->values[v];
    const uint64_t extents[] = {(uint64_t)i->count, (uint64_t)i->width, sizeof(float)};
    uint64_t bytes = 0;
    void *data = NULL;
    if (i->data != NULL) return LOCUS_OK;
    if (!locus_product_u64(&bytes, extents, 3)) return no_memory(error);
    LOCUS_TRY(take(p, bytes, &data, error));
    i->data = data;
    return LOCUS_OK;
}

int program_trains(const program *p, const float *data)
{
    return p->trained != NULL && (uintptr_t)data >= (uintptr_t)p->trained &&
           (uintptr_t)data < (uintptr_t)(p->trained + p->trained_count);
}

static void drop_value(program *p, value v)
{
    value_info *i = &p->values[v];
    if (i->data == NULL || program_trains(p, i->data)) return;
    p->bytes -= (uint64_t)(i->count * i->width) * sizeof(float);
    locus_release(p->allocator, i->data);
    i->data = NULL;
}

void program_unload(program *p)
{
    for (value v = 0; v < p->value_count; v++) {
        if (p->values[v].base == NONE && p->values[v].data != NULL &&
            !program_trains(p, p->values[v].data))
            locus_release(p->allocator, p->values[v].data);
        locus_release(p->allocator, p->values[v].packed);
        locus_release(p->allocator, p->values[v].quantized);
        locus_release(p->allocator, p->values[v].words);
        p->values[v].data = NULL;
        p->values[v].packed = NULL;
        p->values[v].quantized = NULL;
        p->values[v].words = NULL;
    }
    locus_release(p->allocator, p->trained);
    p->trained = NULL;
}

/* Where a constant lies: in that of which it is rows. */
static float *data_of(const program *p, value v)
{
    int64_t at = 0;
    for (; p->values[v].base != NONE; v = p->values[v].base)
        at += p->values[v].first_row * p->values[v].width;
    return p->values[v].data != NULL ? p->values[v].data + at : NULL;
}

/* ---- tensors ---- */

static locus_status read_tensor(loader *l, value v)
{
    const store_tensor *t = &l->p->tensors[l->p->values[v].parameter];
    return model_checkpoint_values(l->p->checkpoint, &t->place, data_of(l->p, v),
                                   (uint64_t)t->count, l->error);
}

/* A value without base, and all tensors in it. */
static locus_status provide(loader *l, value root)
{
    program *p = l->p;
    const value_info *i = &p->values[root];
    if (i->data != NULL) return LOCUS_OK;
    if (i->parameter != NONE) LOCUS_TRY(integers_floats(p, i->parameter, l->error));
    for (value v = i->part; v != NONE; v = p->values[v].next)
        if (p->values[v].parameter != NONE)
            LOCUS_TRY(integers_floats(p, p->values[v].parameter, l->error));
    LOCUS_TRY(take_value(p, root, l->error));
    if (i->parameter != NONE) return read_tensor(l, root);
    for (value v = i->part; v != NONE; v = p->values[v].next)
        if (p->values[v].parameter != NONE) LOCUS_TRY(read_tensor(l, v));
    return LOCUS_OK;
}

/* Where every tensor of a model that is trained lies, in the order in which they were asked for. */
static locus_status place_trained(loader *l)
{
    program *p = l->p;
    int64_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (int t = 0; t < p->tensor_count; t++) {
            const value root = root_of(p, p->tensors[t].of);
            value_info *i = &p->values[root];
            if (p->tensors[t].fixed || (pass == 1 && i->data != NULL) ||
                (pass == 0 && i->part != NONE && i->part != p->tensors[t].of))
                continue;
            if (pass == 1) i->data = p->trained + count;
            count += i->count * i->width;
        }
        if (pass == 1) break;
        p->trained = locus_allocate(p->allocator, (size_t)count, sizeof(float));
        if (p->trained == NULL) return no_memory(l->error);
        p->trained_count = count;
    }
    p->bytes += (uint64_t)count * sizeof(float);
    return LOCUS_OK;
}

static locus_status check_ranks(loader *l)
{
    program *p = l->p;
    for (int t = 0; t < p->tensor_count; t++) {
        const locus_file_tensor *stored = p->tensors[t].place.tensor;
        if (p->tensors[t].fixed) continue;
        if (stored->rank > LOCUS_MAX_RANK)
            return locus_fail(l->error, LOCUS_ERR_FORMAT,
                              "tensor %s: found %u axes, expected at most %d to train it",
                              stored->name, (unsigned)stored->rank, LOCUS_MAX_RANK);
        p->trained_tensors++;
    }
    return LOCUS_OK;
}

static locus_status read_trained(loader *l)
{
    program *p = l->p;
    LOCUS_TRY(check_ranks(l));
    LOCUS_TRY(place_trained(l));
    for (int t = 0; t < p->tensor_count; t++) {
        const value v = p->tensors[t].of;
        if (p->tensors[t].fixed) {
            LOCUS_TRY(provide(l, v));
            continue;
        }
        LOCUS_TRY(read_tensor(l, v));
        p->tensors[t].at = data_of(p, v) - p->trained;
    }
    return LOCUS_OK;
}

/* ---- weights of products ---- */

static int is_packed(const program *p, const op *o, int input)
{
    return (input == 1 && (o->kind == &op_map || o->kind == &op_convolve)) ||
           precision_of(p, o, input) != LOCUS_QUANT_KINDS;
}

/* The tensor of a constant that has one. */
static locus_tensor matrix_of(const program *p, value v)
{
    const value_info *i = &p->values[v];
    return locus_view(data_of(p, v), LOCUS_F32, 2, (const int64_t[]){i->count, i->width});
}

/* The handle lies in front of what it points to. */
static locus_status quantize_map(loader *l, value_info *w, const locus_tensor *weight,
                                 locus_quant_kind kind)
{
    uint64_t bytes = 0;
    void *memory = NULL;
    if (!locus_quantized_bytes(&bytes, kind, w->width, w->count)) return no_memory(l->error);
    LOCUS_TRY(take(l->p, bytes + LOCUS_ALIGNMENT, &memory, l->error));
    w->quantized = memory;
    *w->quantized = locus_quantize_weight(l->p->integers, kind, weight,
                                          (char *)memory + LOCUS_ALIGNMENT, l->p->workers.threads);
    return LOCUS_OK;
}

static locus_status quantize_words(loader *l, value_info *w, const locus_tensor *table,
                                   locus_quant_kind kind)
{
    uint64_t bytes = 0;
    void *memory = NULL;
    if (!locus_quantized_table_bytes(&bytes, kind, w->count, w->width)) return no_memory(l->error);
    LOCUS_TRY(take(l->p, bytes + LOCUS_ALIGNMENT, &memory, l->error));
    w->words = memory;
    *w->words =
        locus_quantize_table(kind, table, (char *)memory + LOCUS_ALIGNMENT, l->p->workers.threads);
    return LOCUS_OK;
}

static locus_status pack_map(loader *l, const op *o)
{
    value_info *w = &l->p->values[o->in[1]];
    const locus_tensor weight = matrix_of(l->p, o->in[1]);
    const locus_quant_kind kind = precision_of(l->p, o, 1);
    uint64_t bytes = 0;
    void *memory = NULL;
    if (kind != LOCUS_QUANT_KINDS && locus_quantizes(&weight))
        return quantize_map(l, w, &weight, kind);
    if (!locus_packed_bytes(&bytes, w->width, w->count)) return no_memory(l->error);
    LOCUS_TRY(take(l->p, bytes + LOCUS_ALIGNMENT, &memory, l->error));
    w->packed = memory;
    *w->packed = locus_pack_weight(l->p->workers.kernels, &weight, (char *)memory + LOCUS_ALIGNMENT,
                                   l->p->workers.threads);
    return LOCUS_OK;
}

static locus_status pack_convolution(loader *l, const op *o)
{
    const locus_convolution f = convolution_of(l->p, o, data_of(l->p, o->in[1]));
    value_info *w = &l->p->values[o->in[1]];
    const uint64_t head = ((uint64_t)f.groups * sizeof(locus_packed) + LOCUS_ALIGNMENT - 1) /
                          LOCUS_ALIGNMENT * LOCUS_ALIGNMENT;
    uint64_t bytes = 0, all = 0;
    void *memory = NULL;
    if (!locus_convolution_packed_bytes(&bytes, &f) ||
        !locus_pad_u64(&bytes, bytes, LOCUS_ALIGNMENT) ||
        !locus_product_u64(&all, (const uint64_t[]){bytes, (uint64_t)f.groups}, 2))
        return no_memory(l->error);
    LOCUS_TRY(take(l->p, head + all, &memory, l->error));
    w->packed = memory;
    for (int64_t g = 0; g < f.groups; g++)
        w->packed[g] = locus_convolution_pack(&f, g, (char *)memory + head + (uint64_t)g * bytes);
    return LOCUS_OK;
}

/* The words that an embedding gathers. What cannot be quantized stays as it is. */
static locus_status pack_words(loader *l, const op *o)
{
    for (int k = 0; k < OP_INPUTS; k++) {
        const locus_quant_kind kind = precision_of(l->p, o, k);
        if (kind == LOCUS_QUANT_KINDS || precision_packed(l->p, o, k)) continue;
        const locus_tensor table = matrix_of(l->p, o->in[k]);
        if (locus_quantizes(&table))
            LOCUS_TRY(quantize_words(l, &l->p->values[o->in[k]], &table, kind));
        else
            l->stays[root_of(l->p, o->in[k])] = 1;
    }
    return LOCUS_OK;
}

/* What passes read in another form. */
static locus_status pack(loader *l, const op *o)
{
    if (o->kind == &op_embed) return pack_words(l, o);
    if ((o->kind != &op_map && o->kind != &op_convolve) || precision_packed(l->p, o, 1))
        return LOCUS_OK;
    return o->kind == &op_map ? pack_map(l, o) : pack_convolution(l, o);
}

/* ---- operators ---- */

static void count_uses(loader *l)
{
    const program *p = l->p;
    for (int i = 0; i < p->op_count; i++)
        for (int k = 0; k < OP_INPUTS; k++) {
            const op *o = &p->ops[i];
            if (o->in[k] == NONE || !p->values[o->in[k]].constant) continue;
            const value root = root_of(p, o->in[k]);
            l->uses[root]++;
            if (p->trains || (!p->values[o->out].constant && !is_packed(p, o, k)))
                l->stays[root] = 1;
        }
}

static void release(loader *l, value v)
{
    const value root = root_of(l->p, v);
    if (--l->uses[root] == 0 && !l->stays[root]) drop_value(l->p, root);
}

/* Integers that the checkpoint has, in place of a weight or a table. */
static locus_status read_words(loader *l, value_info *w, const stored_integers *s)
{
    uint64_t bytes = 0;
    void *memory = NULL, *integers = NULL;
    float *scales = NULL;
    if (!locus_quantized_table_bytes(&bytes, s->kind, w->count, w->width))
        return no_memory(l->error);
    LOCUS_TRY(take(l->p, bytes + LOCUS_ALIGNMENT, &memory, l->error));
    w->words = memory;
    *w->words = locus_quantized_table_in(s->kind, w->count, w->width,
                                         (char *)memory + LOCUS_ALIGNMENT, &integers, &scales);
    return integers_read(l->p, s, integers, scales, l->error);
}

static locus_status read_map(loader *l, value_info *w, const stored_integers *s)
{
    const locus_allocator *a = l->p->allocator;
    const size_t each = (size_t)locus_quantized_stored_bytes(s->kind);
    uint64_t bytes = 0;
    void *memory = NULL;
    if (!locus_quantized_bytes(&bytes, s->kind, w->width, w->count)) return no_memory(l->error);
    void *integers = locus_allocate(a, (size_t)(s->rows * s->columns), each);
    float *scales = locus_allocate(a, (size_t)(s->rows * s->groups), sizeof *scales);
    locus_status status = integers != NULL && scales != NULL
                              ? integers_read(l->p, s, integers, scales, l->error)
                              : no_memory(l->error);
    if (status == LOCUS_OK) status = take(l->p, bytes + LOCUS_ALIGNMENT, &memory, l->error);
    if (status == LOCUS_OK) {
        w->quantized = memory;
        *w->quantized = locus_quantized_from(l->p->integers, s->kind, w->width, w->count, integers,
                                             scales, (char *)memory + LOCUS_ALIGNMENT);
    }
    locus_release(a, integers);
    locus_release(a, scales);
    return status;
}

static locus_status read_integers(loader *l, const op *o, int input)
{
    value_info *w = &l->p->values[o->in[input]];
    stored_integers s;
    (void)integers_describe(l->p, o, input, &s); /* it has some: integers_stored */
    LOCUS_TRY(integers_check(l->p, &s, l->error));
    return o->kind == &op_embed ? read_words(l, w, &s) : read_map(l, w, &s);
}

static void release_inputs(loader *l, const op *o)
{
    for (int k = 0; k < OP_INPUTS; k++)
        if (o->in[k] != NONE && l->p->values[o->in[k]].constant) release(l, o->in[k]);
}

/* What operator o needs of constants, and what it is if it is one that is needed. */
static locus_status settle(loader *l, const op *o)
{
    program *p = l->p;
    const int skipped = p->values[o->out].constant && !l->wanted[root_of(p, o->out)];
    for (int k = 0; !skipped && k < OP_INPUTS; k++) {
        if (o->in[k] == NONE || !p->values[o->in[k]].constant) continue;
        if (is_packed(p, o, k) && precision_packed(p, o, k)) continue;
        if (integers_stored(p, o, k)) {
            LOCUS_TRY(read_integers(l, o, k));
            continue;
        }
        LOCUS_TRY(provide(l, root_of(p, o->in[k])));
        l->r.at[o->in[k]] = data_of(p, o->in[k]);
    }
    if (skipped) {
        release_inputs(l, o);
        return LOCUS_OK;
    }
    if (p->values[o->out].constant) {
        LOCUS_TRY(take_value(p, root_of(p, o->out), l->error));
        l->r.at[o->out] = data_of(p, o->out);
        LOCUS_TRY(o->kind->forward(&l->r, o));
    } else if (!p->trains)
        LOCUS_TRY(pack(l, o));
    release_inputs(l, o);
    return LOCUS_OK;
}

/* ---- all of it ---- */

/* Products, or a row of doubles. */
static uint64_t room_of(const program *p)
{
    uint64_t bytes = locus_linear_workspace(&p->linear);
    for (int i = 0; i < p->op_count; i++) {
        const uint64_t row = (uint64_t)p->values[p->ops[i].out].width * sizeof(double);
        if (p->ops[i].kind == &op_sinusoid && row > bytes) bytes = row;
    }
    return bytes;
}

static locus_status begin(loader *l, program *p, locus_error *error)
{
    const size_t count = (size_t)p->value_count + 1;
    *l = (loader){.p = p, .r = {.p = p, .error = error}, .error = error};
    l->r.at = locus_allocate(p->allocator, count, sizeof *l->r.at);
    l->r.linear = locus_allocate(p->allocator, (size_t)room_of(p), 1);
    l->uses = locus_allocate(p->allocator, count, sizeof *l->uses);
    l->stays = locus_allocate(p->allocator, count, 1);
    l->wanted = locus_allocate(p->allocator, count, 1);
    return l->r.at != NULL && l->r.linear != NULL && l->uses != NULL && l->stays != NULL &&
                   l->wanted != NULL
               ? LOCUS_OK
               : no_memory(error);
}

static void end(loader *l)
{
    const locus_allocator *a = l->p->allocator;
    locus_release(a, l->r.at);
    locus_release(a, l->r.linear);
    locus_release(a, l->uses);
    locus_release(a, l->stays);
    locus_release(a, l->wanted);
}

locus_status program_load(program *p, locus_error *error)
{
    loader l;
    locus_status status = begin(&l, p, error);
    for (int t = 0; t < p->tensor_count; t++) p->parameters += p->tensors[t].count;
    if (status == LOCUS_OK) {
        count_uses(&l);
        integers_wanted(p, l.wanted);
    }
    if (status == LOCUS_OK && p->trains) status = read_trained(&l);
    for (int i = 0; status == LOCUS_OK && i < p->op_count; i++) status = settle(&l, &p->ops[i]);
    for (value v = 0; v < p->value_count; v++)
        if (p->values[v].base != NONE) p->values[v].data = data_of(p, v);
    end(&l);
    return status;
}

locus_status program_fold(program *p, locus_error *error)
{
    loader l;
    locus_status status = begin(&l, p, error);
    for (value v = 0; status == LOCUS_OK && v < p->value_count; v++) l.r.at[v] = p->values[v].data;
    for (int i = 0; status == LOCUS_OK && i < p->op_count; i++)
        if (p->values[p->ops[i].out].constant) status = p->ops[i].kind->forward(&l.r, &p->ops[i]);
    end(&l);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/error.h"
#include "core/memory.h"
#include "model/blocks.h"

/* From a description to a program: embeddings, layers, heads. */

/* ---- embeddings ---- */

/* Rows of numbers in place of tokens. */
static value take_features(builder *b)
{
    const model_description *d = b->d;
    b->p->features = build_given(b->p, TOKENS, d->features);
    const value x =
        slot_norm(b, b->p->features, SLOT_EMBEDDING_NORM_GAIN, 0, model_outer_epsilon(d));
    return slot_map(b, x, SLOT_EMBEDDING_MAP, 0, LOCUS_IDENTITY, NONE, NONE);
}

/* One part of a word table that is stored in parts of ever narrower rows, mapped to the width. */
static value cluster(builder *b, int64_t index, int64_t first)
{
    model_description own = *b->d;
    own.vocabulary = b->d->cluster_end[index] - first;
    own.embedding_width = b->d->cluster_width[index];
    b->c->description = &own;
    const value rows = slot_tensor(b, SLOT_WORD, index);
    const int mapped = own.embedding_width != own.width || slot_there(b, SLOT_EMBEDDING_MAP, index);
    const value to = mapped ? slot_tensor(b, SLOT_EMBEDDING_MAP, index) : NONE;
    b->c->description = b->d;
    return mapped ? build_map(b->p, rows, to, NONE, LOCUS_IDENTITY, NONE, NONE)
                  : build_divided(b->p, rows, 1.0f);
}

static value words_of(builder *b)
{
    value parts[MODEL_CLUSTERS];
    const model_description *d = b->d;
    if (d->shared_words) return b->word;
    if (d->clusters == 0) return slot_tensor(b, SLOT_WORD, 0);
    for (int64_t i = 0, first = 0; i < d->clusters; first = d->cluster_end[i++])
        parts[i] = cluster(b, i, first);
    return build_join(b->p, parts, (int)d->clusters);
}

static value positions_of(builder *b)
{
    const model_description *d = b->d;
    if (!d->sinusoidal) return slot_tensor(b, SLOT_POSITION, 0);
    if (slot_there(b, SLOT_POSITION, 0)) return slot_fixed(b, SLOT_POSITION, 0);
    return build_sinusoid(b->p, d->positions, d->embedding_width,
                          d->sinusoid_paired ? LOCUS_TABLE_PAPER : LOCUS_TABLE_HALF, -1);
}

static value embed(builder *b)
{
    static const picker late_by = BY_POSITIONS;
    const model_description *d = b->d;
    value tables[3], late = NONE;
    picker by[3] = {BY_IDS};
    int count = 1;
    if (d->features > 0) return take_features(b);
    const int mapped = slot_wanted(b, SLOT_EMBEDDING_MAP);
    tables[0] = b->word = words_of(b);
    if (slot_wanted(b, SLOT_TYPE)) {
        tables[count] = slot_tensor(b, SLOT_TYPE, 0);
        by[count++] = BY_TYPES;
    }
    if (d->positions > 0) {
        const value table = positions_of(b);
        if (mapped && d->late_positions)
            late = table;
        else {
            tables[count] = table;
            by[count++] = BY_POSITIONS;
        }
    }
    value x = build_embed(b->p, b->tokens, b->stack, tables, by, count, d->embedding_factor,
                          b->stack == 0);
    if (d->embedding_norm) x = slot_norm(b, x, SLOT_EMBEDDING_NORM_GAIN, 0, d->norm_epsilon);
    if (!mapped) return x;
    if (late != NONE) late = build_embed(b->p, b->tokens, b->stack, &late, &late_by, 1, 1.0, 0);
    return slot_map(b, x, SLOT_EMBEDDING_MAP, 0, LOCUS_IDENTITY, NONE, late);
}

/* ---- heads ---- */

/* Logits of all tokens of the vocabulary: norm(activation(map h)) word^T + bias, or h word^T + bias */
static value fill(builder *b, value h)
{
    const model_description *d = b->d;
    if (!d->fill_plain) {
        h = slot_map(b, h, SLOT_FILL_MAP, 0, d->fill_activation, NONE, NONE);
        h = slot_norm(b, h, SLOT_FILL_NORM_GAIN, 0, d->norm_epsilon);
    }
    if (!d->fill_tied) return slot_map(b, h, SLOT_FILL_OUT, 0, LOCUS_IDENTITY, NONE, NONE);
    const value bias =
        slot_wanted(b, SLOT_FILL_OUT_BIAS) ? slot_tensor(b, SLOT_FILL_OUT_BIAS, 0) : NONE;
    return build_map(b->p, h, b->word, bias, LOCUS_IDENTITY, NONE, NONE);
}

/* Logits of the token behind each state. */
static value continuation(builder *b, value h, int narrowed)
{
    const model_description *d = b->d;
    if (b->wiring->logits != NULL) return b->wiring->logits(b, h);
    if (d->fill_next) return fill(b, h);
    if (narrowed) h = slot_map(b, h, SLOT_NARROW, 0, LOCUS_IDENTITY, NONE, NONE);
    const value bias = d->logits_biased && slot_there(b, SLOT_LOGITS_BIAS, 0)
                           ? slot_fixed(b, SLOT_LOGITS_BIAS, 0)
                           : NONE;
    if (!d->tied)
        return build_map(b->p, h, slot_tensor(b, SLOT_LOGITS, 0), bias, LOCUS_IDENTITY, NONE, NONE);
    if (d->logits_scaled && b->scaled == NONE)
        b->scaled = build_divided(b->p, b->word, sqrtf((float)d->width));
    return build_map(b->p, h, d->logits_scaled ? b->scaled : b->word, bias, LOCUS_IDENTITY, NONE,
                     NONE);
}

static value label(builder *b, value h)
{
    if (b->d->head == LOCUS_MODEL_CLASSIFY) {
        const locus_pooling pooling = b->d->head_last ? LOCUS_POOL_LAST : LOCUS_POOL_FIRST;
        h = build_pool(b->p, h, &pooling, 1);
        if (slot_wanted(b, SLOT_HEAD_MAP))
            h = slot_map(b, h, SLOT_HEAD_MAP, 0, b->d->head_activation, NONE, NONE);
    }
    return slot_map(b, h, SLOT_HEAD_OUT, 0, LOCUS_IDENTITY, NONE, NONE);
}

/* h: the last states; last: as they are given away. */
static void add_head(builder *b, value h, value last)
{
    const model_description *d = b->d;
    value logits;
    if (d->head == LOCUS_MODEL_NO_HEAD) return;
    b->p->serves = SERVES_LOGITS;
    switch (d->head) {
    case LOCUS_MODEL_GENERATE: logits = continuation(b, last, 0); break;
    case LOCUS_MODEL_FILL: logits = fill(b, build_pick(b->p, ASKED, h, BY_ASKED)); break;
    default: logits = label(b, h);
    }
    (void)build_gift(b->p, logits, GIVES_LOGITS, b->stack, 0);
    if (d->head != LOCUS_MODEL_GENERATE) return;
    b->p->serves = SERVES_NEXT;
    const value next = continuation(b, build_pick(b->p, NEXT, h, BY_NEXT), d->narrows);
    (void)build_gift(b->p, next, GIVES_NEXT, b->stack, 0);
}

static value dense(builder *b, value one, const module_step *step)
{
    value weight = NONE, bias = NONE;
    model_place place;
    const uint64_t shape[] = {(uint64_t)step->outputs, (uint64_t)step->inputs};
    locus_status status = b->p->status;
    for (int biased = 0; status == LOCUS_OK && biased <= step->biased; biased++) {
        status = model_checkpoint_take(b->c, step->file, biased ? "linear.bias" : "linear.weight",
                                       shape, biased ? 1 : 2, &place, b->error);
        if (status != LOCUS_OK) break;
        *(biased ? &bias : &weight) =
            biased ? build_tensor(b->p, &place, 1, step->outputs, 0)
                   : build_tensor(b->p, &place, step->outputs, step->inputs, 0);
    }
    program_fail(b->p, status);
    if (weight == NONE) weight = build_absent(b->p, step->outputs, step->inputs);
    return build_map(b->p, one, weight, bias, step->activation, NONE, NONE);
}

/* One vector of a text. */
static void add_embedding(builder *b, value last)
{
    static const locus_pooling kinds[] = {
        [LOCUS_MODEL_POOL_CLS] = LOCUS_POOL_FIRST, [LOCUS_MODEL_POOL_MEAN] = LOCUS_POOL_MEAN,
        [LOCUS_MODEL_POOL_MAX] = LOCUS_POOL_MAX,   [LOCUS_MODEL_POOL_LAST] = LOCUS_POOL_LAST,
        [LOCUS_MODEL_POOL_ROOT] = LOCUS_POOL_ROOT, [LOCUS_MODEL_POOL_RISING] = LOCUS_POOL_RISING};
    const model_modules *m = &b->m->modules;
    locus_pooling poolings[MODULE_POOLINGS];
    for (int i = 0; i < m->pooling_count; i++) poolings[i] = kinds[m->poolings[i]];
    b->p->serves = SERVES_EMBEDDING;
    value one = build_pool(b->p, last, poolings, m->pooling_count);
    for (int i = 0; i < m->step_count; i++)
        one = m->steps[i].folder != NULL ? dense(b, one, &m->steps[i]) : build_unit(b->p, one);
    (void)build_gift(b->p, one, GIVES_EMBEDDING, b->stack, 0);
}

/* ---- stacks ---- */

static value (*block_of(const builder *b))(builder *, value, int64_t)
{
    return b->wiring->block != NULL ? b->wiring->block
           : b->d->conformer        ? block_conformer
           : b->d->norm_first       ? block_norm_before
                                    : block_norm_after;
}

static value layers(builder *b, value h)
{
    const model_description *d = b->d;
    /* a copy: what the convolution adds to the gradient of the embeddings comes last */
    const value first = d->taps > 0 ? build_activate(b->p, h, LOCUS_IDENTITY) : NONE;
    (b->wiring->begin != NULL ? b->wiring->begin : begin_tables)(b);
    for (int64_t l = 0; l < d->layers; l++) {
        h = block_of(b)(b, h, l);
        if (l == 0 && d->taps > 0) h = block_beside(b, h, first);
        if (l + 1 < d->layers) (void)build_gift(b->p, h, GIVES_HIDDEN, b->stack, l + 1);
    }
    if (b->wiring->end != NULL) return b->wiring->end(b, h);
    return d->final_norm ? slot_norm(b, h, SLOT_FINAL_NORM_GAIN, 0, model_outer_epsilon(d)) : h;
}

/* A model that is trained keeps all rows; a convolution sees the tokens beside each one. */
static int can_be_few(const builder *b)
{
    const model_description *d = b->d;
    return !b->p->trains && !d->conformer && !(d->taps > 0 && d->layers == 1) &&
           d->forward_taps <= 1 && (d->head == LOCUS_MODEL_GENERATE || d->head == LOCUS_MODEL_FILL);
}

static void add_stack(builder *b)
{
    const model_description *d = b->d;
    b->p->serves = SERVES_ALL;
    b->scaled = NONE;
    b->few = can_be_few(b);
    value h = b->wiring->embed != NULL ? b->wiring->embed(b) : embed(b), last;
    (void)build_gift(b->p, h, GIVES_HIDDEN, b->stack, 0);
    h = last = layers(b, h);
    if (d->narrows) {
        b->p->serves = SERVES_LAST | SERVES_LOGITS | SERVES_EMBEDDING;
        last = slot_map(b, h, SLOT_NARROW, 0, LOCUS_IDENTITY, NONE, NONE);
    }
    (void)build_gift(b->p, last, GIVES_HIDDEN, b->stack, d->layers);
    if (b->stack == 0) add_embedding(b, last);
    add_head(b, h, last);
    b->states = last;
}

/* ---- all of it ---- */

static locus_status take_numbers(builder *b, locus_error *error)
{
    program *p = b->p;
    const size_t files = b->c->file_count;
    p->tensor_of = locus_allocate(p->allocator, files, sizeof *p->tensor_of);
    int there = p->tensor_of != NULL;
    for (size_t f = 0; there && f < files; f++) {
        p->tensor_of[f] = locus_allocate(p->allocator, locus_file_count(b->c->files[f]) + 1,
                                         sizeof **p->tensor_of);
        there = p->tensor_of[f] != NULL;
    }
    return there ? LOCUS_OK : locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
}

static void drop_numbers(builder *b)
{
    program *p = b->p;
    for (size_t f = 0; p->tensor_of != NULL && f < b->c->file_count; f++)
        locus_release(p->allocator, p->tensor_of[f]);
    locus_release(p->allocator, p->tensor_of);
    p->tensor_of = NULL;
}

/* The decoder's tensors decide where config.json does not say whether there is one. */
static int has_stack(const builder *b)
{
    return !b->m->optional_decoder || slot_there(b, SLOT_FINAL_NORM_GAIN, 0) ||
           slot_there(b, SLOT_CROSS_Q, 0);
}

static void add_stacks(builder *b)
{
    static const model_wiring none = {.begin = NULL};
    locus_model *m = b->m;
    for (b->stack = 0; b->stack < m->stack_count; b->stack++) {
        b->d = b->c->description = &m->stacks[b->stack];
        b->c->family = b->stack == 0 ? m->family : m->family->decoder;
        b->wiring = b->c->family->wiring != NULL ? b->c->family->wiring : &none;
        b->tokens = b->stack == 0 ? TOKENS : TARGET;
        b->p->first_op[b->stack] = b->p->op_count;
        if (b->stack == 1 && !has_stack(b))
            m->stack_count = 1;
        else
            add_stack(b);
    }
    for (int s = m->stack_count; s < 3; s++) b->p->first_op[s] = b->p->op_count;
}

locus_status model_assemble(locus_model *m, model_checkpoint *c, locus_error *error)
{
    builder b = {.p = &m->program, .m = m, .c = c, .error = error};
    LOCUS_TRY(program_begin(b.p, m->allocator, error));
    b.p->checkpoint = c;
    locus_status status = take_numbers(&b, error);
    if (status == LOCUS_OK) {
        add_stacks(&b);
        status = b.p->status;
    }
    drop_numbers(&b);
    return status == LOCUS_OK ? program_lay_out(b.p, error) : status;
}

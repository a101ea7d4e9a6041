/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_MODEL_H
#define LOCUS_MODEL_MODEL_H

/* A model in memory: what its configuration says, and its program. */

#include <locus/generate.h>
#include <locus/model.h>

#include "model/description.h"
#include "model/lengths.h"
#include "model/modules.h"
#include "model/program.h"

struct locus_model {
    const locus_allocator *allocator;
    locus_workers workers;
    const model_family *family;
    model_description stacks[2]; /* of layers: an encoder or the only ones; a decoder behind it */
    int stack_count;
    int optional_decoder; /* 1: its tensors say whether there is one */
    program program;
    const char **labels;     /* [labels] */
    const char *unread_head; /* the class of a head that is not read; NULL */
    locus_arena texts;
    model_modules modules;
    locus_generation generation; /* as its files say */
    const char *convert_to;      /* a file that its integers go to, when it is opened; NULL */
    int64_t most_positions;      /* max_position_embeddings; 0: it does not say */
};

/* Floats of a token's q, k and v, and of its k and v alone. */
static inline int64_t model_kv_width(const model_description *d)
{
    return 2 * d->kv_heads * d->head_dim;
}
static inline int64_t model_qkv_width(const model_description *d)
{
    return d->heads * d->head_dim + model_kv_width(d);
}

/* The layers that continue a text: the decoder's, or the only ones. */
static inline const model_description *model_last_stack(const locus_model *m)
{
    return &m->stacks[m->stack_count - 1];
}

/* Floats of a token's last state: OPT may narrow it. */
static inline int64_t model_last_width(const locus_model *m)
{
    const model_description *d = &m->stacks[0];
    return d->narrows ? d->embedding_width : d->width;
}

/* Fill *info, whose size is set, about the layers of a stack. */
void model_describe_layers(const locus_model *model, int stack, locus_model_info *info);

/* A norm before the first layer or behind the last one. */
static inline double model_outer_epsilon(const model_description *d)
{
    return d->outer_epsilon > 0.0 ? d->outer_epsilon : d->norm_epsilon;
}

/* ---- attention.c ---- */

/* How the layers of a stack attend: to their own tokens, or to the encoder's states. */
locus_status model_attention(const locus_model *m, int stack, int cross, attention *a,
                             locus_error *error);

/* Turn by other frequencies than those of the description. */
locus_status model_attention_turn(const locus_model *m, const model_rope *rope, attention *a,
                                  locus_error *error);

/* How they attend to keys that are turned already. */
locus_status model_attend_turned(const attention *a, locus_config *config);

/* ---- rope.c ---- */

enum { MODEL_MOST_PAIRS = 512 }; /* head_dim of at most 1024 */

/* frequency[turned / 2] of a sequence of that many tokens. */
void model_rope_frequencies(const model_rope *rope, int64_t turned, int64_t tokens,
                            float *frequency);

/* 1: the frequencies of so many tokens are not those of a short text. */
static inline int model_rope_stretches(const model_rope *rope, int64_t tokens)
{
    return (rope->kind == MODEL_ROPE_DYNAMIC || rope->kind == MODEL_ROPE_LONG) &&
           tokens > rope->trained;
}

/* ---- assemble.c ---- */

/* The program of all stacks, its tensors found in the checkpoint, nothing read. */
locus_status model_assemble(locus_model *m, model_checkpoint *checkpoint, locus_error *error);

#endif

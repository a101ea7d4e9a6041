/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_MODEL_CALL_H
#define CLI_MODEL_CALL_H

/* One text through a trained model, with what attention was given in every layer. */

#include <locus/texts.h>

#include "cli.h"
#include "tokens.h"

/* Which of a model's attentions, on what. */
typedef struct model_choice {
    const char *command, *folder, *text;
    const char *tokenizer;   /* where it is; NULL: in the folder                        */
    const char *stack;       /* "encoder", "decoder", "cross"; NULL: of the first layers */
    const char *decoder_ids; /* NULL: what the model answers to the text                 */
    size_t most;             /* tokens of either side                                    */
} model_choice;

typedef struct model_call {
    const char *command, *folder;
    locus_model *model;
    uint32_t stack;        /* locus_model_stack */
    locus_model_info info; /* of the layers that are looked at */
    locus_tokenizer *tokenizer;
    locus_texts *texts;
    int32_t *decoder_ids; /* NULL: no decoder is looked at */
    int64_t decoder_count;
    int64_t tokens, keys; /* that ask, that are asked */
    const int32_t *types; /* of the tokens; NULL: all alike */
    float *numbers;       /* of all layers */
    float **q, **kv;      /* [layers]; kv: of attention to an encoder alone, else NULL */
} model_call;

/* 1 when `path` is a folder: a model, not a file. */
int model_call_is_folder(const char *path);

/* Names of --stack, NULL beyond the last; which one `name` is (NULL: the first), or an exit code. */
const char *model_stack_at(size_t index);
int model_stack_read(const char *command, const char *name, uint32_t *stack);

/* Open a model, and what `stack` of it is; an exit code. *model is the caller's in any case. */
int model_stack_describe(const char *command, const char *folder, locus_model **model,
                         uint32_t stack, locus_model_info *info);

/* Open and run; an exit code. There must be a token at least and choice->most of them at most. On
 * failure there is nothing to close. */
int model_call_open(model_call *call, const model_choice *choice);
void model_call_close(model_call *call);

/* 1: an encoder and a decoder, so that it has to be said which. */
int model_call_has_stacks(const model_call *call);

/* " decoder" and the like, for what is not the first layers; else "". */
const char *model_stack_note(const model_call *call);

/* One attention of it. */
locus_model_attended model_call_attended(const model_call *call, int64_t layer);

/* Which side of a pair. */
typedef enum model_side { MODEL_QUERIES, MODEL_KEYS } model_side;

/* The names of the tokens on a side. `short_names`: without the marks of word beginnings, for
 * pictures. */
int model_call_names(const model_call *call, model_side side, token_list *names, int short_names);

#endif

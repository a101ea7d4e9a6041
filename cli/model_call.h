/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_MODEL_CALL_H
#define CLI_MODEL_CALL_H

/* One text through a trained model, with what attention was given in every layer. */

#include <locus/texts.h>

#include "cli.h"
#include "tokens.h"

typedef struct model_call {
    const char *command, *folder;
    locus_model *model;
    locus_model_info info;
    locus_tokenizer *tokenizer;
    locus_texts *texts;
    int64_t tokens;
    float *numbers; /* of all layers */
    float **qkv;    /* [layers] */
} model_call;

/* 1 when `path` is a folder: a model, not a file. */
int model_call_is_folder(const char *path);

/* Open and run; an exit code. There must be a token at least and `most` of them at most. On failure
 * there is nothing to close. */
int model_call_open(model_call *call, const char *command, const char *folder, const char *text,
                    size_t most);
void model_call_close(model_call *call);

/* The names of the tokens. `short_names`: without the marks of word beginnings, for pictures. */
int model_call_names(const model_call *call, token_list *names, int short_names);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXT_CLASS_RULES_H
#define LOCUS_TEXT_CLASS_RULES_H

/* What transformers' tokenizer classes add to their vocabulary files, one line per class. */

#include "text/read.h"

typedef enum class_files {
    FILES_WORDPIECE,     /* vocab.txt                              */
    FILES_BYTE_BPE,      /* vocab.json, merges.txt                 */
    FILES_SENTENCEPIECE, /* one .model                             */
    FILES_MARIAN,        /* source.spm, target.spm, vocab.json     */
    FILES_BYTES,         /* none                                   */
    FILES_JSON,          /* tokenizer.json only                    */
    FILES_REFUSED,       /* its rules are another program's (jieba) */
} class_files;

typedef struct class_rules {
    const char *name; /* without "Fast" */
    class_files files;
    const char *parts[PART_COUNT];      /* bos, eos, unk, sep, pad, cls, mask */
    const char *single, *pair;          /* "c A s B:1 s:1"                    */
    int mask_lstrip, has_types, strips; /* strips: special tokens eat white space */
} class_rules;

const class_rules *locus_class_rules_find(const char *name, size_t bytes);
/* The class of a family, by the model_type of config.json. */
const class_rules *locus_class_rules_of_model(const char *model_type, size_t bytes);

/* The rules that hold for a folder: tokenizer_class goes before model_type. NULL: neither is
 * known; *named: what is there, or NULL. */
const class_rules *locus_class_rules_of(const read_files *f, const json_value **named);

/* Parts of words: "c A s" as items, by the first letters of the parts; '!' behind one: unless the
 * id before is the same. */
locus_status locus_class_template(const locus_tokenizer *t, const char *text, text_template *out,
                                  locus_error *error);

/* Special and added tokens of the class and the configuration, for a vocabulary that is read:
 * `find` tells the id of a token, TEXT_NO_ID: it gets the next one. */
locus_status
locus_class_added(const read_files *f, const class_rules *rules,
                  uint32_t (*find)(const locus_tokenizer *t, const char *text, size_t bytes),
                  size_t vocabulary);

/* read_class_spm.c: SentencePiece files by the rules of a class, or as they are; ByT5. */
locus_status locus_read_sentencepiece_class(const read_files *f, const class_rules *rules,
                                            const char *name);
locus_status locus_read_sentencepiece_raw(const read_files *f, const char *name);
locus_status locus_read_marian(const read_files *f, const class_rules *rules);
locus_status locus_read_bytes(const read_files *f, const class_rules *rules);

#endif

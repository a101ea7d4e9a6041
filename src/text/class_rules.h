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
    FILES_REFUSED,       /* none that this reader knows            */
} class_files;

/* What a fast class of transformers changes in the tokenizer.json that it has read (read_fast.c). */
typedef enum class_change {
    CHANGE_NOTHING,
    CHANGE_CASE,     /* BertNormalizer follows do_lower_case and the like     */
    CHANGE_ENDS,     /* the template follows add_bos_token and add_eos_token  */
    CHANGE_LANGUAGE, /* the template follows src_lang                         */
} class_change;

typedef struct class_rules {
    const char *name; /* without "Fast" */
    class_files files;
    const char *parts[PART_COUNT];      /* bos, eos, unk, sep, pad, cls, mask */
    const char *single, *pair;          /* "c A s B:1 s:1"                    */
    int mask_lstrip, has_types, strips; /* strips: special tokens eat white space */
    class_change change;
} class_rules;

const class_rules *locus_class_rules_find(const char *name, size_t bytes);
/* The class of a family, by the model_type of config.json. */
const class_rules *locus_class_rules_of_model(const char *model_type, size_t bytes);

/* The rules that hold for a folder. The first of these that is there names them: tokenizer_class
 * of tokenizer_config.json, of config.json, model_type, architectures. NULL: it is not known;
 * *named: what it is, or NULL. */
const class_rules *locus_class_rules_of(const read_files *f, const json_value **named);
/* "PreTrainedTokenizerFast" and the like: tokenizer.json is all there is. */
int locus_class_is_generic(const json_value *named);
/* "FOLDER: found the tokenizer class X, WHY" */
locus_status locus_class_refuse(const read_files *f, const json_value *named, const char *why);

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

/* read_fast.c: what transformers makes of a tokenizer.json beside its configuration. */
locus_status locus_read_fast_changes(const read_files *f, const json_value *root);
/* The value of "mask_token" and the like, and its text; 0: it is no token. */
const json_value *locus_class_part(const read_files *f, size_t part);
int locus_class_token_text(const json_value *value, const json_value **content);

/* read_class_spm.c: SentencePiece files by the rules of a class, or as they are; ByT5. */
locus_status locus_read_sentencepiece_class(const read_files *f, const class_rules *rules,
                                            const char *name);
locus_status locus_read_sentencepiece_raw(const read_files *f, const char *name);
locus_status locus_read_marian(const read_files *f, const class_rules *rules);
locus_status locus_read_bytes(const read_files *f, const class_rules *rules);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXT_READ_H
#define LOCUS_TEXT_READ_H

/* What the readers share. */

#include "io/json_tree.h"
#include "text/tokenizer.h"

/* Of every JSON file. Objects of more keys are vocabularies, which find duplicates where they are
 * used. */
#define JSON_MAX_VALUES ((size_t)4 << 20)
#define JSON_UNIQUE ((size_t)4096)

static const json_limits read_limits = {LOCUS_TEXT_MAX_FILE, JSON_MAX_VALUES, JSON_UNIQUE};

/* The files of a folder that decide, and where they are. */
typedef struct read_files {
    locus_tokenizer *t;
    const char *folder; /* NULL: paths are whole */
    const char *file;   /* where a path names one file that is not JSON */
    json_tree tokenizer_config, special_tokens_map, config, added_tokens;
    locus_error *error;
} read_files;

/* The text of a file in the folder, NUL behind it; from t->allocator. */
locus_status locus_read_whole(const read_files *f, const char *name, char **text, size_t *bytes);
int locus_read_exists(const read_files *f, const char *name);
/* A SentencePiece model of any usual name; NULL: none. */
const char *locus_read_find_spm(const read_files *f);
/* Put "FOLDER/NAME: " in front of a message. */
locus_status locus_read_fail_in(const read_files *f, locus_status status, const char *name);
/* A JSON file; an absent one is an empty tree. */
locus_status locus_read_json(const read_files *f, const char *name, int required, json_tree *tree);

text_string locus_read_keep(locus_tokenizer *t, const char *text, size_t bytes, locus_error *error);
locus_status locus_read_keep_value(locus_tokenizer *t, const json_value *value, text_string *out,
                                   locus_error *error);

/* ---- vocabularies ---- */

/* Room for pieces [0, count). */
locus_status locus_read_pieces_new(locus_tokenizer *t, model *m, size_t count, locus_error *error);
/* Copy a token into the arena and set it; refuses empty, too long and repeated ids. */
locus_status locus_read_piece_set(locus_tokenizer *t, model *m, uint64_t id, const char *text,
                                  size_t bytes, locus_error *error);
/* {"token": id, ...}: pieces and index. */
locus_status locus_read_vocabulary(locus_tokenizer *t, model *m, const json_value *vocabulary,
                                   const char *where, locus_error *error);
/* Build m->index from the pieces; refuses a token that occurs twice. */
locus_status locus_read_index(locus_tokenizer *t, model *m, locus_error *error);
/* "##ing": the pieces that continue a word, and their index. */
locus_status locus_read_continuing(locus_tokenizer *t, model *m, locus_error *error);
/* <0x00> ... <0xFF> */
void locus_read_fallback_bytes(model *m);
/* The 256 letters of byte-level BPE, and pieces as bytes. */
locus_status locus_read_byte_level(locus_tokenizer *t, model *m, locus_error *error);

/* One merge: ids of its parts and of what they become. */
locus_status locus_read_merge(const model *m, const char *left, size_t left_bytes,
                              const char *right, size_t right_bytes, size_t rank, bpe_merge *merge,
                              locus_error *error);

/* ---- added tokens and the rest ---- */

locus_status locus_read_added_reserve(locus_tokenizer *t, size_t count, locus_error *error);
/* lstrip, rstrip, ... of {"content": ...}. */
locus_status locus_read_added_flags(const json_value *value, added_token *token,
                                    locus_error *error);
/* Add, or replace the one with the same text. */
locus_status locus_read_added(locus_tokenizer *t, added_token token, locus_error *error);
/* tokens, token_index, special, the sets of added tokens; checks the templates. Call last. */
locus_status locus_read_finish(locus_tokenizer *t, locus_error *error);
/* After tokenizer.json: which ids play a part, whether there are types, from the configuration. */
locus_status locus_read_parts(const read_files *f);

/* ---- expressions ---- */

/* Compile one; it lives as long as the tokenizer. */
locus_status locus_read_regex(locus_tokenizer *t, const char *text, size_t bytes, const regex **out,
                              locus_error *error);
/* The step that splits by the expression of GPT-2, or of Qwen 2. */
extern const char locus_gpt2_expression[], locus_qwen2_expression[];
locus_status locus_read_split(locus_tokenizer *t, const char *expression, locus_error *error);
/* ByteLevel as the last step: the model reads bytes, and no letters are written. */
locus_status locus_read_settle_letters(locus_tokenizer *t, locus_error *error);

/* ---- kinds of files ---- */

locus_status locus_read_tokenizer_json(read_files *f, const char *name);
/* From a tree: what the file says; settling the letters and the finish are to follow. */
locus_status locus_read_tokenizer_tree(locus_tokenizer *t, const json_value *root,
                                       locus_error *error);
/* Parts of tokenizer.json. */
locus_status locus_read_json_model(locus_tokenizer *t, const json_value *value, locus_error *error);
locus_status locus_read_json_normalizer(locus_tokenizer *t, const json_value *value,
                                        locus_error *error);
locus_status locus_read_json_splitter(locus_tokenizer *t, const json_value *value,
                                      locus_error *error);
locus_status locus_read_json_processor(locus_tokenizer *t, const json_value *value,
                                       locus_error *error);
locus_status locus_read_json_decoder(locus_tokenizer *t, const json_value *value,
                                     locus_error *error);

/* A SentencePiece model: m, and the step that normalizes as the file says. */
locus_status locus_read_sentencepiece(const read_files *f, const char *name, model *m,
                                      charsmap *map, trie *symbols, normalizer *step);
/* The same from memory, for tests. */
locus_status locus_read_sentencepiece_text(locus_tokenizer *t, const char *text, size_t bytes,
                                           model *m, charsmap *map, trie *symbols, normalizer *step,
                                           locus_error *error);

/* Folders without tokenizer.json: by the rules of a class of transformers. */
locus_status locus_read_by_class(read_files *f);

#endif

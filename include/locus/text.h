/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXT_H
#define LOCUS_TEXT_H

/* Tokenizers: text to ids and back, from the files that models are published with. Ids are
 * those of the `tokenizers` library, or of transformers' own class where a folder holds no
 * tokenizer.json. docs/tokenizers.md lists what is read and what is refused. */

#include <locus/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of what is read; a file beyond them is refused. */
#define LOCUS_TEXT_MAX_FILE ((uint64_t)256 << 20)          /* bytes of one file               */
#define LOCUS_TEXT_MAX_VOCABULARY ((uint32_t)1 << 21)      /* ids                             */
#define LOCUS_TEXT_MAX_TOKEN ((uint32_t)4096)              /* bytes of one token              */
#define LOCUS_TEXT_MAX_ADDED ((uint32_t)16384)             /* added tokens                    */
#define LOCUS_TEXT_MAX_ADDED_TOKEN ((uint32_t)1024)        /* bytes of one added token        */
#define LOCUS_TEXT_MAX_INPUT (((uint64_t)1 << 32) - 65536) /* bytes of one text             */

typedef struct locus_tokenizer locus_tokenizer;
typedef struct locus_encoding locus_encoding;

/* Read the tokenizer of a folder: tokenizer.json; else, as its tokenizer_config.json and
 * config.json say, vocab.txt, vocab.json with merges.txt, source.spm with target.spm and
 * vocab.json, a SentencePiece model (spiece.model, spm.model, sentencepiece.bpe.model,
 * tokenizer.model), or bytes (ByT5). A path that is a file is read as that one file.
 * *tokenizer is NULL on failure; the message names the file and what was found. A
 * tokenizer never changes; threads may share it. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_tokenizer_open(locus_tokenizer **tokenizer,
                                                             const char *folder,
                                                             const locus_allocator *allocator,
                                                             locus_error *error);
LOCUS_API void locus_tokenizer_close(locus_tokenizer *tokenizer); /* NULL is allowed */

/* What was read. Set `size` to sizeof(locus_tokenizer_info); strings live as long as the
 * tokenizer. */
typedef struct locus_tokenizer_info {
    uint32_t size;
    const char *kind;   /* "WordPiece", "Unigram", "BPE", "WordLevel", "bytes"          */
    const char *source; /* the file that decided: "tokenizer.json", "vocab.txt", ...    */
    const char *rules;  /* "tokenizer.json", or the class whose rules hold: "T5Tokenizer" */
    size_t vocabulary;  /* one more than the largest id                                 */
    int has_types;      /* the family distinguishes the segments of a pair              */
} locus_tokenizer_info;
LOCUS_API LOCUS_MUST_CHECK locus_status locus_tokenizer_describe(const locus_tokenizer *tokenizer,
                                                                 locus_tokenizer_info *info,
                                                                 locus_error *error);

/* The text of a token, NUL-terminated; NULL when no token has the id. `bytes` may be NULL. */
LOCUS_API const char *locus_tokenizer_token(const locus_tokenizer *tokenizer, uint32_t id,
                                            size_t *bytes);
/* The id of a token, -1: there is no such token. */
LOCUS_API int64_t locus_tokenizer_find(const locus_tokenizer *tokenizer, const char *token,
                                       size_t bytes);
/* The id that plays a part: "bos", "eos", "unk", "sep", "pad", "cls", "mask"; -1: none does. */
LOCUS_API int64_t locus_tokenizer_special(const locus_tokenizer *tokenizer, const char *part);
/* 1 when decoding may skip the id. */
LOCUS_API int locus_tokenizer_is_special(const locus_tokenizer *tokenizer, uint32_t id);

/* Where results go, with the working memory of encoding. One per thread; reuse it. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_encoding_new(locus_encoding **encoding,
                                                           const locus_allocator *allocator,
                                                           locus_error *error);
LOCUS_API void locus_encoding_free(locus_encoding *encoding); /* NULL is allowed */

/* One text, or two. Set `size` to sizeof(locus_text_input); what is not set is 0. */
typedef struct locus_text_input {
    uint32_t size;
    const char *text; /* any bytes; what is not UTF-8 counts as U+FFFD */
    size_t bytes;
    const char *pair; /* NULL: one text */
    size_t pair_bytes;
    int plain;         /* 1: add no special tokens around the text                     */
    uint32_t truncate; /* at most so many ids, added ones included; 0: as many as come */
} locus_text_input;

/* Fill `encoding`; what was in it is lost, also when this fails. Allocates from the
 * encoding's allocator when its memory is too small. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_tokenizer_encode(const locus_tokenizer *tokenizer,
                                                               const locus_text_input *input,
                                                               locus_encoding *encoding,
                                                               locus_error *error);

/* Results, valid until the next encode. `types` is 0 for the first segment, as a rule 1 for the
 * second. An offset is a range of bytes in the segment that the token comes from; added tokens
 * have [0,0]. `segments`: 0 or 1, and 2 for added tokens. */
typedef struct locus_offset {
    uint64_t begin, end;
} locus_offset;
LOCUS_API size_t locus_encoding_count(const locus_encoding *encoding);
LOCUS_API const uint32_t *locus_encoding_ids(const locus_encoding *encoding);
LOCUS_API const uint32_t *locus_encoding_types(const locus_encoding *encoding);
LOCUS_API const locus_offset *locus_encoding_offsets(const locus_encoding *encoding);
LOCUS_API const uint8_t *locus_encoding_segments(const locus_encoding *encoding);

/* Ids back to text, without special tokens if skip_special. Writes at most `capacity` bytes, no
 * NUL, and the whole length to *bytes; call again with more room if that is larger. An id
 * without a token is LOCUS_ERR_RANGE. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_tokenizer_decode(const locus_tokenizer *tokenizer,
                                                               const uint32_t *ids, size_t count,
                                                               int skip_special, char *out,
                                                               size_t capacity, size_t *bytes,
                                                               locus_error *error);

#ifdef __cplusplus
}
#endif
#endif

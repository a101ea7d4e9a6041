/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXT_TOKENIZER_H
#define LOCUS_TEXT_TOKENIZER_H

/* What a tokenizer is made of. A text goes through
 *
 *     added tokens     split off where they occur in the text as it is
 *     normalizers      each rewrites the text and keeps where every character came from
 *     added tokens     those that are looked for in the normalized text
 *     splitters        words; some rewrite the text, too
 *     model            words to ids
 *     template         ids of the segments, with special tokens around them
 *
 * and ids go back through decoders. Readers (read_*.c) fill this struct, nothing else
 * changes it. */

#include <locus/text.h>

#include "io/store.h"
#include "text/buffer.h"
#include "text/regex.h"
#include "text/trie.h"
#include "text/unicode.h"

typedef struct text_string {
    const char *text; /* in the arena, NUL-terminated; NULL: absent */
    uint32_t bytes;
} text_string;

#define TEXT_MAX_STEPS 16
#define TEXT_NO_ID UINT32_MAX
#define TEXT_META "\xE2\x96\x81" /* U+2581, SentencePiece's visible space */
#define TEXT_META_CODE 0x2581u

/* ---- added tokens ---- */

typedef struct added_token {
    text_string content;
    uint32_t id;
    uint8_t single_word, lstrip, rstrip, normalized, special;
} added_token;

typedef struct added_set {
    trie tokens; /* value: index into tokenizer->added */
    size_t count;
} added_set;

/* ---- normalizers ---- */

typedef enum normalizer_kind {
    NORMALIZE_BERT,
    NORMALIZE_UNICODE,       /* one of the forms      */
    NORMALIZE_STRIP_ACCENTS, /* drops marks           */
    NORMALIZE_LOWER,
    NORMALIZE_STRIP,   /* white space at the ends */
    NORMALIZE_REPLACE, /* a string                  */
    NORMALIZE_REGEX,   /* what an expression matches */
    NORMALIZE_LETTERS, /* bytes as the letters of byte-level BPE */
    NORMALIZE_NMT,     /* control characters go, unusual spaces become usual ones */
    NORMALIZE_PREPEND,
    NORMALIZE_CHARSMAP,      /* as `tokenizers` applies it    */
    NORMALIZE_SENTENCEPIECE, /* as SentencePiece applies it   */
    NORMALIZE_PY_SPACE,      /* " ".join(text.split())        */
    NORMALIZE_PY_COMBINING,  /* drops what has a combining class */
    NORMALIZE_PY_LOWER,
} normalizer_kind;

/* A SentencePiece character map: a double-array trie, then replacements that end in NUL. */
typedef struct charsmap {
    const uint32_t *units;
    size_t unit_count;
    const char *text;
    size_t text_bytes;
} charsmap;

typedef struct normalizer {
    normalizer_kind kind;
    unicode_form form;
    int clean, chinese, accents, lower;             /* BERT; accents: drop them */
    int left, right;                                /* STRIP                    */
    int dummy_prefix, extra_spaces, suffix, escape; /* SENTENCEPIECE: its NormalizerSpec */
    text_string pattern, content;
    const regex *regex;
    const charsmap *map;
    const trie *symbols; /* SENTENCEPIECE: user-defined symbols, NULL: none */
} normalizer;

/* ---- splitters ---- */

typedef enum splitter_kind {
    SPLIT_BERT,        /* white space removed, punctuation alone */
    SPLIT_SPACE,       /* white space removed                    */
    SPLIT_WORDS,       /* words, and runs of what is neither word nor white space */
    SPLIT_PUNCTUATION, /* by behaviour                           */
    SPLIT_DIGITS,
    SPLIT_METASPACE,
    SPLIT_PREFIX,  /* a space in front, if there is none      */
    SPLIT_LETTERS, /* bytes as the letters of byte-level BPE  */
    SPLIT_REGEX,
    SPLIT_FIXED, /* `length` characters each */
    SPLIT_STRING,
} splitter_kind;

typedef enum split_behaviour {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
    SPLIT_CONTIGUOUS
} split_behaviour;

typedef enum prepend_scheme { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER } prepend_scheme;

typedef struct text_span {
    uint32_t begin, end;
} text_span;

typedef struct splitter {
    splitter_kind kind;
    split_behaviour behaviour;
    prepend_scheme scheme;
    uint32_t replacement; /* METASPACE */
    int split;            /* METASPACE: into words            */
    int individual;       /* DIGITS                           */
    int invert;           /* REGEX, STRING: matches are the gaps */
    uint32_t length;      /* FIXED                            */
    const regex *regex;
    text_string pattern; /* STRING */
} splitter;

/* ---- models ---- */

typedef enum model_kind {
    MODEL_WORDPIECE,
    MODEL_UNIGRAM,
    MODEL_BPE,
    MODEL_BYTES,
    MODEL_WORDS
} model_kind;

typedef struct bpe_merge {
    uint32_t left, right, rank, result;
} bpe_merge;

enum piece_type {
    PIECE_NORMAL = 1,
    PIECE_UNKNOWN,
    PIECE_CONTROL,
    PIECE_USER,
    PIECE_UNUSED,
    PIECE_BYTE
};

typedef struct model {
    model_kind kind;
    text_string *pieces; /* by the model's own ids; text NULL: a gap  */
    size_t piece_count;
    trie index; /* piece to id */
    uint32_t unk;
    int fuse_unk, byte_fallback;
    uint32_t byte_ids[256]; /* of the single bytes; TEXT_NO_ID: none  */
    /* WordPiece */
    text_string prefix;
    uint32_t max_chars;
    trie continuing; /* pieces with the prefix, without it; byte-level BPE: pieces as bytes */
    /* Unigram */
    double *scores;
    uint8_t *types; /* PIECE_*, SentencePiece files only */
    double min_score;
    int single; /* SentencePiece's arithmetic: float */
    /* BPE */
    int byte_level, ignore_merges;
    bpe_merge *merges; /* hash table of merge_slots, a power of two; rank UINT32_MAX: free */
    size_t merge_slots;
    uint64_t merge_seed;
    text_string word_suffix;
    int by_score; /* SentencePiece BPE: any two pieces whose union is a piece, best score first */
} model;

/* ---- template and decoders ---- */

enum template_kind { ITEM_FIRST, ITEM_SECOND, ITEM_TOKEN };

typedef struct template_item {
    uint8_t kind, unless_last; /* unless_last: not after an id that is the same */
    uint32_t id, type;
} template_item;

#define TEXT_MAX_TEMPLATE 24

typedef struct text_template {
    template_item items[TEXT_MAX_TEMPLATE];
    size_t count;
} text_template;

typedef enum decoder_kind {
    DECODE_WORDPIECE,
    DECODE_BYTE_LEVEL,
    DECODE_METASPACE,
    DECODE_BYTE_FALLBACK,
    DECODE_FUSE,
    DECODE_STRIP,
    DECODE_REPLACE,
    DECODE_REGEX,
    DECODE_CTC,
    DECODE_BPE_SUFFIX,
    DECODE_SENTENCEPIECE, /* as SentencePiece joins pieces */
    DECODE_BYTES,
} decoder_kind;

typedef struct decoder {
    decoder_kind kind;
    int cleanup; /* WORDPIECE, CTC */
    prepend_scheme scheme;
    text_string pattern, content; /* pattern: the prefix, the replaced text, the stripped one or
                                     CTC's blank; content: what replaces it, or CTC's space */
    const regex *regex;
    uint32_t start, stop; /* STRIP */
} decoder;

/* ---- the whole ---- */

enum text_part {
    PART_BOS,
    PART_EOS,
    PART_UNK,
    PART_SEP,
    PART_PAD,
    PART_CLS,
    PART_MASK,
    PART_COUNT
};
extern const char *const locus_text_part_names[PART_COUNT];

struct locus_tokenizer {
    const locus_allocator *allocator;
    locus_arena arena;
    unicode unicode;
    const char *source, *rules;
    added_token *added;
    size_t added_count;
    added_set raw, normalized; /* looked for before and after normalization */
    normalizer normalizers[TEXT_MAX_STEPS];
    size_t normalizer_count;
    splitter splitters[TEXT_MAX_STEPS];
    size_t splitter_count;
    model model;
    uint32_t *id_of_piece; /* where ids are not the model's own, else NULL */
    text_string *tokens;   /* by id                                        */
    size_t token_count;
    text_template single, pair;
    decoder decoders[TEXT_MAX_STEPS];
    size_t decoder_count;
    regex *expressions[3 * TEXT_MAX_STEPS]; /* of the steps */
    size_t expression_count;
    uint8_t *special;          /* by id */
    uint32_t part[PART_COUNT]; /* TEXT_NO_ID: none */
    int trim_offsets, trim_prefix;
    int has_types;
    int clean_up_spaces; /* decoding: transformers' clean_up_tokenization_spaces */
    int slow;            /* rules of a Python class: its white space, its truncation */
    int slow_lower;      /* ... and its lower case before everything else            */
    int split_commas;    /* ALBERT, XLNet: "9," is two pieces                         */
    int language_code;   /* Marian: >>fr<< at the beginning is one piece              */
    int unk_prefix;      /* T5, Llama without legacy: the unknown token goes in front */
    size_t unk_prefix_count;
    int no_prefix;              /* ... without a space in front of the text */
    const model *decoder_model; /* Marian: pieces of the target, else NULL             */
    model target;
    trie token_index; /* Marian: vocab.json; others find tokens in the model's index   */
    charsmap map, target_map;
    trie symbols;
};

/* ---- working memory ---- */

typedef struct text_token {
    uint32_t id;
    uint32_t begin, end; /* in the well-formed text */
    uint8_t added;
} text_token;

struct locus_encoding {
    const locus_allocator *allocator;
    text_source source[2];
    text_buffer buffer[4]; /* 0, 1: steps in turn; 2: the whole segment rewritten; 3: a piece */
    text_array tokens[2];  /* text_token, by segment */
    text_array spans[2];   /* text_span              */
    text_array matches;    /* of a splitter          */
    text_array sets;       /* of an expression       */
    text_array nodes;      /* of a model             */
    text_array heap;       /* of BPE                 */
    text_array pieces;     /* model_piece            */
    size_t segment;        /* the one at work        */
    text_array ids, types, offsets, segments; /* results */
    size_t count;
};

/* Emit a token that covers bytes [from, to) of the buffer, from < to. 0: no memory. */
int locus_text_emit(locus_encoding *e, const text_buffer *buffer, uint32_t id, size_t from,
                    size_t to);

/* Trim the offsets of a token whose text is `value` as ByteLevel does: its blanks are counted in
 * characters of the value, and the offsets move by as many characters of the source (template.c). */
void locus_text_trim(const locus_tokenizer *t, const text_source *source, text_token *token,
                     text_string value, int is_first);

/* ---- normalize*.c ---- */

/* All steps, from `input`: the result is e->buffer[0] or [1], or `input` itself. */
locus_status locus_text_normalize(const locus_tokenizer *t, text_buffer *input,
                                  text_buffer **result, locus_encoding *e, locus_error *error);
locus_status locus_normalize_bert(const unicode *u, const normalizer *step, const text_buffer *in,
                                  text_buffer *out, locus_encoding *e, locus_error *error);
/* One of the four forms. */
locus_status locus_normalize_unicode(const unicode *u, unicode_form form, const text_buffer *in,
                                     text_buffer *out, locus_encoding *e, locus_error *error);
void locus_normalize_charsmap(const unicode *u, const charsmap *map, const text_buffer *in,
                              text_buffer *out);
void locus_normalize_sentencepiece(const normalizer *step, const text_buffer *in, text_buffer *out);

/* letters.c: the letter of a byte, the byte of a letter (-1: none), bytes [from, to) as letters. */
uint32_t locus_byte_letter(unsigned byte);
int locus_letter_byte(uint32_t letter);
void locus_text_letters(const text_buffer *in, size_t from, size_t to, text_buffer *out);

/* The changes of a text, told as `tokenizers` tells them: each new character replaces one of the
 * old text (change 0), replaces one and drops -change more, or is put in (1). What replaces takes
 * the origin of what it replaces, what is put in that of the character before. */
typedef struct rewrite {
    const text_buffer *in;
    text_buffer *out;
    size_t at; /* in `in` */
} rewrite;
void locus_rewrite_add(rewrite *r, uint32_t code, int64_t change);

/* charsmap.c: check the blob and find its parts, which stay in the arena. */
locus_status locus_charsmap_open(charsmap *map, const char *blob, size_t bytes, locus_arena *arena,
                                 locus_error *error);
/* The shortest key that begins the text, or the longest: its replacement, and the bytes of the
 * key in *matched. NULL: none. */
const char *locus_charsmap_find(const charsmap *map, const char *text, size_t bytes, int longest,
                                size_t *matched, size_t *replacement_bytes);

/* ---- split*.c ---- */

/* From spans of *buffer in e->spans[0] to spans of *buffer, which may become another. */
locus_status locus_text_split(const locus_tokenizer *t, const splitter *step, text_buffer **buffer,
                              locus_encoding *e, locus_error *error);

/* ---- model*.c: emit the tokens of bytes [from, to) of the buffer ---- */

/* What a model found, before it is emitted; `id` is the model's own. */
typedef struct model_piece {
    uint32_t id, from, to;
} model_piece;

locus_status locus_text_model_encode(const locus_tokenizer *t, const text_buffer *buffer,
                                     size_t from, size_t to, locus_encoding *e, locus_error *error);
locus_status locus_wordpiece_encode(const locus_tokenizer *t, const text_buffer *buffer,
                                    size_t from, size_t to, locus_encoding *e, locus_error *error);
/* These two leave pieces in e->pieces. */
locus_status locus_unigram_pieces(const model *m, const char *text, size_t from, size_t to,
                                  locus_encoding *e, locus_error *error);
locus_status locus_bpe_pieces(const model *m, const char *text, size_t from, size_t to,
                              locus_encoding *e, locus_error *error);
/* commas.c: "9," as ALBERT and XLNet split it; from e->pieces to tokens. */
locus_status locus_commas_emit(const locus_tokenizer *t, const text_buffer *buffer,
                               locus_encoding *e, locus_error *error);
/* Hash table of merges; they are checked before. */
locus_status locus_bpe_add_merges(model *m, const bpe_merge *merges, size_t count,
                                  const locus_allocator *allocator, locus_error *error);
void locus_text_model_free(model *m, const locus_allocator *allocator);

/* ---- added.c ---- */

/* texts[i]: the text to look for, one per added token; only those with `normalized` as given. */
locus_status locus_added_set_build(added_set *set, const locus_tokenizer *t, int normalized,
                                   const text_string *texts, locus_error *error);
/* The next added token in text[at, bytes): its index, and the bytes that it takes with the white
 * space it eats. `floor`: where the token before ended. TEXT_NO_ID: none. */
uint32_t locus_added_next(const locus_tokenizer *t, const added_set *set, const char *text,
                          size_t bytes, size_t at, size_t floor, size_t *begin, size_t *end);

/* segment.c: the tokens of e->source[segment]. */
locus_status locus_text_encode_segment(const locus_tokenizer *t, size_t segment, locus_encoding *e,
                                       locus_error *error);

/* template.c: special tokens, truncation, results. */
locus_status locus_text_finish(const locus_tokenizer *t, const locus_text_input *input,
                               locus_encoding *e, locus_error *error);

/* read.c */
locus_status locus_text_read(locus_tokenizer *t, const char *path, locus_error *error);

#endif

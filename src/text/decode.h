/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXT_DECODE_H
#define LOCUS_TEXT_DECODE_H

#include "text/read.h"
#include "text/tokenizer.h"

/* The strings that decoders work on. `failed`: memory ran out. */
typedef struct decode_list {
    const locus_allocator *allocator;
    locus_arena arena;
    text_array strings; /* text_string */
    int failed;
} decode_list;

int locus_decode_add(decode_list *list, const char *text, size_t bytes);
/* The byte of a piece like <0xE2>, -1: another piece. */
int locus_decode_byte_piece(const text_string *text);
/* The first string as UTF-8: what is not becomes U+FFFD, or goes. */
void locus_decode_make_valid(decode_list *list, int drop);

/* decode_sentencepiece.c: all strings to one, as SentencePiece and the classes around it do. */
void locus_decode_sentencepiece(const locus_tokenizer *t, decode_list *list);
void locus_decode_bytes(const locus_tokenizer *t, decode_list *list);

#endif

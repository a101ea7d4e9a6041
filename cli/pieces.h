/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PIECES_H
#define CLI_PIECES_H

/* Printing what a tokenizer made of a text. */

#include "cli.h"
#include "json.h"

/* "ids", and "tokens" where there is a tokenizer. */
void pieces_json(json *j, const locus_tokenizer *tokenizer, const uint32_t *ids, size_t count);

/* The token of an id, which may hold NUL and anything else; returns the columns used. Nothing where
 * no token has the id. */
size_t pieces_print(FILE *out, const locus_tokenizer *tokenizer, uint32_t id);

/* "1,2,3", each below 2^31, into ids[strlen(text) / 2 + 1]; an empty text is no id at all.
 * 0: it is not such a list. */
int pieces_read_ids(const char *text, uint32_t *ids, size_t *count);

#endif

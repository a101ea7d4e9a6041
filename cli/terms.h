/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TERMS_H
#define CLI_TERMS_H

/* Pieces of a scheme's declaration that more than one command prints. */

#include <locus/locus.h>

#include "json.h"

enum { TERM_COUNT = 8 };

/* "x...x..." into a buffer of TERM_COUNT + 1 bytes: one column per term. */
char *terms_marks(char *buffer, uint32_t terms);

/* "1  content  c (q_m + u) . k_n": what the columns mean, one line each. */
void terms_print_legend(void);

/* ["content", "bias"] */
void terms_json(json *j, const char *key, uint32_t terms);

/* "content, bias" */
void terms_list(uint32_t terms);

/* 1 when the tensor belongs to the scheme, 0 for what every call has (q, x, w_q, masks). */
int tensor_is_own(const locus_tensor_info *tensor);

/* The level at which a scheme acts at all: LOCUS_LAYER for those that change the input. */
uint32_t scheme_level(const locus_scheme_info *scheme);

/* "attend", "layer" or "attend, layer". */
const char *level_text(uint32_t levels);

/* Names of the own tensors, "[slopes]" for one that may be absent, "-" for none. */
char *scheme_parameters(char *buffer, size_t capacity, const locus_scheme_info *scheme);

/* "a whole number from 2 to 65536", "half or interleaved" */
char *option_range(char *buffer, size_t capacity, const locus_option_info *option);

/* "32", "half"; "required" */
char *option_default(char *buffer, size_t capacity, const locus_option_info *option);

#endif

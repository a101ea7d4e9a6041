/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_NEAREST_H
#define LOCUS_CORE_NEAREST_H

#include <locus/status.h>

/* For the end of a message about an unknown word: "; did you mean \"bias\"?", or nothing. `text` has
 * room for LOCUS_SUGGESTION bytes. Returns `text`. */
enum { LOCUS_SUGGESTION = 64 };
const char *locus_suggest(char *text, const char *word, const char *const *names, size_t count);

/* The same from a list that answers NULL behind its last name. */
typedef const char *(*locus_name_at)(size_t index);
const char *locus_suggest_from(char *text, const char *word, locus_name_at name);

#endif

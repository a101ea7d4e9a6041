/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_WEB_TRAINED_H
#define LOCUS_WEB_TRAINED_H

/* The first layer of models that the lab trained on text, a character a token: tensors for the
 * call that the page asks for. tools/trained.py makes the file and says what is in it. */

#include <locus/call.h>

/* Fill *tensors, and *memory that holds their numbers and that the caller frees. tokens[0] is the
 * start of a text; the others are characters of the file's metadata, "␣" for a space. */
locus_status trained_tensors(locus_tensors *tensors, float **memory, const char *scheme,
                             const char *const *tokens, size_t count, locus_error *error);

#endif

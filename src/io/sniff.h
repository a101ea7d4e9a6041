/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_SNIFF_H
#define LOCUS_IO_SNIFF_H

#include <stddef.h>

#define LOCUS_SNIFF_BYTES 512 /* enough for every magic, tar's at 257 included */

/* What a file that is not safetensors seems to be, from its first bytes: a phrase
 * for "found ..." with a hint, or NULL. Ask only once the length field has been
 * refused: the first byte of a good file may be anything. */
const char *locus_sniff(const unsigned char *bytes, size_t count);

#endif

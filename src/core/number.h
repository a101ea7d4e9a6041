/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_NUMBER_H
#define LOCUS_CORE_NUMBER_H

/* Numbers from text, strictly: nothing before or after, one spelling per integer (no plus,
 * no leading zero, no minus zero). 1 when the whole text is such a number that fits. */

#include <stdint.h>

int locus_parse_unsigned(const char *text, uint64_t *value);
int locus_parse_integer(const char *text, int64_t *value);

/* -1.5e-3 in every locale, as JSON writes numbers: finite, no hexadecimal, no bare point. */
int locus_parse_real(const char *text, double *value);

#endif

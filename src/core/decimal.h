/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_DECIMAL_H
#define LOCUS_CORE_DECIMAL_H

#include <stddef.h>

/* The double next to a decimal number, halves to even: what strtod gives in the C locale, in any
 * locale and under any state of the floating-point unit. text: "-12.5e-3", a sign, digits, a point
 * with digits behind it, an exponent; each but the first digits may be missing. Returns the
 * bytes of the number, 0: there is none. Beyond the largest double the value is infinite. */
size_t locus_read_real(const char *text, double *value);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/number.h"

#include <math.h>
#include <string.h>

#include "core/decimal.h"

static size_t digits_of(const char *text) { return strspn(text, "0123456789"); }

int locus_parse_unsigned(const char *text, uint64_t *value)
{
    const size_t length = digits_of(text);
    if (length == 0 || text[length] != '\0' || (length > 1 && text[0] == '0')) return 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < length; i++) {
        const uint64_t digit = (uint64_t)(text[i] - '0');
        if (sum > (UINT64_MAX - digit) / 10) return 0;
        sum = 10 * sum + digit;
    }
    *value = sum;
    return 1;
}

int locus_parse_integer(const char *text, int64_t *value)
{
    const int negative = text[0] == '-';
    uint64_t size;
    if (!locus_parse_unsigned(text + negative, &size) || size > INT64_MAX) return 0;
    if (negative && size == 0) return 0;
    *value = negative ? -(int64_t)size : (int64_t)size;
    return 1;
}

int locus_parse_real(const char *text, double *value)
{
    const char *first = text + (text[0] == '-');
    if (first[0] == '0' && digits_of(first) > 1) return 0;
    const size_t length = locus_read_real(text, value);
    return length > 0 && text[length] == '\0' && isfinite(*value);
}

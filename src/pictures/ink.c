/* SPDX-License-Identifier: Apache-2.0 */
/* One colour per term. */
#include <string.h>

#include <locus/plot.h>

#include "pictures/pictures.h"

uint32_t locus_picture_term_ink(const char *name)
{
    enum { PLACES = 8, OTHER = PLACES };
    static const char *const own[] = {"u.k", "w.r"};
    if (name == NULL) return LOCUS_INK_TERM + OTHER;
    for (uint32_t place = 0; place < PLACES; place++)
        if (strcmp(name, locus_term_name(1u << place)) == 0) return LOCUS_INK_TERM + place;
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(name, own[i]) == 0) return LOCUS_INK_TERM + OTHER + 1 + i;
    return LOCUS_INK_TERM + OTHER;
}

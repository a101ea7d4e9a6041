/* SPDX-License-Identifier: Apache-2.0 */
/* The declarations as JSON: menus, ranges and formulas of the page build themselves. */

#include <math.h>
#include <string.h>

#include <locus/locus.h>
#include <locus/plot.h>

#include "exports.h"
#include "system.h"
#include "text.h"

static void number(const char *key, double value)
{
    if (isfinite(value) && fabs(value) < 1e300)
        text_print(",\"%s\":%.17g", key, value);
    else
        text_print(",\"%s\":null", key);
}

static void member(const char *key, const char *value)
{
    text_print(",\"%s\":", key);
    text_quote(value);
}

static void choices(const locus_choice *list)
{
    text_print(",\"choices\":[");
    for (const locus_choice *c = list; c != NULL && c->name != NULL; c++)
        text_print("%s{\"name\":\"%s\",\"value\":%d}", c != list ? "," : "", c->name,
                   (int)c->value);
    text_print("]");
}

static void option(const locus_option_info *o)
{
    static const char *const kinds[] = {"integer", "real", "choice"};
    text_print("{\"name\":\"%s\",\"kind\":\"%s\",\"required\":%d,\"levels\":%u", o->name,
               kinds[o->kind], o->required, (unsigned)o->levels);
    member("help", o->help);
    member("with", o->with);
    number("minimum", o->minimum);
    number("maximum", o->maximum);
    number("preset", o->preset);
    choices(o->choices);
    text_print("}");
}

static void scheme(const locus_scheme_info *s)
{
    text_print("{\"name\":\"%s\",\"terms\":%u,\"traits\":%u", s->name, (unsigned)s->terms,
               (unsigned)s->traits);
    member("title", s->title);
    member("formula", s->formula);
    member("citation", s->citation);
    member("rule", s->rule);
    member("scale", s->scale);
    text_print(",\"options\":[");
    for (size_t i = 0; locus_scheme_option(s, i) != NULL; i++) {
        if (i > 0) text_print(",");
        option(locus_scheme_option(s, i));
    }
    text_print("]");
    text_print("}");
}

int page_schemes(void)
{
    text_begin();
    text_print("[");
    for (size_t i = 0; i < locus_scheme_count(); i++) {
        if (i > 0) text_print(",");
        scheme(locus_scheme_at(i));
    }
    text_print("]");
    return 0;
}

const char *page_version(void) { return locus_version(); }

uint32_t page_ink(uint32_t ink, uint32_t dark)
{
    return locus_ink_colour(ink, dark ? LOCUS_THEME_DARK : LOCUS_THEME_LIGHT);
}

void page_random(uint32_t low, uint32_t high) { page_seed((uint64_t)high << 32 | low); }

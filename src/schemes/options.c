/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/number.h"
#include "schemes/scheme.h"

static void store(locus_options *options, const locus_option_info *info, double value)
{
    char *field = (char *)options + info->offset;
    if (info->kind == LOCUS_OPTION_REAL) {
        memcpy(field, &value, sizeof value);
    } else {
        const int64_t whole = (int64_t)value;
        memcpy(field, &whole, sizeof whole);
    }
}

static void store_unset(locus_options *options, const locus_option_info *info)
{
    const int64_t whole = LOCUS_UNSET;
    if (info->kind == LOCUS_OPTION_REAL)
        store(options, info, LOCUS_UNSET_REAL);
    else
        memcpy((char *)options + info->offset, &whole, sizeof whole);
}

locus_status locus_options_init_sized(locus_options *options, size_t size, const char *scheme)
{
    const locus_scheme *found = locus_scheme_lookup(scheme);
    locus_options fresh = {.size = sizeof fresh};
    if (size < sizeof fresh.size || size > UINT32_MAX) return LOCUS_ERR_ARGUMENT;
    for (const locus_option_info *o = found != NULL ? found->options : NULL;
         o != NULL && o->name != NULL; o++) {
        if (o->required)
            store_unset(&fresh, o);
        else
            store(&fresh, o, o->preset);
    }
    options->size = (uint32_t)size;
    locus_hand_back(options, &fresh, sizeof fresh);
    return found != NULL ? LOCUS_OK : LOCUS_ERR_SCHEME;
}

/* Integers beyond 2^53 are far outside every range. */
static int parse_integer(const char *text, double *value)
{
    int64_t whole;
    if (!locus_parse_integer(text, &whole)) return 0;
    *value = (double)whole;
    return 1;
}

static int parse_choice(const char *text, const locus_choice *choices, double *value)
{
    for (; choices->name != NULL; choices++) {
        if (strcmp(choices->name, text) != 0) continue;
        *value = (double)choices->value;
        return 1;
    }
    return 0;
}

static const char *choice_text(const locus_choice *choices, char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    for (; choices->name != NULL; choices++) {
        const size_t length = strlen(choices->name);
        if (used + length + 5 > capacity) break;
        if (used > 0) memcpy(text + used, " or ", 4), used += 4;
        memcpy(text + used, choices->name, length + 1);
        used += length;
    }
    return text;
}

static const locus_option_info *find_option(const locus_scheme *scheme, uint32_t level,
                                            const char *name)
{
    for (const locus_option_info *o = scheme->options; o->name != NULL; o++)
        if ((o->levels & level) != 0 && strcmp(o->name, name) == 0) return o;
    return NULL;
}

static locus_status refuse_value(const locus_option_info *info, const char *value,
                                 locus_error *error)
{
    char found[96], names[64];
    locus_escape(found, sizeof found, value, strlen(value));
    if (info->kind == LOCUS_OPTION_CHOICE)
        return locus_fail(error, LOCUS_ERR_OPTION, "option %s: found \"%s\", expected %s",
                          info->name, found, choice_text(info->choices, names, sizeof names));
    return locus_fail(error, LOCUS_ERR_OPTION,
                      "option %s: found \"%s\", expected %s in [%.15g, %.15g]", info->name, found,
                      info->kind == LOCUS_OPTION_INTEGER ? "an integer" : "a decimal number",
                      info->minimum, info->maximum);
}

static locus_status unknown_option(const locus_scheme *scheme, uint32_t level, const char *name,
                                   locus_error *error)
{
    const char *names[32];
    char suggestion[LOCUS_SUGGESTION];
    size_t count = 0;
    for (const locus_option_info *o = scheme->options; o->name != NULL && count < 32; o++)
        if ((o->levels & level) != 0) names[count++] = o->name;
    return locus_fail(error, LOCUS_ERR_OPTION, "option \"%s\" is not known to scheme %s%s", name,
                      scheme->info.name, locus_suggest(suggestion, name, names, count));
}

locus_status locus_options_set(locus_options *options, const char *scheme, uint32_t level,
                               const char *name, const char *value, locus_error *error)
{
    const locus_scheme *found = locus_scheme_lookup(scheme);
    if (found == NULL) return locus_unknown_scheme(scheme, error);
    const locus_option_info *option = find_option(found, level, name);
    if (option == NULL) return unknown_option(found, level, name, error);
    if (option->offset + sizeof(int64_t) > options->size)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "option %s: found options of size %u, expected room for it", name,
                          (unsigned)options->size);

    double number = 0.0;
    const int parsed = option->kind == LOCUS_OPTION_INTEGER ? parse_integer(value, &number)
                       : option->kind == LOCUS_OPTION_REAL
                           ? locus_parse_real(value, &number)
                           : parse_choice(value, option->choices, &number);
    if (!parsed || number < option->minimum || number > option->maximum)
        return refuse_value(option, value, error);
    store(options, option, number);
    return LOCUS_OK;
}

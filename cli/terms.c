/* SPDX-License-Identifier: Apache-2.0 */
#include "terms.h"

#include <math.h>
#include <string.h>

#include "text.h"

char *terms_marks(char *buffer, uint32_t terms)
{
    for (size_t i = 0; i < TERM_COUNT; i++) buffer[i] = (terms >> i & 1) != 0 ? 'x' : '.';
    buffer[TERM_COUNT] = '\0';
    return buffer;
}

void terms_print_legend(void)
{
    puts("terms of the score (c = scale, m = query, n = key, h = head, a = weights)");
    for (size_t i = 0; i < TERM_COUNT; i++)
        printf("  %zu  %-17s  %s\n", i + 1, locus_term_name(1u << i), locus_term_formula(1u << i));
}

void terms_json(json *j, const char *key, uint32_t terms)
{
    json_inline_array(j, key);
    for (size_t i = 0; i < TERM_COUNT; i++)
        if ((terms >> i & 1) != 0) json_text(j, NULL, locus_term_name(1u << i));
    json_end(j);
}

void terms_list(uint32_t terms)
{
    const char *comma = "";
    for (size_t i = 0; i < TERM_COUNT; i++) {
        if ((terms >> i & 1) == 0) continue;
        printf("%s%s", comma, locus_term_name(1u << i));
        comma = ", ";
    }
}

int tensor_is_own(const locus_tensor_info *tensor)
{
    const locus_tensor_info *c;
    for (size_t i = 0; (c = locus_common_tensor(i)) != NULL; i++)
        if (strcmp(c->name, tensor->name) == 0) return 0;
    return 1;
}

uint32_t scheme_level(const locus_scheme_info *scheme)
{
    return (scheme->terms & LOCUS_TERM_INPUT) != 0 ? LOCUS_LAYER : LOCUS_ATTEND;
}

const char *level_text(uint32_t levels)
{
    if (levels == (LOCUS_ATTEND | LOCUS_LAYER)) return "attend, layer";
    return levels == LOCUS_ATTEND ? "attend" : "layer";
}

char *scheme_parameters(char *buffer, size_t capacity, const locus_scheme_info *scheme)
{
    size_t used = 0;
    const uint32_t level = scheme_level(scheme);
    snprintf(buffer, capacity, "-");
    const locus_tensor_info *t;
    for (size_t i = 0; (t = locus_scheme_tensor(scheme, i)) != NULL; i++) {
        if ((t->levels & level) == 0 || !tensor_is_own(t) || used >= capacity) continue;
        if ((t->uses & LOCUS_USE_PLAN) != 0) continue; /* numbers that are given, not learned */
        used += (size_t)snprintf(buffer + used, capacity - used, t->required ? "%s%s" : "%s[%s]",
                                 used > 0 ? " " : "", t->name);
    }
    return buffer;
}

/* Bounds as far out as these say "none". */
static int is_bound(double value) { return isfinite(value) && fabs(value) < 1e300; }

char *option_range(char *buffer, size_t capacity, const locus_option_info *option)
{
    char low[40], high[40];
    size_t used = 0;
    if (option->kind == LOCUS_OPTION_CHOICE) {
        for (const locus_choice *c = option->choices; c->name != NULL && used < capacity; c++)
            used += (size_t)snprintf(buffer + used, capacity - used, "%s%s", used > 0 ? " or " : "",
                                     c->name);
        return buffer;
    }
    const char *what = option->kind == LOCUS_OPTION_INTEGER ? "whole number" : "number";
    text_real(low, sizeof low, option->minimum);
    text_real(high, sizeof high, option->maximum);
    if (option->kind == LOCUS_OPTION_INTEGER) {
        snprintf(low, sizeof low, "%.0f", option->minimum);
        snprintf(high, sizeof high, "%.0f", option->maximum);
    }
    if (is_bound(option->minimum) && is_bound(option->maximum))
        snprintf(buffer, capacity, "%s %s to %s", what, low, high);
    else if (is_bound(option->minimum))
        snprintf(buffer, capacity, "%s from %s", what, low);
    else
        snprintf(buffer, capacity, "%s", what);
    return buffer;
}

char *option_default(char *buffer, size_t capacity, const locus_option_info *option)
{
    if (option->required) {
        snprintf(buffer, capacity, "required");
        return buffer;
    }
    if (option->kind == LOCUS_OPTION_CHOICE) {
        for (const locus_choice *c = option->choices; c->name != NULL; c++)
            if ((double)c->value == option->preset) snprintf(buffer, capacity, "%s", c->name);
        return buffer;
    }
    return text_real(buffer, capacity, option->preset);
}

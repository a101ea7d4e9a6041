/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <stdio.h>
#include <string.h>

/* A name that does not fit is no option of any scheme, and stays one when it is cut. */
void settings_split(settings *s, const cli_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        const size_t length = strcspn(pairs->text[i], "=");
        snprintf(s->names[i], SETTING_NAME, "%.*s",
                 (int)(length < SETTING_NAME ? length : SETTING_NAME), pairs->text[i]);
        s->list[i] = (locus_problem_setting){s->names[i], pairs->text[i] + length + 1};
    }
    s->list[pairs->count] = (locus_problem_setting){NULL, NULL};
}

/* locus_problem_new takes what a scheme declares and passes over the rest: refuse that here. */
int settings_read(settings *s, const char *command, const char *scheme, uint32_t level,
                  const cli_pairs *pairs)
{
    locus_options options;
    locus_error error = {""};
    settings_split(s, pairs);
    if (locus_options_init(&options, scheme) != LOCUS_OK) return CLI_INTERNAL;
    for (const locus_problem_setting *o = s->list; o->name != NULL; o++)
        if (locus_options_set(&options, scheme, level, o->name, o->value, &error) != LOCUS_OK)
            return cli_complain(command, CLI_USAGE, "--option: %s", error.text);
    return CLI_DONE;
}

/* Has a scheme before number `scheme` an option of this name? */
static int is_known(const char *name, size_t scheme)
{
    const locus_option_info *o;
    for (size_t i = 0; i < scheme; i++)
        for (size_t k = 0; (o = locus_scheme_option(locus_scheme_at(i), k)) != NULL; k++)
            if (strcmp(o->name, name) == 0) return 1;
    return 0;
}

const char *cli_setting_at(size_t index)
{
    static char text[64];
    const locus_option_info *o;
    for (size_t i = 0; i < locus_scheme_count(); i++)
        for (size_t k = 0; (o = locus_scheme_option(locus_scheme_at(i), k)) != NULL; k++) {
            if (is_known(o->name, i)) continue;
            const locus_choice *choice = o->kind == LOCUS_OPTION_CHOICE ? o->choices : NULL;
            if (choice == NULL && index-- == 0) {
                snprintf(text, sizeof text, "%s=", o->name);
                return text;
            }
            for (; choice != NULL && choice->name != NULL; choice++)
                if (index-- == 0) {
                    snprintf(text, sizeof text, "%s=%s", o->name, choice->name);
                    return text;
                }
        }
    return NULL;
}

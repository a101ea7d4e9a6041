/* SPDX-License-Identifier: Apache-2.0 */
/* locus schemes: the declarations, as a table, in full, as JSON or as a document. */
#include <stddef.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "markdown.h"
#include "terms.h"
#include "text.h"

typedef struct schemes_values {
    const char *name;
    int json;
    int markdown;
} schemes_values;

/* ---- the table ---- */

static void print_row(const locus_scheme_info *scheme, size_t name_width, size_t scale_width,
                      size_t parameter_width)
{
    char marks[TERM_COUNT + 1], parameters[96];
    text_cell(stdout, scheme->name, name_width);
    printf("%s  ", terms_marks(marks, scheme->terms));
    text_cell(stdout, scheme->scale, scale_width);
    text_cell(stdout, scheme_parameters(parameters, sizeof parameters, scheme), parameter_width);
    text_print(stdout, scheme->formula);
    putchar('\n');
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static void print_table(void)
{
    char parameters[96];
    size_t name = strlen("scheme"), scale = strlen("scale"), learned = strlen("parameters");
    for (size_t i = 0; i < locus_scheme_count(); i++) {
        const locus_scheme_info *scheme = locus_scheme_at(i);
        name = larger(name, strlen(scheme->name));
        scale = larger(scale, text_columns(scheme->scale));
        learned = larger(learned, strlen(scheme_parameters(parameters, sizeof parameters, scheme)));
    }
    printf("%s%-*s  12345678  %-*s  %-*s  formula%s\n", text_bold(), (int)name, "scheme",
           (int)scale, "scale", (int)learned, "parameters", text_plain());
    for (size_t i = 0; i < locus_scheme_count(); i++)
        print_row(locus_scheme_at(i), name, scale, learned);
    putchar('\n');
    terms_print_legend();
    puts("\n\"locus schemes NAME\" shows options, tensors and citation; [x] may be absent");
}

/* ---- one scheme in full ---- */

static void print_traits(uint32_t traits)
{
    static const char *const names[] = {"relative", "symmetric", "learned", "causal", "counted"};
    const char *comma = "";
    if (traits == 0) printf("none");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((traits >> i & 1) == 0) continue;
        printf("%s%s", comma, names[i]);
        comma = ", ";
    }
}

static void print_option(const locus_option_info *option)
{
    char range[96], preset[64];
    option_range(range, sizeof range, option);
    option_default(preset, sizeof preset, option);
    printf("  %-14s  %s, %s%s; %s%s%s\n", option->name, range, option->required ? "" : "default ",
           preset, level_text(option->levels), option->with != NULL ? "; with tensor " : "",
           option->with != NULL ? option->with : "");
    printf("  %-14s  %s\n", "", option->help);
}

static void print_tensor(const locus_tensor_info *tensor)
{
    printf("  %-14s  [%s], %s; %s\n", tensor->name, tensor->shape,
           tensor->required ? "required" : "may be absent", level_text(tensor->levels));
    printf("  %-14s  %s\n", "", tensor->help);
}

static void print_details(const locus_scheme_info *scheme)
{
    printf("%s%s%s: %s\n\n", text_bold(), scheme->name, text_plain(), scheme->title);
    printf("formula   %s\nterms     ", scheme->formula);
    terms_list(scheme->terms);
    if (scheme->rule[0] != '\0') printf("\nrule      %s", scheme->rule);
    printf("\nscale     %s\ntraits    ", scheme->scale);
    print_traits(scheme->traits);
    printf("\ncitation  %s\n", scheme->citation);
    const locus_option_info *o;
    const locus_tensor_info *t;
    if (locus_scheme_option(scheme, 0)) printf("\n%soptions%s\n", text_bold(), text_plain());
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++) print_option(o);
    if (locus_scheme_tensor(scheme, 0)) printf("\n%stensors%s\n", text_bold(), text_plain());
    for (size_t i = 0; (t = locus_scheme_tensor(scheme, i)) != NULL; i++) print_tensor(t);
}

/* ---- JSON ---- */

static void json_levels(json *j, uint32_t levels)
{
    json_inline_array(j, "levels");
    if ((levels & LOCUS_ATTEND) != 0) json_text(j, NULL, "attend");
    if ((levels & LOCUS_LAYER) != 0) json_text(j, NULL, "layer");
    json_end(j);
}

static void json_option_values(json *j, const locus_option_info *option)
{
    char preset[64];
    if (option->kind == LOCUS_OPTION_CHOICE) {
        json_inline_array(j, "choices");
        for (const locus_choice *c = option->choices; c->name != NULL; c++)
            json_text(j, NULL, c->name);
        json_end(j);
    } else {
        json_real(j, "minimum", option->minimum);
        json_real(j, "maximum", option->maximum);
    }
    if (option->required)
        json_null(j, "default");
    else if (option->kind == LOCUS_OPTION_CHOICE)
        json_text(j, "default", option_default(preset, sizeof preset, option));
    else
        json_real(j, "default", option->preset);
}

static void json_option(json *j, const locus_option_info *option)
{
    static const char *const kinds[] = {
        [LOCUS_OPTION_INTEGER] = "integer",
        [LOCUS_OPTION_REAL] = "real",
        [LOCUS_OPTION_CHOICE] = "choice",
    };
    json_inline_object(j, NULL);
    json_text(j, "name", option->name);
    json_text(j, "help", option->help);
    json_text(j, "kind", kinds[option->kind]);
    json_levels(j, option->levels);
    json_boolean(j, "required", option->required);
    json_text(j, "with", option->with);
    json_option_values(j, option);
    json_end(j);
}

static void json_tensor(json *j, const locus_tensor_info *tensor)
{
    json_inline_object(j, NULL);
    json_text(j, "name", tensor->name);
    json_text(j, "help", tensor->help);
    json_text(j, "shape", tensor->shape);
    json_levels(j, tensor->levels);
    json_boolean(j, "required", tensor->required);
    json_end(j);
}

static void json_scheme(json *j, const locus_scheme_info *scheme)
{
    json_object(j, NULL);
    json_text(j, "name", scheme->name);
    json_text(j, "title", scheme->title);
    json_text(j, "formula", scheme->formula);
    json_text(j, "rule", scheme->rule);
    json_text(j, "scale", scheme->scale);
    terms_json(j, "terms", scheme->terms);
    json_inline_array(j, "traits");
    if ((scheme->traits & LOCUS_TRAIT_RELATIVE) != 0) json_text(j, NULL, "relative");
    if ((scheme->traits & LOCUS_TRAIT_SYMMETRIC) != 0) json_text(j, NULL, "symmetric");
    if ((scheme->traits & LOCUS_TRAIT_LEARNED) != 0) json_text(j, NULL, "learned");
    if ((scheme->traits & LOCUS_TRAIT_CAUSAL) != 0) json_text(j, NULL, "causal");
    if ((scheme->traits & LOCUS_TRAIT_COUNTED) != 0) json_text(j, NULL, "counted");
    json_end(j);
    json_array(j, "options");
    const locus_option_info *o;
    const locus_tensor_info *t;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++) json_option(j, o);
    json_end(j);
    json_array(j, "tensors");
    for (size_t i = 0; (t = locus_scheme_tensor(scheme, i)) != NULL; i++) json_tensor(j, t);
    json_end(j);
    json_text(j, "citation", scheme->citation);
    json_end(j);
}

static void print_json(const locus_scheme_info *only)
{
    json j = {.out = stdout};
    if (only != NULL) {
        json_scheme(&j, only);
        return;
    }
    json_array(&j, NULL);
    for (size_t i = 0; i < locus_scheme_count(); i++) json_scheme(&j, locus_scheme_at(i));
    json_end(&j);
}

/* ---- the command ---- */

static int schemes_run(int argc, char **argv)
{
    schemes_values values = {.name = NULL};
    const locus_scheme_info *only = NULL;
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_schemes, argc, argv, &values, &exit_code)) return exit_code;
    if (values.json && values.markdown)
        return cli_complain("schemes", CLI_USAGE, "--json and --markdown exclude each other");
    if (values.name != NULL) {
        only = locus_scheme_find(values.name);
        if (only == NULL) return cli_unknown_scheme("schemes", values.name);
    }
    if (values.json)
        print_json(only);
    else if (values.markdown)
        markdown_schemes(only);
    else if (only != NULL)
        print_details(only);
    else
        print_table();
    return CLI_DONE;
}

static const cli_example schemes_examples[] = {
    {"locus schemes", "every scheme in one table"},
    {"locus schemes t5", "formula, options, tensors and citation of one"},
    {"locus schemes --markdown > docs/schemes.md", "the generated documentation"},
    {NULL, NULL},
};

static const cli_option schemes_options[] = {
    {.name = "json",
     .help = "print the declarations as JSON: an array, or one object with NAME",
     .kind = CLI_FLAG,
     .offset = offsetof(schemes_values, json)},
    {.name = "markdown",
     .help = "print docs/schemes.md, or the section of NAME",
     .kind = CLI_FLAG,
     .offset = offsetof(schemes_values, markdown)},
    {.name = NULL},
};

const cli_command cmd_schemes = {
    .name = "schemes",
    .summary = "list the position schemes and what they declare",
    .description = "Prints what each scheme declares about itself: its formula, which of the eight "
                   "terms of the score it uses, its default scale, its options and tensors. A NAME "
                   "selects one scheme and shows everything about it.",
    .usage = "[NAME] [--json | --markdown]",
    .examples = schemes_examples,
    .options = schemes_options,
    .operand = {.name = "NAME",
                .help = "one scheme",
                .kind = CLI_SCHEME,
                .offset = offsetof(schemes_values, name)},
    .run = schemes_run,
};

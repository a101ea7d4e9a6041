/* SPDX-License-Identifier: Apache-2.0 */
/* --help, from the tables: examples first, then usage and options. */
#include <string.h>

#include "cli.h"
#include "text.h"

static void print_examples(const cli_example *examples)
{
    printf("%sExamples%s\n", text_bold(), text_plain());
    for (const cli_example *e = examples; e->command != NULL; e++)
        printf("  %s\n      %s\n", e->command, e->does);
    putchar('\n');
}

/* "-o, --output OUT" */
static size_t spell_option(char *buffer, size_t capacity, const cli_option *option)
{
    char letter[8] = "    ";
    if (option->letter != 0) snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(buffer, capacity, "%s--%s%s%s", letter, option->name,
             option->argument != NULL ? " " : "", option->argument != NULL ? option->argument : "");
    return strlen(buffer);
}

static size_t widest(const cli_option *options, size_t width)
{
    char spelt[64];
    for (const cli_option *o = options; o->name != NULL; o++) {
        const size_t length = spell_option(spelt, sizeof spelt, o);
        if (length > width) width = length;
    }
    return width;
}

static void print_options(const cli_option *options, size_t width)
{
    char spelt[64];
    for (const cli_option *o = options; o->name != NULL; o++) {
        spell_option(spelt, sizeof spelt, o);
        printf("  %-*s  %s\n", (int)width, spelt, o->help);
    }
}

/* Break a paragraph into lines of at most 80 columns. */
static void print_paragraph(FILE *out, const char *text)
{
    enum { COLUMNS = 80 };
    size_t used = 0;
    while (*text != '\0') {
        const size_t word = strcspn(text, " ");
        if (used > 0) fputc(used + 1 + word > COLUMNS ? '\n' : ' ', out);
        used = used > 0 && used + 1 + word <= COLUMNS ? used + 1 + word : word;
        fwrite(text, 1, word, out);
        text += word;
        text += strspn(text, " ");
    }
    fputs("\n\n", out);
}

void cli_print_help(const cli_command *command)
{
    const size_t width = widest(cli_common_options, widest(command->options, 0));
    printf("locus %s: %s\n\n", command->name, command->summary);
    print_examples(command->examples);
    printf("%sUsage%s\n  locus %s %s\n\n", text_bold(), text_plain(), command->name,
           command->usage);
    print_paragraph(stdout, command->description);
    printf("%sOptions%s\n", text_bold(), text_plain());
    if (command->operand.name != NULL)
        printf("  %-*s  %s\n", (int)width, command->operand.name, command->operand.help);
    if (command->rest.name != NULL)
        printf("  %-*s  %s\n", (int)width, command->rest.name, command->rest.help);
    print_options(command->options, width);
    print_options(cli_common_options, width);
}

static void print_commands(FILE *out)
{
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        fprintf(out, "  %-8s  %s\n", cli_commands[i]->name, cli_commands[i]->summary);
}

void cli_print_program_help(void)
{
    puts("locus: position-aware attention, exact and with gradients\n");
    printf("%sExamples%s\n", text_bold(), text_plain());
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        printf("  %s\n      %s\n", cli_commands[i]->examples[0].command,
               cli_commands[i]->examples[0].does);
    printf("\n%sCommands%s\n", text_bold(), text_plain());
    print_commands(stdout);
    printf("\n%sOptions%s\n", text_bold(), text_plain());
    print_options(cli_program_options, widest(cli_program_options, 0));
    puts("\n\"locus COMMAND --help\" tells more about a command.\n");
    printf("%sExit codes%s\n", text_bold(), text_plain());
    puts("  0 done, 1 a requested comparison failed, 2 usage, 3 input refused,\n"
         "  4 input/output or resources");
}

void cli_print_short_help(void)
{
    fputs("usage: locus COMMAND ...\n\n", stderr);
    print_commands(stderr);
    fputs("\n\"locus --help\" tells more.\n", stderr);
}

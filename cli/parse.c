/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a command line by the command's option table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "text.h"

enum { QUOTED = 160, CANDIDATES = 64 };

typedef struct parser {
    const cli_command *command;
    int argc, at; /* the argument being read */
    char **argv;
    char *values;     /* the command's struct            */
    int operand_seen; /* 1: the one operand was stored   */
    int exit_code;
} parser;

static int usage(parser *p, int exit_code)
{
    p->exit_code = exit_code;
    return 0;
}

/* ---- looking options up ---- */

static const cli_option *find_in(const cli_option *table, const char *name, size_t length,
                                 char letter)
{
    for (const cli_option *o = table; o->name != NULL; o++) {
        if (letter != 0 && o->letter == letter) return o;
        if (letter == 0 && strlen(o->name) == length && memcmp(o->name, name, length) == 0)
            return o;
    }
    return NULL;
}

static const cli_option *find_option(const cli_command *command, const char *name, size_t length,
                                     char letter)
{
    const cli_option *found = find_in(command->options, name, length, letter);
    return found != NULL ? found : find_in(cli_common_options, name, length, letter);
}

static int unknown_option(parser *p, const char *name, size_t length)
{
    const char *candidates[CANDIDATES];
    size_t count = 0;
    char word[64], quoted[QUOTED];
    snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), name);
    for (const cli_option *o = p->command->options; o->name && count < CANDIDATES; o++)
        candidates[count++] = o->name;
    for (const cli_option *o = cli_common_options; o->name && count < CANDIDATES; o++)
        candidates[count++] = o->name;
    const char *near = locus_nearest(word, candidates, count);
    text_quote(quoted, sizeof quoted, p->argv[p->at]);
    if (near != NULL)
        return usage(p,
                     cli_complain(p->command->name, CLI_USAGE,
                                  "unknown option \"%s\"; did you mean \"--%s\"?", quoted, near));
    return usage(p, cli_complain(p->command->name, CLI_USAGE,
                                 "unknown option \"%s\"; see \"locus %s --help\"", quoted,
                                 p->command->name));
}

/* ---- storing values ---- */

/* Digits only: strtoul would take signs, blanks and wrap. */
static int read_integer(const char *text, uint32_t *number)
{
    uint64_t value = 0;
    if (*text == '\0') return 0;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return 0;
        value = 10 * value + (uint64_t)(*text - '0');
        if (value > UINT32_MAX) return 0;
    }
    *number = (uint32_t)value;
    return 1;
}

static int store_integer(parser *p, const cli_option *option, const char *text)
{
    uint32_t number = 0;
    char quoted[QUOTED];
    if (!read_integer(text, &number) || number < option->minimum || number > option->maximum)
        return usage(p, cli_complain(p->command->name, CLI_USAGE,
                                     "--%s: expected a whole number from %u to %u, got \"%s\"",
                                     option->name, (unsigned)option->minimum,
                                     (unsigned)option->maximum,
                                     text_quote(quoted, sizeof quoted, text)));
    memcpy(p->values + option->offset, &number, sizeof number);
    return 1;
}

static int store_real(parser *p, const cli_option *option, const char *text)
{
    char *end = NULL, quoted[QUOTED];
    /* strtod also takes blanks, "inf", "nan" and hexadecimal: none is meant here. */
    const int plain = *text != '\0' && strspn(text, "0123456789.eE+-") == strlen(text);
    const double number = plain ? strtod(text, &end) : 0;
    if (!plain || *end != '\0' || !isfinite(number) || number <= 0)
        return usage(p, cli_complain(p->command->name, CLI_USAGE,
                                     "--%s: expected a number above 0, got \"%s\"", option->name,
                                     text_quote(quoted, sizeof quoted, text)));
    memcpy(p->values + option->offset, &number, sizeof number);
    return 1;
}

static int store_text(parser *p, const char *what, size_t offset, const char *text)
{
    if (*text == '\0')
        return usage(p, cli_complain(p->command->name, CLI_USAGE, "%s is empty", what));
    memcpy(p->values + offset, &text, sizeof text);
    return 1;
}

static int store_flag(parser *p, const cli_option *option)
{
    const int yes = 1;
    memcpy(p->values + option->offset, &yes, sizeof yes);
    return 1;
}

static int store_pair(parser *p, const cli_option *option, const char *text)
{
    cli_pairs *pairs = (cli_pairs *)(void *)(p->values + option->offset);
    const size_t room = sizeof pairs->text / sizeof *pairs->text;
    const char *equals = strchr(text, '=');
    char quoted[QUOTED];
    if (equals == NULL || equals == text)
        return usage(p, cli_complain(p->command->name, CLI_USAGE, "--%s: expected %s, got \"%s\"",
                                     option->name, option->argument,
                                     text_quote(quoted, sizeof quoted, text)));
    if (pairs->count == room)
        return usage(p, cli_complain(p->command->name, CLI_USAGE, "--%s: more than %zu of them",
                                     option->name, room));
    pairs->text[pairs->count++] = text;
    return 1;
}

static int store(parser *p, const cli_option *option, const char *text)
{
    char what[64];
    switch (option->kind) {
    case CLI_HELP: cli_print_help(p->command); return usage(p, CLI_DONE);
    case CLI_FLAG: return store_flag(p, option);
    case CLI_INTEGER: return store_integer(p, option, text);
    case CLI_REAL: return store_real(p, option, text);
    case CLI_PAIRS: return store_pair(p, option, text);
    case CLI_TEXT: memcpy(p->values + option->offset, &text, sizeof text); return 1;
    default:
        snprintf(what, sizeof what, "--%s: the %s", option->name, option->argument);
        return store_text(p, what, option->offset, text);
    }
}

/* ---- walking over the arguments ---- */

/* `attached` is what followed in the same word ("--name=x", "-ox"), or NULL. */
static int take_option(parser *p, const cli_option *option, const char *attached)
{
    const char *text = attached;
    if (option->argument == NULL && attached != NULL)
        return usage(p, cli_complain(p->command->name, CLI_USAGE, "--%s takes no argument",
                                     option->name));
    if (option->argument != NULL && attached == NULL) {
        if (p->at + 1 >= p->argc)
            return usage(p, cli_complain(p->command->name, CLI_USAGE, "--%s needs an argument: %s",
                                         option->name, option->argument));
        text = p->argv[++p->at];
    }
    return store(p, option, text);
}

static int take_long(parser *p, const char *word)
{
    const char *name = word + 2;
    const char *equals = strchr(name, '=');
    const size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    /* One letter means the same behind one dash and behind two. */
    const cli_option *option = length == 1 ? find_option(p->command, NULL, 0, name[0])
                                           : find_option(p->command, name, length, 0);
    if (option == NULL) return unknown_option(p, name, length);
    return take_option(p, option, equals != NULL ? equals + 1 : NULL);
}

static int take_short(parser *p, const char *word)
{
    const cli_option *option = find_option(p->command, NULL, 0, word[1]);
    if (option == NULL) return unknown_option(p, word + 1, strlen(word + 1));
    return take_option(p, option, word[2] != '\0' ? word + 2 : NULL);
}

static int take_rest(parser *p, const char *word)
{
    cli_words *words = (cli_words *)(void *)(p->values + p->command->rest.offset);
    const size_t room = sizeof words->text / sizeof *words->text;
    if (words->count == room)
        return usage(p, cli_complain(p->command->name, CLI_USAGE, "more than %zu arguments %s",
                                     room, p->command->rest.name));
    words->text[words->count++] = word;
    return 1;
}

static int take_operand(parser *p, const char *word)
{
    char quoted[QUOTED];
    const cli_operand *operand = &p->command->operand;
    if (p->operand_seen && p->command->rest.name != NULL) return take_rest(p, word);
    if (operand->name == NULL || p->operand_seen)
        return usage(p, cli_complain(p->command->name, CLI_USAGE,
                                     "unexpected argument \"%s\"; see \"locus %s --help\"",
                                     text_quote(quoted, sizeof quoted, word), p->command->name));
    p->operand_seen = 1;
    return store_text(p, operand->name, operand->offset, word);
}

static int take_word(parser *p, int *options_over)
{
    const char *word = p->argv[p->at];
    if (!*options_over && strcmp(word, "--") == 0) {
        *options_over = 1;
        return 1;
    }
    if (*options_over || word[0] != '-' || word[1] == '\0') return take_operand(p, word);
    return word[1] == '-' ? take_long(p, word) : take_short(p, word);
}

/* ---- outputs that would replace inputs ---- */

static int apart(parser *p, const char *output, const char *input)
{
    p->exit_code = input != NULL && strcmp(input, "-") != 0
                       ? cli_output_apart(p->command->name, output, input)
                       : CLI_DONE;
    return p->exit_code == CLI_DONE;
}

static const char *text_at(const parser *p, size_t offset)
{
    const char *text = NULL;
    memcpy(&text, p->values + offset, sizeof text);
    return text;
}

static int apart_from_inputs(parser *p, const char *output)
{
    const cli_command *c = p->command;
    for (const cli_option *o = c->options; o->name != NULL; o++)
        if (o->kind == CLI_INPUT && !apart(p, output, text_at(p, o->offset))) return 0;
    const int kind = (int)c->operand.kind; /* a scheme may be the folder of a model */
    if (c->operand.name != NULL && (kind == CLI_INPUT || kind == CLI_SCHEME) &&
        !apart(p, output, text_at(p, c->operand.offset)))
        return 0;
    if (c->rest.name == NULL || c->rest.kind != CLI_INPUT) return 1;
    const cli_words *words = (const cli_words *)(const void *)(p->values + c->rest.offset);
    for (size_t i = 0; i < words->count; i++)
        if (!apart(p, output, words->text[i])) return 0;
    return 1;
}

static int check_outputs(parser *p)
{
    for (const cli_option *o = p->command->options; o->name != NULL; o++)
        if (o->kind == CLI_OUTPUT && text_at(p, o->offset) != NULL &&
            !apart_from_inputs(p, text_at(p, o->offset)))
            return 0;
    return 1;
}

int cli_parse(const cli_command *command, int argc, char **argv, void *values, int *exit_code)
{
    parser p = {.command = command, .argc = argc, .argv = argv, .values = values};
    int options_over = 0;
    for (p.at = 0; p.at < argc; p.at++) {
        if (take_word(&p, &options_over)) continue;
        *exit_code = p.exit_code;
        return 0;
    }
    if (command->operand.required && !p.operand_seen) {
        *exit_code =
            cli_complain(command->name, CLI_USAGE, "%s is missing; see \"locus %s --help\"",
                         command->operand.name, command->name);
        return 0;
    }
    if (check_outputs(&p)) return 1;
    *exit_code = p.exit_code;
    return 0;
}

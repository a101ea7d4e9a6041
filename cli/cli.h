/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

/* Commands and their options as tables. Parsing, --help, "did you mean", the man
 * page and the completions are all read off these tables; there is no second list. */

#include <stdio.h>

#include <locus/locus.h>
#include <locus/plot.h>

/* Exit codes of the program (docs/cli.md). */
enum {
    CLI_DONE = 0,
    CLI_DIFFERENT = 1, /* a comparison that was asked for failed              */
    CLI_USAGE = 2,     /* the command line makes no sense                     */
    CLI_REFUSED = 3,   /* an input file breaks a rule                         */
    CLI_RESOURCES = 4, /* the system refused a file, memory or an output      */
    CLI_INTERNAL = 70, /* a bug of this program; never seen                   */
};

/* What an argument is: how it is checked, which type it is stored as, what a shell
 * offers to complete it. */
typedef enum cli_kind {
    CLI_FLAG,    /* int: 1 when given                                         */
    CLI_INTEGER, /* uint32_t in [minimum, maximum]                            */
    CLI_REAL,    /* double, finite and above 0                                */
    CLI_INPUT,   /* const char *: a file that is read                         */
    CLI_OUTPUT,  /* const char *: a file that is written                      */
    CLI_SCHEME,  /* const char *: a name that locus_scheme_at knows           */
    CLI_ISA,     /* const char *: a name that locus_isa_name knows            */
    CLI_COMMAND, /* const char *: a name in cli_commands                      */
    CLI_LIST,    /* const char *: words or numbers with commas between        */
    CLI_TEXT,    /* const char *: any text, also none                         */
    CLI_PAIRS,   /* cli_pairs: NAME=VALUE, may be given more than once        */
    CLI_HELP,    /* print the command's help and stop; stores nothing         */
} cli_kind;

typedef struct cli_option {
    const char *name;     /* long name without its dashes; NULL ends a table  */
    char letter;          /* short name, 0: none                              */
    const char *argument; /* as the help spells it, NULL for a flag           */
    const char *help;     /* one line                                         */
    cli_kind kind;
    uint32_t minimum, maximum;          /* of CLI_INTEGER                              */
    size_t offset;                      /* of the field in the command's own struct    */
    const char *(*value)(size_t index); /* what a shell offers, where the kind does not say;
                                           NULL beyond the end                 */
} cli_option;

/* What CLI_PAIRS collects. */
typedef struct cli_pairs {
    size_t count;
    const char *text[16]; /* each holds a '=' that is not its first letter */
} cli_pairs;

/* What further arguments without dashes become. */
typedef struct cli_words {
    size_t count;
    const char *text[256];
} cli_words;

/* The one argument without dashes that a command may take. */
typedef struct cli_operand {
    const char *name; /* "CASE"; NULL: the command takes none                 */
    const char *help;
    cli_kind kind;
    int required;
    size_t offset;
} cli_operand;

typedef struct cli_example {
    const char *command; /* NULL ends a list */
    const char *does;
} cli_example;

typedef struct cli_command {
    const char *name;
    const char *summary;     /* after the name in lists, no capital, no full stop */
    const char *description; /* a paragraph for --help and the man page           */
    const char *usage;       /* what follows "locus NAME"                         */
    const cli_example *examples;
    const cli_option *options;
    cli_operand operand;
    cli_operand rest; /* arguments after it, a cli_words; name NULL: it takes none */
    int (*run)(int argc, char **argv); /* arguments after the name; an exit code  */
} cli_command;

extern const cli_command *const cli_commands[]; /* ends with NULL                      */
extern const cli_option cli_common_options[];   /* taken by every command              */
extern const cli_option cli_program_options[];  /* of "locus" itself, before a command */

const cli_command *cli_command_find(const char *name);

/* Read the arguments into `values`, the command's own struct, which the caller
 * has filled with defaults. 0: stop and exit with *exit_code (usage, or --help). */
int cli_parse(const cli_command *command, int argc, char **argv, void *values, int *exit_code);

/* "locus NAME: text" in one line on stderr; returns `exit_code`. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int cli_complain(const char *command, int exit_code, const char *format, ...);

/* Report a failure of the library: its status decides the exit code. `path` is put in
 * front of the text unless the text already starts with it; NULL: no file involved. */
int cli_report(const char *command, locus_status status, const char *path,
               const locus_error *error);

/* "unknown scheme ...; did you mean ...?"; returns CLI_USAGE. */
int cli_unknown_scheme(const char *command, const char *name);

/* output.c: a file under construction. It gets its name when it is whole: the old file or
 * the new one, never a part; devices, FIFOs and folders are not replaced. */
typedef struct cli_output {
    const char *path;
    FILE *file;         /* NULL: could not be opened; cli_output_finish says so */
    int code;           /* errno of what failed, 0: nothing                     */
    const char *reason; /* what failed where that says more; NULL               */
    char part[4096];
} cli_output;
void cli_output_begin(cli_output *output, const char *path);
/* Close and rename it; an exit code. */
int cli_output_finish(cli_output *output, const char *command);

/* An output must not be a file that is read, nor have a name that models are read from, in the folder
 * of one: one line, and CLI_USAGE. cli_parse asks this of every CLI_OUTPUT and CLI_INPUT. */
int cli_output_apart(const char *command, const char *output, const char *input);

/* A picture into the file `path`, NULL: to stdout; an exit code. */
int cli_write_figure(const char *command, const locus_figure *figure, locus_format format,
                     const locus_render *render, const char *path);

/* settings.c: what --option takes, "pairing=half" or "buckets=", of all schemes; NULL beyond the
 * end. The text lasts until the next call. */
const char *cli_setting_at(size_t index);

/* help.c and generate.c */
void cli_print_help(const cli_command *command);
void cli_print_program_help(void);
void cli_print_short_help(void);
int cli_generate(const char *what);

#endif

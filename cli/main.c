/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700 /* SIGXFSZ */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "serve/serve.h"
#include "text.h"

const cli_command *const cli_commands[] = {
    &cmd_attend, &cmd_schemes, &cmd_plot,    &cmd_explain,  &cmd_inspect,
    &cmd_run,    &cmd_compare, &cmd_convert, &cmd_tokenize, &cmd_serve,
    &cmd_demo,   &cmd_lab,     &cmd_bench,   &cmd_help,     NULL,
};

const cli_option cli_common_options[] = {
    {.name = "help", .letter = 'h', .help = "print this help", .kind = CLI_HELP},
    {.name = NULL},
};

/* main below acts on these by name. */
const cli_option cli_program_options[] = {
    {.name = "help", .letter = 'h', .help = "print help", .kind = CLI_HELP},
    {.name = "version", .help = "print the version, instruction set and threads", .kind = CLI_FLAG},
    {.name = NULL},
};

const cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        if (strcmp(cli_commands[i]->name, name) == 0) return cli_commands[i];
    return NULL;
}

/* ---- locus help [COMMAND] ---- */

typedef struct help_values {
    const char *command;
} help_values;

static int unknown_command(const char *word)
{
    const char *names[32];
    char quoted[160];
    size_t count = 0;
    while (cli_commands[count] != NULL && count < 32) {
        names[count] = cli_commands[count]->name;
        count++;
    }
    const char *near = locus_nearest(word, names, count);
    text_quote(quoted, sizeof quoted, word);
    if (near != NULL)
        return cli_complain(NULL, CLI_USAGE, "unknown command \"%s\"; did you mean \"%s\"?", quoted,
                            near);
    return cli_complain(NULL, CLI_USAGE, "unknown command \"%s\"; see \"locus --help\"", quoted);
}

static int help_run(int argc, char **argv)
{
    help_values values = {NULL};
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_help, argc, argv, &values, &exit_code)) return exit_code;
    if (values.command == NULL) {
        cli_print_program_help();
        return CLI_DONE;
    }
    const cli_command *command = cli_command_find(values.command);
    if (command == NULL) return unknown_command(values.command);
    cli_print_help(command);
    return CLI_DONE;
}

static const cli_example help_examples[] = {
    {"locus help attend", "the same as locus attend --help"},
    {NULL, NULL},
};

static const cli_option help_options[] = {{.name = NULL}};

const cli_command cmd_help = {
    .name = "help",
    .summary = "print the help of a command",
    .description = "Prints what --help prints.",
    .usage = "[COMMAND]",
    .examples = help_examples,
    .options = help_options,
    .operand = {.name = "COMMAND",
                .help = "one of the commands of locus",
                .kind = CLI_COMMAND,
                .offset = offsetof(help_values, command)},
    .run = help_run,
};

/* ---- locus --version ---- */

static int print_version(void)
{
    const char *isa = locus_isa_pick(NULL);
    if (isa == NULL)
        return cli_complain(NULL, CLI_USAGE, "LOCUS_ISA does not name an instruction set");
    printf("locus %s\n", locus_version());
    printf("instruction set: %s (of", isa);
    for (size_t i = 0; locus_isa_name(i) != NULL; i++)
        printf(" %s%s", locus_isa_name(i),
               locus_isa_available(locus_isa_name(i)) ? "" : " (not on this CPU)");
    printf(")\nthreads: %u (%s)\n", (unsigned)locus_default_threads(),
           locus_has_threads() ? "OpenMP" : "serial build");
    if (serve_library() != NULL) printf("http: libmicrohttpd %s\n", serve_library());
    return CLI_DONE;
}

/* ---- the program ---- */

static int unknown_program_option(const char *word)
{
    const char *names[8];
    char quoted[160];
    size_t count = 0;
    for (const cli_option *o = cli_program_options; o->name != NULL && count < 8; o++)
        names[count++] = o->name;
    const char *near = locus_nearest(word + strspn(word, "-"), names, count);
    text_quote(quoted, sizeof quoted, word);
    if (near != NULL)
        return cli_complain(NULL, CLI_USAGE, "unknown option \"%s\"; did you mean \"--%s\"?",
                            quoted, near);
    return cli_complain(NULL, CLI_USAGE, "unknown option \"%s\"; see \"locus --help\"", quoted);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        cli_print_short_help();
        return CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        cli_print_program_help();
        return CLI_DONE;
    }
    if (strcmp(word, "--version") == 0) return print_version();
    /* For packagers: man, bash, zsh, fish. */
    if (strcmp(word, "--generate") == 0) return cli_generate(argc > 2 ? argv[2] : "");
    if (word[0] == '-') return unknown_program_option(word);
    const cli_command *command = cli_command_find(word);
    if (command == NULL) return unknown_command(word);
    return command->run(argc - 2, argv + 2);
}

/* stdio reports a full disk or a closed pipe only when it is asked. */
static int finish(int exit_code)
{
    errno = 0;
    const int failed_before = ferror(stdout);
    if (failed_before) (void)fputc('\n', stdout); /* closing will meet the reason again */
    const int failed_now = fclose(stdout) != 0;
    if (!failed_before && !failed_now) return exit_code;
    if (exit_code > CLI_DIFFERENT) return exit_code; /* has had its line already */
    const char *reason = failed_now && errno != 0 ? strerror(errno) : "writing failed";
    fprintf(stderr, "locus: standard output: %s\n", reason);
    return CLI_RESOURCES;
}

/* A standard stream that is closed gives its number to the next file, and what is meant for it goes
 * there. So it is opened, for what it is not for: using it fails as before. */
static int open_standard(void)
{
    struct stat about;
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fstat(i, &about) != 0 && errno == EBADF &&
            open("/dev/null", i == STDIN_FILENO ? O_WRONLY : O_RDONLY) != i)
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    if (!open_standard()) return CLI_RESOURCES;
    /* A closed pipe and a file that is too large are errors of writing like any other, not a silent
     * death. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    return finish(run(argc, argv));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* locus demo: every scheme on one sentence and on a larger problem, judged by the oracle, timed
 * against plain attention; and a page that teaches the subject with these numbers in it. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "demo.h"
#include "digest.h"
#include "page.h"
#include "text.h"

typedef struct demo_values {
    const char *output;
    int quick, json, digest;
} demo_values;

enum { PATH = 4000 };

static int refuse(const char *path, int reason)
{
    char quoted[160];
    return cli_complain("demo", CLI_RESOURCES, "%s: %s", text_quote(quoted, sizeof quoted, path),
                        strerror(reason));
}

/* Removes the folders that make_folder made: those of `page` that are at least `made` long. */
static void remove_folders(char *page, size_t made)
{
    for (char *slash; made > 0 && (slash = strrchr(page, '/')) != NULL;) {
        *slash = '\0';
        if (strlen(page) < made || (rmdir(page) != 0 && errno != ENOENT)) return;
    }
}

/* The folder with its parents, and the name of the page in it; *made is the length of the first that
 * was not there, 0: all were. Said before anything is computed: a folder that cannot be written
 * to. An exit code. */
static int make_folder(char *page, const char *folder, size_t *made)
{
    const int length = snprintf(page, PATH, "%s", folder);
    if (length <= 0 || length >= PATH - 16)
        return refuse(folder, length <= 0 ? ENOENT : ENAMETOOLONG);
    for (char *slash = page + 1;; slash++) {
        if (*slash != '/' && *slash != '\0') continue;
        const char kept = *slash;
        *slash = '\0';
        const int reason = mkdir(page, 0777) == 0 ? 0 : errno;
        if (reason == 0 && *made == 0) *made = strlen(page);
        if (reason != 0 && reason != EEXIST && reason != EISDIR) return refuse(page, reason);
        *slash = kept;
        if (kept == '\0') break;
    }
    struct stat about;
    if (stat(page, &about) != 0) return refuse(page, errno);
    if (!S_ISDIR(about.st_mode)) return refuse(page, ENOTDIR);
    if (access(page, W_OK | X_OK) != 0) return refuse(page, errno);
    snprintf(page + length, PATH - (size_t)length, "%sindex.html",
             page[length - 1] == '/' ? "" : "/");
    return CLI_DONE;
}

static int verdict(const demo *d)
{
    size_t wrong = 0;
    for (size_t i = 0; i < d->count; i++) wrong += demo_exact(d, &d->outcomes[i]) ? 0 : 1;
    if (wrong == 0) return CLI_DONE;
    return cli_complain("demo", CLI_DIFFERENT, "%zu of %zu schemes differ from the oracle", wrong,
                        d->count);
}

static int demo_run(int argc, char **argv)
{
    demo_values values = {0};
    static char path[PATH];
    demo d = {.outcomes = NULL};
    size_t made = 0;
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_demo, argc, argv, &values, &exit_code)) return exit_code;
    if (locus_isa_pick(NULL) == NULL)
        return cli_complain("demo", CLI_USAGE, "LOCUS_ISA does not name an instruction set");
    if (values.digest && (values.output != NULL || values.quick))
        return cli_complain("demo", CLI_USAGE, "--digest goes without --output and --quick");
    if (values.digest) return digest_run(values.json);
    const char *page = values.output != NULL ? path : NULL;
    if (page != NULL) exit_code = make_folder(path, values.output, &made);
    if (exit_code == CLI_DONE) exit_code = demo_run_all(&d, values.quick);
    if (exit_code == CLI_DONE && page != NULL) exit_code = page_write(&d, page);
    if (exit_code != CLI_DONE) remove_folders(path, made);
    if (exit_code == CLI_DONE) {
        if (values.json)
            demo_print_json(&d, page);
        else
            demo_print_table(&d, page);
        exit_code = verdict(&d);
    }
    demo_free(&d);
    return exit_code;
}

static const cli_example demo_examples[] = {
    {"locus demo", "every scheme, judged and timed"},
    {"locus demo -o build/demo", "and build/demo/index.html, a page that explains them"},
    {"locus demo --quick", "the same with rough times"},
    {"locus demo --json", "the same for a program"},
    {"locus demo --digest", "does this machine compute the bits that others do?"},
    {NULL, NULL},
};

static const cli_option demo_options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FOLDER",
     .help = "write FOLDER/index.html, a page that teaches the schemes with these numbers",
     .kind = CLI_OUTPUT,
     .offset = offsetof(demo_values, output)},
    {.name = "quick",
     .help = "a smaller problem and a few turns of the stopwatch",
     .kind = CLI_FLAG,
     .offset = offsetof(demo_values, quick)},
    {.name = "digest",
     .help = "instead: the bits of a fixed list of results, beside those that are stored",
     .kind = CLI_FLAG,
     .offset = offsetof(demo_values, digest)},
    {.name = "json", .help = "print JSON", .kind = CLI_FLAG, .offset = offsetof(demo_values, json)},
    {.name = NULL},
};

const cli_command cmd_demo = {
    .name = "demo",
    .summary = "every scheme on a built-in sentence, judged and timed",
    .description =
        "Runs every scheme forward and backward, on a built-in sentence with seeded weights and "
        "on a larger random problem, compares outputs and gradients with the oracle in double "
        "precision, and measures time and memory against plain attention. With --output it also "
        "writes one page that walks through the schemes: formula, picture, code and the cost on "
        "this machine. The page needs no network and no script. Exit code 1 where an error on "
        "the sentence is above 5e-6 (outputs) or 2e-5 (gradients), or on the larger problem "
        "above 2e-5 or 1e-4. With --digest it prints one number for the bits of each of a fixed "
        "list of results (every scheme forward and backward, layers, training steps), which are "
        "the same on every processor with fused multiply-add; exit code 1 where one is not that "
        "of the source tree.",
    .usage = "[-o FOLDER] [--quick] [--digest] [--json]",
    .examples = demo_examples,
    .options = demo_options,
    .run = demo_run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* constants.txt lists every named integer constant of the sources (constants.h), says what it is,
 * and names the test that stands on both sides of it. One without a line fails here, and so does
 * a line without its constant or its test. */

#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bounds/constants.h"
#include "support/check.h"

enum { MOST_LINES = 1000 };
typedef struct line {
    char name[100], kind[16], text[200];
    int used;
} line;

static line lines[MOST_LINES];
static size_t line_count;

/* FOLDER/NAME,NAME,...: an entry for each name. */
static void add_names(const char *names, const char *kind, const char *text)
{
    const size_t folder = strcspn(names, "/");
    if (!CHECK(names[folder] == '/', "not FOLDER/NAME: %s", names)) return;
    for (const char *at = names + folder; *at != '\0' && line_count < MOST_LINES;) {
        const size_t length = strcspn(++at, ",");
        line *l = &lines[line_count++];
        memset(l, 0, sizeof *l);
        snprintf(l->name, sizeof l->name, "%.*s/%.*s", (int)folder, names, (int)length, at);
        snprintf(l->kind, sizeof l->kind, "%s", kind);
        snprintf(l->text, sizeof l->text, "%s", text);
        at += length;
    }
}

static void read_lines(const char *path)
{
    FILE *file = fopen(path, "r");
    char row[1024], names[512], kind[16], text[200];
    if (!CHECK(file != NULL, "%s is missing", path)) return;
    while (fgets(row, sizeof row, file) != NULL)
        if (row[0] != '#' && row[0] != '\n' &&
            CHECK(sscanf(row, "%511s %15s %199[^\n]", names, kind, text) == 3,
                  "not NAMES KIND TEXT: %s", row))
            add_names(names, kind, text);
    CHECK(line_count < MOST_LINES, "more than %d names", MOST_LINES - 1);
    fclose(file);
}

static line *find_line(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (size_t i = 0; i < line_count; i++)
        if (strcmp(lines[i].name, path) == 0) return &lines[i];
    return NULL;
}

/* How many constants under `root` have no line. */
static size_t strangers(const char *root, int report)
{
    size_t count = 0, missing = 0;
    named_constant *all = constants_read(root, &count);
    for (size_t i = 0; i < count; i++) {
        line *l = find_line(all[i].folder, all[i].name);
        if (l != NULL) l->used = 1;
        missing += l == NULL;
        if (report)
            CHECK(l != NULL, "%s/%s = %s (%s): add a line to tests/bounds/constants.txt",
                  all[i].folder, all[i].name, all[i].text, all[i].file);
    }
    if (report) CHECK(count > 100, "only %zu constants were found", count);
    free(all);
    return missing;
}

/* The test that a line names mentions the constant. */
static void check_mention(const line *l)
{
    char path[512], text[4096];
    const char *name = strchr(l->name, '/') + 1;
    snprintf(path, sizeof path, "%s/%.*s", LOCUS_TEST_SOURCE_DIR, (int)strcspn(l->text, " "),
             l->text);
    FILE *file = fopen(path, "r");
    if (!CHECK(file != NULL, "%s: there is no %s", l->name, path)) return;
    int found = 0;
    while (!found && fgets(text, sizeof text, file) != NULL) found = strstr(text, name) != NULL;
    fclose(file);
    CHECK(found, "%s does not mention %s", path, name);
}

static int is_tested(const line *l)
{
    return strcmp(l->kind, "cut") == 0 || strcmp(l->kind, "limit") == 0;
}

/* A tree with one file. */
static size_t strangers_in(const char *text)
{
    char root[] = "/tmp/locus-constants-XXXXXX", path[128];
    if (mkdtemp(root) == NULL) exit(2);
    static const char *const folders[] = {"src", "src/io"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        mkdir(path, 0700);
    }
    snprintf(path, sizeof path, "%s/src/io/new.c", root);
    FILE *file = fopen(path, "w");
    if (file == NULL) exit(2);
    fputs(text, file);
    fclose(file);
    const size_t missing = strangers(root, 0);
    remove(path);
    for (size_t i = 2; i-- > 0;) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        remove(path);
    }
    remove(root);
    return missing;
}

static void test_planted(void)
{
    static const struct {
        const char *text;
        size_t missing;
    } planted[] = {
        {"enum { NOBODY_LISTED = 64 };\n", 1},
        {"static void f(void)\n{\n    enum { A = 1 << 4, B, C = 2 * A };\n}\n", 2},
        {"#define NOBODY_LISTED ((size_t)1 << 20)\n", 1},
        {"static const int64_t nobody_listed = 100;\n", 1},
        {"/* enum { A = 1 }; */ static const char text[] = \"enum { B = 2 };\";\n", 0},
        {"typedef enum kind { FIRST = 1 } kind;\n#define WORD \"x\"\n#define F(x) (x)\n", 0},
        {"enum { COUNT = sizeof list / sizeof *list };\n", 0},
        {"enum { CHUNK = 12 };\n", 0},
    };
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        if (!check_begin("bounds/constants/planted/%zu", i)) continue;
        const size_t missing = strangers_in(planted[i].text);
        CHECK(missing == planted[i].missing, "%zu of %zu found in: %s", missing, planted[i].missing,
              planted[i].text);
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    if (check_begin("bounds/constants/listed")) {
        read_lines(LOCUS_TEST_SOURCE_DIR "/tests/bounds/constants.txt");
        strangers(LOCUS_TEST_SOURCE_DIR, 1);
        for (size_t i = 0; i < line_count; i++)
            CHECK(lines[i].used, "%s: the sources have no such constant", lines[i].name);
    }
    if (check_begin("bounds/constants/tested"))
        for (size_t i = 0; i < line_count; i++) {
            const line *l = &lines[i];
            if (is_tested(l)) check_mention(l);
            CHECK(is_tested(l) || strcmp(l->kind, "room") == 0 || strcmp(l->kind, "fixed") == 0,
                  "%s: kind %s, expected cut, limit, room or fixed", l->name, l->kind);
        }
    test_planted();
    return check_finish("bounds/constants");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The harness must fail when it should. Each scenario runs in a child before the
 * parent starts its own count; the parent looks at the exit code and the text. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

static void good(void)
{
    if (check_begin("x/one")) CHECK(1 + 1 == 2, "sum");
    if (check_begin("x/two")) CHECK(1, "true");
}

static void one_failure(void)
{
    if (check_begin("x/one")) {
        CHECK(0, "got %d", 42);
        CHECK(1, "goes on");
    }
    good();
}

static void nothing(void) {}

static void empty_case(void)
{
    good();
    if (check_begin("x/empty")) return;
}

static void skipped(void)
{
    if (check_begin("x/one")) check_skip("no %s here", "clang");
}

static void skipped_after_failure(void)
{
    if (check_begin("x/one")) {
        CHECK(0, "wrong");
        check_skip("a skip hides no failure");
    }
}

static void outside(void) { CHECK(1, "no case is open"); }

static void many(void)
{
    if (check_begin("x/many"))
        for (int i = 0; i < 100; i++) CHECK(0, "number %d", i);
}

static void cut_off(void)
{
    good();
    if (check_begin("x/slow")) raise(SIGTERM);
}

static const struct scenario {
    const char *name;
    void (*run)(void);
    const char *filter;
    int exit_code;       /* 128 + n: ended by signal n */
    const char *text[2]; /* what the output must contain; the first ends it */
} scenarios[] = {
    {"passes", good, NULL, 0, {"x: 2 passed, 0 failed, 0 skipped\n", ""}},
    {"fails", one_failure, NULL, 1, {"x: 2 passed, 1 failed, 0 skipped\n", "got 42\n"}},
    {"nothing-ran", nothing, NULL, 1, {"x: 0 passed, 1 failed, 0 skipped\n", "no case ran"}},
    {"empty-case", empty_case, NULL, 1, {"x: 2 passed, 1 failed, 0 skipped\n", "FAIL x/empty"}},
    {"skip",
     skipped,
     NULL,
     0,
     {"x: 0 passed, 0 failed, 1 skipped\n", "SKIP x/one: no clang here\n"}},
    {"fail-then-skip", skipped_after_failure, NULL, 1, {"x: 0 passed, 1 failed, 0 skipped\n", ""}},
    {"outside", outside, NULL, 1, {"x: 0 passed, 1 failed, 0 skipped\n", "outside a case"}},
    {"many", many, NULL, 1, {"x: 0 passed, 1 failed, 0 skipped\n", "92 more failures"}},
    {"filter", good, "two", 0, {"x: 1 passed, 0 failed, 0 skipped\n", ""}},
    {"filter-finds-nothing", good, "three", 1, {"x: 0 passed, 1 failed, 0 skipped\n", "three"}},
    {"cut-off", cut_off, NULL, 128 + SIGTERM, {"CUT OFF in x/slow\n", ""}},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static int run_child(const struct scenario *s, char *text, size_t capacity)
{
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0) return -1;
    const pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        char filter[32] = "", name[] = "x", *arguments[] = {name, filter, NULL};
        if (s->filter != NULL) snprintf(filter, sizeof filter, "%s", s->filter);
        if (dup2(ends[1], STDOUT_FILENO) < 0) _exit(99);
        if (!check_args(s->filter != NULL ? 2 : 1, arguments)) _exit(98);
        s->run();
        const int code = check_finish("x");
        fflush(stdout);
        _exit(code);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while (used + 1 < capacity && (got = read(ends[0], text + used, capacity - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    int status = 0;
    if (waitpid(child, &status, 0) != child) return -1;
    if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
    return WEXITSTATUS(status);
}

static int ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

int main(int argc, char **argv)
{
    static char text[SCENARIOS][8192];
    int code[SCENARIOS];
    for (size_t i = 0; i < SCENARIOS; i++)
        code[i] = run_child(&scenarios[i], text[i], sizeof text[i]);

    if (!check_args(argc, argv)) return 2;
    for (size_t i = 0; i < SCENARIOS; i++) {
        const struct scenario *s = &scenarios[i];
        if (!check_begin("check/%s", s->name)) continue;
        CHECK(code[i] == s->exit_code, "exit code %d, not %d", code[i], s->exit_code);
        CHECK(ends_with(text[i], s->text[0]), "ends with: %s", text[i]);
        CHECK(strstr(text[i], s->text[1]) != NULL, "lacks \"%s\": %s", s->text[1], text[i]);
    }
    return check_finish("support/check");
}

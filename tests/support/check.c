/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "support/check.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES_PER_CASE = 8 };

static const char *filter;
static struct {
    char name[256];
    int open, checks, failures, skipped;
} current;
static int passed, failed, skipped;

/* The runner's time limit: say which case it was, then end as anybody would. */
static void cut_off(int number)
{
    static const char text[] = "CUT OFF in ";
    ssize_t ignored = write(STDOUT_FILENO, text, sizeof text - 1);
    ignored = write(STDOUT_FILENO, current.name, strlen(current.name));
    ignored = write(STDOUT_FILENO, "\n", 1);
    (void)ignored;
    signal(number, SIG_DFL);
    raise(number);
}

int check_args(int argc, char **argv)
{
    if (argc > 2) {
        fprintf(stderr, "usage: %s [PART-OF-A-CASE-NAME]\n", argv[0]);
        return 0;
    }
    filter = argc == 2 ? argv[1] : NULL;
    struct sigaction action = {.sa_handler = cut_off};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    return 1;
}

static void end_case(void)
{
    if (!current.open) return;
    current.open = 0;
    if (current.checks == 0 && !current.skipped) {
        printf("FAIL %s: the case checked nothing\n", current.name);
        current.failures = 1;
    }
    if (current.failures > MESSAGES_PER_CASE)
        printf("FAIL %s: %d more failures\n", current.name, current.failures - MESSAGES_PER_CASE);
    if (current.failures > 0)
        failed++;
    else if (current.skipped)
        skipped++;
    else
        passed++;
    fflush(stdout);
}

int check_begin(const char *format, ...)
{
    end_case();
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(current.name, sizeof current.name, format, arguments);
    va_end(arguments);
    if (filter != NULL && strstr(current.name, filter) == NULL) return 0;
    current.open = 1;
    current.checks = current.failures = current.skipped = 0;
    return 1;
}

int check_that(int truth, const char *file, int line, const char *format, ...)
{
    if (!current.open) {
        printf("FAIL %s:%d: a CHECK outside a case\n", file, line);
        failed++;
        return truth;
    }
    current.checks++;
    if (truth) return 1;
    if (++current.failures <= MESSAGES_PER_CASE) {
        printf("FAIL %s at %s:%d: ", current.name, file, line);
        va_list arguments;
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        printf("\n");
        fflush(stdout);
    }
    return 0;
}

void check_skip(const char *format, ...)
{
    if (current.open) current.skipped = 1;
    printf("SKIP %s: ", current.name);
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

static int is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

int check_sample(void) { return is_set("LOCUS_TEST_SAMPLE"); }

int check_full(void) { return is_set("LOCUS_TEST_FULL") && !check_sample(); }

int check_finish(const char *suite)
{
    end_case();
    const int ran = passed + failed + skipped;
    if (ran == 0) {
        printf("FAIL %s: no case ran%s%s\n", suite, filter != NULL ? " for filter " : "",
               filter != NULL ? filter : "");
        failed = 1;
    }
    printf("%s: %d passed, %d failed, %d skipped\n", suite, passed, failed, skipped);
    return failed == 0 ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_CHECK_H
#define LOCUS_TESTS_CHECK_H

/* A small test harness. A test program is
 *
 *     int main(int argc, char **argv)
 *     {
 *         if (!check_args(argc, argv)) return 2;
 *         if (check_begin("files/F%02d", 7)) CHECK(sum == 3, "sum is %d", sum);
 *         return check_finish("files");
 *     }
 *
 * A case passes when it made at least one CHECK and none failed; a case that
 * checked nothing and was not skipped fails. A program in which no case ran
 * fails too. One thread only. */

/* An optional argv[1] keeps the cases whose name contains it ("files/F07").
 * Returns 1; with a usage message on stderr, 0 when there are more arguments. From then on
 * SIGTERM, with which tests/run.sh ends a suite that takes too long, names the case. */
int check_args(int argc, char **argv);

/* Start a case and end the one before. 1: run it; 0: the filter leaves it out. */
int check_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An int: the truth of `condition`. On failure prints the case, the place and the
 * message (the first few of a case; the rest are counted), and goes on. */
#define CHECK(condition, ...) check_that((condition) ? 1 : 0, __FILE__, __LINE__, __VA_ARGS__)
int check_that(int truth, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The current case cannot run here. A failed CHECK before or after still fails it. */
void check_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How much to run: a sample of the grid (sanitizer builds), all of it, or neither. */
int check_sample(void); /* LOCUS_TEST_SAMPLE is set to something other than 0 */
int check_full(void);   /* LOCUS_TEST_FULL is, and LOCUS_TEST_SAMPLE is not   */

/* Print "SUITE: N passed, N failed, N skipped" as the last line. Returns the exit
 * code: 0 when nothing failed and at least one case passed or was skipped. */
int check_finish(const char *suite);

#endif

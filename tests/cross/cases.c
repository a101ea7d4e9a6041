/* SPDX-License-Identifier: Apache-2.0 */
/* cases FILE...: run case files and compare with what they expect, by public names alone, as a program of
 * another system does; a result is written and read back. "N held" on the last line; exit 1 if one does not. */
#include <locus/locus.h>
#include <stdio.h>

static int fail(const char *path, const locus_error *error)
{
    printf("%s: %s\n", path, error->text);
    return 0;
}

static int compare(const locus_case *c, const char *path, locus_error *error)
{
    size_t compared = 0;
    for (size_t i = 0; i < locus_case_result_count(c); i++) {
        locus_case_difference d = {.size = sizeof d};
        if (locus_case_compare(c, i, &d, error) != LOCUS_OK) return fail(path, error);
        if (d.expected && !d.passed) {
            printf("%s: %s: %g apart\n", path, locus_case_result_name(c, i), d.worst);
            return 0;
        }
        compared += d.expected != 0;
    }
    if (compared == 0) printf("%s: expects nothing\n", path);
    return compared > 0;
}

static int holds(const char *path)
{
    locus_case *c = NULL;
    locus_error error = {""};
    const locus_case_run_options run = {.size = sizeof run};
    if (locus_case_load(&c, path, NULL, &error) != LOCUS_OK) return fail(path, &error);
    int held =
        locus_case_run(c, &run, &error) == LOCUS_OK ? compare(c, path, &error) : fail(path, &error);
    if (held && locus_case_save(c, "results.safetensors", &error) != LOCUS_OK)
        held = fail(path, &error);
    locus_case_free(c);
    return held;
}

int main(int argc, char **argv)
{
    int held = 0;
    for (int i = 1; i < argc; i++) held += holds(argv[i]);
    printf("%d held\n", held);
    return held == argc - 1 && held > 0 ? 0 : 1;
}

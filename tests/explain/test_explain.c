/* SPDX-License-Identifier: Apache-2.0 */

/* What explain says against what attention does: on every golden case and on random
 * problems of every scheme, at both levels, with the kernels and with the oracle. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locus/case.h>

#include "contract/variants.h"
#include "explain/judge.h"
#include "golden/folder.h"
#include "layer/specs.h"
#include "support/check.h"

/* The kernels' tolerance of the golden cases; the oracle's error is that of sums in another
 * order. */
static const double float_tolerance = 5e-6, oracle_tolerance = 1e-10;

static locus_results results_of(const locus_case *loaded)
{
    locus_results results = {.size = sizeof results, .out = {.rank = 0}};
    for (size_t i = 0; i < locus_case_result_count(loaded); i++) {
        const char *name = locus_case_result_name(loaded, i);
        if (strcmp(name, "out") == 0) results.out = *locus_case_result(loaded, i);
        if (strcmp(name, "lse") == 0) results.lse = *locus_case_result(loaded, i);
    }
    return results;
}

static void explain_case(const char *name)
{
    char path[GOLDEN_PATH];
    locus_case *loaded = NULL;
    locus_error error = {""};
    locus_case_run_options options = {.size = sizeof options};
    snprintf(path, sizeof path, "%s/%s", golden_folder(), name);
    if (!CHECK(locus_case_load(&loaded, path, NULL, &error) == LOCUS_OK, "%s", error.text)) return;
    locus_status status = locus_case_run(loaded, &options, &error);
    options.oracle = status == LOCUS_ERR_UNSUPPORTED; /* the kernels will come */
    if (options.oracle) status = locus_case_run(loaded, &options, &error);
    if (CHECK(status == LOCUS_OK, "%s", error.text)) {
        const locus_results results = results_of(loaded);
        judge_call(locus_case_level(loaded), locus_case_config(loaded), locus_case_inputs(loaded),
                   &results, golden_tolerance(name, "lse", float_tolerance),
                   golden_tolerance(name, "out", float_tolerance));
    }
    locus_case_free(loaded);
}

static void test_golden(void)
{
    static char *names[GOLDEN_FILES];
    if (check_begin("explain/golden/manifest")) CHECK(golden_read_manifest(), "no manifest.json");
    golden_read_manifest();
    static const char *const features[] = {"dlse", "half", "softcap"};
    const size_t schemes = locus_scheme_count(),
                 folders = schemes + sizeof features / sizeof *features;
    for (size_t s = 0; s < folders; s++) {
        const char *scheme = s < schemes ? locus_scheme_at(s)->name : features[s - schemes];
        const size_t count = golden_list(scheme, names);
        if (check_begin("explain/golden/%s", scheme))
            CHECK(count > 0, "no golden case of %s", scheme);
        for (size_t i = 0; i < count; i++) {
            char name[512];
            snprintf(name, sizeof name, "%s/%s", scheme, names[i]);
            if (check_begin("explain/golden/%s", name)) explain_case(name);
            free(names[i]);
        }
    }
}

static void explain_problem(test_problem *p, int path)
{
    locus_error error = {""};
    const double tolerance = path == TEST_ORACLE ? oracle_tolerance : float_tolerance;
    if (CHECK(test_problem_run(p, path, 0, &error) == LOCUS_OK, "%s", error.text))
        judge_call(p->spec.level, &p->config, &p->in[path], &p->results[path], tolerance,
                   tolerance);
}

static void test_problems(void)
{
    static const test_spec shapes[] = {
        {.B = 2, .H = 4, .Hk = 2, .Tq = 23, .Tk = 41, .D = 6, .Dv = 3},
        {.B = 1, .H = 2, .Tq = 1, .Tk = 9, .D = 16, .settings = NULL},
        {.B = 1, .H = 1, .Tq = 12, .Tk = 5, .D = 4},
        {.B = 2, .H = 2, .Tq = 3, .Tk = 0, .D = 4},
        {.B = 2, .H = 2, .Tq = 0, .Tk = 3, .D = 4},
    };
    for (size_t v = 0; v < TEST_VARIANTS; v++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            test_problem *p = test_variant_problem(&test_variants[v], shapes[s]);
            for (int path = 0; p != NULL && path < TEST_PATHS; path++)
                if (check_begin("explain/%s/%s/%s", test_path_name(path), test_variants[v].name,
                                p->shape))
                    explain_problem(p, path);
            test_problem_free(p);
        }
    for (size_t i = 0; i < LAYER_SPECS; i++) {
        test_problem *p = layer_problem(i);
        for (int path = 0; path < TEST_PATHS; path++)
            if (check_begin("explain/layer/%s/%s/%zu/%s", test_path_name(path),
                            layer_specs[i].scheme, i, p->shape))
                explain_problem(p, path);
        test_problem_free(p);
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_golden();
    test_problems();
    return check_finish("explain");
}

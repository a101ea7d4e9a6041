/* SPDX-License-Identifier: Apache-2.0 */

/* Every golden case, made by independent implementations, through the door that users
 * have: the oracle to 1e-9, and the float path on every instruction set of this machine
 * with one and with two threads to the tolerances of manifest.json. The wanted tensors are
 * read and compared here, without help from the library's own comparison, which must agree. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locus/case.h>
#include <locus/runtime.h>
#include <locus/tensorfile.h>

#include "golden/folder.h"
#include "support/check.h"
#include "support/compare.h"

static const double oracle_tolerance = 1e-9;
static const double result_tolerance = 5e-6, gradient_tolerance = 2e-5;

/* ---- the wanted tensors of one file ---- */

/* `want.NAME` as a dense F64 tensor; rank 0 when the file has none. Free its data. */
static locus_tensor read_want(const locus_file *file, const char *name)
{
    locus_tensor want = {.rank = 0};
    char key[64];
    snprintf(key, sizeof key, "want.%s", name);
    for (size_t i = 0; i < locus_file_count(file); i++) {
        const locus_file_tensor *t = locus_file_tensor_at(file, i);
        if (strcmp(t->name, key) != 0) continue;
        int64_t shape[LOCUS_MAX_RANK] = {0};
        locus_error error = {""};
        if (!CHECK(t->rank > 0 && t->rank <= LOCUS_MAX_RANK && strcmp(t->dtype, "F64") == 0,
                   "%s is not an F64 tensor of rank 1..4", key))
            return want;
        for (uint32_t axis = 0; axis < t->rank; axis++) shape[axis] = (int64_t)t->shape[axis];
        void *data = malloc((size_t)(t->end - t->begin) + 1);
        if (data != NULL && locus_file_read(file, i, 0, t->end - t->begin, data, &error) == 0)
            return locus_view(data, LOCUS_F64, t->rank, shape);
        CHECK(0, "%s: %s", key, error.text);
        free(data);
    }
    return want;
}

static size_t count_wants(const locus_file *file)
{
    size_t wants = 0;
    for (size_t i = 0; i < locus_file_count(file); i++)
        wants += strncmp(locus_file_tensor_at(file, i)->name, "want.", 5) == 0;
    return wants;
}

/* ---- one run of one case ---- */

static void check_result(const locus_case *loaded, const locus_file *file, size_t index,
                         double tolerance)
{
    const char *name = locus_case_result_name(loaded, index);
    locus_tensor want = read_want(file, name);
    locus_case_difference own = {.size = sizeof own};
    locus_error error = {""};
    char text[256] = "";
    if (!CHECK(want.rank != 0, "nothing to compare %s with", name)) return;
    const comparison c = compare_tensors(locus_case_result(loaded, index), &want);
    const size_t elements = (size_t)locus_tensor_elements(&want);
    const int good = elements == 0 ? c.compared == 0
                                   : comparison_passes(&c, elements, tolerance, text, sizeof text);
    CHECK(good, "%s: %s, tolerance %g", name, text, tolerance);
    const int compared = locus_case_compare(loaded, index, &own, &error) == LOCUS_OK;
    CHECK(tolerance == oracle_tolerance || own.tolerance == tolerance,
          "%s: the file says %g, manifest.json %g", name, own.tolerance, tolerance);
    CHECK(compared && own.expected, "locus_case_compare: %s", error.text);
    CHECK(elements == 0 || fabs(own.worst - c.worst) <= 1e-12 + 1e-6 * c.worst,
          "%s: locus_case_compare says %g, the test %g", name, own.worst, c.worst);
    free(want.data);
}

static void check_run(locus_case *loaded, const locus_file *file, const char *name,
                      const locus_case_run_options *options)
{
    locus_error error = {""};
    const locus_status status = locus_case_run(loaded, options, &error);
    if (!CHECK(status == LOCUS_OK, "%s", error.text)) return;
    const size_t results = locus_case_result_count(loaded);
    CHECK(results == count_wants(file), "%zu results for %zu wanted tensors", results,
          count_wants(file));
    for (size_t i = 0; i < results; i++) {
        const char *result = locus_case_result_name(loaded, i);
        const int is_gradient = strncmp(result, "grad.", 5) == 0;
        const double usual = is_gradient ? gradient_tolerance : result_tolerance;
        check_result(loaded, file, i,
                     options->oracle ? oracle_tolerance : golden_tolerance(name, result, usual));
    }
}

static void check_case(const char *scheme, const char *entry)
{
    char name[512], path[GOLDEN_PATH], title[512];
    locus_case *loaded = NULL;
    locus_file *file = NULL;
    locus_error error = {""};
    snprintf(name, sizeof name, "%s/%s", scheme, entry);
    snprintf(path, sizeof path, "%s/%s", golden_folder(), name);
    snprintf(title, sizeof title, "%.*s", (int)(strlen(name) - strlen(".safetensors")), name);
    const int opened = locus_case_load(&loaded, path, NULL, &error) == LOCUS_OK &&
                       locus_file_open(&file, path, NULL, &error) == LOCUS_OK;

    locus_case_run_options options = {.size = sizeof options, .oracle = 1};
    if (check_begin("golden/oracle/%s", title) && CHECK(opened, "%s", error.text))
        check_run(loaded, file, name, &options);
    options.oracle = 0;
    for (size_t i = 0; locus_isa_name(i) != NULL; i++)
        for (options.threads = 1; options.threads <= 2; options.threads++) {
            options.isa = locus_isa_name(i);
            if (!check_begin("golden/%s/%u/%s", options.isa, (unsigned)options.threads, title))
                continue;
            if (!locus_isa_available(options.isa))
                check_skip("not on this CPU: %s", options.isa);
            else if (CHECK(opened, "%s", error.text))
                check_run(loaded, file, name, &options);
        }
    locus_file_close(file);
    locus_case_free(loaded);
}

/* ---- all of them ---- */

/* Folders that are named after what every scheme may have. */
static const char *const features[] = {"dlse",      "gates",  "half", "pos_query",
                                       "positions", "ragged", "sink", "softcap"};

static void check_folder(const char *folder)
{
    static char *names[GOLDEN_FILES];
    const size_t count = golden_list(folder, names);
    if (check_begin("golden/list/%s", folder))
        CHECK(count > 0, "no golden case in %s/%s", golden_folder(), folder);
    for (size_t i = 0; i < count; i++) {
        check_case(folder, names[i]);
        free(names[i]);
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    const int has_manifest = golden_read_manifest();
    if (check_begin("golden/list/manifest")) CHECK(has_manifest, "no manifest.json that fits");
    for (size_t s = 0; locus_scheme_at(s) != NULL; s++) check_folder(locus_scheme_at(s)->name);
    for (size_t f = 0; f < sizeof features / sizeof *features; f++) check_folder(features[f]);
    return check_finish("golden");
}

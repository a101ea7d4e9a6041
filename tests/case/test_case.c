/* SPDX-License-Identifier: Apache-2.0 */

/* Case files: load, run, compare, save. refusals.c has what must not load. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locus/case.h>
#include <locus/tensorfile.h>

#include "case/draft.h"
#include "support/allocator.h"
#include "support/check.h"

void test_refusals(void);

static locus_case *load(const draft *d)
{
    locus_case *loaded = NULL;
    locus_error error = {""};
    const locus_status status =
        locus_case_load(&loaded, draft_write(d, "case.safetensors"), NULL, &error);
    CHECK(status == LOCUS_OK, "load: %s", error.text);
    return loaded;
}

static int run(locus_case *loaded, uint32_t oracle)
{
    const locus_case_run_options options = {.size = sizeof options, .oracle = oracle, .threads = 2};
    locus_error error = {""};
    return CHECK(locus_case_run(loaded, &options, &error) == LOCUS_OK, "run: %s", error.text);
}

static locus_case_difference compare(const locus_case *loaded, const char *name)
{
    locus_case_difference d = {.size = sizeof d, .expected = -1};
    locus_error error = {""};
    for (size_t i = 0; i < locus_case_result_count(loaded); i++)
        if (strcmp(locus_case_result_name(loaded, i), name) == 0)
            CHECK(locus_case_compare(loaded, i, &d, &error) == LOCUS_OK, "%s", error.text);
    CHECK(d.expected >= 0, "no result %s", name);
    return d;
}

/* ---- whole cases: write, load, run both ways, compare, save, read back ---- */

#define DIMS .B = 2, .H = 2, .Tq = 3, .Tk = 5, .D = 4, .seed = 5
static const test_spec specs[] = {
    {.scheme = "none",
     .level = LOCUS_ATTEND,
     DIMS,
     .Hk = 1,
     .Dv = 6,
     .with = "mask:11 bias_dense:B1"},
    {.scheme = "none",
     .level = LOCUS_ATTEND,
     DIMS,
     .settings = "causal=1 window_left=2 window_right=3 query_offset=1 scale=0.5 dropout=0.25 "
                 "dropout_seed=18446744073709551615"},
    {.scheme = "shaw", .level = LOCUS_ATTEND, DIMS, .settings = "clip_left=2 clip_right=1"},
    {.scheme = "transformer_xl", .level = LOCUS_ATTEND, DIMS},
    {.scheme = "kerple", .level = LOCUS_ATTEND, DIMS, .settings = "form=power"},
    {.scheme = "tupe", .level = LOCUS_ATTEND, DIMS, .settings = "buckets=8 max_distance=9"},
    {.scheme = "none", .level = LOCUS_LAYER, DIMS, .E = 6},
    {.scheme = "transformer_xl",
     .level = LOCUS_LAYER,
     DIMS,
     .E = 6,
     .settings = "table=half clamp=2"},
    {.scheme = "deberta",
     .level = LOCUS_LAYER,
     DIMS,
     .E = 6,
     .settings = "span=4 p2c=0",
     .without = "w_rq b_rq"},
    {.scheme = "none", .level = LOCUS_ATTEND, .B = 1, .H = 2, .Tq = 0, .Tk = 3, .D = 2},
    {.scheme = "none", .level = LOCUS_ATTEND, .B = 1, .H = 2, .Tq = 3, .Tk = 0, .D = 2},
    {.scheme = "none", .level = LOCUS_ATTEND, .B = 1, .H = 2, .Tq = 3, .Tk = 2, .D = 0, .Dv = 2},
};

static void check_differences(const locus_case *loaded, double most)
{
    for (size_t i = 0; i < locus_case_result_count(loaded); i++) {
        const char *name = locus_case_result_name(loaded, i);
        const locus_case_difference d = compare(loaded, name);
        const double tolerance = strncmp(name, "grad.", 5) == 0 ? 2e-5 : 5e-6;
        CHECK(d.expected == 1 && d.passed == 1, "%s: worst %g", name, d.worst);
        CHECK(d.tolerance == tolerance, "%s: tolerance %g", name, d.tolerance);
        CHECK(d.worst <= most, "%s: worst %g", name, d.worst);
    }
    CHECK(locus_case_result_name(loaded, 99) == NULL && locus_case_result(loaded, 99) == NULL,
          "a result beyond the end");
}

/* The saved file holds every result, bit by bit, and says where it comes from. */
static void check_saved(const locus_case *loaded, const char *scheme, const char *kind)
{
    const char *path = folder_path("saved.safetensors");
    locus_error error = {""};
    locus_file *file = NULL;
    CHECK(locus_case_save(loaded, path, &error) == LOCUS_OK, "save: %s", error.text);
    if (!CHECK(locus_file_open(&file, path, NULL, &error) == LOCUS_OK, "open: %s", error.text))
        return;
    const char *const wanted[][2] = {{"format", "locus.result/1"},
                                     {"kind", kind},
                                     {"scheme", scheme},
                                     {"isa", locus_case_isa(loaded)},
                                     {"path", locus_case_path(loaded)}};
    for (size_t i = 0; i < 5; i++) {
        const char *value = locus_file_metadata(file, wanted[i][0]);
        CHECK(value != NULL && strcmp(value, wanted[i][1]) == 0, "metadata %s", wanted[i][0]);
    }
    CHECK(locus_file_metadata_count(file) == 5, "more metadata");
    CHECK(locus_file_count(file) == locus_case_result_count(loaded), "another number of tensors");
    for (size_t i = 0; i < locus_file_count(file); i++) {
        const locus_file_tensor *t = locus_file_tensor_at(file, i);
        for (size_t k = 0; k < locus_case_result_count(loaded); k++) {
            if (strcmp(locus_case_result_name(loaded, k), t->name) != 0) continue;
            const locus_tensor *r = locus_case_result(loaded, k);
            const size_t bytes = (size_t)(t->end - t->begin);
            char *data = malloc(bytes + 1);
            CHECK(strcmp(t->dtype, r->dtype == LOCUS_F64 ? "F64" : "F32") == 0, "%s", t->dtype);
            CHECK(t->rank == r->rank, "%s: rank %u", t->name, (unsigned)t->rank);
            CHECK(data != NULL && locus_file_read(file, i, 0, bytes, data, NULL) == LOCUS_OK &&
                      (bytes == 0 || memcmp(data, r->data, bytes) == 0),
                  "%s: other bytes", t->name);
            free(data);
        }
    }
    locus_file_close(file);
}

static void test_whole(size_t i)
{
    const test_spec *s = &specs[i];
    const char *kind = s->level == LOCUS_LAYER ? "layer" : "attend";
    if (!check_begin("case/whole/%s-%s-%d", s->scheme, kind, (int)i)) return;
    draft *d = draft_new(s, 1, 1);
    draft_add(d, "want.nonsense", "F64", 1, (const uint64_t[]){0}, NULL);
    draft_set(d, "note", "made here");
    locus_case *loaded = load(d);
    if (loaded != NULL) {
        CHECK(locus_case_level(loaded) == s->level && locus_case_wants_gradients(loaded), "level");
        CHECK(strcmp(locus_case_config(loaded)->scheme, s->scheme) == 0, "scheme");
        CHECK(locus_case_config(loaded)->dropout_seed == d->problem->config.dropout_seed, "seed");
        CHECK(locus_case_result_count(loaded) == 0 && locus_case_isa(loaded)[0] == '\0', "early");
        if (run(loaded, 0)) check_differences(loaded, 1.0);
        check_saved(loaded, s->scheme, kind);
        if (run(loaded, 1)) check_differences(loaded, 1e-12);
        CHECK(strcmp(locus_case_isa(loaded), "double") == 0, "isa %s", locus_case_isa(loaded));
        CHECK(strcmp(locus_case_path(loaded), "oracle") == 0, "path %s", locus_case_path(loaded));
        check_saved(loaded, s->scheme, kind);
    }
    locus_case_free(loaded);
    draft_free(d);
}

/* ---- compare: one query, one key, so out is v, whatever v holds ---- */

typedef struct pair {
    double got, want;
} pair;

static const struct {
    const char *name;
    pair pairs[3];
    int passed;
    double worst; /* NaN: NaN */
} comparisons[] = {
    {"equal", {{1, 1}, {-2, -2}, {0, 0}}, 1, 0},
    {"near", {{1, 1.000004}, {0, 0}, {0, 0}}, 1, 4e-6 / 1.000004},
    {"far", {{1, 1.000006}, {0, 0}, {0, 0}}, 0, 6e-6 / 1.000006},
    {"small-is-absolute", {{1e-3, 2e-3}, {0, 0}, {0, 0}}, 0, 1e-3},
    {"scaled-by-the-largest", {{100, 100}, {1, 1.0004}, {0, 0}}, 1, 4e-6},
    {"infinity-is-no-scale", {{INFINITY, INFINITY}, {1, 1.0004}, {0, 0}}, 0, 4e-4 / 1.0004},
    {"both-nan", {{NAN, NAN}, {1, 1}, {0, 0}}, 1, 0},
    {"got-nan", {{NAN, 1}, {1, 1}, {0, 0}}, 0, NAN},
    {"want-nan", {{1, NAN}, {1, 1}, {0, 0}}, 0, NAN},
    {"nan-then-far", {{NAN, 1}, {1, 9}, {0, 0}}, 0, NAN},
    {"far-then-nan", {{1, 9}, {NAN, 1}, {0, 0}}, 0, NAN},
    {"infinities", {{INFINITY, INFINITY}, {-INFINITY, -INFINITY}, {0, 0}}, 1, 0},
    {"signs", {{INFINITY, -INFINITY}, {0, 0}, {0, 0}}, 0, NAN},
    {"got-infinity", {{INFINITY, 3}, {0, 0}, {0, 0}}, 0, NAN},
    {"want-infinity", {{3, INFINITY}, {0, 0}, {0, 0}}, 0, NAN},
    {"want-minus-infinity", {{-3e38, -INFINITY}, {0, 0}, {0, 0}}, 0, NAN},
};

static void check_comparison(size_t i, int narrow)
{
    const test_spec one = {
        .scheme = "none", .level = LOCUS_ATTEND, .B = 1, .H = 1, .Tq = 1, .Tk = 1, .D = 3};
    draft *d = draft_new(&one, 0, 0);
    double want[3];
    float want_narrow[3];
    for (int k = 0; k < 3; k++) {
        ((float *)d->problem->in[1].v.data)[k] = (float)comparisons[i].pairs[k].got;
        want[k] = comparisons[i].pairs[k].want;
        want_narrow[k] = (float)want[k];
    }
    draft_add(d, "want.out", narrow ? "F32" : "F64", 4, (const uint64_t[]){1, 1, 1, 3},
              narrow ? (const void *)want_narrow : (const void *)want);
    locus_case *loaded = load(d);
    if (loaded != NULL && run(loaded, 0)) {
        const locus_case_difference found = compare(loaded, "out");
        const double worst = comparisons[i].worst;
        CHECK(found.expected == 1 && found.passed == comparisons[i].passed, "passed %d, worst %g",
              found.passed, found.worst);
        CHECK(isnan(worst) ? isnan(found.worst) : fabs(found.worst - worst) < 3e-7,
              "worst %g, expected %g", found.worst, worst);
        CHECK(compare(loaded, "lse").expected == 0, "lse is not in the file");
        CHECK(compare(loaded, "lse").passed == 0, "nothing to compare with must not pass");
    }
    locus_case_free(loaded);
    draft_free(d);
}

/* A want tensor of another shape: the case runs, the comparison says what is wrong. */
static void test_want_shape(void)
{
    if (!check_begin("case/compare/shape")) return;
    draft *d = draft_new(&specs[2], 0, 0);
    const float zeros[8] = {0};
    draft_add(d, "want.lse", "F32", 3, (const uint64_t[]){2, 2, 2}, zeros);
    locus_case *loaded = load(d);
    locus_case_difference found = {.size = sizeof found};
    locus_error error = {""};
    if (loaded != NULL && run(loaded, 0)) {
        CHECK(locus_case_compare(loaded, 1, &found, &error) == LOCUS_ERR_TENSOR, "accepted");
        CHECK(strstr(error.text, "tensor want.lse: found shape [2,2,2], expected [2,2,3]"),
              "\"%s\"", error.text);
        CHECK(locus_case_compare(loaded, 2, &found, &error) == LOCUS_ERR_ARGUMENT, "no gradient");
        found.size = 0;
        CHECK(locus_case_compare(loaded, 0, &found, &error) == LOCUS_ERR_ARGUMENT, "no size");
    }
    locus_case_free(loaded);
    draft_free(d);
}

/* -inf is exact: a row that sees nothing. */
static void test_empty_row(void)
{
    if (!check_begin("case/compare/empty-row")) return;
    const test_spec one = {
        .scheme = "none", .level = LOCUS_ATTEND, .B = 1, .H = 1, .Tq = 2, .Tk = 0, .D = 3};
    for (int wrong = 0; wrong < 2; wrong++) {
        const double want[] = {-INFINITY, wrong ? -1e30 : -INFINITY};
        draft *d = draft_new(&one, 0, 0);
        draft_add(d, "want.lse", "F64", 3, (const uint64_t[]){1, 1, 2}, want);
        locus_case *loaded = load(d);
        if (loaded != NULL && run(loaded, 0)) {
            const locus_case_difference found = compare(loaded, "lse");
            CHECK(found.passed == !wrong && isnan(found.worst) == wrong, "worst %g", found.worst);
        }
        locus_case_free(loaded);
        draft_free(d);
    }
}

/* ---- manners ---- */

static void test_manners(void)
{
    if (!check_begin("case/manners")) return;
    draft *d = draft_new(&specs[0], 1, 0);
    locus_case *loaded = load(d);
    locus_error error = {""};
    const char *path = folder_path("early");
    const size_t files = folder_count();
    if (loaded == NULL) return;
    CHECK(locus_case_save(loaded, path, &error) == LOCUS_ERR_ARGUMENT, "saved before a run");
    CHECK(folder_count() == files, "a file was left");
    CHECK(locus_case_run(loaded, NULL, &error) == LOCUS_OK, "default options: %s", error.text);
    locus_case_run_options options = {.size = sizeof options, .isa = "sparc"};
    CHECK(locus_case_run(loaded, &options, &error) == LOCUS_ERR_ISA, "isa accepted");
    CHECK(locus_case_result_count(loaded) > 2, "a failed run took the results away");
    options.size = 1;
    CHECK(locus_case_run(loaded, &options, &error) == LOCUS_ERR_ARGUMENT, "size accepted");
    CHECK(locus_case_save(loaded, folder_path("no/such/folder"), &error) == LOCUS_ERR_IO, "%s",
          error.text);
    /* Saving over the case itself: the values are still those of the old file. */
    CHECK(locus_case_save(loaded, folder_path("case.safetensors"), &error) == LOCUS_OK, "%s",
          error.text);
    CHECK(run(loaded, 1), "second run");
    locus_case_free(loaded);
    draft_free(d);
}

/* Load, run and save with allocation k failing: refused, nothing leaks, no output. */
static void check_failures(const test_spec *spec, uint32_t oracle)
{
    draft *d = draft_new(spec, 1, 1);
    const locus_case_run_options options = {.size = sizeof options, .oracle = oracle, .threads = 1};
    char path[1024];
    snprintf(path, sizeof path, "%s", draft_write(d, "memory.safetensors"));
    const size_t files = folder_count();
    for (size_t k = 1;; k++) {
        test_allocator memory;
        locus_case *loaded = NULL;
        locus_error error = {""};
        test_allocator_init(&memory);
        memory.fail_at = k;
        locus_status status = locus_case_load(&loaded, path, &memory.interface, &error);
        CHECK((status == LOCUS_OK) == (loaded != NULL), "a refused case came out");
        if (status == LOCUS_OK) status = locus_case_run(loaded, &options, &error);
        const char *out = folder_path("out.safetensors");
        if (status == LOCUS_OK) status = locus_case_save(loaded, out, &error);
        locus_case_free(loaded);
        CHECK(memory.live_blocks == 0 && memory.misuse == 0, "allocation %zu: leak", k);
        if (memory.failures == 0) {
            CHECK(status == LOCUS_OK, "%s", error.text);
            CHECK(k > 10, "only %zu allocations", k);
            CHECK(remove(out) == 0, "no output");
            break;
        }
        CHECK(status == LOCUS_ERR_MEMORY, "allocation %zu: %s (%s)", k, locus_status_text(status),
              error.text);
        if (!CHECK(folder_count() == files, "allocation %zu: a file was left", k)) break;
    }
    draft_free(d);
}

static void test_failures(void)
{
    static const size_t chosen[] = {0, 2, 5, 7, 8};
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        for (uint32_t oracle = 0; oracle < 2; oracle++) {
            const test_spec *s = &specs[chosen[i]];
            if (check_begin("case/allocations/%s-%d%s", s->scheme, (int)chosen[i],
                            oracle ? "/oracle" : ""))
                check_failures(s, oracle);
        }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    folder_make();
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) test_whole(i);
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++)
        for (int narrow = 0; narrow < 2; narrow++)
            if (check_begin("case/compare/%s%s", comparisons[i].name, narrow ? "/F32" : ""))
                check_comparison(i, narrow);
    test_want_shape();
    test_empty_row();
    test_manners();
    test_failures();
    test_refusals();
    folder_remove();
    return check_finish("case");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a case holds and what came of it, as tables and as JSON. */
#include <inttypes.h>
#include <string.h>

#include "attend.h"
#include "json.h"
#include "terms.h"
#include "text.h"

int attend_describes(const attend_values *values)
{
    return values->output == NULL && !values->check;
}

static uint32_t threads_of(const attend_report *r)
{
    return r->values->threads > 0 ? r->values->threads : locus_default_threads();
}

/* ---- what the file holds ---- */

static int is_wanted(const locus_file_tensor *t) { return strncmp(t->name, "want.", 5) == 0; }

/* Keys that the first line has said, and remarks. */
static int is_setting(const char *key)
{
    static const char *const others[] = {"format", "kind", "scheme", "note"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(key, others[i]) == 0) return 0;
    return 1;
}

static void print_settings(const locus_file *file)
{
    const char *key = NULL, *value = NULL, *before = "settings  ";
    const char *note = locus_file_metadata(file, "note");
    if (note != NULL) {
        printf("note      ");
        text_print(stdout, note);
        putchar('\n');
    }
    for (size_t i = 0; i < locus_file_metadata_count(file); i++) {
        locus_file_metadata_at(file, i, &key, &value);
        if (!is_setting(key)) continue;
        printf("%s", before);
        text_print(stdout, key);
        putchar('=');
        text_print(stdout, value);
        before = ", ";
    }
    if (before[0] == ',') putchar('\n');
    if (before[0] == ',' || note != NULL) putchar('\n');
}

static void print_columns(const char *first, int results)
{
    printf("%s%-16s  %-18s  %14s", text_bold(), first, "shape", "bytes");
    if (results) printf("  %12s  %12s", "min", "max");
    printf("%s", text_plain());
}

static void print_size(const char *name, const uint64_t *shape, size_t rank, uint64_t bytes)
{
    char text[128], digits[32];
    printf("%-16s  %-18s  %14s", name, text_shape(text, sizeof text, shape, rank),
           text_thousands(digits, sizeof digits, bytes));
}

static void print_given(const locus_file *file)
{
    print_columns("given", 0);
    putchar('\n');
    for (size_t i = 0; i < locus_file_count(file); i++) {
        const locus_file_tensor *t = locus_file_tensor_at(file, i);
        if (is_wanted(t)) continue;
        print_size(t->name, t->shape, t->rank, t->end - t->begin); /* a name that we know */
        putchar('\n');
    }
    putchar('\n');
}

/* ---- results ---- */

/* An empty tensor has no smallest number. */
static void print_bound(const attend_summary *s, double bound)
{
    if (s->values == 0)
        printf("  %12s", "-");
    else
        printf("  %12.6g", bound);
}

static int any_nan(const attend_report *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->results[i].nan > 0 || r->results[i].difference.want_nan > 0) return 1;
    return 0;
}

/* "3/0": found and expected */
static void print_nan(const attend_report *r, const attend_summary *s)
{
    char text[48];
    snprintf(text, sizeof text, s->difference.expected ? "%" PRIu64 "/%" PRIu64 : "%" PRIu64,
             s->nan, s->difference.want_nan);
    if (any_nan(r)) printf("  %9s", text);
}

static void print_description(const attend_report *r)
{
    size_t expected = 0;
    print_settings(r->file);
    print_given(r->file);
    print_columns("result", 1);
    if (any_nan(r)) printf("  %9s", "NaN");
    putchar('\n');
    for (size_t i = 0; i < r->count; i++) {
        const attend_summary *s = &r->results[i];
        print_size(s->name, s->shape, s->rank, s->bytes);
        print_bound(s, s->minimum);
        print_bound(s, s->maximum);
        print_nan(r, s);
        putchar('\n');
    }
    for (size_t i = 0; i < locus_file_count(r->file); i++)
        expected += is_wanted(locus_file_tensor_at(r->file, i)) ? 1 : 0;
    if (expected > 0)
        printf("\n%zu expected results (want.) are in the file: --check compares them\n", expected);
}

static void print_check(const attend_summary *s)
{
    const locus_case_difference *d = &s->difference;
    if (!d->expected) {
        printf("  %9s  %9s  -", "-", "-");
        return;
    }
    printf("  %9.2e  %9.2g  %s%s%s", d->worst, d->tolerance, d->passed ? text_good() : text_bad(),
           d->passed ? "ok" : "FAILED", text_plain());
}

static void print_results(const attend_report *r)
{
    char shape[128];
    printf("%s%-16s  %-18s  %12s  %12s", text_bold(), "tensor", "shape", "min", "max");
    if (any_nan(r)) printf("  %9s", "NaN");
    if (r->values->check) printf("  %9s  %9s  check", "worst", "tolerance");
    printf("%s\n", text_plain());
    for (size_t i = 0; i < r->count; i++) {
        const attend_summary *s = &r->results[i];
        printf("%-16s  %-18s", s->name, text_shape(shape, sizeof shape, s->shape, s->rank));
        print_bound(s, s->minimum);
        print_bound(s, s->maximum);
        print_nan(r, s);
        if (r->values->check) print_check(s);
        putchar('\n');
    }
}

void attend_print_text(const attend_report *r)
{
    text_print(stdout, r->values->path);
    printf(": %s, %s, %s (%s), %u thread%s\n\n", locus_case_config(r->loaded)->scheme,
           level_text(locus_case_level(r->loaded)), locus_case_isa(r->loaded),
           locus_case_path(r->loaded), (unsigned)threads_of(r), threads_of(r) == 1 ? "" : "s");
    if (attend_describes(r->values))
        print_description(r);
    else
        print_results(r);
}

/* ---- JSON ---- */

static void json_given(json *j, const locus_file *file)
{
    const char *key = NULL, *value = NULL;
    json_inline_object(j, "settings");
    for (size_t i = 0; i < locus_file_metadata_count(file); i++) {
        locus_file_metadata_at(file, i, &key, &value);
        if (is_setting(key)) json_text(j, key, value);
    }
    json_end(j);
    json_array(j, "given");
    for (size_t i = 0; i < locus_file_count(file); i++) {
        const locus_file_tensor *t = locus_file_tensor_at(file, i);
        if (is_wanted(t)) continue;
        json_inline_object(j, NULL);
        json_text(j, "name", t->name);
        json_shape(j, "shape", t->shape, t->rank);
        json_size(j, "bytes", t->end - t->begin);
        json_end(j);
    }
    json_end(j);
}

static void json_result(json *j, const attend_summary *s)
{
    json_inline_object(j, NULL);
    json_text(j, "name", s->name);
    json_shape(j, "shape", s->shape, s->rank);
    json_size(j, "bytes", s->bytes);
    if (s->values == 0) {
        json_null(j, "min");
        json_null(j, "max");
    } else {
        json_real(j, "min", s->minimum);
        json_real(j, "max", s->maximum);
    }
    json_size(j, "nan", s->nan);
    if (s->difference.expected) {
        json_size(j, "want_nan", s->difference.want_nan);
        json_real(j, "worst", s->difference.worst);
        json_real(j, "tolerance", s->difference.tolerance);
        json_boolean(j, "passed", s->difference.passed);
    } else {
        json_null(j, "want_nan");
        json_null(j, "worst");
        json_null(j, "tolerance");
        json_null(j, "passed");
    }
    json_end(j);
}

void attend_print_json(const attend_report *r)
{
    json j = {.out = stdout};
    json_object(&j, NULL);
    json_text(&j, "case", r->values->path);
    json_text(&j, "output", r->values->output);
    json_text(&j, "level", level_text(locus_case_level(r->loaded)));
    json_text(&j, "scheme", locus_case_config(r->loaded)->scheme);
    json_text(&j, "isa", locus_case_isa(r->loaded));
    json_text(&j, "path", locus_case_path(r->loaded));
    json_size(&j, "threads", threads_of(r));
    if (r->values->check)
        json_boolean(&j, "passed", r->expected > 0 && r->failed == 0);
    else
        json_null(&j, "passed");
    json_given(&j, r->file);
    json_array(&j, "results");
    for (size_t i = 0; i < r->count; i++) json_result(&j, &r->results[i]);
    json_end(&j);
    json_end(&j);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Pictures of schemes: every kind that a scheme has is drawn, requests are refused in words, and
 * no failed allocation does harm. What the pictures show is compared with docs/gallery. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <locus/picture.h>

#include "support/allocator.h"
#include "support/check.h"

static const char case_path[] = LOCUS_TEST_SOURCE_DIR "/tests/golden/t5/encoder.safetensors";

static void test_kinds(void)
{
    for (size_t s = 0; s < locus_scheme_count(); s++) {
        const char *scheme = locus_scheme_at(s)->name;
        const locus_picture_kind *kind;
        if (!check_begin("pictures/kinds/%s", scheme)) continue;
        for (size_t i = 0; (kind = locus_picture_kind_at(scheme, i)) != NULL; i++) {
            locus_picture_request request;
            locus_picture *picture = NULL;
            locus_error error = {""};
            locus_text svg = {0};
            locus_picture_request_init(&request, scheme);
            request.what = kind->name;
            CHECK(locus_picture_new(&picture, &request, &error) == LOCUS_OK, "%s: %s", kind->name,
                  error.text);
            const locus_figure *figure = locus_picture_figure(picture);
            CHECK(figure != NULL && figure->panel_count > 0, "%s: no panels", kind->name);
            CHECK(figure != NULL && strstr(figure->title, kind->title) != NULL, "%s: title",
                  kind->name);
            CHECK(figure != NULL &&
                      locus_figure_render(figure, LOCUS_FORMAT_SVG, NULL, &svg, &error) == LOCUS_OK,
                  "%s: %s", kind->name, error.text);
            locus_text_free(&svg);
            locus_picture_free(picture);
        }
    }
    if (!check_begin("pictures/kinds")) return;
    CHECK(locus_picture_kind_at(NULL, 11) != NULL && locus_picture_kind_at(NULL, 12) == NULL,
          "expected 12 kinds");
    CHECK(locus_picture_kind_at("t6", 0) == NULL, "kinds of no scheme");
}

/* ---- what panels say about each other ---- */

static locus_picture *draw(const char *scheme, const char *what, uint32_t causal)
{
    locus_picture_request request;
    locus_picture *picture = NULL;
    locus_error error = {""};
    locus_picture_request_init(&request, scheme);
    request.what = what;
    request.causal = causal;
    CHECK(locus_picture_new(&picture, &request, &error) == LOCUS_OK, "%s", error.text);
    return picture;
}

/* The bucket of a distance in the staircase of the rule. */
static double bucket_of(const locus_series *rule, double distance)
{
    for (size_t i = 0; i < rule->count; i++)
        if (rule->x[i] == distance) return rule->y[i];
    return NAN;
}

/* Map, rule and curves of one picture come from one table: two distances have one bias where they
 * share a bucket, and another one elsewhere. */
static void test_one_table(const char *scheme, uint32_t causal)
{
    if (!check_begin("pictures/one-table/%s%s", scheme, causal ? "-causal" : "")) return;
    locus_picture *picture = draw(scheme, "rows,bias", causal);
    const locus_figure *figure = locus_picture_figure(picture);
    CHECK(figure->panel_count == 3, "%zu panels", figure->panel_count);
    const locus_series *rule = figure->panels[1].series, *bias = figure->panels[2].series;
    size_t equal = 0, compared = 0;
    for (size_t i = 0; i < bias->count; i++)
        for (size_t k = 0; k < i; k++) {
            const double one = bucket_of(rule, bias->x[i]), other = bucket_of(rule, bias->x[k]);
            if (isnan(bias->y[i]) || isnan(bias->y[k])) continue;
            CHECK((one == other) == (bias->y[i] == bias->y[k]), "distances %g and %g", bias->x[i],
                  bias->x[k]);
            equal += one == other;
            compared++;
        }
    CHECK(equal > 0 && equal < compared, "%zu of %zu pairs share a bucket", equal, compared);
    CHECK(strstr(figure->caption, "With buckets=8, max_distance=16") != NULL, "caption: %s",
          figure->caption);
    locus_picture_free(picture);
}

static void test_equal_panels(void)
{
    if (!check_begin("pictures/equal-panels")) return;
    locus_picture *picture = draw("deberta", "rows", 0);
    const locus_panel *panels = locus_picture_figure(picture)->panels;
    CHECK(panels[0].note == NULL, "the first panel: %s", panels[0].note);
    CHECK(panels[1].note != NULL && strstr(panels[1].note, panels[0].title) != NULL,
          "the second panel does not say that it is equal to \"%s\"", panels[0].title);
    locus_picture_free(picture);
    picture = draw("alibi", "attention", 0);
    const locus_figure *figure = locus_picture_figure(picture);
    for (size_t i = 0; i < figure->panel_count; i++)
        CHECK(figure->panels[i].note == NULL, "panel %zu is equal to no other", i);
    locus_picture_free(picture);
}

/* ---- refusals ---- */

/* One field of a request that is wrong. */
typedef struct refusal {
    const char *name;
    void (*spoil)(locus_picture_request *request);
    locus_status status;
    const char *text;
} refusal;

static const char *const many[LOCUS_PICTURE_TOKENS + 1] = {"a"};
static const locus_problem_setting strange[] = {{"clip_left", "3"}, {NULL, NULL}};
static const locus_problem_setting odd[] = {{"buckets", "3"}, {NULL, NULL}};

static void spoil_size(locus_picture_request *r) { r->size--; }
static void spoil_scheme(locus_picture_request *r) { r->scheme = "t\n6"; }
static void spoil_no_scheme(locus_picture_request *r) { r->scheme = NULL; }
static void spoil_what(locus_picture_request *r) { r->what = "rows,angles"; }
static void spoil_panels(locus_picture_request *r)
{
    r->what = "variants,variants,variants,variants,variants,variants,variants,variants,variants";
}
static void spoil_tokens(locus_picture_request *r)
{
    r->tokens = many;
    r->token_count = LOCUS_PICTURE_TOKENS + 1;
}
static void spoil_no_tokens(locus_picture_request *r) { r->tokens = many; }
static void spoil_both(locus_picture_request *r)
{
    r->tokens = many;
    r->token_count = 1;
    r->length = 5;
}
static void spoil_length(locus_picture_request *r) { r->length = LOCUS_PICTURE_LENGTH + 1; }
static void spoil_heads(locus_picture_request *r) { r->heads = -1; }
static void spoil_dim(locus_picture_request *r) { r->dim = 1; }
static void spoil_head(locus_picture_request *r) { r->head = 4; }
static void spoil_window(locus_picture_request *r) { r->window = -2; }
static void spoil_setting(locus_picture_request *r) { r->settings = strange; }
static void spoil_value(locus_picture_request *r) { r->settings = odd; }
static void spoil_path(locus_picture_request *r) { r->path = "no/such/case"; }
static void spoil_case(locus_picture_request *r)
{
    r->path = case_path;
    r->causal = 1;
}
static void spoil_other(locus_picture_request *r)
{
    r->path = case_path;
    r->scheme = "shaw";
}
static void spoil_variants(locus_picture_request *r)
{
    r->path = case_path;
    r->what = "variants";
}

static const refusal refusals[] = {
    {"size", spoil_size, LOCUS_ERR_ARGUMENT, "request: found size"},
    {"scheme", spoil_scheme, LOCUS_ERR_SCHEME, "unknown scheme \"t\\x0A6\""},
    {"no scheme", spoil_no_scheme, LOCUS_ERR_ARGUMENT, "scheme: expected a name or a case"},
    {"what", spoil_what, LOCUS_ERR_ARGUMENT,
     "what: t5 has no picture \"angles\", it has: distance"},
    {"panels", spoil_panels, LOCUS_ERR_ARGUMENT, "what: found more than 24 panels or 96 curves"},
    {"tokens", spoil_tokens, LOCUS_ERR_ARGUMENT, "tokens: found 257 tokens, expected 1 to 256"},
    {"no tokens", spoil_no_tokens, LOCUS_ERR_ARGUMENT, "tokens: found 0 tokens"},
    {"tokens and length", spoil_both, LOCUS_ERR_ARGUMENT, "tokens and length exclude each other"},
    {"length", spoil_length, LOCUS_ERR_ARGUMENT, "length: found 1025, expected 1 to 1024"},
    {"heads", spoil_heads, LOCUS_ERR_ARGUMENT, "heads: found -1, expected 1 to 64"},
    {"dim", spoil_dim, LOCUS_ERR_ARGUMENT, "dim: found 1, expected 2 to 256"},
    {"head", spoil_head, LOCUS_ERR_ARGUMENT, "head: found 4, expected 0 to 3"},
    {"window", spoil_window, LOCUS_ERR_ARGUMENT, "window: found -2, expected 0 to 1024"},
    {"setting", spoil_setting, LOCUS_ERR_OPTION, "option: option \"clip_left\" is not known to"},
    {"value", spoil_value, LOCUS_ERR_OPTION, "t5: option buckets: found 3, expected an even"},
    {"path", spoil_path, LOCUS_ERR_IO, "no/such/case: cannot open"},
    {"case", spoil_case, LOCUS_ERR_ARGUMENT, "a case brings its own length, heads, options"},
    {"other", spoil_other, LOCUS_ERR_ARGUMENT, "holds a call of t5, not of shaw"},
    {"variants", spoil_variants, LOCUS_ERR_ARGUMENT, "what: variants makes its calls up; for a"},
};

static void test_refusals(void)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        locus_picture_request request;
        locus_picture *picture = (locus_picture *)&request; /* anything but NULL */
        locus_error error = {""};
        if (!check_begin("pictures/refused/%s", r->name)) continue;
        locus_picture_request_init(&request, "t5");
        r->spoil(&request);
        const locus_status status = locus_picture_new(&picture, &request, &error);
        CHECK(status == r->status, "status %d: %s", (int)status, error.text);
        CHECK(picture == NULL, "a picture beside a failure");
        CHECK(strstr(error.text, r->text) != NULL, "%s", error.text);
        CHECK(locus_picture_new(&picture, &request, NULL) == status, "without an error");
    }
}

/* ---- memory ---- */

static void fail_everywhere(const locus_picture_request *request, const char *what)
{
    for (size_t k = 1;; k++) {
        test_allocator memory;
        locus_picture_request r = *request;
        locus_picture *picture = NULL;
        locus_error error = {""};
        test_allocator_init(&memory);
        memory.fail_at = k;
        r.allocator = &memory.interface;
        r.what = what;
        const locus_status status = locus_picture_new(&picture, &r, &error);
        CHECK(status == (memory.failures > 0 ? LOCUS_ERR_MEMORY : LOCUS_OK), "%zu: status %d: %s",
              k, (int)status, error.text);
        CHECK((picture != NULL) == (status == LOCUS_OK), "a picture beside a failure");
        CHECK(status == LOCUS_OK || error.text[0] != '\0', "no words");
        locus_picture_free(picture);
        CHECK(memory.live_blocks == 0 && memory.misuse == 0, "leak at allocation %zu", k);
        if (memory.failures == 0) break;
    }
}

static void test_memory(void)
{
    static const char *const schemes[] = {"sinusoidal", "learned", "shaw", "t5", "tupe", "xpos"};
    for (size_t s = 0; s < sizeof schemes / sizeof *schemes; s++) {
        const locus_picture_kind *kind;
        locus_picture_request request;
        if (!check_begin("pictures/no memory/%s", schemes[s])) continue;
        locus_picture_request_init(&request, schemes[s]);
        request.length = 6;
        for (size_t i = 0; (kind = locus_picture_kind_at(schemes[s], i)) != NULL; i++)
            fail_everywhere(&request, kind->name);
        request.length = 0; /* with names */
        fail_everywhere(&request, "attention");
    }
    if (!check_begin("pictures/no memory/case")) return;
    locus_picture_request request;
    locus_picture_request_init(&request, NULL);
    request.path = case_path;
    fail_everywhere(&request, NULL);
}

/* ---- made-up calls ---- */

static void test_problem_refusals(void)
{
    static const locus_problem_request bad[] = {
        {.scheme = NULL, .level = LOCUS_ATTEND, .B = 1, .H = 1, .T = 1, .D = 1},
        {.scheme = "t6", .level = LOCUS_ATTEND, .B = 1, .H = 1, .T = 1, .D = 1},
        {.scheme = "t5", .level = LOCUS_ATTEND, .B = 1, .H = 1, .T = 0, .D = 1},
        {.scheme = "t5", .level = LOCUS_ATTEND, .B = 1, .H = -1, .T = 1, .D = 1},
        {.scheme = "t5", .level = LOCUS_LAYER, .B = 1, .H = 1, .T = 1, .D = 1},
        {.scheme = "t5", .level = LOCUS_ATTEND, .B = 1 << 30, .H = 1 << 30, .T = 9, .D = 9},
    };
    if (!check_begin("pictures/problems refused")) return;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        locus_problem *p = NULL;
        locus_problem_request request = bad[i];
        request.size = sizeof request;
        locus_error error = {""};
        CHECK(locus_problem_new(&p, &request, &error) != LOCUS_OK, "problem %zu was built", i);
        CHECK(error.text[0] != '\0', "problem %zu: no words", i);
    }
    locus_problem_free(NULL);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_kinds();
    test_one_table("t5", 0);
    test_one_table("t5", 1);
    test_one_table("tupe", 0);
    test_equal_panels();
    test_refusals();
    test_memory();
    test_problem_refusals();
    return check_finish("pictures");
}

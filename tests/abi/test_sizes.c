/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of other versions: cut short, as an older caller has them, and longer, as a newer one
 * does. Each lies in a block of just its size, so that a sanitizer sees a byte that is read or
 * written beyond it. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locus/locus.h>
#include <locus/picture.h>

#include "support/check.h"

enum { H = 2, T = 5, D = 4, N = H * T * D, MORE = 64 };

static float q[N], k[N], v[N], out[N], lse[H * T], dq[N];

/* A block of `size` bytes that begins with the struct, or what fits of it; zeros behind it. */
static void *resized(const void *from, size_t whole, size_t size)
{
    unsigned char *block = calloc(1, size > 0 ? size : 4);
    const uint32_t own = (uint32_t)size;
    if (block == NULL) exit(2);
    memcpy(block, from, whole < size ? whole : size);
    if (size >= sizeof own) memcpy(block, &own, sizeof own);
    return block;
}

static locus_tensors tensors(void)
{
    for (int i = 0; i < N; i++) q[i] = k[i] = v[i] = (float)(i % 7) / 7.0f;
    return (locus_tensors){.size = sizeof(locus_tensors),
                           .q = locus_view_bhtd(q, 1, H, T, D),
                           .k = locus_view_bhtd(k, 1, H, T, D),
                           .v = locus_view_bhtd(v, 1, H, T, D)};
}

static locus_results results(void)
{
    return (locus_results){.size = sizeof(locus_results),
                           .out = locus_view_bhtd(out, 1, H, T, D),
                           .lse = locus_view(lse, LOCUS_F32, 3, (const int64_t[]){1, H, T})};
}

static locus_config config(const char *scheme)
{
    locus_config c;
    CHECK(locus_config_init(&c, scheme) == LOCUS_OK, "config");
    c.threads = 1;
    return c;
}

/* The options of an older caller are what its configuration has room for. */
static void shorten_options(locus_config *c, size_t config_size)
{
    const size_t first = offsetof(locus_config, options);
    const size_t room = config_size > first ? config_size - first : 0;
    if (room >= sizeof(uint32_t) && room < sizeof c->options) c->options.size = (uint32_t)room;
}

/* Plan, forward, backward with structs of these sizes; the first failure. */
static locus_status run(size_t config_size, size_t tensors_size, size_t results_size,
                        locus_error *error)
{
    const locus_config whole_config = config("alibi");
    const locus_tensors whole_in = tensors();
    const locus_results whole_results = results();
    const locus_tensors whole_grad = {.size = sizeof whole_grad,
                                      .q = locus_view_bhtd(dq, 1, H, T, D)};
    void *c = resized(&whole_config, sizeof whole_config, config_size);
    shorten_options(c, config_size);
    void *in = resized(&whole_in, sizeof whole_in, tensors_size);
    void *grad = resized(&whole_grad, sizeof whole_grad, tensors_size);
    void *to = resized(&whole_results, sizeof whole_results, results_size);
    locus_plan *plan = NULL;
    locus_status status = locus_plan_new(&plan, c, in, error);
    if (status == LOCUS_OK) {
        const size_t bytes = locus_forward_workspace(plan) + locus_backward_workspace(plan);
        void *workspace = malloc(bytes);
        status = locus_forward(plan, in, to, workspace, bytes, error);
        if (status == LOCUS_OK)
            status = locus_backward(plan, in, to, to, grad, 0, workspace, bytes, error);
        free(workspace);
    }
    CHECK(status == LOCUS_OK || error->text[0] != '\0', "no words");
    locus_plan_free(plan);
    free(c);
    free(in);
    free(grad);
    free(to);
    return status;
}

static void expect(const char *name, size_t config_size, size_t tensors_size, size_t results_size,
                   locus_status wanted)
{
    if (!check_begin("abi/sizes/%s", name)) return;
    locus_error error = {""};
    for (int i = 0; i < N; i++) out[i] = -7.0f;
    const locus_status status = run(config_size, tensors_size, results_size, &error);
    CHECK(status == wanted, "%s (%s), expected %s", locus_status_text(status), error.text,
          locus_status_text(wanted));
    for (int i = 0; i < N; i++)
        CHECK((out[i] == -7.0f) == (wanted != LOCUS_OK), "out[%d] is %g", i, (double)out[i]);
}

static void test_calls(void)
{
    const size_t c = sizeof(locus_config), t = sizeof(locus_tensors), r = sizeof(locus_results);
    const size_t tensor = sizeof(locus_tensor), first = offsetof(locus_tensors, q);
    expect("as compiled", c, t, r, LOCUS_OK);
    expect("config without its last options", c - 32, t, r, LOCUS_OK);
    expect("config without options", offsetof(locus_config, options), t, r, LOCUS_OK);
    expect("config longer", c + MORE, t, r, LOCUS_OK);
    expect("tensors q, k and v alone", c, first + 3 * tensor, r, LOCUS_OK);
    expect("tensors longer", c, t + 2 * tensor, r, LOCUS_OK);
    expect("results longer", c, t, r + tensor, LOCUS_OK);
    expect("all longer", c + MORE, t + tensor, r + tensor, LOCUS_OK);
    expect("config of size 0", 0, t, r, LOCUS_ERR_ARGUMENT);
    expect("config of an odd size", 13, t, r, LOCUS_ERR_ARGUMENT);
    expect("config of half a field", c - 4, t, r, LOCUS_ERR_ARGUMENT);
    expect("tensors of size 0", c, 0, r, LOCUS_ERR_ARGUMENT);
    expect("tensors cut inside one", c, first + 2 * tensor + 8, r, LOCUS_ERR_ARGUMENT);
    expect("results of size 0", c, t, 0, LOCUS_ERR_ARGUMENT);
    expect("results without lse_low", c, t, offsetof(locus_results, lse_low), LOCUS_OK);
    expect("results without lse", c, t, offsetof(locus_results, lse), LOCUS_ERR_TENSOR);
}

/* What this library does not know must be 0. */
static void test_unknown_fields(void)
{
    if (!check_begin("abi/sizes/unknown fields")) return;
    const locus_config whole_config = config("alibi");
    const locus_tensors whole_in = tensors();
    const size_t c_size = sizeof whole_config + MORE,
                 t_size = sizeof whole_in + sizeof(locus_tensor);
    unsigned char *c = resized(&whole_config, sizeof whole_config, c_size);
    unsigned char *in = resized(&whole_in, sizeof whole_in, t_size);
    locus_plan *plan = NULL;
    locus_error error = {""};
    c[c_size - 1] = 1;
    CHECK(locus_plan_new(&plan, (void *)c, &whole_in, &error) == LOCUS_ERR_ARGUMENT && !plan,
          "config");
    CHECK(strstr(error.text, "config") && strstr(error.text, locus_version()), "%s", error.text);
    in[t_size - 1] = 1;
    CHECK(locus_plan_new(&plan, &whole_config, (void *)in, &error) == LOCUS_ERR_ARGUMENT && !plan,
          "tensors");
    CHECK(strstr(error.text, "shapes") != NULL, "%s", error.text);
    locus_config reserved = whole_config;
    reserved.reserved[3] = 1;
    CHECK(locus_plan_new(&plan, &reserved, &whole_in, &error) == LOCUS_ERR_ARGUMENT && !plan,
          "reserved");
    free(c);
    free(in);
}

/* Functions that fill a struct stay inside of it. */
static void test_filled(void)
{
    const locus_config c = config("none");
    const locus_tensors in = tensors();
    locus_plan *plan = NULL;
    locus_explainer *explainer = NULL;
    locus_error error = {""};
    CHECK(locus_plan_new(&plan, &c, &in, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_explainer_new(&explainer, LOCUS_ATTEND, &c, &in, &error) == LOCUS_OK, "%s",
          error.text);
    for (size_t size = 0; size <= sizeof(locus_plan_info) + MORE; size += 8) {
        if (!check_begin("abi/filled/%zu", size)) continue;
        const locus_plan_info empty = {.size = 0};
        locus_plan_info *info = resized(&empty, sizeof empty, size);
        locus_explainer_info *about = resized(&empty, sizeof empty, size);
        locus_plan_describe(plan, info);
        locus_explainer_describe(explainer, about);
        CHECK(size < 8 || info->size == size, "the size has changed");
        CHECK(size < 16 || (info->batch == 1 && about->batch == 1), "batch");
        free(info);
        free(about);
    }
    for (size_t size = 8; size <= sizeof(locus_options) + MORE; size += 8) {
        if (!check_begin("abi/options/%zu", size)) continue;
        const locus_options none = {.size = 0};
        locus_options *options = resized(&none, sizeof none, size);
        CHECK(locus_options_init_sized(options, size, "t5") == LOCUS_OK, "init");
        const int has_room = size >= offsetof(locus_options, buckets) + sizeof options->buckets;
        CHECK((locus_options_set(options, "t5", LOCUS_ATTEND, "buckets", "16", &error) ==
               LOCUS_OK) == has_room,
              "%s", error.text);
        free(options);
    }
    locus_explainer_free(explainer);
    locus_plan_free(plan);
}

/* Elements of arrays are as far apart as the caller says. */
static void draw(size_t figure_more, size_t panel_more, size_t series_more)
{
    static const double y[] = {1, 2, 4};
    const size_t panel_size = sizeof(locus_panel) + panel_more;
    const size_t series_size = sizeof(locus_series) + series_more;
    unsigned char *panels = calloc(2, panel_size), *series = calloc(2, series_size);
    for (size_t i = 0; i < 2; i++) {
        const locus_series s = {
            .size = (uint32_t)series_size, .name = i ? "b" : "a", .y = y, .count = 3};
        const locus_panel p = {.size = (uint32_t)panel_size,
                               .kind = LOCUS_PANEL_LINES,
                               .series = (const locus_series *)(void *)series,
                               .series_count = 2};
        memcpy(series + i * series_size, &s, sizeof s);
        memcpy(panels + i * panel_size, &p, sizeof p);
    }
    const locus_figure whole = {.title = "t",
                                .panels = (const locus_panel *)(void *)panels,
                                .panel_count = 2};
    locus_figure *figure = resized(&whole, sizeof whole, sizeof whole + figure_more);
    const locus_render plain = {.plain = 1};
    locus_render *render = resized(&plain, sizeof plain, sizeof plain + figure_more);
    for (int format = LOCUS_FORMAT_SVG; format <= LOCUS_FORMAT_JSON; format++) {
        locus_text text = {0};
        locus_error error = {""};
        CHECK(locus_figure_render(figure, (locus_format)format, render, &text, &error) == LOCUS_OK,
              "%s", error.text);
        CHECK(text.length > 0, "no text");
        locus_text_free(&text);
    }
    free(figure);
    free(render);
    free(panels);
    free(series);
}

static void test_figures(void)
{
    static const size_t more[][3] = {{0, 0, 0}, {8, 0, 0}, {0, 16, 0}, {0, 0, 8}, {8, 24, 16}};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (check_begin("abi/figures/%zu", i)) draw(more[i][0], more[i][1], more[i][2]);
    if (!check_begin("abi/pictures")) return;
    locus_picture_request whole;
    locus_picture_request_init(&whole, "t5");
    for (size_t size = 16; size <= sizeof whole + MORE; size += 8) {
        locus_picture_request *request = resized(&whole, sizeof whole, size);
        locus_picture *picture = NULL;
        locus_error error = {""};
        CHECK(locus_picture_new(&picture, request, &error) == LOCUS_OK, "%zu: %s", size,
              error.text);
        locus_picture_free(picture);
        free(request);
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_calls();
    test_unknown_fields();
    test_filled();
    test_figures();
    return check_finish("abi");
}

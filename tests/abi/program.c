/* SPDX-License-Identifier: Apache-2.0 */
/* A program of 0.2: compiled against the headers of that version (tests/abi/0.2), run with the
 * library of the day. It prints what it computes; the answers are those of 0.2. */
#include <locus/locus.h>
#include <locus/plot.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 1, H = 2, T = 6, D = 4, N = B * H * T * D };

static float q[N], k[N], v[N], dout[N], out[N], dq[N], lse[B * H * T], bias[H * T];
static double wide[N], wide_lse[B * H * T];

static int stop(const char *what, const locus_error *error)
{
    printf("%s: %s\n", what, error->text);
    return 1;
}

static locus_tensors tensors(void)
{
    for (int i = 0; i < N; i++) {
        q[i] = (float)(i % 7) / 7.0f;
        k[i] = (float)(i % 5) / 5.0f;
        v[i] = (float)(i % 3) / 3.0f;
        dout[i] = (float)(i % 4) / 4.0f;
    }
    for (int i = 0; i < H * T; i++) bias[i] = (float)i / 16.0f;
    return (locus_tensors){.size = sizeof(locus_tensors),
                           .q = locus_view_bhtd(q, B, H, T, D),
                           .k = locus_view_bhtd(k, B, H, T, D),
                           .v = locus_view_bhtd(v, B, H, T, D),
                           .bias = locus_view(bias, LOCUS_F32, 2, (int64_t[]){H, T})};
}

/* Attention and its gradient, and the same by the oracle. */
static int attend(const locus_config *config, const locus_tensors *in)
{
    const locus_tensor rows = locus_view(lse, LOCUS_F32, 3, (int64_t[]){B, H, T});
    const locus_results results = {sizeof results, 0, locus_view_bhtd(out, B, H, T, D), rows};
    const locus_results up = {.size = sizeof up, .out = locus_view_bhtd(dout, B, H, T, D)};
    const locus_results exact = {.size = sizeof exact,
                                 .out = locus_view(wide, LOCUS_F64, 4, results.out.shape),
                                 .lse = locus_view(wide_lse, LOCUS_F64, 3, rows.shape)};
    const locus_tensors grad = {.size = sizeof grad, .q = locus_view_bhtd(dq, B, H, T, D)};
    locus_error error = {""};
    locus_plan *plan = NULL;
    locus_plan_info info = {.size = sizeof info};
    double sum = 0, apart = 0;
    if (locus_plan_new(&plan, config, in, &error) != LOCUS_OK) return stop("plan", &error);
    const size_t bytes = locus_forward_workspace(plan) + locus_backward_workspace(plan);
    void *work = malloc(bytes);
    if (locus_forward(plan, in, &results, work, bytes, &error) != LOCUS_OK ||
        locus_backward(plan, in, &results, &up, &grad, 0, work, bytes, &error) != LOCUS_OK ||
        locus_oracle(LOCUS_ATTEND, config, in, &exact, NULL, NULL, &error) != LOCUS_OK)
        return stop("call", &error);
    for (int i = 0; i < N; i++) {
        sum += fabs((double)dq[i]);
        apart = fmax(apart, fabs((double)out[i] - wide[i]));
    }
    locus_plan_describe(plan, &info);
    printf("%s %s %d %d out %.4f |dq| %.4f %s\n", config->scheme, info.path, (int)info.heads,
           (int)info.keys, (double)out[N - 1], sum, apart < 1e-5 ? "exact" : "off");
    free(work);
    locus_plan_free(plan);
    return 0;
}

/* A file of 0.2, as it was read then. */
static int read_case(const char *path)
{
    locus_error error = {""};
    locus_case *loaded = NULL;
    const locus_case_run_options options = {.size = sizeof options, .threads = 1};
    int passed = 1;
    if (locus_case_load(&loaded, path, NULL, &error) != LOCUS_OK ||
        locus_case_run(loaded, &options, &error) != LOCUS_OK)
        return stop("case", &error);
    for (size_t i = 0; i < locus_case_result_count(loaded); i++) {
        locus_case_difference d = {.size = sizeof d};
        if (locus_case_compare(loaded, i, &d, &error) != LOCUS_OK) return stop("compare", &error);
        passed &= d.passed;
    }
    printf("case %s\n", passed ? "passed" : "differs");
    locus_case_free(loaded);
    return 0;
}

static int draw(void)
{
    const double heights[] = {1, 3, 2};
    const locus_series series = {.size = sizeof series, .name = "s", .y = heights, .count = 3};
    const locus_panel panel = {
        .size = sizeof panel, .kind = LOCUS_PANEL_LINES, .series = &series, .series_count = 1};
    const locus_figure figure = {.size = sizeof figure, .panels = &panel, .panel_count = 1};
    locus_text text = {0};
    locus_error error = {""};
    if (locus_figure_render(&figure, LOCUS_FORMAT_SVG, NULL, &text, &error) != LOCUS_OK)
        return stop("figure", &error);
    printf("figure %s\n", text.length > 100 ? "drawn" : "empty");
    locus_text_free(&text);
    return 0;
}

int main(int argc, char **argv)
{
    locus_tensors in = tensors();
    locus_config config;
    locus_error error = {""};
    if (argc != 2 || locus_config_init(&config, "distance") != LOCUS_OK) return 2;
    config.causal = 1;
    config.threads = 1;
    if (locus_options_set(&config.options, "distance", LOCUS_ATTEND, "delta_min", "0", &error) !=
        LOCUS_OK)
        return stop("option", &error);
    return attend(&config, &in) || read_case(argv[1]) || draw();
}

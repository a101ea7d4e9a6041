/* SPDX-License-Identifier: Apache-2.0 */
/* Attend with T5's bucketed bias and get the gradient of its table, fused: no T x T array
 * is ever made, in either direction. */
#include <locus/locus.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 2, H = 4, T = 50, D = 16, BUCKETS = 32, SIZE = B * H * T * D };

static float q[SIZE], k[SIZE], v[SIZE], out[SIZE], dout[SIZE], lse[B * H * T];
static float bias[BUCKETS * H], dq[SIZE], dbias[BUCKETS * H];

static void fill(float *x, int count, unsigned seed)
{
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / (1 << 23) - 1.0f;
    }
}

static int stop(const locus_error *error)
{
    fprintf(stderr, "%s\n", error->text);
    return 1;
}

int main(void)
{
    fill(q, SIZE, 1), fill(k, SIZE, 2), fill(v, SIZE, 3), fill(dout, SIZE, 4);
    fill(bias, BUCKETS * H, 5);
    const locus_tensor table = locus_view(bias, LOCUS_F32, 2, (int64_t[]){BUCKETS, H});
    const locus_tensors in = {.size = sizeof in,
                              .q = locus_view_bhtd(q, B, H, T, D),
                              .k = locus_view_bhtd(k, B, H, T, D),
                              .v = locus_view_bhtd(v, B, H, T, D),
                              .bias = table};
    const locus_results results = {.size = sizeof results,
                                   .out = locus_view_bhtd(out, B, H, T, D),
                                   .lse = locus_view(lse, LOCUS_F32, 3, (int64_t[]){B, H, T})};
    const locus_results up = {.size = sizeof up, .out = locus_view_bhtd(dout, B, H, T, D)};
    const locus_tensors grad = {.size = sizeof grad,
                                .q = locus_view_bhtd(dq, B, H, T, D), /* only what we want */
                                .bias = locus_view(dbias, LOCUS_F32, 2, table.shape)};
    locus_config config;
    locus_plan *plan = NULL;
    locus_error error = {{0}};
    if (locus_config_init(&config, "t5") != LOCUS_OK) return 1;
    config.options.buckets = BUCKETS;
    if (locus_plan_new(&plan, &config, &in, &error) != LOCUS_OK) return stop(&error);
    const size_t forward = locus_forward_workspace(plan), backward = locus_backward_workspace(plan);
    void *workspace = malloc(forward > backward ? forward : backward);
    if (locus_forward(plan, &in, &results, workspace, forward, &error) != LOCUS_OK ||
        locus_backward(plan, &in, &results, &up, &grad, 0, workspace, backward, &error) != LOCUS_OK)
        return stop(&error);

    for (int b = 0; b < BUCKETS; b++)
        printf("bucket %2d: dbias of head 0 = %+.6f\n", b, dbias[b * H]);
    free(workspace);
    locus_plan_free(plan);
}

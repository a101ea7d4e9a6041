/* SPDX-License-Identifier: Apache-2.0 */
/* Twenty-five lines: ALiBi attention over four tokens. */
#include <locus/locus.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    enum { B = 1, H = 2, T = 4, D = 8 };
    float q[B * H * T * D], k[B * H * T * D], v[B * H * T * D], out[B * H * T * D], lse[B * H * T];
    for (int i = 0; i < B * H * T * D; i++) q[i] = k[i] = v[i] = (float)(i % 7) / 7.0f;
    locus_tensors in = {.q = locus_view_bhtd(q, B, H, T, D),
                        .k = locus_view_bhtd(k, B, H, T, D),
                        .v = locus_view_bhtd(v, B, H, T, D)};
    locus_results results = {.out = locus_view_bhtd(out, B, H, T, D),
                             .lse = locus_view(lse, LOCUS_F32, 3, (int64_t[]){B, H, T})};
    locus_config config;
    locus_error error = {{0}};
    locus_plan *plan = NULL;
    if (locus_config_init(&config, "alibi") != LOCUS_OK) return 1;
    config.causal = 1;
    if (locus_plan_new(&plan, &config, &in, &error) != LOCUS_OK) return puts(error.text), 1;
    const size_t bytes = locus_forward_workspace(plan);
    void *workspace = malloc(bytes);
    if (locus_forward(plan, &in, &results, workspace, bytes, &error) != LOCUS_OK)
        return puts(error.text), 1;
    for (int t = 0; t < T; t++)
        printf("token %d: out[0] = %.4f, lse = %.4f\n", t, out[t * D], lse[t]);
    free(workspace);
    locus_plan_free(plan);
}

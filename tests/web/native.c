/* SPDX-License-Identifier: Apache-2.0 */
/* native SCHEME LENGTH CAUSAL: the call that the page makes (web/wasm/call.c), run by the portable
 * kernels of this machine. Prints the bits of out and lse, a number per line, in hexadecimal. */

#include <locus/locus.h>
#include <locus/problem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run(locus_problem *p, uint32_t level, const locus_results *results, locus_error *error)
{
    locus_status status;
    if (level == LOCUS_LAYER) {
        locus_layer *layer = NULL;
        if (locus_layer_new(&layer, p->config, p->in, error) != LOCUS_OK) return 1;
        const size_t kept = locus_layer_saved_bytes(layer);
        const size_t bytes = locus_layer_forward_workspace(layer);
        void *saved = malloc(kept), *workspace = malloc(bytes);
        status = locus_layer_forward(layer, p->in, results, saved, kept, workspace, bytes, error);
        free(saved);
        free(workspace);
        locus_layer_free(layer);
        return status != LOCUS_OK;
    }
    locus_plan *plan = NULL;
    if (locus_plan_new(&plan, p->config, p->in, error) != LOCUS_OK) return 1;
    const size_t bytes = locus_forward_workspace(plan);
    void *workspace = malloc(bytes);
    status = locus_forward(plan, p->in, results, workspace, bytes, error);
    free(workspace);
    locus_plan_free(plan);
    return status != LOCUS_OK;
}

static void print(const float *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, numbers + i, sizeof bits);
        printf("%08x\n", (unsigned)bits);
    }
}

int main(int argc, char **argv)
{
    enum { LONGEST = 64 };
    static char names[LONGEST][8];
    const char *tokens[LONGEST + 1] = {NULL};
    locus_error error = {""};
    locus_problem *p = NULL;
    if (argc != 4) return 2;
    const int64_t length = strtoll(argv[2], NULL, 10);
    for (int64_t i = 0; i < length && i < LONGEST; i++) {
        snprintf(names[i], sizeof names[i], "w%d", (int)(i % 7));
        tokens[i] = names[i];
    }
    const locus_scheme_info *scheme = locus_scheme_find(argv[1]);
    const uint32_t level = (scheme->terms & LOCUS_TERM_INPUT) != 0 ? LOCUS_LAYER : LOCUS_ATTEND;
    const locus_problem_request request = {.size = sizeof request,
                                           .level = level,
                                           .scheme = argv[1],
                                           .B = 1,
                                           .H = 4,
                                           .T = length,
                                           .D = 16,
                                           .E = 64,
                                           .causal = argv[3][0] == '1',
                                           .seed = 5,
                                           .tokens = tokens};
    if (locus_problem_new(&p, &request, &error) != LOCUS_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    p->config->isa = "generic";
    const int64_t out = locus_tensor_elements(&p->out), lse = locus_tensor_elements(&p->lse);
    locus_results results = {.size = sizeof results, .out = p->out, .lse = p->lse};
    results.out.data = malloc((size_t)out * sizeof(float));
    results.lse.data = malloc((size_t)lse * sizeof(float));
    if (run(p, level, &results, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    print(results.out.data, out);
    print(results.lse.data, lse);
    return 0;
}

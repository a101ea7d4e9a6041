/* SPDX-License-Identifier: Apache-2.0 */
/* locus_case_write: what it writes, locus_case_load reads back, for every scheme. */

#define _GNU_SOURCE 1
#include <locus/locus.h>
#include <locus/problem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"

static void check_tensors(const locus_tensors *got, const locus_tensors *want)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *a = locus_tensor_at_const(got, i), *b = locus_tensor_at_const(want, i);
        CHECK(a->rank == b->rank, "%s: rank %u, expected %u", locus_tensor_name(i),
              (unsigned)a->rank, (unsigned)b->rank);
        if (a->rank == 0 || a->rank != b->rank) continue;
        const size_t bytes = (size_t)locus_tensor_elements(b) * locus_dtype_bytes(b->dtype);
        CHECK(locus_tensor_elements(a) == locus_tensor_elements(b) &&
                  memcmp(a->data, b->data, bytes) == 0,
              "%s: other numbers", locus_tensor_name(i));
    }
}

static void check_config(const locus_config *got, const locus_config *want)
{
    CHECK(got->causal == want->causal && got->window_left == want->window_left &&
              got->window_right == want->window_right,
          "another reach");
    CHECK(got->query_offset == want->query_offset && got->scale == want->scale &&
              got->softcap == want->softcap && got->dropout == want->dropout &&
              got->dropout_seed == want->dropout_seed,
          "another number");
    CHECK(memcmp(&got->options, &want->options, sizeof want->options) == 0, "other options");
}

static void round_trip(const locus_scheme_info *scheme, uint32_t level, const char *path)
{
    locus_error error = {""};
    locus_problem *p = NULL;
    locus_case *loaded = NULL;
    const locus_problem_request request = {.size = sizeof request,
                                           .level = level,
                                           .scheme = scheme->name,
                                           .B = 1,
                                           .H = 2,
                                           .T = 5,
                                           .D = 4,
                                           .E = 8,
                                           .causal = 1,
                                           .seed = 3};
    if (!check_begin("write/%s/%s", scheme->name, level == LOCUS_LAYER ? "layer" : "attend"))
        return;
    if (locus_problem_new(&p, &request, &error) != LOCUS_OK) {
        check_skip("no such call: %s", error.text);
        return;
    }
    p->config->window_left = 3;
    p->config->scale = 0.1;
    p->config->softcap = 1.0 / 3.0;
    p->config->dropout = 0.25;
    p->config->dropout_seed = UINT64_MAX;
    CHECK(locus_case_write(path, level, p->config, p->in, "a note", &error) == LOCUS_OK, "%s",
          error.text);
    if (locus_case_load(&loaded, path, NULL, &error) == LOCUS_OK) {
        check_config(locus_case_config(loaded), p->config);
        check_tensors(locus_case_inputs(loaded), p->in);
    } else {
        CHECK(0, "%s", error.text);
    }
    locus_case_free(loaded);
    locus_problem_free(p);
}

static void refusals(const char *path)
{
    locus_error error = {""};
    locus_problem *p = NULL;
    const locus_problem_request request = {.size = sizeof request,
                                           .level = LOCUS_ATTEND,
                                           .scheme = "none",
                                           .B = 1,
                                           .H = 2,
                                           .T = 5,
                                           .D = 4};
    if (!check_begin("write/refusals")) return;
    unlink(path);
    CHECK(locus_problem_new(&p, &request, &error) == LOCUS_OK, "%s", error.text);
    p->in->k.stride[2] = 8;
    CHECK(locus_case_write(path, LOCUS_ATTEND, p->config, p->in, NULL, &error) == LOCUS_ERR_TENSOR,
          "strides are written");
    CHECK(strcmp(error.text, "tensor k: found strides, expected a dense tensor") == 0, "%s",
          error.text);
    CHECK(access(path, F_OK) != 0, "a part of a file is left");
    CHECK(locus_case_write(NULL, LOCUS_ATTEND, p->config, p->in, NULL, &error) ==
              LOCUS_ERR_ARGUMENT,
          "no path");
    locus_problem_free(p);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/locus-write-XXXXXX", path[64];
    if (!check_args(argc, argv) || mkdtemp(folder) == NULL) return 2;
    snprintf(path, sizeof path, "%s/case.safetensors", folder);
    for (size_t i = 0; i < locus_scheme_count(); i++) {
        round_trip(locus_scheme_at(i), LOCUS_ATTEND, path);
        round_trip(locus_scheme_at(i), LOCUS_LAYER, path);
    }
    refusals(path);
    unlink(path);
    rmdir(folder);
    return check_finish("write");
}

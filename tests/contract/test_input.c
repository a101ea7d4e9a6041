/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input of ragged batches, caps, rotations, maps and types: one line that names the thing, and
 * nothing is written. Each row spoils one thing of a good call. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locus/locus.h>

#include "support/check.h"

enum { H = 2, T = 6, D = 4, N = H * T * D, ROWS = 2 * T - 1 };

/* A call with everything that a row may spoil. */
typedef struct call {
    locus_config config;
    locus_tensors in;
    float q[2 * N], table[H * ROWS * D], sink[H], frequencies[D];
    int64_t q_offsets[3], k_offsets[3], positions[T], rows[ROWS];
    double out[N], lse[H * T];
} call;

static call good;

static void begin(call *c, const char *scheme)
{
    memset(c, 0, sizeof *c);
    if (locus_config_init(&c->config, scheme) != LOCUS_OK) exit(2);
    c->config.threads = 1;
    c->in.size = sizeof c->in;
    c->in.q = c->in.k = c->in.v = locus_view_bhtd(c->q, 1, H, T, D);
    for (int i = 0; i < N; i++) c->out[i] = -7.0;
    for (int i = 0; i < ROWS; i++) c->rows[i] = i % 4;
}

static void make_ragged(call *c)
{
    begin(c, "none");
    c->q_offsets[1] = c->k_offsets[1] = 2;
    c->q_offsets[2] = c->k_offsets[2] = T;
    c->in.q_offsets = locus_view(c->q_offsets, LOCUS_I64, 1, (const int64_t[]){3});
    c->in.k_offsets = locus_view(c->k_offsets, LOCUS_I64, 1, (const int64_t[]){3});
}

static void make_rope(call *c)
{
    begin(c, "rope");
    c->config.options.pairing = LOCUS_PAIRING_HALF;
    c->in.frequencies = locus_view(c->frequencies, LOCUS_F32, 1, (const int64_t[]){D / 2});
    c->in.q_positions = locus_view(c->positions, LOCUS_I64, 1, (const int64_t[]){T});
}

static void make_table(call *c)
{
    begin(c, "table");
    c->config.options.delta_min = 1 - T;
    c->in.rows = locus_view(c->rows, LOCUS_I64, 1, (const int64_t[]){ROWS});
    c->in.rel_k = locus_view(c->table, LOCUS_F32, 2, (const int64_t[]){4, D});
}

static void make_plain(call *c)
{
    begin(c, "none");
    c->config.softcap = 2.0;
    c->in.sink = locus_view(c->sink, LOCUS_F32, 1, (const int64_t[]){H});
}

/* The oracle's verdict; `words` NULL: a good call. A plan gives the same one. */
static void expect(call *c, const char *words)
{
    const locus_results to = {.size = sizeof to,
                              .out =
                                  locus_view(c->out, LOCUS_F64, 4, (const int64_t[]){1, H, T, D}),
                              .lse = locus_view(c->lse, LOCUS_F64, 3, (const int64_t[]){1, H, T})};
    locus_error error = {""}, other = {""};
    locus_plan *plan = NULL;
    const locus_status status =
        locus_oracle(LOCUS_ATTEND, &c->config, &c->in, &to, NULL, NULL, &error);
    CHECK((status == LOCUS_OK) == (words == NULL), "%s: %s", locus_status_text(status), error.text);
    if (words == NULL) return;
    CHECK(strstr(error.text, words) != NULL, "\"%s\" does not say \"%s\"", error.text, words);
    CHECK(strchr(error.text, '\n') == NULL, "more than a line");
    for (int i = 0; i < N; i++) CHECK(c->out[i] == -7.0, "out[%d] was written", i);
    CHECK(locus_plan_new(&plan, &c->config, &c->in, &other) == status && plan == NULL,
          "a plan says \"%s\"", other.text);
    locus_plan_free(plan);
}

#define REFUSED(name, make, words, change)                                                         \
    if (check_begin("contract/input/%s", name)) {                                                  \
        call *c = &good;                                                                           \
        make(c);                                                                                   \
        expect(c, NULL);                                                                           \
        make(c);                                                                                   \
        change;                                                                                    \
        expect(c, words);                                                                          \
    }

static void test_ragged(void)
{
    REFUSED("first offset", make_ragged, "q_offsets: found 1 at 0", c->q_offsets[0] = 1)
    REFUSED("falling offsets", make_ragged, "k_offsets: found 1 at 2", (c->k_offsets[2] = 1))
    REFUSED("last offset", make_ragged, "q_offsets: found 5 at the end", c->q_offsets[2] = T - 1)
    REFUSED("one of two", make_ragged, "q_offsets: found without k_offsets",
            c->in.k_offsets.rank = 0)
    REFUSED("another count", make_ragged, "k_offsets", c->in.k_offsets.shape[0] = 2)
    REFUSED("offsets of a float", make_ragged, "q_offsets: found F32",
            c->in.q_offsets.dtype = LOCUS_F32)
    REFUSED("no data", make_ragged, "q_offsets: found no data", c->in.q_offsets.data = NULL)
    REFUSED("a batch", make_ragged, "batch",
            c->in.q = c->in.k = c->in.v = locus_view_bhtd(c->q, 2, H, T, D))
    REFUSED("a mask", make_ragged, "tensor mask",
            c->in.mask = locus_view(c->q, LOCUS_U8, 4, (const int64_t[]){1, 1, T, T}))
    REFUSED("a dense bias", make_ragged, "tensor bias_dense",
            c->in.bias_dense = locus_view(c->q, LOCUS_F32, 4, (const int64_t[]){1, 1, T, T}))
}

static void test_numbers(void)
{
    REFUSED("softcap 0", make_plain, "softcap: found 0", c->config.softcap = 0.0)
    REFUSED("softcap below 0", make_plain, "softcap: found -1", c->config.softcap = -1.0)
    REFUSED("softcap NaN", make_plain, "softcap", c->config.softcap = (double)NAN)
    REFUSED("scale NaN", make_plain, "scale", c->config.scale = (double)NAN)
    REFUSED("sink of half precision", make_plain, "sink: found F16", c->in.sink.dtype = LOCUS_F16)
    REFUSED("sink of another length", make_plain, "sink: found shape [1]", c->in.sink.shape[0] = 1)
    REFUSED("a mask of half precision", make_plain, "key_mask: found BF16",
            c->in.key_mask = locus_view(c->q, LOCUS_BF16, 2, (const int64_t[]){1, T}))
}

static void test_rotations(void)
{
    REFUSED("frequencies of another length", make_rope, "frequencies: found 3",
            c->in.frequencies.shape[0] = 3)
    REFUSED("frequencies of half precision", make_rope, "frequencies: found F16",
            c->in.frequencies.dtype = LOCUS_F16)
    REFUSED("frequencies that are not finite", make_rope, "frequencies: found inf",
            c->frequencies[1] = INFINITY)
    REFUSED("base and frequencies", make_rope, "option base", c->config.options.base = 500.0)
    REFUSED("positions of another length", make_rope, "q_positions", c->in.q_positions.shape[0] = 5)
    REFUSED("positions of a float", make_rope, "q_positions: found F32",
            c->in.q_positions.dtype = LOCUS_F32)
    REFUSED("axes without positions", make_rope, "q_positions", c->config.options.axes = 2)
    REFUSED("axes that do not divide", make_rope, "option axes", c->config.options.axes = 3)
    REFUSED("no pairing", make_rope, "option pairing is missing",
            c->config.options.pairing = LOCUS_UNSET)
}

static void test_maps(void)
{
    REFUSED("a row beyond the table", make_table, "rows: found 4 at 3", c->rows[3] = 4)
    REFUSED("a row below it", make_table, "rows: found -1", c->rows[0] = -1)
    REFUSED("a map that is too short", make_table, "rows", c->in.rows.shape[0] = ROWS - 1)
    REFUSED("no table", make_table, "all missing", c->in.rel_k.rank = 0)
    REFUSED("no map", make_table, "rows is missing", c->in.rows.rank = 0)
    REFUSED("no delta_min", make_table, "option delta_min is missing",
            c->config.options.delta_min = LOCUS_UNSET)
    REFUSED("clamp 2", make_table, "option clamp", c->config.options.clamp = 2)
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_ragged();
    test_numbers();
    test_rotations();
    test_maps();
    return check_finish("contract/input");
}

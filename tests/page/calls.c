/* SPDX-License-Identifier: Apache-2.0 */
/* Every function that the page shows, called. run.sh puts this behind the code of the page. */
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { B = 1, H = 4, T = 12, D = 8, E = H * D, N = B * H * T * D, MOST = H * 64 * D + E * E };

static float room[12][MOST], out[N], lse[B * H * T];
static int failures;

static void fill(void)
{
    unsigned seed = 1;
    for (size_t i = 0; i < sizeof room / sizeof room[0][0]; i++) {
        seed = seed * 1664525u + 1013904223u;
        (&room[0][0])[i] = 0.05f + (float)(seed >> 9) / (1 << 23) * 0.5f;
    }
}

/* Done, and every output was written with a number. */
static void expect(const char *name, locus_status status, const locus_error *error)
{
    int wrong = status != LOCUS_OK;
    for (int i = 0; i < N; i++) wrong |= !isfinite(out[i]);
    for (int i = 0; i < B * H * T; i++) wrong |= !isfinite(lse[i]);
    if (wrong) printf("%s: %s\n", name, status != LOCUS_OK ? error->text : "not all is finite");
    failures += wrong;
    for (int i = 0; i < N; i++) out[i] = NAN;
}

#define CALL(name, ...) expect(#name, name(__VA_ARGS__, &results, &error), &error)

static void call_attention(void)
{
    const locus_tensors in = {.size = sizeof in,
                              .q = locus_view_bhtd(room[0], B, H, T, D),
                              .k = locus_view_bhtd(room[1], B, H, T, D),
                              .v = locus_view_bhtd(room[2], B, H, T, D)};
    const locus_results results = {.size = sizeof results,
                                   .out = locus_view_bhtd(out, B, H, T, D),
                                   .lse = locus_view(lse, LOCUS_F32, 3, (int64_t[]){B, H, T})};
    int64_t rows[11];
    locus_error error = {""};
    CALL(plain, in);
    CALL(shaw, in, room[3], room[4], 4);
    CALL(transformer_xl, in, room[3], room[4], room[5]);
    CALL(t5, in, room[3]);
    CALL(tupe, in, room[3], room[4], room[5], room[6]);
    CALL(deberta, in, room[3], room[4], 16);
    CALL(alibi, in);
    CALL(kerple, in, room[3], room[4]);
    CALL(rope, in);
    CALL(xpos, in);
    if (rows_of_distances(in, room[3], rows, &error) != LOCUS_OK || rows[0] != rows[2] ||
        rows[2] == rows[3] || rows[8] != rows[10])
        failures += printf("rows_of_distances: clip 3 is not seen in the rows\n") > 0;
}

static void call_layers(void)
{
    const int64_t square[] = {E, E};
    const locus_tensors in = {.size = sizeof in,
                              .x = locus_view(room[0], LOCUS_F32, 3, (int64_t[]){B, T, E}),
                              .w_q = locus_view(room[1], LOCUS_F32, 2, square),
                              .w_k = locus_view(room[2], LOCUS_F32, 2, square),
                              .w_v = locus_view(room[3], LOCUS_F32, 2, square),
                              .w_o = locus_view(room[4], LOCUS_F32, 2, square)};
    const locus_results results = {.size = sizeof results,
                                   .out = locus_view(out, LOCUS_F32, 3, (int64_t[]){B, T, E}),
                                   .lse = locus_view(lse, LOCUS_F32, 3, (int64_t[]){B, H, T})};
    locus_error error = {""};
    CALL(learned, in, room[5], T, H);
    CALL(sinusoidal, in, H);
}

int main(void)
{
    fill();
    call_attention();
    call_layers();
    return failures > 0;
}

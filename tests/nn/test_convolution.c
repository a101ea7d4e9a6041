/* SPDX-License-Identifier: Apache-2.0 */

/* nn/depthwise and nn/convolution against the formulas in double, over sequences of any length. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/formulas.h"
#include "support/check.h"

enum { PAD = 3 };

typedef struct lengths {
    const int64_t *offsets;
    int64_t sequences;
} lengths;

static const int64_t one_long[] = {0, 70}, mixed[] = {0, 1, 1, 8, 40, 171, 173}, none[] = {0},
                     empty[] = {0, 0}, many[] = {0, 600, 1130};
static const locus_ragged batches[] = {{one_long, 1}, {mixed, 6}, {none, 0}, {empty, 1}, {many, 2}};
enum { BATCHES = sizeof batches / sizeof *batches };

static float *filled(int64_t count, uint64_t stream)
{
    operand o = operand_new(1, count, 0);
    operand_fill(&o, stream, -1.0, 1.0);
    return o.rows.data;
}

/* Wanted and plain results of y, dx, dw, db. */
typedef struct answers {
    double *want[4];
    float *plain[4];
} answers;

static answers new_answers(const int64_t sizes[4])
{
    answers a;
    for (int k = 0; k < 4; k++)
        a.want[k] = new_doubles(sizes[k]), a.plain[k] = new_floats(sizes[k]);
    return a;
}

static void free_answers(answers *a)
{
    for (int k = 0; k < 4; k++) free(a->want[k]), free(a->plain[k]);
}

/* What add_parameters adds to. */
static void start_answers(answers *a, int k, const float *from, int64_t count)
{
    for (int64_t n = 0; n < count; n++) a->want[k][n] = (double)(a->plain[k][n] = from[n]);
}

/* ---- depthwise ---- */

static void check_depthwise(const locus_kernels *kernels, const locus_ragged *tokens, int64_t width,
                            int64_t taps, int64_t before, int add, uint32_t threads)
{
    const int64_t rows = tokens->offsets[tokens->sequences];
    const int64_t sizes[4] = {rows * width, rows * width, taps * width, width};
    operand x = operand_new(rows, width, PAD), dy = operand_new(rows, width, PAD);
    operand y = operand_new(rows, width, PAD), dx = operand_new(rows, width, PAD);
    float *weight = filled(taps * width, 1), *bias = filled(width, 2);
    float *dw = filled(taps * width, 3), *db = filled(width, 4);
    answers a = new_answers(sizes);
    operand_fill(&x, 5, -1.0, 1.0);
    operand_fill(&dy, 6, -1.0, 1.0);
    const locus_depthwise f = {.weight = weight,
                               .bias = add ? NULL : bias,
                               .taps = taps,
                               .before = before,
                               .width = width};
    if (add) start_answers(&a, 2, dw, sizes[2]), start_answers(&a, 3, db, sizes[3]);
    depthwise_double(&f, &x, &dy, tokens, a.want[0], a.want[1], a.want[2], a.want[3]);
    depthwise_float(&f, &x, &dy, tokens, a.plain[0], a.plain[1], a.plain[2], a.plain[3]);
    const locus_workers workers = {kernels, threads};
    const locus_depthwise_grad grad = {&dx.rows, dw, db, add};
    locus_depthwise_forward(&workers, &f, &y.rows, &x.rows, tokens);
    locus_depthwise_backward(&workers, &f, &grad, &dy.rows, &x.rows, tokens);
    operand_expect("y", &y, a.want[0], a.plain[0], 2.0);
    operand_expect("dx", &dx, a.want[1], a.plain[1], 3.0);
    floats_expect("dw", dw, a.want[2], a.plain[2], sizes[2], 3.0);
    floats_expect("db", db, a.want[3], a.plain[3], sizes[3], 3.0);
    operand_free(&x), operand_free(&dy), operand_free(&y), operand_free(&dx);
    free(weight), free(bias), free(dw), free(db);
    free_answers(&a);
}

static void test_depthwise(const locus_kernels *kernels)
{
    if (check_begin("depthwise/%s/widths", kernels->isa))
        for (int64_t width = 1; width <= 70; width++)
            check_depthwise(kernels, &batches[1], width, 1 + width % 9, width % 9 / 2,
                            width % 2 == 0, 2);
    static const int64_t windows[][2] = {{1, 0}, {3, 1}, {31, 15}, {31, 30}, {31, 0}, {4, 2}};
    for (int b = 0; b < BATCHES; b++)
        for (size_t k = 0; k < sizeof windows / sizeof *windows; k++)
            if (check_begin("depthwise/%s/batch%d/taps%d-%d", kernels->isa, b, (int)windows[k][0],
                            (int)windows[k][1]))
                for (int add = 0; add < 2; add++)
                    check_depthwise(kernels, &batches[b], 70, windows[k][0], windows[k][1], add, 3);
}

/* Sequences around DEPTHWISE_ROWS, BLOCK (rows of a task) and LOCUS_ROW_BLOCK. */
static void test_depthwise_lengths(const locus_kernels *kernels)
{
    static const int64_t cuts[] = {8, 64, LOCUS_ROW_BLOCK};
    if (!check_begin("depthwise/%s/lengths", kernels->isa)) return;
    for (size_t i = 0; i < 3; i++)
        for (int64_t multiple = 1; multiple <= 2; multiple++)
            for (int64_t step = -1; step <= 1; step++) {
                const int64_t ends[] = {0, multiple * cuts[i] + step};
                check_depthwise(kernels, &(locus_ragged){ends, 1}, 5, 3, 1, (int)(step & 1), 2);
            }
}

/* ---- convolution ---- */

typedef struct dense_case {
    int64_t inputs, outputs, groups, taps, before;
} dense_case;

typedef struct dense_setup {
    locus_convolution f;
    operand x, dz, y, residual, dx;
    float *weight, *bias, *dw, *db;
    unsigned char *workspace;
    size_t bytes;
} dense_setup;

static dense_setup new_dense(const locus_kernels *kernels, const locus_ragged *tokens, dense_case c,
                             uint32_t threads)
{
    const int64_t rows = tokens->offsets[tokens->sequences];
    const int64_t weights = c.outputs * c.taps * c.inputs / c.groups;
    dense_setup s = {.weight = filled(weights, 1), .bias = filled(c.outputs, 2)};
    s.dw = filled(weights, 3), s.db = filled(c.outputs, 4);
    s.x = operand_new(rows, c.inputs, PAD), s.dx = operand_new(rows, c.inputs, PAD);
    s.y = operand_new(rows, c.outputs, PAD), s.dz = operand_new(rows, c.outputs, PAD);
    s.residual = operand_new(rows, c.outputs, PAD);
    operand_fill(&s.x, 5, -1.0, 1.0);
    operand_fill(&s.dz, 6, -1.0, 1.0);
    operand_fill(&s.residual, 7, -1.0, 1.0);
    s.f = (locus_convolution){.workers = {kernels, threads},
                              .inputs = c.inputs,
                              .outputs = c.outputs,
                              .groups = c.groups,
                              .taps = c.taps,
                              .before = c.before,
                              .weight = s.weight,
                              .bias = s.bias,
                              .activation = LOCUS_TANH};
    int64_t longest = 0;
    for (int64_t k = 0; k < tokens->sequences; k++)
        if (tokens->offsets[k + 1] - tokens->offsets[k] > longest)
            longest = tokens->offsets[k + 1] - tokens->offsets[k];
    uint64_t bytes = 0;
    if (!locus_convolution_workspace(&bytes, &s.f, longest)) exit(2);
    s.bytes = (size_t)bytes;
    s.workspace = malloc(s.bytes + 64);
    if (s.workspace == NULL) exit(2);
    memset(s.workspace, 0x7F, s.bytes + 64);
    s.f.workspace = s.workspace;
    return s;
}

static void free_dense(dense_setup *s)
{
    int intact = 1;
    for (size_t i = 0; i < 64; i++) intact &= s->workspace[s->bytes + i] == 0x7F;
    CHECK(intact, "written beyond the workspace");
    operand *const all[] = {&s->x, &s->dz, &s->y, &s->residual, &s->dx};
    for (size_t i = 0; i < 5; i++) operand_free(all[i]);
    free(s->weight), free(s->bias), free(s->dw), free(s->db), free(s->workspace);
}

static void run_dense(dense_setup *s, const locus_ragged *tokens, int add)
{
    const locus_convolution_grad grad = {&s->dx.rows, s->dw, s->db, add};
    locus_convolution_forward(&s->f, &s->y.rows, &s->x.rows, &s->residual.rows, tokens);
    locus_convolution_backward(&s->f, &grad, &s->dz.rows, &s->x.rows, tokens);
}

static void check_dense(const locus_kernels *kernels, const locus_ragged *tokens, dense_case c,
                        int add)
{
    const int64_t rows = tokens->offsets[tokens->sequences];
    const int64_t weights = c.outputs * c.taps * c.inputs / c.groups;
    const int64_t sizes[4] = {rows * c.outputs, rows * c.inputs, weights, c.outputs};
    dense_setup s = new_dense(kernels, tokens, c, 2);
    answers a = new_answers(sizes);
    if (add) start_answers(&a, 2, s.dw, sizes[2]), start_answers(&a, 3, s.db, sizes[3]);
    convolution_double(&s.f, &s.x, &s.dz, tokens, a.want[0], a.want[1], a.want[2], a.want[3]);
    convolution_float(&s.f, &s.x, &s.dz, tokens, a.plain[0], a.plain[1], a.plain[2], a.plain[3]);
    for (int64_t n = 0; n < sizes[0]; n++) {
        const float residual = operand_row(&s.residual, n / c.outputs)[n % c.outputs];
        a.want[0][n] = tanh(a.want[0][n]) + (double)residual;
        a.plain[0][n] = tanhf(a.plain[0][n]) + residual;
    }
    run_dense(&s, tokens, add);
    operand_expect("y", &s.y, a.want[0], a.plain[0], 2.0);
    operand_expect("dx", &s.dx, a.want[1], a.plain[1], 3.0);
    floats_expect("dw", s.dw, a.want[2], a.plain[2], sizes[2], 3.0);
    floats_expect("db", s.db, a.want[3], a.plain[3], sizes[3], 3.0);
    free_dense(&s);
    free_answers(&a);
}

static void test_dense(const locus_kernels *kernels)
{
    static const dense_case cases[] = {{24, 24, 1, 3, 1}, {24, 24, 4, 3, 1}, {1, 1, 1, 1, 0},
                                       {6, 9, 3, 5, 4},   {70, 70, 1, 3, 0}, {70, 35, 7, 2, 1}};
    for (int b = 0; b < BATCHES; b++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
            if (check_begin("convolution/%s/batch%d/case%d", kernels->isa, b, (int)k))
                for (int add = 0; add < 2; add++) check_dense(kernels, &batches[b], cases[k], add);
}

/* Packed before, with other threads, or a sequence alone: the same bits. */
static void test_dense_bits(const locus_kernels *kernels)
{
    static const uint32_t threads[] = {2, 3, 7};
    static const int64_t alone[] = {0, 131};
    const dense_case c = {64, 64, 2, 3, 1};
    if (!check_begin("convolution/%s/bits", kernels->isa)) return;
    dense_setup one = new_dense(kernels, &batches[1], c, 1);
    run_dense(&one, &batches[1], 0);
    for (int k = 0; k < 3; k++) {
        dense_setup other = new_dense(kernels, &batches[1], c, threads[k]);
        locus_packed packed[2];
        uint64_t bytes = 0;
        void *memory[2];
        if (!locus_convolution_packed_bytes(&bytes, &other.f)) exit(2);
        for (int g = 0; g < 2; g++) {
            memory[g] = malloc((size_t)bytes);
            if (memory[g] == NULL) exit(2);
            packed[g] = locus_convolution_pack(&other.f, g, memory[g]);
        }
        other.f.packed = packed;
        run_dense(&other, &batches[1], 0);
        CHECK(operand_same_bits(&one.y, &other.y) && operand_same_bits(&one.dx, &other.dx) &&
                  memcmp(one.dw, other.dw, 64 * 96 * sizeof(float)) == 0 &&
                  memcmp(one.db, other.db, 64 * sizeof(float)) == 0,
              "%u threads and packed weights give other bits", (unsigned)threads[k]);
        free(memory[0]), free(memory[1]);
        free_dense(&other);
    }
    const locus_ragged single = {alone, 1};
    dense_setup some = new_dense(kernels, &single, c, 1);
    for (int64_t i = 0; i < 131; i++) {
        memcpy(operand_row(&some.x, i), operand_row(&one.x, 40 + i), 64 * sizeof(float));
        memcpy(operand_row(&some.residual, i), operand_row(&one.residual, 40 + i),
               64 * sizeof(float));
    }
    run_dense(&some, &single, 0);
    int same = 1;
    for (int64_t i = 0; i < 131; i++)
        same &= memcmp(operand_row(&some.y, i), operand_row(&one.y, 40 + i), 256) == 0;
    CHECK(same, "a sequence depends on the others");
    free_dense(&one), free_dense(&some);
}

static void test_arrange(void)
{
    if (!check_begin("convolution/arrange")) return;
    float from[24], to[24], back[24];
    for (int i = 0; i < 24; i++) from[i] = (float)i;
    locus_convolution_arrange(to, from, 2, 4, 3); /* [2][4][3] to [2][3][4] */
    CHECK(to[0] == 0.0f && to[1] == 3.0f && to[4] == 1.0f && to[12] == 12.0f && to[23] == 23.0f,
          "axes are not exchanged");
    locus_convolution_arrange(back, to, 2, 3, 4);
    CHECK(memcmp(from, back, sizeof from) == 0, "twice is not the identity");
}

static void test_table(const locus_kernels *kernels)
{
    test_depthwise(kernels);
    test_depthwise_lengths(kernels);
    test_dense(kernels);
    test_dense_bits(kernels);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for_each_table(test_table);
    test_arrange();
    return check_finish("nn/convolution");
}

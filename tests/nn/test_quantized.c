/* SPDX-License-Identifier: Apache-2.0 */
/* nn/quantized: near the map in double, the same bits on every table, thread count, cut and batch,
 * rows that cannot be quantized in float, and weights whose sums cannot overflow. */

#include "nn/quantized.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "nn/operand.h"
#include "support/check.h"

static const char *const kind_names[LOCUS_QUANT_KINDS] = {"i16", "w8", "h8"};

typedef struct setup {
    operand w, x, y, gate, residual;
    float *bias;
    locus_tensor weight, bias_tensor;
    locus_quant_kind kind;
} setup;

static setup new_setup(locus_quant_kind kind, int64_t rows, int64_t inputs, int64_t outputs)
{
    setup s = {.kind = kind, .bias = new_floats(outputs)};
    s.w = operand_new(outputs, inputs, 5), s.x = operand_new(rows, inputs, 3);
    s.y = operand_new(rows, outputs, 3);
    s.gate = operand_new(rows, outputs, 3), s.residual = operand_new(rows, outputs, 3);
    operand_fill(&s.w, 1, -1.0, 1.0), operand_fill(&s.x, 2, -2.0, 2.0);
    operand_fill(&s.gate, 3, -1.0, 1.0), operand_fill(&s.residual, 4, -1.0, 1.0);
    for (int64_t c = 0; c < outputs; c++) s.bias[c] = (float)(c % 7) - 3.0f;
    s.weight = locus_view(s.w.rows.data, LOCUS_F32, 2, (const int64_t[]){outputs, inputs});
    s.weight.stride[0] = s.w.rows.stride;
    s.bias_tensor = locus_view(s.bias, LOCUS_F32, 1, &outputs);
    return s;
}

static void free_setup(setup *s)
{
    operand *const all[] = {&s->w, &s->x, &s->y, &s->gate, &s->residual};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) operand_free(all[i]);
    free(s->bias);
}

static locus_row_batch batch(const operand *o, int64_t batches)
{
    const int64_t rows = o->rows.count / batches;
    return (locus_row_batch){o->rows.data, batches, rows, rows * o->rows.stride, o->rows.stride};
}

/* y of the whole map into s->y. Ends are computed by the portable table, so that they have the same
 * bits whatever computes the sums. */
static void run(setup *s, const locus_quant_kernels *kernels, uint32_t threads, size_t cache,
                int64_t batches, int ends)
{
    uint64_t bytes = 0;
    if (!locus_quantized_bytes(&bytes, s->kind, s->w.width, s->w.rows.count)) exit(2);
    void *memory = malloc((size_t)bytes);
    if (memory == NULL) exit(2);
    const locus_quantized q = locus_quantize_weight(kernels, s->kind, &s->weight, memory, threads);
    locus_linear f = {.kernels = locus_kernels_at(0), .threads = threads, .second_cache = cache};
    const size_t room = (size_t)locus_linear_workspace(&f);
    uint8_t *workspace = malloc(room + 64);
    if (workspace == NULL) exit(2);
    memset(workspace + room, 0x7F, 64);
    f.workspace = workspace, f.quantized = &q, f.bias = &s->bias_tensor;
    const locus_row_batch y = batch(&s->y, batches), x = batch(&s->x, batches);
    const locus_row_batch gate = batch(&s->gate, batches), residual = batch(&s->residual, batches);
    const locus_linear_end end = {LOCUS_RELU, &gate, &residual};
    locus_linear_forward(&f, &y, &x, ends ? &end : NULL);
    for (int i = 0; i < 64; i++) CHECK(workspace[room + (size_t)i] == 0x7F, "beyond the workspace");
    free(memory), free(workspace);
}

static const locus_quant_kernels *table(uint32_t index)
{
    const locus_quant_kernels *q = locus_quant_kernels_at(index);
    return q == NULL || (q->cpu & ~locus_cpu_integer_features()) == 0 ? q : NULL;
}

/* ---- accuracy ---- */

/* Root mean square error over that of the exact product. */
static double error_of(const setup *s, int ends)
{
    double error = 0.0, size = 0.0;
    for (int64_t i = 0; i < s->x.rows.count; i++)
        for (int64_t c = 0; c < s->w.rows.count; c++) {
            double z = (double)s->bias[c];
            for (int64_t k = 0; k < s->w.width; k++)
                z += (double)operand_row(&s->x, i)[k] * (double)operand_row(&s->w, c)[k];
            if (ends)
                z = (z > 0.0 ? z : 0.0) * (double)operand_row(&s->gate, i)[c] +
                    (double)operand_row(&s->residual, i)[c];
            const double off = (double)operand_row(&s->y, i)[c] - z;
            error += off * off, size += z * z;
        }
    return sqrt(error / size);
}

static void test_accuracy(locus_quant_kind kind)
{
    static const double most[LOCUS_QUANT_KINDS] = {6e-4, 8e-3, 1.5e-2};
    if (!check_begin("quantized/%s/accuracy", kind_names[kind])) return;
    for (int outlier = 0; outlier < 2; outlier++)
        for (int ends = 0; ends < 2; ends++) {
            setup s = new_setup(kind, 40, 384, 130);
            for (int64_t i = 0; outlier && i < 40; i++) operand_row(&s.x, i)[17] *= 1000.0f;
            run(&s, table(0), 2, 0, 1, ends);
            const double error = error_of(&s, ends);
            CHECK(error < most[kind], "error %g, at most %g expected%s", error, most[kind],
                  outlier ? ", with one large input" : "");
            CHECK(error > most[kind] / 1000.0, "error %g: nothing was quantized", error);
            free_setup(&s);
        }
}

/* ---- bits ---- */

static void test_bits(locus_quant_kind kind)
{
    if (!check_begin("quantized/%s/bits", kind_names[kind])) return;
    for (int64_t outputs = 1; outputs < 150; outputs += 70)
        for (int64_t rows = 1; rows < 60; rows += 29) {
            setup s = new_setup(kind, 2 * rows, 200, outputs);
            setup t = new_setup(kind, 2 * rows, 200, outputs);
            run(&s, table(0), 1, 0, 1, 1);
            for (uint32_t i = 0; table(i) != NULL; i++)
                for (uint32_t threads = 1; threads <= 3; threads++) {
                    run(&t, table(i), threads, threads == 2 ? 4096 : 0, threads == 3 ? 2 : 1, 1);
                    CHECK(operand_same_bits(&s.y, &t.y), "%s, %u threads: other bits",
                          table(i)->isa, threads);
                }
            free_setup(&s), free_setup(&t);
        }
}

/* Row by row: each has the bits that it has among all. */
static void test_alone(locus_quant_kind kind)
{
    if (!check_begin("quantized/%s/alone", kind_names[kind])) return;
    setup s = new_setup(kind, 23, 150, 70), one = new_setup(kind, 1, 150, 70);
    run(&s, locus_quant_kernels_pick(NULL), 2, 0, 1, 0);
    for (int64_t i = 0; i < 23; i++) {
        memcpy(operand_row(&one.x, 0), operand_row(&s.x, i), 150 * sizeof(float));
        run(&one, locus_quant_kernels_pick(NULL), 1, 0, 1, 0);
        CHECK(!memcmp(operand_row(&one.y, 0), operand_row(&s.y, i), 70 * sizeof(float)),
              "row %d has other bits alone", (int)i);
    }
    free_setup(&s), free_setup(&one);
}

/* ---- rows in float ---- */

static void test_special(locus_quant_kind kind)
{
    if (!check_begin("quantized/%s/special", kind_names[kind])) return;
    setup plain = new_setup(kind, 9, 140, 30), s = new_setup(kind, 9, 140, 30);
    operand_row(&s.x, 1)[7] = (float)NAN;
    operand_row(&s.x, 3)[139] = (float)INFINITY;
    for (int k = 0; k < 140; k++) operand_row(&s.x, 5)[k] = k == 2 ? 1e-33f : 0.0f;
    for (int k = 0; k < 140; k++) operand_row(&s.x, 6)[k] = 0.0f;
    for (int64_t c = 0; c < 30; c++) operand_row(&s.w, c)[139] = c % 2 == 0 ? 0.9f : -0.9f;
    for (int64_t c = 0; c < 30; c++) operand_row(&plain.w, c)[139] = c % 2 == 0 ? 0.9f : -0.9f;
    for (uint32_t i = 0; table(i) != NULL; i++) {
        run(&plain, table(i), 1, 0, 1, 0);
        run(&s, table(i), 2, 0, 1, 0);
        for (int64_t c = 0; c < 30; c++) {
            const float infinite = c % 2 == 0 ? INFINITY : -INFINITY;
            CHECK(isnan(operand_row(&s.y, 1)[c]), "NaN became a number");
            CHECK(operand_row(&s.y, 3)[c] == infinite, "an infinity became %g",
                  (double)operand_row(&s.y, 3)[c]);
            CHECK(operand_row(&s.y, 5)[c] == s.bias[c] || s.bias[c] == 0.0f, "a tiny row");
            CHECK(operand_row(&s.y, 6)[c] == s.bias[c], "zeros became %g",
                  (double)operand_row(&s.y, 6)[c]);
        }
        static const int64_t others[] = {0, 2, 4, 7, 8};
        for (int k = 0; k < 5; k++)
            CHECK(!memcmp(operand_row(&s.y, others[k]), operand_row(&plain.y, others[k]),
                          30 * sizeof(float)),
                  "row %d is not what it is without the others", (int)others[k]);
    }
    free_setup(&plain), free_setup(&s);
}

/* ---- weights ---- */

/* Whatever the weights are: sum |n| 16383 of every group of I16 stays below 2^31. */
static void test_bound(void)
{
    if (!check_begin("quantized/i16/bound")) return;
    for (int how = 0; how < 6; how++) {
        setup s = new_setup(LOCUS_QUANT_I16, 1, 256, 16);
        uint64_t bytes = 0;
        for (int64_t c = 0; c < 16; c++)
            for (int64_t k = 0; k < 256; k++) {
                float *w = &operand_row(&s.w, c)[k];
                if (how == 1) *w = 0.37f * (float)(c + 1);
                if (how == 2) *w = k % 128 == 0 ? 1.0f : 0.0f;
                if (how == 3) *w *= k % 64 == 0 ? 1e4f : 1e-4f;
                if (how == 4) *w = ldexpf(*w, -90);
                if (how == 5) *w = ldexpf(*w, 90);
            }
        CHECK(locus_quantized_bytes(&bytes, s.kind, 256, 16) == 1, "bytes");
        void *memory = malloc((size_t)bytes);
        const locus_quantized q = locus_quantize_weight(table(0), s.kind, &s.weight, memory, 1);
        for (int o = 0; o < 16; o++)
            for (int g = 0; g < 2; g++) {
                int64_t sum = 0;
                float most = 0.0f, off = 0.0f, back[256];
                for (int k = g * 128; k < (g + 1) * 128; k++) {
                    int16_t n;
                    memcpy(&n, q.weights + (k / 2 * 16 + o) * 4 + k % 2 * 2, sizeof n);
                    sum += llabs((long long)n);
                    most = fmaxf(most, fabsf(operand_row(&s.w, o)[k]));
                }
                locus_quantized_weights(&q, o, back);
                for (int k = g * 128; k < (g + 1) * 128; k++)
                    off = fmaxf(off, fabsf(back[k] - operand_row(&s.w, o)[k]));
                CHECK(sum * LOCUS_QUANT_I16_MOST <= INT32_MAX, "case %d: a group may overflow",
                      how);
                CHECK(off <= most / 1900.0f, "case %d: off by %g of %g", how, (double)off,
                      (double)most);
            }
        free(memory), free_setup(&s);
    }
}

static void test_refused(void)
{
    if (!check_begin("quantized/refused")) return;
    static const float special[] = {(float)NAN, (float)INFINITY, 2e30f};
    setup s = new_setup(LOCUS_QUANT_H8, 1, 20, 4);
    CHECK(locus_quantizes(&s.weight), "ordinary weights are refused");
    for (int k = 0; k < 3; k++) {
        operand_row(&s.w, 3)[19] = special[k];
        CHECK(!locus_quantizes(&s.weight), "%g is quantized", (double)special[k]);
    }
    s.weight.shape[0] = 0;
    for (int over = 0; over < 2; over++) {
        s.weight.shape[1] = LOCUS_QUANT_MOST_INPUTS + over;
        CHECK(locus_quantizes(&s.weight) == !over, "%d inputs more than the most", over);
    }
    free_setup(&s);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (int kind = 0; kind < LOCUS_QUANT_KINDS; kind++) {
        test_accuracy((locus_quant_kind)kind);
        test_bits((locus_quant_kind)kind);
        test_alone((locus_quant_kind)kind);
        test_special((locus_quant_kind)kind);
    }
    test_bound();
    test_refused();
    return check_finish("nn/quantized");
}

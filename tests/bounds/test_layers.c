/* SPDX-License-Identifier: Apache-2.0 */
/* Layers around every constant that cuts a linear map, and on views of every kind, against the
 * oracle. Rows are B T, inputs E and H D, outputs H D and E. */

#include <inttypes.h>
#include <locus/runtime.h>

#include "bounds/constants.h"
#include "layer/specs.h"
#include "support/check.h"
#include "support/judge.h"
#include "support/views.h"

static const char *isa_of(size_t number)
{
    size_t count = 0;
    while (locus_isa_name(count) != NULL && locus_isa_available(locus_isa_name(count))) count++;
    return locus_isa_name(number % count);
}

static void judge(test_spec shape, const char *what, size_t number)
{
    const char *isa = isa_of(number);
    shape.scheme = "none";
    shape.level = LOCUS_LAYER;
    shape.without = "b_k"; /* its gradient is 0: thousands of terms that cancel, and their errors */
    shape.seed = number + 1;
    if (!check_begin("bounds/%s/%s/B%" PRId64 "T%" PRId64 "E%" PRId64 "D%" PRId64, what, isa,
                     shape.B, shape.Tq, shape.E, shape.D))
        return;
    test_problem *p = test_problem_new(&shape);
    p->config.isa = isa;
    p->config.threads = 1 + (uint32_t)(number % 2);
    test_judge(p,
               &(test_manner){.accumulate = (int)(number % 3 == 0), .misalign = 8 * (number % 8)});
    test_problem_free(p);
}

/* `constant` rows, inputs and outputs, and twice as many, less one, as they are, and one more. */
static void cross_value(const char *constant, int64_t value, size_t place)
{
    for (int64_t multiple = 1; multiple <= 2; multiple++)
        for (int64_t step = -1; step <= 1; step++) {
            const int64_t n = multiple * value + step;
            judge((test_spec){.B = 1, .H = 1, .Tq = n, .Tk = n, .D = 6, .E = 7}, constant, place++);
            judge((test_spec){.B = 1, .H = 1, .Tq = 5, .Tk = 5, .D = 6, .E = n}, constant, place++);
            if (n <= 1024)
                judge((test_spec){.B = 2, .H = 1, .Tq = 3, .Tk = 3, .D = n, .E = 9}, constant,
                      place++);
        }
}

static void cross(const char *constant, size_t number)
{
    int64_t values[8];
    const size_t count = constant_values(constant, values, 8);
    for (size_t i = 0; i < count; i++) cross_value(constant, values[i], number + i);
}

static void test_views_of(size_t i)
{
    for (int kind = TEST_VIEWS_GAPS; kind <= TEST_VIEWS_BROADCAST; kind++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            if (!check_begin("bounds/layer-views/%s-%zu/%d%d", layer_specs[i].scheme, i, kind,
                             accumulate))
                continue;
            test_problem *p = layer_problem(i);
            test_views *views = test_views_new(p, kind, 10 * i + (uint64_t)accumulate + 1);
            p->config.isa = isa_of(i);
            test_judge(p, &(test_manner){.accumulate = accumulate, .misalign = 8});
            const char *damaged = test_views_damaged(views);
            CHECK(damaged == NULL, "memory beside %s was written", damaged);
            test_problem_free(p);
            test_views_free(views);
        }
}

/* Three batch entries with memory: strides of a batch count from the second on. */
static void test_memory(void)
{
    for (int kind = TEST_VIEWS_GAPS; kind <= TEST_VIEWS_BROADCAST; kind++) {
        if (!check_begin("bounds/layer-memory/%d", kind)) continue;
        test_problem *p = test_problem_new(&(test_spec){.scheme = "none",
                                                        .level = LOCUS_LAYER,
                                                        .B = 4,
                                                        .H = 2,
                                                        .Tq = 5,
                                                        .Tk = 12,
                                                        .D = 4,
                                                        .E = 9,
                                                        .seed = 3});
        test_views *views = test_views_new(p, kind, 5 + (uint64_t)kind);
        test_judge(p, &(test_manner){0});
        test_problem_free(p);
        test_views_free(views);
    }
}

int main(int argc, char **argv)
{
    static const char *const constants[] = {"nn/LEAST_ROWS",
                                            "nn/UNPACKED_ROWS",
                                            "nn/SUM_COLUMNS",
                                            "kernels/LINEAR_INNER",
                                            "kernels/LOCUS_CHAIN",
                                            "kernels/LINEAR_ROWS",
                                            "kernels/FEW_ROWS",
                                            "kernels/LINEAR_COLUMNS",
                                            "kernels/LOCUS_RIGHT_COLUMNS",
                                            "kernels/LOCUS_SHORT_INNER"};
    if (!check_args(argc, argv)) return 2;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (!check_sample() || i % 3 == 0) cross(constants[i], i);
    for (size_t i = 0; i < LAYER_SPECS; i += check_sample() ? 3 : 1) test_views_of(i);
    test_memory();
    return check_finish("bounds/layers");
}

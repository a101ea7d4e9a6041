/* SPDX-License-Identifier: Apache-2.0 */
/* NaN and infinity in every input of a layer: the library and the oracle agree on what they reach.
 * Relative tables and `pos` have more rows than the call needs. */

#include <math.h>

#include "layer/specs.h"
#include "support/check.h"
#include "support/special.h"

enum { SPARE = 4 };

static test_problem *make(size_t i)
{
    test_spec spec = layer_specs[i];
    spec.level = LOCUS_LAYER;
    spec.seed = i + 1;
    spec.reach = spec.Tk + SPARE;
    return test_problem_new(&spec);
}

static void test_value_in(size_t i, const char *name, int64_t element, double value,
                          const char *what)
{
    if (!check_begin("layer/%s/%s-%d/%s-%d", what, layer_specs[i].scheme, (int)i, name,
                     (int)element))
        return;
    test_problem *p = make(i);
    test_special_value(p, name, element, value);
    test_problem_free(p);
}

/* What takes no part has gradient 0 beside weights of NaN. */
static void test_spare_rows(void)
{
    static const test_spec spec = {.scheme = "tupe",
                                   .level = LOCUS_LAYER,
                                   .B = 1,
                                   .H = 2,
                                   .Tq = 5,
                                   .Tk = 5,
                                   .D = 4,
                                   .E = 6,
                                   .reach = 5 + SPARE,
                                   .seed = 3};
    if (!check_begin("layer/spare-rows")) return;
    test_problem *p = test_problem_new(&spec);
    test_special_value(p, "w_pq", 0, (double)NAN);
    for (int path = 0; path < TEST_PATHS; path++) {
        const locus_tensor *pos = &p->grad[path].pos;
        CHECK(pos->shape[0] > spec.Tk, "no spare row");
        for (int64_t e = spec.Tk * spec.E; e < locus_tensor_elements(pos); e++)
            CHECK(test_value(pos, e) == 0.0, "%s: grad.pos at %d", test_path_name(path), (int)e);
    }
    test_problem_free(p);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t i = 0; i < LAYER_SPECS; i += check_sample() ? 3 : 1) {
        test_problem *p = make(i);
        for (size_t t = 0; t < LOCUS_TENSOR_COUNT; t++) {
            const locus_tensor *tensor = locus_tensor_at_const(&p->in[0], t);
            const int64_t elements = locus_tensor_elements(tensor);
            if (elements == 0 || tensor->dtype == LOCUS_U8) continue;
            const char *name = locus_tensor_name(t);
            test_value_in(i, name, 0, (double)NAN, "nan");
            test_value_in(i, name, elements - 1, (double)NAN, "nan");
            test_value_in(i, name, elements / 2, (double)INFINITY, "inf");
        }
        test_problem_free(p);
    }
    test_spare_rows();
    return check_finish("layer/special");
}

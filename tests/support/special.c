/* SPDX-License-Identifier: Apache-2.0 */
#include "support/special.h"

#include <math.h>
#include <string.h>

#include "support/check.h"

static int is_nan(double x) { return isnan(x) != 0; }
static int is_not_finite(double x) { return isfinite(x) == 0; }

/* -inf is what a row that sees nothing has. */
static int is_bad_lse(double x) { return x != -(double)INFINITY && !isfinite(x); }

static void compare(const char *name, const locus_tensor *got, const locus_tensor *want,
                    int (*is)(double))
{
    const int64_t elements = locus_tensor_elements(want);
    int64_t missing = 0, extra = 0;
    for (int64_t i = 0; i < elements; i++) {
        const int found = is(test_value(got, i)), expected = is(test_value(want, i));
        missing += expected && !found;
        extra += found && !expected;
    }
    CHECK(missing == 0 && extra == 0, "%s: %d of %d special values missing, %d too many", name,
          (int)missing, (int)elements, (int)extra);
}

static void run(test_problem *p, int path)
{
    locus_error error = {{0}};
    const locus_status status = test_problem_run(p, path, 1, &error);
    CHECK(status == LOCUS_OK, "%s: %s", test_path_name(path), error.text);
}

void test_special_agree(test_problem *p, int nan_only)
{
    int (*is)(double) = nan_only ? is_nan : is_not_finite;
    run(p, TEST_ORACLE);
    run(p, TEST_FLOAT);
    compare("out", &p->results[1].out, &p->results[0].out, is);
    compare("lse", &p->results[1].lse, &p->results[0].lse, nan_only ? is_nan : is_bad_lse);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        compare(locus_tensor_name(i), locus_tensor_at_const(&p->grad[1], i),
                locus_tensor_at_const(&p->grad[0], i), is);
}

void test_special_value(test_problem *p, const char *name, int64_t element, double value)
{
    const int index = locus_tensor_index(name);
    const locus_tensor *t =
        strcmp(name, "dout") == 0 ? &p->dout[0] : locus_tensor_at_const(&p->in[0], (size_t)index);
    test_set_value(t, element, value);
    test_problem_sync(p);
    test_special_agree(p, isnan(value) != 0);
}

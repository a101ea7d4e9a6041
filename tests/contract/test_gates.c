/* SPDX-License-Identifier: Apache-2.0 */
/* Gates that forget whole key tiles: what is passed over is missed by no bit that counts, what is
 * not small is not passed over, and a value that is not finite reaches every row that sees it. */

#include <math.h>

#include "attention/gate_skip.h"
#include "support/check.h"
#include "support/judge.h"

enum { T = 3 * FORWARD_KEYS + 70, D = 4 };

static test_problem *new_problem(double gate)
{
    test_problem *p = test_problem_new(&(test_spec){.scheme = "none",
                                                    .level = LOCUS_ATTEND,
                                                    .B = 1,
                                                    .H = 1,
                                                    .Tq = T,
                                                    .Tk = T,
                                                    .D = D,
                                                    .settings = "causal=1",
                                                    .with = "log_gate"});
    for (int64_t t = 0; t < T; t++) test_set_value(&p->in[0].log_gate, t, gate);
    test_problem_sync(p);
    return p;
}

static int may_skip(const test_problem *p)
{
    locus_plan *plan = NULL;
    locus_error error = {""};
    if (locus_plan_new(&plan, &p->config, &p->in[1], &error) != LOCUS_OK) return 0;
    const int may = locus_gates_may_skip(plan);
    locus_plan_free(plan);
    return may;
}

static void check_judged(const char *name, double gate, double far)
{
    if (!check_begin("contract/gates/%s", name)) return;
    test_problem *p = new_problem(gate);
    /* the first key and all queries look the same way */
    for (int64_t d = 0; far != 0.0 && d < D; d++) test_set_value(&p->in[0].k, d, far);
    for (int64_t i = 0; far != 0.0 && i < T * D; i++)
        test_set_value(&p->in[0].q, i, fabs(test_value(&p->in[0].q, i)));
    test_problem_sync(p);
    CHECK(may_skip(p), "no tile may be passed over");
    test_judge(p, &(test_manner){0});
    test_problem_free(p);
}

/* NaN in the value of key 3, or in dout of row 900. */
static void check_nan(void)
{
    if (!check_begin("contract/gates/nan")) return;
    test_problem *p = new_problem(-0.4);
    locus_error error = {""};
    test_set_value(&p->in[1].v, 3 * D + 1, (double)NAN);
    test_set_value(&p->dout[1], 900 * D + 2, (double)NAN);
    CHECK(test_problem_run(p, TEST_FLOAT, 1, &error) == LOCUS_OK, "%s", error.text);
    int64_t clean = 0, values = 0;
    for (int64_t m = 3; m < T; m++) clean += !isnan(test_value(&p->results[1].out, m * D + 1));
    for (int64_t n = 0; n <= 900; n++) values += !isnan(test_value(&p->grad[1].v, n * D + 2));
    CHECK(clean == 0, "%d rows lack the NaN of a value", (int)clean);
    CHECK(values == 0, "%d values lack the NaN of dout", (int)values);
    test_problem_free(p);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    check_judged("forgetful", -0.4, 0.0);
    check_judged("slow", -0.01, 0.0);
    check_judged("growing", 0.01, 0.0);
    check_judged("far key", -0.05, 60.0);
    check_nan();
    return check_finish("contract/gates");
}

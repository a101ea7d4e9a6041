/* SPDX-License-Identifier: Apache-2.0 */
/* Decays per channel: mild ones, steep ones and growth on both sides of every cut, held to the
 * oracle; what a decay of 0 says; and NaN in a decay, which reaches no row before it. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <locus/locus.h>

#include "attention/cuts.h"
#include "support/check.h"
#include "support/judge.h"

static locus_tensor *decays_of(locus_tensors *tensors)
{
    return locus_tensor_named(tensors, "log_decay");
}

static test_problem *new_problem(const char *scheme, int64_t Tq, int64_t Tk, const char *settings)
{
    return test_problem_new(&(test_spec){.scheme = scheme,
                                         .level = LOCUS_ATTEND,
                                         .B = 1,
                                         .H = 2,
                                         .Tq = Tq,
                                         .Tk = Tk,
                                         .D = 5,
                                         .settings = settings});
}

static void set_decays(test_problem *p, double least, double most)
{
    const locus_tensor *t = decays_of(&p->in[0]);
    for (int64_t i = 0; i < locus_tensor_elements(t); i++)
        test_set_value(t, i,
                       (double)(float)(least + (most - least) * test_uniform(5, (uint64_t)i)));
    test_problem_sync(p);
}

/* Panels of steep tiles, tiles of keys, and one more or less of each. */
static void check_cuts(void)
{
    static const struct {
        const char *name;
        double least, most;
    } kinds[] = {{"mild", -0.2, 0.05},  {"steep", -9.0, 0.0}, {"huge", -2e3, 0.0},
                 {"growth", -0.1, 0.2}, {"mixed", -3.0, 1.0}, {"none", 0.0, 0.0}};
    static const int64_t lengths[] = {DECAY_PANEL - 1,   DECAY_PANEL,         DECAY_PANEL + 1,
                                      2 * DECAY_PANEL,   2 * DECAY_PANEL + 1, DECAY_KEYS - 1,
                                      DECAY_KEYS,        DECAY_KEYS + 1,      2 * DECAY_KEYS - 1,
                                      2 * DECAY_KEYS + 1};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
            const int grows = kinds[k].most > 0.1;
            const int64_t T = grows && lengths[n] > 90 ? lengths[n] % 90 + 1 : lengths[n];
            if (!check_begin("contract/decays/%s/%d-%d", kinds[k].name, (int)n, (int)T)) continue;
            test_problem *p = new_problem("wall", T, T, "");
            set_decays(p, kinds[k].least, kinds[k].most);
            test_judge(p, &(test_manner){0});
            test_problem_free(p);
        }
}

/* Few rows over many keys; rows behind the last key. */
static void check_rows(void)
{
    static const struct {
        int64_t Tq, Tk;
        const char *settings;
    } shapes[] = {{1, 300, ""},
                  {8, 200, ""},
                  {5, 140, "query_offset=170"},
                  {40, 20, ""},
                  {9, 9, "query_offset=-3"}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (!check_begin("contract/decays/rows/%zu", i)) continue;
        test_problem *p = new_problem("wall", shapes[i].Tq, shapes[i].Tk, shapes[i].settings);
        set_decays(p, -4.0, 0.1);
        test_judge(p, &(test_manner){0});
        test_judge(p, &(test_manner){.accumulate = 1});
        test_judge(p, &(test_manner){.only = "log_decay"});
        test_problem_free(p);
    }
}

/* Every exponent is 0: the products are those of none. */
static void check_zero(void)
{
    if (!check_begin("contract/decays/zero")) return;
    test_problem *wall = new_problem("wall", 150, 150, "");
    test_problem *none = new_problem("none", 150, 150, "causal=1");
    set_decays(wall, 0.0, 0.0);
    locus_error error = {""};
    const int ran = test_problem_run(wall, TEST_FLOAT, 1, &error) == LOCUS_OK &&
                    test_problem_run(none, TEST_FLOAT, 1, &error) == LOCUS_OK;
    if (CHECK(ran, "%s", error.text)) {
        test_judge_tensor("out", &wall->results[1].out, &none->results[1].out, 1e-6);
        test_judge_tensor("grad.q", &wall->grad[1].q, &none->grad[1].q, 1e-6);
        test_judge_tensor("grad.k", &wall->grad[1].k, &none->grad[1].k, 1e-6);
    }
    test_problem_free(wall);
    test_problem_free(none);
}

/* NaN at position `at` of head 0: rows before it and the other head keep their bits. */
static void check_nan(int64_t at)
{
    enum { T = 150, D = 5 };
    if (!check_begin("contract/decays/nan/%d", (int)at)) return;
    test_problem *clean = new_problem("wall", T, T, ""), *spoilt = new_problem("wall", T, T, "");
    set_decays(clean, -0.2, 0.0);
    set_decays(spoilt, -0.2, 0.0);
    test_set_value(decays_of(&spoilt->in[1]), at * D + 2, (double)NAN);
    locus_error error = {""};
    const int ran = test_problem_run(clean, TEST_FLOAT, 1, &error) == LOCUS_OK &&
                    test_problem_run(spoilt, TEST_FLOAT, 1, &error) == LOCUS_OK;
    CHECK(ran, "%s", error.text);
    int64_t wrong = 0, nans = 0;
    for (int64_t i = 0; ran && i < 2 * T * D; i++) {
        const int before = i < at * D || i >= T * D;
        const double got = test_value(&spoilt->results[1].out, i);
        const double want = test_value(&clean->results[1].out, i);
        wrong += before && !(fabs(got - want) <= 1e-6);
        nans += !before && isnan(got);
    }
    CHECK(wrong == 0, "%d numbers before it differ", (int)wrong);
    CHECK(!ran || nans > 0, "no NaN behind it");
    test_problem_free(clean);
    test_problem_free(spoilt);
}

int main(int argc, char **argv)
{
    static const int64_t places[] = {0, 1, DECAY_PANEL, 77, DECAY_KEYS - 1, DECAY_KEYS, 149};
    if (!check_args(argc, argv)) return 2;
    check_cuts();
    check_rows();
    check_zero();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) check_nan(places[i]);
    return check_finish("contract/decays");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values are read in pieces of PIECE: one wrong number is found wherever it stands. */

#include <string.h>

#include "case/draft.h"
#include "support/check.h"

enum { PIECE = 1024 };

/* What comparing `out`, or grad.q, says when its element `wrong` is expected to be 1 larger; -1:
 * none. */
static locus_case_difference compare(draft *d, int gradient, int64_t wrong)
{
    locus_case_difference difference = {.size = sizeof difference};
    locus_case *loaded = NULL;
    locus_error error = {{0}};
    const test_problem *p = d->problem;
    double *want = (double *)(gradient ? p->grad[0].q.data : p->results[0].out.data);
    size_t index = 0;
    const locus_case_run_options options = {.size = sizeof options, .threads = 1};
    if (wrong >= 0) want[wrong] += 1.0;
    CHECK(locus_case_load(&loaded, draft_write(d, "case"), NULL, &error) == LOCUS_OK, "%s",
          error.text);
    CHECK(locus_case_run(loaded, &options, &error) == LOCUS_OK, "%s", error.text);
    while (index < locus_case_result_count(loaded) &&
           strcmp(locus_case_result_name(loaded, index), gradient ? "grad.q" : "out") != 0)
        index++;
    CHECK(locus_case_compare(loaded, index, &difference, &error) == LOCUS_OK, "%s", error.text);
    locus_case_free(loaded);
    if (wrong >= 0) want[wrong] -= 1.0;
    return difference;
}

static void test_length(int64_t length)
{
    if (!check_begin("case/pieces/%d", (int)length)) return;
    const test_spec spec = {.scheme = "none",
                            .level = LOCUS_ATTEND,
                            .B = 1,
                            .H = 1,
                            .Tq = length,
                            .Tk = 3,
                            .D = 1,
                            .seed = 4};
    draft *d = draft_new(&spec, 1, 1);
    const int64_t places[] = {-1, 0, PIECE - 1, PIECE, 2 * PIECE - 1, 2 * PIECE, length - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (int gradient = 0; gradient < 2 && places[i] < length; gradient++) {
            const locus_case_difference found = compare(d, gradient, places[i]);
            CHECK(found.expected && found.passed == (places[i] < 0), "wrong at %d: worst %g",
                  (int)places[i], found.worst);
            CHECK(places[i] < 0 || (found.worst > 0.3 && found.worst < 1.1), "worst %g",
                  found.worst);
        }
    }
    draft_free(d);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    folder_make();
    for (int64_t pieces = 1; pieces <= 2; pieces++)
        for (int64_t step = -1; step <= 1; step++) test_length(pieces * PIECE + step);
    folder_remove();
    return check_finish("case/pieces");
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_EXPLAIN_PROBLEMS_H
#define LOCUS_TESTS_EXPLAIN_PROBLEMS_H

/* Problems by the name of their variant, and explainers of them. */

#include <string.h>

#include <locus/explain.h>

#include "contract/variants.h"
#include "support/check.h"

enum { TERMS = 16 }; /* more than any score has */

static inline locus_explainer *explainer_of(const test_problem *p)
{
    locus_explainer *e = NULL;
    locus_error error = {""};
    CHECK(locus_explainer_new(&e, p->spec.level, &p->config, &p->in[TEST_ORACLE], &error) ==
              LOCUS_OK,
          "%s", error.text);
    return e;
}

static inline test_problem *variant_problem(const char *name, test_spec shape)
{
    for (size_t v = 0; v < TEST_VARIANTS; v++)
        if (strcmp(test_variants[v].name, name) == 0)
            return test_variant_problem(&test_variants[v], shape);
    return NULL;
}

#endif

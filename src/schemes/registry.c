/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/nearest.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

#define LOCUS_SCHEME(name) extern const locus_scheme locus_scheme_##name;
#include "schemes/schemes.inc"
#undef LOCUS_SCHEME

static const locus_scheme *const all[] = {
#define LOCUS_SCHEME(name) &locus_scheme_##name,
#include "schemes/schemes.inc"
#undef LOCUS_SCHEME
};

enum { SCHEME_COUNT = sizeof all / sizeof *all };

const locus_scheme *locus_scheme_lookup(const char *name)
{
    for (size_t i = 0; name != NULL && i < SCHEME_COUNT; i++)
        if (strcmp(all[i]->info.name, name) == 0) return all[i];
    return NULL;
}

static const char *name_at(size_t index)
{
    return index < SCHEME_COUNT ? all[index]->info.name : NULL;
}

locus_status locus_unknown_scheme(const char *name, locus_error *error)
{
    char escaped[160], suggestion[LOCUS_SUGGESTION];
    if (name == NULL) name = "";
    return locus_fail(error, LOCUS_ERR_SCHEME, "scheme \"%s\" is unknown%s",
                      locus_escape(escaped, sizeof escaped, name, strlen(name)),
                      locus_suggest_from(suggestion, name, name_at));
}

size_t locus_scheme_count(void) { return SCHEME_COUNT; }

const locus_scheme_info *locus_scheme_at(size_t index)
{
    return index < SCHEME_COUNT ? &all[index]->info : NULL;
}

const locus_scheme_info *locus_scheme_find(const char *name)
{
    const locus_scheme *scheme = locus_scheme_lookup(name);
    return scheme != NULL ? &scheme->info : NULL;
}

static const struct {
    uint32_t term;
    const char *name, *formula;
} terms[] = {
    {LOCUS_TERM_CONTENT, "content", "c (q_m + u) . k_n"},
    {LOCUS_TERM_CONTENT_POSITION, "content-position", "c (q_m + w) . RK[row(m - n)]"},
    {LOCUS_TERM_POSITION_CONTENT, "position-content", "c RQ[row(m - n)] . k_n"},
    {LOCUS_TERM_POSITION_POSITION, "position-position", "c pq_m . pk_n"},
    {LOCUS_TERM_BIAS, "bias", "b_h[m - n]"},
    {LOCUS_TERM_VALUE, "value", "out_m += a_mn RV[row(m - n)]"},
    {LOCUS_TERM_ROTATION, "rotation", "q_m, k_n turned before q.k"},
    {LOCUS_TERM_INPUT, "input", "x_i + p_i before the projections"},
};

const char *locus_term_name(uint32_t term)
{
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        if (terms[i].term == term) return terms[i].name;
    return NULL;
}

const char *locus_term_formula(uint32_t term)
{
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        if (terms[i].term == term) return terms[i].formula;
    return NULL;
}

const locus_tensor *locus_tensor_slot(const locus_tensors *tensors, size_t offset)
{
    if (offset >= sizeof(locus_tensors)) return NULL;
    const locus_tensor *tensor =
        (const locus_tensor *)(const void *)((const char *)tensors + offset);
    return locus_present(tensor) ? tensor : NULL;
}

double locus_scale_plain(const locus_call *call, const locus_tensors *shapes)
{
    (void)shapes;
    return 1.0 / sqrt((double)call->D);
}

void locus_pair_columns(const locus_call *call, int64_t pair, int64_t *first, int64_t *second)
{
    const int half = call->options.pairing == LOCUS_PAIRING_HALF;
    *first = half ? pair : 2 * pair;
    *second = half ? pair + call->pairs : 2 * pair + 1;
}

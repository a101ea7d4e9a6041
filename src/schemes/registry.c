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

static const locus_scheme *scheme_of(const locus_scheme_info *info)
{
    return (const locus_scheme *)(const void *)info; /* its first member */
}

const locus_option_info *locus_scheme_option(const locus_scheme_info *scheme, size_t index)
{
    const locus_option_info *o = scheme_of(scheme)->options;
    while (o->name != NULL && index-- > 0) o++;
    return o->name != NULL ? o : NULL;
}

const locus_tensor_info *locus_scheme_tensor(const locus_scheme_info *scheme, size_t index)
{
    const locus_tensor_info *t = scheme_of(scheme)->tensors;
    while (t->name != NULL && index-- > 0) t++;
    return t->name != NULL ? t : NULL;
}

/* ---- names of tensors: fields of the struct, and what schemes call their own ---- */

static size_t offset_of(size_t index)
{
    return offsetof(locus_tensors, q) + index * sizeof(locus_tensor);
}

const char *locus_tensor_name(size_t index)
{
    const char *name = locus_field_name(index);
    for (size_t i = 0; name == NULL && i < SCHEME_COUNT; i++)
        for (const locus_tensor_info *t = all[i]->tensors; t->name != NULL && name == NULL; t++)
            if (t->offset == offset_of(index)) name = t->name;
    return name == NULL && index < LOCUS_TENSOR_COUNT ? "own" : name;
}

int locus_tensor_index(const char *name)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const char *field = locus_field_name(i);
        if (field != NULL && strcmp(field, name) == 0) return (int)i;
    }
    for (size_t i = 0; i < SCHEME_COUNT; i++)
        for (const locus_tensor_info *t = all[i]->tensors; t->name != NULL; t++)
            if (strcmp(t->name, name) == 0)
                return (int)((t->offset - offset_of(0)) / sizeof(locus_tensor));
    return -1;
}

locus_tensor *locus_tensor_named(locus_tensors *tensors, const char *name)
{
    const int index = locus_tensor_index(name);
    return index >= 0 ? locus_tensor_at(tensors, (size_t)index) : NULL;
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

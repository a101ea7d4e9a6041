/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a resolved call, in public. */
#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* The attention of a call at either level. */
static locus_status resolve(locus_call *call, uint32_t level, const locus_config *config,
                            const locus_tensors **shapes, locus_tensors *copy, locus_error *error)
{
    if (config == NULL || *shapes == NULL || (level != LOCUS_ATTEND && level != LOCUS_LAYER))
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "rules: config or tensors are NULL, or the level is no level");
    locus_config own;
    LOCUS_TRY(locus_adopt_config(&own, config, error));
    LOCUS_TRY(locus_adopt_tensors(shapes, copy, "tensors", error));
    if (level == LOCUS_ATTEND) return locus_call_resolve(call, level, &own, *shapes, error);
    locus_call outer;
    LOCUS_TRY(locus_call_resolve(&outer, level, &own, *shapes, error));
    locus_call_inner(call, &outer);
    return LOCUS_OK;
}

static int64_t table_row(const locus_call *call, int64_t delta)
{
    if (call->scheme->row == NULL) return -1;
    const int64_t row = call->scheme->row(call, delta);
    return row >= 0 && row < call->R ? row : -1;
}

locus_status locus_call_rows(uint32_t level, const locus_config *config,
                             const locus_tensors *shapes, int64_t first, size_t count,
                             int64_t *rows, int64_t *bias_rows, locus_error *error)
{
    locus_call call;
    locus_tensors copy;
    LOCUS_TRY(resolve(&call, level, config, &shapes, &copy, error));
    const int biased = call.scheme->bias_row != NULL && shapes->bias.rank != 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t delta = first + (int64_t)i;
        if (rows != NULL) rows[i] = table_row(&call, delta);
        if (bias_rows != NULL) bias_rows[i] = biased ? call.scheme->bias_row(&call, delta) : -1;
    }
    return LOCUS_OK;
}

locus_status locus_call_turns(uint32_t level, const locus_config *config,
                              const locus_tensors *shapes, size_t *pairs, double *frequency,
                              double *log_gain, locus_error *error)
{
    locus_call call;
    locus_tensors copy;
    LOCUS_TRY(resolve(&call, level, config, &shapes, &copy, error));
    const size_t turned = call.scheme->turn != NULL ? (size_t)call.pairs : 0;
    if (turned > *pairs)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "turns: found room for %zu pairs, expected %zu", *pairs, turned);
    for (size_t t = 0; t < turned; t++)
        call.scheme->turn(&call, (int64_t)t, &frequency[t], &log_gain[t]);
    *pairs = turned;
    return LOCUS_OK;
}

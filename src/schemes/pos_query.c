/* SPDX-License-Identifier: Apache-2.0 */
/* What the schemes share whose key table is met by a query of its own. */
#include <inttypes.h>

#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

int locus_projects_pos_query(const locus_call *call, const locus_tensors *shapes)
{
    const locus_tensor_info *t = call->scheme->tensors;
    if (call->level != LOCUS_LAYER || !locus_present(&shapes->w_r)) return 0;
    while (t->name != NULL && t->offset != offsetof(locus_tensors, pos_query)) t++;
    return t->name != NULL;
}

/* Width of the position query; that of q where it has none. */
static int64_t query_width(const locus_call *call, const locus_tensors *shapes)
{
    if (locus_present(&shapes->pos_query)) return shapes->pos_query.shape[3];
    if (!locus_projects_pos_query(call, shapes)) return call->D;
    return call->H > 0 ? shapes->w_r.shape[0] / call->H : 0;
}

static locus_status check_projection(const locus_call *call, const locus_tensors *shapes,
                                     locus_error *error)
{
    if (locus_present(&shapes->b_r) && !locus_present(&shapes->w_r))
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor b_r: found without w_r, expected both");
    if (!locus_projects_pos_query(call, shapes)) return LOCUS_OK;
    if (call->H == 0 || shapes->w_r.shape[0] % call->H != 0)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor w_r: found %" PRId64 " rows, expected a multiple of %" PRId64
                          " heads",
                          shapes->w_r.shape[0], call->H);
    if (locus_present(&shapes->b_r) && shapes->b_r.shape[0] != shapes->w_r.shape[0])
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor b_r: found %" PRId64 " numbers, expected %" PRId64
                          ", the rows of w_r",
                          shapes->b_r.shape[0], shapes->w_r.shape[0]);
    return LOCUS_OK;
}

locus_status locus_check_pos_query(const locus_call *call, const locus_tensors *shapes,
                                   locus_error *error)
{
    LOCUS_TRY(check_projection(call, shapes, error));
    const int has_query =
        locus_present(&shapes->pos_query) || locus_projects_pos_query(call, shapes);
    const char *name = locus_present(&shapes->pos_query) ? "pos_query" : "w_r";
    const locus_tensor *table = &shapes->rel_k;
    const int64_t width = query_width(call, shapes);
    if (!locus_present(table))
        return has_query ? locus_fail(error, LOCUS_ERR_TENSOR,
                                      "tensor %s: found without rel_k, expected both", name)
                         : LOCUS_OK;
    const int64_t found = table->shape[table->rank - 1];
    if (has_query && (width < 1 || width > LOCUS_MAX_WIDTH))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found width %" PRId64 " per head, expected 1..%d", name,
                          width, (int)LOCUS_MAX_WIDTH);
    if (found != width)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor rel_k: found width %" PRId64 ", expected %" PRId64 ", that of %s",
                          found, width, has_query ? name : "q");
    return LOCUS_OK;
}

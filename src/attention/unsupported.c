/* SPDX-License-Identifier: Apache-2.0 */
/* What the oracle can do and the kernels cannot yet. */

#include "attention/unsupported.h"

#include "core/error.h"
#include "core/tensor.h"

static int is_half(locus_dtype dtype) { return dtype == LOCUS_F16 || dtype == LOCUS_BF16; }

locus_status locus_refuse_unsupported(const locus_tensors *shapes, locus_error *error)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(shapes, i);
        if (locus_present(t) && is_half(t->dtype))
            return locus_fail(error, LOCUS_ERR_UNSUPPORTED,
                              "tensor %s: found %s, but only the oracle has it",
                              locus_tensor_name(i), locus_dtype_name(t->dtype));
    }
    return LOCUS_OK;
}

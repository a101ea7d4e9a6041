/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/entries.h"

#include <string.h>

locus_operand locus_entries(const head_context *head, const locus_tensor *table, const uint8_t *bad)
{
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, table, head->h, &stride);
    locus_operand operand = {
        .raw = entries, .clean = entries, .raw_stride = stride, .clean_stride = stride, .bad = bad};
    operand.any_bad = memchr(bad, 1, (size_t)head->plan->row_count) != NULL;
    return operand;
}

void locus_add_entries(const head_context *head, const locus_operand *entries,
                       const locus_weights *weights, int64_t rows, int64_t count, locus_sums to,
                       int64_t width)
{
    const locus_weights *w = weights;
    for (int64_t c = 0; c < count;) {
        int64_t end = count; /* of the finite entries from c on */
        if (entries->any_bad)
            for (end = c; end < count && !entries->bad[w->first + end];) end++;
        if (end > c)
            head->plan->kernels->gemm(to.data, to.row_stride, w->data + c * w->column_stride,
                                      w->row_stride, w->column_stride,
                                      entries->raw + (w->first + c) * entries->raw_stride,
                                      entries->raw_stride, rows, end - c, width, 1);
        c = end + 1;
    }
}

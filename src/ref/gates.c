/* SPDX-License-Identifier: Apache-2.0 */
#include "ref/ref.h"

#include <string.h>

#include "core/tensor.h"

/* With F_t the sum of the gates of a sequence up to position t, a pair has F_m - F_n, and
 *     dgate_t = sum of dF_t' over t' >= t  =  - sum of dF_t' over t' < t,
 * because every pair adds to one dF what it takes from another. The second form is exactly 0 up to
 * the first key that is seen; behind the last query nothing is seen either. Decays are gates of
 * every channel. */

static const locus_tensor *decays_of(const ref_attention *at, const locus_tensors *from)
{
    const size_t offset = at->call->scheme->log_decay;
    return offset != 0 ? locus_tensor_slot(from, offset) : NULL;
}

void locus_ref_take_gates(ref_attention *at, ref_memory *memory)
{
    const locus_tensor *decays = decays_of(at, at->in);
    if (locus_present(&at->in->log_gate)) {
        const int64_t rows = at->in->log_gate.shape[2];
        at->gates = locus_ref_take(memory, rows, 1, sizeof(double));
        if (at->grad != NULL) at->dgates = locus_ref_take(memory, rows, 1, sizeof(double));
    }
    if (decays == NULL) return;
    const int64_t rows = decays->shape[2], D = at->call->D;
    at->decays = locus_ref_take(memory, rows, D, sizeof(double));
    if (at->grad != NULL) at->ddecays = locus_ref_take(memory, rows, D, sizeof(double));
}

int64_t locus_ref_gate_row(const ref_attention *at, int64_t n)
{
    const int64_t position = n < 0 ? locus_ref_query_position(at) : locus_ref_key_position(at, n);
    return locus_gate_row(at->call, &at->sequence, position);
}

/* Rows [*from, *to) of `rows` belong to the sequence at work. */
static void rows_of_sequence(const ref_attention *at, int64_t rows, int64_t *from, int64_t *to)
{
    *from = at->sequence.first_key;
    *to = at->call->sequences > 0 ? *from + at->sequence.keys : rows;
}

void locus_ref_sum_gates(ref_attention *at)
{
    const locus_tensor *gates = &at->in->log_gate, *decays = decays_of(at, at->in);
    const int64_t D = at->call->D;
    int64_t from, to;
    if (at->gates != NULL) {
        double sum = 0.0;
        rows_of_sequence(at, gates->shape[2], &from, &to);
        for (int64_t t = from; t < to; t++)
            at->gates[t] = sum += locus_get(gates, at->b, at->h, t, 0);
        if (at->dgates != NULL) memset(at->dgates + from, 0, (size_t)(to - from) * sizeof(double));
    }
    if (at->decays == NULL) return;
    rows_of_sequence(at, decays->shape[2], &from, &to);
    for (int64_t t = from; t < to; t++)
        for (int64_t d = 0; d < D; d++)
            at->decays[t * D + d] = locus_ref_at(decays, at->b, at->h, t)[d] +
                                    (t > from ? at->decays[(t - 1) * D + d] : 0.0);
    if (at->ddecays != NULL)
        memset(at->ddecays + from * D, 0, (size_t)((to - from) * D) * sizeof(double));
}

/* `width` numbers of each row. */
static void pull_back(const ref_attention *at, const double *dsums, const locus_tensor *grad,
                      int64_t width)
{
    int64_t from, to;
    const int64_t last = at->sequence.query_offset + at->sequence.queries - 1;
    rows_of_sequence(at, grad->shape[2], &from, &to);
    const int64_t end = locus_gate_row(at->call, &at->sequence, last) + 1;
    double *rows = (double *)grad->data + (at->b * at->call->H + at->h) * grad->shape[2] * width;
    for (int64_t d = 0; d < width; d++) {
        double before = 0.0;
        for (int64_t t = from; t < to && t < end; t++) {
            rows[t * width + d] -= before;
            before += dsums[t * width + d];
        }
    }
}

void locus_ref_gates_grad(const ref_attention *at)
{
    const locus_tensor *decays = decays_of(at, at->grad);
    if (at->dgates != NULL && locus_present(&at->grad->log_gate))
        pull_back(at, at->dgates, &at->grad->log_gate, 1);
    if (at->ddecays != NULL && decays != NULL) pull_back(at, at->ddecays, decays, at->call->D);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Ragged batches: which rows belong to which sequence, and which distances they have. */
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

static locus_status check_rise(const locus_tensor *offsets, const char *name, int64_t rows,
                               locus_error *error)
{
    const int64_t last = offsets->shape[0] - 1;
    if (last < 1)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found %" PRId64 " numbers, expected at least 2", name,
                          last + 1);
    if (locus_whole(offsets, 0) != 0)
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found %" PRId64 " at 0, expected 0",
                          name, locus_whole(offsets, 0));
    for (int64_t s = 1; s <= last; s++)
        if (locus_whole(offsets, s) < locus_whole(offsets, s - 1))
            return locus_fail(error, LOCUS_ERR_TENSOR,
                              "tensor %s: found %" PRId64 " at %" PRId64
                              ", expected at least %" PRId64 ", the number before it",
                              name, locus_whole(offsets, s), s, locus_whole(offsets, s - 1));
    if (locus_whole(offsets, last) != rows)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found %" PRId64 " at the end, expected %" PRId64 ", all rows",
                          name, locus_whole(offsets, last), rows);
    return LOCUS_OK;
}

locus_status locus_check_offsets(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    if (!locus_present(&shapes->q_offsets)) return LOCUS_OK;
    if (call->B != 1)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor q: found a batch of %" PRId64 " beside q_offsets, expected 1",
                          call->B);
    LOCUS_TRY(check_rise(&shapes->q_offsets, "q_offsets", call->Tq, error));
    LOCUS_TRY(check_rise(&shapes->k_offsets, "k_offsets", call->Tk, error));
    call->sequences = shapes->q_offsets.shape[0] - 1;
    return LOCUS_OK;
}

/* Pairs exist for delta in [offset - (keys-1), offset + queries-1]; causal and window keep
 * low <= delta <= high. */
static void find_distances(const locus_call *call, locus_sequence *s)
{
    s->least = s->query_offset - (s->keys - 1);
    s->most = s->query_offset + s->queries - 1;
    if (s->least < call->low) s->least = call->low;
    if (s->most > call->high) s->most = call->high;
    if (s->queries == 0 || s->keys == 0) s->most = s->least - 1;
}

locus_sequence locus_call_sequence(const locus_call *call, int64_t number)
{
    locus_sequence s = {.queries = call->Tq, .keys = call->Tk};
    if (call->sequences > 0) {
        s.first_query = locus_whole(&call->q_offsets, number);
        s.queries = locus_whole(&call->q_offsets, number + 1) - s.first_query;
        s.first_key = locus_whole(&call->k_offsets, number);
        s.keys = locus_whole(&call->k_offsets, number + 1) - s.first_key;
    }
    s.query_offset = call->query_offset != LOCUS_UNSET ? call->query_offset : s.keys - s.queries;
    find_distances(call, &s);
    return s;
}

locus_status locus_call_keep(locus_call *call, const locus_allocator *allocator, void **memory,
                             locus_error *error)
{
    locus_tensor *const views[] = {&call->q_offsets,   &call->k_offsets,   &call->rows,
                                   &call->frequencies, &call->q_positions, &call->k_positions};
    enum { VIEWS = sizeof views / sizeof *views };
    size_t bytes = 0;
    *memory = NULL;
    for (size_t i = 0; i < VIEWS; i++) /* all words of 8 bytes, or F32 rounded up to them */
        bytes += ((size_t)locus_tensor_elements(views[i]) + 1) * sizeof(int64_t) *
                 (size_t)locus_present(views[i]);
    if (bytes == 0) return LOCUS_OK;
    char *at = *memory = locus_allocate(allocator, bytes, 1);
    if (at == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "plan: out of memory");
    for (size_t i = 0; i < VIEWS; i++) {
        const size_t elements = (size_t)locus_tensor_elements(views[i]);
        if (!locus_present(views[i])) continue;
        if (elements > 0) memcpy(at, views[i]->data, elements * locus_dtype_bytes(views[i]->dtype));
        views[i]->data = at;
        at += (elements + 1) * sizeof(int64_t);
    }
    return LOCUS_OK;
}

/* The rows of the queries that see some key: theirs are the positions 0 .. m of their sequence. */
locus_status locus_check_gates(const locus_call *call, const char *name, int64_t rows,
                               locus_error *error)
{
    for (int64_t i = 0; i < locus_sequence_count(call); i++) {
        const locus_sequence s = locus_call_sequence(call, i);
        const int64_t last = s.query_offset + s.queries - 1;
        if (call->sequences > 0 && s.queries > 0 && last >= s.keys)
            return locus_fail(error, LOCUS_ERR_RANGE,
                              "tensor %s: found a query at position %" PRId64
                              " of sequence %" PRId64 ", expected one below %" PRId64
                              ", the keys of the sequence",
                              name, last, i, s.keys);
        const int64_t most = last >= s.keys && s.queries > 0 ? last + 1 : s.keys;
        const int64_t wanted = call->sequences > 0 ? call->Tk : call->key_offset + most;
        if (call->sequences > 0 ? rows != wanted : rows < wanted)
            return locus_fail(error, LOCUS_ERR_TENSOR,
                              "tensor %s: found %" PRId64 " positions, expected %s%" PRId64, name,
                              rows, call->sequences > 0 ? "" : "at least ", wanted);
    }
    return LOCUS_OK;
}

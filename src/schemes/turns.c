/* SPDX-License-Identifier: Apache-2.0 */
/* What RoPE and xPos share. */
#include <inttypes.h>
#include <math.h>

#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* Pairs of one axis. */
static int64_t run_length(const locus_call *call) { return call->pairs / call->options.axes; }

double locus_turn_frequency(const locus_call *call, int64_t pair)
{
    if (locus_present(&call->frequencies)) return locus_get(&call->frequencies, pair, 0, 0, 0);
    const int64_t run = run_length(call);
    return pow(call->options.base, -(double)(pair % run) / (double)run);
}

static locus_status check_base(const locus_call *call, locus_error *error)
{
    const double base = call->options.base;
    if (base > 0.0 && base != 1.0) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_OPTION,
                      "option base: found %.15g, expected a number above 0 other than 1", base);
}

static locus_status check_frequencies(const locus_call *call, locus_error *error)
{
    const locus_tensor *f = &call->frequencies;
    if (!locus_present(f)) return LOCUS_OK;
    if (f->shape[0] != call->pairs)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor frequencies: found %" PRId64 ", expected %" PRId64
                          ", one per pair",
                          f->shape[0], call->pairs);
    for (int64_t t = 0; t < call->pairs; t++)
        if (!isfinite(locus_get(f, t, 0, 0, 0)))
            return locus_fail(error, LOCUS_ERR_TENSOR,
                              "tensor frequencies: found %g at %" PRId64
                              ", expected a finite number",
                              locus_get(f, t, 0, 0, 0), t);
    return LOCUS_OK;
}

/* [T] or [B,T] with one axis, [T,axes] or [B,T,axes] with several. Positions stay where a
 * double counts them exactly. */
static locus_status check_positions(const locus_call *call, const locus_tensor *t, const char *name,
                                    int64_t rows, locus_error *error)
{
    static const int64_t most = (int64_t)1 << 52;
    const int64_t axes = call->options.axes;
    if (!locus_present(t)) {
        if (axes == 1) return LOCUS_OK;
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s is missing (axes is %" PRId64 ")",
                          name, axes);
    }
    const uint32_t inner = axes > 1 ? 1 : 0, rank = t->rank;
    const int fits =
        (rank == 1 + inner || rank == 2 + inner) && t->shape[rank - 1 - inner] == rows &&
        (inner == 0 || t->shape[rank - 1] == axes) && (rank == 1 + inner || t->shape[0] == call->B);
    if (!fits)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found another shape, expected [%" PRId64 "%s] or [%" PRId64
                          ",%" PRId64 "%s]%s",
                          name, rows, inner ? ",axes" : "", call->B, rows, inner ? ",axes" : "",
                          inner ? "" : " (axes is 1)");
    for (int64_t i = 0; i < locus_tensor_elements(t); i++)
        if (locus_whole(t, i) < -most || locus_whole(t, i) > most)
            return locus_fail(error, LOCUS_ERR_TENSOR,
                              "tensor %s: found %" PRId64 " at %" PRId64 ", expected -2^52..2^52",
                              name, locus_whole(t, i), i);
    return LOCUS_OK;
}

locus_status locus_check_turns(const locus_call *call, locus_error *error)
{
    LOCUS_TRY(check_base(call, error));
    LOCUS_TRY(check_frequencies(call, error));
    LOCUS_TRY(check_positions(call, &call->q_positions, "q_positions", call->Tq, error));
    return check_positions(call, &call->k_positions, "k_positions", call->Tk, error);
}

int64_t locus_position_axes(const locus_call *call)
{
    if (call->scheme->places > 0) return call->scheme->places;
    return call->options.axes > 1 ? call->options.axes : 1;
}

int64_t locus_call_position(const locus_call *call, int is_key, int64_t batch, int64_t row,
                            int64_t axis, int64_t position)
{
    const locus_tensor *given = is_key ? &call->k_positions : &call->q_positions;
    const locus_tensor *other = is_key ? &call->q_positions : &call->k_positions;
    /* `position` counts from key row 0; positions that a call brings count from that of the whole. */
    if (!locus_present(given)) return locus_present(other) ? position + call->key_offset : position;
    const int64_t axes = locus_position_axes(call), rows = is_key ? call->Tk : call->Tq;
    const int batched = given->rank == (axes > 1 ? 3u : 2u) && given->shape[0] > 1;
    return locus_whole(given, ((batched ? batch * rows : 0) + row) * axes + axis);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/ahead.h"

#include "core/tensor.h"

void locus_ahead_add(locus_lookahead *look, const locus_tensor *t, int64_t b, int64_t h,
                     int64_t from, int64_t to)
{
    const int room = (int)(sizeof look->stream / sizeof *look->stream);
    if (!locus_present(t) || from >= to || look->end == room) return;
    const uint32_t rows = t->rank - 2;
    const float *first = rows == 2 ? locus_f32(t, b, h, from) : locus_f32(t, h, from, 0);
    look->stream[look->end++] =
        (locus_ahead){first, t->stride[rows], t->shape[rows + 1], to - from};
}

/* A stream ends with a share of its own, which may be short: it counts as a whole one. */
void locus_ahead_spread(locus_lookahead *look, int64_t shares)
{
    int64_t rows = 0;
    for (int i = look->first; i < look->end; i++) rows += look->stream[i].count;
    const int64_t whole = shares - (look->end - look->first);
    look->each = whole > 0 ? (rows + whole - 1) / whole : rows;
}

static locus_ahead next_share(locus_lookahead *look)
{
    if (look->first == look->end) return (locus_ahead){0};
    locus_ahead *stream = &look->stream[look->first];
    locus_ahead share = *stream;
    if (share.count <= look->each) {
        look->first++;
        return share;
    }
    share.count = look->each;
    stream->rows += share.count * stream->row;
    stream->count -= share.count;
    return share;
}

void locus_ahead_take(locus_lookahead *look, locus_ahead shares[2])
{
    for (int i = 0; i < 2; i++) shares[i] = next_share(look);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/ahead.h"

#include <string.h>

#include "core/compiler.h"
#include "core/tensor.h"

void locus_ahead_push(locus_lookahead *look, locus_ahead rows)
{
    const int room = (int)(sizeof look->stream / sizeof *look->stream);
    if (look->end == room && look->first > 0) {
        look->end -= look->first;
        memmove(look->stream, look->stream + look->first, (size_t)look->end * sizeof *look->stream);
        look->first = 0;
    }
    if (rows.count > 0 && look->end < room) look->stream[look->end++] = rows;
}

void locus_ahead_add(locus_lookahead *look, const locus_tensor *t, int64_t b, int64_t h,
                     int64_t from, int64_t to)
{
    if (!locus_present(t) || from >= to) return;
    const uint32_t rows = t->rank - 2;
    const float *first = rows == 2 ? locus_f32(t, b, h, from) : locus_f32(t, h, from, 0);
    locus_ahead_push(look, (locus_ahead){first, t->stride[rows], t->shape[rows + 1], to - from});
}

/* A stream ends with a share of its own, which may be short: it counts as a whole one. */
void locus_ahead_spread(locus_lookahead *look, int64_t shares)
{
    int64_t rows = 0;
    for (int i = look->first; i < look->end; i++) rows += look->stream[i].count;
    const int64_t whole = shares - (look->end - look->first);
    look->each = whole > 0 ? (rows + whole - 1) / whole : rows;
}

static locus_ahead some_rows(locus_lookahead *look, int64_t count)
{
    if (look->first == look->end) return (locus_ahead){0};
    locus_ahead *stream = &look->stream[look->first];
    locus_ahead some = *stream;
    if (some.count <= count) {
        look->first++;
        return some;
    }
    some.count = count;
    stream->rows += count * stream->row;
    stream->count -= count;
    return some;
}

void locus_ahead_take(locus_lookahead *look, locus_ahead shares[2])
{
    for (int i = 0; i < 2; i++) shares[i] = some_rows(look, look->each);
}

void locus_ahead_pace(locus_lookahead *look, int64_t work)
{
    look->rows = 0;
    for (int i = look->first; i < look->end; i++) look->rows += look->stream[i].count;
    look->work = work;
    look->due = 0;
}

/* A stream may end before all that is due is taken: the rest goes with the next work. */
locus_ahead locus_ahead_due(locus_lookahead *look, int64_t count)
{
    if (look->first == look->end) return (locus_ahead){0};
    look->due += count * look->rows;
    const locus_ahead some = some_rows(look, look->due / look->work);
    look->due -= some.count * look->work;
    return some;
}

void locus_ahead_bring(locus_lookahead *look, int64_t count)
{
    locus_ahead some = locus_ahead_due(look, count);
    for (; some.count > 0; some.count--, some.rows += some.row)
        for (int64_t c = 0; c < some.width; c += LOCUS_LANES) LOCUS_PREFETCH_FAR(some.rows + c);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench --decode: the yardstick. One query must read the keys, the values and, of every
 * table, the rows that its distances reach: as many as there are keys, at most. */
#include "bench/measure.h"

enum { MOST_READ = 6 };

static size_t tensors_read(const bench_row *row, const locus_tensor *read[MOST_READ])
{
    const locus_tensors *in = &row->in;
    const locus_tensor *const all[MOST_READ] = {&in->k,     &in->v,     &in->rel_k,
                                                &in->rel_q, &in->rel_v, &in->pos_k};
    size_t count = 0;
    for (size_t i = 0; i < MOST_READ; i++)
        if (all[i]->rank != 0) read[count++] = all[i];
    return count;
}

const char *bench_read_name(const bench_row *row)
{
    const locus_tensor *read[MOST_READ];
    return tensors_read(row, read) > 2 ? "read K, V, tables" : "read K and V";
}

void bench_read_flush(const bench_row *row)
{
    const locus_tensor *read[MOST_READ];
    const size_t count = tensors_read(row, read);
    for (size_t i = 0; i < count; i++)
        limits_flush(read[i]->data,
                     (size_t)locus_tensor_elements(read[i]) * locus_dtype_bytes(read[i]->dtype));
}

/* Which rows is all one: the first n of each [rows][width] block. */
static float read_blocks(const bench_row *row, const bench_loops *loops, const locus_tensor *t)
{
    const int64_t width = t->shape[t->rank - 1], rows = t->shape[t->rank - 2];
    const int64_t n = row->input->group->n, all = locus_tensor_elements(t);
    const int64_t in_float = t->dtype == LOCUS_F32 ? 1 : 2; /* numbers in the space of a float */
    if (rows <= n) return limits_read(loops, row->threads, t->data, all / in_float);
    float total = 0;
    for (int64_t at = 0; at < all; at += rows * width)
        total += limits_read(loops, row->threads, (const float *)t->data + at / in_float,
                             n * width / in_float);
    return total;
}

float bench_read(const bench_row *row, const bench_loops *loops)
{
    const locus_tensor *read[MOST_READ];
    const size_t count = tensors_read(row, read);
    float total = 0;
    for (size_t i = 0; i < count; i++) total += read_blocks(row, loops, read[i]);
    return total;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_HEAD_H
#define LOCUS_ATTENTION_HEAD_H

/* One head of one batch entry in one pass over it. It never changes while that lasts. All rows of
 * q, k, v, out and their gradients are addressed here. */

#include <math.h>

#include "attention/plan.h"
#include "core/tensor.h"

typedef struct locus_shown locus_shown;

typedef struct head_context {
    const locus_plan *plan;
    const locus_geometry *geometry; /* of the pass */
    const locus_tensors *in;
    int64_t b, h, kv;    /* kv: the head of k and v that head h reads */
    int scale_in_panels; /* the scale is multiplied into keys and tables as they are packed; else
                            into query rows as they are loaded */
    int all_seen;        /* every row sees every key: a weight is 0 by underflow only */
    const locus_shown *shown; /* of the mask, by tile; NULL: see shown.h */
} head_context;

static inline head_context locus_head_at(const locus_plan *plan, const locus_geometry *geometry,
                                         const locus_tensors *in, int64_t b, int64_t h)
{
    return (head_context){.plan = plan,
                          .geometry = geometry,
                          .in = in,
                          .b = b,
                          .h = h,
                          .kv = h / (plan->call.H / plan->call.Hk)};
}

/* Pair (i, j) of batch entry b and head h of a [B or 1, H or 1, Tq, Tk] tensor. */
static inline const void *locus_pair_at(const locus_tensor *t, size_t bytes, int64_t b, int64_t h,
                                        int64_t i, int64_t j)
{
    const int64_t at = b * locus_broadcast_stride(t, 0) + h * locus_broadcast_stride(t, 1) +
                       i * t->stride[2] + j * t->stride[3];
    return (const char *)t->data + at * (int64_t)bytes;
}

/* The factors of what is packed and of query rows; one of them is 1. */
static inline float locus_panel_scale(const head_context *head)
{
    return head->scale_in_panels ? (float)head->plan->call.scale : 1.0f;
}
static inline float locus_row_scale(const head_context *head)
{
    return head->scale_in_panels ? 1.0f : (float)head->plan->call.scale;
}

/* The same of the key table and of the rows that meet it: two tables of two axes are not scaled, nor
 * are rows of pos_query, nor what stands at counted positions. */
static inline int locus_key_table_is_plain(const locus_plan *plan)
{
    return plan->call.scheme->second_table != 0 || plan->own_query || plan->counts;
}
static inline float locus_key_table_scale(const head_context *head)
{
    return locus_key_table_is_plain(head->plan) ? 1.0f : locus_panel_scale(head);
}
static inline float locus_position_row_scale(const head_context *head)
{
    return locus_key_table_is_plain(head->plan) ? 1.0f : locus_row_scale(head);
}

/* -inf: none. */
static inline float locus_head_sink(const head_context *head)
{
    const locus_tensor *sink = &head->in->sink;
    return locus_present(sink) ? (float)locus_get(sink, head->h, 0, 0, 0) : -INFINITY;
}

/* Rows of any type from row m of the head in a tensor [B,H,Tq,..] on, and from row n of its keys
 * in one [B,Hk,Tk,..]. */
static inline locus_rows locus_query_rows(const head_context *head, const locus_tensor *t,
                                          int64_t m)
{
    return locus_rows_at(t, head->b, head->h, m);
}
static inline locus_rows locus_stored_keys(const head_context *head, const locus_tensor *t,
                                           int64_t n)
{
    return locus_rows_at(t, head->b, head->kv, n);
}

/* What multiplies the bias of row m. */
static inline float locus_gate_of(const head_context *head, int64_t m)
{
    return (float)locus_get(&head->in->gate, head->b, head->h, m, 0);
}

/* Row m and row n of those that are F32. */
static inline float *locus_query_row(const head_context *head, const locus_tensor *t, int64_t m)
{
    return locus_f32(t, head->b, head->h, m);
}
static inline float *locus_key_row(const head_context *head, const locus_tensor *t, int64_t n)
{
    return locus_f32(t, head->b, head->kv, n);
}

#endif

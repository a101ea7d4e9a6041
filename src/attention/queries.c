/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/queries.h"

#include <string.h>

#include "attention/gate_skip.h"

void locus_queries_carve(const locus_plan *plan, const locus_geometry *g, int finds_bad,
                         locus_arena *arena, locus_queries *queries)
{
    const int64_t rows = g->rows + LOCUS_LANES, D = plan->call.D;
    const int positions = locus_present(&plan->shapes.pos_q), skips = locus_gates_may_skip(plan);
    const int copies = plan->own_query ? locus_is_half(&plan->shapes.pos_query)
                                       : plan->index != NULL && !plan->same_query_rows;
    *queries = (locus_queries){
        .content_rows = locus_take_floats(arena, rows * D),
        .position_rows = locus_take_optional(arena, copies, rows * plan->key_width),
        .pos_q_rows = locus_take_optional(arena, positions, rows * D),
        .norms = locus_take_optional(arena, skips, rows),
        .lead = skips ? locus_take(arena, rows, sizeof(double)) : NULL,
        .content_bad = locus_take_flags(arena, finds_bad, rows),
        .position_bad = locus_take_flags(arena, finds_bad && plan->index != NULL, rows),
        .pos_bad = locus_take_flags(arena, finds_bad && positions, rows),
    };
}

void locus_queries_reach(const head_context *head, int64_t first, locus_queries *queries)
{
    const locus_call *call = &head->plan->call;
    const int64_t keys = head->geometry->keys;
    queries->first = first;
    queries->count = min_i64(head->geometry->rows, call->Tq - first);
    queries->position = call->query_offset + first;
    /* keys with least <= m - n <= most for some row of the tile */
    const int64_t low = max_i64(0, queries->position - call->most);
    const int64_t high =
        min_i64(call->Tk - 1, queries->position + queries->count - 1 - call->least);
    const int empty = head->plan->span == 0 || low > high;
    queries->tile_from = empty ? 0 : low / keys;
    queries->tile_to = empty ? 0 : high / keys + 1;
}

static const float *head_row(const locus_tensor *t, int64_t h)
{
    return locus_present(t) ? (const float *)t->data + h * t->stride[0] : NULL;
}

/* to = scale (q + more) */
static void load_rows(const head_context *head, const locus_queries *queries,
                      const locus_tensor *more, float scale, float *to)
{
    const int64_t D = head->plan->call.D;
    locus_rows q = locus_query_rows(head, &head->in->q, queries->first);
    if (q.type != LOCUS_F32) {
        locus_load_rows(head->plan, to, q, queries->count, D);
        q = (locus_rows){to, D, LOCUS_F32};
    }
    head->plan->kernels->scale_rows(to, D, q.data, q.stride, head_row(more, head->h), scale,
                                    queries->count, D, 0);
}

/* content = turned (scale (q + u)) */
static void load_content(const head_context *head, locus_queries *queries)
{
    const locus_plan *plan = head->plan;
    const locus_tensor *q = &head->in->q;
    const int64_t D = plan->call.D;
    float *content = queries->content_rows;
    /* rows that are not scaled before are turned on their way */
    const int in_place = plan->turn_query != NULL && head->scale_in_panels &&
                         !locus_present(&head->in->u) && !locus_is_half(q);
    if (!in_place) load_rows(head, queries, &head->in->u, locus_row_scale(head), content);
    if (plan->turn_query == NULL) return;
    locus_turn_rows(plan, (locus_sums){content, D},
                    in_place ? locus_query_row(head, q, queries->first) : content,
                    in_place ? q->stride[2] : D, locus_query_turns(plan, head->b, queries->first),
                    1.0f, queries->count);
}

/* scale pos_q of the rows that have one; the others see no key. */
static void load_pos_q(const head_context *head, const locus_queries *queries)
{
    const locus_tensor *pos_q = &head->in->pos_q;
    const int64_t D = head->plan->call.D, count = queries->count;
    const int64_t first = locus_position_row(head->plan, queries->position);
    const int64_t from = min_i64(count, max_i64(0, -first));
    const int64_t to = max_i64(from, min_i64(count, pos_q->shape[1] - first));
    float *rows = queries->pos_q_rows;
    memset(rows, 0, (size_t)(from * D) * sizeof *rows);
    memset(rows + to * D, 0, (size_t)((count - to) * D) * sizeof *rows);
    if (to > from)
        head->plan->kernels->scale_rows(rows + from * D, D,
                                        locus_f32(pos_q, head->h, first + from, 0),
                                        pos_q->stride[1], NULL, (float)head->plan->call.scale,
                                        to - from, D, 0);
}

/* 1 where q is what the products need. */
static int reads_in_place(const head_context *head)
{
    const locus_plan *plan = head->plan;
    return head->scale_in_panels && plan->turn_query == NULL && !plan->has_decay &&
           !locus_present(&head->in->u) && !locus_is_half(&head->in->q) &&
           (plan->same_query_rows || plan->own_query || plan->index == NULL) &&
           !locus_rows_share_sets(head->in->q.stride[2], plan->call.D);
}

/* Rows of pos_query, in place or as floats. */
static void load_pos_query(const head_context *head, locus_queries *queries)
{
    const int64_t width = head->plan->key_width;
    const locus_rows stored = locus_query_rows(head, &head->in->pos_query, queries->first);
    queries->with_position = stored.data;
    queries->position_stride = stored.stride;
    if (queries->position_rows == NULL) return;
    locus_load_rows(head->plan, queries->position_rows, stored, queries->count, width);
    queries->with_position = queries->position_rows;
    queries->position_stride = width;
}

void locus_queries_load(const head_context *head, locus_queries *queries)
{
    const locus_tensor *q = &head->in->q;
    if (reads_in_place(head)) {
        queries->content = queries->with_position = locus_query_row(head, q, queries->first);
        queries->row_stride = q->stride[2];
    } else {
        load_content(head, queries);
        queries->content = queries->with_position = queries->content_rows;
        queries->row_stride = head->plan->call.D;
        if (queries->position_rows != NULL && !head->plan->own_query) {
            load_rows(head, queries, &head->in->w, locus_position_row_scale(head),
                      queries->position_rows);
            queries->with_position = queries->position_rows;
        }
    }
    queries->position_stride = queries->row_stride;
    if (head->plan->own_query) load_pos_query(head, queries);
    if (locus_present(&head->in->pos_q)) load_pos_q(head, queries);
}

void locus_queries_find_bad(const head_context *head, locus_queries *queries)
{
    const locus_plan *plan = head->plan;
    const int64_t D = plan->call.D, count = queries->count;
    locus_find_bad(head, !head->all_seen, queries->content_bad, queries->content_rows, D, count, D);
    if (plan->index != NULL)
        locus_find_bad(head, 1, queries->position_bad, queries->with_position,
                       queries->position_stride, count, plan->key_width);
    if (locus_present(&head->in->pos_q))
        locus_find_bad(head, !head->all_seen || plan->has_reset, queries->pos_bad,
                       queries->pos_q_rows, D, count, D);
}

const float *locus_row_gain(const locus_plan *plan, const locus_queries *queries, int64_t i,
                            int64_t key)
{
    const int64_t steps =
        locus_gain_block_of(plan, queries->position + i) - locus_gain_block_of(plan, key);
    return plan->gain + (steps - plan->least_block) * plan->call.D;
}

int locus_rows_have_gain(const locus_plan *plan, const locus_queries *queries, int64_t key)
{
    if (plan->gain == NULL) return 0;
    const int64_t block = locus_gain_block_of(plan, key);
    return locus_gain_block_of(plan, queries->position) != block ||
           locus_gain_block_of(plan, queries->position + queries->count - 1) != block;
}

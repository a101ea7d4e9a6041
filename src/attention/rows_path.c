/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/rows_path.h"

#include <math.h>
#include <string.h>

#include "attention/in_place.h"
#include "attention/lower.h"
#include "attention/online.h"
#include "core/parallel.h"

static int64_t key_tiles(const locus_plan *plan)
{
    return ceil_div(plan->call.Tk, plan->forward.keys);
}

/* What heads share by position (rotations, a common table) stays in the second cache over a short
 * split while the heads go by; a long one begins anew less often. */
static int64_t split_keys(const locus_plan *plan)
{
    const locus_tensor *table = locus_key_table(plan, &plan->shapes);
    const int shares = plan->turn_key != NULL || (table != NULL && table->rank == 2);
    return shares && plan->call.Hk > 1 ? SHARED_SPLIT_KEYS : SPLIT_KEYS;
}

/* Path forced to rows: queries already give enough tasks. */
static int64_t split_count(const locus_plan *plan)
{
    if (plan->call.Tq > ROWS_PATH_QUERIES || plan->counts) return 1;
    const int64_t wanted = ceil_div(plan->call.Tk, split_keys(plan));
    return max_i64(1, min_i64(wanted, MAX_SPLITS));
}

/* Heads that share keys are cut into groups that fit a worker. */
static int64_t groups_of(const locus_plan *plan)
{
    return ceil_div(plan->call.H / plan->call.Hk, plan->forward.group);
}

/* max, sum and out of every row of one (batch entry, head, split). */
typedef struct partial {
    float *max, *sum, *out; /* [Tq], [Tq], [Tq][Dv] */
} partial;

static int64_t partial_floats(const locus_plan *plan)
{
    return plan->call.Tq * (plan->call.Dv + 2);
}

static partial partial_at(const locus_forward_call *call, int64_t b, int64_t h, int64_t split)
{
    const locus_plan *plan = call->plan;
    const int64_t number = (b * plan->call.H + h) * split_count(plan) + split;
    float *max = call->partial + number * partial_floats(plan);
    return (partial){max, max + plan->call.Tq, max + 2 * plan->call.Tq};
}

int64_t locus_rows_path_partial(const locus_plan *plan)
{
    if (!plan->rows_path || split_count(plan) == 1) return 0;
    return plan->call.B * plan->call.H * split_count(plan) * partial_floats(plan);
}

static void keep_partial(const locus_online *online, partial to)
{
    const int64_t Dv = online->head->plan->call.Dv, first = online->queries.first;
    const size_t bytes = (size_t)online->queries.count * sizeof(float);
    memcpy(to.max + first, online->softmax.max, bytes);
    memcpy(to.sum + first, online->softmax.sum, bytes);
    memcpy(to.out + first * Dv, online->out, bytes * (size_t)Dv);
}

/* The heads of a task and what they share. */
typedef struct group {
    int64_t count;
    head_context heads[MAX_GROUP];
    locus_head_tables tables[MAX_GROUP];
    locus_online members[MAX_GROUP];
    locus_keys keys;
    locus_prefetch prefetch;
} group;

/* Rooms that the heads share first, then those of each. */
static void carve(const locus_plan *plan, locus_arena *arena, group *g)
{
    locus_scores shared;
    locus_head_tables tables = {0};
    locus_keys_carve_rows_path(plan, arena, &g->keys);
    locus_in_place_carve(plan, arena, &shared);
    locus_carve_relative_forward(plan, arena, &tables);
    for (int64_t i = 0; i < plan->forward.group; i++) {
        locus_online *member = &g->members[i];
        g->tables[i] = tables;
        member->scores = shared;
        locus_in_place_carve_own(plan, arena, &member->scores);
        locus_queries_carve(plan, &plan->forward, 0, arena, &member->queries);
        locus_online_carve(plan, arena, member);
    }
}

size_t locus_rows_path_bytes(const locus_plan *plan)
{
    locus_arena arena = {NULL, 0};
    group g;
    carve(plan, &arena, &g);
    return arena.used;
}

/* Splits come first: what heads share by position (rotations, tables) is still in the cache. */
typedef struct task {
    int64_t b, kv, first, count; /* heads first .. first + count - 1 share keys */
    int64_t split, from, to;     /* key tiles                                    */
} task;

int64_t locus_rows_path_tasks(const locus_plan *plan)
{
    return plan->call.B * plan->call.Hk * groups_of(plan) * split_count(plan);
}

static task task_at(const locus_plan *plan, int64_t index)
{
    const int64_t splits = split_count(plan), groups = groups_of(plan), Hk = plan->call.Hk;
    const int64_t sharing = plan->call.H / Hk, each = plan->forward.group;
    const int64_t part = index % groups, kv = index / groups % Hk;
    const int64_t split = index / groups / Hk % splits;
    return (task){.b = index / groups / Hk / splits,
                  .kv = kv,
                  .first = kv * sharing + part * each,
                  .count = min_i64(each, sharing - part * each),
                  .split = split,
                  .from = split * key_tiles(plan) / splits,
                  .to = (split + 1) * key_tiles(plan) / splits};
}

static head_context head_at(const locus_forward_call *call, int64_t b, int64_t h)
{
    return locus_head_at(call->plan, &call->plan->forward, call->in, call->sequence + b, h);
}

/* Key tile `t` of the task will come next, or the first one of the task that this thread is
 * likely to get next. */
static void fetch_next(const locus_forward_call *call, group *g, const task *now, int64_t index,
                       int64_t t)
{
    const int64_t after = index + call->task_step;
    const locus_queries *queries = &g->members[0].queries;
    if (t < min_i64(now->to, queries->tile_to)) {
        locus_in_place_fetch(g->heads, g->count, queries->position, t, &g->prefetch);
    } else if (after < locus_rows_path_tasks(call->plan)) {
        const task next = task_at(call->plan, after);
        const head_context head = head_at(call, next.b, next.first);
        locus_in_place_fetch(&head, 1, queries->position, next.from, &g->prefetch);
    }
}

/* One query tile of every head of the group, over the task's key tiles. */
static void attend_group(const locus_forward_call *call, group *g, const task *now, int64_t index,
                         int64_t first)
{
    for (int64_t i = 0; i < g->count; i++) locus_online_begin(&g->members[i], &g->heads[i], first);
    const locus_queries *queries = &g->members[0].queries;
    const int64_t from = max_i64(now->from, queries->tile_from);
    const int64_t to = min_i64(now->to, queries->tile_to);
    for (int64_t n = 0; n < to - from; n++) {
        const int64_t t = locus_tile_in_turn(call->plan, from, to, n);
        fetch_next(call, g, now, index, from + n + 1);
        for (int64_t i = 0; i < g->count; i++) locus_online_step(&g->members[i], t);
    }
    for (int64_t i = 0; i < g->count; i++) {
        const head_context *head = &g->heads[i];
        locus_online_end(&g->members[i]);
        if (split_count(call->plan) > 1)
            keep_partial(&g->members[i], partial_at(call, now->b, head->h, now->split));
        else
            locus_online_write(&g->members[i], call->results);
    }
}

static void begin_member(const locus_forward_call *call, const task *now, int64_t i, group *g)
{
    const int64_t h = now->first + i;
    locus_scores *scores = &g->members[i].scores;
    g->heads[i] = head_at(call, now->b, h);
    if (call->tables != NULL) g->tables[i] = locus_tables_of_head(call->tables, h);
    g->members[i].path = &locus_in_place;
    g->members[i].without_sink = now->split > 0;
    g->members[i].kept = locus_kept_weights(call); /* of so few keys that there is one split */
    scores->keys = &g->keys;
    scores->tables = &g->tables[i];
    scores->prefetch = &g->prefetch;
    scores->bias = locus_head_bias(call->bias, h);
    scores->shared = call->shared;
}

void locus_rows_path_run(const locus_forward_call *call, int64_t index, uint32_t thread)
{
    const locus_plan *plan = call->plan;
    const task now = task_at(plan, index);
    locus_arena arena = locus_forward_scratch(call, thread);
    group g;
    carve(plan, &arena, &g);
    g.count = now.count;
    for (int64_t i = 0; i < now.count; i++) begin_member(call, &now, i, &g);
    locus_keys_begin(&g.keys);
    locus_prefetch_begin(&g.prefetch);
    if (call->tables == NULL) locus_pack_relative(&g.heads[0], &g.tables[0]);
    for (int64_t row = 0; row < plan->call.Tq; row += plan->forward.rows)
        attend_group(call, &g, &now, index, row);
}

/* Join the splits of one (batch entry, head) in the first one's place. */
void locus_rows_path_join(const locus_forward_call *call, int64_t index)
{
    const locus_plan *plan = call->plan;
    const int64_t b = index / plan->call.H, h = index % plan->call.H;
    const int64_t Tq = plan->call.Tq, Dv = plan->call.Dv;
    const partial all = partial_at(call, b, h, 0);
    for (int64_t s = 1; s < split_count(plan); s++) {
        const partial more = partial_at(call, b, h, s);
        for (int64_t i = 0; i < Tq; i++) {
            const float max = more.max[i] > all.max[i] ? more.max[i] : all.max[i];
            /* equal maxima, -inf and +inf among them, have factor 1 */
            const float old = all.max[i] == max ? 1.0f : expf(all.max[i] - max);
            const float new = more.max[i] == max ? 1.0f : expf(more.max[i] - max);
            all.max[i] = max;
            all.sum[i] = all.sum[i] * old + more.sum[i] * new;
            for (int64_t c = 0; c < Dv; c++)
                all.out[i * Dv + c] = all.out[i * Dv + c] * old + more.out[i * Dv + c] * new;
        }
    }
    const head_context head = head_at(call, b, h);
    locus_write_rows(&head, call->results, 0, Tq, all.max, all.sum, all.out);
}

static void run_task(void *context, size_t index, uint32_t thread)
{
    locus_rows_path_run(context, (int64_t)index, thread);
}

static void join(void *context, size_t index, uint32_t thread)
{
    (void)thread;
    locus_rows_path_join(context, (int64_t)index);
}

void locus_rows_path(const locus_forward_call *call)
{
    const locus_plan *plan = call->plan;
    const int64_t splits = split_count(plan), heads = plan->call.B * plan->call.H;
    if (heads == 0) return;
    locus_parallel_for(plan->threads, (size_t)locus_rows_path_tasks(plan), run_task,
                       (void *)(uintptr_t)call);
    /* Joining little is done sooner than other threads are woken. */
    enum { LITTLE = 1 << 16 };
    const uint32_t threads = locus_rows_path_partial(plan) > LITTLE ? plan->threads : 1;
    if (splits > 1) locus_parallel_for(threads, (size_t)heads, join, (void *)(uintptr_t)call);
}

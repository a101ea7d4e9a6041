/* SPDX-License-Identifier: Apache-2.0 */
/* Few queries over many keys: what counts is that keys and values are read once, and by all
 * threads.
 *
 *     task = (batch, split of the keys, group of query heads that share keys)
 *     a key tile meets every head of the group before the next tile is read
 *     the splits of a head are joined in ascending order:
 *         top = max top_s,   sum = sum e^(top_s - top) sum_s,   out likewise
 *
 * The splits are a function of the number of keys alone, so threads change no bits. */

#include <math.h>
#include <string.h>

#include "attention/few.h"
#include "attention/forward.h"
#include "attention/online.h"
#include "core/parallel.h"
#include "core/tensor.h"

enum { SPLIT_KEYS = 4096, SHARED_KEYS = 1024, MOST_SPLITS = 64 };

static int64_t key_tiles(const locus_plan *plan)
{
    return locus_ceil_div(plan->call.Tk, plan->forward.keys);
}

/* What heads share by position (turns, a common table) stays in the second cache over a short
 * split while the heads go by; a long one begins anew less often. */
static int64_t split_keys(const locus_plan *plan)
{
    const locus_tensor *table = locus_key_table(plan, &plan->shapes);
    const int shares = plan->turn_key != NULL || (table != NULL && table->rank == 2);
    return shares && plan->call.Hk > 1 ? SHARED_KEYS : SPLIT_KEYS;
}

/* Many queries, who were told to take this path, are tasks enough. */
static int64_t split_count(const locus_plan *plan)
{
    if (plan->call.Tq > FEW_ROWS) return 1;
    const int64_t wanted = locus_ceil_div(plan->call.Tk, split_keys(plan));
    return locus_most(1, locus_least(wanted, MOST_SPLITS));
}

/* Heads that share keys are cut into groups that fit a worker. */
static int64_t groups_of(const locus_plan *plan)
{
    return locus_ceil_div(plan->call.H / plan->call.Hk, plan->forward.group);
}

/* top, sum and out of every row of one (batch, head, split). */
typedef struct partial {
    float *top, *sum, *out; /* [Tq], [Tq], [Tq][Dv] */
} partial;

static int64_t partial_floats(const locus_plan *plan)
{
    return plan->call.Tq * (plan->call.Dv + 2);
}

static partial partial_at(const locus_forward_call *call, int64_t b, int64_t h, int64_t split)
{
    const locus_plan *plan = call->plan;
    const int64_t number = (b * plan->call.H + h) * split_count(plan) + split;
    float *top = call->partial + number * partial_floats(plan);
    return (partial){top, top + plan->call.Tq, top + 2 * plan->call.Tq};
}

int64_t locus_decode_floats(const locus_plan *plan)
{
    if (!plan->few_rows || split_count(plan) == 1) return 0;
    return plan->call.B * plan->call.H * split_count(plan) * partial_floats(plan);
}

static void keep_partial(const locus_head *head, const locus_rows *rows, partial to)
{
    const locus_worker *w = head->worker;
    const int64_t Dv = head->plan->call.Dv;
    const size_t bytes = (size_t)rows->count * sizeof(float);
    memcpy(to.top + rows->first, w->top, bytes);
    memcpy(to.sum + rows->first, w->sum, bytes);
    memcpy(to.out + rows->first * Dv, w->out, bytes * (size_t)Dv);
}

/* Splits come first: what heads share by position (turns, tables) is still near. */
typedef struct task {
    int64_t b, kv, first, count; /* heads first .. first + count - 1 share keys */
    int64_t split, from, to;     /* key tiles                                    */
} task;

static int64_t task_count(const locus_plan *plan)
{
    return plan->call.B * plan->call.Hk * groups_of(plan) * split_count(plan);
}

static task task_at(const locus_plan *plan, int64_t index)
{
    const int64_t splits = split_count(plan), groups = groups_of(plan), Hk = plan->call.Hk;
    const int64_t sharing = plan->call.H / Hk, each = plan->forward.group;
    const int64_t group = index % groups, kv = index / groups % Hk;
    const int64_t split = index / groups / Hk % splits;
    return (task){.b = index / groups / Hk / splits,
                  .kv = kv,
                  .first = kv * sharing + group * each,
                  .count = locus_least(each, sharing - group * each),
                  .split = split,
                  .from = split * key_tiles(plan) / splits,
                  .to = (split + 1) * key_tiles(plan) / splits};
}

/* Key tile `t` of the task will come next, or the first one of the task that this worker is
 * likely to get next. */
static void look_ahead(const locus_forward_call *call, const locus_head *heads, const task *now,
                       const locus_rows *rows, int64_t index, int64_t t)
{
    const int64_t after = index + (int64_t)call->plan->threads;
    if (t < locus_least(now->to, rows->tile_to)) {
        locus_few_ahead(heads, now->count, rows, t, heads);
    } else if (after < task_count(call->plan)) {
        const task next = task_at(call->plan, after);
        const locus_head head = locus_forward_head(call, NULL, next.b, next.first);
        locus_few_ahead(&head, 1, rows, next.from, heads);
    }
}

/* One query tile of every head of the group, over the task's key tiles. */
static void attend_group(const locus_forward_call *call, const locus_head *heads, const task *now,
                         int64_t index, int64_t first)
{
    locus_online members[MOST_GROUP];
    for (int64_t g = 0; g < now->count; g++) locus_online_begin(&members[g], &heads[g], first);
    const locus_rows *rows = &members[0].rows;
    const int64_t from = locus_most(now->from, rows->tile_from);
    const int64_t to = locus_least(now->to, rows->tile_to);
    for (int64_t t = from; t < to; t++) {
        look_ahead(call, heads, now, rows, index, t + 1);
        for (int64_t g = 0; g < now->count; g++) locus_online_step(&members[g], t);
    }
    for (int64_t g = 0; g < now->count; g++) {
        const locus_head *head = &heads[g];
        const locus_worker *w = head->worker;
        locus_online_flush(&members[g]);
        if (split_count(call->plan) > 1)
            keep_partial(head, rows, partial_at(call, head->b, head->h, now->split));
        else
            locus_online_write(head, rows, call->results, w->top, w->sum, w->out);
    }
}

static void run_task(void *context, size_t index, uint32_t worker_number)
{
    const locus_forward_call *call = context;
    const locus_plan *plan = call->plan;
    const task now = task_at(plan, (int64_t)index);
    locus_worker worker, shifted[MOST_GROUP];
    locus_head heads[MOST_GROUP];
    locus_forward_worker(call, worker_number, &worker);
    for (int64_t g = 0; g < now.count; g++) {
        locus_worker_shift(plan, &worker, g * plan->forward.rows, &shifted[g]);
        heads[g] = locus_forward_head(call, &shifted[g], now.b, now.first + g);
        if (call->tables != NULL) locus_tables_use(&heads[g]);
    }
    locus_head_begin(&heads[0]);
    for (int64_t row = 0; row < plan->call.Tq; row += plan->forward.rows)
        attend_group(call, heads, &now, (int64_t)index, row);
}

/* Join the splits of one (batch, head) in the first one's place. */
static void join(void *context, size_t index, uint32_t worker_number)
{
    const locus_forward_call *call = context;
    const locus_plan *plan = call->plan;
    const int64_t b = (int64_t)index / plan->call.H, h = (int64_t)index % plan->call.H;
    const int64_t Tq = plan->call.Tq, Dv = plan->call.Dv;
    const partial all = partial_at(call, b, h, 0);
    (void)worker_number;
    for (int64_t s = 1; s < split_count(plan); s++) {
        const partial more = partial_at(call, b, h, s);
        for (int64_t i = 0; i < Tq; i++) {
            const float top = more.top[i] > all.top[i] ? more.top[i] : all.top[i];
            /* equal tops, -inf and +inf among them, carry 1 */
            const float old = all.top[i] == top ? 1.0f : expf(all.top[i] - top);
            const float new = more.top[i] == top ? 1.0f : expf(more.top[i] - top);
            all.top[i] = top;
            all.sum[i] = all.sum[i] * old + more.sum[i] * new;
            for (int64_t c = 0; c < Dv; c++)
                all.out[i * Dv + c] = all.out[i * Dv + c] * old + more.out[i * Dv + c] * new;
        }
    }
    const locus_head head = locus_forward_head(call, NULL, b, h);
    const locus_rows rows = {.first = 0, .count = Tq};
    locus_online_write(&head, &rows, call->results, all.top, all.sum, all.out);
}

void locus_decode(const locus_forward_call *call)
{
    const locus_plan *plan = call->plan;
    const int64_t splits = split_count(plan), heads = plan->call.B * plan->call.H;
    if (heads == 0) return;
    locus_parallel_for(plan->threads, (size_t)task_count(plan), run_task, (void *)(uintptr_t)call);
    /* Joining little is done sooner than other threads are woken. */
    enum { LITTLE = 1 << 16 };
    const uint32_t threads = locus_decode_floats(plan) > LITTLE ? plan->threads : 1;
    if (splits > 1) locus_parallel_for(threads, (size_t)heads, join, (void *)(uintptr_t)call);
}

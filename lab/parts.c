/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/parts.h"

#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"

/* A part has as few rows as make so many tokens, at the longest length: enough for the kernels to
 * work as fast as on the whole batch. */
enum { PART_TOKENS = 512 };

/* ---- sums ---- */

/* Before its gradients. */
typedef struct sum_head {
    double loss; /* sum over targets */
    int interrupted;
    locus_status status; /* of the first part that failed */
    locus_error error;
} sum_head;

static size_t head_bytes(void)
{
    return (sizeof(sum_head) + LOCUS_ALIGNMENT - 1) / LOCUS_ALIGNMENT * LOCUS_ALIGNMENT;
}

static float *gradients_of(sum_head *sum) { return (float *)((char *)sum + head_bytes()); }

/* Sum `index` of the memory: first those that wait, then one per level. */
static sum_head *sum_at(const lab_parts *p, size_t index)
{
    return (sum_head *)((char *)p->memory + index * p->bytes);
}

static void add_sum(const train_model *model, sum_head *to, sum_head *from)
{
    to->loss += from->loss;
    to->interrupted |= from->interrupted;
    if (to->status == LOCUS_OK) {
        to->status = from->status;
        to->error = from->error;
    }
    model->workers.kernels->add(gradients_of(to), gradients_of(from), (int64_t)model->list.floats);
}

/* ---- the tree ---- */

/* Node `index` of level `level` is the sum of parts index 2^level .. (index + 1) 2^level - 1, as far
 * as they exist. It comes to be on the rank that has the first of them. */
typedef struct node {
    size_t level;
    int64_t index;
} node;

static int64_t first_part(node n) { return n.index << n.level; }
static node left_of(node n) { return (node){n.level - 1, 2 * n.index}; }
static node right_of(node n) { return (node){n.level - 1, 2 * n.index + 1}; }

static int64_t past_part(const lab_parts *p, node n)
{
    const int64_t past = (n.index + 1) << n.level;
    return past < p->count ? past : p->count;
}

static int is_none_mine(const lab_parts *p, node n)
{
    return first_part(n) >= p->past || past_part(p, n) <= p->first;
}

static int is_all_mine(const lab_parts *p, node n)
{
    return first_part(n) >= p->first && past_part(p, n) <= p->past;
}

static int owner_of(const lab_parts *p, int64_t part)
{
    return (int)(part * p->crew->ranks / p->count);
}

/* Rank r has the parts from G r / P on, rounded up. */
static int64_t first_of_rank(int64_t count, int rank, int ranks)
{
    return (count * rank + ranks - 1) / ranks;
}

/* The largest nodes that are this rank's alone. */
static size_t count_slots(const lab_parts *p, node n)
{
    if (is_none_mine(p, n)) return 0;
    return is_all_mine(p, n) ? 1 : count_slots(p, left_of(n)) + count_slots(p, right_of(n));
}

/* ---- one part ---- */

typedef struct lesson {
    const lab_parts *parts;
    train_model *model;
    const train_batch *batch;
    train_memory *memory; /* NULL: none */
    int64_t targets;      /* of the batch */
    int interrupted;
    size_t used; /* sums that wait, so far */
} lesson;

static int64_t rows_of(const lab_parts *p, int64_t part)
{
    const int64_t left = p->batch - part * p->rows;
    return left < p->rows ? left : p->rows;
}

static train_batch batch_of(const lesson *s, int64_t part)
{
    const int64_t at = part * s->parts->rows * s->batch->tokens;
    return (train_batch){.rows = rows_of(s->parts, part),
                         .tokens = s->batch->tokens,
                         .token = s->batch->token + at,
                         .target = s->batch->target + at,
                         .weight = s->batch->weight + at,
                         .position = s->batch->position + at};
}

/* The memory of a part's rows, of which each has `rows`. */
static train_memory memory_of(const lesson *s, int64_t part, int64_t rows)
{
    train_memory some = {.rows = rows, .most = s->memory->most};
    for (int64_t i = 0; i < s->model->shape.layers; i++)
        some.data[i] = s->memory->data[i] + part * s->parts->rows * rows * s->model->shape.width;
    return some;
}

/* Rows of memory that a sequence has after a step. */
static int64_t remembered(const train_memory *memory, int64_t tokens)
{
    return memory->most < tokens ? memory->most : tokens;
}

static locus_status learn_part(const lesson *s, int64_t part, sum_head *sum, locus_error *error)
{
    train_model *m = s->model;
    const train_batch batch = batch_of(s, part);
    const int64_t before = s->memory != NULL ? s->memory->rows : 0;
    train_memory memory = {.rows = 0};
    if (s->memory != NULL) memory = memory_of(s, part, before);
    m->gradients = gradients_of(sum);
    LOCUS_TRY(train_prepare(m, batch.rows, batch.tokens, before, error));
    LOCUS_TRY(train_forward(m, &batch, before > 0 ? &memory : NULL, error));
    sum->loss = train_loss(m);
    LOCUS_TRY(train_backward(m, &batch, before > 0 ? &memory : NULL, s->targets, error));
    if (s->memory == NULL) return LOCUS_OK;
    memory = memory_of(s, part, remembered(s->memory, batch.tokens));
    train_remember(m, &batch, &memory);
    return LOCUS_OK;
}

/* ---- first what needs no other rank, then the rest ---- */

static void learn_node(lesson *s, node n, sum_head *sum)
{
    if (n.level == 0) {
        *sum = (sum_head){.interrupted = s->interrupted};
        sum->status = learn_part(s, n.index, sum, &sum->error);
        return;
    }
    learn_node(s, left_of(n), sum);
    if (first_part(right_of(n)) >= s->parts->count) return;
    sum_head *right = sum_at(s->parts, s->parts->slots + n.level - 1);
    learn_node(s, right_of(n), right);
    add_sum(s->model, sum, right);
}

static void learn_mine(lesson *s, node n)
{
    if (is_none_mine(s->parts, n)) return;
    if (is_all_mine(s->parts, n)) {
        learn_node(s, n, sum_at(s->parts, s->used++));
        return;
    }
    learn_mine(s, left_of(n));
    learn_mine(s, right_of(n));
}

/* The sum of a node on the rank where it comes to be; NULL on others. All ranks meet the nodes in the
 * same order, so the first message that is waited for is always one that both sides have reached. */
static sum_head *join(lesson *s, node n)
{
    const lab_parts *p = s->parts;
    if (is_none_mine(p, n)) return NULL;
    if (is_all_mine(p, n)) return sum_at(p, s->used++);
    sum_head *left = join(s, left_of(n)), *right = join(s, right_of(n));
    const int64_t middle = first_part(right_of(n));
    if (middle >= p->count) return left;
    if (left == NULL && right != NULL)
        p->crew->send(p->crew->context, owner_of(p, first_part(n)), right, p->bytes);
    if (left == NULL) return NULL;
    if (right == NULL) {
        right = sum_at(p, p->slots + n.level - 1);
        p->crew->receive(p->crew->context, owner_of(p, middle), right, p->bytes);
    }
    add_sum(s->model, left, right);
    return left;
}

static int64_t count_targets(const train_batch *batch)
{
    int64_t count = 0;
    for (int64_t i = 0; i < batch->rows * batch->tokens; i++) count += batch->weight[i] != 0.0f;
    return count;
}

locus_status lab_parts_learn(const lab_parts *parts, train_model *model, const train_batch *batch,
                             train_memory *memory, int interrupted, lab_learned *learned,
                             locus_error *error)
{
    lesson s = {.parts = parts,
                .model = model,
                .batch = batch,
                .memory = memory,
                .targets = count_targets(batch),
                .interrupted = interrupted};
    const node root = {.level = parts->levels};
    learn_mine(&s, root);
    s.used = 0;
    sum_head *sum = join(&s, root);
    if (sum == NULL) sum = sum_at(parts, 0);
    if (parts->crew != NULL) parts->crew->broadcast(parts->crew->context, sum, parts->bytes);
    model->gradients = gradients_of(sum);
    if (memory != NULL) memory->rows = remembered(memory, batch->tokens);
    *learned = (lab_learned){.loss = s.targets > 0 ? sum->loss / (double)s.targets : 0.0,
                             .interrupted = sum->interrupted};
    if (sum->status != LOCUS_OK) *error = sum->error;
    return sum->status;
}

/* ---- memory ---- */

locus_status lab_parts_new(lab_parts *p, const lab_plan *plan, const train_model *model,
                           const lab_crew *crew, locus_error *error)
{
    const int64_t longest = plan->shape.longest, batch = plan->settings.batch;
    const int64_t rows = (PART_TOKENS + longest - 1) / longest;
    const int rank = crew != NULL ? crew->rank : 0, ranks = crew != NULL ? crew->ranks : 1;
    *p = (lab_parts){.crew = crew, .batch = batch, .rows = rows < batch ? rows : batch};
    p->count = (batch + p->rows - 1) / p->rows;
    p->first = first_of_rank(p->count, rank, ranks);
    p->past = first_of_rank(p->count, rank + 1, ranks);
    while (((int64_t)1 << p->levels) < p->count) p->levels++;
    p->slots = count_slots(p, (node){.level = p->levels});
    if (p->slots == 0) p->slots = 1; /* for what the others learned */
    p->bytes = head_bytes() + model->list.floats * sizeof(float);
    p->memory = locus_allocate(NULL, p->slots + p->levels, p->bytes);
    if (p->memory == NULL)
        return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the gradients of %zu parts",
                          p->slots + p->levels);
    return LOCUS_OK;
}

void lab_parts_free(lab_parts *p)
{
    locus_release(NULL, p->memory);
    p->memory = NULL;
}

locus_status lab_parts_prepare(const lab_parts *p, train_model *model, int64_t tokens,
                               int64_t memory, locus_error *error)
{
    LOCUS_TRY(train_prepare(model, p->rows, tokens, memory, error));
    return train_prepare(model, rows_of(p, p->count - 1), tokens, memory, error);
}

void lab_parts_collect(const lab_parts *p, const train_model *model, const train_memory *memory)
{
    if (p->crew == NULL || memory->rows == 0) return;
    const int64_t row = memory->rows * model->shape.width;
    for (int rank = 1; rank < p->crew->ranks; rank++) {
        const int64_t first = first_of_rank(p->count, rank, p->crew->ranks) * p->rows;
        int64_t past = first_of_rank(p->count, rank + 1, p->crew->ranks) * p->rows;
        if (past > p->batch) past = p->batch;
        if (first >= past || (p->crew->rank != 0 && p->crew->rank != rank)) continue;
        const size_t bytes = (size_t)((past - first) * row) * sizeof(float);
        for (int64_t i = 0; i < model->shape.layers; i++) {
            float *rows = memory->data[i] + first * row;
            if (p->crew->rank == 0)
                p->crew->receive(p->crew->context, rank, rows, bytes);
            else
                p->crew->send(p->crew->context, 0, rows, bytes);
        }
    }
}

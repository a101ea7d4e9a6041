/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "model/ops/ops.h"
#include "model/run.h"

/* Attention: one call for all sequences where their lengths are all that differs, else one for each. */

/* Where the rows of q, k or v lie: `heads` heads one behind the other in rows `width` apart. */
static locus_tensor rows_of(const float *data, int64_t rows, int64_t heads, int64_t head_dim,
                            int64_t width)
{
    locus_tensor view = locus_view_bthd((float *)(uintptr_t)data, 1, rows, heads, head_dim);
    view.stride[0] = rows * width;
    view.stride[2] = width;
    return view;
}

void attend_tables(const program *p, const op *o, float *const *at, const int64_t *rows,
                   locus_tensors *in)
{
    const attention *a = &p->attentions[o->as.attend->attention];
    for (int i = 0; i < o->as.attend->table_count; i++) {
        const attend_table *t = &o->as.attend->tables[i];
        const value v = o->in[ATTEND_TABLES + i];
        const value_info *info = &p->values[v];
        locus_tensor *to = locus_tensor_at(in, t->tensor);
        float *data = at != NULL ? at[v] : info->data;
        const int64_t count = info->rows == FIXED ? info->count : rows[info->rows];
        if (t->by_heads)
            *to = (locus_tensor){.data = data,
                                 .dtype = LOCUS_F32,
                                 .rank = 3,
                                 .shape = {a->heads, count, a->head_dim},
                                 .stride = {a->head_dim, a->heads * a->head_dim, 1}};
        else
            *to = locus_view(data, LOCUS_F32, t->rank, t->shape);
    }
    in->rows = a->rows;
    if (a->frequencies != NULL)
        in->frequencies =
            locus_view(a->frequencies, LOCUS_F32, 1, (const int64_t[]){a->turned / 2});
}

/* ---- one call ---- */

typedef struct call {
    const op *o;
    const attention *a;
    const locus_plan *plan;
    locus_tensors in;
    int64_t first, count; /* rows of q                                         */
    int64_t key, keys;    /* rows of k and v in their value, behind the memory */
    int64_t memory;       /* rows before them                                  */
    const float *before;  /* states of the memory; NULL: zeros                 */
    const int32_t *types; /* of pairs with scores; else NULL                   */
} call;

static segment_rule segments_of(const run *r, const call *c)
{
    return (segment_rule){.bias = run_at(r, c->o->in[ATTEND_BIAS]),
                          .segment = run_at(r, c->o->in[ATTEND_SEGMENT]),
                          .heads = c->a->heads,
                          .head_dim = c->a->head_dim,
                          .stride = r->p->values[c->o->as.attend->q.of].width};
}

static const float *part_at(const run *r, part p, int64_t row)
{
    return run_at(r, p.of) + row * r->p->values[p.of].width + p.column;
}

/* Put k and v of a sequence's tokens behind those of the cache, turned if need be. Returns the
 * first of them all. */
static const float *remember(const run *r, const call *c, int64_t s)
{
    const model_cache *cache = r->pass->cache;
    const attend_rule *rule = c->o->as.attend;
    const int64_t D = c->a->head_dim, width = r->p->values[rule->q.of].width;
    const int64_t kv = 2 * c->a->kv_heads * D;
    float *qkv = run_at(r, rule->q.of) + c->first * width;
    const float *turns = run_at(r, c->o->in[ATTEND_TURNS]);
    if (turns != NULL)
        turn_rows(r, c->a, qkv, width, qkv, width, turns + c->first * c->a->turned,
                  c->a->heads + c->a->kv_heads, c->count);
    float *row = cache->kv + (rule->layer * cache->rows + cache->slot[s]) * cache->capacity * kv;
    for (int64_t i = 0; i < c->count; i++)
        memcpy(row + (cache->past[s] + i) * kv, qkv + i * width + rule->k.column,
               (size_t)kv * sizeof(float));
    return row;
}

/* k and v of a sequence behind those of its memory. Returns the first of them all. */
static const float *put_before(const run *r, const call *c)
{
    const int64_t A = c->a->heads * c->a->head_dim, M = c->memory,
                  bytes = 2 * A * (int64_t)sizeof(float);
    const op *made = &r->p->ops[c->o->as.attend->memory_map];
    if (c->before == NULL) /* maps without biases make nothing of nothing */
        memset(r->joined, 0, (size_t)(M * bytes));
    else {
        map_rows(r->p, made, r->before, c->before, M, r->linear);
        for (int64_t i = 0; i < M; i++)
            memcpy(r->joined + i * 2 * A, r->before + i * 3 * A + A, (size_t)bytes);
    }
    for (int64_t i = 0; i < c->count; i++)
        memcpy(r->joined + (M + i) * 2 * A, part_at(r, c->o->as.attend->k, c->first + i),
               (size_t)bytes);
    return r->joined;
}

static void set_inputs(const run *r, call *c, const float *k, const float *v, int64_t stride)
{
    const attention *a = c->a;
    const part q = c->o->as.attend->q;
    c->in.q =
        rows_of(part_at(r, q, c->first), c->count, a->heads, a->head_dim, r->p->values[q.of].width);
    c->in.k = rows_of(k, c->memory + c->keys, a->kv_heads, a->head_dim, stride);
    c->in.v = rows_of(v, c->memory + c->keys, a->kv_heads, a->head_dim, stride);
}

/* Call `s` of an operator: of sequence s, or of all. 0: there is nothing to do. */
static int call_at(const run *r, const op *o, int64_t s, int forward, call *c)
{
    const attend_rule *rule = o->as.attend;
    const pass_kind *kind = &r->pass->kinds[rule->attention];
    const attention *a = &r->p->attentions[rule->attention];
    const int64_t *offsets = r->pass->offsets[a->stack];
    const int64_t end = kind->together ? r->pass->sequences : s + 1;
    *c = (call){.o = o, .a = a, .in = {.size = sizeof c->in}, .first = offsets[s]};
    c->count = offsets[end] - offsets[s];
    if (c->count == 0) return 0;
    const int64_t stride = r->p->values[rule->k.of].width;
    size_t plan = kind->plan_of[s];
    c->key = c->first;
    c->keys = c->count;
    attend_tables(r->p, o, r->at, r->rows, &c->in);
    if (a->cross) {
        const int64_t *text = pass_text(r->pass, s);
        c->key = text[0];
        c->keys = text[1] - text[0];
    }
    const float *k = part_at(r, rule->k, c->key), *v = part_at(r, rule->v, c->key);
    set_inputs(r, c, k, v, stride);
    if (kind->together) c->in.q_offsets = c->in.k_offsets = pass_offsets(r->pass, a->stack);
    if (a->segments && segments_differ(r->types != NULL ? r->types + c->first : NULL, c->count)) {
        const segment_rule segments = segments_of(r, c);
        c->types = r->types + c->first;
        c->in.bias_dense = segment_scores(&segments, c->in.q.data, c->types, c->count, r->pairs);
        plan++;
    }
    if (a->memory > 0) {
        c->memory = a->memory;
        if (r->memory != NULL)
            c->before = r->memory[rule->layer] +
                        s * a->memory * r->p->values[r->p->ops[rule->memory_map].in[0]].width;
        k = put_before(r, c);
        set_inputs(r, c, k, k + a->heads * a->head_dim, 2 * a->heads * a->head_dim);
    }
    if (r->pass->cache != NULL && !a->cross && forward) {
        k = remember(r, c, s);
        c->keys += r->pass->cache->past[s];
        set_inputs(r, c, k, k + a->kv_heads * a->head_dim, 2 * a->kv_heads * a->head_dim);
        c->in.frequencies = (locus_tensor){.rank = 0};
    }
    c->plan = r->pass->plans[plan].plan;
    return 1;
}

static locus_results results_of(const run *r, const call *c, float *out)
{
    const int64_t H = c->a->heads, D = c->a->head_dim;
    return (locus_results){.size = sizeof(locus_results),
                           .out = locus_view_bthd(out + c->first * H * D, 1, c->count, H, D),
                           .lse = locus_view(run_at(r, c->o->inside) + c->first * H, LOCUS_F32, 3,
                                             (const int64_t[]){1, H, c->count})};
}

static int64_t calls_of(const run *r, const op *o)
{
    return r->pass->kinds[o->as.attend->attention].together ? 1 : r->pass->sequences;
}

/* ---- what callers may see ---- */

static void copy_part(const run *r, part from, int64_t columns, float *to, int64_t stride)
{
    for (int64_t i = 0; i < run_rows(r, from.of); i++)
        memcpy(to + i * stride, part_at(r, from, i), (size_t)columns * sizeof(float));
}

/* q, k and v as attention is given them. */
static void show(const run *r, const op *o)
{
    const attend_rule *rule = o->as.attend;
    const attention *a = &r->p->attentions[rule->attention];
    const int64_t A = a->heads * a->head_dim, C = a->kv_heads * a->head_dim;
    const int behind = a->stack > r->pass->first_stack;
    float *const *qkv = a->cross ? r->results->cross_q
                        : behind ? r->results->decoder_qkv
                                 : r->results->qkv;
    float *const *kv = a->cross ? r->results->cross_kv : NULL;
    const int64_t width = a->cross ? A : A + 2 * C;
    if (qkv != NULL && qkv[rule->layer] != NULL) {
        float *to = qkv[rule->layer];
        copy_part(r, rule->q, A, to, width);
        if (!a->cross) copy_part(r, rule->k, C, to + A, width);
        if (!a->cross) copy_part(r, rule->v, C, to + A + C, width);
    }
    if (kv == NULL || kv[rule->layer] == NULL) return;
    copy_part(r, rule->k, A, kv[rule->layer], 2 * A);
    copy_part(r, rule->v, A, kv[rule->layer] + A, 2 * A);
}

static locus_status attend_forward(const run *r, const op *o)
{
    call c;
    show(r, o);
    for (int64_t s = 0; s < calls_of(r, o); s++) {
        if (!call_at(r, o, s, 1, &c)) continue;
        const locus_results results = results_of(r, &c, run_at(r, o->out));
        LOCUS_TRY(
            locus_forward(c.plan, &c.in, &results, r->attention, r->attention_bytes, r->error));
    }
    return LOCUS_OK;
}

/* ---- backward ---- */

/* q, k and v are columns of the same rows, which gradients must not be: they are made one behind the
 * other, then added where they belong. */
static locus_tensor begin_part(const locus_tensor *like, float **room)
{
    const int64_t count = locus_tensor_elements(like);
    float *at = *room;
    memset(at, 0, (size_t)count * sizeof(float));
    *room += count;
    return locus_view_bthd(at, 1, like->shape[2], like->shape[1], like->shape[3]);
}

static void add_rows(const run *r, part to, int64_t row, const locus_tensor *from, int64_t skip)
{
    const int64_t own = from->shape[1] * from->shape[3], width = r->p->values[to.of].width;
    const float *data = from->data;
    if (run_grad(r, to.of) == NULL) return;
    for (int64_t i = skip; i < from->shape[2]; i++)
        r->p->workers.kernels->add(run_grad(r, to.of) + (row + i - skip) * width + to.column,
                                   data + i * own, own);
}

static void set_table_gradients(const run *r, const call *c, locus_tensors *grad)
{
    attend_tables(r->p, c->o, r->grad, r->rows, grad);
    grad->rows = grad->frequencies = (locus_tensor){.rank = 0};
    for (int i = 0; i < c->o->as.attend->table_count; i++) {
        locus_tensor *t = locus_tensor_at(grad, c->o->as.attend->tables[i].tensor);
        if (t->data == NULL) *t = (locus_tensor){.rank = 0};
    }
}

/* The gradients of k and v of the memory go to the map that made them. */
static void memory_back(const run *r, const call *c, const locus_tensor *dk, const locus_tensor *dv)
{
    const int64_t A = c->a->heads * c->a->head_dim;
    if (c->before == NULL) return;
    memset(r->before, 0, (size_t)(c->memory * 3 * A) * sizeof(float));
    for (int64_t i = 0; i < c->memory; i++) {
        memcpy(r->before + i * 3 * A + A, (float *)dk->data + i * A, (size_t)A * sizeof(float));
        memcpy(r->before + i * 3 * A + 2 * A, (float *)dv->data + i * A, (size_t)A * sizeof(float));
    }
    map_rows_back(r, &r->p->ops[c->o->as.attend->memory_map], r->before, c->before, NULL,
                  c->memory);
}

static locus_status call_back(const run *r, call *c)
{
    const attend_rule *rule = c->o->as.attend;
    const int64_t pairs = c->a->heads * c->count * c->count;
    float *room = r->parts, *dpairs = r->pairs + pairs;
    locus_tensors grad = {.size = sizeof grad};
    set_table_gradients(r, c, &grad);
    grad.q = begin_part(&c->in.q, &room);
    grad.k = begin_part(&c->in.k, &room);
    grad.v = begin_part(&c->in.v, &room);
    if (c->types != NULL) {
        memset(dpairs, 0, (size_t)pairs * sizeof(float));
        grad.bias_dense = c->in.bias_dense;
        grad.bias_dense.data = dpairs;
    }
    const locus_results results = results_of(r, c, run_at(r, c->o->out));
    locus_results given = results_of(r, c, run_grad(r, c->o->out));
    given.lse = (locus_tensor){.rank = 0};
    LOCUS_TRY(locus_backward(c->plan, &c->in, &results, &given, &grad, LOCUS_ACCUMULATE,
                             r->attention, r->attention_bytes, r->error));
    add_rows(r, rule->q, c->first, &grad.q, 0);
    add_rows(r, rule->k, c->key, &grad.k, c->memory);
    add_rows(r, rule->v, c->key, &grad.v, c->memory);
    if (c->memory > 0) memory_back(r, c, &grad.k, &grad.v);
    if (c->types == NULL) return LOCUS_OK;
    const segment_rule segments = segments_of(r, c);
    segment_back(&segments, c->in.q.data, c->types, c->count, dpairs,
                 run_grad(r, rule->q.of) + c->first * segments.stride + rule->q.column,
                 run_grad(r, c->o->in[ATTEND_BIAS]), run_grad(r, c->o->in[ATTEND_SEGMENT]));
    return LOCUS_OK;
}

static locus_status attend_backward(const run *r, const op *o)
{
    call c;
    for (int64_t s = calls_of(r, o); s-- > 0;)
        if (call_at(r, o, s, 0, &c)) LOCUS_TRY(call_back(r, &c));
    return LOCUS_OK;
}

const op_kind op_attend = {.name = "attend",
                           .reads = READS_OUT | 7u | ((1u << OP_INPUTS) - (1u << ATTEND_TABLES)),
                           .forward = attend_forward,
                           .backward = attend_backward};

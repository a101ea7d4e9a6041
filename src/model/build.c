/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "model/ops/ops.h"
#include "model/program.h"

/* ---- lists ---- */

static locus_status no_memory(program *p)
{
    return locus_fail(p->error, LOCUS_ERR_MEMORY, "model: out of memory");
}

void program_fail(program *p, locus_status status)
{
    if (p->status == LOCUS_OK) p->status = status;
}

enum { FIRST_ITEMS = 64 }; /* of a list, which doubles */

/* Room for one more of `bytes` each in *items. 0: no memory. */
static int grow(program *p, void **items, size_t *room, size_t count, size_t bytes)
{
    if (count < *room) return 1;
    const size_t more = *room > 0 ? 2 * *room : FIRST_ITEMS;
    void *larger = locus_allocate(p->allocator, more, bytes);
    if (larger == NULL) return 0;
    if (count > 0) memcpy(larger, *items, count * bytes);
    locus_release(p->allocator, *items);
    *items = larger;
    *room = more;
    return 1;
}

static value new_value(program *p, extent rows, int64_t count, int64_t width)
{
    void *items = p->values;
    if (!grow(p, &items, &p->value_room, (size_t)p->value_count, sizeof *p->values)) {
        program_fail(p, no_memory(p));
        return 0; /* there is one: see program_begin */
    }
    p->values = items;
    p->values[p->value_count] = (value_info){.rows = rows,
                                             .count = count,
                                             .width = width,
                                             .parameter = NONE,
                                             .base = NONE,
                                             .part = NONE,
                                             .next = NONE,
                                             .first = NONE,
                                             .last = NONE,
                                             .buffer = NONE,
                                             .gradient = NONE};
    return p->value_count++;
}

static op *append(program *p, const op_kind *kind, const value *in, int count)
{
    void *items = p->ops;
    if (!grow(p, &items, &p->op_room, (size_t)p->op_count, sizeof *p->ops)) {
        program_fail(p, no_memory(p));
        return &p->ops[0];
    }
    p->ops = items;
    op *o = &p->ops[p->op_count++];
    *o = (op){.kind = kind, .out = NONE, .inside = NONE, .serves = p->serves};
    for (int i = 0; i < OP_INPUTS; i++) o->in[i] = i < count ? in[i] : NONE;
    return o;
}

static value finish(program *p, op *o, extent rows, int64_t count, int64_t width)
{
    int constant = rows == FIXED;
    for (int i = 0; i < OP_INPUTS; i++)
        if (o->in[i] != NONE) constant &= p->values[o->in[i]].constant;
    const value out = new_value(p, rows, count, width);
    o->out = out;
    p->values[out].constant = constant;
    p->values[out].first = (int)(o - p->ops);
    return out;
}

locus_status program_begin(program *p, const locus_allocator *allocator, locus_error *error)
{
    p->allocator = allocator;
    p->arena.allocator = allocator;
    p->error = error;
    p->sinusoid = p->features = NONE;
    p->serves = SERVES_ALL;
    p->values = locus_allocate(allocator, FIRST_ITEMS, sizeof *p->values);
    p->ops = locus_allocate(allocator, FIRST_ITEMS, sizeof *p->ops);
    p->value_room = p->op_room = FIRST_ITEMS;
    return p->values != NULL && p->ops != NULL ? LOCUS_OK : no_memory(p);
}

void program_free(program *p)
{
    program_unload(p);
    void *const lists[] = {p->values, p->ops, p->attentions, p->tensors, p->buffers, p->gradients};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) locus_release(p->allocator, lists[i]);
    locus_arena_clear(&p->arena);
    *p = (program){.allocator = p->allocator};
}

/* ---- values without operators ---- */

static value add_tensor(program *p, const model_place *place, int64_t rows, int64_t width,
                        int fixed)
{
    void *items = p->tensors;
    if (!grow(p, &items, &p->tensor_room, (size_t)p->tensor_count, sizeof *p->tensors)) {
        program_fail(p, no_memory(p));
        return 0;
    }
    p->tensors = items;
    const value v = new_value(p, FIXED, rows, width);
    p->values[v].constant = 1;
    p->values[v].parameter = p->tensor_count;
    store_tensor *t = &p->tensors[p->tensor_count++];
    const locus_file_tensor *stored = place->tensor;
    *t = (store_tensor){
        .rank = stored->rank, .place = *place, .of = v, .fixed = fixed, .count = rows * width};
    t->name = model_checkpoint_name(p->checkpoint, place, &p->arena);
    if (t->name == NULL) program_fail(p, no_memory(p));
    for (uint32_t i = 0; i < stored->rank && i < LOCUS_MAX_RANK; i++)
        t->shape[i] = (int64_t)stored->shape[i];
    return v;
}

value build_tensor(program *p, const model_place *place, int64_t rows, int64_t width, int fixed)
{
    int32_t *number = &p->tensor_of[place->file][place->index];
    if (*number > 0) return p->tensors[*number - 1].of;
    const value v = add_tensor(p, place, rows, width, fixed);
    *number = (int32_t)p->tensor_count;
    return v;
}

/* In place of a tensor that is not there: building goes on, and fails. */
value build_absent(program *p, int64_t rows, int64_t width)
{
    const value v = new_value(p, FIXED, rows, width);
    p->values[v].constant = 1;
    return v;
}

value build_given(program *p, extent rows, int64_t width)
{
    const value v = new_value(p, rows, 0, width);
    p->values[v].given = 1;
    return v;
}

value build_rows(program *p, value v, int64_t first, int64_t count)
{
    const value rows = new_value(p, FIXED, count, p->values[v].width);
    p->values[rows].constant = p->values[v].constant;
    p->values[rows].base = v;
    p->values[rows].first_row = first;
    return rows;
}

/* 1: all are tensors of which none is a part of something, or all are made of tensors. */
static int can_lie_together(const program *p, const value *parts, int count)
{
    const int tensors = p->values[parts[0]].parameter != NONE;
    for (int i = 0; i < count; i++) {
        const value_info *v = &p->values[parts[i]];
        if ((v->parameter != NONE) != tensors || v->base != NONE || !v->constant) return 0;
        for (int k = 0; k < i; k++)
            if (parts[k] == parts[i]) return 0;
    }
    return 1;
}

/* 1: they lie so already, and are all of it. */
static int lie_together(const program *p, const value *parts, int count)
{
    const value all = p->values[parts[0]].base;
    int64_t row = 0;
    for (int i = 0; i < count; i++) {
        const value_info *v = &p->values[parts[i]];
        if (all == NONE || v->base != all || v->first_row != row) return 0;
        row += v->count;
    }
    return row == p->values[all].count;
}

static value copy_together(program *p, const value *parts, int count, int64_t rows, int64_t width)
{
    move_rule rules[OP_INPUTS] = {{.divisor = 1.0f}};
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        const int64_t floats = p->values[parts[i]].count * width;
        rules[i] = (move_rule){.extent = {1, 1, floats},
                               .from = {0, 0, 1},
                               .to = {0, 0, 1},
                               .to_first = at,
                               .divisor = 1.0f};
        at += floats;
    }
    return build_move(p, parts, rules, count, rows, width);
}

value build_join(program *p, const value *parts, int count)
{
    const int64_t width = p->values[parts[0]].width;
    int64_t rows = 0;
    if (count == 1) return parts[0];
    for (int i = 0; i < count; i++) rows += p->values[parts[i]].count;
    if (lie_together(p, parts, count)) return p->values[parts[0]].base;
    if (!can_lie_together(p, parts, count)) return copy_together(p, parts, count, rows, width);
    const value all = new_value(p, FIXED, rows, width);
    p->values[all].constant = 1;
    for (int64_t i = 0, row = 0; i < count; row += p->values[parts[i++]].count) {
        p->values[parts[i]].base = all;
        p->values[parts[i]].first_row = row;
        p->values[parts[i]].next = i + 1 < count ? parts[i + 1] : NONE;
    }
    p->values[all].part = parts[0];
    return all;
}

value build_gift(program *p, value v, gift_kind kind, int stack, int64_t index)
{
    p->values[v].gives = kind;
    p->values[v].stack = stack;
    p->values[v].index = index;
    return v;
}

/* ---- operators ---- */

value build_map(program *p, value x, value weight, value bias, locus_activation activation,
                value gate, value residual)
{
    const value in[] = {x, weight, bias, gate, residual};
    const value_info from = p->values[x];
    const int64_t outputs = p->values[weight].count;
    value z = NONE;
    if (activation != LOCUS_IDENTITY || gate != NONE)
        z = new_value(p, from.rows, from.count, outputs);
    op *o = append(p, &op_map, in, 5);
    o->as.activation = activation;
    o->inside = z;
    return finish(p, o, from.rows, from.count, outputs);
}

value build_norm(program *p, value x, value gain, value shift, int centred, double epsilon)
{
    const value in[] = {x, gain, shift};
    const value_info from = p->values[x];
    op *o = append(p, &op_norm, in, 3);
    o->as.norm.centred = centred;
    o->as.norm.epsilon = (float)epsilon;
    return finish(p, o, from.rows, from.count, from.width);
}

value build_embed(program *p, extent rows, int stack, const value *tables, const picker *by,
                  int count, double factor, int input)
{
    op *o = append(p, &op_embed, tables, count);
    memcpy(o->as.embed.by, by, (size_t)count * sizeof *by);
    o->as.embed.factor = factor > 0.0 ? (float)factor : 1.0f;
    o->as.embed.stack = stack;
    o->as.embed.input = input;
    return finish(p, o, rows, 0, p->values[tables[0]].width);
}

value build_pick(program *p, extent rows, value x, picker by)
{
    op *o = append(p, &op_pick, &x, 1);
    o->as.embed.by[0] = by;
    return finish(p, o, rows, 0, p->values[x].width);
}

int build_attention(program *p, const attention *how)
{
    void *items = p->attentions;
    if (!grow(p, &items, &p->attention_room, (size_t)p->attention_count, sizeof *p->attentions)) {
        program_fail(p, no_memory(p));
        return 0;
    }
    p->attentions = items;
    p->attentions[p->attention_count] = *how;
    p->attentions[p->attention_count].op = NONE;
    return p->attention_count++;
}

value build_attend(program *p, const value *in, const attend_rule *rule)
{
    if (p->attention_count == 0) return in[0]; /* there was no memory for one */
    attend_rule *own = locus_arena_take(&p->arena, sizeof *own, 16);
    if (own == NULL) {
        program_fail(p, no_memory(p));
        return in[0];
    }
    *own = *rule;
    const attention a = p->attentions[rule->attention];
    const extent rows = p->values[in[0]].rows;
    const value lse = new_value(p, rows, 0, a.heads);
    op *o = append(p, &op_attend, in, ATTEND_TABLES + rule->table_count);
    o->as.attend = own;
    if (a.op == NONE) p->attentions[rule->attention].op = (int)(o - p->ops);
    o->inside = lse;
    return finish(p, o, rows, 0, a.heads * a.head_dim);
}

value build_move(program *p, const value *from, const move_rule *rules, int count, int64_t rows,
                 int64_t width)
{
    move_rule *own = locus_arena_take(&p->arena, (size_t)count * sizeof *own, 16);
    if (own == NULL) {
        program_fail(p, no_memory(p));
        return from[0];
    }
    memcpy(own, rules, (size_t)count * sizeof *own);
    op *o = append(p, &op_move, from, count);
    o->as.moves = own;
    o->late = 1;
    return finish(p, o, FIXED, rows, width);
}

value build_transposed(program *p, value matrix, float divisor)
{
    const value_info from = p->values[matrix];
    const move_rule rule = {.extent = {1, from.count, from.width},
                            .from = {0, from.width, 1},
                            .to = {0, 1, from.count},
                            .divisor = divisor};
    return build_move(p, &matrix, &rule, 1, from.width, from.count);
}

value build_divided(program *p, value v, float divisor)
{
    const value_info from = p->values[v];
    const move_rule rule = {.extent = {1, 1, from.count * from.width},
                            .from = {0, 0, 1},
                            .to = {0, 0, 1},
                            .divisor = divisor};
    return build_move(p, &v, &rule, 1, from.count, from.width);
}

/* Weights [outputs, inputs, taps] of the checkpoint, with the last two axes exchanged. */
static value exchange(program *p, value weight, int64_t inputs, int64_t taps)
{
    const int64_t outputs = p->values[weight].count * p->values[weight].width / (inputs * taps);
    const move_rule rule = {.extent = {outputs, inputs, taps},
                            .from = {inputs * taps, taps, 1},
                            .to = {inputs * taps, 1, inputs},
                            .divisor = 1.0f};
    return build_move(p, &weight, &rule, 1, outputs, inputs * taps);
}

value build_convolve(program *p, value x, value weight, value bias, value residual, int64_t taps,
                     int64_t groups, locus_activation activation)
{
    if (p->status != LOCUS_OK) return x; /* a value without rows divides nothing */
    const value_info from = p->values[x];
    const int64_t outputs = p->values[weight].count;
    const value in[] = {x, exchange(p, weight, from.width / groups, taps), bias, residual};
    value z = NONE;
    if (activation != LOCUS_IDENTITY) z = new_value(p, from.rows, 0, outputs);
    op *o = append(p, &op_convolve, in, 4);
    p->convolves = 1;
    o->inside = z;
    o->as.convolve.taps = taps;
    o->as.convolve.before = (taps - 1) / 2;
    o->as.convolve.groups = groups;
    o->as.convolve.activation = activation;
    return finish(p, o, from.rows, 0, outputs);
}

value build_depthwise(program *p, value x, value taps, int64_t before, int with_shift)
{
    const value in[] = {x, taps};
    const value_info from = p->values[x];
    const int64_t count = p->values[taps].count - with_shift;
    op *o = append(p, &op_depthwise, in, 2);
    o->as.convolve.taps = count;
    o->as.convolve.before = before;
    o->as.convolve.groups = with_shift;
    return finish(p, o, from.rows, 0, from.width);
}

value build_fold(program *p, value taps, value gain, value shift, value mean, value variance,
                 double epsilon)
{
    const value in[] = {taps, gain, shift, mean, variance};
    const int64_t width = p->values[taps].count, count = p->values[taps].width;
    op *o = append(p, &op_fold, in, 5);
    o->late = 1;
    o->as.fold.taps = count;
    o->as.fold.epsilon = epsilon;
    return finish(p, o, FIXED, count + 1, width);
}

value build_heads(program *p, value qkv, value q_gain, value k_gain, const attention *how,
                  double epsilon)
{
    const value in[] = {qkv, q_gain, k_gain};
    const value_info from = p->values[qkv];
    op *o = append(p, &op_heads, in, 3);
    o->as.heads.heads = how->heads;
    o->as.heads.kv_heads = how->kv_heads;
    o->as.heads.head_dim = how->head_dim;
    o->as.heads.epsilon = (float)epsilon;
    return finish(p, o, from.rows, 0, from.width);
}

value build_add(program *p, value a, value b)
{
    const value in[] = {a, b};
    const value_info from = p->values[a];
    return finish(p, append(p, &op_add, in, 2), from.rows, from.count, from.width);
}

value build_raise(program *p, value v)
{
    const value_info from = p->values[v];
    op *o = append(p, &op_raise, &v, 1);
    o->late = 1;
    return finish(p, o, from.rows, from.count, from.width);
}

value build_cap(program *p, value x, double cap)
{
    const value_info from = p->values[x];
    op *o = append(p, &op_cap, &x, 1);
    o->as.cap = (float)cap;
    return finish(p, o, from.rows, from.count, from.width);
}

value build_activate(program *p, value x, locus_activation activation)
{
    const value_info from = p->values[x];
    op *o = append(p, &op_activate, &x, 1);
    o->as.activation = activation;
    return finish(p, o, from.rows, from.count, from.width);
}

value build_turns(program *p, extent rows, int how)
{
    if (p->attention_count == 0) return 0; /* there was no memory for one */
    op *o = append(p, &op_turns, NULL, 0);
    o->as.turns = how;
    return finish(p, o, rows, 0, p->attentions[how].turned);
}

value build_turn(program *p, value x, value turns, int how)
{
    const value in[] = {x, turns};
    const value_info from = p->values[x];
    op *o = append(p, &op_turn, in, 2);
    o->as.turns = how;
    return finish(p, o, from.rows, 0, from.width);
}

value build_pool(program *p, value x, const locus_pooling *poolings, int count)
{
    int most = 0; /* max reads its input on the way back */
    for (int i = 0; i < count; i++) most |= poolings[i] == LOCUS_POOL_MAX;
    op *o = append(p, most ? &op_pool_max : &op_pool, &x, 1);
    o->as.pool.count = count;
    for (int i = 0; i < count; i++) o->as.pool.poolings[i] = poolings[i];
    return finish(p, o, SEQUENCES, 0, count * p->values[x].width);
}

value build_unit(program *p, value x)
{
    op *o = append(p, &op_unit, &x, 1);
    return finish(p, o, p->values[x].rows, 0, p->values[x].width);
}

/* Rows of a formula stand in no file, so that nothing else bounds them: 64 MB. */
enum { MOST_SINUSOIDS = 1 << 24 };

value build_sinusoid(program *p, int64_t rows, int64_t width, int table, int64_t blank)
{
    if (rows > MOST_SINUSOIDS / width) {
        program_fail(p, locus_fail(p->error, LOCUS_ERR_FORMAT,
                                   "config.json: found sinusoids of %lld positions, expected at "
                                   "most %lld of width %lld",
                                   (long long)rows, (long long)(MOST_SINUSOIDS / width),
                                   (long long)width));
        return 0; /* there is one: see program_begin */
    }
    op *o = append(p, &op_sinusoid, NULL, 0);
    o->late = 1;
    o->as.sinusoid.table = table;
    o->as.sinusoid.blank = blank;
    return finish(p, o, FIXED, rows, width);
}

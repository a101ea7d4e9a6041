/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "model/blocks.h"

/* Attention of a layer to its own tokens: one map for q, k and v, and the tables of the scheme. */

/* ---- q, k and v ---- */

/* Rows of [H][3][D] to [3][H][D]; `width` floats to each D. */
static value sort_heads(builder *b, value from, int64_t width)
{
    const int64_t H = b->d->heads, block = b->d->head_dim * width;
    const move_rule rule = {.extent = {H, 3, block},
                            .from = {3 * block, block, 1},
                            .to = {block, H * block, 1},
                            .divisor = 1.0f};
    return build_move(b->p, &from, &rule, 1, 3 * H * b->d->head_dim, width);
}

static move_rule copy_to(int64_t first, int64_t count)
{
    return (move_rule){.extent = {1, 1, count},
                       .from = {0, 0, 1},
                       .to = {0, 0, 1},
                       .to_first = first,
                       .divisor = 1.0f};
}

/* Biases of q and v; k has none. */
static value two_biases(builder *b, int64_t l)
{
    const int64_t A = b->d->heads * b->d->head_dim;
    const value q = slot_tensor(b, SLOT_Q_BIAS, l), v = slot_tensor(b, SLOT_V_BIAS, l);
    const value from[] = {q, v};
    const move_rule rules[] = {copy_to(0, A), copy_to(2 * A, A)};
    return build_move(b->p, from, rules, 2, 3 * A, 1);
}

static value fused(builder *b, value x, int64_t l)
{
    const model_description *d = b->d;
    value weight = slot_matrix(b, SLOT_FUSED_QKV, l, 1.0f), bias = NONE;
    if (d->fused_heads) weight = sort_heads(b, weight, d->width);
    if (d->biases && !d->attention_unbiased) {
        bias = d->fused_biases ? slot_tensor(b, SLOT_FUSED_QKV_BIAS, l) : two_biases(b, l);
        if (d->fused_biases && d->fused_heads) bias = sort_heads(b, bias, 1);
    }
    return build_map(b->p, x, weight, bias, LOCUS_IDENTITY, NONE, NONE);
}

/* Three tensors [E, A] as one [3 A, E]. */
static value join_turned(builder *b, const value parts[3])
{
    const int64_t A = b->d->heads * b->d->head_dim, E = b->d->width;
    move_rule rules[3];
    for (int i = 0; i < 3; i++)
        rules[i] = (move_rule){.extent = {1, E, A},
                               .from = {0, A, 1},
                               .to = {0, 1, E},
                               .to_first = i * A * E,
                               .divisor = 1.0f};
    return build_move(b->p, parts, rules, 3, 3 * A, E);
}

static value joined(builder *b, value x, int64_t l)
{
    static const model_slot slots[3] = {SLOT_Q, SLOT_K, SLOT_V};
    value weights[3], biases[3], bias = NONE;
    for (int i = 0; i < 3; i++) weights[i] = slot_tensor(b, slots[i], l);
    const value weight =
        b->d->head_tensors ? join_turned(b, weights) : build_join(b->p, weights, 3);
    biases[0] = slot_bias(b, SLOT_Q, l);
    if (biases[0] != NONE) {
        for (int i = 1; i < 3; i++) biases[i] = slot_tensor(b, (model_slot)(slots[i] + 1), l);
        bias = build_join(b->p, biases, 3);
    }
    return build_map(b->p, x, weight, bias, LOCUS_IDENTITY, NONE, NONE);
}

static value map_qkv(builder *b, value x, int64_t l)
{
    return b->d->fused_heads || b->d->fused_parts ? fused(b, x, l) : joined(b, x, l);
}

/* ---- tables ---- */

typedef struct call {
    value in[OP_INPUTS];
    attend_rule rule;
} call;

static void add_table(builder *b, call *c, const char *name, value v, const attend_table *like)
{
    attend_table *t = &c->rule.tables[c->rule.table_count];
    size_t i = 0;
    if (c->rule.table_count == OP_INPUTS - ATTEND_TABLES) {
        program_fail(b->p, LOCUS_ERR_UNSUPPORTED);
        return;
    }
    while (strcmp(locus_tensor_name(i), name) != 0) i++;
    c->in[ATTEND_TABLES + c->rule.table_count++] = v;
    *t = *like;
    t->tensor = i;
}

/* A tensor [rows, columns] as it is stored. */
static void add_plain(builder *b, call *c, const char *name, value v)
{
    const value_info *i = &b->p->values[v];
    const attend_table like = {.rank = 2, .shape = {i->count, i->width}};
    add_table(b, c, name, v, &like);
}

static void add_by_heads(builder *b, call *c, const char *name, value v)
{
    static const attend_table like = {.by_heads = 1};
    add_table(b, c, name, v, &like);
}

/* Tensors that the scheme takes as they are. */
static void add_own(builder *b, call *c, int64_t l)
{
    for (int64_t i = 0; i < b->d->table_count; i++) {
        const model_slot slot = (model_slot)(SLOT_TABLE_0 + i);
        uint64_t shape[4];
        attend_table like = {.rank = (uint32_t)model_slot_shape(b->d, slot, shape)};
        for (uint32_t axis = 0; axis < like.rank; axis++) like.shape[axis] = (int64_t)shape[axis];
        add_table(b, c, b->d->tables[i].tensor, slot_tensor(b, slot, l), &like);
    }
}

/* TUPE: both projections of the positions, made once. */
static void add_pairs(builder *b, call *c)
{
    if (b->pos_q == NONE) {
        b->pos_q = slot_map(b, b->relative, SLOT_RELATIVE_Q, 0, LOCUS_IDENTITY, NONE, NONE);
        b->pos_k = slot_map(b, b->relative, SLOT_RELATIVE_K, 0, LOCUS_IDENTITY, NONE, NONE);
    }
    add_by_heads(b, c, "pos_q", b->pos_q);
    add_by_heads(b, c, "pos_k", b->pos_k);
}

/* A table of the distances within the window, and a row of zeros for all others. */
static value with_zeros(builder *b, value table)
{
    const value_info from = b->p->values[table];
    const move_rule rule = copy_to(0, from.count * from.width);
    return build_move(b->p, &table, &rule, 1, from.count + 1, from.width);
}

static void add_projected(builder *b, call *c, int64_t l)
{
    const model_description *d = b->d;
    const model_slot k = d->relative_shared ? SLOT_K : SLOT_RELATIVE_K;
    const model_slot q = d->relative_shared ? SLOT_Q : SLOT_RELATIVE_Q;
    if (d->to_position)
        add_by_heads(b, c, "rel_k", slot_map(b, b->relative, k, l, LOCUS_IDENTITY, NONE, NONE));
    if (d->from_position)
        add_by_heads(b, c, "rel_q", slot_map(b, b->relative, q, l, LOCUS_IDENTITY, NONE, NONE));
}

static void add_distances(builder *b, call *c, int64_t l)
{
    add_plain(b, c, "u", slot_tensor(b, SLOT_CONTENT_BIAS, l));
    add_plain(b, c, "w", slot_tensor(b, SLOT_POSITION_BIAS, l));
    add_by_heads(b, c, "rel_k",
                 slot_map(b, b->p->sinusoid, SLOT_RELATIVE_K, l, LOCUS_IDENTITY, NONE, NONE));
}

static void add_tables(builder *b, call *c, int64_t l)
{
    const model_description *d = b->d;
    add_own(b, c, l);
    if (d->position_pairs) {
        add_pairs(b, c);
        return;
    }
    if (slot_wanted(b, SLOT_LAYER_BIAS))
        add_plain(b, c, "bias", slot_tensor(b, SLOT_LAYER_BIAS, l));
    if (b->bias != NONE) add_plain(b, c, "bias", b->bias);
    if (d->distances) add_distances(b, c, l);
    if (d->window > 0) {
        add_plain(b, c, "rel_k", with_zeros(b, slot_tensor(b, SLOT_DISTANCE, l)));
        add_plain(b, c, "rel_v", with_zeros(b, slot_tensor(b, SLOT_DISTANCE_VALUE, l)));
    } else if (slot_wanted(b, SLOT_DISTANCE))
        add_plain(b, c, "rel_k", slot_tensor(b, SLOT_DISTANCE, l));
    add_projected(b, c, l);
}

/* ---- the call ---- */

value attend_self(builder *b, value x, int64_t l)
{
    const model_description *d = b->d;
    const int64_t A = d->heads * d->head_dim;
    const value turned = d->turned_input ? build_turn(b->p, x, b->turns, b->self) : NONE;
    const value v = map_qkv(b, x, l), qk = turned != NONE ? map_qkv(b, turned, l) : v;
    call c = {.in = {qk, qk, v, NONE, NONE, d->turned_input ? NONE : b->turns},
              .rule = {.q = {qk, 0},
                       .k = {qk, A},
                       .v = {v, A + d->kv_heads * d->head_dim},
                       .attention = b->self,
                       .layer = l,
                       .memory_map = b->p->values[v].first}};
    add_tables(b, &c, l);
    if (d->segments) {
        c.in[ATTEND_BIAS] = slot_tensor(b, SLOT_SEGMENT_BIAS, l);
        c.in[ATTEND_SEGMENT] = slot_tensor(b, SLOT_SEGMENT, l);
    }
    return build_attend(b->p, c.in, &c.rule);
}

value attend_made(builder *b, value qkv, int how, value turns, int64_t l)
{
    const int64_t A = b->d->heads * b->d->head_dim;
    const value in[ATTEND_TABLES] = {qkv, qkv, qkv, NONE, NONE, turns};
    const attend_rule rule = {.q = {qkv, 0},
                              .k = {qkv, A},
                              .v = {qkv, A + b->d->kv_heads * b->d->head_dim},
                              .attention = how,
                              .layer = l,
                              .memory_map = b->p->values[qkv].first};
    return build_attend(b->p, in, &rule);
}

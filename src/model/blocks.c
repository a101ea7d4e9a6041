/* SPDX-License-Identifier: Apache-2.0 */
#include "model/blocks.h"

/* What layers share is made before the first of them. */
void begin_tables(builder *b)
{
    const model_description *d = b->d;
    attention a;
    b->relative = b->bias = b->turns = b->pos_q = b->pos_k = NONE;
    program_fail(b->p, model_attention(b->m, b->stack, 0, &a, b->error));
    b->self = build_attention(b->p, &a);
    if (d->cross) {
        program_fail(b->p, model_attention(b->m, b->stack, 1, &a, b->error));
        b->cross = build_attention(b->p, &a);
    }
    if (d->rope.base > 0.0)
        b->turns = build_turns(b->p, d->turned_input ? b->tokens : TURNED, b->self);
    if (d->distances) b->p->sinusoid = build_given(b->p, DISTANCES, d->width);
    if (slot_wanted(b, SLOT_BIAS)) b->bias = slot_tensor(b, SLOT_BIAS, 0);
    if (slot_wanted(b, SLOT_RELATIVE)) b->relative = slot_tensor(b, SLOT_RELATIVE, 0);
    if (d->relative_norm)
        b->relative = slot_norm(b, b->relative, SLOT_RELATIVE_NORM_GAIN, 0, d->norm_epsilon);
}

value rows_wanted(builder *b, value v, int64_t l)
{
    return b->few && l == b->d->layers - 1 ? build_pick(b->p, LAST, v, BY_LAST) : v;
}

/* residual + map_o(y), y what the last attention of a layer gives: for rows that are wanted. */
static value behind(builder *b, value y, model_slot slot, int64_t l, value residual)
{
    y = rows_wanted(b, y, l);
    return slot_map(b, y, slot, l, LOCUS_IDENTITY, NONE, rows_wanted(b, residual, l));
}

static value self_attention(builder *b, value x, int64_t l, value residual)
{
    const value y = attend_self(b, x, l);
    if (!b->d->cross) return behind(b, y, SLOT_O, l, residual);
    return slot_map(b, y, SLOT_O, l, LOCUS_IDENTITY, NONE, residual);
}

/* k and v of the encoder's states, which sessions make once for all steps. */
static value map_source(builder *b, int64_t l)
{
    const value k = slot_tensor(b, SLOT_CROSS_K, l), v = slot_tensor(b, SLOT_CROSS_V, l);
    const value weights[] = {k, v}, weight = build_join(b->p, weights, 2);
    value bias = NONE;
    const value k_bias = slot_bias(b, SLOT_CROSS_K, l);
    if (k_bias != NONE) {
        const value biases[] = {k_bias, slot_tensor(b, SLOT_CROSS_V_BIAS, l)};
        bias = build_join(b->p, biases, 2);
    }
    const value kv = build_map(b->p, b->states, weight, bias, LOCUS_IDENTITY, NONE, NONE);
    b->p->ops[b->p->op_count - 1].once = 1;
    return kv;
}

/* residual + map_o(attention(x, the encoder's states)) */
static value cross_attention(builder *b, value x, int64_t l, value residual)
{
    const value kv = map_source(b, l);
    const value q = slot_map(b, x, SLOT_CROSS_Q, l, LOCUS_IDENTITY, NONE, NONE);
    const value in[ATTEND_TABLES] = {q, kv, kv, NONE, NONE, NONE};
    const attend_rule rule = {.q = {q, 0},
                              .k = {kv, 0},
                              .v = {kv, b->d->heads * b->d->head_dim},
                              .attention = b->cross,
                              .layer = l};
    return behind(b, build_attend(b->p, in, &rule), SLOT_CROSS_O, l, residual);
}

/* residual + map_out(activation(map_in(x)) [* map_gate(x)]) */
static value feed_forward(builder *b, value x, int64_t l, value residual)
{
    const model_description *d = b->d;
    if (d->forward_taps > 1) {
        const value in = slot_tensor(b, SLOT_IN, l), out = slot_tensor(b, SLOT_OUT, l);
        const value inner = build_convolve(b->p, x, in, slot_bias(b, SLOT_IN, l), NONE,
                                           d->forward_taps, 1, d->activation);
        return build_convolve(b->p, inner, out, slot_bias(b, SLOT_OUT, l), residual,
                              d->forward_taps, 1, LOCUS_IDENTITY);
    }
    const value gate = d->gated ? build_map(b->p, x, slot_tensor(b, SLOT_GATE, l), NONE,
                                            LOCUS_IDENTITY, NONE, NONE)
                                : NONE;
    const value inner = slot_map(b, x, SLOT_IN, l, d->activation, gate, NONE);
    return slot_map(b, inner, SLOT_OUT, l, LOCUS_IDENTITY, NONE, residual);
}

/* h = norm(h + sub(h)) */
value block_norm_after(builder *b, value h, int64_t l)
{
    const double epsilon = b->d->norm_epsilon;
    h = slot_norm(b, self_attention(b, h, l, h), SLOT_ATTENTION_NORM_GAIN, l, epsilon);
    if (b->d->cross)
        h = slot_norm(b, cross_attention(b, h, l, h), SLOT_CROSS_NORM_GAIN, l, epsilon);
    return slot_norm(b, feed_forward(b, h, l, h), SLOT_FORWARD_NORM_GAIN, l, epsilon);
}

/* h = h + sub(norm(h)) */
value block_norm_before(builder *b, value h, int64_t l)
{
    const double epsilon = b->d->norm_epsilon;
    h = self_attention(b, slot_norm(b, h, SLOT_ATTENTION_NORM_GAIN, l, epsilon), l, h);
    if (b->d->cross)
        h = cross_attention(b, slot_norm(b, h, SLOT_CROSS_NORM_GAIN, l, epsilon), l, h);
    return feed_forward(b, slot_norm(b, h, SLOT_FORWARD_NORM_GAIN, l, epsilon), l, h);
}

/* ---- conformer ---- */

/* residual + half of map_out(activation(map_in(x))) */
static value half(builder *b, value x, model_slot in, model_slot out, int64_t l, value residual)
{
    const value inner = slot_map(b, x, in, l, b->d->activation, NONE, NONE);
    const value weight = slot_matrix(b, out, l, 2.0f), bias = slot_bias(b, out, l);
    return build_map(b->p, inner, weight, bias != NONE ? build_divided(b->p, bias, 2.0f) : NONE,
                     LOCUS_IDENTITY, NONE, residual);
}

static value depthwise(builder *b, value x, int64_t l)
{
    const model_description *d = b->d;
    const value taps = slot_tensor(b, SLOT_DEPTH, l);
    if (!d->depth_batch_norm) {
        const value y =
            build_depthwise(b->p, x, build_transposed(b->p, taps, 1.0f), d->depth_before, 0);
        return slot_norm(b, y, SLOT_DEPTH_NORM_GAIN, l, d->norm_epsilon);
    }
    const value gain = slot_tensor(b, SLOT_DEPTH_NORM_GAIN, l);
    const value shift = slot_tensor(b, SLOT_DEPTH_NORM_SHIFT, l);
    const value mean = slot_fixed(b, SLOT_DEPTH_MEAN, l);
    const value variance = slot_fixed(b, SLOT_DEPTH_VARIANCE, l);
    const value all = build_fold(b->p, taps, gain, shift, mean, variance, d->norm_epsilon);
    return build_depthwise(b->p, x, all, d->depth_before, 1);
}

/* h + map(activation(norm(depthwise(value(y) sigmoid(gate(y)))))), y = norm(h) */
static value gated_convolution(builder *b, value h, int64_t l)
{
    const int64_t E = b->d->width;
    const value y = slot_norm(b, h, SLOT_GLU_NORM_GAIN, l, b->d->norm_epsilon);
    const value both = slot_tensor(b, SLOT_GLU, l);
    const value plain =
        build_map(b->p, y, build_rows(b->p, both, 0, E), NONE, LOCUS_IDENTITY, NONE, NONE);
    const value gated =
        build_map(b->p, y, build_rows(b->p, both, E, E), NONE, LOCUS_SIGMOID, plain, NONE);
    const value z = build_activate(b->p, depthwise(b, gated, l), b->d->activation);
    return slot_map(b, z, SLOT_DEPTH_OUT, l, LOCUS_IDENTITY, NONE, h);
}

value block_conformer(builder *b, value h, int64_t l)
{
    const double epsilon = b->d->norm_epsilon;
    h = half(b, slot_norm(b, h, SLOT_FIRST_NORM_GAIN, l, epsilon), SLOT_FIRST_IN, SLOT_FIRST_OUT, l,
             h);
    h = self_attention(b, slot_norm(b, h, SLOT_ATTENTION_NORM_GAIN, l, epsilon), l, h);
    h = gated_convolution(b, h, l);
    h = half(b, slot_norm(b, h, SLOT_FORWARD_NORM_GAIN, l, epsilon), SLOT_IN, SLOT_OUT, l, h);
    return slot_norm(b, h, SLOT_LAST_NORM_GAIN, l, epsilon);
}

/* norm(h + activation(convolution of the embeddings)) */
value block_beside(builder *b, value h, value first)
{
    const model_description *d = b->d;
    const value weight = slot_tensor(b, SLOT_CONVOLUTION, 0);
    const value bias = slot_tensor(b, SLOT_CONVOLUTION_BIAS, 0);
    h = build_convolve(b->p, first, weight, bias, h, d->taps, d->groups, d->convolution_activation);
    return slot_norm(b, h, SLOT_CONVOLUTION_NORM_GAIN, 0, d->norm_epsilon);
}

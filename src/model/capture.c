/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "model/ops/ops.h"
#include "model/run.h"

/* `heads` heads of every row, from column `first` on. */
static locus_tensor columns_of(const float *qkv, int64_t first, int64_t tokens, int64_t heads,
                               int64_t head_dim, int64_t width)
{
    locus_tensor view = locus_view_bthd(qkv != NULL ? (float *)(uintptr_t)(qkv + first) : NULL, 1,
                                        tokens, heads, head_dim);
    view.stride[0] = tokens * width;
    view.stride[2] = width;
    return view;
}

/* ---- tables that depend on the tokens ---- */

/* The layers that are meant; NULL: there are none. */
static const model_description *layers_of(const locus_model *m, uint32_t stack)
{
    return stack == LOCUS_MODEL_FIRST ? &m->stacks[0] : m->stack_count > 1 ? &m->stacks[1] : NULL;
}

/* The operator that attends. */
static const op *attend_of(const locus_model *m, uint32_t stack, int64_t layer)
{
    const program *p = &m->program;
    const int first = stack == LOCUS_MODEL_FIRST ? 0 : 1;
    for (int i = p->first_op[first]; i < p->first_op[first + 1]; i++) {
        const op *o = &p->ops[i];
        if (o->kind == &op_attend && o->as.attend->layer == layer &&
            p->attentions[o->as.attend->attention].cross == (stack == LOCUS_MODEL_CROSS))
            return o;
    }
    return NULL;
}

/* Distances of `tokens` tokens: as many before as behind, or none behind. A table without tokens has
 * the row of distance 0. */
static int64_t distance_floats(const model_description *d, int64_t tokens)
{
    if (!d->distances || d->memory > 0 || !model_is_length(tokens)) return 0;
    const int64_t most = tokens > 0 ? tokens : 1;
    return (d->causal ? most : 2 * most - 1) * d->heads * d->head_dim;
}

/* 1: scores depend on types, and the tokens are not all of one. */
static int has_types(const model_description *d, const locus_model_attended *a)
{
    return d->segments && segments_differ(a->types, a->queries);
}

/* The map that makes rel_k of sinusoids. */
static const op *projection_of(const program *p, const op *o)
{
    for (int i = 0; i < o->as.attend->table_count; i++) {
        const value_info *table = &p->values[o->in[ATTEND_TABLES + i]];
        if (table->rows == DISTANCES) return &p->ops[table->first];
    }
    return NULL;
}

/* The table of a layer for `tokens` tokens, as a pass makes it. */
static locus_status put_distances(const locus_model *m, const op *o, int64_t tokens, float *room,
                                  locus_config *config, locus_error *error)
{
    const program *p = &m->program;
    const attention *a = &p->attentions[o->as.attend->attention];
    const int64_t width = p->values[p->sinusoid].width;
    int64_t count;
    model_distances(a, tokens, &config->options.delta_min, &count);
    float *rows = locus_allocate(m->allocator, (size_t)count, (size_t)width * sizeof *rows);
    void *linear = locus_allocate(m->allocator, (size_t)locus_linear_workspace(&p->linear), 1);
    locus_status status = rows != NULL && linear != NULL
                              ? model_sinusoids(m, a, config->options.delta_min, count, rows, error)
                              : locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    if (status == LOCUS_OK) map_rows(p, projection_of(p, o), room, rows, count, linear);
    locus_release(m->allocator, rows);
    locus_release(m->allocator, linear);
    return status;
}

/* Tables of one layer; those that depend on the tokens are put into room. */
static locus_status put_tables(const locus_model *m, const locus_model_attended *a, const op *o,
                               float *room, locus_config *config, locus_tensors *in,
                               locus_error *error)
{
    const program *p = &m->program;
    const model_description *d = layers_of(m, a->stack);
    int64_t rows[EXTENTS] = {0}, first;
    if (d->distances) {
        const attention *how = &p->attentions[o->as.attend->attention];
        LOCUS_TRY(put_distances(m, o, a->queries, room, config, error));
        model_distances(how, a->queries, &first, &rows[DISTANCES]);
    }
    attend_tables(p, o, NULL, rows, in);
    if (d->distances) in->rel_k.data = room;
    if (!has_types(d, a)) return LOCUS_OK;
    const segment_rule rule = {.bias = p->values[o->in[ATTEND_BIAS]].data,
                               .segment = p->values[o->in[ATTEND_SEGMENT]].data,
                               .heads = d->heads,
                               .head_dim = d->head_dim,
                               .stride = model_qkv_width(d)};
    in->bias_dense =
        segment_scores(&rule, a->q, a->types, a->queries, room + distance_floats(d, a->queries));
    return LOCUS_OK;
}

/* ---- the call ---- */

static locus_status take_inputs(const locus_model *m, const locus_model_attended *a, float *room,
                                locus_config *config, locus_tensors *in, locus_error *error)
{
    const model_description *d = layers_of(m, a->stack);
    const op *o = attend_of(m, a->stack, a->layer);
    const int64_t D = d->head_dim, H = d->heads, width = model_qkv_width(d);
    *config = m->program.attentions[o->as.attend->attention].config;
    *in = (locus_tensors){.size = sizeof *in};
    LOCUS_TRY(put_tables(m, a, o, room, config, in, error));
    in->q = columns_of(a->q, 0, a->queries, H, D, width);
    in->k = columns_of(a->q, H * D, a->queries, d->kv_heads, D, width);
    in->v = columns_of(a->q, (H + d->kv_heads) * D, a->queries, d->kv_heads, D, width);
    return LOCUS_OK;
}

/* No positions: words of one text ask those of another, and every one sees all. */
static void take_cross(const locus_model *m, const locus_model_attended *a, locus_config *config,
                       locus_tensors *in)
{
    const op *o = attend_of(m, a->stack, a->layer);
    const int64_t D = m->stacks[1].head_dim, H = m->stacks[1].heads, A = H * D;
    *config = m->program.attentions[o->as.attend->attention].config;
    config->query_offset = 0;
    *in = (locus_tensors){.size = sizeof *in};
    in->q = columns_of(a->q, 0, a->queries, H, D, A);
    in->k = columns_of(a->kv, 0, a->keys, H, D, 2 * A);
    in->v = columns_of(a->kv, A, a->keys, H, D, 2 * A);
}

static locus_status no_decoder(const locus_model *m, uint32_t stack, locus_error *error)
{
    if (stack > LOCUS_MODEL_CROSS)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "stack: found %u, expected 0 to %d", stack,
                          (int)LOCUS_MODEL_CROSS);
    return locus_fail(error, LOCUS_ERR_ARGUMENT,
                      "model: it has no decoder behind an encoder (model_type %s)",
                      m->family->type);
}

/* What cannot be handed out, of layers that are there. */
static locus_status check_tables(const locus_model *m, const locus_model_attended *a,
                                 const float *room, locus_error *error)
{
    const model_description *d = layers_of(m, a->stack);
    if (d->memory > 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: its keys begin %" PRId64 " tokens before the text, in a memory that "
                          "is not handed out",
                          m->family->type, d->memory);
    if (room == NULL && (distance_floats(d, a->queries) > 0 || has_types(d, a)))
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: its tables depend on the text and need room", m->family->type);
    if (model_rope_stretches(&d->rope, a->queries))
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: its frequencies depend on the length beyond %" PRId64 " tokens",
                          m->family->type, d->rope.trained);
    return LOCUS_OK;
}

/* 0: there is none for what the call refuses. */
static int64_t room_of(const locus_model *model, const locus_model_attended *attended)
{
    const model_description *d = layers_of(model, attended->stack);
    const int64_t T = attended->queries;
    if (d == NULL || attended->stack == LOCUS_MODEL_CROSS || !model_is_length(T)) return 0;
    return distance_floats(d, T) + (has_types(d, attended) ? d->heads * T * T : 0);
}

static locus_status check_rows(const char *name, int64_t rows, const float *data,
                               locus_error *error)
{
    if (!model_is_length(rows))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "%s: found %" PRId64 ", expected 0 to %d",
                          name, rows, MODEL_MOST_TOKENS);
    if (data == NULL && rows > 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "%s: found NULL, expected %" PRId64 " rows",
                          name, rows);
    return LOCUS_OK;
}

int64_t locus_model_attended_room(const locus_model *model, const locus_model_attended *attended)
{
    locus_model_attended own = {.size = sizeof own};
    if (model == NULL || attended == NULL ||
        locus_adopt(&own, sizeof own, attended, "model attention", NULL) != LOCUS_OK)
        return 0;
    return room_of(model, &own);
}

locus_status locus_model_attended_call(const locus_model *model,
                                       const locus_model_attended *attended, float *room,
                                       locus_config *config, locus_tensors *in, locus_error *error)
{
    locus_model_attended own = {.size = sizeof own};
    if (model == NULL || attended == NULL || config == NULL || in == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    LOCUS_ADOPT(attended, own, "model attention", error);
    const int cross = attended->stack == LOCUS_MODEL_CROSS;
    const model_description *d = layers_of(model, attended->stack);
    if (d == NULL || attended->stack > LOCUS_MODEL_CROSS)
        return no_decoder(model, attended->stack, error);
    LOCUS_TRY(check_rows("queries", attended->queries, attended->q, error));
    if (cross) LOCUS_TRY(check_rows("keys", attended->keys, attended->kv, error));
    if (attended->layer < 0 || attended->layer >= d->layers)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "layer: found %" PRId64 ", expected 0 to %" PRId64, attended->layer,
                          d->layers - 1);
    if (!cross) {
        LOCUS_TRY(check_tables(model, attended, room, error));
        return take_inputs(model, attended, room, config, in, error);
    }
    take_cross(model, attended, config, in);
    return LOCUS_OK;
}

/* ---- the first layers, by their qkv ---- */

int64_t locus_model_attention_room(const locus_model *m, int64_t tokens)
{
    return m != NULL ? distance_floats(&m->stacks[0], tokens) : 0;
}

locus_status locus_model_attention(const locus_model *m, int64_t layer, const float *qkv,
                                   int64_t tokens, locus_config *config, locus_tensors *in,
                                   locus_error *error)
{
    return locus_model_attention_in(m, layer, qkv, tokens, NULL, config, in, error);
}

locus_status locus_model_attention_in(const locus_model *m, int64_t layer, const float *qkv,
                                      int64_t tokens, float *room, locus_config *config,
                                      locus_tensors *in, locus_error *error)
{
    const locus_model_attended attended = {
        .size = sizeof attended, .layer = layer, .queries = tokens, .q = qkv};
    return locus_model_attended_call(m, &attended, room, config, in, error);
}

locus_status locus_model_describe_stack(const locus_model *model, uint32_t stack,
                                        locus_model_info *info, locus_error *error)
{
    if (model == NULL || info == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    if (layers_of(model, stack) == NULL || stack > LOCUS_MODEL_CROSS)
        return no_decoder(model, stack, error);
    locus_model_info found = {.size = sizeof found};
    model_describe_layers(model, stack != LOCUS_MODEL_FIRST, &found);
    if (stack == LOCUS_MODEL_CROSS) {
        found.qkv_width = found.heads * found.head_dim;
        found.scheme = "none";
        found.bias_each_layer = 0;
    }
    locus_hand_back(info, &found, sizeof found);
    return LOCUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "model/pass.h"

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

/* The layers that are meant: the decoder's, or those of the model itself. */
static const locus_model *layers_of(const locus_model *m, uint32_t stack)
{
    return stack == LOCUS_MODEL_FIRST ? m : m->decoder;
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
    if (!d->segments || a->types == NULL) return 0;
    for (int64_t i = 1; i < a->queries; i++)
        if (a->types[i] != a->types[i - 1]) return 1;
    return 0;
}

/* The table of a layer for `tokens` tokens, as a pass makes it. */
static locus_status put_distances(const locus_model *m, int64_t layer, int64_t tokens, float *room,
                                  locus_config *config, locus_tensors *in, locus_error *error)
{
    const int64_t offsets[2] = {0, tokens};
    locus_model_pass *pass = NULL;
    LOCUS_TRY(locus_model_pass_new(&pass, m, offsets, 1, error));
    pass_work w = {.distances = room};
    w.linear = locus_allocate(m->allocator, (size_t)locus_linear_workspace(&m->linear), 1);
    if (w.linear != NULL) {
        model_distances_project(pass, model_layer_at(m, layer), &w);
        in->rel_k = model_distance_table(pass, room);
        config->options.delta_min = model_first_distance(pass);
    }
    locus_model_pass_free(pass);
    locus_release(m->allocator, w.linear);
    return w.linear != NULL ? LOCUS_OK
                            : locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
}

static locus_status put_tables(const locus_model *m, const locus_model_attended *a, float *room,
                               locus_config *config, locus_tensors *in, locus_error *error)
{
    const model_description *d = &m->description;
    if (d->distances) LOCUS_TRY(put_distances(m, a->layer, a->queries, room, config, in, error));
    if (has_types(d, a))
        in->bias_dense =
            model_segment_pairs(d, model_layer_at(m, a->layer), a->q, model_qkv_width(d), a->types,
                                a->queries, room + distance_floats(d, a->queries));
    return LOCUS_OK;
}

/* ---- the call ---- */

static locus_status take_inputs(const locus_model *m, const locus_model_attended *a, float *room,
                                locus_config *config, locus_tensors *in, locus_error *error)
{
    const model_layer *weights = model_layer_at(m, a->layer);
    const int64_t D = m->description.head_dim, H = m->description.heads;
    const int64_t width = weights->qkv.packed.outputs, kv_heads = (width / D - H) / 2;
    LOCUS_TRY(model_attention_config(m, m->description.scheme, config));
    *in = weights->tables;
    in->q = columns_of(a->q, 0, a->queries, H, D, width);
    in->k = columns_of(a->q, H * D, a->queries, kv_heads, D, width);
    in->v = columns_of(a->q, (H + kv_heads) * D, a->queries, kv_heads, D, width);
    return put_tables(m, a, room, config, in, error);
}

/* No positions: words of one text ask those of another, and every one sees all. */
static locus_status take_cross(const locus_model *m, const locus_model_attended *a,
                               locus_config *config, locus_tensors *in)
{
    const int64_t D = m->description.head_dim, H = m->description.heads, A = H * D;
    LOCUS_TRY(model_attention_config(m, "none", config));
    config->causal = 0;
    config->query_offset = 0;
    if (m->description.cross_unscaled) config->scale = 1.0;
    *in = (locus_tensors){.size = sizeof *in};
    in->q = columns_of(a->q, 0, a->queries, H, D, A);
    in->k = columns_of(a->kv, 0, a->keys, H, D, 2 * A);
    in->v = columns_of(a->kv, A, a->keys, H, D, 2 * A);
    return LOCUS_OK;
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
    const model_description *d = &m->description;
    if (m->trainable != NULL && (d->to_position || d->from_position))
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: a model that is trained makes its tables in every pass",
                          m->family->type);
    if (d->memory > 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: its keys begin %" PRId64 " tokens before the text, in a memory that "
                          "is not handed out",
                          m->family->type, d->memory);
    if (room == NULL && (distance_floats(d, a->queries) > 0 || has_types(d, a)))
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: its tables depend on the text and need room", m->family->type);
    if (d->rope.kind == MODEL_ROPE_DYNAMIC && a->queries > d->rope.trained)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: its frequencies depend on the length beyond %" PRId64 " tokens",
                          m->family->type, d->rope.trained);
    return LOCUS_OK;
}

/* 0: there is none for what the call refuses. */
static int64_t room_of(const locus_model *model, const locus_model_attended *attended)
{
    const locus_model *m = layers_of(model, attended->stack);
    const int64_t T = attended->queries;
    if (m == NULL || attended->stack == LOCUS_MODEL_CROSS || !model_is_length(T)) return 0;
    const int pairs = has_types(&m->description, attended);
    return distance_floats(&m->description, T) + (pairs ? m->description.heads * T * T : 0);
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
    const locus_model *m = layers_of(model, attended->stack);
    if (m == NULL || attended->stack > LOCUS_MODEL_CROSS)
        return no_decoder(model, attended->stack, error);
    LOCUS_TRY(check_rows("queries", attended->queries, attended->q, error));
    if (cross) LOCUS_TRY(check_rows("keys", attended->keys, attended->kv, error));
    if (attended->layer < 0 || attended->layer >= m->description.layers)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "layer: found %" PRId64 ", expected 0 to %" PRId64, attended->layer,
                          m->description.layers - 1);
    if (cross) return take_cross(m, attended, config, in);
    LOCUS_TRY(check_tables(m, attended, room, error));
    return take_inputs(m, attended, room, config, in, error);
}

/* ---- the first layers, by their qkv ---- */

int64_t locus_model_attention_room(const locus_model *m, int64_t tokens)
{
    return m != NULL ? distance_floats(&m->description, tokens) : 0;
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
    const locus_model *m = layers_of(model, stack);
    if (m == NULL || stack > LOCUS_MODEL_CROSS) return no_decoder(model, stack, error);
    locus_model_info found = {.size = sizeof found};
    locus_model_describe(m, &found);
    if (stack == LOCUS_MODEL_CROSS) {
        found.qkv_width = found.heads * found.head_dim;
        found.scheme = "none";
        found.bias_each_layer = 0;
    }
    locus_hand_back(info, &found, sizeof found);
    return LOCUS_OK;
}

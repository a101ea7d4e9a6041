/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

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

/* Distances of `tokens` tokens: as many before as behind, or none behind. */
int64_t locus_model_attention_room(const locus_model *m, int64_t tokens)
{
    const model_description *d = &m->description;
    if (!d->distances || d->memory > 0 || d->segments || tokens < 1) return 0;
    return (d->causal ? tokens : 2 * tokens - 1) * d->heads * d->head_dim;
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
    if (m == NULL || config == NULL || in == NULL || (qkv == NULL && tokens > 0) || tokens < 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL or negative argument");
    if (m->trainable != NULL && (m->description.to_position || m->description.from_position))
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: a model that is trained makes its tables in every pass",
                          m->family->type);
    if (layer < 0 || layer >= m->description.layers)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "layer: found %" PRId64 ", expected 0 to %" PRId64, layer,
                          m->description.layers - 1);
    if (m->description.distances && (room == NULL || locus_model_attention_room(m, tokens) == 0))
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: its tables depend on the text, they cannot be handed out",
                          m->family->type);
    if (m->description.rope.kind == MODEL_ROPE_DYNAMIC && tokens > m->description.rope.trained)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: its frequencies depend on the length beyond %" PRId64 " tokens",
                          m->family->type, m->description.rope.trained);
    const model_layer *weights = model_layer_at(m, layer);
    const int64_t D = m->description.head_dim, H = m->description.heads;
    const int64_t width = weights->qkv.packed.outputs, kv_heads = (width / D - H) / 2;
    LOCUS_TRY(model_attention_config(m, m->description.scheme, config));
    *in = weights->tables;
    in->q = columns_of(qkv, 0, tokens, H, D, width);
    in->k = columns_of(qkv, H * D, tokens, kv_heads, D, width);
    in->v = columns_of(qkv, (H + kv_heads) * D, tokens, kv_heads, D, width);
    return m->description.distances ? put_distances(m, layer, tokens, room, config, in, error)
                                    : LOCUS_OK;
}

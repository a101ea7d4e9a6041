/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "core/error.h"
#include "model/model.h"

static locus_status attention_config(const locus_model *m, locus_config *config)
{
    const model_description *d = &m->description;
    LOCUS_TRY(locus_config_init(config, d->scheme));
    if (d->options_given) config->options = d->options;
    if (d->scaled_products) config->scale = 1.0 / sqrt((double)d->head_dim);
    config->causal = (uint32_t)d->causal;
    config->threads = m->workers.threads;
    config->isa = m->workers.kernels->isa;
    config->allocator = m->allocator;
    return LOCUS_OK;
}

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

locus_status locus_model_attention(const locus_model *m, int64_t layer, const float *qkv,
                                   int64_t tokens, locus_config *config, locus_tensors *in,
                                   locus_error *error)
{
    if (m == NULL || config == NULL || in == NULL || (qkv == NULL && tokens > 0) || tokens < 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL or negative argument");
    if (layer < 0 || layer >= m->description.layers)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "layer: found %" PRId64 ", expected 0 to %" PRId64, layer,
                          m->description.layers - 1);
    if (m->description.distances)
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
    LOCUS_TRY(attention_config(m, config));
    *in = weights->tables;
    in->q = columns_of(qkv, 0, tokens, H, D, width);
    in->k = columns_of(qkv, H * D, tokens, kv_heads, D, width);
    in->v = columns_of(qkv, (H + kv_heads) * D, tokens, kv_heads, D, width);
    return LOCUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/error.h"
#include "model/model.h"

static locus_status set_config(const locus_model *m, const model_description *d, const char *scheme,
                               int own_options, locus_config *config)
{
    LOCUS_TRY(locus_config_init(config, scheme));
    if (own_options) config->options = d->options;
    if (d->scaled_products) config->scale = 1.0 / sqrt((double)d->head_dim);
    config->threads = m->workers.threads;
    config->isa = m->workers.kernels->isa;
    config->allocator = m->allocator;
    return LOCUS_OK;
}

locus_status model_attend_turned(const attention *a, locus_config *config)
{
    LOCUS_TRY(locus_config_init(config, "none"));
    config->scale = a->config.scale;
    config->causal = a->config.causal;
    config->softcap = a->config.softcap;
    config->window_left = a->config.window_left;
    config->threads = a->config.threads;
    config->isa = a->config.isa;
    config->allocator = a->config.allocator;
    return LOCUS_OK;
}

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
}

static locus_arena *arena_of(const locus_model *m)
{
    return (locus_arena *)(uintptr_t)&m->program.arena;
}

/* Both q and k are multiplied by the gain of the frequencies: so are their products by its square, where
 * whole heads turn; of parts of heads the family sees to it. */
locus_status model_attention_turn(const locus_model *m, const model_rope *rope, attention *a,
                                  locus_error *error)
{
    a->rope = *rope;
    a->turned = rope->turned > 0 ? rope->turned : a->head_dim;
    a->frequencies = locus_arena_take(arena_of(m), (size_t)(a->turned / 2) * sizeof(float), 16);
    if (a->frequencies == NULL) return no_memory(error);
    model_rope_frequencies(rope, a->turned, 0, a->frequencies);
    if (rope->gain > 0.0 && a->turned == a->head_dim) {
        if (!(a->config.scale > 0.0)) a->config.scale = 1.0 / sqrt((double)a->head_dim);
        a->config.scale *= rope->gain * rope->gain;
    }
    return LOCUS_OK;
}

/* Which row of a table serves the distances m - n = -(window + 1) .. window + 1: the first is n - m =
 * -window. */
static locus_status set_numbers(const locus_model *m, const model_description *d, attention *a,
                                locus_error *error)
{
    const int64_t count = 2 * d->window + 3, last = 2 * d->window;
    if (d->rope.base > 0.0 && !d->turned_input)
        LOCUS_TRY(model_attention_turn(m, &d->rope, a, error));
    if (d->window == 0) return LOCUS_OK;
    int64_t *rows = locus_arena_take(arena_of(m), (size_t)count * sizeof *rows, 16);
    if (rows == NULL) return no_memory(error);
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = last + 1 - i;
        rows[i] = row < 0 || row > last ? last + 1 : row;
    }
    a->rows = locus_view(rows, LOCUS_I64, 1, &count);
    return LOCUS_OK;
}

locus_status model_attention(const locus_model *m, int stack, int cross, attention *a,
                             locus_error *error)
{
    const model_description *d = &m->stacks[stack];
    *a = (attention){.heads = d->heads,
                     .kv_heads = cross ? d->heads : d->kv_heads,
                     .head_dim = d->head_dim,
                     .turned = d->head_dim,
                     .stack = stack,
                     .cross = cross};
    LOCUS_TRY(set_config(m, d, cross ? "none" : d->scheme, !cross && d->options_given, &a->config));
    if (cross) {
        if (d->cross_unscaled) a->config.scale = 1.0;
        return LOCUS_OK;
    }
    a->config.causal = (uint32_t)d->causal;
    if (d->same_length) a->config.window_left = d->memory - 1;
    a->memory = d->memory;
    a->segments = d->segments;
    a->distances = d->distances;
    a->rope = d->rope;
    a->interleaved = !d->turned_input && d->options.pairing == LOCUS_PAIRING_INTERLEAVED;
    return set_numbers(m, d, a, error);
}

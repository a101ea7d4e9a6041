/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "model/model.h"

locus_status model_attention_config(const locus_model *m, const char *scheme, locus_config *config)
{
    const model_description *d = &m->description;
    LOCUS_TRY(locus_config_init(config, scheme));
    if (d->options_given && strcmp(scheme, d->scheme) == 0) config->options = d->options;
    if (d->scaled_products) config->scale = 1.0 / sqrt((double)d->head_dim);
    config->causal = (uint32_t)d->causal;
    if (d->same_length) config->window_left = d->memory - 1;
    config->threads = m->workers.threads;
    config->isa = m->workers.kernels->isa;
    config->allocator = m->allocator;
    return LOCUS_OK;
}

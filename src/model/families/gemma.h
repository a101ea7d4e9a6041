/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_FAMILIES_GEMMA_H
#define LOCUS_MODEL_FAMILIES_GEMMA_H

/* What the Gemmas have in common: word rows times the root of the width, gains of norms stored as what
 * they differ from 1 by, biases where the configuration says so. */

#include "model/families/rotary.h"

locus_status gemma_read(const model_settings *s, const rotary_presets *presets,
                        const char *activation_key, model_description *d, rotary **own,
                        int64_t *trained, locus_error *error);
/* query_pre_attn_scalar */
locus_status gemma_read_scale(const model_settings *s, rotary *own, locus_error *error);
/* A cap of scores or logits: null is none (0), absent it is `preset`. */
locus_status gemma_read_cap(const model_settings *s, const char *key, double preset, double *cap,
                            locus_error *error);

/* 1 + NAME.weight of `count` numbers. */
value gemma_gain(builder *b, const char *name, int64_t layer, int64_t count);
value gemma_norm(builder *b, value x, const char *name, int64_t layer);
/* Norms before and behind both sublayers: h + norm(sub(norm(h))). */
value gemma_block(builder *b, value h, int64_t layer, int norm_heads);
value gemma_end(builder *b, value h);
value gemma_logits(builder *b, value h);

#endif

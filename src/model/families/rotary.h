/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_FAMILIES_ROTARY_H
#define LOCUS_MODEL_FAMILIES_ROTARY_H

/* What Llama's kin have in common: decoders with rotary positions, perhaps fewer heads of k and v than
 * of q, a gated feed-forward, and layers that may see a window of the tokens alone. */

#include "model/blocks.h"

/* The `own` of their descriptions. */
typedef struct rotary {
    unsigned char *local; /* [layers] 1: the layer sees `window` tokens, its own included */
    int64_t window;
    int biased;            /* 1: q, k and v have biases           */
    int out_biased;        /* 1: so has the map behind attention  */
    int forward_biased;    /* 1: maps of the feed-forward have biases */
    double scale;          /* of products; 0: 1 / sqrt(head_dim)    */
    double softcap;        /* of scores; 0: none                    */
    double logits_cap;     /* of logits; 0: none                    */
    model_rope local_rope; /* of local layers; base 0: as the others */
} rotary;

/* What a configuration means that does not say it. */
typedef struct rotary_presets {
    int64_t width, layers, heads, kv_heads, feed_forward, vocabulary, positions;
    int64_t head_dim;       /* 0: width / heads */
    double epsilon;         /* 0: 1e-6 */
    const char *activation; /* hidden_act; NULL: the family reads it itself */
    int tied;
} rotary_presets;

/* hidden_size and the like; *positions: that the model was trained with. No layer is local. */
locus_status rotary_read(const model_settings *s, const rotary_presets *presets,
                         model_description *d, rotary **own, int64_t *positions,
                         locus_error *error);

/* layer_types; without it layers from `first` on are local, but where `every` > 0 divides their
 * number, counted from 1. own->window is set; 0: no layer may be local. */
locus_status rotary_read_layers(const model_settings *s, const model_description *d, rotary *own,
                                int64_t first, int64_t every, locus_error *error);

/* The attentions that the layers need: of those that see all, and of local ones. */
void rotary_begin(builder *b);

/* q, k and v of x, one behind the other, by three maps of the checkpoint. */
value rotary_qkv(builder *b, value x, int64_t layer);
/* The same with a norm of every head of q and of k, by these gains. */
value rotary_norm_heads(builder *b, value qkv, value q_gain, value k_gain);
/* residual + map(attention over them); of the last layer the rows that are wanted alone. */
value rotary_attend(builder *b, value qkv, int64_t layer, value residual);
/* down(activation(gate x) up x) + residual */
value rotary_forward(builder *b, value x, int64_t layer, value residual);

/* Word table, last norm and logits. */
extern const model_name rotary_names[];
extern const char *const rotary_prefixes[];

/* h + sub(norm(h)), twice a layer. */
extern const model_wiring rotary_wiring;

#endif

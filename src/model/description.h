/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_DESCRIPTION_H
#define LOCUS_MODEL_DESCRIPTION_H

/* One description for every stack of layers that the executor runs (forward.c): an encoder, a
 * decoder, or the decoder behind an encoder, which has a description of its own; and what a
 * family declares to arrive at it: which keys of config.json say what, and which tensors of the
 * checkpoint fill which slots. A family contains no arithmetic.
 *
 *     x     = factor word[id] + type[..] + position[..] (+ norm) (+ map to the width)
 *     block = attention and feed-forward, each with a residual and a norm:
 *             norm after   h = norm(h + sub(h))         BERT
 *             norm before  h = h + sub(norm(h))         T5; a last norm at the end
 *             with the encoder's states attended to in between, where there is one
 *     sub   = map_o(attend(map_qkv(h)))   or   map_out(activation(map_in(h)) [* map_gate(h)])
 *     logits = factor word h, or map h (+ bias) */

#include <locus/attention.h>
#include <locus/model.h>

#include "kernels/kernels.h"
#include "model/settings.h"

/* How far apart rotary frequencies are, as rope_scaling of config.json says (rope.c). */
typedef enum model_rope_kind {
    MODEL_ROPE_PLAIN = 0,
    MODEL_ROPE_LINEAR,  /* all divided by the factor                               */
    MODEL_ROPE_DYNAMIC, /* base grows with lengths beyond those of the training    */
    MODEL_ROPE_LLAMA3,  /* slow ones divided, fast ones kept, a ramp between them  */
    MODEL_ROPE_YARN,    /* pairs up to `low` kept, from `high` on divided, a ramp between them */
    MODEL_ROPE_LONG,    /* each divided by a number of its own, others beyond `trained` tokens */
    MODEL_ROPE_SOME,    /* the first `low` pairs turn, the others stay                      */
} model_rope_kind;

typedef struct model_rope {
    model_rope_kind kind;
    double base, factor, low, high; /* low, high: of llama3, yarn and proportional */
    int64_t trained;                /* tokens */
    int64_t turned;                 /* columns of a head; 0: all */
    double gain;                    /* of q and k; 0: 1 */
    const double *brief, *lengthy;  /* [turned / 2] divisors of longrope */
} model_rope;

enum { MODEL_CLUSTERS = 8, MODEL_TABLES = 6 };

/* A tensor of every layer's attention that goes to the scheme as it is stored. */
typedef struct model_table {
    const char *tensor; /* of locus_tensors: "a" */
    const char *name;   /* in the checkpoint, # is the layer */
    const char *shape;  /* letters of slots.inc */
} model_table;

typedef struct model_description {
    int64_t width, layers, heads, head_dim, feed_forward; /* E, L, H, D, F */
    int64_t vocabulary, embedding_width;                  /* rows and columns of the word table */
    int64_t positions;      /* rows of the learned position table; 0: there is none */
    int64_t first_position; /* row of the first token */
    int64_t padding; /* >= 0: tokens of this id take this row and are not counted; -1: none */
    double embedding_factor; /* of word rows; 0: 1 */
    int late_positions;      /* 1: added behind the map to the width */
    int always_mapped;       /* 1: embeddings go through a map even where the widths are the same */
    int64_t types;           /* rows of the token-type table; 0: none */
    int64_t most_tokens;     /* of one sequence; 0: no limit */
    int shared_words;        /* 1: a decoder reads the word table of its encoder */
    int sinusoidal;          /* 1: the position table is a sinusoid where the checkpoint has none */
    int narrows;             /* 1: the last states go through a map to embedding_width */
    int sinusoid_paired;     /* 1: whose sines and cosines take turns */

    int64_t kv_heads; /* of k and v; 0: `heads` */
    int causal;       /* 1: a token sees itself and what is before it: a decoder */
    int cross;        /* 1: attends to the states of an encoder, too */
    model_rope rope;  /* of the scheme rope; base 0: the scheme's own frequencies */
    int transposed;   /* 1: maps of the layers are stored [inputs, outputs] */

    int norm_first;     /* 1: before the sublayers */
    int norm_centred;   /* 1: LayerNorm, 0: RMSNorm */
    int norm_unshifted; /* 1: a LayerNorm without shift */
    double norm_epsilon;
    int embedding_norm, final_norm;
    int biases; /* 1: the maps have biases */

    locus_activation activation;
    int gated;
    int64_t forward_taps; /* > 1: its two maps are convolutions over that many tokens */
    int fused_heads;      /* q, k, v in one tensor, head by head; DeBERTa v1: k without a bias */
    int fused_parts;      /* q, k, v in one tensor, one behind the other */
    int fused_biases;     /* and their biases alike */
    int shared_layers;    /* 1: one set of weights for all layers */

    const char *positions_name; /* "learned", for people */
    const char *scheme;         /* of attention */
    int options_given;          /* 1: `options` holds, else the scheme's defaults do */
    locus_options options;
    int cross_unscaled;  /* 1: products with the encoder's keys are not scaled */
    int scaled_products; /* 1: by 1 / sqrt(head_dim), whatever the scheme's own scale is */

    int head_tensors; /* 1: maps of attention are stored [E, H, D], those of q, k, v transposed */
    int attention_unbiased; /* 1: maps of attention have no biases, whatever the others have */
    int distances; /* 1: the table is made of sinusoids of the distance (options.table), projected by
                      RELATIVE_K; u and w are added to q */
    int segments;  /* 1: a term for pairs of tokens of two types, and no type table */

    int64_t
        memory; /* > 0: that many tokens went before each sequence; their states are given, or 0 */
    int same_length;  /* 1: a token sees as many keys as there is memory, not all of it */
    int64_t clusters; /* > 0: the word table is stored in parts of ever narrower rows, each with its
                         map to the width; they are put together when a model is opened */
    int64_t cluster_end[MODEL_CLUSTERS]; /* the first token behind each part */
    int64_t cluster_width[MODEL_CLUSTERS];

    int64_t
        window; /* > 0: a table of that many distances to either side for keys and one for values;
                       nothing is added beyond it */

    int64_t relative_rows;          /* of a table that q and k are dotted with; 0: none */
    int relative_norm;              /* DeBERTa: its table goes through a norm */
    int relative_shared;            /* projected by the weights of k and q themselves */
    int to_position, from_position; /* content to position, position to content */
    int bias_each_layer;            /* 1: a table of biases in every layer */
    int64_t bias_rows;              /* T5 buckets; 0: none */
    int position_pairs; /* TUPE: rows of both projections are positions, dotted with one another; the
                           projections of the first layer are those of all */
    model_table tables[MODEL_TABLES];
    int64_t table_count, table_rows, table_features; /* extents that their shapes may name */

    locus_model_head head;            /* of the checkpoint, by `architectures` */
    int64_t labels;                   /* that it tells apart */
    int multi_label;                  /* 1: each label by itself */
    locus_activation head_activation; /* behind the first map of LOCUS_MODEL_CLASSIFY */
    int head_last;                    /* 1: which is given the last token, not the first */
    int head_plain;                   /* 1: which has no first map */
    int tied;                         /* LOCUS_MODEL_GENERATE: logits by the word table */
    int logits_scaled;                /* 1: states by 1 / sqrt(width) before that */
    int logits_biased;                /* 1: logits have a bias where the checkpoint has one */

    locus_activation fill_activation; /* behind the first map of LOCUS_MODEL_FILL */
    int fill_plain;                   /* 1: that head is the last map alone */
    int fill_unbiased;                /* 1: which has no bias */
    int fill_tied;                    /* 1: which is the word table; a family may insist on it */
    int fill_next;                    /* 1: LOCUS_MODEL_GENERATE by the maps of LOCUS_MODEL_FILL */

    int64_t features;     /* > 0: rows of that many numbers come in place of ids */
    double outer_epsilon; /* of the first and the last norm; 0: norm_epsilon */
    int conformer; /* 1: a block is half a feed-forward, attention, a gated convolution, half a
                      feed-forward and a norm (conformer.c) */
    int64_t depth_taps, depth_before; /* of its convolution */
    int depth_batch_norm;             /* 1: behind which a batch norm is, 0: a norm of each token */
    int turned_input; /* 1: what q and k are made of is turned, by the frequencies of rope */

    int64_t taps, groups; /* convolution beside the first layer; 0: none */
    locus_activation convolution_activation;

    const void *own;    /* what only its family reads, in memory of `arena`; NULL: nothing */
    locus_arena *arena; /* of the model */
} model_description;

/* ---- slots ---- */

typedef enum model_slot {
#define MODEL_SLOT(name, each_layer, shape) SLOT_##name,
#include "model/slots.inc"
#undef MODEL_SLOT
    SLOT_COUNT
} model_slot;

/* The name of a tensor, "encoder.layer.#.output.dense.weight": # is the layer. */
typedef struct model_name {
    model_slot slot;
    const char *name;
} model_name;

/* Ids of the class of a family, for keys that config.json lacks where there is no
 * generation_config.json; -1: none. */
typedef struct model_ids {
    int32_t start, begin, end, forced_end; /* decoder_start_, bos_, eos_, forced_eos_token_id */
} model_ids;

typedef struct model_family model_family;
struct model_family {
    const char *type;       /* model_type */
    const char *instead_of; /* another model_type whose files it reads where it `claims` them */
    int (*claims)(const model_settings *settings);
    const char *const *prefixes; /* tried before each name, NULL ends the list */
    const model_name *names;     /* name NULL ends the list */
    locus_status (*describe)(const model_settings *settings, model_description *description,
                             locus_error *error);
    const struct model_wiring *wiring; /* what it appends to the program itself (blocks.h); NULL:
                                          the description says it all */
    const model_ids *ids;              /* NULL: none */
    const model_family *decoder; /* of an encoder-decoder, NULL: there is none; what its `describe`
                                    changes is the description of the encoder */
};

const model_family *model_family_find(const char *type); /* NULL: no such one */
/* The same, or the one that reads these files in its stead. */
const model_family *model_family_of(const char *type, const model_settings *settings);
/* "BertForMaskedLM": of the class that wrote a checkpoint from before there was a model_type. */
const model_family *model_family_of_class(const char *name);
/* Names of all families, for messages; NULL beyond the last. */
const char *model_family_name(size_t index);

/* ---- what families share (families.c) ---- */

/* Zeros in memory of the model, to be the `own` of a description. */
locus_status model_take_own(model_description *d, size_t bytes, void **own, locus_error *error);

/* hidden_act and the like: "gelu", "gelu_new", "relu", "silu", ... */
locus_status model_read_activation(const model_settings *settings, const char *path,
                                   const char *preset, locus_activation *activation,
                                   locus_error *error);

/* hidden_size, num_hidden_layers, num_attention_heads, intermediate_size, vocab_size,
 * layer_norm_eps, hidden_act: as BERT and its kin call them. */
locus_status model_read_bert_sizes(const model_settings *settings, model_description *d,
                                   locus_error *error);

/* position_embedding_type: absolute, relative_key, relative_key_query. */
locus_status model_read_bert_positions(const model_settings *settings, model_description *d,
                                       locus_error *error);

/* ---- heads.c ---- */

/* Names of heads that families share. */
extern const model_name model_head_names[];

/* Which head the checkpoint has, by `architectures`, and how many labels; *unread: the class whose
 * head is not read, in memory of the settings; NULL: there is none. */
locus_status model_read_head(const model_settings *settings, const model_family *family,
                             model_description *d, const char **unread, locus_error *error);

/* ---- families.c ---- */

/* is_decoder: causal; ...ForCausalLM and ...LMHeadModel continue a text by the head that fills masks
 * elsewhere. For BERT and its kin. */
locus_status model_read_decoder(const model_settings *settings, model_description *d,
                                locus_error *error);

/* 1: the checkpoint has the maps of a head that fills masks. */
static inline int model_has_fill(const model_description *d)
{
    return d->head == LOCUS_MODEL_FILL || d->fill_next;
}

/* rope_theta and rope_scaling, or rope_parameters, for the scheme rope, paired in halves. A family that
 * turns a part of each head says so before, in d->rope.turned. */
locus_status model_read_rope(const model_settings *settings, int64_t trained, model_description *d,
                             locus_error *error);
/* The same by a group of keys alone: "rope_parameters.full_attention". */
locus_status model_read_rope_group(const model_settings *settings, const char *group,
                                   int64_t trained, model_description *d, locus_error *error);
/* d->rope.turned: the share of each head that turns, by rope_parameters or by `key`. */
locus_status model_read_turned(const model_settings *settings, const char *key, double preset,
                               model_description *d, locus_error *error);

/* head_dim = width / heads, words as wide as the layers, no padding. `key` is that of the heads. */
locus_status model_split_heads(const model_settings *settings, const char *key,
                               model_description *d, locus_error *error);

/* A decoder: causal, with logits that continue a text. */
void model_set_decoder(model_description *d, int tied);

/* 1: the first of `architectures` contains `what`: "BertForTokenClassification". */
int model_architecture_is(const model_settings *settings, const char *what);

/* Refuses a flag that is true. */
locus_status model_refuse_flag(const model_settings *settings, const char *path,
                               locus_error *error);

#endif

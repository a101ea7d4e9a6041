/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_H
#define LOCUS_MODEL_H

/* Trained transformers from a folder in the layout of the Hugging Face hub: config.json and
 * model.safetensors (or the shards that model.safetensors.index.json lists).
 *
 *     locus_model *model;
 *     locus_model_open(&model, "all-MiniLM-L6-v2", NULL, &error);
 *     locus_model_pass *pass;                          for texts of these lengths
 *     locus_model_pass_new(&pass, model, offsets, sequences, &error);
 *     locus_model_forward(pass, &batch, &results, workspace, locus_model_workspace(pass), &error);
 *
 * A batch is ragged: the tokens of its sequences lie one behind the other and nothing is padded. A
 * sequence gives the same bits alone and in any batch, with any number of threads. */

#include <locus/call.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct locus_model locus_model;

/* How to open. */
typedef struct locus_model_config {
    uint32_t size;    /* sizeof(locus_model_config) as the caller compiled it        */
    uint32_t threads; /* of every pass; 0: what OpenMP offers                        */
    const char *isa;  /* ceiling, as in locus_config                                 */
    const locus_allocator *allocator; /* NULL: malloc                                */
    uint32_t trainable; /* 1: its weights may change and have gradients, see below    */
    uint32_t precision; /* locus_precision; 0: exact, or what a converted folder holds */
} locus_model_config;

/* What linear maps are computed in. Never chosen by the library. In integers, a text has the same bits
 * alone and in a batch, for any number of threads; linear maps have the same bits on every instruction
 * set. docs/precision.md: errors and speeds. */
typedef enum locus_precision {
    LOCUS_EXACT = 0, /* float32 */
    LOCUS_I16,       /* integers of 16 bits: about half the time, a thousandth off            */
    LOCUS_INT8,      /* of 8 bits: a quarter to two fifths of the time, some hundredths off */
} locus_precision;
/* "exact", "i16", "int8"; NULL beyond the last. */
LOCUS_API const char *locus_precision_name(uint32_t precision);
/* One line: what is kept as what; NULL beyond the last. */
LOCUS_API const char *locus_precision_keeps(uint32_t precision);

/* Reads, checks, converts (F16 and BF16 become F32) and packs the weights, or rounds
 * them to integers as `precision` says. `config` may be NULL.
 * LOCUS_ERR_FORMAT: the folder is refused; `error` names the file, the key or the tensor, what was
 * found and what was expected. The model is immutable: passes and threads share it. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_model_open(locus_model **model, const char *folder,
                                                         const locus_model_config *config,
                                                         locus_error *error);
LOCUS_API void locus_model_free(locus_model *model); /* NULL is allowed */

/* Writes the weights of a folder as i16 or int8 has them to `path`, a safetensors file of integers
 * and scales. A folder with it as its only model.safetensors and the other files of `folder` opens
 * with `precision` 0 (or the same), to the same bits; another precision is refused. The file is
 * there whole or not at all. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_model_convert(const char *folder, const char *path,
                                                            uint32_t precision, locus_error *error);

/* How hidden states become one vector per sequence. */
typedef enum locus_model_pooling {
    LOCUS_MODEL_POOL_CLS = 0, /* the first token's */
    LOCUS_MODEL_POOL_MEAN,
    LOCUS_MODEL_POOL_MAX,
    LOCUS_MODEL_POOL_LAST,   /* the last token's */
    LOCUS_MODEL_POOL_ROOT,   /* the sum over the square root of the length */
    LOCUS_MODEL_POOL_RISING, /* the mean with weights 1, 2, 3, ... */
} locus_model_pooling;

/* What a checkpoint was trained to say. */
typedef enum locus_model_head {
    LOCUS_MODEL_NO_HEAD = 0,
    LOCUS_MODEL_CLASSIFY, /* labels of a sequence */
    LOCUS_MODEL_TAG,      /* labels of every token */
    LOCUS_MODEL_FILL,     /* the token behind a mask */
    LOCUS_MODEL_PRIOR,    /* what sound a token stands for: means, then logarithms of variances */
    LOCUS_MODEL_GENERATE, /* the token that comes next */
    LOCUS_MODEL_SPAN,     /* of every token: where an answer begins, and where it ends */
} locus_model_head;

typedef struct locus_model_info {
    uint32_t size;         /* sizeof(locus_model_info) as the caller compiled it       */
    uint32_t threads;      /* of every pass                                            */
    const char *family;    /* model_type of config.json                                */
    const char *positions; /* "learned", "deberta", ...: how it knows where a token is */
    const char *scheme;    /* of attention, a name of locus_scheme_at                  */
    const char *isa;       /* the kernel table in use                                  */
    int64_t width, layers, heads, head_dim, feed_forward, vocabulary;
    int64_t types;       /* token types; 0: it has none                               */
    int64_t most_tokens; /* of one sequence; 0: no limit                              */
    int64_t parameters;  /* numbers that were read                                    */
    uint64_t bytes;      /* of memory that they take, packed                          */
    uint32_t
        pooling; /* locus_model_pooling, of modules.json; mean without it; of several the first */
    uint32_t unit_length;     /* 1: modules.json normalises at last                        */
    uint32_t head;            /* locus_model_head                                          */
    uint32_t multi_label;     /* 1: a probability is the sigmoid of a logit, 0: softmax    */
    int64_t labels;           /* of the head                                               */
    uint32_t modules;         /* 1: modules.json makes one vector of a text                */
    uint32_t bias_each_layer; /* 1: a table of biases in every layer, not one for all */
    int64_t qkv_width;        /* floats of a row of q, k and v, see locus_model_results    */
    int64_t decoder_layers;   /* behind an encoder; 0: there is none                     */
    int64_t next_tokens;      /* that LOCUS_MODEL_GENERATE tells apart: width of its logits */
    int64_t memory;           /* tokens before each sequence that are seen, too; 0: none */
    int64_t features;         /* > 0: it takes rows of that many numbers, not ids */
    int64_t
        last_width; /* of the last states: `width`, but for models that narrow them (OPT with word_embed_proj_dim) */
    const char *unread_head; /* of `architectures`: the class of a head that is not read, so that
                                 there are states alone; NULL: there is none */
    const char *embedding;   /* how a text becomes a vector, in words: "mean of the tokens, map to
                                 256, tanh, unit length" */
    int64_t embedding_width; /* of that vector: `last_width` for each pooling, or a map's */
    int64_t cut_tokens; /* <locus/texts.h> cuts texts to so many, as sentence-transformers does;
                                 0: it does not */
    const char *prompt; /* and puts this before each; NULL: nothing */
    uint32_t precision; /* locus_precision it was opened with */
    uint32_t reserved;  /* 0 */
} locus_model_info;
/* Fill *info, whose size is set, up to that size. Texts live as long as the model. */
LOCUS_API void locus_model_describe(const locus_model *model, locus_model_info *info);

/* The name of label `index`, "LABEL_0" where config.json has none; NULL beyond the last. */
LOCUS_API const char *locus_model_label(const locus_model *model, int64_t index);

/* What depends on the lengths alone: sequence s has the tokens offsets[s] .. offsets[s + 1] - 1,
 * offsets[0] = 0. Belongs to the model, which must outlive it; immutable as well. */
typedef struct locus_model_pass locus_model_pass;
LOCUS_API LOCUS_MUST_CHECK locus_status locus_model_pass_new(locus_model_pass **pass,
                                                             const locus_model *model,
                                                             const int64_t *offsets,
                                                             int64_t sequences, locus_error *error);
LOCUS_API void locus_model_pass_free(locus_model_pass *pass); /* NULL is allowed */

/* An encoder and the decoder behind it in one pass: text s goes with the tokens decoder_offsets[s] ..
 * decoder_offsets[s + 1] - 1 of the decoder, which are all there at once, as when one trains. Tokens
 * one by one: <locus/generate.h>. */
LOCUS_API LOCUS_MUST_CHECK locus_status
locus_model_pass_both(locus_model_pass **pass, const locus_model *model, const int64_t *offsets,
                      const int64_t *decoder_offsets, int64_t sequences, locus_error *error);

/* Bytes that locus_model_forward needs; a workspace begins at a multiple of 8 bytes. */
LOCUS_API size_t locus_model_workspace(const locus_model_pass *pass);

typedef struct locus_model_batch {
    uint32_t size;        /* sizeof(locus_model_batch) as the caller compiled it */
    uint32_t reserved;    /* 0                                    */
    const int32_t *ids;   /* [tokens], each below the vocabulary  */
    const int32_t *types; /* [tokens], or NULL: 0                 */
    const int32_t *rows;  /* tokens whose logits are wanted, of LOCUS_MODEL_FILL; NULL: of all */
    int64_t row_count;    /* how many, at most as many as there are tokens */
    const float *const
        *memory;           /* [layers] arrays [sequences, memory, width] of models with a memory:
                                   inputs of the layers that went before; NULL: zeros */
    const float *features; /* [tokens, features] in place of ids, of models that take them */
    const int32_t *decoder_ids; /* [tokens of the decoder], of locus_model_pass_both */
} locus_model_batch;

/* Where the results go; NULL: not wanted. */
typedef struct locus_model_results {
    uint32_t size;        /* sizeof(locus_model_results) as the caller compiled it */
    uint32_t reserved;    /* 0 */
    float *const *hidden; /* [layers + 1] arrays [tokens, width], each may be NULL: after the
                             embeddings, then after every layer; the last one [tokens, last_width] */
    float *
        logits; /* of the head: [sequences, labels], or [tokens, labels] of tags, spans and priors, or
                             [tokens or row_count, vocabulary] of what may be behind a mask, or
                             [tokens, vocabulary] of what may come next */
    float *embedding;  /* [sequences, embedding_width], pooled and mapped as the model says */
    float *const *qkv; /* [layers] arrays [tokens, qkv_width], each may be NULL: q, k and v as
                             attention is given them, heads one behind the other */
    float *next;       /* what continues each sequence: [those with tokens, vocabulary] */
    float *const
        *decoder_hidden; /* [decoder layers + 1], as `hidden`, of locus_model_pass_both; logits
                                     are the decoder's then */
    float *const *decoder_qkv; /* [decoder layers], as `qkv`, of the decoder's own tokens */
    float *const *cross_q;  /* [decoder layers] arrays [tokens of the decoder, A]: what it asks the
                             encoder's states; A = heads * head_dim of the decoder */
    float *const *cross_kv; /* [decoder layers] arrays [tokens, 2 A]: k and v of those states */
} locus_model_results;

/* LOCUS_ERR_RANGE: an id or a type is beyond its table. LOCUS_ERR_ARGUMENT: logits of a model without
 * a head. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_model_forward(const locus_model_pass *pass,
                                                            const locus_model_batch *batch,
                                                            const locus_model_results *results,
                                                            void *workspace, size_t workspace_bytes,
                                                            locus_error *error);

/* ---- gradients ----
 *
 * A model that was opened with `trainable` has its weights as the checkpoint stores them. A forward
 * pass that keeps what the way back needs, and the way back from gradients of its results to those of
 * every weight:
 *
 *     locus_model_forward_kept(pass, &batch, &results, kept, .., workspace, .., &error);
 *     locus_model_backward(pass, &gradients, kept, .., workspace, .., &error);
 *
 * Gradients have the same bits for any number of threads. Such a model can do all that another can, to
 * the same bits, but slower: nothing is packed before. */

/* One tensor of the checkpoint. */
typedef struct locus_model_parameter {
    uint32_t size;      /* sizeof(locus_model_parameter) as the caller compiled it */
    uint32_t reserved;  /* 0 */
    const char *name;   /* in the checkpoint */
    locus_tensor value; /* F32, dense, of its shape there; write to it to train the model */
    int64_t at;         /* where its gradient begins in locus_model_gradients.parameters */
} locus_model_parameter;

/* How many there are, 0 of a model that was not opened to be trained; floats of all of them. What is no
 * parameter in transformers is none here: fixed sinusoids, statistics of batch norms. */
LOCUS_API int64_t locus_model_parameter_count(const locus_model *model);
LOCUS_API int64_t locus_model_parameter_floats(const locus_model *model);
/* Fill *parameter, whose size is set. LOCUS_ERR_ARGUMENT: there is none of that number. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_model_parameter_at(const locus_model *model,
                                                                 int64_t index,
                                                                 locus_model_parameter *parameter,
                                                                 locus_error *error);

/* After values were written: passes of the model compute with them from now on. No call may use the
 * model meanwhile. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_model_update(locus_model *model, locus_error *error);

/* Bytes that a forward pass keeps, and of workspace for the way back; 0 of a model that was not opened
 * to be trained. They grow with the tokens and the lengths of tables, never with tokens squared, but
 * for XLNet's pairs of two types in the workspace. */
LOCUS_API size_t locus_model_kept(const locus_model_pass *pass);
LOCUS_API size_t locus_model_backward_workspace(const locus_model_pass *pass);

/* locus_model_forward, to the same bits, with what the way back needs in `kept`: it begins at a
 * multiple of 8 bytes and is neither moved nor written until then. Features and memory of the batch
 * stay where they are, too; ids and types may go. `next` is not computed. */
LOCUS_API LOCUS_MUST_CHECK locus_status
locus_model_forward_kept(const locus_model_pass *pass, const locus_model_batch *batch,
                         const locus_model_results *results, void *kept, size_t kept_bytes,
                         void *workspace, size_t workspace_bytes, locus_error *error);

typedef struct locus_model_gradients {
    uint32_t size;  /* sizeof(locus_model_gradients) as the caller compiled it */
    uint32_t flags; /* LOCUS_ACCUMULATE: add to `parameters` and `input` */
    /* of the results that the forward pass gave, in their shapes; NULL: 0 */
    const float *const *hidden; /* [layers + 1], each may be NULL */
    const float *logits, *embedding;
    /* what comes out */
    float *parameters; /* [locus_model_parameter_floats] */
    float *
        input; /* [tokens, width of an embedding, or features]: of the sum of what is looked up for a
                     token, before any norm, or of the features; NULL: not wanted */
    const float *const *decoder_hidden; /* in: [decoder layers + 1], each may be NULL */
} locus_model_gradients;

LOCUS_API LOCUS_MUST_CHECK locus_status locus_model_backward(
    const locus_model_pass *pass, const locus_model_gradients *gradients, const void *kept,
    size_t kept_bytes, void *workspace, size_t workspace_bytes, locus_error *error);

/* Cross entropy of `rows` rows of `width` logits and the classes that were to come: each[rows], and
 * their mean in *loss. A negative class: the row does not count. The gradient of the mean goes to dlogits
 * (may be logits; NULL: not wanted). LOCUS_ERR_RANGE: a class beyond the width. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_model_cross_entropy(
    const locus_model *model, const float *logits, const int32_t *classes, int64_t rows,
    int64_t width, float *each, float *dlogits, double *loss, locus_error *error);

/* The `count` greatest of `width` logits, best first: their places, and their probabilities among
 * all of them. Returns how many there are. */
LOCUS_API int64_t locus_model_top(const float *logits, int64_t width, int64_t count, int64_t *best,
                                  double *probability);

/* ---- what a layer attends by ---- */

/* Which of its attentions. */
typedef enum locus_model_stack {
    LOCUS_MODEL_FIRST = 0, /* of the encoder, or of the only layers that there are     */
    LOCUS_MODEL_DECODER,   /* of the decoder behind an encoder, among its own tokens   */
    LOCUS_MODEL_CROSS,     /* of that decoder to the encoder's states                  */
} locus_model_stack;

/* locus_model_describe for the layers of one of them: family, scheme, layers, heads, head_dim, width,
 * feed_forward, qkv_width (of LOCUS_MODEL_CROSS: that of q alone), bias_each_layer. LOCUS_ERR_ARGUMENT:
 * there is no decoder. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_model_describe_stack(const locus_model *model,
                                                                   uint32_t stack,
                                                                   locus_model_info *info,
                                                                   locus_error *error);

/* One attention of one sequence, as the results give it. */
typedef struct locus_model_attended {
    uint32_t size;  /* sizeof(locus_model_attended) as the caller compiled it */
    uint32_t stack; /* locus_model_stack */
    int64_t layer;
    int64_t queries, keys; /* tokens; keys count of LOCUS_MODEL_CROSS alone */
    const float *q;        /* its rows of qkv, decoder_qkv or cross_q */
    const float *kv;       /* its rows of cross_kv; else NULL */
    const int32_t
        *types; /* [queries] token types, which XLNet's scores depend on; NULL: all alike */
} locus_model_attended;

/* That attention as a call of its own, for <locus/explain.h> and the oracle. *in points into q and kv,
 * into the model and into `room`, where tables are put that depend on the tokens (sinusoids of the
 * distance that each layer projects, scores of pairs of types): so many floats, 0 of most models and of
 * what the call refuses, and room may be NULL then. Both structs are filled whatever was in them. */
LOCUS_API int64_t locus_model_attended_room(const locus_model *model,
                                            const locus_model_attended *attended);
LOCUS_API LOCUS_MUST_CHECK locus_status
locus_model_attended_call(const locus_model *model, const locus_model_attended *attended,
                          float *room, locus_config *config, locus_tensors *in, locus_error *error);

/* The same for LOCUS_MODEL_FIRST and tokens of one type, without and with room. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_model_attention(const locus_model *model,
                                                              int64_t layer, const float *qkv,
                                                              int64_t tokens, locus_config *config,
                                                              locus_tensors *in,
                                                              locus_error *error);
LOCUS_API int64_t locus_model_attention_room(const locus_model *model, int64_t tokens);
LOCUS_API LOCUS_MUST_CHECK locus_status
locus_model_attention_in(const locus_model *model, int64_t layer, const float *qkv, int64_t tokens,
                         float *room, locus_config *config, locus_tensors *in, locus_error *error);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_EXPLAIN_H
#define LOCUS_EXPLAIN_H

/* A score split into the terms it is a sum of, in double precision, from the same scheme
 * hooks as the oracle. Each term carries its scale, so the terms of a pair add up to the
 * logit that attention sees.
 *
 * An explainer never changes: threads may share one. It holds O(n) numbers; the pairs are
 * evaluated block by block into the caller's memory, so no n x n array exists unless the
 * caller asks for one. */

#include <locus/call.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct locus_explainer locus_explainer;

/* Prepare one call, as locus_oracle takes it: `level` is LOCUS_ATTEND or LOCUS_LAYER, inputs
 * are of any floating type. Projects, turns and widens; the tensors (and config->allocator) must
 * outlive the explainer. On failure *explainer is NULL and `error` says why. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_explainer_new(locus_explainer **explainer,
                                                            uint32_t level,
                                                            const locus_config *config,
                                                            const locus_tensors *in,
                                                            locus_error *error);
LOCUS_API void locus_explainer_free(locus_explainer *explainer); /* NULL is allowed */

typedef struct locus_explainer_info {
    uint32_t size; /* sizeof(locus_explainer_info) as the caller compiled it */
    int64_t batch, heads, queries, keys, head_dim;
    int64_t query_offset; /* query row i has position query_offset + i           */
    double scale;         /* c                                                    */
    size_t terms;         /* how many terms the score of this call has            */
    int64_t sequences;    /* of a ragged batch; 0: not ragged                     */
} locus_explainer_info;

/* Fill *info, whose size is set, up to that size. */
LOCUS_API void locus_explainer_describe(const locus_explainer *explainer,
                                        locus_explainer_info *info);

/* One term of the score: those that this call has, in a fixed order.
 *
 *     content            c q_m . k_n              every scheme but those below
 *     rotation           c q_m R_(n-m) k_n        rope, xpos: the only term
 *     content-position   c q_m . RK[row(m - n)]   Shaw keys, Transformer-XL, DeBERTa c2p
 *     u.k                c u . k_n                Transformer-XL
 *     w.r                c w . RK[row(m - n)]     Transformer-XL
 *     position-content   c RQ[row(m - n)] . k_n   DeBERTa p2c, relative_key_query
 *     position-position  c pq_m . pk_n            TUPE
 *     bias               b_h[m - n] or b_h(m, n)  T5, ALiBi, KERPLE, TUPE-R, distance, FIRE
 *     cls                cls_h                    TUPE: replaces the two before it in row and
 *                                                 column 0, where those are 0
 *     softcap            C tanh(s / C) - s        s = the sum so far; where the call has one
 *     bias_dense         bias_dense[m, n]         any scheme, where the call has one
 *
 * A layer that adds positions to its input (sinusoidal, learned) has the four terms of
 * (Wq x_m + Wq p_m) . (Wk x_n + Wk p_n), where x is x_scale x, and b_q and b_k count as
 * content: content, content-position, position-content, position-position. */
typedef struct locus_explainer_term {
    uint32_t place;      /* the LOCUS_TERM_ bit it belongs to; 0: bias_dense */
    const char *name;    /* as in the list above                             */
    const char *formula; /* plain text                                       */
} locus_explainer_term;

/* NULL beyond the end. */
LOCUS_API const locus_explainer_term *locus_explainer_term_at(const locus_explainer *explainer,
                                                              size_t index);

/* Query rows [query, query + queries) and keys [key, key + keys) of one head. In a ragged batch
 * these are rows of q and k: pairs of different sequences are hidden. */
typedef struct locus_explain_block {
    uint32_t size; /* sizeof(locus_explain_block) as the caller compiled it */
    int64_t batch, head;
    int64_t query, queries;
    int64_t key, keys;
} locus_explain_block;

/* Where the numbers go; NULL: not wanted. A pair that causal, window, masks or a -inf of
 * bias_dense hide has terms 0, score -inf, weight 0, visible 0. */
typedef struct locus_explained {
    uint32_t size;     /* sizeof(locus_explained) as the caller compiled it              */
    double *terms;     /* [terms][queries][keys]                                         */
    double *score;     /* [queries][keys]  the sum of the terms                          */
    uint8_t *visible;  /* [queries][keys]                                                */
    const double *lse; /* [queries]  of locus_explain_lse, for weights of a part of the keys;
                          NULL: the block holds all of them                             */
    double *weight;    /* [queries][keys]  exp(score - lse): after softmax, before dropout */
} locus_explained;

/* Neither of the two allocates. Rows are shared out among config->threads threads. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_explain(const locus_explainer *explainer,
                                                      const locus_explain_block *block,
                                                      const locus_explained *explained,
                                                      locus_error *error);

/* lse [queries] over all keys, whatever block->key and block->keys say: the natural log of
 * the sum of exp(score), the sink included; -inf for a row that sees neither. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_explain_lse(const locus_explainer *explainer,
                                                          const locus_explain_block *block,
                                                          double *lse, locus_error *error);

#ifdef __cplusplus
}
#endif
#endif

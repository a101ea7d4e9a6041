/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAYER_H
#define LOCUS_LAYER_H

/* The attention sublayer f(x, i) as the papers write it: positions added to x
 * where the scheme does so, projections, table projections, attention, output
 * projection. No residual, no norm. */

#include <locus/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct locus_layer locus_layer;

/* `shapes` holds x, w_q, w_k, w_v and whatever the scheme takes at the level
 * LOCUS_LAYER; config->heads is H.
 *
 * x, memory, weights, biases, tables and parameters (all but sink), and dout, are F32, F16 or BF16 in
 * any mix, the types that the layer was made for; halves are read exactly and computed in float, a
 * block at a time. out, lse and dlse may be any of the three; so may the gradient of a half tensor,
 * that of an F32 tensor is F32. A result is that of the same layer on floats, rounded once to the
 * nearest, ties to even. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_layer_new(locus_layer **layer,
                                                        const locus_config *config,
                                                        const locus_tensors *shapes,
                                                        locus_error *error);
LOCUS_API void locus_layer_free(locus_layer *layer);

/* The plan of the attention inside; lives as long as the layer. */
LOCUS_API const locus_plan *locus_layer_plan(const locus_layer *layer);

/* `saved` carries q, k, v, the projected tables and the attention output from
 * the forward pass to the backward pass; the caller owns it. Like a workspace it begins at a
 * multiple of 8 bytes, and it may be moved in between. */
LOCUS_API size_t locus_layer_saved_bytes(const locus_layer *layer);
LOCUS_API size_t locus_layer_forward_workspace(const locus_layer *layer);
LOCUS_API size_t locus_layer_backward_workspace(const locus_layer *layer);

/* out [B,T,E] with w_o, else [B,T,H*Dv]; lse [B,H,T]. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_layer_forward(
    const locus_layer *layer, const locus_tensors *in, const locus_results *results, void *saved,
    size_t saved_bytes, void *workspace, size_t workspace_bytes, locus_error *error);

/* Gradients of sum(out * dresults.out) + sum(lse * dresults.lse), as locus_backward. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_layer_backward(
    const locus_layer *layer, const locus_tensors *in, const locus_results *dresults,
    const locus_tensors *grad, uint32_t flags, const void *saved, size_t saved_bytes,
    void *workspace, size_t workspace_bytes, locus_error *error);

/* What a layer makes of its parameters alone, made once: projected tables (W_r R, W_k P), packed
 * relative tables, biases by distance. It changes when they do: where a content projection makes a
 * table (DeBERTa without w_rk, w_rq), when that changes. The handle is immutable: calls and
 * threads share it. It belongs to `layer`, which must outlive it. Of `in`, parameters are read; x,
 * memory, masks and bias_dense are there by their shapes, data or not. */
typedef struct locus_layer_tables locus_layer_tables;
#define LOCUS_TABLES_BACKWARD 1u /* for locus_layer_backward_prepared, too */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_layer_tables_new(locus_layer_tables **tables,
                                                               const locus_layer *layer,
                                                               const locus_tensors *in,
                                                               uint32_t flags, locus_error *error);
LOCUS_API void locus_layer_tables_free(locus_layer_tables *tables); /* NULL is allowed */

/* The calls above, to the same bits, on tables that were made before. `saved` then holds no
 * projected tables: after a prepared forward pass, only a prepared backward pass takes it. That one
 * takes what either has saved. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_layer_forward_prepared(
    const locus_layer *layer, const locus_layer_tables *tables, const locus_tensors *in,
    const locus_results *results, void *saved, size_t saved_bytes, void *workspace,
    size_t workspace_bytes, locus_error *error);
LOCUS_API LOCUS_MUST_CHECK locus_status locus_layer_backward_prepared(
    const locus_layer *layer, const locus_layer_tables *tables, const locus_tensors *in,
    const locus_results *dresults, const locus_tensors *grad, uint32_t flags, const void *saved,
    size_t saved_bytes, void *workspace, size_t workspace_bytes, locus_error *error);

#ifdef __cplusplus
}
#endif
#endif

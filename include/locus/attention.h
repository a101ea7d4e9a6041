/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_H
#define LOCUS_ATTENTION_H

/* Position-aware attention on given q, k, v: plan, workspace, forward, backward.
 *
 * A plan is immutable: any number of threads may share one. Compute calls take
 * a workspace from the caller and never allocate, print, exit or read global
 * state. Results have the same bits for any thread count and batch position.
 *
 * q, k, v, dout, tables and parameters (all but sink) are F32, F16 or BF16 in any mix, the types
 * that the plan was made for; halves are read exactly and computed in float. out may be any of the
 * three, rounded once to the nearest, ties to even; so may lse, but backward takes an F32 one, and
 * is as exact as the `out` that it is given. The gradient of a half tensor may be any of the three,
 * that of an F32 tensor is F32. */

#include <locus/call.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct locus_plan locus_plan;

/* Resolve the scheme and precompute what depends on shapes alone. `shapes` holds
 * the tensors of the calls to come. Their data is not read, except that of the
 * LOCUS_USE_PLAN tensors (offsets, positions, frequencies, rows), of which the plan
 * keeps a copy: calls need them in place, with the same shapes, and do not read them.
 * On failure *plan is NULL and `error` says which tensor or option, what was found and
 * what was expected. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_plan_new(locus_plan **plan,
                                                       const locus_config *config,
                                                       const locus_tensors *shapes,
                                                       locus_error *error);
LOCUS_API void locus_plan_free(locus_plan *plan); /* NULL is allowed */

/* Another seed for the dropout of the calls to come, as if the plan had been made with it. Not
 * while a call runs on the plan. */
LOCUS_API void locus_plan_reseed(locus_plan *plan, uint64_t dropout_seed);

/* What a plan decided, for curious callers. Texts live as long as the plan. */
typedef struct locus_plan_info {
    uint32_t size;    /* sizeof(locus_plan_info) as the caller compiled it   */
    uint32_t threads; /* that its calls use                                  */
    int64_t batch, heads, kv_heads, queries, keys, head_dim, value_dim;
    int64_t query_offset;
    double scale;
    const char *isa;   /* the kernel table in use                */
    const char *path;  /* "tiles": keys packed, many queries; "rows": keys read in place */
    int64_t sequences; /* of a ragged batch; 0: not ragged       */
} locus_plan_info;

/* Fill *info, whose size is set, up to that size. */
LOCUS_API void locus_plan_describe(const locus_plan *plan, locus_plan_info *info);

/* Bytes that locus_forward / locus_backward need. O(n) per thread, never n^2. A workspace begins at
 * a multiple of 8 bytes, as malloc's memory does; another address is refused. */
LOCUS_API size_t locus_forward_workspace(const locus_plan *plan);
LOCUS_API size_t locus_backward_workspace(const locus_plan *plan);

LOCUS_API LOCUS_MUST_CHECK locus_status locus_forward(const locus_plan *plan,
                                                      const locus_tensors *in,
                                                      const locus_results *results, void *workspace,
                                                      size_t workspace_bytes, locus_error *error);

/* Tables that do not change from call to call, packed once: relative tables, position
 * projections, biases by distance; halves as floats. The handle is immutable: calls, threads and
 * batch entries share it. It belongs to `plan`, which must outlive it. Of `in`, tables and
 * parameters are read; q, k, v, masks and bias_dense are there by their shapes, data or not. */
typedef struct locus_tables locus_tables;
LOCUS_API LOCUS_MUST_CHECK locus_status locus_tables_new(locus_tables **tables,
                                                         const locus_plan *plan,
                                                         const locus_tensors *in,
                                                         locus_error *error);
LOCUS_API void locus_tables_free(locus_tables *tables); /* NULL is allowed */

/* locus_forward, to the same bits, without packing tables: those of `in` must hold what they
 * held when `tables` was made. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_forward_prepared(
    const locus_plan *plan, const locus_tables *tables, const locus_tensors *in,
    const locus_results *results, void *workspace, size_t workspace_bytes, locus_error *error);

/* What locus_backward_prepared takes: backward, tables are read in another form. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_tables_new_backward(locus_tables **tables,
                                                                  const locus_plan *plan,
                                                                  const locus_tensors *in,
                                                                  locus_error *error);

/* Add to the gradients instead of overwriting them. */
#define LOCUS_ACCUMULATE 1u

/* Gradients of sum(out * dresults.out) + sum(lse * dresults.lse), the second only where
 * dresults.lse is present; a row whose lse is -inf adds nothing. `results` are those of
 * locus_forward on the same `in`. Only tensors present in `grad` are computed; the rest
 * cost nothing. */
LOCUS_API LOCUS_MUST_CHECK locus_status
locus_backward(const locus_plan *plan, const locus_tensors *in, const locus_results *results,
               const locus_results *dresults, const locus_tensors *grad, uint32_t flags,
               void *workspace, size_t workspace_bytes, locus_error *error);

/* locus_backward, to the same bits, without packing tables; their gradients come out as there. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_backward_prepared(
    const locus_plan *plan, const locus_tables *tables, const locus_tensors *in,
    const locus_results *results, const locus_results *dresults, const locus_tensors *grad,
    uint32_t flags, void *workspace, size_t workspace_bytes, locus_error *error);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_H
#define LOCUS_ATTENTION_H

/* Position-aware attention on given q, k, v: plan, workspace, forward, backward.
 *
 * A plan is immutable: any number of threads may share one. Compute calls take
 * a workspace from the caller and never allocate, print, exit or read global
 * state. Results have the same bits for any thread count and batch position. */

#include <locus/scheme.h>
#include <locus/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOCUS_NO_WINDOW (-1)

/* How to attend. Start from locus_config_init. */
typedef struct locus_config {
    uint32_t size;         /* sizeof(locus_config) as the caller compiled it             */
    const char *scheme;    /* one of locus_scheme_at(i)->name                            */
    locus_options options; /* of that scheme                                             */
    uint32_t heads;        /* H; needed by layers only                                   */
    uint32_t causal;       /* 1: the query at position m sees keys n <= m                */
    int64_t window_left;   /* keep n - m >= -window_left;  LOCUS_NO_WINDOW = no limit    */
    int64_t window_right;  /* keep n - m <=  window_right; LOCUS_NO_WINDOW = no limit    */
    uint32_t offset_given; /* 1: query_offset holds; 0: it is Tk - Tq                    */
    int64_t query_offset;  /* position of query row 0; key row 0 is position 0           */
    uint32_t scale_given;  /* 1: scale holds; 0: the scheme's own                        */
    double scale;          /* multiplies the content and position products               */
    double dropout;        /* p in [0, 1): weights dropped, the rest divided by 1 - p    */
    uint64_t dropout_seed; /* of Philox4x32-10; see docs/formats.md                      */
    uint32_t threads;      /* 0: what OpenMP offers                                      */
    const char *isa;       /* ceiling: "generic", ...; NULL: the best of this CPU        */
    const char *path;      /* "tiles" or "rows"; NULL: chosen by the shapes             */
    const locus_allocator *allocator; /* NULL: malloc                                     */
} locus_config;

/* Defaults for `scheme`: everything visible, the scheme's own scale and options. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_config_init(locus_config *config, const char *scheme);

typedef struct locus_plan locus_plan;

/* Resolve the scheme and precompute what depends on shapes alone. `shapes` holds
 * the tensors of the calls to come; their data pointers are not read. On failure
 * *plan is NULL and `error` says which tensor or option, what was found and what
 * was expected. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_plan_new(locus_plan **plan,
                                                       const locus_config *config,
                                                       const locus_tensors *shapes,
                                                       locus_error *error);
LOCUS_API void locus_plan_free(locus_plan *plan); /* NULL is allowed */

/* What a plan decided, for curious callers. */
typedef struct locus_plan_info {
    uint32_t size;
    int64_t batch, heads, kv_heads, queries, keys, head_dim, value_dim;
    int64_t query_offset;
    double scale;
    uint32_t threads;
    const char *isa;  /* the kernel table in use                */
    const char *path; /* "tiles": keys packed, many queries; "rows": keys as they lie */
} locus_plan_info;
LOCUS_API void locus_plan_describe(const locus_plan *plan, locus_plan_info *info);

/* Bytes that locus_forward / locus_backward need. O(n) per thread, never n^2. A workspace begins at
 * a multiple of 8 bytes, as malloc's memory does; another address is refused. */
LOCUS_API size_t locus_forward_workspace(const locus_plan *plan);
LOCUS_API size_t locus_backward_workspace(const locus_plan *plan);

/* out [B,H,Tq,Dv], lse [B,H,Tq] (natural log of the sum of the exponentials of the
 * logits; -inf for a row that sees no key). Both are required, both F32. Outputs, gradients too, must
 * not overlap an input, each other or themselves: no stride of 0, no rows that reach into the next. */
typedef struct locus_results {
    locus_tensor out;
    locus_tensor lse;
} locus_results;

LOCUS_API LOCUS_MUST_CHECK locus_status locus_forward(const locus_plan *plan,
                                                      const locus_tensors *in,
                                                      const locus_results *results, void *workspace,
                                                      size_t workspace_bytes, locus_error *error);

/* Tables that do not change from call to call, packed once: relative tables, position
 * projections, biases by distance. The handle is immutable: calls, threads and batch entries
 * share it. It belongs to `plan`, which must outlive it. */
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

/* Add to the gradients instead of overwriting them. */
#define LOCUS_ACCUMULATE 1u

/* Gradients of sum(out * dout). `results` are those of locus_forward on the same
 * `in`. Only tensors present in `grad` are computed; the rest cost nothing. */
LOCUS_API LOCUS_MUST_CHECK locus_status
locus_backward(const locus_plan *plan, const locus_tensors *in, const locus_results *results,
               const locus_tensor *dout, const locus_tensors *grad, uint32_t flags, void *workspace,
               size_t workspace_bytes, locus_error *error);

/* ---- the rules of a call, for pictures, tests and other people's code ---- */

/* Which row serves the distances first .. first + count - 1 (m - n): of the relative tables in
 * rows[count], of the tensor `bias` in bias_rows[count]; -1 where there is none. Either may be
 * NULL. `level` and `shapes` as for locus_oracle; data is not read. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_call_rows(uint32_t level, const locus_config *config,
                                                        const locus_tensors *shapes, int64_t first,
                                                        size_t count, int64_t *rows,
                                                        int64_t *bias_rows, locus_error *error);

/* How rope and xpos turn: pair t of a row at position p by p * frequency[t], with q multiplied
 * by exp(p log_gain[t]) and k by exp(-p log_gain[t]). *pairs is the room in the arrays before
 * and the number of pairs after, 0 for schemes that do not turn. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_call_turns(uint32_t level, const locus_config *config,
                                                         const locus_tensors *shapes, size_t *pairs,
                                                         double *frequency, double *log_gain,
                                                         locus_error *error);

#ifdef __cplusplus
}
#endif
#endif

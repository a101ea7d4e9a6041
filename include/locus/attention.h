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

/* How to attend. Start from locus_config_init. The library keeps copies: scheme, isa and
 * path need not outlive the call that they are passed to; the allocator must. */
typedef struct locus_config {
    uint32_t size;         /* sizeof(locus_config) as the caller compiled it             */
    uint32_t causal;       /* 1: the query at position m sees keys n <= m                */
    const char *scheme;    /* one of locus_scheme_at(i)->name                            */
    uint32_t heads;        /* H; needed by layers only                                   */
    uint32_t threads;      /* 0: what OpenMP offers                                      */
    int64_t window_left;   /* keep n - m >= -window_left;  LOCUS_NO_WINDOW = no limit    */
    int64_t window_right;  /* keep n - m <=  window_right; LOCUS_NO_WINDOW = no limit    */
    int64_t query_offset;  /* position of query row 0, key row 0 is position 0;
                              LOCUS_UNSET: Tk - Tq                                       */
    double scale;          /* multiplies the content and position products;
                              LOCUS_UNSET_REAL: the scheme's own                         */
    double softcap;        /* > 0: s becomes softcap tanh(s / softcap), before bias_dense,
                              masks and sink; LOCUS_UNSET_REAL: it does not              */
    double dropout;        /* p in [0, 1): weights dropped, the rest divided by 1 - p    */
    uint64_t dropout_seed; /* of Philox4x32-10; see docs/formats.md                      */
    const char *isa;       /* ceiling: "generic", ...; NULL: the best of this CPU        */
    const char *path;      /* "tiles" or "rows"; NULL: chosen by the shapes              */
    const locus_allocator *allocator; /* NULL: malloc                                    */
    uint64_t reserved[8];  /* 0; later versions give them names                          */
    locus_options options; /* of that scheme; last, so that it can grow                  */
} locus_config;

/* Defaults for `scheme`: everything visible, the scheme's own scale and options. The
 * second is for callers without this header: the sizes are those of their structs. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_config_init_sized(locus_config *config, size_t size,
                                                                size_t options_size,
                                                                const char *scheme);
LOCUS_MUST_CHECK static inline locus_status locus_config_init(locus_config *config,
                                                              const char *scheme)
{
    return locus_config_init_sized(config, sizeof *config, sizeof config->options, scheme);
}

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

/* out [B,H,Tq,Dv], lse [B,H,Tq] (natural log of the sum of the exponentials of the
 * logits; -inf for a row that sees no key and has no sink). Both are required. Outputs, gradients
 * too, must not overlap an input, each other or themselves: no stride of 0, no rows that reach into
 * the next. The same struct carries the gradients of both, of which lse may be absent. */
typedef struct locus_results {
    uint32_t size;     /* sizeof(locus_results) as the caller compiled it */
    uint32_t reserved; /* 0                                               */
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

/* Gradients of sum(out * dresults.out) + sum(lse * dresults.lse), the second only where
 * dresults.lse is present; a row whose lse is -inf adds nothing. `results` are those of
 * locus_forward on the same `in`. Only tensors present in `grad` are computed; the rest
 * cost nothing. */
LOCUS_API LOCUS_MUST_CHECK locus_status
locus_backward(const locus_plan *plan, const locus_tensors *in, const locus_results *results,
               const locus_results *dresults, const locus_tensors *grad, uint32_t flags,
               void *workspace, size_t workspace_bytes, locus_error *error);

/* ---- the rules of a call, for pictures, tests and other people's code ---- */

/* Which row serves the distances first .. first + count - 1 (m - n): of the relative tables in
 * rows[count], of the tensor `bias` in bias_rows[count]; -1 where there is none. Either may be
 * NULL. `level` and `shapes` as for locus_oracle; data is read as locus_plan_new reads it. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_call_rows(uint32_t level, const locus_config *config,
                                                        const locus_tensors *shapes, int64_t first,
                                                        size_t count, int64_t *rows,
                                                        int64_t *bias_rows, locus_error *error);

/* How rope and xpos turn: pair t of a row at position p by p * frequency[t] (with several axes:
 * p is the position on the axis t / (pairs / axes)), with q multiplied
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

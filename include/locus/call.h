/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CALL_H
#define LOCUS_CALL_H

/* One call of attention, whoever computes it: how to attend, what comes of it, and the rules
 * that follow from both. */

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
    int64_t query_offset;  /* position of query row 0; LOCUS_UNSET: Tk - Tq, counted from
                              key row 0, whose position is key_offset                    */
    double scale;          /* multiplies the content and position products;
                              LOCUS_UNSET_REAL: the scheme's own                         */
    double softcap;        /* > 0: s becomes softcap tanh(s / softcap), before bias_dense,
                              masks and sink; LOCUS_UNSET_REAL: it does not              */
    double dropout;        /* p in [0, 1): weights dropped, the rest divided by 1 - p    */
    uint64_t dropout_seed; /* of Philox4x32-10; see docs/formats.md                      */
    const char *isa;       /* ceiling: "generic", ...; NULL: the best of this CPU        */
    const char *path;      /* "tiles" or "rows"; NULL: chosen by the shapes              */
    const locus_allocator *allocator; /* NULL: malloc                                    */
    /* A call may be a part of a larger one: some of its query rows, some of its keys. */
    int64_t key_offset;    /* position of key row 0, 0 for whole calls; dropout counts keys
                              from it                                                    */
    int64_t first_query;   /* dropout counts query rows from it, 0 for whole calls       */
    int64_t first_batch;   /* and batch entries from it                                  */
    uint64_t reserved[5];  /* 0; later versions give them names                          */
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

/* out [B,H,Tq,Dv], lse [B,H,Tq] (natural log of the sum of the exponentials of the
 * logits; -inf for a row that sees no key and has no sink). Both are required. Outputs, gradients
 * too, must not overlap an input, each other or themselves: no stride of 0, no rows that reach into
 * the next. The same struct carries the gradients of both, of which lse may be absent. */
typedef struct locus_results {
    uint32_t size;     /* sizeof(locus_results) as the caller compiled it */
    uint32_t reserved; /* 0                                               */
    locus_tensor out;
    locus_tensor lse;
    /* [B,H,Tq] F32, may be absent: what lse lost when it was rounded, so that lse + lse_low has
     * about 48 bits and the results of calls over parts of the keys can be joined. Backward calls
     * that are given it take out, lse and lse_low as they are: they may be those of a softmax over
     * more keys than the call has. Attention only; no gradient. */
    locus_tensor lse_low;
    /* [B,H,Tq,Tk] F32, may be absent; calls of at most LOCUS_KEPT_WEIGHTS queries and as many keys.
     * The weights of the softmax, before dropout. Forward writes them; a backward call that is given
     * them computes no scores again, which is one product of five: for short sequences, whose
     * weights are hardly larger than out. Attention only; not with a ragged batch; no gradient. */
    locus_tensor weights;
} locus_results;

#define LOCUS_KEPT_WEIGHTS 192

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

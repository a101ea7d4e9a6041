/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TENSOR_H
#define LOCUS_TENSOR_H

/* Tensor views, and the one struct that names every tensor of a call. */

#include <locus/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOCUS_MAX_RANK 4

typedef enum locus_dtype {
    LOCUS_F32 = 0, /* float                                                   */
    LOCUS_F64,     /* double: the oracle's inputs and results                 */
    LOCUS_U8,      /* masks: 1 = takes part, 0 = does not                     */
    LOCUS_I64,     /* offsets of ragged batches, positions, maps of distances */
    LOCUS_F16,     /* IEEE half precision                                     */
    LOCUS_BF16,    /* the upper half of a float                               */
} locus_dtype;

/* A borrowed view. `stride` counts elements, not bytes; the last axis of a
 * floating tensor must have stride 1 wherever its extent is above 1; integer
 * tensors are dense. rank 0 means "absent" (so a zeroed struct holds no tensors).
 * This struct never grows. */
typedef struct locus_tensor {
    void *data;
    locus_dtype dtype;
    uint32_t rank;
    int64_t shape[LOCUS_MAX_RANK];
    int64_t stride[LOCUS_MAX_RANK];
} locus_tensor;

/* Parameters that only one scheme has stand in `own`; its declaration says where
 * (locus_tensor_named finds them by name). */
#define LOCUS_OWN_TENSORS 16

/* Every tensor that a call may have, at both levels; the declarations
 * (locus_common_tensor, locus_scheme_tensor) say which level and scheme takes which,
 * in which type and shape. Absent ones stay zeroed. A gradient has the shape of the
 * thing it is the gradient of, so the same type carries both: in.q and grad.q.
 * Later versions append fields; their order means nothing.
 *
 *     locus_tensors in = {.size = sizeof in, .q = ..., .k = ..., .v = ...};
 *
 * m = query position, n = key position; see docs/schemes.md for the formulas. */
typedef struct locus_tensors {
    uint32_t size;           /* sizeof(locus_tensors) as the caller compiled it         */
    uint32_t reserved;       /* 0                                                       */
    locus_tensor q;          /* [B,H,Tq,D]                                              */
    locus_tensor k;          /* [B,Hk,Tk,D]   head h reads KV head h / (H/Hk)           */
    locus_tensor v;          /* [B,Hk,Tk,Dv]                                            */
    locus_tensor rel_k;      /* [R,D] or [H,R,D]  dotted with q_m                       */
    locus_tensor rel_q;      /* [R,D] or [H,R,D]  dotted with k_n                       */
    locus_tensor rel_v;      /* [R,Dv]            added to v_n                          */
    locus_tensor u, w;       /* [H,D]             Transformer-XL's two biases           */
    locus_tensor bias;       /* [buckets,H], [H,R] or [R,H]  by distance                */
    locus_tensor pos_q;      /* [H,>=T,D]         row = position                        */
    locus_tensor pos_k;      /* [H,>=T,D]                                               */
    locus_tensor cls;        /* [2,H]             TUPE's reset                          */
    locus_tensor slopes;     /* [H]               ALiBi                                 */
    locus_tensor a, p;       /* [H]               KERPLE                                */
    locus_tensor bias_dense; /* [B or 1, H or 1, Tq, Tk]  -inf masks the pair           */
    locus_tensor key_mask;   /* [B,Tk] U8                                               */
    locus_tensor mask;       /* [B or 1, H or 1, Tq, Tk] U8                             */
    locus_tensor sink;       /* [H]               joins the sum below the softmax       */
    /* read when a plan is made, not by its calls */
    locus_tensor q_offsets;   /* [S+1] I64  rows offsets[s] .. offsets[s+1]-1 of q are  */
    locus_tensor k_offsets;   /* [S+1] I64  sequence s of a ragged batch; k, v likewise */
    locus_tensor rows;        /* [N] I64    the row that serves distance delta_min + i  */
    locus_tensor frequencies; /* [width/2]  rope, xpos: instead of `base`               */
    locus_tensor q_positions; /* [Tq] or [1 or B,Tq] I64, a last axis where there are several */
    locus_tensor k_positions; /* the same for the keys                                  */
    /* layers */
    locus_tensor x;             /* [B,T,E]                                    */
    locus_tensor memory;        /* [B,M,E]   keys and values only             */
    locus_tensor w_q, w_k, w_v; /* [H*D,E]   stored [out,in]                  */
    locus_tensor b_q, b_k, b_v; /* [H*D]                                      */
    locus_tensor w_o;           /* [E,H*D]                                    */
    locus_tensor b_o;           /* [E]                                        */
    locus_tensor pos;           /* [>=T,E]   learned, TUPE                    */
    locus_tensor rel;           /* [2S,E]    DeBERTa                          */
    locus_tensor w_r;           /* [H*D,E]   Transformer-XL; [H*F,E] pos_query */
    locus_tensor w_pq, w_pk;    /* [H*D,E]   TUPE                             */
    locus_tensor b_pq, b_pk;    /* [H*D]                                      */
    locus_tensor w_rk, w_rq;    /* [H*D,E]   DeBERTa's own projections        */
    locus_tensor b_rk, b_rq;    /* [H*D]                                      */
    locus_tensor own[LOCUS_OWN_TENSORS];
    /* positions that a query says itself */
    locus_tensor pos_query; /* [B,H,Tq,F]  dotted with rel_k in the place of q          */
    locus_tensor gate;      /* [B,H,Tq]    multiplies the bias by distance              */
    locus_tensor b_r;       /* [H*D] or [H*F]  layers: beside w_r                       */
    /* gates: pair (m, n) has the sum of those of the positions n + 1 .. m */
    locus_tensor log_gate; /* [B,H,N]          one per position; N covers all positions  */
    locus_tensor w_f, b_f; /* [H,E], [H]       layers: log_gate = ln sigmoid(w_f x + b_f) */
} locus_tensors;

/* The same tensors by number: for code that walks over all of them (files, bindings,
 * tests). The count is that of the caller's headers; locus_tensor_at gives NULL for a
 * tensor that `tensors`, by its size, does not hold. */
#define LOCUS_TENSOR_COUNT                                                                         \
    ((sizeof(locus_tensors) - offsetof(locus_tensors, q)) / sizeof(locus_tensor))

LOCUS_API const char *locus_tensor_name(size_t index); /* NULL beyond the end; "own": unused */
LOCUS_API int locus_tensor_index(const char *name);    /* -1: no such tensor                */
LOCUS_API locus_tensor *locus_tensor_at(locus_tensors *tensors, size_t index);
LOCUS_API const locus_tensor *locus_tensor_at_const(const locus_tensors *tensors, size_t index);

/* By name: *locus_tensor_named(&in, "bias") is in.bias. NULL: no such tensor. */
LOCUS_API locus_tensor *locus_tensor_named(locus_tensors *tensors, const char *name);

/* "F32", "BF16", ... as files spell it; NULL for other numbers. */
LOCUS_API const char *locus_dtype_name(locus_dtype dtype);
LOCUS_API size_t locus_dtype_bytes(locus_dtype dtype);

/* A dense row-major view: locus_view(p, LOCUS_F32, 3, (int64_t[]){H, R, D}). */
LOCUS_API locus_tensor locus_view(void *data, locus_dtype dtype, uint32_t rank,
                                  const int64_t *shape);

/* Views of [B,H,T,D] on memory laid out as (B,H,T,D) or as (B,T,H,D). */
LOCUS_API locus_tensor locus_view_bhtd(float *data, int64_t B, int64_t H, int64_t T, int64_t D);
LOCUS_API locus_tensor locus_view_bthd(float *data, int64_t B, int64_t T, int64_t H, int64_t D);

/* Elements of a view (the product of its shape; 0 when absent). */
LOCUS_API int64_t locus_tensor_elements(const locus_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif

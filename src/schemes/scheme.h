/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_SCHEMES_SCHEME_H
#define LOCUS_SCHEMES_SCHEME_H

/* A scheme as the library sees it: the public declaration plus hooks in double
 * precision. Hooks are pure; an absent hook means that the scheme does not act
 * there. The oracle calls them per (m, n); attention/ lowers them to tables.
 *
 * Signs: delta = m - n, query position minus key position, everywhere. Rules that
 * the papers write with rho = n - m negate it inside their own file. */

#include <locus/attention.h>
#include <locus/scheme.h>
#include <locus/tensor.h>

struct locus_scheme;

/* One call with everything checked and resolved. Never changes afterwards. */
typedef struct locus_call {
    const struct locus_scheme *scheme;
    uint32_t level; /* LOCUS_ATTEND or LOCUS_LAYER                              */
    locus_options options;
    int64_t B, H, Hk;     /* batch, query heads, key/value heads               */
    int64_t Tq, Tk;       /* query rows, key rows                              */
    int64_t D, Dv;        /* width of q and k, width of v                      */
    int64_t E, T, M;      /* layers: model width, rows of x, rows of memory    */
    int64_t R;            /* rows of the relative tables (of attend)           */
    int64_t pairs;        /* channel pairs that are turned, 0 = no rotation    */
    int64_t query_offset; /* position of query row 0                           */
    int64_t least, most;  /* delta of the pairs that causal and window let
                               through: [least, most], empty when least > most   */
    double scale;
    double dropout;
    uint64_t dropout_seed;
    uint32_t threads;
} locus_call;

/* A table that a layer projects from its own parameters: `table` = source W^T + b,
 * split into heads. `weight` falls back to `shared_weight` (with `shared_bias`)
 * where the file brings none of its own. Fields are offsets into locus_tensors;
 * LOCUS_SINUSOID as a source means rows of the sinusoid of the distance. */
typedef struct locus_projection {
    size_t table;  /* rel_k, rel_q, pos_q or pos_k                  */
    size_t source; /* rel, pos, or LOCUS_SINUSOID                   */
    size_t weight, bias;
    size_t shared_weight, shared_bias; /* LOCUS_NO_TENSOR: none     */
} locus_projection;

#define LOCUS_NO_TENSOR SIZE_MAX
#define LOCUS_SINUSOID (SIZE_MAX - 1)

typedef struct locus_scheme {
    locus_scheme_info info;

    /* Rules that no declaration can say, e.g. which rows must exist; sets call->R
     * and call->pairs. */
    locus_status (*check)(locus_call *call, const locus_tensors *shapes, locus_error *error);

    double (*default_scale)(const locus_call *call, const locus_tensors *shapes);

    /* The table row that serves distance delta; the same for all tables. */
    int64_t (*row)(const locus_call *call, int64_t delta);

    /* b_h(delta), unscaled; and its pull-back: grad += ds * db/dparameter, where the
     * tensors of `grad` are dense F64 (absent ones are skipped). */
    double (*bias)(const locus_call *call, const locus_tensors *in, int64_t head, int64_t delta);
    void (*bias_grad)(const locus_call *call, const locus_tensors *in, int64_t head, int64_t delta,
                      double ds, const locus_tensors *grad);

    /* The same for distances delta, delta - 1, ...: `count` of them; NULL: one by one. */
    void (*bias_run)(const locus_call *call, const locus_tensors *in, int64_t head, int64_t delta,
                     int64_t count, float *values);

    /* Where the bias is a look-up in the tensor `bias`: b_h(delta) = bias[bias_row(delta)][h].
     * attention/ evaluates the rule once per plan instead of once per head and call. */
    int64_t (*bias_row)(const locus_call *call, int64_t delta);

    /* Pair t of a row at position p turns by p * frequency; q is multiplied by
     * exp(p * log_gain), k by exp(-p * log_gain). */
    void (*turn)(const locus_call *call, int64_t pair, double *frequency, double *log_gain);

    /* p_i of row i of x, width E; the input becomes x_scale x + p_i. */
    void (*embed)(const locus_call *call, const locus_tensors *in, int64_t i, double *row);

    /* Offsets into locus_tensors of the tables behind three of the terms. */
    size_t key_table;   /* RK: dotted with q + w */
    size_t query_table; /* RQ: dotted with k     */
    size_t value_table; /* RV: added to v        */

    const locus_projection *projections; /* for layers; ends with table = LOCUS_NO_TENSOR */
} locus_scheme;

const locus_scheme *locus_scheme_lookup(const char *name);

/* LOCUS_ERR_SCHEME, with what `name` (NULL is allowed) may have meant. */
locus_status locus_unknown_scheme(const char *name, locus_error *error);

/* The tensor at an offset of locus_tensors; NULL for LOCUS_NO_TENSOR and for a
 * tensor that is absent. */
const locus_tensor *locus_tensor_slot(const locus_tensors *tensors, size_t offset);

/* Check a whole call: config, options, tensors (none missing, none unknown to the
 * scheme, all of the right shape and type), table rows. Data is not read. */
locus_status locus_call_resolve(locus_call *call, uint32_t level, const locus_config *config,
                                const locus_tensors *shapes, locus_error *error);

/* Describe the attention inside a layer: *inner is the call at level LOCUS_ATTEND.
 * `outer` must be a resolved layer call. */
void locus_call_inner(locus_call *inner, const locus_call *outer);

/* The two columns of pair t. */
void locus_pair_columns(const locus_call *call, int64_t pair, int64_t *first, int64_t *second);

/* 1 when causal and window let the pair at distance delta through. */
static inline int locus_in_window(const locus_call *call, int64_t delta)
{
    return delta >= call->least && delta <= call->most;
}

/* ---- building blocks shared by several schemes ---- */

double locus_scale_plain(const locus_call *call, const locus_tensors *shapes); /* 1/sqrt(D) */

/* floor(power * log(x / unit) / log(most / unit)) for 1 <= unit <= x, unit < most,
 * decided in integers; *exact is 1 when the quotient is a whole number. */
int64_t locus_log_steps(int64_t x, int64_t unit, int64_t most, int64_t power, int *exact);

/* The base that RoPE and xPos share. */
locus_status locus_check_base(const locus_call *call, locus_error *error);

/* The bucketed bias that T5 and TUPE share. */
int64_t locus_t5_bias_row(const locus_call *call, int64_t delta);
locus_status locus_check_t5_options(const locus_call *call, locus_error *error);
double locus_t5_bias(const locus_call *call, const locus_tensors *in, int64_t head, int64_t delta);
void locus_t5_bias_grad(const locus_call *call, const locus_tensors *in, int64_t head,
                        int64_t delta, double ds, const locus_tensors *grad);

/* clang-format off */
#define LOCUS_OPTION_END {.name = NULL}
#define LOCUS_TENSOR_END {.name = NULL}
#define LOCUS_PROJECTION_END {.table = LOCUS_NO_TENSOR}
/* The base of the frequencies, for both rotations. */
#define LOCUS_BASE_OPTION                                                                          \
    {                                                                                              \
        .name = "base",                                                                            \
        .help = "of the geometric series of frequencies",                                          \
        .kind = LOCUS_OPTION_REAL, .levels = LOCUS_BOTH,                                           \
        .minimum = 1e-30, .maximum = 1e30, .preset = 10000.0,                                      \
        .offset = offsetof(locus_options, base),                                                   \
    }
/* T5's rule, for T5 itself and for TUPE beside its optional bias. */
#define LOCUS_BUCKET_OPTIONS(beside)                                                               \
    {                                                                                              \
        .name = "buckets",                                                                         \
        .help = "rows of the bias table; even when bidirectional",                                 \
        .kind = LOCUS_OPTION_INTEGER, .levels = LOCUS_BOTH, .with = (beside),                      \
        .minimum = 2, .maximum = 65536, .preset = 32, .offset = offsetof(locus_options, buckets),  \
    },                                                                                             \
    {                                                                                              \
        .name = "max_distance",                                                                    \
        .help = "distances from here on share the last bucket",                                    \
        .kind = LOCUS_OPTION_INTEGER, .levels = LOCUS_BOTH, .with = (beside),                      \
        .minimum = 1, .maximum = 1 << 20, .preset = 128,                                           \
        .offset = offsetof(locus_options, max_distance),                                           \
    },                                                                                             \
    {                                                                                              \
        .name = "bidirectional",                                                                   \
        .help = "1: keys after the query have buckets of their own; 0: they share bucket 0",       \
        .kind = LOCUS_OPTION_INTEGER, .levels = LOCUS_BOTH, .with = (beside),                      \
        .minimum = 0, .maximum = 1, .preset = 1,                                                   \
        .offset = offsetof(locus_options, bidirectional),                                          \
    }
/* clang-format on */
#define LOCUS_BOTH (LOCUS_ATTEND | LOCUS_LAYER)
#define LOCUS_NO_TABLES                                                                            \
    .key_table = LOCUS_NO_TENSOR, .query_table = LOCUS_NO_TENSOR, .value_table = LOCUS_NO_TENSOR

#endif

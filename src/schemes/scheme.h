/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_SCHEMES_SCHEME_H
#define LOCUS_SCHEMES_SCHEME_H

/* A scheme as the library sees it: the public declaration plus hooks in double
 * precision. Hooks are pure; an absent hook means that the scheme does not act
 * there. The oracle calls them per (m, n); attention/ lowers them to tables.
 *
 * Signs: delta = m - n, query position minus key position, everywhere. Rules that
 * the papers write with rho = n - m negate it inside their own file. */

#include <locus/call.h>
#include <locus/scheme.h>
#include <locus/tensor.h>

struct locus_scheme;

enum { LOCUS_MAX_WIDTH = 1024 }; /* of a head */

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
    int64_t query_offset; /* position of query row 0, counted from key row 0
                             (ragged: of each sequence's where it was given,
                             else LOCUS_UNSET)                                 */
    int64_t key_offset;   /* position of key row 0 in a larger call; positions
                             here count from it                                */
    int64_t first_query;  /* what dropout adds to query rows                   */
    int64_t first_batch;  /* and to batch entries                              */
    int64_t least, most;  /* delta of the pairs that causal and window let
                             through: [least, most], empty when least > most;
                             of all sequences of a ragged batch                */
    int64_t low, high;    /* causal and window alone: low <= delta <= high     */
    int64_t sequences;    /* of a ragged batch; 0: not ragged                  */
    /* Positions that the call brings (schemes/places.c). Distances delta of the pairs that causal and
     * window let through, by axis: [least, most] where the call brings none. */
    int placed; /* 1: it brings some, and they are not those of the rows       */
    int64_t delta_low[2], delta_high[2];
    int64_t grid_width; /* > 0: the position of a row is y grid_width + x      */
    int64_t Ry, Rx;     /* rows of tables by axis, -1: none                    */
    double scale;
    double softcap; /* 0: none                                                 */
    double dropout;
    uint64_t dropout_seed;
    uint32_t threads;

    /* The tensors with LOCUS_USE_PLAN: dense, checked, read through these views. */
    locus_tensor q_offsets, k_offsets, rows, frequencies, q_positions, k_positions;
} locus_call;

/* One sequence of a ragged batch, or the whole call: rows of q and k, and their positions.
 * Query row i is at position query_offset + (i - first_query), key row n at n - first_key. */
typedef struct locus_sequence {
    int64_t first_query, queries, first_key, keys;
    int64_t query_offset;
    int64_t least, most; /* as in locus_call */
} locus_sequence;

locus_sequence locus_call_sequence(const locus_call *call, int64_t number);

/* How many there are: 1 for a call that is not ragged. */
static inline int64_t locus_sequence_count(const locus_call *call)
{
    return call->sequences > 0 ? call->sequences : 1;
}

/* The position that rotations see on axis `axis` of row `row` of q (is_key: of k), whose own
 * position is `position`: what q_positions or k_positions say, else that. */
int64_t locus_call_position(const locus_call *call, int is_key, int64_t batch, int64_t row,
                            int64_t axis, int64_t position);

/* Numbers of each row in q_positions and k_positions. */
int64_t locus_position_axes(const locus_call *call);

/* The same of the positions that distances are between, with both axes in one where the scheme
 * looks up one row for both. */
int64_t locus_call_place(const locus_call *call, int is_key, int64_t batch, int64_t row, int axis,
                         int64_t own);

/* Check the positions that a call brings and find its distances; positions that are those of the
 * rows are forgotten. */
locus_status locus_check_places(locus_call *call, const locus_tensors *shapes,
                                const locus_allocator *allocator, locus_error *error);

/* LOCUS_OK when a table of `rows` rows, the middle one for distance 0, serves the axis. */
locus_status locus_check_grid(const locus_call *call, int axis, const char *name, int64_t rows,
                              locus_error *error);

/* Copy what the call reads through its views into memory of its own, so that the caller's may
 * go: *memory is to be released. A call without such tensors needs none. */
locus_status locus_call_keep(locus_call *call, const locus_allocator *allocator, void **memory,
                             locus_error *error);

/* How a layer makes `gate`: for each query and head y_o = sum_d weight(o, d) x_d + weight(o, D) of
 * the head's own columns x_d of x, and of these numbers the gate. And the pull-backs, to the numbers
 * (dy is set) and to the parameters of `grad`, dense F64, that are there. */
enum { LOCUS_GATE_OUTPUTS = 2 };
typedef struct locus_gate_rule {
    double (*weight)(const locus_call *call, const locus_tensors *in, int64_t head, int64_t output,
                     int64_t column);
    double (*gate)(const locus_call *call, const locus_tensors *in, int64_t head, const double *y);
    void (*gate_grad)(const locus_call *call, const locus_tensors *in, int64_t head,
                      const double *y, double dgate, double *dy, const locus_tensors *grad);
    void (*weight_grad)(const locus_call *call, int64_t head, int64_t output, int64_t column,
                        double dweight, const locus_tensors *grad);
} locus_gate_rule;

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
    locus_scheme_info info;           /* first: locus_scheme_option finds the rest behind it */
    const locus_option_info *options; /* ends with name = NULL */
    const locus_tensor_info *tensors; /* ends with name = NULL */

    /* Rules that no declaration can say, e.g. which rows must exist; sets call->R
     * and call->pairs. */
    locus_status (*check)(locus_call *call, const locus_tensors *shapes, locus_error *error);

    double (*default_scale)(const locus_call *call, const locus_tensors *shapes);

    /* The table row that serves distance delta; the same for all tables. -1: none does, and
     * nothing is added. */
    int64_t (*row)(const locus_call *call, int64_t delta);

    /* 1: rows of the key table stand at counted positions instead,
     *     p(m, n) = min(R - 1, sum of sigmoid(c q_m . k_t) over the keys t that m sees, n <= t <= m)
     * where a row between two is their mixture; unscaled. */
    int counts;

    /* Numbers of a position that calls may bring: 0: none; 1: optional; 2: y and x, required. */
    int places;

    /* All distances up to *low share a row and a bias, and so do all from *high on. NULL: they do
     * not. */
    void (*reach)(const locus_call *call, int64_t *low, int64_t *high);

    /* The additive bias b_h(m, n), unscaled. A scheme whose bias depends on m - n alone leaves
     * `bias_by_pair` 0: it is then asked once per distance, at (delta, 0). */
    double (*bias)(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                   int64_t n);
    int bias_by_pair;

    /* The same for a run of keys of one query, (m, n) .. (m, n + count - 1): what fills a row of
     * a tile. NULL: one by one. */
    void (*bias_run)(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                     int64_t n, int64_t count, float *values);

    /* Its pull-back over such a run: grad += sum_i ds[i] db_h(m, n + i) / dparameter, for the
     * tensors with LOCUS_USE_BIAS; those of `grad` are dense F64, absent ones are skipped.
     * A head adds to nothing of another head in a parameter whose shape names H. Parameters
     * without H are shared by the heads: the caller gives each head a copy of its own and adds
     * the copies up in the order of the heads, so there is no race and no order to choose. */
    void (*bias_grad)(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                      int64_t n, int64_t count, const double *ds, const locus_tensors *grad);

    /* Of a bias by pair: numbers that all heads, rows and runs share, `shared_count` of them, which
     * `share` makes once per call, and the two hooks above that read them. NULL: there are none. */
    int64_t (*shared_count)(const locus_call *call, const locus_tensors *shapes);
    void (*share)(const locus_call *call, const locus_tensors *in, double *numbers);
    void (*shared_run)(const locus_call *call, const locus_tensors *in, const double *numbers,
                       int64_t head, int64_t m, int64_t n, int64_t count, float *values);
    void (*shared_grad)(const locus_call *call, const locus_tensors *in, const double *numbers,
                        int64_t head, int64_t m, int64_t n, int64_t count, const double *ds,
                        const locus_tensors *grad);

    /* Where the bias is a look-up in the tensor `bias`: b_h(delta) = bias[bias_row(delta)][h].
     * attention/ evaluates the rule once per plan instead of once per head and call. */
    int64_t (*bias_row)(const locus_call *call, int64_t delta);

    /* Pair t of a row at position p turns by p * frequency; q is multiplied by
     * exp(p * log_gain), k by exp(-p * log_gain). */
    void (*turn)(const locus_call *call, int64_t pair, double *frequency, double *log_gain);

    /* p_i of row i of x, width E; the input becomes x_scale x + p_i. */
    void (*embed)(const locus_call *call, const locus_tensors *in, int64_t i, double *row);

    /* Where calls have `gate`, it multiplies the bias by distance of its query; and this is how
     * layers make it. */
    const locus_gate_rule *gate;

    /* Offsets into locus_tensors of the tables behind three of the terms. */
    size_t key_table;   /* RK: dotted with q + w */
    size_t query_table; /* RQ: dotted with k     */
    size_t value_table; /* RV: added to v        */

    /* Of two axes: the table whose row is that of the second; 0: there is none. Products of both
     * are not scaled. */
    size_t second_table;
    int64_t (*second_row)(const locus_call *call, int64_t delta);

    /* Logarithms of what every channel of the content product is multiplied with from one position
     * to the next, [B,H,N,D], and, in a layer, what projects them; 0: there are none. */
    size_t log_decay, decay_weight, decay_bias;

    const locus_projection *projections; /* for layers; ends with table = LOCUS_NO_TENSOR */
} locus_scheme;

const locus_scheme *locus_scheme_lookup(const char *name);

/* LOCUS_ERR_SCHEME, with what `name` (NULL is allowed) may have meant. */
locus_status locus_unknown_scheme(const char *name, locus_error *error);

/* The tensor at an offset of locus_tensors; NULL for LOCUS_NO_TENSOR and for a
 * tensor that is absent. */
const locus_tensor *locus_tensor_slot(const locus_tensors *tensors, size_t offset);

/* A caller's configuration, whatever its size: checked, with defaults for what it lacks. */
locus_status locus_adopt_config(locus_config *own, const locus_config *config, locus_error *error);

/* Let *results point to `copy` where the caller's struct has another size. */
locus_status locus_adopt_results(const locus_results **results, locus_results *copy,
                                 const char *name, locus_error *error);

/* Check a whole call: config, options, tensors (none missing, none unknown to the
 * scheme, all of the right shape and type), table rows. Of the data, that of tensors with
 * LOCUS_USE_PLAN is read and checked. `config` and `shapes` have been adopted. */
locus_status locus_call_resolve(locus_call *call, uint32_t level, const locus_config *config,
                                const locus_tensors *shapes, locus_error *error);

/* The tensors that every scheme takes; ends with name = NULL. */
const locus_tensor_info *locus_common_list(void);

/* The tensors of `scheme` against its declarations (schemes/tensors.c). */
locus_status locus_refuse_strangers(const locus_call *call, const locus_tensors *shapes,
                                    locus_error *error);
locus_status locus_check_common(const locus_call *call, const locus_tensors *shapes,
                                locus_error *error);
locus_status locus_check_declared(const locus_call *call, const locus_tensors *shapes,
                                  locus_error *error);

/* Gates of every position: `rows` of the tensor, whose name is `name`, serve those of keys and
 * queries. */
locus_status locus_check_gates(const locus_call *call, const char *name, int64_t rows,
                               locus_error *error);

/* Row of log_gate and log_decay of what is at `position` in sequence `s`. */
static inline int64_t locus_gate_row(const locus_call *call, const locus_sequence *s,
                                     int64_t position)
{
    return s->first_key + call->key_offset + position;
}

/* What offsets, positions and frequencies hold. */
locus_status locus_check_offsets(locus_call *call, const locus_tensors *shapes, locus_error *error);

/* 1 when tensor number `index` is one that a call gives the gradient of. */
int locus_has_gradient(const locus_scheme *scheme, size_t index);

/* The attention inside a layer takes these tensors of the layer as they are. */
void locus_lend_tensors(const locus_scheme *scheme, locus_tensors *inner,
                        const locus_tensors *outer);

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

/* What RoPE and xPos share: the base or the frequencies, and the positions. After call->pairs
 * is set. */
locus_status locus_check_turns(const locus_call *call, locus_error *error);
double locus_turn_frequency(const locus_call *call, int64_t pair);

/* The bucketed bias that T5 and TUPE share. */
int64_t locus_t5_bias_row(const locus_call *call, int64_t delta);
locus_status locus_check_t5_options(const locus_call *call, locus_error *error);
double locus_t5_bias(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                     int64_t n);
void locus_t5_reach(const locus_call *call, int64_t *low, int64_t *high);
void locus_t5_bias_grad(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                        int64_t n, int64_t count, const double *ds, const locus_tensors *grad);

/* A tensor of its own that a scheme declares: numbers that are unlike those of all other
 * schemes (tests/property keeps watch). */
#define LOCUS_OWN(number) (offsetof(locus_tensors, own) + (number) * sizeof(locus_tensor))

/* Term 2 with a query of its own: pos_query, rel_k and, in a layer, w_r and b_r, go together. */
locus_status locus_check_pos_query(const locus_call *call, const locus_tensors *shapes,
                                   locus_error *error);

/* 1 in a layer that projects the position queries: F = rows of w_r / H. */
int locus_projects_pos_query(const locus_call *call, const locus_tensors *shapes);

/* LOCUS_OK when entries for the distances delta_min .. delta_min + count - 1 serve every pair that
 * causal and window let through; with clamp one entry is enough. */
locus_status locus_check_distances(const locus_call *call, const char *name, int64_t count,
                                   locus_error *error);

/* The reach of `count` entries from delta_min on. */
void locus_reach_of_entries(const locus_call *call, int64_t count, int64_t *low, int64_t *high);

/* clang-format off */
#define LOCUS_DELTA_MIN_OPTION(text)                                                               \
    {                                                                                              \
        .name = "delta_min", .help = (text),                                                       \
        .kind = LOCUS_OPTION_INTEGER, .levels = LOCUS_BOTH, .required = 1,                         \
        .minimum = -4294967296.0, .maximum = 4294967296.0,                                         \
        .offset = offsetof(locus_options, delta_min),                                              \
    }
#define LOCUS_CLAMP_OPTION                                                                         \
    {                                                                                              \
        .name = "clamp", .help = "1: distances beyond the ends take the end entry",                \
        .kind = LOCUS_OPTION_INTEGER, .levels = LOCUS_BOTH,                                        \
        .maximum = 1, .offset = offsetof(locus_options, clamp),                                    \
    }
#define LOCUS_FLOATS (1u << LOCUS_F32 | 1u << LOCUS_F64 | 1u << LOCUS_F16 | 1u << LOCUS_BF16)
/* The head of the declaration of a tensor with gradients. */
#define LOCUS_PARAMETER(field)                                                                     \
    .name = #field, .offset = offsetof(locus_tensors, field), .dtypes = LOCUS_FLOATS,              \
    .uses = LOCUS_USE_GRADIENT
#define LOCUS_BIAS_PARAMETER(field)                                                                \
    .name = #field, .offset = offsetof(locus_tensors, field), .dtypes = LOCUS_FLOATS,              \
    .uses = LOCUS_USE_GRADIENT | LOCUS_USE_BIAS
#define LOCUS_OWN_BIAS_PARAMETER(number, text)                                                     \
    .name = (text), .offset = LOCUS_OWN(number), .dtypes = LOCUS_FLOATS,                           \
    .uses = LOCUS_USE_GRADIENT | LOCUS_USE_BIAS
#define LOCUS_OWN_PARAMETER(number, text)                                                          \
    .name = (text), .offset = LOCUS_OWN(number), .dtypes = LOCUS_FLOATS, .uses = LOCUS_USE_GRADIENT
/* Numbers of each position, or what projects them. */
#define LOCUS_GATE_TENSOR(field)                                                                   \
    .name = #field, .offset = offsetof(locus_tensors, field), .dtypes = LOCUS_FLOATS,              \
    .uses = LOCUS_USE_GRADIENT | LOCUS_USE_QUERY
#define LOCUS_OWN_GATE_TENSOR(number, text)                                                        \
    .name = (text), .offset = LOCUS_OWN(number), .dtypes = LOCUS_FLOATS,                           \
    .uses = LOCUS_USE_GRADIENT | LOCUS_USE_QUERY
/* Numbers of each query row. */
#define LOCUS_QUERY_TENSOR(field)                                                                  \
    .name = #field, .offset = offsetof(locus_tensors, field), .dtypes = LOCUS_FLOATS,              \
    .uses = LOCUS_USE_GRADIENT | LOCUS_USE_QUERY, .levels = LOCUS_ATTEND
#define LOCUS_QUERY_PROJECTION(field)                                                              \
    .name = #field, .offset = offsetof(locus_tensors, field), .dtypes = LOCUS_FLOATS,              \
    .uses = LOCUS_USE_GRADIENT | LOCUS_USE_QUERY, .levels = LOCUS_LAYER
/* Numbers that a plan is made from. */
#define LOCUS_PLAN_TENSOR(field, types)                                                            \
    .name = #field, .offset = offsetof(locus_tensors, field), .dtypes = (types),                   \
    .uses = LOCUS_USE_PLAN
/* Positions that distances are between. */
#define LOCUS_PLACE_TENSORS                                                                        \
    {                                                                                              \
        LOCUS_PLAN_TENSOR(q_positions, 1u << LOCUS_I64),                                           \
        .help = "positions that distances count from; causal and window stay by row",              \
        .shape = "Tq, 1|B Tq", .levels = LOCUS_BOTH,                                               \
    },                                                                                             \
    {                                                                                              \
        LOCUS_PLAN_TENSOR(k_positions, 1u << LOCUS_I64),                                           \
        .help = "the same of the keys",                                                            \
        .shape = "Tk, 1|B Tk", .levels = LOCUS_BOTH,                                               \
    }
#define LOCUS_GRID_TENSORS                                                                         \
    {                                                                                              \
        LOCUS_PLAN_TENSOR(q_positions, 1u << LOCUS_I64),                                           \
        .help = "y and x of each query; causal and window stay by row",                            \
        .shape = "Tq 2, 1|B Tq 2", .levels = LOCUS_BOTH, .required = 1,                            \
    },                                                                                             \
    {                                                                                              \
        LOCUS_PLAN_TENSOR(k_positions, 1u << LOCUS_I64),                                           \
        .help = "y and x of each key",                                                             \
        .shape = "Tk 2, 1|B Tk 2", .levels = LOCUS_BOTH, .required = 1,                            \
    }
/* The tensors of both rotations. */
#define LOCUS_TURN_TENSORS                                                                         \
    {                                                                                              \
        LOCUS_PLAN_TENSOR(frequencies, 1u << LOCUS_F32 | 1u << LOCUS_F64),                         \
        .help = "pair t turns by position frequencies[t], instead of base",                        \
        .shape = "pairs", .levels = LOCUS_BOTH,                                                    \
    },                                                                                             \
    {                                                                                              \
        LOCUS_PLAN_TENSOR(q_positions, 1u << LOCUS_I64),                                           \
        .help = "positions that queries are turned to; causal and window stay by row",             \
        .shape = "Tq, B Tq, Tq axes, B Tq axes", .levels = LOCUS_BOTH,                             \
    },                                                                                             \
    {                                                                                              \
        LOCUS_PLAN_TENSOR(k_positions, 1u << LOCUS_I64),                                           \
        .help = "positions that keys are turned to",                                               \
        .shape = "Tk, B Tk, Tk axes, B Tk axes", .levels = LOCUS_BOTH,                             \
    }
#define LOCUS_OPTION_END {.name = NULL}
#define LOCUS_TENSOR_END {.name = NULL}
#define LOCUS_PROJECTION_END {.table = LOCUS_NO_TENSOR}
/* The base of the frequencies, for both rotations. */
#define LOCUS_BASE_OPTION                                                                          \
    {                                                                                              \
        .name = "base",                                                                            \
        .help = "of the geometric series of frequencies",                                          \
        .kind = LOCUS_OPTION_REAL, .levels = LOCUS_BOTH, .without = "frequencies",                 \
        .minimum = 1e-30, .maximum = 1e30, .preset = 10000.0,                                      \
        .offset = offsetof(locus_options, base),                                                   \
    }
/* T5's rule, for T5 itself and for TUPE beside its optional bias. */
#define LOCUS_BUCKET_OPTIONS(beside) LOCUS_BUCKET_OPTIONS_OF(beside, 32, 128)
#define LOCUS_BUCKET_OPTIONS_OF(beside, usual_buckets, usual_distance)                             \
    {                                                                                              \
        .name = "buckets",                                                                         \
        .help = "rows of the bias table; even when bidirectional",                                 \
        .kind = LOCUS_OPTION_INTEGER, .levels = LOCUS_BOTH, .with = (beside),                      \
        .minimum = 2, .maximum = 65536, .preset = (usual_buckets),                                 \
        .offset = offsetof(locus_options, buckets),                                                \
    },                                                                                             \
    {                                                                                              \
        .name = "max_distance",                                                                    \
        .help = "distances from here on share the last bucket",                                    \
        .kind = LOCUS_OPTION_INTEGER, .levels = LOCUS_BOTH, .with = (beside),                      \
        .minimum = 1, .maximum = 1 << 20, .preset = (usual_distance),                              \
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

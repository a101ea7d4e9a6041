/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_SCHEME_H
#define LOCUS_SCHEME_H

/* What a scheme declares: its formula, the terms of the score it uses, its
 * options with ranges and defaults, its tensors with shapes. The command line,
 * the documentation, the case reader and the bindings print and check these
 * declarations; nobody keeps a second list. */

#include <locus/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The eight places where a position can enter attention (docs/architecture.md).
 * r = m - n is the distance from key n to query m. */
enum {
    LOCUS_TERM_CONTENT = 1 << 0,           /* c (q_m + u) . k_n              */
    LOCUS_TERM_CONTENT_POSITION = 1 << 1,  /* c (q_m + w) . RK[row(r)], or of
                                              a position query p_m . RK[row(r)] */
    LOCUS_TERM_POSITION_CONTENT = 1 << 2,  /* c RQ[row(r)] . k_n             */
    LOCUS_TERM_POSITION_POSITION = 1 << 3, /* c pq_m . pk_n                  */
    LOCUS_TERM_BIAS = 1 << 4,              /* b_h[r]                         */
    LOCUS_TERM_VALUE = 1 << 5,             /* out_m += a_mn RV[row(r)]       */
    LOCUS_TERM_ROTATION = 1 << 6,          /* q_m and k_n turned before q.k  */
    LOCUS_TERM_INPUT = 1 << 7,             /* x_i + p_i before projections   */
};

/* Claims that the property tests hold a scheme to. */
enum {
    LOCUS_TRAIT_RELATIVE = 1 << 0,  /* shifting all positions changes nothing        */
    LOCUS_TRAIT_SYMMETRIC = 1 << 1, /* the position terms depend on |m - n| only     */
    LOCUS_TRAIT_LEARNED = 1 << 2,   /* has parameters with gradients                 */
    LOCUS_TRAIT_CAUSAL = 1 << 3,    /* looks back only: refused without config.causal */
    LOCUS_TRAIT_COUNTED = 1 << 4,   /* rows stand at what the query counts: no row by distance */
};

/* The two levels of the library; a declaration may hold at one or both. */
enum {
    LOCUS_ATTEND = 1 << 0, /* q, k, v and projected tables given        */
    LOCUS_LAYER = 1 << 1,  /* x, projections and own parameters given   */
};

/* "Not given": of integer options and query_offset, and of real options, scale and
 * softcap. Nothing else has this value. */
#define LOCUS_UNSET INT64_MIN
#define LOCUS_UNSET_REAL (-1.7976931348623157e308)

/* Values of the options that choose between names. */
enum { LOCUS_TABLE_PAPER = 0, LOCUS_TABLE_T2T = 1, LOCUS_TABLE_HALF = 2 };
enum { LOCUS_PAIRING_HALF = 0, LOCUS_PAIRING_INTERLEAVED = 1 };
enum { LOCUS_FORM_LOG = 0, LOCUS_FORM_POWER = 1 };

/* Every option of every scheme. Start from locus_options_init, which fills in
 * the defaults of one scheme, LOCUS_UNSET for those that must be given; set fields,
 * or use locus_options_set with text. */
typedef struct locus_options {
    uint32_t size;          /* sizeof(locus_options) as the caller compiled it         */
    int64_t clip_left;      /* shaw                                                    */
    int64_t clip_right;     /* shaw                                                    */
    int64_t delta_min;      /* transformer_xl, distance, table: m - n of row 0         */
    int64_t clamp;          /* transformer_xl: 0 = none; distance, table: 0 or 1       */
    int64_t buckets;        /* t5, tupe, wavlm, deberta                                */
    int64_t max_distance;   /* t5, tupe, wavlm, deberta                                */
    int64_t bidirectional;  /* t5, tupe, wavlm: 0 or 1                                 */
    int64_t span;           /* deberta: half the rows                                  */
    int64_t form;           /* kerple: LOCUS_FORM_*                                    */
    int64_t width;          /* rope: turned columns, 0 = all of D                      */
    int64_t pairing;        /* rope: LOCUS_PAIRING_*                                   */
    int64_t table;          /* sinusoidal, transformer_xl layers: LOCUS_TABLE_*        */
    int64_t first_position; /* sinusoidal: position of row 0                           */
    int64_t c2p, p2c;       /* deberta layers: 0 or 1                                  */
    int64_t axes;           /* rope: runs of pairs, each with positions of its own     */
    double base;            /* rope, xpos                                              */
    double theta_scale;     /* rope: positions are multiplied by it                    */
    double scale_base;      /* xpos                                                    */
    double x_scale;         /* sinusoidal: input is x_scale x + p                      */
} locus_options;

typedef enum locus_option_kind {
    LOCUS_OPTION_INTEGER,
    LOCUS_OPTION_REAL,
    LOCUS_OPTION_CHOICE,
} locus_option_kind;

/* A name and its value. This struct never grows. */
typedef struct locus_choice {
    const char *name; /* NULL ends a list */
    int64_t value;
} locus_choice;

typedef struct locus_option_info {
    const char *name;
    const char *help; /* one line                                      */
    locus_option_kind kind;
    uint32_t levels;             /* LOCUS_ATTEND | LOCUS_LAYER                    */
    int required;                /* 1: no default, must be given                  */
    const char *with;            /* only beside this tensor; NULL: always         */
    const char *without;         /* not beside this tensor; NULL: always          */
    double minimum, maximum;     /* inclusive                                     */
    double preset;               /* the default                                   */
    const locus_choice *choices; /* for LOCUS_OPTION_CHOICE                       */
    size_t offset;               /* of the field inside locus_options             */
} locus_option_info;

/* What a tensor may be used for beside attention itself. */
enum {
    LOCUS_USE_GRADIENT = 1 << 0, /* a call gives its gradient where that is asked for     */
    LOCUS_USE_PLAN = 1 << 1,     /* its numbers are read when a plan is made, not by calls */
    LOCUS_USE_BIAS = 1 << 2,     /* a parameter of the scheme's bias                       */
    LOCUS_USE_QUERY = 1 << 3,    /* a row for each query, [B,H,Tq,..], or what projects it */
};

typedef struct locus_tensor_info {
    const char *name;  /* as in locus_tensors                                      */
    const char *help;  /* one line                                                 */
    const char *shape; /* axes by name: "H R D"; ">=T": at least; "1|B": either;
                          "R D, H R D": one of the two                             */
    uint32_t levels;   /* LOCUS_ATTEND | LOCUS_LAYER                               */
    int required;      /* 0: may be absent                                         */
    uint32_t dtypes;   /* 1 << LOCUS_F32 | ...: the types that it may have         */
    uint32_t uses;     /* LOCUS_USE_*                                              */
    size_t offset;     /* of the field inside locus_tensors                        */
} locus_tensor_info;

typedef struct locus_scheme_info {
    const char *name;     /* "t5"                                          */
    const char *title;    /* "T5 relative bias"                            */
    const char *formula;  /* the score, plain text                         */
    const char *citation; /* authors, year, title                          */
    const char *rule;     /* how a distance becomes a row, or ""           */
    const char *scale;    /* the default scale as text: "1/sqrt(D)"        */
    uint32_t terms;       /* LOCUS_TERM_*                                  */
    uint32_t traits;      /* LOCUS_TRAIT_*                                 */
} locus_scheme_info;

LOCUS_API size_t locus_scheme_count(void);
LOCUS_API const locus_scheme_info *locus_scheme_at(size_t index);       /* NULL beyond the end */
LOCUS_API const locus_scheme_info *locus_scheme_find(const char *name); /* NULL: no such one   */

/* The options and tensors that a scheme declares; NULL beyond the end. */
LOCUS_API const locus_option_info *locus_scheme_option(const locus_scheme_info *scheme,
                                                       size_t index);
LOCUS_API const locus_tensor_info *locus_scheme_tensor(const locus_scheme_info *scheme,
                                                       size_t index);

/* Tensors that calls of every scheme take beside the scheme's own: q, k, v, masks, x,
 * projections, ... NULL beyond the end. */
LOCUS_API const locus_tensor_info *locus_common_tensor(size_t index);

/* A short name for one LOCUS_TERM_ bit ("content", "bias", ...) and its formula in plain
 * text ("c (q_m + u) . k_n"); NULL for other values. */
LOCUS_API const char *locus_term_name(uint32_t term);
LOCUS_API const char *locus_term_formula(uint32_t term);

/* Defaults of `scheme`; LOCUS_UNSET where an option must be given. The second is for
 * callers without this header: `size` is that of their struct. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_options_init_sized(locus_options *options,
                                                                 size_t size, const char *scheme);
LOCUS_MUST_CHECK static inline locus_status locus_options_init(locus_options *options,
                                                               const char *scheme)
{
    return locus_options_init_sized(options, sizeof *options, scheme);
}

/* Set one option from text as case files spell it ("32", "half"), checking its
 * name, type and range against the declaration of `scheme` at `level`. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_options_set(locus_options *options,
                                                          const char *scheme, uint32_t level,
                                                          const char *name, const char *value,
                                                          locus_error *error);

/* ---- the rules themselves, for pictures, tests and other people's code ---- */

/* T5's bucket of rho = n - m. Exact integer rule; no logarithm in floating point. */
LOCUS_API int64_t locus_t5_bucket(int64_t rho, int64_t buckets, int64_t max_distance,
                                  int bidirectional);

/* DeBERTa's beta of delta = m - n (buckets = 0: delta itself), before the clamp to the table. */
LOCUS_API int64_t locus_deberta_beta(int64_t delta, int64_t buckets, int64_t max_distance);

/* One row of a sinusoid table: out[0 .. width-1] for `position` (any sign). */
LOCUS_API void locus_sinusoid(int64_t table, int64_t width, int64_t position, double *out);

/* ALiBi's published slope of `head` among `heads`. */
LOCUS_API double locus_alibi_slope(int64_t head, int64_t heads);

#ifdef __cplusplus
}
#endif
#endif

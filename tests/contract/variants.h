/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_VARIANTS_H
#define LOCUS_TESTS_VARIANTS_H

/* Every scheme in the forms that take different ways through attention/. */

#include "support/problem.h"

typedef struct test_variant {
    const char *name;
    const char *scheme, *settings, *with, *without;
} test_variant;

static const test_variant test_variants[] = {
    {"none", "none", NULL, NULL, NULL},
    {"none-causal", "none", "causal=1", NULL, NULL},
    {"none-window", "none", "window_left=5 window_right=9", NULL, NULL},
    {"none-key-mask", "none", NULL, "key_mask", NULL},
    {"none-mask", "none", NULL, "mask:BH", NULL},
    {"none-dense", "none", NULL, "bias_dense:BH", NULL},
    {"none-dense-shared", "none", "causal=1", "bias_dense:11 mask:1H", NULL},
    {"none-dropout", "none", "dropout=0.3 dropout_seed=77", NULL, NULL},
    {"none-softcap", "none", "softcap=1.5", "dlse", NULL},
    {"none-sink", "none", "causal=1 dropout=0.2", "sink dlse key_mask", NULL},
    {"t5-softcap-sink", "t5", "softcap=2 buckets=16 max_distance=40", "sink bias_dense:1H mask:B1",
     NULL},
    {"deberta-softcap", "deberta", "softcap=0.8 span=8 buckets=8 max_distance=20 causal=1", NULL,
     NULL},
    {"shaw-sink", "shaw", "softcap=3 clip_left=6 clip_right=4 window_left=5", "sink dlse", NULL},
    {"xl-softcap-sink", "transformer_xl", "softcap=2", "sink", NULL},
    {"tupe-softcap-sink", "tupe", "softcap=1", "sink dlse", NULL},
    {"shaw", "shaw", "clip_left=6 clip_right=4", NULL, NULL},
    {"shaw-keys", "shaw", "clip_left=0 clip_right=3", NULL, "rel_v"},
    {"shaw-values", "shaw", "clip_left=20 clip_right=20 dropout=0.2", NULL, "rel_k"},
    {"relative_key", "relative_key", NULL, "key_mask", NULL},
    {"relative_key_query", "relative_key_query", NULL, NULL, NULL},
    {"relative_key_query-causal", "relative_key_query", "causal=1 window_left=11", NULL, NULL},
    {"transformer_xl", "transformer_xl", NULL, NULL, NULL},
    {"transformer_xl-clamp", "transformer_xl", "clamp=7 causal=1", NULL, NULL},
    {"t5", "t5", "buckets=16 max_distance=40", NULL, NULL},
    {"t5-causal", "t5", "bidirectional=0 causal=1", NULL, NULL},
    {"tupe", "tupe", NULL, NULL, "bias cls"},
    {"tupe-bias-cls", "tupe", NULL, NULL, NULL},
    {"tupe-cls-mask", "tupe", NULL, "mask:1H", "bias"},
    {"deberta", "deberta", "span=8 buckets=8 max_distance=20", NULL, NULL},
    {"deberta-c2p", "deberta", "span=5", NULL, "rel_q"},
    {"deberta-p2c", "deberta", "span=64 causal=1", NULL, "rel_k"},
    {"deberta-jumps", "deberta", "span=32 buckets=32 max_distance=19", NULL, NULL},
    {"alibi", "alibi", NULL, NULL, NULL},
    {"alibi-fixed", "alibi", "causal=1", NULL, "slopes"},
    {"distance", "distance", NULL, NULL, NULL},
    {"distance-window", "distance", "window_left=9 window_right=4", NULL, NULL},
    {"table", "table", NULL, NULL, "rel_v"},
    {"table-keys-bias", "table", "causal=1", NULL, "rel_q rel_v"},
    {"table-bias", "table", NULL, "key_mask", "rel_k rel_q rel_v"},
    {"table-pos-query", "table", "causal=1", "pos_query", "rel_q rel_v bias"},
    {"table-four-pos-query", "table", "softcap=2", "pos_query sink dlse", NULL},
    {"inkling", "inkling", NULL, "key_mask", NULL},
    {"inkling-causal", "inkling", "causal=1 dropout=0.2", "bias_dense:1H", NULL},
    {"wavlm", "wavlm", "buckets=16 max_distance=40", NULL, NULL},
    {"wavlm-cap", "wavlm", "buckets=8 max_distance=20 softcap=2 window_left=9 dropout=0.1",
     "mask:B1 sink dlse", NULL},
    {"gates", "none", "causal=1", "log_gate", NULL},
    {"gates-rope", "rope", "pairing=half causal=1 window_left=30 dropout=0.2",
     "log_gate key_mask sink dlse", NULL},
    {"gates-shaw", "shaw", "causal=1 clip_left=6 clip_right=4 softcap=2", "log_gate bias_dense:1H",
     NULL},
    {"gates-alibi-mask", "alibi", "causal=1", "mask:B1 log_gate", NULL},
    {"wall", "wall", NULL, NULL, NULL},
    {"wall-all", "wall", "window_left=40 softcap=3 dropout=0.2",
     "log_gate key_mask sink dlse bias_dense:1H", NULL},
    {"cope", "cope", NULL, NULL, NULL},
    {"cope-all", "cope", "window_left=50 softcap=3 dropout=0.2",
     "log_gate key_mask sink dlse bias_dense:1H", NULL},
    {"cope-mask", "cope", "scale=0.5", "mask:B1", NULL},
    {"wall-mask", "wall", "scale=0.5", "mask:B1", NULL},
    {"fire", "fire", NULL, NULL, NULL},
    {"fire-dropout", "fire", "dropout=0.2 window_left=12", NULL, NULL},
    {"kerple-log", "kerple", "form=log", NULL, NULL},
    {"kerple-power", "kerple", "form=power", NULL, NULL},
    {"rope-half", "rope", "pairing=half", NULL, NULL},
    {"rope-interleaved", "rope", "pairing=interleaved theta_scale=0.25 base=500", NULL, NULL},
    {"xpos", "xpos", "causal=1 scale_base=32", NULL, NULL},
};
enum { TEST_VARIANTS = sizeof test_variants / sizeof *test_variants };

/* The variant at one shape, or NULL where its rules do not admit the shape: rotations turn
 * pairs of columns, and TUPE has no row for a negative position. */
static inline test_problem *test_variant_problem(const test_variant *v, test_spec shape)
{
    const int turns = v->scheme[0] == 'x' || (v->scheme[0] == 'r' && v->scheme[1] == 'o');
    if (turns && (shape.D == 0 || shape.D % 2 != 0)) return NULL;
    if (v->scheme[0] == 't' && v->scheme[1] == 'u' && shape.Tq > shape.Tk) return NULL;
    shape.scheme = v->scheme;
    shape.level = LOCUS_ATTEND;
    shape.settings = v->settings;
    shape.with = v->with;
    shape.without = v->without;
    shape.seed = shape.seed != 0 ? shape.seed : 1;
    return test_problem_new(&shape);
}

#endif

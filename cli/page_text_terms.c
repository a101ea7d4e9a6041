/* SPDX-License-Identifier: Apache-2.0 */
/* Lessons: T5, TUPE, DeBERTa: which terms to keep. */
#include "page.h"
#include "page_math.h"

#define BUCKET_BIAS                                                                                \
    SUB(I("b"), I("h"))                                                                            \
    ROW("<mo stretchy=\"false\">[</mo>" I("bucket")                                                \
            BRACKETS(I("n") MINUS I("m")) "<mo stretchy=\"false\">]</mo>")

/* clang-format off */
const page_lesson page_terms[] = {
    {
        .id = "t5",
        .title = "T5: one number per bucket",
        .formula = ROW(SCORE EQUALS Q DOT K PLUS BUCKET_BIAS),
        .said = "s_mn = q_m . k_n + b_h[bucket(n - m)]",
        .because = "A vector per distance is a product per query and row. Is a number enough?",
        .sentences = {
            "Raffel et al. (2020) kept a single number of all this: each head learns one bias per bucket of "
            "distances and adds it to the score.",
            "The position part no longer depends on the words, so it costs one addition per pair and no product "
            "at all.",
            "Half of the buckets serve keys before the query and half those after it; in each half the nearest "
            "distances have a bucket each, and farther ones share buckets that widen logarithmically, up to a "
            "distance (128 in the paper) from which on all share the last.",
            "With the usual 32 buckets a distance of 3 is told from 4, but 100 is not told from 120: fine where "
            "order matters, coarse where only <q>far</q> does.",
            "T5 does not divide by &radic;<i>D</i> either, since its initial weights make up for it, and all its "
            "layers share one table.",
        },
        .scheme = "t5", .what = "rows,bias",
        .caption = "Eight buckets on the sentence, the rule as a staircase, and the bias of four heads by distance. "
                   "The biases are a seeded random walk, not a trained model.",
        .code =
            "/* bias: one number per bucket and head, [buckets, H]. */\n"
            "locus_status t5(locus_tensors in, float *bias, const locus_results *results,\n"
            "                locus_error *error)\n"
            "{\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"t5\") != LOCUS_OK) return LOCUS_ERR_SCHEME;\n"
            "    config.options.buckets = 32; /* these three are the defaults */\n"
            "    config.options.max_distance = 128;\n"
            "    config.options.bidirectional = 1;\n"
            "    in.bias = locus_view(bias, LOCUS_F32, 2, (int64_t[]){32, in.q.shape[1]});\n"
            "    return attend(&config, &in, results, error);\n"
            "}\n",
        .python =
            "bias = np.array([[0], [1], [2], [3]], \"f\")  # a number per bucket, one head\n"
            "explain(*qkv, scheme=\"t5\", buckets=4, max_distance=3, bias=bias)\n"
            "# content [1. 0. 1.]\n"
            "# bias [1. 1. 0.]\n"
            "# score [2. 1. 1.]\n",
        .costs = {"t5"},
        .papers = "Raffel et al. 2020, <cite>Exploring the Limits of Transfer Learning with a Unified Text-to-Text "
                  "Transformer</cite>.",
    },
    {
        .id = "tupe",
        .title = "TUPE: projections untied",
        .formula = ROW(SCORE EQUALS
            FRACTION(Q DOT K PLUS BRACKETS(SUB(I("U"), I("q")) SUB(I("p"), I("m"))) DOT
                     BRACKETS(SUB(I("U"), I("k")) SUB(I("p"), I("n"))),
                     ROOT(N("2") I("D")))
            PLUS BUCKET_BIAS),
        .said = "s_mn = (q_m . k_n + (U_q p_m) . (U_k p_n)) / sqrt(2 D) + b_h[bucket(n - m)]",
        .because = "One number per bucket does not know which place of the text it stands at; and where places are added "
                   "to words, both go through the same matrices.",
        .sentences = {
            "Ke, He and Liu (2021) looked at the two mixed terms of the absolute score, word against place and "
            "place against word, and found hardly any pattern in them.",
            "TUPE drops both and gives positions projections of their own, <i>U<sub>q</sub></i> and "
            "<i>U<sub>k</sub></i>: words meet words, places meet places, and no matrix has to serve two kinds of "
            "vectors.",
            "Two products are added, so the sum is divided by &radic;(2<i>D</i>) to keep its variance where it was.",
            "T5&rsquo;s bias may come on top (TUPE-R), because a place and a distance are different things to know.",
            "The first token, [CLS], stands for the whole sentence and should not be drawn to its neighbours: the "
            "position part of its row and that of its column become one learned number each, as the second map "
            "shows.",
        },
        .scheme = "tupe", .what = "position",
        .caption = "All of the score that does not depend on words, head 0: places against places, plus the bias "
                   "by distance.",
        .code =
            "/* pos_q, pos_k: U_q p and U_k p, a row per position, [H, T, D]; cls: [2, H].\n"
            " * Leave bias or cls out, and that part is not there. */\n"
            "locus_status tupe(locus_tensors in, float *pos_q, float *pos_k, float *bias,\n"
            "                  float *cls, const locus_results *results, locus_error *error)\n"
            "{\n"
            "    const int64_t H = in.q.shape[1], T = in.q.shape[2], D = in.q.shape[3];\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"tupe\") != LOCUS_OK) return LOCUS_ERR_SCHEME;\n"
            "    in.pos_q = locus_view(pos_q, LOCUS_F32, 3, (int64_t[]){H, T, D});\n"
            "    in.pos_k = locus_view(pos_k, LOCUS_F32, 3, (int64_t[]){H, T, D});\n"
            "    in.bias = locus_view(bias, LOCUS_F32, 2, (int64_t[]){32, H});\n"
            "    in.cls = locus_view(cls, LOCUS_F32, 2, (int64_t[]){2, H});\n"
            "    return attend(&config, &in, results, error);\n"
            "}\n",
        .python =
            "pos_q = np.array([[[1, 0], [0, 1], [1, 1]]], \"f\")  # p_m U_q\n"
            "pos_k = np.array([[[0, 1], [1, 0], [2, 0]]], \"f\")  # p_n U_k\n"
            "explain(*qkv, scheme=\"tupe\", pos_q=pos_q, pos_k=pos_k)\n"
            "# content [1. 0. 1.]\n"
            "# position-position [1. 1. 2.]\n"
            "# score [2. 1. 3.]\n",
        .costs = {"tupe"},
        .papers = "Ke, He, Liu 2021, <cite>Rethinking Positional Encoding in Language Pre-training</cite>.",
    },
    {
        .id = "deberta",
        .title = "DeBERTa: the cross terms, disentangled",
        .formula = LINES(
            LINE(SCORE, EQUALS FRACTION(Q DOT K PLUS Q DOT TABLE_ROW("RK", I("t")) PLUS K DOT
                                        TABLE_ROW("RQ", I("t")), ROOT(N("3") I("D"))))
            LINE(I("t"), EQUALS I("bucket") BRACKETS(DISTANCE))),
        .said = "s_mn = (q_m . k_n + q_m . RK[t] + k_n . RQ[t]) / sqrt(3 D);  t = bucket(m - n)",
        .because = "TUPE&rsquo;s positions never meet its words: no word can ask for a distance.",
        .sentences = {
            "He et al. (2021) keep the cross terms that TUPE drops and make them relative: a token is two vectors, "
            "a word and a place, and the score is the sum of what they say to each other.",
            "In content-to-position the query&rsquo;s word asks for a distance, as with Shaw; in position-to-content the "
            "key&rsquo;s word says from which distance it wants to be looked at.",
            "Position-to-position is left out, since with relative positions it could only depend on the distance "
            "and, the authors argue, would add little.",
            "Three products make &radic;(3<i>D</i>), and from version 2 on the rows are buckets, exact near zero and "
            "then ever wider, so that 512 rows serve long texts.",
            "Where a framework gathers both terms into arrays over all pairs, Locus looks them up inside a tile; "
            "BERT&rsquo;s <code>relative_key_query</code> (Huang et al. 2020), which uses one table for both terms, runs "
            "on the same code.",
        },
        .scheme = "deberta", .what = "terms",
        .caption = "Content to content, content to position, position to content, and the score; head 0, one scale.",
        .code =
            "/* rel_k, rel_q: 2 * span rows of D numbers per head, [H, 2 span, D].\n"
            " * buckets = span: log buckets (v2, v3); buckets = 0: a plain clip (v1). */\n"
            "locus_status deberta(locus_tensors in, float *rel_k, float *rel_q, int64_t span,\n"
            "                     const locus_results *results, locus_error *error)\n"
            "{\n"
            "    const int64_t shape[] = {in.q.shape[1], 2 * span, in.q.shape[3]};\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"deberta\") != LOCUS_OK) return LOCUS_ERR_SCHEME;\n"
            "    config.options.span = config.options.buckets = span;\n"
            "    config.options.max_distance = 512;\n"
            "    in.rel_k = locus_view(rel_k, LOCUS_F32, 3, shape);\n"
            "    in.rel_q = locus_view(rel_q, LOCUS_F32, 3, shape);\n"
            "    return attend(&config, &in, results, error);\n"
            "}\n",
        .python =
            "# Row t = clip(m - n + span) of both tables. The paper writes delta(n, m) for the second term,\n"
            "# its published code takes the same row for both.\n"
            "rel_k = np.array([[[0, 0], [0, 1], [1, 0], [3, 1]]], \"f\")\n"
            "rel_q = np.array([[[0, 0], [1, 0], [0, 2], [1, 4]]], \"f\")\n"
            "explain(*qkv, scheme=\"deberta\", span=2, rel_k=rel_k, rel_q=rel_q)\n"
            "# content [1. 0. 1.]\n"
            "# content-position [3. 3. 1.]\n"
            "# position-content [1. 4. 0.]\n"
            "# score [5. 7. 2.]\n",
        .costs = {"deberta", "relative_key_query"},
        .papers = "He et al. 2021, <cite>DeBERTa: Decoding-enhanced BERT with Disentangled Attention</cite>. Huang et "
                  "al. 2020, <cite>Improve Transformer Models with Better Relative Position Embeddings</cite>.",
    },
    {.id = NULL},
};
/* clang-format on */

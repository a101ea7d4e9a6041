/* SPDX-License-Identifier: Apache-2.0 */
/* Lessons: distances and their clip, Shaw, Transformer-XL. */
#include "page.h"
#include "page_math.h"

#define TURNED_X BOTH(I("x"), I("m"), TURNED)
#define TURNED_P BOTH(I("p"), I("m"), TURNED)
#define MATRICES BOTH(I("W"), I("q"), TURNED) SUB(I("W"), I("k"))
#define X SUB(I("x"), I("n"))
#define P SUB(I("p"), I("n"))
#define WAVES SUB(I("W"), I("r")) SUB(I("R"), DISTANCE)
#define LEADS O("&rarr;")

/* clang-format off */
const page_lesson page_relative[] = {
    {
        .id = "distance",
        .title = "Relative distance, and the clip",
        .formula = LINES(
            LINE(I("r"), EQUALS DISTANCE)
            LINE(I("clip") BRACKETS(I("r")),
                 EQUALS I("max") BRACKETS(NEGATIVE I("K") O(",") I("min") BRACKETS(I("K") O(",") I("r"))))),
        .said = "r = m - n;  clip(r) = max(-K, min(K, r))",
        .because = "A formula goes on for ever, but what was learned at place 7 says nothing about place 700: models "
                   "with sinusoids stop copying soon after the length they were trained at.",
        .sentences = {
            "Language seldom asks whether a word is number 17; it asks whether one stands just before another: "
            "a distance <i>r</i> = <i>m</i> &minus; <i>n</i> from the key <i>n</i> to the query <i>m</i>.",
            "A table over distances is shared by all places of a text, so what is learned about neighbours at the "
            "start holds at the end, and shifting everything by a word changes nothing.",
            "Among <i>T</i> tokens there are 2<i>T</i> &minus; 1 distances, and a table with a row for each of them "
            "(as in Huang et al. 2020, whose cost stands below) still ends somewhere.",
            "Clipping declares that beyond <i>K</i> tokens the exact distance no longer matters: everything farther "
            "shares the last row, and 2<i>K</i> + 1 rows serve a text of any length.",
            "In the picture each diagonal is one distance, and the two far corners are flat because every pair in "
            "them is merely <q>far before</q> or <q>far after</q>.",
        },
        .scheme = "shaw", .what = "distance", .options = {"clip_left=3", "clip_right=3"},
        .caption = "clip(<i>m</i> &minus; <i>n</i>) for <i>K</i> = 3: where each key stands from each query, as "
                   "far as the scheme can tell.",
        .code =
            "/* Which row of the table serves the distances -5 .. 5. The library's own rule,\n"
            " * for your pictures and tests; a call applies it by itself. */\n"
            "locus_status rows_of_distances(locus_tensors in, float *rel_k, int64_t rows[11],\n"
            "                               locus_error *error)\n"
            "{\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"shaw\") != LOCUS_OK) return LOCUS_ERR_SCHEME;\n"
            "    config.options.clip_left = config.options.clip_right = 3;\n"
            "    in.rel_k = locus_view(rel_k, LOCUS_F32, 2, (int64_t[]){7, in.q.shape[3]});\n"
            "    return locus_call_rows(LOCUS_ATTEND, &config, &in, -5, 11, rows, NULL, error);\n"
            "}\n",
        .python =
            "m, n = np.indices((3, 3))\n"
            "print(np.clip(m - n, -1, 1))  # K = 1\n"
            "# [[ 0 -1 -1]\n"
            "#  [ 1  0 -1]\n"
            "#  [ 1  1  0]]\n",
        .costs = {"relative_key"},
        .papers = "Shaw, Uszkoreit, Vaswani 2018, <cite>Self-Attention with Relative Position Representations</cite>. "
                  "Huang et al. 2020, <cite>Improve Transformer Models with Better Relative Position "
                  "Embeddings</cite>.",
    },
    {
        .id = "shaw",
        .title = "Shaw: distances beside keys and values",
        .formula = LINES(
            LINE(SCORE, EQUALS FRACTION(Q DOT BRACKETS(K PLUS TABLE_ROW("RK", I("r"))), WIDTH))
            LINE(OUT, EQUALS SUM(I("n")) WEIGHT BRACKETS(V PLUS TABLE_ROW("RV", I("r"))))
            LINE(I("r"), EQUALS I("clip") BRACKETS(DISTANCE))),
        .said = "s_mn = q_m . (k_n + RK[r]) / sqrt(D);  out_m = sum over n of a_mn (v_n + RV[r]);  r = clip(m - n)",
        .because = "A table by distance is a list of rows. Something has to take them into the score.",
        .sentences = {
            "Shaw, Uszkoreit and Vaswani (2018) put the distance where a token is read: one vector is added to the "
            "key when it is scored, another to the value when it is averaged.",
            "Multiplied out, the score has a second term <i>q<sub>m</sub></i> &sdot; RK[<i>r</i>]: a query can ask for "
            "a content and for a place, and which place it wants depends on who asks.",
            "The value vectors tell the output from where each part of it came; in the authors&rsquo; translation tests "
            "the key vectors alone did as well as both.",
            "Taken literally, <i>k<sub>n</sub></i> + RK[<i>r</i>] is another vector for every pair, an array of "
            "<i>T</i> &times; <i>T</i> &times; <i>D</i> numbers; taken apart, each query needs only 2<i>K</i> + 1 "
            "products with the table.",
            "Locus keeps those products in a strip that rolls along with the keys and looks up the one that each "
            "pair needs, so that not even a <i>T</i> &times; <i>T</i> array exists, forward or backward.",
        },
        .scheme = "shaw", .what = "terms",
        .caption = "Head 0: content, what the clipped distance adds to it, and their sum. The second map is no "
                   "function of the distance alone, because each query reads the table in its own way.",
        .code =
            "/* rel_k, rel_v: 2 * clip + 1 rows of D numbers, shared by the heads. */\n"
            "locus_status shaw(locus_tensors in, float *rel_k, float *rel_v, int64_t clip,\n"
            "                  const locus_results *results, locus_error *error)\n"
            "{\n"
            "    const int64_t shape[] = {2 * clip + 1, in.q.shape[3]};\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"shaw\") != LOCUS_OK) return LOCUS_ERR_SCHEME;\n"
            "    config.options.clip_left = config.options.clip_right = clip;\n"
            "    in.rel_k = locus_view(rel_k, LOCUS_F32, 2, shape);\n"
            "    in.rel_v = locus_view(rel_v, LOCUS_F32, 2, shape);\n"
            "    return attend(&config, &in, results, error);\n"
            "}\n",
        .python =
            "# Rows of rel_k: n - m = -1, 0, 1, as in the paper, so clip(m - n) = 1 is the first.\n"
            "rel_k = np.array([[2, 0], [0, 0], [0, 1]], \"f\")\n"
            "explain(*qkv, scheme=\"shaw\", clip_left=1, clip_right=1, rel_k=rel_k)\n"
            "# content [1. 0. 1.]\n"
            "# content-position [2. 2. 0.]\n"
            "# score [3. 2. 1.]\n",
        .costs = {"shaw"},
        .papers = "Shaw, Uszkoreit, Vaswani 2018, <cite>Self-Attention with Relative Position Representations</cite>.",
    },
    {
        .id = "transformer-xl",
        .title = "Transformer-XL: the expansion, and what it replaces",
        .formula =
            ABOVE(TERMS(
            LINE3(WORDS("(a)"), TURNED_X MATRICES X, LEADS Q DOT K)
            LINE3(WORDS("(b)"), TURNED_X MATRICES P, LEADS Q DOT WAVES)
            LINE3(WORDS("(c)"), TURNED_P MATRICES X, LEADS I("u") DOT K)
            LINE3(WORDS("(d)"), TURNED_P MATRICES P, LEADS I("v") DOT WAVES)),
            ROW(SCORE EQUALS FRACTION(BRACKETS(Q PLUS I("u")) DOT K PLUS BRACKETS(Q PLUS I("v")) DOT WAVES, WIDTH))),
        .said = "(a) x_m W_q W_k x_n becomes q_m . k_n;  (b) x_m W_q W_k p_n becomes q_m . W_r R_(m-n);  "
                "(c) p_m W_q W_k x_n becomes u . k_n;  (d) p_m W_q W_k p_n becomes v . W_r R_(m-n);  "
                "s_mn = ((q_m + u) . k_n + (q_m + v) . W_r R_(m-n)) / sqrt(D)",
        .because = "Beyond Shaw&rsquo;s clip every distance is the same, and a text that is read in pieces needs the "
                   "words of the piece before.",
        .sentences = {
            "Dai et al. (2019) read a long text piece by piece and keep the states of the last piece as a memory; "
            "with absolute positions both pieces would count from zero, and a token could not tell old from new.",
            "So they multiplied out the score of absolute positions, found four terms (on the left above), and "
            "replaced every one of them but the first.",
            "The key&rsquo;s position <i>p<sub>n</sub></i> becomes the sinusoid <i>R</i> of the distance with a projection "
            "<i>W<sub>r</sub></i> of its own, and the query&rsquo;s position <i>p<sub>m</sub></i>, which means nothing "
            "where only distances count, becomes two learned vectors: <i>u</i> beside contents, <i>v</i> beside "
            "distances (the tensor <code>w</code> of Locus).",
            "The picture shows the result: (a) and (b) vary with the query, (c) is constant down each column (a word "
            "worth looking at from anywhere), (d) is constant along each diagonal (a distance worth looking at, "
            "whatever stands there).",
            "As <i>R</i> is a formula, no table limits the length; XLNet (Yang et al. 2019) and, for speech, Conformer "
            "(Gulati et al. 2020) took this score over.",
        },
        .scheme = "transformer_xl", .what = "terms",
        .caption = "The four terms of head 0 on one scale, and the score that softmax sees.",
        .code =
            "/* rel_k: W_r R for the distances 1 - T .. T - 1, as [H, 2 T - 1, D]; u, w: [H, D].\n"
            " * A layer (locus_layer_new) makes rel_k from w_r itself. */\n"
            "locus_status transformer_xl(locus_tensors in, float *rel_k, float *u, float *w,\n"
            "                            const locus_results *results, locus_error *error)\n"
            "{\n"
            "    const int64_t H = in.q.shape[1], T = in.q.shape[2], D = in.q.shape[3];\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"transformer_xl\") != LOCUS_OK)\n"
            "        return LOCUS_ERR_SCHEME;\n"
            "    config.options.delta_min = 1 - T; /* the distance of row 0 */\n"
            "    in.rel_k = locus_view(rel_k, LOCUS_F32, 3, (int64_t[]){H, 2 * T - 1, D});\n"
            "    in.u = locus_view(u, LOCUS_F32, 2, (int64_t[]){H, D});\n"
            "    in.w = locus_view(w, LOCUS_F32, 2, (int64_t[]){H, D});\n"
            "    return attend(&config, &in, results, error);\n"
            "}\n",
        .python =
            "# Rows of rel_k: W_r R for m - n = -2 .. 2. The paper's v is the tensor w.\n"
            "rel_k = np.array([[[0, 0], [0, 0], [0, 1], [1, 0], [1, 1]]], \"f\")\n"
            "u, v = np.array([[1, 2]], \"f\"), np.array([[0, 2]], \"f\")\n"
            "explain(*qkv, scheme=\"transformer_xl\", delta_min=-2, rel_k=rel_k, u=u, w=v)\n"
            "# content [1. 0. 1.]\n"
            "# content-position [1. 1. 0.]\n"
            "# u.k [1. 2. 1.]\n"
            "# w.r [2. 0. 2.]\n"
            "# score [5. 3. 4.]\n",
        .costs = {"transformer_xl"},
        .papers = "Dai et al. 2019, <cite>Transformer-XL: Attentive Language Models beyond a Fixed-Length "
                  "Context</cite>. Yang et al. 2019, <cite>XLNet</cite>. Gulati et al. 2020, <cite>Conformer: "
                  "Convolution-augmented Transformer for Speech Recognition</cite>.",
    },
    {.id = NULL},
};
/* clang-format on */

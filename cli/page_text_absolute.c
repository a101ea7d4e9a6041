/* SPDX-License-Identifier: Apache-2.0 */
/* Lessons: no positions, learned positions, sinusoids. */
#include "page.h"
#include "page_math.h"

/* clang-format off */
const page_lesson page_absolute[] = {
    {
        .id = "why",
        .title = "Why attention needs position",
        .formula = LINES(
            LINE(WEIGHT, EQUALS SUB(I("softmax"), I("n")) BRACKETS(FRACTION(Q DOT K, WIDTH)))
            LINE(OUT, EQUALS SUM(I("n")) WEIGHT V)),
        .said = "a_mn = softmax over n of q_m . k_n / sqrt(D);  out_m = sum over n of a_mn v_n",
        .sentences = {
            "Attention compares every query with every key and averages the values with the weights that "
            "result: a sum over a set, in which no order is written down.",
            "Exchange two words of the input, and the same two rows of the output change places; nothing else "
            "happens.",
            "Our sentence holds <i>the</i> twice, with the same query, key and value each time, so in the "
            "picture the two rows of <i>the</i> are equal, and so are its two columns.",
            "To such a layer <q>dog bites man</q> and <q>man bites dog</q> are the same three words.",
            "A causal mask breaks the symmetry, because a query can then tell how many keys it sees, and decoders "
            "do learn from that alone (Kazemnejad et al. 2023); everything below says more openly where a token "
            "is, at one of eight places in the score.",
        },
        .scheme = "none", .what = "attention", .heads = 1,
        .caption = "The weights of a head without positions. Queries run down, keys across; the contents "
                   "are made up, and equal words have equal contents.",
        .code =
            "#include <locus/locus.h>\n"
            "#include <stdlib.h>\n"
            "\n"
            "/* Plan, workspace, call: the same for every scheme.\n"
            " * in: q, k, v as [B, H, T, D]; results: out like q, lse as [B, H, T]. */\n"
            "locus_status attend(const locus_config *config, const locus_tensors *in,\n"
            "                    const locus_results *results, locus_error *error)\n"
            "{\n"
            "    locus_plan *plan = NULL;\n"
            "    locus_status status = locus_plan_new(&plan, config, in, error);\n"
            "    if (status != LOCUS_OK) return status;\n"
            "    const size_t bytes = locus_forward_workspace(plan);\n"
            "    void *workspace = malloc(bytes);\n"
            "    status = workspace == NULL ? LOCUS_ERR_MEMORY\n"
            "        : locus_forward(plan, in, results, workspace, bytes, error);\n"
            "    free(workspace);\n"
            "    locus_plan_free(plan);\n"
            "    return status;\n"
            "}\n"
            "\n"
            "locus_status plain(locus_tensors in, const locus_results *results,\n"
            "                   locus_error *error)\n"
            "{\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"none\") != LOCUS_OK) return LOCUS_ERR_SCHEME;\n"
            "    return attend(&config, &in, results, error);\n"
            "}\n",
        .python =
            "import numpy as np\n"
            "import locus\n"
            "\n"
            "np.set_printoptions(precision=3, suppress=True)\n"
            "x = np.array([[1, 0], [0, 1], [1, 0]], \"f\")  # on paper: \"a b a\", three tokens of two channels\n"
            "qkv = [x[None, None]] * 3                    # q = k = v = x\n"
            "\n"
            "def explain(*qkv, **scheme):  # the last token asks: each term for the keys 0, 1, 2, then their sum\n"
            "    found = locus.explain(*qkv, scale=1, **scheme)\n"
            "    for name, term in found.terms.items():\n"
            "        print(name, term[2])\n"
            "    print(\"score\", found.score[2])\n"
            "\n"
            "explain(*qkv)\n"
            "# content [1. 0. 1.]\n"
            "# score [1. 0. 1.]\n",
        .costs = {"none"},
        .papers = "Vaswani et al. 2017, <cite>Attention Is All You Need</cite>. Kazemnejad et al. 2023, <cite>The "
                  "Impact of Positional Encoding on Length Generalization in Transformers</cite>.",
    },
    {
        .id = "absolute",
        .title = "Absolute positions: a row for every place",
        .formula = LINES(
            LINE(Q, EQUALS SUB(I("W"), I("q")) BRACKETS(SUB(I("x"), I("m")) PLUS SUB(I("p"), I("m"))))
            LINE(K, EQUALS SUB(I("W"), I("k")) BRACKETS(SUB(I("x"), I("n")) PLUS SUB(I("p"), I("n"))))
            LINE(V, EQUALS SUB(I("W"), I("v")) BRACKETS(SUB(I("x"), I("n")) PLUS SUB(I("p"), I("n"))))
            LINE(SCORE, EQUALS FRACTION(Q DOT K, WIDTH))),
        .said = "q_m = W_q (x_m + p_m);  k_n = W_k (x_n + p_n);  v_n = W_v (x_n + p_n);  s_mn = q_m . k_n / sqrt(D)",
        .because = "Without positions order is lost: above, both rows of <i>the</i> are equal.",
        .sentences = {
            "The simplest answer gives position <i>i</i> a vector <i>p<sub>i</sub></i> and adds it to the word that "
            "stands there, before anything is projected.",
            "Gehring et al. (2017) learned such a table for convolutions, and BERT (Devlin et al. 2019) made it "
            "common: one row per position, trained like the vector of a word.",
            "In the picture the two <i>the</i> have parted: the word is the same, its input no longer is, and rows "
            "and columns differ.",
            "Nothing in the table says that position 7 lies between 6 and 8; training has to find that out, from "
            "examples at every position.",
            "And the table ends: a model with 512 rows has nothing to add to token 513.",
        },
        .scheme = "learned", .what = "attention", .heads = 1,
        .caption = "The same sentence after a table of positions was added to the input. The table is random "
                   "here, as before training.",
        .code =
            "/* A layer works on x [B, T, E] and projects it itself (w_q, w_k, w_v, w_o). */\n"
            "locus_status run_layer(const locus_config *config, const locus_tensors *in,\n"
            "                       const locus_results *results, locus_error *error)\n"
            "{\n"
            "    locus_layer *layer = NULL;\n"
            "    locus_status status = locus_layer_new(&layer, config, in, error);\n"
            "    if (status != LOCUS_OK) return status;\n"
            "    const size_t kept = locus_layer_saved_bytes(layer);\n"
            "    const size_t bytes = locus_layer_forward_workspace(layer);\n"
            "    void *saved = malloc(kept), *workspace = malloc(bytes);\n"
            "    status = saved == NULL || workspace == NULL ? LOCUS_ERR_MEMORY\n"
            "        : locus_layer_forward(layer, in, results, saved, kept, workspace, bytes,\n"
            "                              error);\n"
            "    free(saved);\n"
            "    free(workspace);\n"
            "    locus_layer_free(layer);\n"
            "    return status;\n"
            "}\n"
            "\n"
            "/* pos: one row of E numbers per position. */\n"
            "locus_status learned(locus_tensors in, float *pos, int64_t rows, uint32_t heads,\n"
            "                     const locus_results *results, locus_error *error)\n"
            "{\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"learned\") != LOCUS_OK) return LOCUS_ERR_SCHEME;\n"
            "    config.heads = heads;\n"
            "    in.pos = locus_view(pos, LOCUS_F32, 2, (int64_t[]){rows, in.x.shape[2]});\n"
            "    return run_layer(&config, &in, results, error);\n"
            "}\n",
        .python =
            "one = np.eye(2, dtype=\"f\")               # W_q = W_k = W_v = 1\n"
            "layer = dict(x=x[None], w_q=one, w_k=one, w_v=one, heads=1)\n"
            "p = np.array([[0, 0], [1, 0], [1, 1]], \"f\")  # p_0, p_1, p_2; in layers they are added to v, too\n"
            "explain(**layer, scheme=\"learned\", pos=p)\n"
            "# content [1. 0. 1.]\n"
            "# content-position [0. 1. 1.]\n"
            "# position-content [1. 1. 1.]\n"
            "# position-position [0. 1. 2.]\n"
            "# score [2. 3. 5.]\n",
        .costs = {"learned"},
        .papers = "Gehring et al. 2017, <cite>Convolutional Sequence to Sequence Learning</cite>. Devlin et al. 2019, "
                  "<cite>BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding</cite>.",
    },
    {
        .id = "sinusoid",
        .title = "Sinusoids: positions by a formula",
        .formula = LINES(
            LINE(SUB(I("p"), I("i") O(",") N("2") I("t")), EQUALS I("sin") BRACKETS(I("i") SUB(I("&omega;"), I("t"))))
            LINE(SUB(I("p"), I("i") O(",") N("2") I("t") PLUS N("1")),
                 EQUALS I("cos") BRACKETS(I("i") SUB(I("&omega;"), I("t"))))
            LINE(SUB(I("&omega;"), I("t")), EQUALS SUP(N("10000"), NEGATIVE N("2") I("t") O("/") I("E")))),
        .said = "p_(i,2t) = sin(i omega_t);  p_(i,2t+1) = cos(i omega_t);  omega_t = 10000^(-2t/E)",
        .because = "The table ends: there is no row for token 513, and nothing says that place 7 lies between 6 and 8.",
        .sentences = {
            "Vaswani et al. (2017) wrote a formula instead of a table: every pair of columns is the hand of a "
            "clock, and each clock runs slower than the one before it by a constant factor.",
            "The fast hands tell neighbours apart and the slow ones tell the beginning from the end, with periods "
            "from 2&pi; to nearly 10,000 &middot; 2&pi; positions.",
            "The product <i>p<sub>i</sub></i> &sdot; <i>p<sub>j</sub></i> is the sum of cos((<i>i</i> &minus; "
            "<i>j</i>) &omega;<sub>t</sub>) over all clocks: it depends on the distance alone, which is why the "
            "map of similarities is striped along its diagonal.",
            "A step of <i>r</i> positions turns each hand by the same angle wherever it starts, so one linear map "
            "leads from <i>p<sub>i</sub></i> to <i>p<sub>i+r</sub></i>; the authors hoped that this would make "
            "distances easy to learn.",
            "But the projections stand in between, and nothing obliges <i>p<sub>i</sub></i> "
            "<i>W<sub>q</sub></i><sup>T</sup> <i>W<sub>k</sub></i> <i>p<sub>j</sub></i> to depend on the distance "
            "alone; the schemes that follow put the distance in by hand.",
        },
        .scheme = "sinusoidal", .what = "encoding,similarity",
        .caption = "The encodings of 64 positions and their products. The columns are in the order that "
                   "many models store, all sines first; the formula alternates them.",
        .code =
            "/* Three tables go by this name: LOCUS_TABLE_PAPER, _T2T and _HALF. */\n"
            "locus_status sinusoidal(locus_tensors in, uint32_t heads,\n"
            "                        const locus_results *results, locus_error *error)\n"
            "{\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"sinusoidal\") != LOCUS_OK) return LOCUS_ERR_SCHEME;\n"
            "    config.heads = heads;\n"
            "    config.options.table = LOCUS_TABLE_PAPER;\n"
            "    return run_layer(&config, &in, results, error);\n"
            "}\n",
        .python =
            "explain(**layer, scheme=\"sinusoidal\", table=\"paper\")  # p_i = (sin i, cos i)\n"
            "# content [1. 0. 1.]\n"
            "# content-position [0.    0.841 0.909]\n"
            "# position-content [ 0.909 -0.416  0.909]\n"
            "# position-position [-0.416  0.54   1.   ]\n"
            "# score [1.493 0.966 3.819]\n",
        .costs = {"sinusoidal"},
        .papers = "Vaswani et al. 2017, <cite>Attention Is All You Need</cite>.",
    },
    {.id = NULL},
};
/* clang-format on */

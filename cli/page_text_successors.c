/* SPDX-License-Identifier: Apache-2.0 */
/* Lessons: what came after: ALiBi, KERPLE, RoPE, xPos. */
#include "page.h"
#include "page_math.h"

#define APART ROW("<mo stretchy=\"false\">|</mo>" DISTANCE "<mo stretchy=\"false\">|</mo>")
#define CONTENT FRACTION(Q DOT K, WIDTH)

/* clang-format off */
const page_lesson page_successors[] = {
    {
        .id = "alibi",
        .chapter = "Successors",
        .lead = "What came later puts positions into one place only: a bias that needs no table, or a rotation.",
        .part = 1,
        .title = "ALiBi: a straight line",
        .formula = LINES(
            LINE(SCORE, EQUALS CONTENT MINUS SUB(I("&sigma;"), I("h")) APART)
            LINE(SUB(I("&sigma;"), I("h")), EQUALS SUP(N("2"), NEGATIVE N("8") BRACKETS(I("h") PLUS N("1")) O("/") I("H")))),
        .said = "s_mn = q_m . k_n / sqrt(D) - sigma_h |m - n|;  sigma_h = 2^(-8 (h + 1) / H)",
        .because = "All tables so far end, or share their last row: far words were hardly ever seen in training.",
        .sentences = {
            "Press, Smith and Lewis (2022) removed even the table: every head subtracts the distance times a fixed "
            "slope.",
            "With eight heads the slopes run from 1/2 down to 1/256, so that steep heads see their neighbours only "
            "and flat ones nearly everything.",
            "There is nothing to learn and nothing that ends (Locus also takes slopes of your own and gives their "
            "gradient).",
            "A model of 1.3 billion parameters trained on 1,024 tokens was, read at 2,048, as good as one with "
            "sinusoids trained on 2,048: train short, test long.",
            "The price is a preference for what is near that grows with the distance whatever the words say.",
        },
        .scheme = "alibi", .what = "bias", .heads = 8,
        .caption = "A line per head: what is added to the score of a key at that distance.",
        .code =
            "locus_status alibi(locus_tensors in, const locus_results *results,\n"
            "                   locus_error *error)\n"
            "{\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"alibi\") != LOCUS_OK) return LOCUS_ERR_SCHEME;\n"
            "    config.causal = 1; /* no in.slopes: the published ones */\n"
            "    return attend(&config, &in, results, error);\n"
            "}\n",
        .python =
            "explain(*qkv, scheme=\"alibi\", slopes=np.array([0.5], \"f\"))\n"
            "# content [1. 0. 1.]\n"
            "# bias [-1.  -0.5 -0. ]\n"
            "# score [ 0.  -0.5  1. ]\n",
        .costs = {"alibi"},
        .papers = "Press, Smith, Lewis 2022, <cite>Train Short, Test Long: Attention with Linear Biases Enables Input "
                  "Length Extrapolation</cite>.",
    },
    {
        .id = "kerple",
        .part = 1,
        .title = "KERPLE: a line that bends",
        .formula = ROW(SCORE EQUALS CONTENT MINUS SUB(I("p"), I("h")) I("ln")
                       BRACKETS(N("1") PLUS SUB(I("a"), I("h")) APART)),
        .said = "s_mn = q_m . k_n / sqrt(D) - p_h ln(1 + a_h |m - n|)",
        .because = "A straight line forbids what is far: with a steep slope no key beyond a few tokens can win.",
        .sentences = {
            "Chi et al. (2022) asked which functions of the distance may be subtracted at all, and answered with "
            "kernels that are conditionally positive definite; the constant that these leave open vanishes in the "
            "softmax.",
            "Two families came of it, each with two positive numbers per head that are learned: the logarithm above, "
            "and a power, <i>a<sub>h</sub></i> |<i>m</i> &minus; <i>n</i>|<sup><i>p</i></sup>.",
            "ALiBi is the power with exponent 1 and the slope held fixed.",
            "The logarithm rises ever more slowly: after the exponential it multiplies each weight by (1 + <i>a</i> "
            "|<i>m</i> &minus; <i>n</i>|)<sup>&minus;<i>p</i></sup>, a power law where ALiBi decays exponentially, so "
            "far keys keep a voice.",
            "In the authors&rsquo; tests this form did best on texts longer than those of training.",
        },
        .scheme = "kerple", .what = "bias",
        .caption = "The logarithmic form with seeded numbers: steep near the query, nearly flat far away.",
        .code =
            "/* a, p: one positive number per head. */\n"
            "locus_status kerple(locus_tensors in, float *a, float *p,\n"
            "                    const locus_results *results, locus_error *error)\n"
            "{\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"kerple\") != LOCUS_OK) return LOCUS_ERR_SCHEME;\n"
            "    config.options.form = LOCUS_FORM_LOG;\n"
            "    in.a = locus_view(a, LOCUS_F32, 1, (int64_t[]){in.q.shape[1]});\n"
            "    in.p = locus_view(p, LOCUS_F32, 1, (int64_t[]){in.q.shape[1]});\n"
            "    return attend(&config, &in, results, error);\n"
            "}\n",
        .python =
            "one_each = np.array([1], \"f\")  # - p log(1 + a |m - n|)\n"
            "explain(*qkv, scheme=\"kerple\", form=\"log\", p=one_each, a=one_each)\n"
            "# content [1. 0. 1.]\n"
            "# bias [-1.099 -0.693 -0.   ]\n"
            "# score [-0.099 -0.693  1.   ]\n",
        .costs = {"kerple"},
        .papers = "Chi et al. 2022, <cite>KERPLE: Kernelized Relative Positional Embedding for Length "
                  "Extrapolation</cite>.",
    },
    {
        .id = "rope",
        .part = 1,
        .title = "RoPE: turn, do not add",
        .formula = LINES(
            LINE(SCORE, EQUALS FRACTION(BRACKETS(SUB(I("Rot"), I("m")) Q) DOT BRACKETS(SUB(I("Rot"), I("n")) K), WIDTH))
            LINE("", EQUALS FRACTION(Q DOT BRACKETS(SUB(I("Rot"), I("n") MINUS I("m")) K), WIDTH))),
        .said = "s_mn = (Rot_m q_m) . (Rot_n k_n) / sqrt(D) = q_m . (Rot_(n-m) k_n) / sqrt(D)",
        .because = "A bias is the same whatever the words are, and it is added to every pair of a score that is large "
                   "anyway.",
        .sentences = {
            "Su et al. (2021) add nothing: each pair of columns of a query or key is turned by an angle that is the "
            "position times the pair&rsquo;s own speed, the speeds of the sinusoid.",
            "A dot product does not notice a turn that both sides share, so what remains is the difference of the "
            "angles: absolute in the making, relative in effect.",
            "The turning happens before the product and costs a pass over <i>q</i> and <i>k</i>; there is no table, "
            "nothing is learned, and any fast attention kernel can be used as it is.",
            "In the picture every pair turns at its own speed; the mean score of a key that equals its query falls in "
            "waves as the distance grows and the pairs get out of step.",
            "Speeds can be stretched after training (<code>theta_scale</code>) to read longer texts; which columns "
            "form a pair differs between model families, which is why <code>pairing</code> has no default here.",
        },
        .scheme = "rope", .what = "angles,decay",
        .caption = "Angles by position, and the mean score of equal vectors by distance.",
        .code =
            "locus_status rope(locus_tensors in, const locus_results *results,\n"
            "                  locus_error *error)\n"
            "{\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"rope\") != LOCUS_OK) return LOCUS_ERR_SCHEME;\n"
            "    config.causal = 1;\n"
            "    config.options.pairing = LOCUS_PAIRING_HALF; /* Llama; GPT-J: INTERLEAVED */\n"
            "    return attend(&config, &in, results, error);\n"
            "}\n",
        .python =
            "explain(*qkv, scheme=\"rope\", pairing=\"half\")  # a and a, two apart: cos 2\n"
            "# rotation [-0.416  0.841  1.   ]\n"
            "# score [-0.416  0.841  1.   ]\n",
        .costs = {"rope"},
        .papers = "Su et al. 2021, <cite>RoFormer: Enhanced Transformer with Rotary Position Embedding</cite>.",
    },
    {
        .id = "xpos",
        .part = 1,
        .title = "xPos: turns that fade",
        .formula = LINES(
            LINE(SCORE, EQUALS FRACTION(N("1"), WIDTH) SUM(I("t"))
                 BOTH(I("&zeta;"), I("t"), BRACKETS(DISTANCE) O("/") I("b")) BOTH(I("s"), I("m") I("n"), BRACKETS(I("t"))))
            LINE(SUB(I("&zeta;"), I("t")), EQUALS FRACTION(N("2") I("t") PLUS N("0.4") I("D"), N("1.4") I("D")))),
        .said = "s_mn = sum over pairs t of zeta_t^((m - n) / b) times the product of the turned pairs t, over sqrt(D);  "
                "zeta_t = (2 t + 0.4 D) / (1.4 D)",
        .because = "The products of RoPE do not fade: far away they come back in waves.",
        .sentences = {
            "RoPE&rsquo;s waves do not die away, and at distances never seen in training a score may rise again by "
            "accident; Sun et al. (2022) give every pair a decay (in the formula <i>s</i><sup>(<i>t</i>)</sup> is "
            "what RoPE&rsquo;s pair <i>t</i> contributes).",
            "The pair of a query is multiplied by &zeta;<sub>t</sub><sup><i>m</i>/<i>b</i></sup> and that of a key by "
            "&zeta;<sub>t</sub><sup>&minus;<i>n</i>/<i>b</i></sup>; only the quotient, a function of the distance, is "
            "left in the product.",
            "&zeta; is smallest for the fastest pairs, so these are forgotten first and the slow ones carry the far "
            "past.",
            "The decay has a direction, shrinking keys before the query and amplifying those after it, so xPos "
            "belongs with a causal mask.",
            "Taken literally the two factors overflow in a long text; Locus counts from a common origin per tile, "
            "which changes no product and keeps every factor small.",
        },
        .scheme = "xpos", .what = "angles,decay",
        .caption = "As for RoPE, with the factor that is left of four pairs, and the mean score that decays for good.",
        .code =
            "locus_status xpos(locus_tensors in, const locus_results *results,\n"
            "                  locus_error *error)\n"
            "{\n"
            "    locus_config config;\n"
            "    if (locus_config_init(&config, \"xpos\") != LOCUS_OK) return LOCUS_ERR_SCHEME;\n"
            "    config.causal = 1;\n"
            "    config.options.scale_base = 512; /* b */\n"
            "    return attend(&config, &in, results, error);\n"
            "}\n",
        .python =
            "explain(*qkv, scheme=\"xpos\")\n"
            "# rotation [-0.414  0.839  1.   ]\n"
            "# score [-0.414  0.839  1.   ]\n",
        .costs = {"xpos"},
        .papers = "Sun et al. 2022, <cite>A Length-Extrapolatable Transformer</cite>.",
    },
    {.id = NULL},
};
/* clang-format on */

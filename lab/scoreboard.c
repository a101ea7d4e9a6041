/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/scoreboard.h"
#include "core/print.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/compiler.h"
#include "lab/samples.h"
#include "plot/text.h"

const char *lab_verdict_text(lab_verdict verdict)
{
    static const char *const texts[] = {"not run", "open", "contradicted", "reproduced"};
    return texts[verdict];
}

/* ---- words ---- */

static void say(lab_claim *c, const char *format, ...) LOCUS_PRINTF(2, 3);

static void say(lab_claim *c, const char *format, ...)
{
    const size_t at = strlen(c->ours);
    va_list arguments;
    va_start(arguments, format);
    locus_vprint(c->ours + at, sizeof c->ours - at, format, arguments);
    va_end(arguments);
}

static void say_seeds(lab_claim *c, size_t seeds)
{
    say(c, "; %zu seed%s", seeds, seeds == 1 ? "" : "s");
}

/* ---- the findings ---- */

static void judge_r1(lab_claim *c, const lab_results *r)
{
    static const struct {
        const char *scheme;
        double least, most;
    } bounds[] = {{"alibi", 0, 1.01},
                  {"kerple", 0, 1.01},
                  {"t5", 0, 1.05},
                  {"rope", 1.05, INFINITY},
                  {"sinusoidal", 1.15, INFINITY}};
    enum { COUNT = sizeof bounds / sizeof *bounds };
    const int64_t far = lab_length_near(r, "text", "bpc_ratio", 8);
    double means[COUNT];
    sample each[COUNT], *all[COUNT], held = {.count = 0};
    int margin = 1;
    for (size_t i = 0; i < COUNT; i++) {
        each[i] = sample_take(r, "text", bounds[i].scheme, "bpc_ratio", far);
        all[i] = &each[i];
    }
    sample_common(all, COUNT);
    if (each[0].count == 0) return;
    for (size_t i = 0; i < COUNT; i++) {
        means[i] = sample_mean(&each[i]);
        margin &=
            means[i] <= bounds[i].most && (bounds[i].least == 0 || means[i] > bounds[i].least);
        say(c, "%s%s %.3f", i > 0 ? ", " : "bpc(8x)/bpc(1x): ", bounds[i].scheme, means[i]);
    }
    margin &= fmax(means[0], means[1]) <= means[2] && means[2] < means[3] && means[3] < means[4];
    sample_join(&held, &each[0], SUM, 1);
    sample_join(&held, &each[1], MOST, 0);
    c->verdict = sample_judge(each[4], held, margin);
    for (size_t i = 2; c->verdict == LAB_REPRODUCED && i < COUNT; i++) /* the order, seed by seed */
        if (sample_judge(each[i], i == 2 ? held : each[i - 1], 1) != LAB_REPRODUCED)
            c->verdict = LAB_OPEN;
    say_seeds(c, each[4].count);
}

static void judge_r2(lab_claim *c, const lab_results *r)
{
    const int64_t far = lab_length_near(r, "text", "bpc", 4);
    sample alibi = sample_take(r, "text", "alibi", "bpc", far);
    sample kerple = sample_take(r, "text", "kerple", "bpc", far);
    sample_pair(&alibi, &kerple);
    if (alibi.count == 0) return;
    const double gain = 1 - sample_mean(&kerple) / sample_mean(&alibi);
    c->verdict = sample_judge(alibi, kerple, gain > 0.003);
    say(c, "bpc at 4x: KERPLE %.4f, ALiBi %.4f (%+.2f %%)", sample_mean(&kerple),
        sample_mean(&alibi), -100 * gain);
    say_seeds(c, alibi.count);
}

static void judge_r3(lab_claim *c, const lab_results *r)
{
    const int64_t n = lab_length_near(r, "text", "bpc", 1),
                  far = lab_length_near(r, "text", "bpc", 2);
    sample rope = sample_take(r, "text", "rope", "bpc", n),
           xpos = sample_take(r, "text", "xpos", "bpc", n);
    sample rope_far = sample_take(r, "text", "rope", "bpc", far);
    sample xpos_far = sample_take(r, "text", "xpos", "bpc", far);
    sample_common((sample *const[]){&rope, &xpos, &rope_far, &xpos_far}, 4);
    if (rope.count == 0) return;
    c->verdict = sample_judge(rope_far, xpos_far, sample_mean(&xpos) <= 1.003 * sample_mean(&rope));
    say(c, "bpc at 1x: xPos %.4f, RoPE %.4f; at 2x: %.4f, %.4f", sample_mean(&xpos),
        sample_mean(&rope), sample_mean(&xpos_far), sample_mean(&rope_far));
    say_seeds(c, rope.count);
}

/* The plain scheme that is furthest below (or above) `beside`, each over the seeds that both have;
 * `but` left out; NULL: none. */
static const char *extreme(const lab_results *r, const char *task, const char *metric,
                           int64_t length, int greatest, const char *but, const sample *beside)
{
    const char *best = NULL;
    double best_value = NAN;
    const int32_t t = lab_task_index(r, task);
    for (int32_t s = 0; t >= 0 && s < (int32_t)r->scheme_count; s++) {
        sample each = sample_take(r, task, r->schemes[s], metric, length), other = *beside;
        sample_pair(&each, &other);
        const double value = sample_mean(&each) - sample_mean(&other);
        if (isnan(value) || !lab_is_plain(r->schemes[s])) continue;
        if (but != NULL && strcmp(but, r->schemes[s]) == 0) continue;
        if (best == NULL || (greatest ? value > best_value : value < best_value)) {
            best = r->schemes[s];
            best_value = value;
        }
    }
    return best;
}

static void judge_r4(lab_claim *c, const lab_results *r)
{
    const int64_t n = lab_length_near(r, "text", "bpc", 1);
    sample none = sample_take(r, "text", "none", "bpc", n),
           sine = sample_take(r, "text", "sinusoidal", "bpc", n);
    sample alibi = sample_take(r, "text", "alibi", "bpc", n),
           t5 = sample_take(r, "text", "t5", "bpc", n);
    sample_common((sample *const[]){&none, &sine, &alibi, &t5}, 4);
    if (none.count == 0) return;
    sample behind = none, ahead = alibi;
    sample_join(&behind, &sine, LEAST, 0);
    sample_join(&ahead, &t5, LEAST, 0);
    const char *best = extreme(r, "text", "bpc", n, 0, NULL, &ahead);
    const double apart = exp2(fabs(sample_mean(&none) - sample_mean(&sine))) - 1;
    const int leads = strcmp(best, "alibi") == 0 || strcmp(best, "t5") == 0;
    c->verdict = sample_judge(behind, ahead, apart <= 0.05 && leads);
    say(c,
        "perplexity of none and sinusoidal %.1f %% apart; bpc at 1x: none %.4f, sinusoidal %.4f, "
        "ALiBi %.4f, T5 %.4f; best %s",
        100 * apart, sample_mean(&none), sample_mean(&sine), sample_mean(&alibi), sample_mean(&t5),
        best);
    say_seeds(c, none.count);
}

static void judge_r5(lab_claim *c, const lab_results *r)
{
    const int64_t n = lab_length_near(r, "masked", "perplexity", 1);
    sample none = sample_take(r, "masked", "none", "perplexity", n);
    const char *worst = extreme(r, "masked", "perplexity", n, 1, "none", &none);
    if (worst == NULL) return;
    sample other = sample_take(r, "masked", worst, "perplexity", n);
    sample_pair(&none, &other);
    const double ratio = sample_mean(&none) / sample_mean(&other);
    c->verdict = sample_judge(none, other, ratio >= 2);
    say(c, "perplexity of none %.2f, of the worst other scheme (%s) %.2f: %.2f times",
        sample_mean(&none), worst, sample_mean(&other), ratio);
    say_seeds(c, none.count);
}

/* The mean of a group's ranked members, seed by seed; says who was left out. *missing: somebody was
 * not run at all. */
static sample group(lab_claim *c, const lab_results *r, const char *const *schemes, int64_t length,
                    int *missing)
{
    sample total = {.count = 0};
    double members = 0;
    for (; *schemes != NULL; schemes++) {
        const int32_t task = lab_task_index(r, "copy"), scheme = lab_scheme_index(r, *schemes);
        const lab_value *v = lab_find(r, task, scheme, "em", length, LAB_MEAN);
        const sample each = sample_take(r, "copy", *schemes, "em", length);
        if (v == NULL) {
            *missing |= strcmp(*schemes, "learned") != 0; /* which has no value there anyway */
        } else if (isnan(v->value) || !lab_is_ranked(r, task, scheme)) {
            say(c, "%s left out: %s; ", *schemes,
                isnan(v->value) ? "undefined beyond its table" : "a seed below 95 % inside L");
        } else {
            sample_join(&total, &each, SUM, members == 0);
            members++;
        }
    }
    for (size_t i = 0; i < total.count; i++) total.value[i] /= members;
    return total;
}

static int is_copier(const lab_results *r, const char *scheme)
{
    return lab_is_ranked(r, lab_task_index(r, "copy"), lab_scheme_index(r, scheme));
}

/* Mean exact match of copy at L, over the seeds of `beside`. */
static double inside_copy(const lab_results *r, const char *scheme, const sample *beside)
{
    sample inside = sample_take(r, "copy", scheme, "em", lab_length(r, lab_task_index(r, "copy")));
    sample other = *beside;
    sample_pair(&inside, &other);
    return sample_mean(&inside);
}

/* Who has not learned to copy inside L says nothing about what is beyond. */
static int fails_beyond(const lab_results *r, const char *scheme, const sample *beyond)
{
    return !is_copier(r, scheme) || sample_mean(beyond) <= 0.05;
}

static void judge_r6(lab_claim *c, const lab_results *r)
{
    static const char *const ahead[] = {"alibi", "t5", "none", NULL};
    static const char *const behind[] = {"rope", "sinusoidal", "learned", NULL};
    const int64_t at = lab_length_near(r, "copy", "em", 1.25),
                  further = lab_length_near(r, "copy", "em", 1.5);
    int missing = at == LAB_NO_LENGTH || further == LAB_NO_LENGTH;
    sample first = group(c, r, ahead, at, &missing);
    sample second = group(c, r, behind, at, &missing);
    sample rope = sample_take(r, "copy", "rope", "em", further);
    sample sine = sample_take(r, "copy", "sinusoidal", "em", further);
    const int compared = first.count > 0 && second.count > 0;
    sample_common((sample *const[]){&rope, &sine, &first, &second}, compared ? 4 : 2);
    if (missing || rope.count == 0) return;
    c->verdict =
        sample_judge(first, second,
                     fails_beyond(r, "rope", &rope) && fails_beyond(r, "sinusoidal", &sine));
    if (!compared) {
        c->verdict = LAB_OPEN;
        say(c, "nobody to compare; ");
    } else {
        say(c, "EM at 1.25 L: %.3f against %.3f; ", sample_mean(&first), sample_mean(&second));
    }
    say(c, "at 1.5 L (inside L): RoPE %.3f (%.3f), sinusoidal %.3f (%.3f)", sample_mean(&rope),
        inside_copy(r, "rope", &rope), sample_mean(&sine), inside_copy(r, "sinusoidal", &sine));
    say_seeds(c, rope.count);
}

static void judge_r7(lab_claim *c, const lab_results *r)
{
    static const char *const clips[] = {"shaw+clip2", "shaw+clip4", "shaw", "shaw+clip64"};
    const int64_t n = lab_length_near(r, "masked", "loss", 1);
    enum { CLIPS = sizeof clips / sizeof *clips };
    sample zero = sample_take(r, "masked", "shaw+clip0", "loss", n);
    sample each[CLIPS], *all[CLIPS + 1] = {&zero}, flat = {.count = 0};
    const char *names[CLIPS];
    double least = INFINITY, most = 0;
    size_t members = 0;
    for (size_t i = 0; i < CLIPS; i++) {
        each[members] = sample_take(r, "masked", clips[i], "loss", n);
        if (each[members].count == 0) continue;
        names[members] = strcmp(clips[i], "shaw") == 0 ? "16" : clips[i] + strlen("shaw+clip");
        all[members + 1] = &each[members];
        members++;
    }
    sample_common(all, members + 1);
    if (zero.count == 0 || members < 2) return;
    say(c, "masked loss: k = 0 %.4f", sample_mean(&zero));
    for (size_t i = 0; i < members; i++) {
        const double mean = sample_mean(&each[i]);
        sample_join(&flat, &each[i], MOST, i == 0);
        least = fmin(least, mean);
        most = fmax(most, mean);
        say(c, ", %s %.4f", names[i], mean);
    }
    c->verdict = sample_judge(zero, flat, most <= 1.01 * least && sample_mean(&zero) > 1.01 * most);
    say_seeds(c, zero.count);
}

static void judge_r8(lab_claim *c, const lab_results *r)
{
    const int64_t n = lab_length_near(r, "text", "bpc", 1);
    for (size_t s = 0; s < r->scheme_count; s++) {
        if (strncmp(r->schemes[s], "transformer_xl+memory", 21) != 0) continue;
        sample without = sample_take(r, "text", "transformer_xl", "bpc", n);
        sample with = sample_take(r, "text", r->schemes[s], "bpc", n);
        sample_pair(&with, &without);
        if (with.count == 0) continue;
        c->verdict = sample_judge(without, with, 1);
        say(c, "bpc at 1x: %.4f with %s rows of memory, %.4f without", sample_mean(&with),
            r->schemes[s] + 21, sample_mean(&without));
        say_seeds(c, with.count);
        return;
    }
}

static void judge_r9(lab_claim *c, const lab_results *r)
{
    const int32_t task = lab_task_index(r, "masked"), scheme = lab_scheme_index(r, "tupe");
    sample steps = {.count = 0}, budget = {.count = 0};
    for (size_t i = 0; task >= 0 && scheme >= 0 && i < r->run_count; i++) {
        const lab_run *run = &r->runs[i];
        if (run->task != task || run->scheme != scheme || steps.count == SAMPLE_SEEDS) continue;
        const lab_value *v =
            lab_find(r, task, scheme, "steps_to_learned", LAB_NO_LENGTH, run->seed);
        if (v == NULL || run->test_count == 0) continue;
        const double end = run->tests[2 * run->test_count - 2];
        steps.seed[steps.count] = budget.seed[steps.count] = run->seed;
        budget.value[steps.count] = 1;
        /* Never there: later than the end, which is the wrong sign. */
        steps.value[steps.count++] = isnan(v->value) ? 2 : v->value / end;
    }
    budget.count = steps.count;
    if (steps.count == 0) return;
    c->verdict = sample_judge(budget, steps, sample_mean(&steps) <= 0.7);
    if (sample_mean(&steps) > 1.5)
        say(c, "TUPE does not reach the final masked loss of learned");
    else
        say(c, "TUPE has the final masked loss of learned after %.0f %% of the steps",
            100 * sample_mean(&steps));
    say_seeds(c, steps.count);
}

static void judge_r10(lab_claim *c, const lab_results *r)
{
    const int64_t n = lab_length_near(r, "masked", "loss", 1);
    sample full = sample_take(r, "masked", "deberta", "loss", n);
    sample c2p = sample_take(r, "masked", "deberta+terms-c2p", "loss", n);
    sample p2c = sample_take(r, "masked", "deberta+terms-p2c", "loss", n);
    sample none = sample_take(r, "masked", "deberta+terms-none", "loss", n);
    sample_common((sample *const[]){&full, &c2p, &p2c, &none}, 4);
    if (full.count == 0) return;
    sample better = c2p, worse = c2p;
    sample_join(&better, &p2c, LEAST, 0);
    sample_join(&worse, &p2c, MOST, 0);
    c->verdict = verdict_both(sample_judge(better, full, 1), sample_judge(none, worse, 1));
    say(c, "masked loss: both terms %.4f, c2p only %.4f, p2c only %.4f, neither %.4f",
        sample_mean(&full), sample_mean(&c2p), sample_mean(&p2c), sample_mean(&none));
    say_seeds(c, full.count);
}

/* The highest accuracy of any run at twice L, and whether some scheme is above `limit` always. */
static int control(lab_claim *c, const lab_results *r, const char *task, double limit, int *above)
{
    const int64_t far = lab_length_near(r, task, "accuracy", 2);
    const int32_t t = lab_task_index(r, task);
    double most = -1, best = -1;
    int32_t who = -1;
    size_t seeds = 0;
    for (int32_t s = 0; t >= 0 && s < (int32_t)r->scheme_count; s++) {
        const sample each = sample_take(r, task, r->schemes[s], "accuracy", far);
        double least = INFINITY;
        for (size_t i = 0; i < each.count; i++) {
            if (each.value[i] > most) most = each.value[i], who = s;
            least = fmin(least, each.value[i]);
        }
        if (each.count > seeds) seeds = each.count;
        if (each.count > 0) best = fmax(best, least);
    }
    if (who < 0) return 0;
    *above |= best > limit ? 2 : most > limit ? 1 : 0;
    say(c, "%s%s at 2 L: at most %.3f (%s)", c->ours[0] != '\0' ? "; " : "", task, most,
        r->schemes[who]);
    say_seeds(c, seeds);
    return 1;
}

static void judge_r11(lab_claim *c, const lab_results *r)
{
    int above = 0;
    const int parity = control(c, r, "parity", 0.6, &above);
    control(c, r, "mod5", 0.36, &above); /* as far above its chance of 0.2 as 0.6 is above 0.5 */
    if (!parity) return;
    c->verdict = above >= 2 ? LAB_CONTRADICTED : above == 1 ? LAB_OPEN : LAB_REPRODUCED;
}

static void judge_r12(lab_claim *c, const lab_results *r)
{
    const int64_t far = lab_length_near(r, "copy", "em", 2);
    const char *metric = "em", *random = "sinusoidal+positions-subset";
    sample plain = sample_take(r, "copy", "sinusoidal", metric, far);
    sample subset = sample_take(r, "copy", random, metric, far);
    sample_pair(&plain, &subset);
    if (plain.count == 0) return;
    if (sample_mean(&plain) == 0 && sample_mean(&subset) == 0) { /* nothing to compare: by tokens */
        metric = "token_accuracy";
        plain = sample_take(r, "copy", "sinusoidal", metric, far);
        subset = sample_take(r, "copy", random, metric, far);
        sample_pair(&plain, &subset);
    }
    c->verdict = sample_judge(subset, plain, 1);
    if (c->verdict != LAB_NOT_RUN && (!is_copier(r, random) || !is_copier(r, "sinusoidal")))
        c->verdict = LAB_OPEN;
    say(c, "%s at 2 L: %.3f with random positions, %.3f without; EM inside L: %.3f and %.3f",
        strcmp(metric, "em") == 0 ? "EM" : "token accuracy (EM is 0 in both)", sample_mean(&subset),
        sample_mean(&plain), inside_copy(r, random, &subset), inside_copy(r, "sinusoidal", &plain));
    say_seeds(c, plain.count);
}

/* clang-format off */
static const struct {
    const char *id, *claim, *published, *rule;
    void (*judge)(lab_claim *claim, const lab_results *results);
} board[LAB_CLAIMS] = {
    {"R1", "A language model reads 8 times its context: ALiBi and KERPLE hold, T5 and then RoPE decay, sinusoidal explodes",
      "bits, about 7 times: ALiBi 0.98, T5 1.05, RoPE 1.19, sinusoidal 1.73 (Press 2022; KERPLE: Chi 2022)",
      "bpc(8x)/bpc(1x): ALiBi, KERPLE at most 1.01, T5 at most 1.05, RoPE above 1.05, sinusoidal above 1.15, in that order in every seed", judge_r1},
    {"R2", "KERPLE (log) is at least as good as ALiBi beyond 2 times the context",
      "perplexity at 4 times: 21.6 against 22.5 (Chi 2022, 5 seeds)",
      "bpc at 4x lower by more than 0.3 %", judge_r2},
    {"R3", "xPos reads further than RoPE and is no worse inside",
      "perplexity 1,024: 23.3 against 25.5; 2,048: 22.6 against 73.6, without blockwise attention (Sun 2022)",
      "inside at most 0.3 % above RoPE; at 2x lower in all seeds", judge_r3},
    {"R4", "A causal model without positions is close to sinusoidal, both behind relative schemes",
      "WikiText-103 perplexity: none 20.97, learned 20.42, sinusoidal 20.16, ALiBi 19.71 (Haviv 2022)",
      "none within 5 % perplexity of sinusoidal; ALiBi or T5 best at 1x", judge_r4},
    {"R5", "An encoder without positions collapses",
      "masked perplexity: none 147, learned 4.06, sinusoidal 4.07, ALiBi 4.00 (Haviv 2022)",
      "none at least 2 times the perplexity of the worst other scheme", judge_r5},
    {"R6", "Copying beyond L: ALiBi, T5 and none ahead of RoPE, sinusoidal and learned",
      "EM at 1.25 L: 73, 73, 70 against 0, 0 (Kazemnejad 2023, 3 seeds)",
      "group means apart at 1.25 L; RoPE and sinusoidal at most 0.05 EM at 1.5 L; schemes with a seed below 95 % inside L left out", judge_r6},
    {"R7", "Shaw: without any distance (k = 0) it collapses, from k = 2 on the clip does not matter",
      "BLEU for k = 0, 1, 2, 4, 16, 64: 12.5, 25.5, 25.8, 25.9, 25.8, 25.9 (Shaw 2018)",
      "masked loss for k = 2 and more within 1 % of each other, k = 0 above them", judge_r7},
    {"R8", "Transformer-XL: memory helps at an equal number of tokens",
      "WikiText-103 perplexity: 26.77 with memory, 29.02 without (Dai 2019)",
      "bpc at 1x lower with memory", judge_r8},
    {"R9", "TUPE gets where learned positions end, sooner",
      "GLUE at 300k steps 83.3, absolute positions at 1M steps 83.0 (Ke 2020)",
      "masked loss of learned's end within 70 % of the steps", judge_r9},
    {"R10", "Both relative terms of DeBERTa help",
      "MNLI: both 86.3, without p2c 86.0, without c2p 85.9 (He 2020)",
      "masked loss: both terms below either alone, either alone below neither", judge_r10},
    {"R11", "Parity and counting modulo 5 fail for every scheme beyond L (a negative control)",
      "parity 52, modular arithmetic 24 of 100 (Deletang 2022); parity 51 to 66 (Kazemnejad 2023)",
      "every scheme at most 0.60 on parity (0.36 modulo 5) at 2 L; a success is a leak", judge_r11},
    {"R12", "Random positions in training repair absolute schemes",
      "+12 points over 15 tasks (Ruoss 2023)",
      "sinusoidal with random positions above sinusoidal at 2 L on copy, both at least 95 % inside L in every seed", judge_r12},
};
/* clang-format on */

void lab_scoreboard(lab_claim claims[LAB_CLAIMS], const lab_results *results)
{
    for (size_t i = 0; i < LAB_CLAIMS; i++) {
        claims[i] = (lab_claim){.id = board[i].id,
                                .claim = board[i].claim,
                                .published = board[i].published,
                                .rule = board[i].rule,
                                .verdict = LAB_NOT_RUN};
        board[i].judge(&claims[i], results);
        if (claims[i].verdict == LAB_NOT_RUN) claims[i].ours[0] = '\0';
    }
}

/* A string of ours: no control characters, but quotes may be. */
static void put_string(plot_text *text, const char *name, const char *value)
{
    plot_puts(text, "\"");
    plot_puts(text, name);
    plot_puts(text, "\": \"");
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\') plot_char(text, '\\');
        plot_char(text, *value);
    }
    plot_puts(text, "\"");
}

void lab_scoreboard_json(const lab_claim claims[LAB_CLAIMS], locus_text *out)
{
    plot_text text = {.to = out};
    for (size_t i = 0; i < LAB_CLAIMS; i++) {
        const lab_claim *c = &claims[i];
        const char *const fields[][2] = {
            {"id", c->id},     {"claim", c->claim}, {"published", c->published},
            {"rule", c->rule}, {"ours", c->ours},   {"verdict", lab_verdict_text(c->verdict)}};
        plot_puts(&text, i == 0 ? "[\n  {" : ",\n  {");
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
            if (f > 0) plot_puts(&text, ",\n   ");
            put_string(&text, fields[f][0], fields[f][1]);
        }
        plot_puts(&text, "}");
    }
    plot_puts(&text, "\n]\n");
}

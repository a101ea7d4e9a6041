/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "model/model.h"

/* Rotary frequencies as config.json scales them. The formulas are those of transformers
 * (modeling_rope_utils.py), which computes them in float32. */

static const double two_pi = 6.283185307179586;

/* llama3: waves longer than trained / low are divided by the factor, those shorter than
 * trained / high are kept, between them the two are mixed. */
static double llama3(const model_rope *r, double frequency)
{
    const double wave = two_pi / frequency, trained = (double)r->trained;
    if (wave < trained / r->high) return frequency;
    if (wave > trained / r->low) return frequency / r->factor;
    const double mix = (trained / wave - r->low) / (r->high - r->low);
    return (1.0 - mix) * frequency / r->factor + mix * frequency;
}

/* Pairs up to r->low are kept, from r->high on divided, between them the two are mixed. */
static double yarn(const model_rope *r, int64_t pair, double frequency)
{
    const double width = r->high - r->low, at = ((double)pair - r->low) / width;
    const double mix = at < 0.0 ? 0.0 : at > 1.0 ? 1.0 : at;
    return frequency / r->factor * mix + frequency * (1.0 - mix);
}

static double scaled(const model_rope *r, int64_t pair, int64_t tokens, double frequency)
{
    switch (r->kind) {
    case MODEL_ROPE_LINEAR: return frequency / r->factor;
    case MODEL_ROPE_LLAMA3: return llama3(r, frequency);
    case MODEL_ROPE_YARN: return yarn(r, pair, frequency);
    case MODEL_ROPE_LONG: return frequency / (tokens > r->trained ? r->lengthy : r->brief)[pair];
    case MODEL_ROPE_SOME: return (double)pair < r->low ? frequency / r->factor : 0.0;
    default: return frequency;
    }
}

void model_rope_frequencies(const model_rope *r, int64_t turned, int64_t tokens, float *frequency)
{
    const double D = (double)turned, trained = (double)r->trained;
    double base = r->base;
    if (r->kind == MODEL_ROPE_DYNAMIC && tokens > r->trained)
        base *= pow(r->factor * (double)tokens / trained - (r->factor - 1.0), D / (D - 2.0));
    for (int64_t t = 0; t < turned / 2; t++)
        frequency[t] = (float)scaled(r, t, tokens, 1.0 / pow(base, (double)(2 * t) / D));
}

/* Where the keys of a scaling are: transformers 4 writes rope_theta and rope_scaling, 5 all of it in
 * rope_parameters. */
typedef struct rope_keys {
    const model_settings *settings;
    const char *group;
    char path[96];
    int64_t turned, trained; /* columns of a head; max_position_embeddings */
    locus_arena *arena;
} rope_keys;

static const char *key_of(rope_keys *k, const char *name)
{
    snprintf(k->path, sizeof k->path, "%s.%s", k->group, name);
    return k->path;
}

static locus_status read_llama3(rope_keys *k, model_rope *r, locus_error *error)
{
    const model_settings *s = k->settings;
    LOCUS_TRY(model_setting_real(s, key_of(k, "low_freq_factor"), 1.0, &r->low, error));
    LOCUS_TRY(model_setting_real(s, key_of(k, "high_freq_factor"), 4.0, &r->high, error));
    LOCUS_TRY(model_setting_integer(s, key_of(k, "original_max_position_embeddings"), r->trained, 1,
                                    1 << 30, &r->trained, error));
    if (!(r->low > 0.0) || !(r->high > r->low))
        return model_setting_refuse(s, key_of(k, "high_freq_factor"),
                                    "more than low_freq_factor, both positive", error);
    return LOCUS_OK;
}

/* The gain of frequencies that are stretched by a factor. */
static double gain_of(double factor, double weight)
{
    return factor > 1.0 ? 0.1 * weight * log(factor) + 1.0 : 1.0;
}

static locus_status read_gain(rope_keys *k, double preset, model_rope *r, locus_error *error)
{
    LOCUS_TRY(
        model_setting_real(k->settings, key_of(k, "attention_factor"), preset, &r->gain, error));
    return r->gain > 0.0 ? LOCUS_OK
                         : model_setting_refuse(k->settings, k->path, "more than 0", error);
}

/* The pair that turns so many times in the tokens of the training. */
static double pair_of(const rope_keys *k, const model_rope *r, double turns)
{
    return (double)k->turned * log((double)r->trained / (turns * two_pi)) / (2.0 * log(r->base));
}

static locus_status read_yarn(rope_keys *k, model_rope *r, locus_error *error)
{
    const model_settings *s = k->settings;
    double fast, slow, scale, all;
    int whole;
    LOCUS_TRY(model_setting_real(s, key_of(k, "beta_fast"), 32.0, &fast, error));
    LOCUS_TRY(model_setting_real(s, key_of(k, "beta_slow"), 1.0, &slow, error));
    if (!(slow > 0.0) || !(fast >= slow))
        return model_setting_refuse(s, key_of(k, "beta_fast"), "at least beta_slow, both positive",
                                    error);
    if (!(r->base > 1.0)) return model_setting_refuse(s, "rope_theta", "more than 1", error);
    LOCUS_TRY(model_setting_real(s, key_of(k, "mscale"), 0.0, &scale, error));
    LOCUS_TRY(model_setting_real(s, key_of(k, "mscale_all_dim"), 0.0, &all, error));
    LOCUS_TRY(model_setting_flag(s, key_of(k, "truncate"), 1, &whole, error));
    LOCUS_TRY(model_setting_integer(s, key_of(k, "original_max_position_embeddings"), r->trained, 1,
                                    1 << 30, &r->trained, error));
    const double most = (double)(k->turned - 1);
    const double low = pair_of(k, r, fast), high = pair_of(k, r, slow);
    r->low = fmax(whole ? floor(low) : low, 0.0);
    r->high = fmin(whole ? ceil(high) : high, most);
    if (r->high == r->low) r->high += 0.001;
    const int both = scale != 0.0 && all != 0.0;
    return read_gain(k,
                     both ? gain_of(r->factor, scale) / gain_of(r->factor, all)
                          : gain_of(r->factor, 1.0),
                     r, error);
}

/* A list of one positive number for each pair. */
static locus_status read_divisors(rope_keys *k, const char *name, const double **to,
                                  locus_error *error)
{
    const int64_t pairs = k->turned / 2;
    double *list = locus_arena_take(k->arena, (size_t)pairs * sizeof *list, 16);
    char path[128];
    if (list == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    if (model_setting_count(k->settings, key_of(k, name)) != pairs)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: %s: found %" PRId64 " numbers, expected %" PRId64
                          ", one for each pair of columns",
                          k->settings->file, k->path, model_setting_count(k->settings, k->path),
                          pairs);
    for (int64_t t = 0; t < pairs; t++) {
        snprintf(path, sizeof path, "%s.%" PRId64, k->path, t);
        LOCUS_TRY(model_setting_real(k->settings, path, 0.0, &list[t], error));
        list[t] = (double)(float)list[t];
        if (!(list[t] > 0.0) || isinf(list[t]))
            return model_setting_refuse(k->settings, path, "a positive number", error);
    }
    *to = list;
    return LOCUS_OK;
}

/* Whole texts beyond the length of the first training turn by other frequencies. */
static locus_status read_long(rope_keys *k, model_rope *r, locus_error *error)
{
    const model_settings *s = k->settings;
    const char *key = "original_max_position_embeddings";
    if (model_setting_find(s, key) == NULL) key = key_of(k, key);
    const int given = model_setting_find(s, key) != NULL;
    LOCUS_TRY(model_setting_integer(s, key, r->trained, 2, 1 << 30, &r->trained, error));
    LOCUS_TRY(read_divisors(k, "short_factor", &r->brief, error));
    LOCUS_TRY(read_divisors(k, "long_factor", &r->lengthy, error));
    const double factor = given ? (double)k->trained / (double)r->trained : r->factor;
    const double preset = factor > 1.0 ? sqrt(1.0 + log(factor) / log((double)r->trained)) : 1.0;
    return read_gain(k, preset, r, error);
}

/* partial_rotary_factor: the share of the pairs that turn. */
static locus_status read_some(rope_keys *k, model_rope *r, locus_error *error)
{
    double share;
    LOCUS_TRY(
        model_setting_real(k->settings, key_of(k, "partial_rotary_factor"), 1.0, &share, error));
    if (!(share > 0.0) || share > 1.0)
        return model_setting_refuse(k->settings, k->path, "more than 0, at most 1", error);
    r->low = floor(share * (double)k->turned / 2.0);
    return LOCUS_OK;
}

static locus_status read_base(rope_keys *k, model_rope *r, locus_error *error)
{
    const model_settings *s = k->settings;
    double turned;
    const char *base = key_of(k, "rope_theta");
    if (model_setting_find(s, base) == NULL) base = "rope_theta";
    LOCUS_TRY(model_setting_real(s, base, r->base > 0.0 ? r->base : 10000.0, &r->base, error));
    if (!(r->base > 0.0)) return model_setting_refuse(s, base, "more than 0", error);
    if (r->kind == MODEL_ROPE_SOME || r->turned > 0) return LOCUS_OK;
    LOCUS_TRY(model_setting_real(s, key_of(k, "partial_rotary_factor"), 1.0, &turned, error));
    if (turned != 1.0) return model_setting_refuse(s, k->path, "1", error);
    LOCUS_TRY(model_setting_real(s, "partial_rotary_factor", 1.0, &turned, error));
    return turned == 1.0 ? LOCUS_OK : model_setting_refuse(s, "partial_rotary_factor", "1", error);
}

static locus_status read_kind(rope_keys *k, model_rope *r, locus_error *error)
{
    static const struct {
        const char *name;
        model_rope_kind kind;
    } kinds[] = {{"default", MODEL_ROPE_PLAIN},   {"linear", MODEL_ROPE_LINEAR},
                 {"dynamic", MODEL_ROPE_DYNAMIC}, {"llama3", MODEL_ROPE_LLAMA3},
                 {"yarn", MODEL_ROPE_YARN},       {"longrope", MODEL_ROPE_LONG},
                 {"su", MODEL_ROPE_LONG},         {"proportional", MODEL_ROPE_SOME}};
    const model_settings *s = k->settings;
    const char *name, *key = key_of(k, "rope_type");
    size_t i = 0;
    if (model_setting_find(s, key) == NULL) key = key_of(k, "type");
    LOCUS_TRY(model_setting_text(s, key, "default", &name, error));
    while (i < sizeof kinds / sizeof *kinds && strcmp(kinds[i].name, name) != 0) i++;
    if (i == sizeof kinds / sizeof *kinds)
        return model_setting_refuse(
            s, key, "default, linear, dynamic, llama3, yarn, longrope or proportional", error);
    r->kind = kinds[i].kind;
    LOCUS_TRY(model_setting_real(s, key_of(k, "factor"), 1.0, &r->factor, error));
    return r->factor >= 1.0 ? LOCUS_OK : model_setting_refuse(s, k->path, "at least 1", error);
}

static locus_status read_more(rope_keys *k, model_rope *r, locus_error *error)
{
    switch (r->kind) {
    case MODEL_ROPE_LLAMA3: return read_llama3(k, r, error);
    case MODEL_ROPE_YARN: return read_yarn(k, r, error);
    case MODEL_ROPE_LONG: return read_long(k, r, error);
    case MODEL_ROPE_SOME: return read_some(k, r, error);
    default: return LOCUS_OK;
    }
}

locus_status model_read_rope_group(const model_settings *s, const char *group, int64_t trained,
                                   model_description *d, locus_error *error)
{
    model_rope *r = &d->rope;
    rope_keys keys = {.settings = s,
                      .group = group,
                      .turned = r->turned > 0 ? r->turned : d->head_dim,
                      .trained = trained,
                      .arena = d->arena};
    r->trained = trained;
    if (keys.turned % 2 != 0) return model_setting_refuse(s, "head_dim", "an even number", error);
    LOCUS_TRY(read_kind(&keys, r, error));
    LOCUS_TRY(read_base(&keys, r, error));
    d->scheme = d->positions_name = "rope";
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    d->options.pairing = LOCUS_PAIRING_HALF;
    d->options.width = r->turned;
    return read_more(&keys, r, error);
}

locus_status model_read_rope(const model_settings *s, int64_t trained, model_description *d,
                             locus_error *error)
{
    const int scaling = model_setting_count(s, "rope_scaling") > 0;
    if (scaling && model_setting_count(s, "rope_parameters") > 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: found rope_scaling and rope_parameters, expected one of them",
                          s->file);
    if (model_setting_count(s, "rope_parameters.full_attention") > 0 ||
        model_setting_count(s, "rope_parameters.sliding_attention") > 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: rope_parameters: found those of kinds of layers, expected one for "
                          "all layers",
                          s->file);
    return model_read_rope_group(s, scaling ? "rope_scaling" : "rope_parameters", trained, d,
                                 error);
}

locus_status model_read_turned(const model_settings *s, const char *key, double preset,
                               model_description *d, locus_error *error)
{
    const char *newer = "rope_parameters.partial_rotary_factor";
    const char *path = model_setting_find(s, newer) != NULL ? newer : key;
    double share;
    LOCUS_TRY(model_setting_real(s, path, preset, &share, error));
    d->rope.turned = share > 0.0 && share <= 1.0 ? (int64_t)((double)d->head_dim * share) : 0;
    return d->rope.turned >= 2 && d->rope.turned % 2 == 0
               ? LOCUS_OK
               : model_setting_refuse(s, path,
                                      "a share of each head that is an even number of columns",
                                      error);
}

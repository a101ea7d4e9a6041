/* SPDX-License-Identifier: Apache-2.0 */
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

void model_rope_frequencies(const model_rope *r, int64_t head_dim, int64_t tokens, float *frequency)
{
    const double D = (double)head_dim, trained = (double)r->trained;
    double base = r->base;
    if (r->kind == MODEL_ROPE_DYNAMIC && tokens > r->trained)
        base *= pow(r->factor * (double)tokens / trained - (r->factor - 1.0), D / (D - 2.0));
    for (int64_t t = 0; t < head_dim / 2; t++) {
        const double plain = 1.0 / pow(base, (double)(2 * t) / D);
        frequency[t] = (float)(r->kind == MODEL_ROPE_LINEAR   ? plain / r->factor
                               : r->kind == MODEL_ROPE_LLAMA3 ? llama3(r, plain)
                                                              : plain);
    }
}

/* Where the keys of a scaling are: transformers 4 writes rope_theta and rope_scaling, 5 all of it in
 * rope_parameters. */
typedef struct rope_keys {
    const model_settings *settings;
    const char *group;
    char path[64];
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

static locus_status read_base(rope_keys *k, model_rope *r, locus_error *error)
{
    const model_settings *s = k->settings;
    double turned;
    const char *base = key_of(k, "rope_theta");
    if (model_setting_find(s, base) == NULL) base = "rope_theta";
    LOCUS_TRY(model_setting_real(s, base, 10000.0, &r->base, error));
    if (!(r->base > 0.0)) return model_setting_refuse(s, base, "more than 0", error);
    LOCUS_TRY(model_setting_real(s, key_of(k, "partial_rotary_factor"), 1.0, &turned, error));
    return turned == 1.0 ? LOCUS_OK : model_setting_refuse(s, k->path, "1", error);
}

static locus_status read_kind(rope_keys *k, model_rope *r, locus_error *error)
{
    static const struct {
        const char *name;
        model_rope_kind kind;
    } kinds[] = {{"default", MODEL_ROPE_PLAIN},
                 {"linear", MODEL_ROPE_LINEAR},
                 {"dynamic", MODEL_ROPE_DYNAMIC},
                 {"llama3", MODEL_ROPE_LLAMA3}};
    const model_settings *s = k->settings;
    const char *name, *key = key_of(k, "rope_type");
    size_t i = 0;
    if (model_setting_find(s, key) == NULL) key = key_of(k, "type");
    LOCUS_TRY(model_setting_text(s, key, "default", &name, error));
    while (i < sizeof kinds / sizeof *kinds && strcmp(kinds[i].name, name) != 0) i++;
    if (i == sizeof kinds / sizeof *kinds)
        return model_setting_refuse(s, key, "default, linear, dynamic or llama3", error);
    r->kind = kinds[i].kind;
    LOCUS_TRY(model_setting_real(s, key_of(k, "factor"), 1.0, &r->factor, error));
    return r->factor >= 1.0 ? LOCUS_OK : model_setting_refuse(s, k->path, "at least 1", error);
}

locus_status model_read_rope(const model_settings *s, int64_t trained, model_description *d,
                             locus_error *error)
{
    model_rope *r = &d->rope;
    const int scaling = model_setting_count(s, "rope_scaling") > 0;
    rope_keys keys = {s, scaling ? "rope_scaling" : "rope_parameters", ""};
    if (scaling && model_setting_count(s, "rope_parameters") > 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: found rope_scaling and rope_parameters, expected one of them",
                          s->file);
    r->trained = trained;
    LOCUS_TRY(read_base(&keys, r, error));
    LOCUS_TRY(read_kind(&keys, r, error));
    if (d->head_dim % 2 != 0) return model_setting_refuse(s, "head_dim", "an even number", error);
    d->scheme = d->positions_name = "rope";
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    d->options.pairing = LOCUS_PAIRING_HALF;
    return r->kind == MODEL_ROPE_LLAMA3 ? read_llama3(&keys, r, error) : LOCUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
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

static locus_status read_llama3(const model_settings *s, model_rope *r, locus_error *error)
{
    LOCUS_TRY(model_setting_real(s, "rope_scaling.low_freq_factor", 1.0, &r->low, error));
    LOCUS_TRY(model_setting_real(s, "rope_scaling.high_freq_factor", 4.0, &r->high, error));
    LOCUS_TRY(model_setting_integer(s, "rope_scaling.original_max_position_embeddings", r->trained,
                                    1, 1 << 30, &r->trained, error));
    if (!(r->low > 0.0) || !(r->high > r->low))
        return model_setting_refuse(s, "rope_scaling.high_freq_factor",
                                    "more than low_freq_factor, both positive", error);
    return LOCUS_OK;
}

locus_status model_read_rope(const model_settings *s, int64_t trained, model_description *d,
                             locus_error *error)
{
    static const struct {
        const char *name;
        model_rope_kind kind;
    } kinds[] = {{"default", MODEL_ROPE_PLAIN},
                 {"linear", MODEL_ROPE_LINEAR},
                 {"dynamic", MODEL_ROPE_DYNAMIC},
                 {"llama3", MODEL_ROPE_LLAMA3}};
    model_rope *r = &d->rope;
    const char *key = model_setting_find(s, "rope_scaling.rope_type") != NULL
                          ? "rope_scaling.rope_type"
                          : "rope_scaling.type";
    const char *name;
    size_t i = 0;
    r->trained = trained;
    if (model_setting_find(s, "rope_parameters.rope_theta") != NULL)
        return model_setting_refuse(s, "rope_parameters.rope_theta",
                                    "rope_theta and rope_scaling, as transformers 4 writes them",
                                    error);
    LOCUS_TRY(model_setting_real(s, "rope_theta", 10000.0, &r->base, error));
    LOCUS_TRY(model_setting_text(s, key, "default", &name, error));
    while (i < sizeof kinds / sizeof *kinds && strcmp(kinds[i].name, name) != 0) i++;
    if (i == sizeof kinds / sizeof *kinds)
        return model_setting_refuse(s, key, "default, linear, dynamic or llama3", error);
    r->kind = kinds[i].kind;
    LOCUS_TRY(model_setting_real(s, "rope_scaling.factor", 1.0, &r->factor, error));
    if (!(r->base > 0.0)) return model_setting_refuse(s, "rope_theta", "more than 0", error);
    if (!(r->factor >= 1.0))
        return model_setting_refuse(s, "rope_scaling.factor", "at least 1", error);
    if (d->head_dim % 2 != 0) return model_setting_refuse(s, "head_dim", "an even number", error);
    d->scheme = d->positions_name = "rope";
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    d->options.pairing = LOCUS_PAIRING_HALF;
    return r->kind == MODEL_ROPE_LLAMA3 ? read_llama3(s, r, error) : LOCUS_OK;
}

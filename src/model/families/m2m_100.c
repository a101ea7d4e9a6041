/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "model/blocks.h"
#include "model/families/marian.h"

/* M2M100 and NLLB: tensor2tensor's sinusoids, counted from the row behind that of padding, which is
 * zeros; the norm before each sublayer and one behind the last. */

static value embed(builder *b)
{
    static const picker by[] = {BY_IDS, BY_POSITIONS};
    const model_description *d = b->d;
    if (!d->shared_words) b->word = slot_tensor(b, SLOT_WORD, 0);
    const value tables[] = {b->word, build_sinusoid(b->p, d->positions, d->width, LOCUS_TABLE_T2T,
                                                    d->padding)};
    return build_embed(b->p, b->tokens, b->stack, tables, by, 2, d->embedding_factor,
                       b->stack == 0);
}

static const model_wiring wiring = {.embed = embed};

static locus_status describe_encoder(const model_settings *s, model_description *d,
                                     locus_error *error)
{
    LOCUS_TRY(model_read_marian_stack(s, 0, d, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 128112, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_integer(s, "max_position_embeddings", 1024, 1, 1 << 20, &d->most_tokens,
                                    error));
    LOCUS_TRY(model_setting_integer(s, "pad_token_id", 1, 0, 1 << 16, &d->padding, error));
    d->first_position = d->padding + 1;
    d->positions = d->most_tokens + d->first_position;
    d->sinusoidal = 1;
    d->positions_name = "sinusoidal";
    model_set_norm_first(d);
    return LOCUS_OK;
}

static locus_status describe_decoder(const model_settings *s, model_description *d,
                                     locus_error *error)
{
    const int64_t padding = d->padding;
    LOCUS_TRY(model_read_marian_decoder(s, d, error));
    d->padding = padding;
    return LOCUS_OK;
}

static const model_family decoder = {
    .type = "m2m_100",
    .prefixes = model_marian_prefixes,
    .names = model_marian_decoder_names,
    .describe = describe_decoder,
    .wiring = &wiring,
};

static const model_ids ids = {.start = 2, .begin = 0, .end = 2, .forced_end = -1};

const model_family model_family_m2m_100 = {
    .type = "m2m_100",
    .prefixes = model_marian_prefixes,
    .names = model_marian_names,
    .describe = describe_encoder,
    .wiring = &wiring,
    .ids = &ids,
    .decoder = &decoder,
};

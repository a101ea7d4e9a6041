/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "model/blocks.h"
#include "model/families/bert.h"

/* Jina's BERT (jina-embeddings-v2): BERT without positions at its input, ALiBi to both sides, a gated
 * feed-forward whose first map makes both halves. Its config.json says "bert", and "alibi". */

static int claims(const model_settings *s)
{
    const json_value *kind = model_setting_find(s, "position_embedding_type");
    return kind != NULL && kind->kind == LOCUS_JSON_STRING && strcmp(kind->text, "alibi") == 0;
}

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    const char *kind;
    LOCUS_TRY(model_refuse_flag(s, "add_cross_attention", error));
    LOCUS_TRY(model_refuse_flag(s, "is_decoder", error));
    LOCUS_TRY(model_read_bert_sizes(s, d, error));
    LOCUS_TRY(model_setting_integer(s, "type_vocab_size", 2, 0, 1 << 16, &d->types, error));
    LOCUS_TRY(model_setting_integer(s, "max_position_embeddings", 512, 1, 1 << 20, &d->most_tokens,
                                    error));
    LOCUS_TRY(model_setting_text(s, "feed_forward_type", "original", &kind, error));
    d->activation = strcmp(kind, "reglu") == 0 ? LOCUS_RELU : LOCUS_GELU;
    d->scheme = d->positions_name = "alibi";
    return strcmp(kind, "geglu") == 0 || strcmp(kind, "reglu") == 0
               ? LOCUS_OK
               : model_setting_refuse(s, "feed_forward_type", "geglu or reglu", error);
}

/* wo(activation(first half of gated_layers x) * second half) + x */
static value forward(builder *b, value x, int64_t l)
{
    const int64_t F = b->d->feed_forward, E = b->d->width;
    const value both = tensor_named(b, "encoder.layer.#.mlp.gated_layers.weight", l, 2 * F, E);
    const value up =
        build_map(b->p, x, build_rows(b->p, both, F, F), NONE, LOCUS_IDENTITY, NONE, NONE);
    const value inner =
        build_map(b->p, x, build_rows(b->p, both, 0, F), NONE, b->d->activation, up, NONE);
    return map_named(b, inner, "encoder.layer.#.mlp.wo", l, E, 1, LOCUS_IDENTITY, NONE, x);
}

static value block(builder *b, value h, int64_t l)
{
    const value y = rows_wanted(b, attend_self(b, h, l), l);
    h = slot_map(b, y, SLOT_O, l, LOCUS_IDENTITY, NONE, rows_wanted(b, h, l));
    h = slot_norm(b, h, SLOT_ATTENTION_NORM_GAIN, l, b->d->norm_epsilon);
    return norm_named(b, forward(b, h, l), "encoder.layer.#.mlp.layernorm", l);
}

static const model_wiring wiring = {.block = block};

static const char *const prefixes[] = {"bert.", "", NULL};

const model_family model_family_jina_bert = {
    .type = "jina_bert",
    .instead_of = "bert",
    .claims = claims,
    .prefixes = prefixes,
    .names = model_bert_names,
    .describe = describe,
    .wiring = &wiring,
};

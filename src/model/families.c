/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "model/description.h"

#define MODEL_FAMILY(name) extern const model_family model_family_##name;
#include "model/families.inc"
#undef MODEL_FAMILY

static const model_family *const all[] = {
#define MODEL_FAMILY(name) &model_family_##name,
#include "model/families.inc"
#undef MODEL_FAMILY
};
enum { FAMILIES = sizeof all / sizeof *all };

const model_family *model_family_find(const char *type)
{
    for (size_t i = 0; i < FAMILIES; i++)
        if (strcmp(all[i]->type, type) == 0) return all[i];
    return NULL;
}

const model_family *model_family_of(const char *type, const model_settings *settings)
{
    for (size_t i = 0; i < FAMILIES; i++)
        if (all[i]->claims != NULL && strcmp(all[i]->instead_of, type) == 0 &&
            all[i]->claims(settings))
            return all[i];
    return model_family_find(type);
}

const model_family *model_family_of_class(const char *name)
{
    static const struct {
        const char *begin, *type;
    } known[] = {{"XLMRoberta", "xlm-roberta"},
                 {"Roberta", "roberta"},
                 {"DistilBert", "distilbert"},
                 {"Albert", "albert"},
                 {"Electra", "electra"},
                 {"Bert", "bert"},
                 {"GPT2", "gpt2"},
                 {"T5", "t5"},
                 {"XLNet", "xlnet"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(name, known[i].begin, strlen(known[i].begin)) == 0)
            return model_family_find(known[i].type);
    return NULL;
}

const char *model_family_name(size_t index) { return index < FAMILIES ? all[index]->type : NULL; }

/* ---- what families share ---- */

locus_status model_take_own(model_description *d, size_t bytes, void **own, locus_error *error)
{
    *own = locus_arena_take(d->arena, bytes, 16);
    if (*own == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    memset(*own, 0, bytes);
    d->own = *own;
    return LOCUS_OK;
}

locus_status model_read_activation(const model_settings *s, const char *path, const char *preset,
                                   locus_activation *activation, locus_error *error)
{
    static const struct {
        const char *name;
        locus_activation activation;
    } known[] = {
        {"gelu", LOCUS_GELU},           {"gelu_new", LOCUS_GELU_TANH},
        {"gelu_fast", LOCUS_GELU_TANH}, {"gelu_pytorch_tanh", LOCUS_GELU_TANH},
        {"relu", LOCUS_RELU},           {"silu", LOCUS_SILU},
        {"swish", LOCUS_SILU},          {"tanh", LOCUS_TANH},
        {"linear", LOCUS_IDENTITY},     {"gelu_python", LOCUS_GELU},
    };
    const char *name;
    LOCUS_TRY(model_setting_text(s, path, preset, &name, error));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) {
            *activation = known[i].activation;
            return LOCUS_OK;
        }
    return model_setting_refuse(s, path,
                                "gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu, silu or tanh",
                                error);
}

locus_status model_read_bert_sizes(const model_settings *s, model_description *d,
                                   locus_error *error)
{
    LOCUS_TRY(model_setting_integer(s, "hidden_size", 768, 1, 65536, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "num_hidden_layers", 12, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "num_attention_heads", 12, 1, 1024, &d->heads, error));
    LOCUS_TRY(
        model_setting_integer(s, "intermediate_size", 3072, 1, 1 << 20, &d->feed_forward, error));
    LOCUS_TRY(model_setting_integer(s, "vocab_size", 30522, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_real(s, "layer_norm_eps", 1e-12, &d->norm_epsilon, error));
    LOCUS_TRY(model_read_activation(s, "hidden_act", "gelu", &d->activation, error));
    if (d->width % d->heads != 0)
        return model_setting_refuse(s, "num_attention_heads", "a divisor of hidden_size", error);
    d->head_dim = d->width / d->heads;
    d->embedding_width = d->width;
    d->norm_centred = d->embedding_norm = d->biases = 1;
    d->padding = -1;
    d->head_activation = LOCUS_TANH;
    d->fill_activation = d->activation;
    d->scheme = "none";
    d->positions_name = "learned";
    return LOCUS_OK;
}

locus_status model_read_bert_positions(const model_settings *s, model_description *d,
                                       locus_error *error)
{
    const char *kind;
    LOCUS_TRY(
        model_setting_integer(s, "max_position_embeddings", 512, 1, 1 << 20, &d->positions, error));
    LOCUS_TRY(model_setting_text(s, "position_embedding_type", "absolute", &kind, error));
    d->most_tokens = d->positions;
    if (strcmp(kind, "absolute") == 0) return LOCUS_OK;
    if (strcmp(kind, "relative_key") == 0)
        d->scheme = "relative_key";
    else if (strcmp(kind, "relative_key_query") == 0)
        d->scheme = "relative_key_query";
    else
        return model_setting_refuse(s, "position_embedding_type",
                                    "absolute, relative_key or relative_key_query", error);
    d->positions_name = d->scheme;
    d->relative_rows = 2 * d->positions - 1;
    d->positions = 0; /* no table at the input */
    return LOCUS_OK;
}

int model_architecture_is(const model_settings *s, const char *what)
{
    const json_value *found = model_setting_find(s, "architectures.0");
    return found != NULL && found->kind == LOCUS_JSON_STRING && strstr(found->text, what) != NULL;
}

locus_status model_split_heads(const model_settings *s, const char *key, model_description *d,
                               locus_error *error)
{
    if (d->width % d->heads != 0)
        return model_setting_refuse(s, key, "a divisor of the width", error);
    d->head_dim = d->width / d->heads;
    d->embedding_width = d->width;
    d->padding = -1;
    return LOCUS_OK;
}

void model_set_decoder(model_description *d, int tied)
{
    d->causal = 1;
    d->head = LOCUS_MODEL_GENERATE;
    d->head_last = d->head_plain = 1;
    d->tied = tied;
}

locus_status model_read_decoder(const model_settings *s, model_description *d, locus_error *error)
{
    const int continues =
        model_architecture_is(s, "ForCausalLM") || model_architecture_is(s, "LMHeadModel");
    LOCUS_TRY(model_setting_flag(s, "is_decoder", 0, &d->causal, error));
    if (!continues) return LOCUS_OK;
    if (!d->causal) return model_setting_refuse(s, "is_decoder", "true", error);
    d->head = LOCUS_MODEL_GENERATE;
    d->fill_next = 1;
    return model_setting_flag(s, "tie_word_embeddings", 1, &d->fill_tied, error);
}

locus_status model_refuse_flag(const model_settings *s, const char *path, locus_error *error)
{
    int set;
    LOCUS_TRY(model_setting_flag(s, path, 0, &set, error));
    return set ? model_setting_refuse(s, path, "false", error) : LOCUS_OK;
}

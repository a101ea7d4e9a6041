/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "model/description.h"

/* What `locus lab export` writes: pre-norm blocks without biases, GELU, a tied table, and one
 * position scheme with the options that it was trained with, "options": {"clip_left": 16, ...}. A
 * decoder continues a row, an encoder fills masks. */

static const model_name names[] = {
    {SLOT_WORD, "embed.weight"},
    {SLOT_POSITION, "shared.pos"},
    {SLOT_RELATIVE, "shared.pos"},
    {SLOT_RELATIVE, "shared.rel"},
    {SLOT_BIAS, "shared.bias"},
    {SLOT_ATTENTION_NORM_GAIN, "blocks.#.norm1.weight"},
    {SLOT_ATTENTION_NORM_SHIFT, "blocks.#.norm1.bias"},
    {SLOT_Q, "blocks.#.attn.w_q"},
    {SLOT_K, "blocks.#.attn.w_k"},
    {SLOT_V, "blocks.#.attn.w_v"},
    {SLOT_O, "blocks.#.attn.w_o"},
    {SLOT_RELATIVE_Q, "shared.w_pq"},
    {SLOT_RELATIVE_K, "shared.w_pk"},
    {SLOT_RELATIVE_K, "blocks.#.attn.w_r"},
    {SLOT_CONTENT_BIAS, "blocks.#.attn.u"},
    {SLOT_POSITION_BIAS, "blocks.#.attn.w"},
    {SLOT_FORWARD_NORM_GAIN, "blocks.#.norm2.weight"},
    {SLOT_FORWARD_NORM_SHIFT, "blocks.#.norm2.bias"},
    {SLOT_IN, "blocks.#.ff.w_1"},
    {SLOT_OUT, "blocks.#.ff.w_2"},
    {SLOT_FINAL_NORM_GAIN, "norm.weight"},
    {SLOT_FINAL_NORM_SHIFT, "norm.bias"},
    {SLOT_COUNT, NULL},
};

/* ---- tensors that a scheme takes as they are ---- */

static const struct {
    const char *scheme;
    model_table table;
} own[] = {
    {"shaw", {"rel_k", "blocks.#.attn.rel_k", "TD"}},
    {"shaw", {"rel_v", "blocks.#.attn.rel_v", "TD"}},
    {"relative_key", {"rel_k", "blocks.#.attn.rel_k", "TD"}},
    {"relative_key_query", {"rel_k", "blocks.#.attn.rel_k", "TD"}},
    {"cope", {"rel_k", "blocks.#.attn.rel_k", "TD"}},
    {"kerple", {"a", "blocks.#.attn.a", "H"}},
    {"kerple", {"p", "blocks.#.attn.p", "H"}},
    {"distance", {"bias", "blocks.#.attn.bias", "HT"}},
    {"fire", {"w_1", "blocks.#.attn.w_1", "N"}},
    {"fire", {"b_1", "blocks.#.attn.b_1", "N"}},
    {"fire", {"w_2", "blocks.#.attn.w_2", "HN"}},
    {"fire", {"b_2", "blocks.#.attn.b_2", "H"}},
    {"fire", {"c", "blocks.#.attn.c", "1"}},
    {"fire", {"threshold", "blocks.#.attn.threshold", "1"}},
};

static int is(const model_description *d, const char *scheme)
{
    return strcmp(d->positions_name, scheme) == 0;
}

static locus_status describe_own(const model_settings *s, model_description *d, locus_error *error)
{
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (is(d, own[i].scheme)) d->tables[d->table_count++] = own[i].table;
    d->table_rows =
        is(d, "shaw") ? d->options.clip_left + d->options.clip_right + 1 : 2 * d->most_tokens - 1;
    d->bias_each_layer = is(d, "kerple") || is(d, "distance") || is(d, "fire");
    if (!is(d, "fire") && !is(d, "cope")) return LOCUS_OK;
    LOCUS_TRY(model_setting_integer(s, "features", 0, 1, 4096, &d->table_features, error));
    if (is(d, "cope")) d->table_rows = d->table_features;
    return LOCUS_OK;
}

/* ---- the scheme ---- */

/* Options without a default are there; the executor itself sets where distances begin. */
static locus_status check_options(const model_settings *s, const model_description *d,
                                  locus_error *error)
{
    const locus_scheme_info *scheme = locus_scheme_find(d->scheme);
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++) {
        char path[64];
        int64_t value;
        memcpy(&value, (const char *)&d->options + o->offset, sizeof value);
        if (!o->required || o->with != NULL || value != LOCUS_UNSET ||
            o->kind == LOCUS_OPTION_REAL || strcmp(o->name, "delta_min") == 0)
            continue;
        snprintf(path, sizeof path, "options.%s", o->name);
        return model_setting_refuse(s, path, "a value: the scheme has no default", error);
    }
    return LOCUS_OK;
}

static locus_status read_options(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(locus_options_init(&d->options, d->scheme));
    d->options_given = 1;
    const json_value *options = model_setting_members(s, "options");
    const json_value *entry = options != NULL ? options->child : NULL;
    for (; entry != NULL; entry = entry->next) {
        const int has_text = entry->kind == LOCUS_JSON_STRING ||
                             entry->kind == LOCUS_JSON_INTEGER || entry->kind == LOCUS_JSON_NUMBER;
        if (!has_text || entry->key == NULL ||
            locus_options_set(&d->options, d->scheme, LOCUS_ATTEND | LOCUS_LAYER, entry->key,
                              entry->text, NULL) != LOCUS_OK)
            return model_member_refuse(s, "options", entry, "a value that its scheme knows", error);
    }
    return check_options(s, d, error);
}

/* positions: how many tokens the tables have rows for; 0: any. */
static locus_status read_positions(const model_settings *s, model_description *d,
                                   locus_error *error)
{
    static const char *const limited[] = {"learned",      "sinusoidal",
                                          "relative_key", "relative_key_query",
                                          "distance",     "tupe"};
    int needed = 0;
    for (size_t i = 0; i < sizeof limited / sizeof *limited; i++) needed |= is(d, limited[i]);
    return model_setting_integer(s, "positions", 0, needed, 1 << 20, &d->most_tokens, error);
}

/* What the executor has a word for already. */
static void describe_known(model_description *d)
{
    if (is(d, "learned") || is(d, "sinusoidal")) d->positions = d->most_tokens;
    d->sinusoidal = d->sinusoid_paired = is(d, "sinusoidal");
    d->scaled_products = is(d, "t5") || is(d, "distance");
    d->distances = is(d, "transformer_xl");
    if (is(d, "t5")) d->bias_rows = d->options.buckets;
    if (is(d, "tupe")) {
        d->position_pairs = d->to_position = d->from_position = 1;
        d->relative_rows = d->most_tokens;
    }
    if (is(d, "deberta")) {
        d->relative_rows = 2 * d->options.span;
        d->relative_shared = 1;
        d->to_position = (int)d->options.c2p;
        d->from_position = (int)d->options.p2c;
    }
}

static locus_status read_scheme(const model_settings *s, model_description *d, locus_error *error)
{
    LOCUS_TRY(model_setting_text(s, "scheme", "", &d->positions_name, error));
    const locus_scheme_info *found = locus_scheme_find(d->positions_name);
    if (found == NULL || is(d, "table"))
        return model_setting_refuse(s, "scheme", "a scheme that the lab trains", error);
    d->positions_name = found->name;
    d->scheme = is(d, "learned") || is(d, "sinusoidal") ? "none" : found->name;
    LOCUS_TRY(read_options(s, d, error));
    LOCUS_TRY(read_positions(s, d, error));
    describe_known(d);
    return describe_own(s, d, error);
}

/* ---- the rest ---- */

static locus_status describe(const model_settings *s, model_description *d, locus_error *error)
{
    int causal;
    LOCUS_TRY(model_setting_integer(s, "width", 0, 1, 16384, &d->width, error));
    LOCUS_TRY(model_setting_integer(s, "layers", 0, 1, 1024, &d->layers, error));
    LOCUS_TRY(model_setting_integer(s, "heads", 0, 1, 16384, &d->heads, error));
    LOCUS_TRY(model_setting_integer(s, "vocabulary", 0, 1, 1 << 24, &d->vocabulary, error));
    LOCUS_TRY(model_setting_flag(s, "causal", 1, &causal, error));
    LOCUS_TRY(model_split_heads(s, "heads", d, error));
    d->feed_forward = 4 * d->width;
    d->embedding_factor = sqrt((double)d->width);
    d->activation = LOCUS_GELU;
    d->norm_epsilon = 1e-5;
    d->norm_centred = d->norm_first = d->final_norm = 1;
    if (causal) {
        model_set_decoder(d, 1);
    } else {
        d->head = LOCUS_MODEL_FILL;
        d->fill_plain = d->fill_tied = d->fill_unbiased = 1;
    }
    return read_scheme(s, d, error);
}

static const char *const prefixes[] = {"", NULL};

const model_family model_family_locus_lab = {
    .type = "locus-lab",
    .prefixes = prefixes,
    .names = names,
    .describe = describe,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/print.h"
#include "io/system.h"
#include "model/generate/generate.h"

enum { MOST_BEAMS = 64, MOST_ID = INT32_MAX };

/* ---- lists of ids ---- */

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
}

/* Of a key that is not there: the preset; of null: -1. */
static locus_status read_id(const model_settings *s, const char *path, int32_t preset, int32_t *id,
                            locus_error *error)
{
    int64_t number = -1;
    *id = model_setting_there(s, path) ? -1 : preset;
    if (model_setting_find(s, path) == NULL) return LOCUS_OK;
    LOCUS_TRY(model_setting_integer(s, path, 0, 0, MOST_ID, &number, error));
    *id = (int32_t)number;
    return LOCUS_OK;
}

/* A single id or a list of them. */
static locus_status read_ids(locus_model *m, const model_settings *s, const char *path,
                             const int32_t **ids, int64_t *count, locus_error *error)
{
    const int64_t length = model_setting_count(s, path);
    const int single = length == 0 && model_setting_find(s, path) != NULL;
    char name[96];
    *count = single ? 1 : length;
    int32_t *list = locus_arena_take(&m->texts, (size_t)(*count + 1) * sizeof *list, 16);
    if (list == NULL) return no_memory(error);
    *ids = list;
    if (single) return read_id(s, path, -1, list, error);
    for (int64_t i = 0; i < length; i++) {
        snprintf(name, sizeof name, "%s.%" PRId64, path, i);
        LOCUS_TRY(read_id(s, name, -1, &list[i], error));
    }
    return LOCUS_OK;
}

static locus_status read_ends(locus_model *m, const model_settings *s, const int32_t *preset,
                              locus_error *error)
{
    locus_generation *g = &m->generation;
    if (model_setting_there(s, "eos_token_id") || *preset < 0)
        return read_ids(m, s, "eos_token_id", &g->ends, &g->end_count, error);
    g->ends = preset;
    g->end_count = 1;
    return LOCUS_OK;
}

/* bad_words_ids: a list of lists. A word that is only an end does not count. */
static locus_status read_bad_words(locus_model *m, const model_settings *s, locus_generation *g,
                                   locus_error *error)
{
    const json_value *lists = model_setting_members(s, "bad_words_ids");
    int64_t all = 0;
    for (const json_value *v = lists != NULL ? lists->child : NULL; v != NULL; v = v->next)
        all += v->kind == LOCUS_JSON_ARRAY ? (int64_t)v->count : 0;
    int32_t *words = locus_arena_take(&m->texts, (size_t)(all + 1) * sizeof *words, 16);
    int64_t *offsets = locus_arena_take(&m->texts, (size_t)(all + 2) * sizeof *offsets, 16);
    char name[96];
    if (words == NULL || offsets == NULL) return no_memory(error);
    int64_t count = 0, at = 0;
    offsets[0] = 0;
    for (int64_t w = 0; lists != NULL && w < (int64_t)lists->count; w++) {
        const int64_t before = at;
        snprintf(name, sizeof name, "bad_words_ids.%" PRId64, w);
        const int64_t length = model_setting_count(s, name);
        if (length == 0) continue;
        for (int64_t i = 0; i < length; i++) {
            snprintf(name, sizeof name, "bad_words_ids.%" PRId64 ".%" PRId64, w, i);
            LOCUS_TRY(read_id(s, name, -1, &words[at++], error));
        }
        if (length == 1 && generate_is_end(g, words[before]))
            at = before;
        else
            offsets[++count] = at;
    }
    g->bad_words = words;
    g->bad_word_offsets = offsets;
    g->bad_word_count = count;
    return LOCUS_OK;
}

/* ---- the file ---- */

/* What is not computed here must be off. */
static locus_status refuse_others(const model_settings *s, locus_error *error)
{
    static const struct {
        const char *key;
        double off;
    } others[] = {{"num_beam_groups", 1.0},
                  {"num_return_sequences", 1.0},
                  {"diversity_penalty", 0.0},
                  {"penalty_alpha", 0.0},
                  {"encoder_repetition_penalty", 1.0},
                  {"encoder_no_repeat_ngram_size", 0.0},
                  {"guidance_scale", 1.0},
                  {"typical_p", 1.0},
                  {"epsilon_cutoff", 0.0},
                  {"eta_cutoff", 0.0},
                  {"min_p", 0.0}};
    char expected[48];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        double number;
        LOCUS_TRY(model_setting_real(s, others[i].key, others[i].off, &number, error));
        locus_print(expected, sizeof expected, "%g", others[i].off);
        if (number != others[i].off) return model_setting_refuse(s, others[i].key, expected, error);
    }
    if (model_setting_count(s, "sequence_bias") > 0 ||
        model_setting_count(s, "begin_suppress_tokens") > 0 ||
        model_setting_count(s, "exponential_decay_length_penalty") > 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: found sequence_bias, begin_suppress_tokens or "
                          "exponential_decay_length_penalty, expected none",
                          s->file);
    return LOCUS_OK;
}

/* early_stopping: true, false or "never". */
static locus_status read_stopping(const model_settings *s, locus_generation *g, locus_error *error)
{
    const json_value *found = model_setting_find(s, "early_stopping");
    int early = 0;
    if (found != NULL && found->kind == LOCUS_JSON_STRING) {
        g->early_stopping = LOCUS_STOP_NEVER;
        return strcmp(found->text, "never") == 0
                   ? LOCUS_OK
                   : model_setting_refuse(s, "early_stopping", "true, false or never", error);
    }
    LOCUS_TRY(model_setting_flag(s, "early_stopping", 0, &early, error));
    g->early_stopping = early ? LOCUS_STOP_EARLY : LOCUS_STOP_ESTIMATE;
    return LOCUS_OK;
}

static locus_status read_lengths(const model_settings *s, locus_generation *g, locus_error *error)
{
    static const struct {
        const char *key;
        size_t offset;
        int64_t most;
    } keys[] = {{"max_length", offsetof(locus_generation, max_length), MODEL_MOST_TOKENS},
                {"max_new_tokens", offsetof(locus_generation, max_new_tokens), MODEL_MOST_TOKENS},
                {"min_length", offsetof(locus_generation, min_length), MODEL_MOST_TOKENS},
                {"min_new_tokens", offsetof(locus_generation, min_new_tokens), MODEL_MOST_TOKENS},
                {"no_repeat_ngram_size", offsetof(locus_generation, no_repeat_ngram),
                 MODEL_MOST_TOKENS}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        LOCUS_TRY(model_setting_integer(s, keys[i].key, 0, 0, keys[i].most,
                                        (int64_t *)((char *)g + keys[i].offset), error));
    if (g->max_length == 20) g->max_length = 0; /* as if it were not there */
    LOCUS_TRY(model_setting_integer(s, "num_beams", 1, 1, MOST_BEAMS, &g->beams, error));
    return model_setting_integer(s, "top_k", 50, 0, 1 << 24, &g->top_k, error);
}

static locus_status read_reals(const model_settings *s, locus_generation *g, locus_error *error)
{
    LOCUS_TRY(model_setting_real(s, "top_p", 1.0, &g->top_p, error));
    LOCUS_TRY(model_setting_real(s, "temperature", 1.0, &g->temperature, error));
    LOCUS_TRY(model_setting_real(s, "length_penalty", 1.0, &g->length_penalty, error));
    LOCUS_TRY(model_setting_real(s, "repetition_penalty", 1.0, &g->repetition_penalty, error));
    if (!(g->repetition_penalty > 0.0))
        return model_setting_refuse(s, "repetition_penalty", "more than 0", error);
    return LOCUS_OK;
}

static locus_status read_settings(locus_model *m, const model_settings *s, const model_ids *ids,
                                  locus_error *error)
{
    locus_generation *g = &m->generation;
    int sample, renormalize;
    LOCUS_TRY(refuse_others(s, error));
    LOCUS_TRY(read_stopping(s, g, error));
    LOCUS_TRY(read_lengths(s, g, error));
    LOCUS_TRY(read_reals(s, g, error));
    LOCUS_TRY(model_setting_flag(s, "do_sample", 0, &sample, error));
    g->sample = (uint32_t)sample;
    LOCUS_TRY(model_setting_flag(s, "renormalize_logits", 0, &renormalize, error));
    g->renormalize = (uint32_t)renormalize;
    LOCUS_TRY(read_id(s, "decoder_start_token_id", ids->start, &g->start, error));
    if (g->start < 0) LOCUS_TRY(read_id(s, "bos_token_id", ids->begin, &g->start, error));
    LOCUS_TRY(read_id(s, "forced_bos_token_id", -1, &g->forced_begin, error));
    LOCUS_TRY(read_id(s, "forced_eos_token_id", ids->forced_end, &g->forced_end, error));
    LOCUS_TRY(read_ends(m, s, &ids->end, error));
    LOCUS_TRY(read_ids(m, s, "suppress_tokens", &g->suppressed, &g->suppressed_count, error));
    return read_bad_words(m, s, g, error);
}

locus_status model_read_generation(locus_model *m, const char *folder, const model_settings *config,
                                   locus_error *error)
{
    static const char file[] = "generation_config.json";
    static const model_ids none = {-1, -1, -1, -1};
    model_settings s;
    locus_arena arena = {.allocator = m->allocator};
    m->generation.size = sizeof m->generation;
    LOCUS_TRY(model_setting_integer(config, "max_position_embeddings", 0, 0, 1 << 30,
                                    &m->most_positions, error));
    if (m->most_positions == 0)
        LOCUS_TRY(
            model_setting_integer(config, "n_positions", 0, 0, 1 << 30, &m->most_positions, error));
    const char *path = model_join(&arena, folder, file, '/');
    const int there = path != NULL && locus_system_exists(path);
    locus_arena_clear(&arena);
    if (path == NULL) return no_memory(error);
    if (!there)
        return read_settings(m, config, m->family->ids != NULL ? m->family->ids : &none, error);
    LOCUS_TRY(model_settings_read(&s, folder, file, m->allocator, error));
    const locus_status status = read_settings(m, &s, &none, error);
    model_settings_free(&s);
    return status;
}

void locus_generation_init(locus_generation *settings, const locus_model *model)
{
    locus_hand_back(settings, &model->generation, sizeof model->generation);
}

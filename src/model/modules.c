/* SPDX-License-Identifier: Apache-2.0 */
#include "model/modules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "io/system.h"
#include "model/settings.h"

/* Read are
 *     modules.json                           Transformer, Pooling, then Normalize, Dense, Dropout
 *     PATH/config.json                       of Pooling and Dense, keys of all versions
 *     sentence_bert_config.json              max_seq_length, do_lower_case
 *     tokenizer_config.json                  model_max_length, where that says nothing
 *     config_sentence_transformers.json      default_prompt_name and its prompt */

typedef struct reader {
    model_modules *m;
    const char *folder;
    int64_t width, most;
    int unprompted; /* 1: tokens of a prompt do not count among the pooled ones */
    locus_arena *texts;
} reader;

enum { SAID = 512, FILE_NAME = 256 };

static const struct {
    const char *flag, *name, *said; /* flag: its key before version 6 */
} poolings[] = {
    [LOCUS_MODEL_POOL_CLS] = {"pooling_mode_cls_token", "cls", "cls"},
    [LOCUS_MODEL_POOL_MEAN] = {"pooling_mode_mean_tokens", "mean", "mean"},
    [LOCUS_MODEL_POOL_MAX] = {"pooling_mode_max_tokens", "max", "max"},
    [LOCUS_MODEL_POOL_LAST] = {"pooling_mode_lasttoken", "lasttoken", "last"},
    [LOCUS_MODEL_POOL_ROOT] = {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens",
                               "sum / sqrt(length)"},
    [LOCUS_MODEL_POOL_RISING] = {"pooling_mode_weightedmean_tokens", "weightedmean",
                                 "mean weighted by position"},
};
enum { POOLINGS = sizeof poolings / sizeof *poolings };

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
}

static locus_status keep(const reader *r, const char **kept, const char *text, locus_error *error)
{
    *kept = locus_arena_copy(r->texts, text, strlen(text));
    return *kept != NULL ? LOCUS_OK : no_memory(error);
}

/* 1: the folder has the file; -1: no memory. */
static int has(const reader *r, const char *file)
{
    const char *path = model_join(r->texts, r->folder, file, '/');
    return path != NULL ? locus_system_exists(path) : -1;
}

/* *there 0: there is no such file, and nothing was read. */
static locus_status read_if_there(const reader *r, const char *file, model_settings *s, int *there,
                                  locus_error *error)
{
    *there = has(r, file);
    if (*there < 0) return no_memory(error);
    return *there ? model_settings_read(s, r->folder, file, r->texts->allocator, error) : LOCUS_OK;
}

/* ---- Pooling ---- */

static locus_status add_pooling(reader *r, const model_settings *s, const char *key,
                                const char *name, locus_error *error)
{
    for (int i = 0; i < POOLINGS; i++) {
        if (strcmp(poolings[i].name, name) != 0) continue;
        if (r->m->pooling_count == MODULE_POOLINGS)
            return model_setting_refuse(s, key, "at most 6 poolings", error);
        r->m->poolings[r->m->pooling_count++] = (locus_model_pooling)i;
        return LOCUS_OK;
    }
    return model_setting_refuse(s, key,
                                "cls, mean, max, lasttoken, mean_sqrt_len_tokens or weightedmean",
                                error);
}

/* "pooling_mode": a name, or a list of them. */
static locus_status read_names(reader *r, const model_settings *s, locus_error *error)
{
    const char *name = NULL;
    if (model_setting_count(s, "pooling_mode") == 0) {
        LOCUS_TRY(model_setting_text(s, "pooling_mode", NULL, &name, error));
        return name != NULL ? add_pooling(r, s, "pooling_mode", name, error) : LOCUS_OK;
    }
    for (int64_t i = 0; i < model_setting_count(s, "pooling_mode"); i++) {
        char key[40];
        snprintf(key, sizeof key, "pooling_mode.%" PRId64, i);
        LOCUS_TRY(model_setting_text(s, key, "", &name, error));
        LOCUS_TRY(add_pooling(r, s, key, name, error));
    }
    return LOCUS_OK;
}

/* Flags, in the order in which their vectors lie side by side. */
static locus_status read_flags(reader *r, const model_settings *s, locus_error *error)
{
    static const locus_model_pooling order[] = {LOCUS_MODEL_POOL_CLS,    LOCUS_MODEL_POOL_MAX,
                                                LOCUS_MODEL_POOL_MEAN,   LOCUS_MODEL_POOL_ROOT,
                                                LOCUS_MODEL_POOL_RISING, LOCUS_MODEL_POOL_LAST};
    const json_value *all = model_setting_members(s, "");
    if (all == NULL || all->kind != LOCUS_JSON_OBJECT)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: expected an object", s->file);
    for (const json_value *entry = all->child; entry != NULL; entry = entry->next) {
        int known = strncmp(entry->key, "pooling_mode_", 13) != 0;
        for (int k = 0; k < POOLINGS; k++) known |= strcmp(entry->key, poolings[k].flag) == 0;
        if (!known) return model_member_refuse(s, "", entry, "a pooling that is known", error);
    }
    for (int i = 0; i < POOLINGS; i++) {
        int set;
        LOCUS_TRY(model_setting_flag(s, poolings[order[i]].flag, 0, &set, error));
        if (set) r->m->poolings[r->m->pooling_count++] = order[i];
    }
    return LOCUS_OK;
}

static locus_status read_pooling(reader *r, const model_settings *s, locus_error *error)
{
    model_modules *m = r->m;
    int64_t width;
    int prompted;
    LOCUS_TRY(model_setting_flag(s, "include_prompt", 1, &prompted, error));
    r->unprompted = !prompted;
    LOCUS_TRY(read_names(r, s, error));
    if (m->pooling_count == 0) LOCUS_TRY(read_flags(r, s, error));
    if (m->pooling_count == 0) m->poolings[m->pooling_count++] = LOCUS_MODEL_POOL_MEAN;
    const char *key = model_setting_find(s, "embedding_dimension") != NULL
                          ? "embedding_dimension"
                          : "word_embedding_dimension";
    LOCUS_TRY(model_setting_integer(s, key, r->width, 1, 1 << 20, &width, error));
    if (width != r->width)
        return model_setting_refuse(s, key, "the width of the last states", error);
    m->there = 1;
    m->width = m->pooling_count * r->width;
    return LOCUS_OK;
}

/* ---- Normalize, Dense ---- */

static module_step *add_step(reader *r, locus_error *error)
{
    if (r->m->step_count < MODULE_STEPS) return &r->m->steps[r->m->step_count++];
    (void)locus_fail(error, LOCUS_ERR_FORMAT, "modules.json: more than %d modules behind a pooling",
                     (int)MODULE_STEPS);
    return NULL;
}

/* By the name of a class of torch.nn. */
static locus_status read_activation(const model_settings *s, module_step *step, locus_error *error)
{
    static const char key[] = "activation_function";
    static const struct {
        const char *name, *said;
        locus_activation activation;
    } known[] = {{"Identity", "", LOCUS_IDENTITY},        {"Tanh", ", tanh", LOCUS_TANH},
                 {"ReLU", ", relu", LOCUS_RELU},          {"GELU", ", gelu", LOCUS_GELU},
                 {"Sigmoid", ", sigmoid", LOCUS_SIGMOID}, {"SiLU", ", silu", LOCUS_SILU}};
    const char *name;
    LOCUS_TRY(model_setting_text(s, key, "torch.nn.Tanh", &name, error));
    const char *last = strrchr(name, '.');
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (last == NULL || strncmp(name, "torch.", 6) != 0 || strcmp(known[i].name, last + 1) != 0)
            continue;
        step->activation = known[i].activation;
        step->said = known[i].said;
        return LOCUS_OK;
    }
    return model_setting_refuse(s, key, "Identity, Tanh, ReLU, GELU, Sigmoid or SiLU of torch.nn",
                                error);
}

/* Another input or output than the vector of the text. */
static locus_status check_names(const model_settings *s, locus_error *error)
{
    static const char *const keys[] = {"module_input_name", "module_output_name"};
    for (int i = 0; i < 2; i++) {
        const char *name;
        LOCUS_TRY(model_setting_text(s, keys[i], "sentence_embedding", &name, error));
        if (strcmp(name, "sentence_embedding") != 0)
            return model_setting_refuse(s, keys[i], "sentence_embedding", error);
    }
    return LOCUS_OK;
}

static locus_status read_dense(reader *r, const model_settings *s, const char *path,
                               locus_error *error)
{
    module_step *step = add_step(r, error);
    if (step == NULL) return LOCUS_ERR_FORMAT;
    LOCUS_TRY(keep(r, &step->folder, path, error));
    LOCUS_TRY(check_names(s, error));
    LOCUS_TRY(model_setting_integer(s, "in_features", 0, 1, 1 << 20, &step->inputs, error));
    LOCUS_TRY(model_setting_integer(s, "out_features", 0, 1, 1 << 20, &step->outputs, error));
    LOCUS_TRY(model_setting_flag(s, "bias", 1, &step->biased, error));
    if (step->inputs != r->m->width)
        return model_setting_refuse(s, "in_features", "the width of what is before it", error);
    r->m->width = step->outputs;
    return read_activation(s, step, error);
}

static locus_status read_normalize(reader *r, const char *path, locus_error *error)
{
    char file[FILE_NAME];
    model_settings s;
    int there = 0;
    module_step *step = add_step(r, error);
    if (step == NULL) return LOCUS_ERR_FORMAT;
    *step = (module_step){.folder = NULL};
    if (path == NULL) return LOCUS_OK;
    snprintf(file, sizeof file, "%s/config.json", path);
    LOCUS_TRY(read_if_there(r, file, &s, &there, error));
    if (!there) return LOCUS_OK;
    const locus_status status = check_names(&s, error);
    model_settings_free(&s);
    return status;
}

/* ---- modules.json ---- */

static locus_status read_folder(reader *r, const char *name, const char *path, locus_error *error)
{
    char file[FILE_NAME];
    model_settings s;
    snprintf(file, sizeof file, "%s/config.json", path);
    LOCUS_TRY(model_settings_read(&s, r->folder, file, r->texts->allocator, error));
    const locus_status status =
        strcmp(name, "Pooling") == 0 ? read_pooling(r, &s, error) : read_dense(r, &s, path, error);
    model_settings_free(&s);
    return status;
}

/* The folder of a module, beside modules.json; NULL: the key is not there. */
static locus_status read_path(const model_settings *s, int index, const char **path,
                              locus_error *error)
{
    char key[32];
    snprintf(key, sizeof key, "%d.path", index);
    LOCUS_TRY(model_setting_text(s, key, NULL, path, error));
    if (*path == NULL) return LOCUS_OK;
    if ((*path)[0] == '.' || strchr(*path, '/') != NULL || strlen(*path) > 200)
        return model_setting_refuse(s, key, "the name of a folder beside it", error);
    return LOCUS_OK;
}

static locus_status read_module(reader *r, const model_settings *s, int index, const char *type,
                                locus_error *error)
{
    char key[32], where[32];
    const char *path, *name = strrchr(type, '.') != NULL ? strrchr(type, '.') + 1 : type;
    snprintf(key, sizeof key, "%d.type", index);
    snprintf(where, sizeof where, "%d.path", index);
    LOCUS_TRY(read_path(s, index, &path, error));
    const int pooled = r->m->there;
    if (index == 0) {
        if (strcmp(name, "Transformer") != 0)
            return model_setting_refuse(s, key, "Transformer", error);
        return path == NULL || path[0] == '\0'
                   ? LOCUS_OK
                   : model_setting_refuse(s, where, "\"\": config.json beside modules.json", error);
    }
    if (strcmp(name, "Dropout") == 0) return LOCUS_OK; /* of training */
    if (pooled && strcmp(name, "Normalize") == 0) return read_normalize(r, path, error);
    if (strcmp(name, pooled ? "Dense" : "Pooling") != 0)
        return model_setting_refuse(
            s, key, pooled ? "Normalize, Dense or Dropout behind a pooling" : "Pooling", error);
    return path != NULL && path[0] != '\0'
               ? read_folder(r, name, path, error)
               : model_setting_refuse(s, where, "the name of a folder beside it", error);
}

static locus_status read_list(reader *r, const model_settings *s, locus_error *error)
{
    const char *type = "";
    for (int i = 0; type != NULL; i++) {
        char key[32];
        snprintf(key, sizeof key, "%d.type", i);
        LOCUS_TRY(model_setting_text(s, key, NULL, &type, error));
        if (type != NULL) LOCUS_TRY(read_module(r, s, i, type, error));
    }
    return LOCUS_OK;
}

/* ---- what happens to texts before ---- */

static locus_status read_cut(reader *r, const char *file, const char *key, locus_error *error)
{
    model_settings s;
    double most;
    int there, lower;
    LOCUS_TRY(read_if_there(r, file, &s, &there, error));
    if (!there) return LOCUS_OK;
    locus_status status = model_setting_real(&s, key, 0.0, &most, error);
    if (status == LOCUS_OK && strcmp(key, "max_seq_length") == 0) {
        status = model_setting_flag(&s, "do_lower_case", 0, &lower, error);
        if (status == LOCUS_OK && lower)
            status =
                model_setting_refuse(&s, "do_lower_case",
                                     "false: tokenizers write small what they want small", error);
    }
    /* absent: 0 or 1e30 */
    if (status == LOCUS_OK && most >= 1.0 && most < 1 << 30) r->m->cut = (int64_t)most;
    if (r->most > 0 && r->m->cut > r->most) r->m->cut = r->most;
    model_settings_free(&s);
    return status;
}

static locus_status find_prompt(reader *r, const model_settings *s, locus_error *error)
{
    const char *name;
    LOCUS_TRY(model_setting_text(s, "default_prompt_name", NULL, &name, error));
    if (name == NULL) return LOCUS_OK;
    const json_value *prompt = locus_tree_get(model_setting_members(s, "prompts"), name);
    if (prompt == NULL || prompt->kind != LOCUS_JSON_STRING)
        return model_setting_refuse(s, "default_prompt_name", "a name among prompts", error);
    if (prompt->text[0] == '\0') return LOCUS_OK;
    if (r->unprompted)
        return model_setting_refuse(s, "default_prompt_name",
                                    "none, where the pooling has include_prompt false", error);
    return keep(r, &r->m->prompt, prompt->text, error);
}

static locus_status read_prompt(reader *r, locus_error *error)
{
    model_settings s;
    int there;
    LOCUS_TRY(read_if_there(r, "config_sentence_transformers.json", &s, &there, error));
    if (!there) return LOCUS_OK;
    const locus_status status = find_prompt(r, &s, error);
    model_settings_free(&s);
    return status;
}

/* ---- all of it ---- */

/* "cls and mean of the tokens, map to 24, tanh, unit length" */
static locus_status say(reader *r, locus_error *error)
{
    char said[SAID];
    size_t at = 0;
    const model_modules *m = r->m;
    for (int i = 0; i < m->pooling_count; i++)
        at += (size_t)snprintf(said + at, SAID - at, "%s%s", i > 0 ? " and " : "",
                               poolings[m->poolings[i]].said);
    at += (size_t)snprintf(said + at, SAID - at, " of the tokens");
    for (int i = 0; i < m->step_count && at < SAID; i++) {
        const module_step *step = &m->steps[i];
        at +=
            (size_t)(step->folder != NULL ? snprintf(said + at, SAID - at, ", map to %" PRId64 "%s",
                                                     step->outputs, step->said)
                                          : snprintf(said + at, SAID - at, ", unit length"));
    }
    return keep(r, &r->m->said, said, error);
}

locus_status model_modules_read(model_modules *m, const char *folder, int64_t width, int64_t most,
                                locus_arena *texts, locus_error *error)
{
    model_settings s;
    int there;
    reader r = {.m = m, .folder = folder, .width = width, .most = most, .texts = texts};
    const locus_model_pooling preset = m->poolings[0];
    *m = (model_modules){.width = width};
    LOCUS_TRY(read_if_there(&r, "modules.json", &s, &there, error));
    if (there) {
        const locus_status status = read_list(&r, &s, error);
        model_settings_free(&s);
        if (status != LOCUS_OK) return status;
    }
    if (m->there) {
        LOCUS_TRY(read_cut(&r, "sentence_bert_config.json", "max_seq_length", error));
        if (m->cut == 0)
            LOCUS_TRY(read_cut(&r, "tokenizer_config.json", "model_max_length", error));
        LOCUS_TRY(read_prompt(&r, error));
    } else {
        m->poolings[m->pooling_count++] = preset;
    }
    return say(&r, error);
}

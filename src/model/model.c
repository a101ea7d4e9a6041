/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <inttypes.h>
#include <locus/runtime.h>
#include <stdio.h>
#include <string.h>

#include "core/adopt.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/memory.h"
#include "io/system.h"
#include "model/generate/generate.h"
#include "model/gguf.h"

/* ---- config.json ---- */

static locus_status unknown_family(const char *type, locus_error *error)
{
    char list[448] = "", quoted[80];
    size_t at = 0;
    for (size_t i = 0; model_family_name(i) != NULL && at + 32 < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i > 0 ? ", " : "",
                               model_family_name(i));
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "config.json: model_type: found %s, expected one of %s",
                      locus_escape(quoted, sizeof quoted, type, strlen(type)), list);
}

/* The class whose head is not read outlives the settings. */
static locus_status read_head(locus_model *m, const model_settings *s, locus_error *error)
{
    const char *unread;
    LOCUS_TRY(model_read_head(s, m->family, &m->stacks[0], &unread, error));
    if (unread == NULL) return LOCUS_OK;
    m->unread_head = locus_arena_copy(&m->texts, unread, strlen(unread));
    return m->unread_head != NULL ? LOCUS_OK
                                  : locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
}

static locus_status read_labels(locus_model *m, const model_settings *s, locus_error *error)
{
    const int64_t count = m->stacks[0].labels;
    if (count == 0) return LOCUS_OK;
    m->labels = locus_arena_take(&m->texts, (size_t)count * sizeof *m->labels, 16);
    for (int64_t i = 0; m->labels != NULL && i < count; i++) {
        char key[40], name[40];
        const char *label = i == 0 ? "start" : "end";
        snprintf(key, sizeof key, "id2label.%" PRId64, i);
        snprintf(name, sizeof name, "LABEL_%" PRId64, i);
        if (m->stacks[0].head != LOCUS_MODEL_SPAN)
            LOCUS_TRY(model_setting_text(s, key, name, &label, error));
        m->labels[i] = locus_arena_copy(&m->texts, label, strlen(label));
        if (m->labels[i] == NULL) m->labels = NULL;
    }
    return m->labels != NULL ? LOCUS_OK
                             : locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
}

/* The decoder behind an encoder, where the class has its head. Without `architectures` its tensors
 * decide, when the program is made. */
static locus_status describe_decoder(locus_model *m, const char *folder, const model_settings *s,
                                     locus_error *error)
{
    const int named = model_setting_find(s, "architectures.0") != NULL;
    if (m->family->decoder == NULL || (named && m->stacks[0].head != LOCUS_MODEL_GENERATE))
        return LOCUS_OK;
    m->stacks[0].head = LOCUS_MODEL_NO_HEAD; /* that of the decoder */
    model_description *d = &m->stacks[1];
    *d = m->stacks[0];
    m->stack_count = 2;
    m->optional_decoder = !named;
    LOCUS_TRY(m->family->decoder->describe(s, d, error));
    d->kv_heads = d->heads;
    return model_read_generation(m, folder, s, error);
}

static locus_status read_config(locus_model *m, const char *folder, locus_error *error)
{
    model_settings s;
    const char *type = NULL;
    m->stacks[0].arena = &m->texts;
    LOCUS_TRY(model_is_gguf(folder)
                  ? model_gguf_settings(&s, folder, m->allocator, error)
                  : model_settings_read(&s, folder, "config.json", m->allocator, error));
    locus_status status = model_setting_text(&s, "model_type", NULL, &type, error);
    if (status == LOCUS_OK && type == NULL)
        status = model_setting_refuse(&s, "model_type", "the name of a family", error);
    if (status == LOCUS_OK) {
        m->family = model_family_find(type);
        status = m->family != NULL ? m->family->describe(&s, &m->stacks[0], error)
                                   : unknown_family(type, error);
    }
    m->pooling = model_is_gguf(folder) && model_setting_find(&s, "gguf_pooling") != NULL
                     ? LOCUS_MODEL_POOL_CLS
                     : LOCUS_MODEL_POOL_MEAN;
    if (status == LOCUS_OK) status = read_head(m, &s, error);
    if (status == LOCUS_OK) status = read_labels(m, &s, error);
    if (m->stacks[0].kv_heads == 0) m->stacks[0].kv_heads = m->stacks[0].heads;
    if (status == LOCUS_OK && m->stacks[0].head == LOCUS_MODEL_GENERATE && !m->family->decoder)
        status = model_read_generation(m, folder, &s, error);
    if (status == LOCUS_OK) status = describe_decoder(m, folder, &s, error);
    model_settings_free(&s);
    return status;
}

/* ---- modules.json: how sentence-transformers makes one vector of a text ---- */

/* 1_Pooling/config.json. One of the modes that there are must be true. */
static locus_status read_pooling(locus_model *m, const char *folder, const char *path,
                                 locus_error *error)
{
    static const struct {
        const char *key;
        locus_model_pooling pooling;
    } modes[] = {{"pooling_mode_cls_token", LOCUS_MODEL_POOL_CLS},
                 {"pooling_mode_mean_tokens", LOCUS_MODEL_POOL_MEAN},
                 {"pooling_mode_max_tokens", LOCUS_MODEL_POOL_MAX}};
    char file[256];
    model_settings s;
    int chosen = 0, others = 0, set;
    if (snprintf(file, sizeof file, "%s/config.json", path) >= (int)sizeof file)
        return locus_fail(error, LOCUS_ERR_FORMAT, "modules.json: a path of more than 240 bytes");
    LOCUS_TRY(model_settings_read(&s, folder, file, m->allocator, error));
    locus_status status = LOCUS_OK;
    for (size_t i = 0; status == LOCUS_OK && i < 3; i++) {
        status = model_setting_flag(&s, modes[i].key, 0, &set, error);
        if (status == LOCUS_OK && set) m->pooling = modes[i].pooling, chosen++;
    }
    for (const json_value *entry = s.tree.root->child; entry != NULL; entry = entry->next)
        others += entry->kind == LOCUS_JSON_TRUE && entry->key != NULL &&
                  strncmp(entry->key, "pooling_mode", 12) == 0;
    if (status == LOCUS_OK && (chosen != 1 || others != 1))
        status = locus_fail(error, LOCUS_ERR_FORMAT,
                            "%s: expected one pooling mode: cls, mean or max of the tokens", file);
    model_settings_free(&s);
    return status;
}

static locus_status read_module(locus_model *m, const char *folder, const model_settings *s,
                                int index, int *more, locus_error *error)
{
    char key[32];
    const char *type = NULL, *path = NULL;
    snprintf(key, sizeof key, "%d.type", index);
    LOCUS_TRY(model_setting_text(s, key, NULL, &type, error));
    *more = type != NULL;
    if (type == NULL) return LOCUS_OK;
    const char *name = strrchr(type, '.') != NULL ? strrchr(type, '.') + 1 : type;
    if (strcmp(name, "Transformer") == 0) return LOCUS_OK;
    if (strcmp(name, "Normalize") == 0) {
        m->unit_length = 1;
        return LOCUS_OK;
    }
    if (strcmp(name, "Pooling") != 0)
        return model_setting_refuse(s, key, "Transformer, Pooling or Normalize", error);
    snprintf(key, sizeof key, "%d.path", index);
    LOCUS_TRY(model_setting_text(s, key, NULL, &path, error));
    if (path == NULL || path[0] == '\0' || path[0] == '.' || strchr(path, '/') != NULL)
        return model_setting_refuse(s, key, "the name of a folder beside it", error);
    return read_pooling(m, folder, path, error);
}

static locus_status read_modules(locus_model *m, const char *folder, locus_error *error)
{
    model_settings s;
    locus_arena arena = {.allocator = m->allocator};
    const char *path = model_join(&arena, folder, "modules.json", '/');
    const int there = path != NULL && locus_system_exists(path);
    locus_arena_clear(&arena);
    if (path == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    if (!there) return LOCUS_OK;
    m->modules = 1;
    LOCUS_TRY(model_settings_read(&s, folder, "modules.json", m->allocator, error));
    locus_status status = LOCUS_OK;
    for (int i = 0, more = 1; status == LOCUS_OK && more; i++)
        status = read_module(m, folder, &s, i, &more, error);
    model_settings_free(&s);
    return status;
}

/* ---- the model ---- */

static locus_status set_workers(locus_model *m, const locus_model_config *config,
                                locus_error *error)
{
    const char *isa = config != NULL ? config->isa : NULL;
    m->workers.kernels = locus_kernels_pick(isa);
    if (m->workers.kernels == NULL)
        return locus_fail(error, LOCUS_ERR_ISA, "isa \"%s\" is not available",
                          isa != NULL ? isa : "of LOCUS_ISA");
    m->workers.threads =
        config != NULL && config->threads > 0 ? config->threads : locus_default_threads();
    m->program.workers = m->workers;
    m->program.linear = (locus_linear){.kernels = m->workers.kernels,
                                       .threads = m->workers.threads,
                                       .second_cache = locus_cpu_caches().second};
    m->program.trains = config != NULL && config->trainable != 0;
    return LOCUS_OK;
}

static locus_status load(locus_model *m, const char *folder, locus_error *error)
{
    model_checkpoint checkpoint;
    LOCUS_TRY(
        model_checkpoint_open(&checkpoint, folder, m->family, &m->stacks[0], m->allocator, error));
    /* sentence-transformers keeps the architecture of what it began with, and not the head */
    if (m->modules && m->stacks[0].head == LOCUS_MODEL_FILL &&
        !model_checkpoint_has(&checkpoint, SLOT_FILL_MAP, 0))
        m->stacks[0].head = LOCUS_MODEL_NO_HEAD;
    locus_status status = model_assemble(m, &checkpoint, error);
    if (status == LOCUS_OK) status = program_load(&m->program, error);
    m->program.checkpoint = NULL;
    model_checkpoint_close(&checkpoint);
    return status;
}

static locus_status build(locus_model *m, const char *folder, const locus_model_config *config,
                          locus_error *error)
{
    LOCUS_TRY(set_workers(m, config, error));
    LOCUS_TRY(read_config(m, folder, error));
    LOCUS_TRY(read_modules(m, folder, error));
    return load(m, folder, error);
}

locus_status locus_model_open(locus_model **out, const char *folder,
                              const locus_model_config *config, locus_error *error)
{
    if (out == NULL || folder == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    *out = NULL;
    locus_model_config own = {.size = sizeof own};
    if (config != NULL) LOCUS_ADOPT(config, own, "model config", error);
    const locus_allocator *allocator = config != NULL ? config->allocator : NULL;
    locus_model *m = locus_allocate(allocator, 1, sizeof *m);
    if (m == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    m->allocator = allocator;
    m->texts.allocator = allocator;
    m->stack_count = 1;
    const locus_status status = build(m, folder, config, error);
    if (status != LOCUS_OK) {
        locus_model_free(m);
        return status;
    }
    *out = m;
    return LOCUS_OK;
}

void locus_model_free(locus_model *m)
{
    if (m == NULL) return;
    program_free(&m->program);
    locus_arena_clear(&m->texts);
    locus_release(m->allocator, m);
}

void locus_model_describe(const locus_model *m, locus_model_info *info)
{
    model_describe_layers(m, 0, info);
}

void model_describe_layers(const locus_model *m, int stack, locus_model_info *info)
{
    const model_description *d = &m->stacks[stack];
    const model_description *decoder = model_last_stack(m);
    const locus_model_info found = {
        .size = sizeof found,
        .family = m->family->type,
        .positions = d->positions_name,
        .scheme = d->scheme,
        .width = d->width,
        .layers = d->layers,
        .heads = d->heads,
        .head_dim = d->head_dim,
        .feed_forward = d->feed_forward,
        .vocabulary = d->vocabulary,
        .types = d->types,
        .most_tokens = d->most_tokens,
        .parameters = m->program.parameters,
        .bytes = m->program.bytes,
        .pooling = (uint32_t)m->pooling,
        .unit_length = (uint32_t)m->unit_length,
        .head = (uint32_t)decoder->head,
        .multi_label = (uint32_t)d->multi_label,
        .labels = d->labels,
        .memory = d->memory,
        .features = d->features,
        .unread_head = m->unread_head,
        .last_width = stack == 0 ? model_last_width(m) : d->width,
        .modules = (uint32_t)m->modules,
        .bias_each_layer = (uint32_t)d->bias_each_layer,
        .qkv_width = model_qkv_width(d),
        .decoder_layers = stack == 0 && m->stack_count > 1 ? decoder->layers : 0,
        .next_tokens = decoder->head == LOCUS_MODEL_GENERATE ? decoder->vocabulary : 0,
        .threads = m->workers.threads,
        .isa = m->workers.kernels->isa,
    };
    locus_hand_back(info, &found, sizeof found);
}

const char *locus_model_label(const locus_model *m, int64_t index)
{
    return index >= 0 && index < m->stacks[0].labels ? m->labels[index] : NULL;
}

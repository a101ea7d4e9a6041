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
#include "model/generate/generate.h"
#include "model/gguf.h"
#include "model/integers.h"
#include "model/precision.h"

/* ---- config.json ---- */

static locus_status unknown_family(const char *type, locus_error *error)
{
    static const char more[] = ", ...";
    char list[352] = "", quoted[80];
    size_t at = 0, i = 0;
    for (const char *name; (name = model_family_name(i)) != NULL; i++) {
        if (at + 2 + strlen(name) + sizeof more > sizeof list) break;
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i > 0 ? ", " : "", name);
    }
    if (model_family_name(i) != NULL) memcpy(list + at, more, sizeof more);
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
    const char *type = NULL, *class = NULL;
    m->stacks[0].arena = &m->texts;
    LOCUS_TRY(model_is_gguf(folder)
                  ? model_gguf_settings(&s, folder, m->allocator, error)
                  : model_settings_read(&s, folder, "config.json", m->allocator, error));
    locus_status status = model_setting_text(&s, "model_type", NULL, &type, error);
    if (status == LOCUS_OK && type == NULL)
        status = model_setting_text(&s, "architectures.0", "", &class, error);
    if (status == LOCUS_OK)
        m->family = type != NULL ? model_family_of(type, &s) : model_family_of_class(class);
    if (status == LOCUS_OK && type == NULL && m->family == NULL)
        status = model_setting_refuse(&s, "model_type", "the name of a family", error);
    if (status == LOCUS_OK) {
        status = m->family != NULL ? m->family->describe(&s, &m->stacks[0], error)
                                   : unknown_family(type, error);
    }
    m->modules.poolings[0] = model_is_gguf(folder) && model_setting_find(&s, "gguf_pooling") != NULL
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
    return precision_set(&m->program, config, error);
}

/* The weights of maps behind a pooling. */
static locus_status open_maps(locus_model *m, model_checkpoint *c, const char *folder,
                              locus_error *error)
{
    for (int i = 0; i < m->modules.step_count; i++) {
        module_step *step = &m->modules.steps[i];
        if (step->folder != NULL)
            LOCUS_TRY(model_checkpoint_open_beside(c, folder, step->folder, &step->file, error));
    }
    return LOCUS_OK;
}

static locus_status load(locus_model *m, const char *folder, locus_error *error)
{
    model_checkpoint checkpoint;
    LOCUS_TRY(
        model_checkpoint_open(&checkpoint, folder, m->family, &m->stacks[0], m->allocator, error));
    locus_status status = integers_begin(&m->program, &checkpoint, error);
    if (status == LOCUS_OK && m->convert_to != NULL && checkpoint.precision != LOCUS_EXACT)
        status =
            locus_fail(error, LOCUS_ERR_FORMAT, "%s: is converted already", checkpoint.names[0]);
    /* sentence-transformers keeps the architecture of what it began with, and not the head */
    if (m->modules.there && m->stacks[0].head == LOCUS_MODEL_FILL &&
        !model_checkpoint_has(&checkpoint, SLOT_FILL_MAP, 0))
        m->stacks[0].head = LOCUS_MODEL_NO_HEAD;
    if (status == LOCUS_OK) status = open_maps(m, &checkpoint, folder, error);
    if (status == LOCUS_OK) status = model_assemble(m, &checkpoint, error);
    m->program.generates = model_last_stack(m)->head == LOCUS_MODEL_GENERATE;
    if (status == LOCUS_OK) status = program_load(&m->program, error);
    if (status == LOCUS_OK && m->convert_to != NULL)
        status = integers_write(&m->program, m->convert_to, error);
    m->program.checkpoint = NULL;
    model_checkpoint_close(&checkpoint);
    return status;
}

static locus_status build(locus_model *m, const char *folder, const locus_model_config *config,
                          locus_error *error)
{
    LOCUS_TRY(set_workers(m, config, error));
    LOCUS_TRY(read_config(m, folder, error));
    LOCUS_TRY(model_modules_read(&m->modules, folder, model_last_width(m), m->stacks[0].most_tokens,
                                 &m->texts, error));
    return load(m, folder, error);
}

/* convert_to: a file, or NULL. */
static locus_status open_model(locus_model **out, const char *folder, const char *convert_to,
                               const locus_model_config *config, locus_error *error)
{
    locus_model_config own = {.size = sizeof own};
    if (config != NULL) LOCUS_ADOPT(config, own, "model config", error);
    const locus_allocator *allocator = config != NULL ? config->allocator : NULL;
    locus_model *m = locus_allocate(allocator, 1, sizeof *m);
    if (m == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    m->allocator = allocator;
    m->texts.allocator = allocator;
    m->stack_count = 1;
    m->convert_to = convert_to;
    const locus_status status = build(m, folder, config, error);
    if (status != LOCUS_OK) {
        locus_model_free(m);
        return status;
    }
    *out = m;
    return LOCUS_OK;
}

locus_status locus_model_open(locus_model **out, const char *folder,
                              const locus_model_config *config, locus_error *error)
{
    if (out == NULL || folder == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    *out = NULL;
    return open_model(out, folder, NULL, config, error);
}

locus_status locus_model_convert(const char *folder, const char *path, uint32_t precision,
                                 locus_error *error)
{
    locus_model *model = NULL;
    if (folder == NULL || path == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    if (precision == LOCUS_EXACT)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "model: precision: found exact, expected i16 or int8");
    if (model_is_gguf(folder))
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "model: found a GGUF file, expected a folder to convert");
    const locus_model_config config = {.size = sizeof config, .precision = precision};
    LOCUS_TRY(open_model(&model, folder, path, &config, error));
    locus_model_free(model);
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
    const model_modules *modules = &m->modules;
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
        .pooling = (uint32_t)modules->poolings[0],
        .unit_length =
            modules->step_count > 0 && modules->steps[modules->step_count - 1].folder == NULL,
        .head = (uint32_t)decoder->head,
        .multi_label = (uint32_t)d->multi_label,
        .labels = d->labels,
        .memory = d->memory,
        .features = d->features,
        .unread_head = m->unread_head,
        .last_width = stack == 0 ? model_last_width(m) : d->width,
        .modules = (uint32_t)modules->there,
        .embedding = modules->said,
        .embedding_width = modules->width,
        .cut_tokens = modules->cut,
        .prompt = modules->prompt,
        .bias_each_layer = (uint32_t)d->bias_each_layer,
        .qkv_width = model_qkv_width(d),
        .decoder_layers = stack == 0 && m->stack_count > 1 ? decoder->layers : 0,
        .next_tokens = decoder->head == LOCUS_MODEL_GENERATE ? decoder->vocabulary : 0,
        .threads = m->workers.threads,
        .isa = m->program.precision == LOCUS_EXACT ? m->workers.kernels->isa
                                                   : m->program.integers->isa,
        .precision = m->program.precision,
    };
    locus_hand_back(info, &found, sizeof found);
}

const char *locus_model_label(const locus_model *m, int64_t index)
{
    return index >= 0 && index < m->stacks[0].labels ? m->labels[index] : NULL;
}

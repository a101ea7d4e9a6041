/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "lab/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/number.h"
#include "io/system.h"
#include "io/tensorfile.h"
#include "lab/files.h"

enum { ARRAYS = 3, NAME = TRAIN_NAME + 8 };

/* Weights and both moments of parameter `index` under their names. */
static void name_array(char name[NAME], const train_parameter *item, int array)
{
    static const char *const prefix[ARRAYS] = {"", "adam.m.", "adam.v."};
    snprintf(name, NAME, "%s%s", prefix[array], item->name);
}

static float *array_of(const train_model *model, const train_parameter *item, int array)
{
    float *const arrays[ARRAYS] = {model->weights, model->m, model->v};
    return arrays[array] + item->at;
}

/* ---- writing ---- */

static locus_status put_metadata(locus_file_writer *w, const lab_plan *plan, int64_t step,
                                 locus_error *error)
{
    char text[24];
    LOCUS_TRY(locus_file_put_sum(w, error));
    LOCUS_TRY(locus_file_put_metadata(w, "format", "locus-lab", error));
    LOCUS_TRY(locus_file_put_metadata(w, "task", plan->settings.task, error));
    LOCUS_TRY(locus_file_put_metadata(w, "scheme", plan->settings.scheme, error));
    snprintf(text, sizeof text, "%" PRIu64, plan->settings.seed);
    LOCUS_TRY(locus_file_put_metadata(w, "seed", text, error));
    snprintf(text, sizeof text, "%" PRId64, step);
    return locus_file_put_metadata(w, "step", text, error);
}

static locus_status put_parameters(locus_file_writer *w, const train_model *model,
                                   locus_error *error)
{
    for (int array = 0; array < ARRAYS; array++)
        for (size_t i = 0; i < model->list.count; i++) {
            const train_parameter *item = &model->list.items[i];
            const uint64_t shape[] = {(uint64_t)item->shape[0], (uint64_t)item->shape[1]};
            char name[NAME];
            name_array(name, item, array);
            LOCUS_TRY(locus_file_put(w, name, "F32", item->rank, shape,
                                     array_of(model, item, array), error));
        }
    return LOCUS_OK;
}

static locus_status put_memory(locus_file_writer *w, const lab_plan *plan,
                               const train_memory *memory, locus_error *error)
{
    const lab_settings *s = &plan->settings;
    const uint64_t shape[] = {(uint64_t)s->batch, (uint64_t)memory->rows, (uint64_t)s->width};
    for (int64_t i = 0; memory->most > 0 && i < s->layers; i++) {
        char name[NAME];
        snprintf(name, sizeof name, "memory.%d", (int)i);
        LOCUS_TRY(locus_file_put(w, name, "F32", 3, shape, memory->data[i], error));
    }
    return LOCUS_OK;
}

/* The checkpoint that is there gets its second name before the new one takes the first: there is
 * no moment without one. */
static locus_status keep_previous(const char *folder, const char *path, locus_error *error)
{
    char previous[LAB_PATH], beside[LAB_PATH];
    if (!lab_path(previous, folder, LAB_PREVIOUS) || !lab_path(beside, folder, ".previous"))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    unlink(beside);
    if (link(path, beside) == 0 && rename(beside, previous) == 0) return LOCUS_OK;
    if (errno == ENOENT) return LOCUS_OK; /* the first one */
    return locus_file_fail_in(error, locus_system_fail(error, "cannot keep a copy", errno), path);
}

locus_status lab_checkpoint_write(const lab_plan *plan, const train_model *model,
                                  const train_memory *memory, int64_t step, const char *folder,
                                  locus_error *error)
{
    char path[LAB_PATH];
    locus_file_writer *w = NULL;
    if (!lab_path(path, folder, LAB_CHECKPOINT))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    LOCUS_TRY(keep_previous(folder, path, error));
    LOCUS_TRY(locus_file_create(&w, path, NULL, error));
    locus_status status = put_metadata(w, plan, step, error);
    if (status == LOCUS_OK) status = put_parameters(w, model, error);
    if (status == LOCUS_OK) status = put_memory(w, plan, memory, error);
    if (status == LOCUS_OK) return locus_file_commit(w, error);
    locus_file_abandon(w);
    return status;
}

/* ---- reading ---- */

static locus_status expect_text(const locus_file *file, const char *key, const char *wanted,
                                locus_error *error)
{
    const char *found = locus_file_metadata(file, key);
    if (found != NULL && strcmp(found, wanted) == 0) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_FORMAT, "metadata \"%s\": found %s, expected %s", key,
                      found != NULL ? found : "none", wanted);
}

static locus_status check_metadata(const locus_file *file, const lab_plan *plan, int64_t *step,
                                   locus_error *error)
{
    char seed[24];
    const char *text = locus_file_metadata(file, "step");
    snprintf(seed, sizeof seed, "%" PRIu64, plan->settings.seed);
    LOCUS_TRY(expect_text(file, "format", "locus-lab", error));
    LOCUS_TRY(expect_text(file, "task", plan->settings.task, error));
    LOCUS_TRY(expect_text(file, "scheme", plan->settings.scheme, error));
    LOCUS_TRY(expect_text(file, "seed", seed, error));
    if (text == NULL || !locus_parse_integer(text, step) || *step < 0 ||
        *step > plan->settings.steps)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "metadata \"step\": found %s, expected 0 to %" PRId64,
                          text != NULL ? text : "none", plan->settings.steps);
    return LOCUS_OK;
}

/* Tensor `name` as F32 of `rank` extents; *index for locus_file_read. */
static locus_status find_tensor(const locus_file *file, const char *name, uint32_t rank,
                                const int64_t *shape, size_t *index, locus_error *error)
{
    const locus_file_tensor *found = locus_file_find(file, name);
    int fits = found != NULL && found->rank == rank && strcmp(found->dtype, "F32") == 0;
    for (uint32_t i = 0; fits && i < rank; i++) fits = found->shape[i] == (uint64_t)shape[i];
    if (!fits)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "tensor %s: found %s, expected F32 of this model's shape", name,
                          found == NULL ? "none" : "another shape");
    for (*index = 0; locus_file_tensor_at(file, *index) != found;) ++*index;
    return LOCUS_OK;
}

static locus_status read_parameters(const locus_file *file, const train_model *model, int really,
                                    locus_error *error)
{
    for (int array = 0; array < ARRAYS; array++)
        for (size_t i = 0; i < model->list.count; i++) {
            const train_parameter *item = &model->list.items[i];
            char name[NAME];
            size_t index = 0;
            name_array(name, item, array);
            LOCUS_TRY(find_tensor(file, name, item->rank, item->shape, &index, error));
            if (really)
                LOCUS_TRY(locus_file_read(file, index, 0, item->count * sizeof(float),
                                          array_of(model, item, array), error));
        }
    return LOCUS_OK;
}

static locus_status read_memory(const locus_file *file, const lab_plan *plan, int64_t step,
                                train_memory *memory, locus_error *error)
{
    const lab_settings *s = &plan->settings;
    if (memory->most == 0) return LOCUS_OK;
    memory->rows = step > 0 ? memory->most : 0;
    const int64_t shape[] = {s->batch, memory->rows, s->width};
    for (int64_t i = 0; i < s->layers; i++) {
        char name[NAME];
        size_t index = 0;
        snprintf(name, sizeof name, "memory.%d", (int)i);
        LOCUS_TRY(find_tensor(file, name, 3, shape, &index, error));
        LOCUS_TRY(locus_file_read(file, index, 0,
                                  (uint64_t)(shape[0] * shape[1] * shape[2]) * sizeof(float),
                                  memory->data[i], error));
    }
    return LOCUS_OK;
}

static locus_status read_file(const locus_file *file, const lab_plan *plan, train_model *model,
                              train_memory *memory, int64_t *step, locus_error *error)
{
    LOCUS_TRY(locus_file_check_sum(file, error));
    LOCUS_TRY(check_metadata(file, plan, step, error));
    LOCUS_TRY(read_parameters(file, model, 0, error));
    LOCUS_TRY(read_parameters(file, model, 1, error));
    return read_memory(file, plan, *step, memory, error);
}

locus_status lab_checkpoint_read(const lab_plan *plan, train_model *model, train_memory *memory,
                                 int64_t *step, const char *folder, const char *name,
                                 locus_error *error)
{
    char path[LAB_PATH];
    locus_file *file = NULL;
    if (!lab_path(path, folder, name))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    LOCUS_TRY(locus_file_open(&file, path, NULL, error));
    locus_status status = read_file(file, plan, model, memory, step, error);
    locus_file_close(file);
    if (status != LOCUS_OK && strncmp(error->text, path, strlen(path)) != 0)
        status = locus_file_fail_in(error, status, path);
    return status;
}

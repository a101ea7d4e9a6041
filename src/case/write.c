/* SPDX-License-Identifier: Apache-2.0 */
/* A call of the caller's as a case file: the other way of load.c and metadata.c. */
#include <inttypes.h>
#include <stdio.h>

#include "case/case.h"
#include "core/error.h"
#include "core/print.h"
#include "core/tensor.h"

static locus_status put_integer(locus_file_writer *writer, const char *key, int64_t value,
                                locus_error *error)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return locus_file_put_metadata(writer, key, text, error);
}

/* 17 digits bring every double back. */
static locus_status put_real(locus_file_writer *writer, const char *key, double value,
                             locus_error *error)
{
    char text[40];
    locus_print(text, sizeof text, "%.17g", value);
    return locus_file_put_metadata(writer, key, text, error);
}

static const char *choice_name(const locus_option_info *option, int64_t value)
{
    for (const locus_choice *c = option->choices; c->name != NULL; c++)
        if (c->value == value) return c->name;
    return "";
}

/* An option that has its default need not be written; some defaults could not be: width 0. */
static locus_status put_option(locus_file_writer *writer, const locus_option_info *option,
                               const locus_options *options, locus_error *error)
{
    const void *field = (const char *)options + option->offset;
    if (option->kind == LOCUS_OPTION_REAL) {
        const double value = *(const double *)field;
        if (value == LOCUS_UNSET_REAL || (!option->required && value == option->preset))
            return LOCUS_OK;
        return put_real(writer, option->name, value, error);
    }
    const int64_t value = *(const int64_t *)field;
    if (value == LOCUS_UNSET || (!option->required && (double)value == option->preset))
        return LOCUS_OK;
    if (option->kind == LOCUS_OPTION_INTEGER)
        return put_integer(writer, option->name, value, error);
    return locus_file_put_metadata(writer, option->name, choice_name(option, value), error);
}

static locus_status put_options(locus_file_writer *writer, uint32_t level,
                                const locus_config *config, const locus_tensors *in,
                                locus_error *error)
{
    const locus_scheme_info *scheme = locus_scheme_find(config->scheme);
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++) {
        const int beside = o->with != NULL ? locus_tensor_index(o->with) : -1;
        const int applies = beside < 0 || locus_present(locus_tensor_at_const(in, (size_t)beside));
        if ((o->levels & level) == 0 || !applies) continue;
        LOCUS_TRY(put_option(writer, o, &config->options, error));
    }
    return LOCUS_OK;
}

static locus_status put_metadata(locus_file_writer *writer, uint32_t level,
                                 const locus_config *config, const char *note, locus_error *error)
{
    const int is_layer = level == LOCUS_LAYER;
    if (config->key_offset != 0 || config->first_query != 0 || config->first_batch != 0)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "key_offset, first_query, first_batch: found one above 0, expected 0 (a "
                          "case is a whole call)");
    LOCUS_TRY(locus_file_put_metadata(writer, "format", "locus.case/1", error));
    LOCUS_TRY(locus_file_put_metadata(writer, "kind", is_layer ? "layer" : "attend", error));
    LOCUS_TRY(locus_file_put_metadata(writer, "scheme", config->scheme, error));
    if (note != NULL) LOCUS_TRY(locus_file_put_metadata(writer, "note", note, error));
    if (is_layer) LOCUS_TRY(put_integer(writer, "heads", config->heads, error));
    LOCUS_TRY(put_integer(writer, "causal", config->causal, error));
    LOCUS_TRY(put_integer(writer, "window_left", config->window_left, error));
    LOCUS_TRY(put_integer(writer, "window_right", config->window_right, error));
    if (config->query_offset != LOCUS_UNSET)
        LOCUS_TRY(put_integer(writer, "query_offset", config->query_offset, error));
    if (config->scale != LOCUS_UNSET_REAL)
        LOCUS_TRY(put_real(writer, "scale", config->scale, error));
    if (config->softcap != LOCUS_UNSET_REAL)
        LOCUS_TRY(put_real(writer, "softcap", config->softcap, error));
    if (config->dropout > 0.0) {
        char seed[32];
        snprintf(seed, sizeof seed, "%" PRIu64, config->dropout_seed);
        LOCUS_TRY(put_real(writer, "dropout", config->dropout, error));
        LOCUS_TRY(locus_file_put_metadata(writer, "dropout_seed", seed, error));
    }
    return LOCUS_OK;
}

static int is_dense(const locus_tensor *t)
{
    int64_t stride = 1;
    for (uint32_t axis = t->rank; axis-- > 0;) {
        if (t->shape[axis] > 1 && t->stride[axis] != stride) return 0;
        stride *= t->shape[axis];
    }
    return 1;
}

static locus_status put_tensors(locus_file_writer *writer, const locus_tensors *in,
                                locus_error *error)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(in, i);
        if (!locus_present(t)) continue;
        if (!is_dense(t))
            return locus_fail(error, LOCUS_ERR_TENSOR,
                              "tensor %s: found strides, expected a dense tensor",
                              locus_tensor_name(i));
        uint64_t shape[LOCUS_MAX_RANK];
        for (uint32_t axis = 0; axis < t->rank; axis++) shape[axis] = (uint64_t)t->shape[axis];
        LOCUS_TRY(locus_file_put(writer, locus_tensor_name(i), locus_dtype_name(t->dtype), t->rank,
                                 shape, t->data, error));
    }
    return LOCUS_OK;
}

locus_status locus_case_write(const char *path, uint32_t level, const locus_config *config,
                              const locus_tensors *in, const char *note, locus_error *error)
{
    if (path == NULL || config == NULL || in == NULL || locus_scheme_find(config->scheme) == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "case: NULL argument or unknown scheme");
    locus_file_writer *writer = NULL;
    LOCUS_TRY(locus_file_create(&writer, path, config->allocator, error));
    locus_status status = put_metadata(writer, level, config, note, error);
    if (status == LOCUS_OK) status = put_options(writer, level, config, in, error);
    if (status == LOCUS_OK) status = put_tensors(writer, in, error);
    if (status == LOCUS_OK) return locus_file_commit(writer, error);
    locus_file_abandon(writer);
    return status;
}

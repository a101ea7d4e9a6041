/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of callers: defaults, sizes, ranges of what is no option of a scheme. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/adopt.h"
#include "core/error.h"
#include "schemes/scheme.h"

enum { MAX_THREADS = 1024 };
static const int64_t max_offset = (int64_t)1 << 31;

/* What a configuration holds before anybody sets anything. */
static locus_status fill_defaults(locus_config *config, const char *scheme)
{
    memset(config, 0, sizeof *config);
    config->size = sizeof *config;
    config->scheme = scheme;
    config->window_left = LOCUS_NO_WINDOW;
    config->window_right = LOCUS_NO_WINDOW;
    config->query_offset = LOCUS_UNSET;
    config->scale = LOCUS_UNSET_REAL;
    config->softcap = LOCUS_UNSET_REAL;
    return locus_options_init(&config->options, scheme);
}

locus_status locus_config_init_sized(locus_config *config, size_t size, size_t options_size,
                                     const char *scheme)
{
    locus_config fresh;
    const size_t head = offsetof(locus_config, options);
    if (size < head || options_size > size - head || size > UINT32_MAX) return LOCUS_ERR_ARGUMENT;
    const locus_status status = fill_defaults(&fresh, scheme);
    config->size = (uint32_t)size;
    locus_hand_back(config, &fresh, sizeof fresh);
    config->options.size = (uint32_t)options_size;
    return status;
}

/* The options of an older caller are shorter, those of a newer one longer; both stand last, so
 * that the rest lies where it always was. */
static locus_status check_options_size(const locus_config *config, locus_error *error)
{
    const uint32_t head = offsetof(locus_config, options);
    if (config->size <= head) return LOCUS_OK; /* cut before them: defaults */
    if (config->options.size != 0 && config->options.size <= config->size - head) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_ARGUMENT,
                      "config.options: found size %u, expected the sizeof of the struct, here %zu "
                      "(use locus_config_init)",
                      (unsigned)config->options.size, sizeof config->options);
}

static locus_status check_reserved(const locus_config *config, locus_error *error)
{
    for (size_t i = 0; i < sizeof config->reserved / sizeof *config->reserved; i++)
        if (config->reserved[i] != 0)
            return locus_fail(error, LOCUS_ERR_ARGUMENT,
                              "config: found something in reserved[%zu], expected 0 (use "
                              "locus_config_init)",
                              i);
    return LOCUS_OK;
}

/* Where a part of a larger call stands in it. */
static locus_status check_part(const locus_config *config, locus_error *error)
{
    const struct {
        const char *name;
        int64_t value;
    } parts[] = {{"key_offset", config->key_offset},
                 {"first_query", config->first_query},
                 {"first_batch", config->first_batch}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].value < 0 || parts[i].value > max_offset)
            return locus_fail(error, LOCUS_ERR_OPTION, "%s: found %" PRId64 ", expected 0..2^31",
                              parts[i].name, parts[i].value);
    return LOCUS_OK;
}

static locus_status check_numbers(const locus_config *config, locus_error *error)
{
    if (config->query_offset != LOCUS_UNSET &&
        (config->query_offset < -max_offset || config->query_offset > max_offset))
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "query_offset: found %" PRId64 ", expected -2^31..2^31",
                          config->query_offset);
    if (!isfinite(config->scale))
        return locus_fail(error, LOCUS_ERR_OPTION, "scale: found %g, expected a finite number",
                          config->scale);
    if (config->softcap != LOCUS_UNSET_REAL &&
        !(config->softcap > 0.0 && isfinite(config->softcap)))
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "softcap: found %g, expected a finite number above 0", config->softcap);
    if (!(config->dropout >= 0.0 && config->dropout < 1.0))
        return locus_fail(error, LOCUS_ERR_OPTION, "dropout: found %g, expected [0, 1)",
                          config->dropout);
    return LOCUS_OK;
}

static locus_status check_config(const locus_config *config, locus_error *error)
{
    if (config->window_left < -1 || config->window_right < -1)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "window: found %" PRId64 " and %" PRId64 ", expected -1 or more",
                          config->window_left, config->window_right);
    if (config->causal > 1)
        return locus_fail(error, LOCUS_ERR_OPTION, "causal: found %u, expected 0 or 1",
                          (unsigned)config->causal);
    LOCUS_TRY(check_numbers(config, error));
    LOCUS_TRY(check_part(config, error));
    if (config->path != NULL && strcmp(config->path, "tiles") != 0 &&
        strcmp(config->path, "rows") != 0)
        return locus_fail(error, LOCUS_ERR_OPTION, "path: found another, expected tiles or rows");
    if (config->threads > MAX_THREADS)
        return locus_fail(error, LOCUS_ERR_OPTION, "threads: found %u, expected at most %d",
                          (unsigned)config->threads, MAX_THREADS);
    return LOCUS_OK;
}

locus_status locus_adopt_results(const locus_results **results, locus_results *copy,
                                 const char *name, locus_error *error)
{
    const size_t first = offsetof(locus_results, out);
    if ((*results)->size < first || ((*results)->size - first) % sizeof(locus_tensor) != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: found size %u, expected the sizeof of the struct, here %zu", name,
                          (unsigned)(*results)->size, sizeof *copy);
    memset(copy, 0, sizeof *copy);
    LOCUS_ADOPT(*results, *copy, name, error);
    return LOCUS_OK;
}

locus_status locus_adopt_config(locus_config *own, const locus_config *config, locus_error *error)
{
    locus_config seen = {.scheme = NULL};
    LOCUS_TRY(locus_adopt(&seen, sizeof seen, config, "config", error));
    if (fill_defaults(own, seen.scheme) != LOCUS_OK)
        return locus_unknown_scheme(seen.scheme, error);
    LOCUS_TRY(check_options_size(config, error));
    LOCUS_TRY(locus_adopt(own, sizeof *own, config, "config", error));
    own->options.size = sizeof own->options;
    LOCUS_TRY(check_reserved(own, error));
    return check_config(own, error);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case/case.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/number.h"
#include "core/tensor.h"

/* ---- the keys that every case may have ---- */

typedef enum key_kind { KEY_NUMBER_32, KEY_NUMBER, KEY_SEED, KEY_REAL, KEY_TEXT } key_kind;

typedef struct common_key {
    const char *name;
    key_kind kind;
    size_t field;            /* of locus_case                                */
    double minimum, maximum; /* inclusive                                    */
    const char *expected;
} common_key;

#define MOST_TOLERANCE 0.01 /* of values that a file expects */
#define FIELD(name) offsetof(locus_case, config.name)
static const common_key common_keys[] = {
    {"format", KEY_TEXT, 0, 0, 0, NULL},
    {"kind", KEY_TEXT, 0, 0, 0, NULL},
    {"scheme", KEY_TEXT, 0, 0, 0, NULL},
    {"note", KEY_TEXT, 0, 0, 0, NULL},
    {"grad", KEY_NUMBER_32, offsetof(locus_case, grad), 0, 1, "0 or 1"},
    {"causal", KEY_NUMBER_32, FIELD(causal), 0, 1, "0 or 1"},
    {"heads", KEY_NUMBER_32, FIELD(heads), 1, 1 << 24, "an integer in 1..2^24"},
    {"window_left", KEY_NUMBER, FIELD(window_left), -1, 0x1p53, "-1 or more"},
    {"window_right", KEY_NUMBER, FIELD(window_right), -1, 0x1p53, "-1 or more"},
    {"query_offset", KEY_NUMBER, FIELD(query_offset), -0x1p31, 0x1p31, "an integer in -2^31..2^31"},
    {"scale", KEY_REAL, FIELD(scale), -0x1p1023, DBL_MAX, "a finite decimal number"},
    {"softcap", KEY_REAL, FIELD(softcap), DBL_TRUE_MIN, DBL_MAX, "a finite decimal number above 0"},
    {"dropout", KEY_REAL, FIELD(dropout), 0, 1 - DBL_EPSILON / 2, "a number in [0, 1)"},
    {"dropout_seed", KEY_SEED, FIELD(dropout_seed), 0, 0, "an integer in 0..2^64-1"},
    {"tolerance", KEY_REAL, offsetof(locus_case, tolerance), DBL_TRUE_MIN, MOST_TOLERANCE,
     "a number above 0 and at most 0.01"},
    {"tolerance_grad", KEY_REAL, offsetof(locus_case, gradient_tolerance), DBL_TRUE_MIN,
     MOST_TOLERANCE, "a number above 0 and at most 0.01"},
};

static const common_key *find_common(const char *name)
{
    for (size_t i = 0; i < sizeof common_keys / sizeof *common_keys; i++)
        if (strcmp(common_keys[i].name, name) == 0) return &common_keys[i];
    return NULL;
}

static locus_status refuse_value(const char *key, const char *value, const char *expected,
                                 locus_error *error)
{
    char found[96];
    return locus_fail(error, LOCUS_ERR_OPTION, "metadata key %s: found \"%s\", expected %s", key,
                      locus_escape(found, sizeof found, value, strlen(value)), expected);
}

/* 1 and the field is set, or 0. */
static int store_number(const common_key *key, const char *value, char *field)
{
    int64_t number;
    if (!locus_parse_integer(value, &number)) return 0;
    if ((double)number < key->minimum || (double)number > key->maximum) return 0;
    const uint32_t narrow = (uint32_t)number;
    if (key->kind == KEY_NUMBER_32)
        memcpy(field, &narrow, sizeof narrow);
    else
        memcpy(field, &number, sizeof number);
    return 1;
}

static int store_real(const common_key *key, const char *value, char *field)
{
    double number;
    if (!locus_parse_real(value, &number)) return 0;
    if (number < key->minimum || number > key->maximum) return 0;
    memcpy(field, &number, sizeof number);
    return 1;
}

static int store_seed(const char *value, char *field)
{
    uint64_t seed;
    if (!locus_parse_unsigned(value, &seed)) return 0;
    memcpy(field, &seed, sizeof seed);
    return 1;
}

static locus_status read_common(locus_case *c, const common_key *key, const char *value,
                                locus_error *error)
{
    char *field = (char *)c + key->field;
    int stored = 1;
    switch (key->kind) {
    case KEY_NUMBER_32:
    case KEY_NUMBER: stored = store_number(key, value, field); break;
    case KEY_SEED: stored = store_seed(value, field); break;
    case KEY_REAL: stored = store_real(key, value, field); break;
    case KEY_TEXT: break;
    }
    if (!stored) return refuse_value(key->name, value, key->expected, error);
    return LOCUS_OK;
}

/* ---- the options of the scheme ---- */

static const char *level_text(uint32_t level) { return level == LOCUS_LAYER ? "layer" : "attend"; }

static int is_option(const locus_case *c, const char *name)
{
    const locus_scheme_info *scheme = locus_scheme_find(c->config.scheme);
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++)
        if ((o->levels & c->level) != 0 && strcmp(o->name, name) == 0) return 1;
    return 0;
}

static locus_status unknown_key(const locus_case *c, const char *name, locus_error *error)
{
    char text[96], suggestion[LOCUS_SUGGESTION];
    const char *names[64];
    size_t count = 0;
    for (; count < sizeof common_keys / sizeof *common_keys; count++)
        names[count] = common_keys[count].name;
    const locus_scheme_info *scheme = locus_scheme_find(c->config.scheme);
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL && count < 64; i++)
        if ((o->levels & c->level) != 0) names[count++] = o->name;
    return locus_fail(error, LOCUS_ERR_OPTION,
                      "metadata key \"%s\" is not known to scheme %s (%s)%s",
                      locus_escape(text, sizeof text, name, strlen(name)), c->config.scheme,
                      level_text(c->level), locus_suggest(suggestion, name, names, count));
}

static locus_status read_key(locus_case *c, const char *name, const char *value, locus_error *error)
{
    const common_key *key = find_common(name);
    if (key != NULL) return read_common(c, key, value, error);
    if (is_option(c, name))
        return locus_options_set(&c->config.options, c->config.scheme, c->level, name, value,
                                 error);
    return unknown_key(c, name, error);
}

/* ---- the three keys that decide what the others mean ---- */

static locus_status need_key(const locus_case *c, const char *name, const char **value,
                             locus_error *error)
{
    *value = locus_file_metadata(c->file, name);
    if (*value == NULL)
        return locus_fail(error, LOCUS_ERR_FORMAT, "metadata key %s is missing", name);
    return LOCUS_OK;
}

static const char *scheme_name(size_t index)
{
    const locus_scheme_info *info = locus_scheme_at(index);
    return info != NULL ? info->name : NULL;
}

static locus_status read_head(locus_case *c, locus_error *error)
{
    const char *format, *kind, *scheme;
    char text[96], suggestion[LOCUS_SUGGESTION];
    LOCUS_TRY(need_key(c, "format", &format, error));
    if (strcmp(format, "locus.case/1") != 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "metadata key format: found \"%s\", expected locus.case/1",
                          locus_escape(text, sizeof text, format, strlen(format)));
    LOCUS_TRY(need_key(c, "kind", &kind, error));
    if (strcmp(kind, "attend") != 0 && strcmp(kind, "layer") != 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "metadata key kind: found \"%s\", expected attend or layer",
                          locus_escape(text, sizeof text, kind, strlen(kind)));
    c->level = strcmp(kind, "layer") == 0 ? LOCUS_LAYER : LOCUS_ATTEND;
    LOCUS_TRY(need_key(c, "scheme", &scheme, error));
    const locus_scheme_info *info = locus_scheme_find(scheme);
    if (info == NULL)
        return locus_fail(error, LOCUS_ERR_SCHEME, "metadata key scheme: \"%s\" is unknown%s",
                          locus_escape(text, sizeof text, scheme, strlen(scheme)),
                          locus_suggest_from(suggestion, scheme, scheme_name));
    return locus_config_init(&c->config, info->name);
}

locus_status locus_case_read_metadata(locus_case *c, locus_error *error)
{
    LOCUS_TRY(read_head(c, error));
    for (size_t i = 0; i < locus_file_metadata_count(c->file); i++) {
        const char *key, *value;
        locus_file_metadata_at(c->file, i, &key, &value);
        LOCUS_TRY(read_key(c, key, value, error));
    }
    if (c->level == LOCUS_LAYER && c->config.heads == 0)
        return locus_fail(error, LOCUS_ERR_OPTION, "metadata key heads is missing");
    return LOCUS_OK;
}

/* ---- keys and tensors together ---- */

/* 1 when the file holds the tensor `name`. */
static int has_tensor(const locus_case *c, const char *name)
{
    const int index = locus_tensor_index(name);
    return index >= 0 && locus_present(locus_tensor_at_const(&c->inputs, (size_t)index));
}

locus_status locus_case_check_options(const locus_case *c, locus_error *error)
{
    const locus_scheme_info *scheme = locus_scheme_find(c->config.scheme);
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++) {
        if ((o->levels & c->level) == 0) continue;
        const int given = locus_file_metadata(c->file, o->name) != NULL;
        const int applies = o->with == NULL || has_tensor(c, o->with);
        if (given && !applies)
            return locus_fail(error, LOCUS_ERR_OPTION,
                              "metadata key %s: found without tensor %s, expected both", o->name,
                              o->with);
        if (given && o->without != NULL && has_tensor(c, o->without))
            return locus_fail(error, LOCUS_ERR_OPTION,
                              "metadata key %s: found beside tensor %s, expected one of them",
                              o->name, o->without);
        if (!given && applies && o->required)
            return locus_fail(error, LOCUS_ERR_OPTION, "metadata key %s is missing", o->name);
    }
    return LOCUS_OK;
}

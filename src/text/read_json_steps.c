/* SPDX-License-Identifier: Apache-2.0 */
/* The "normalizer" and the "pre_tokenizer" of tokenizer.json: those that occur in published files
 * of the supported families. Anything else is refused by its name. */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/read.h"

static locus_status unsupported(const json_value *value, const char *where, const char *key,
                                locus_error *error)
{
    char found[100];
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "%s: %s: found %s, which this reader does not support", where, key,
                      locus_tree_describe(found, sizeof found, locus_tree_get(value, key)));
}

static locus_status too_many(const char *where, locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_FORMAT, "%s: found more than %d steps", where,
                      TEXT_MAX_STEPS);
}

/* Calls `read` for each member of a Sequence. */
static locus_status
read_sequence(locus_tokenizer *t, const json_value *value, const char *key,
              locus_status (*read)(locus_tokenizer *, const json_value *, locus_error *),
              const char *where, locus_error *error)
{
    const json_value *list = locus_tree_get(value, key);
    if (list == NULL || list->kind != LOCUS_JSON_ARRAY)
        return unsupported(value, where, key, error);
    for (const json_value *v = list->child; v != NULL; v = v->next) LOCUS_TRY(read(t, v, error));
    return LOCUS_OK;
}

/* {"String": "x"} or {"Regex": "x"} */
static const json_value *pattern_of(const json_value *value, const char *kind)
{
    const json_value *text = locus_tree_get(locus_tree_get(value, "pattern"), kind);
    return text != NULL && text->kind == LOCUS_JSON_STRING ? text : NULL;
}

/* ---- normalizers ---- */

static locus_status read_bert(const json_value *value, normalizer *step, locus_error *error)
{
    const char *where = "normalizer";
    step->kind = NORMALIZE_BERT;
    LOCUS_TRY(locus_tree_bool(value, where, "clean_text", 1, &step->clean, error));
    LOCUS_TRY(locus_tree_bool(value, where, "handle_chinese_chars", 1, &step->chinese, error));
    LOCUS_TRY(locus_tree_bool(value, where, "lowercase", 1, &step->lower, error));
    return locus_tree_bool(value, where, "strip_accents", step->lower, &step->accents, error);
}

/* " {2,}" and the like: a run of at least so many spaces. 0: another expression. */
static uint32_t least_spaces(const json_value *regex)
{
    if (locus_tree_is_text(regex, " {2,}")) return 2;
    if (locus_tree_is_text(regex, " +")) return 1;
    return 0;
}

static locus_status read_replace(locus_tokenizer *t, const json_value *value, normalizer *step,
                                 locus_error *error)
{
    const json_value *text = pattern_of(value, "String"), *regex = pattern_of(value, "Regex");
    const json_value *content = NULL;
    LOCUS_TRY(locus_tree_string(value, "normalizer", "content", &content, error));
    if (content == NULL) return unsupported(value, "normalizer: Replace", "content", error);
    LOCUS_TRY(locus_read_keep_value(t, content, &step->content, error));
    if (text != NULL && text->bytes > 0) {
        step->kind = NORMALIZE_REPLACE;
        return locus_read_keep_value(t, text, &step->pattern, error);
    }
    step->kind = NORMALIZE_REPLACE_RUN;
    step->least = least_spaces(regex);
    if (step->least > 0) return LOCUS_OK;
    char found[100];
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "normalizer: Replace: pattern: found %s, which is an unsupported pattern",
                      locus_tree_describe(found, sizeof found, regex));
}

static int base64_value(char c)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c == '\0' ? NULL : strchr(letters, c);
    return at == NULL ? -1 : (int)(at - letters);
}

/* Returns the bytes decoded, SIZE_MAX: no base64. */
static size_t decode_base64(const json_value *text, char *out)
{
    size_t count = 0, bytes = text->bytes;
    uint32_t bits = 0;
    if (bytes % 4 != 0) return SIZE_MAX;
    while (bytes > 0 && text->bytes - bytes < 2 && text->text[bytes - 1] == '=') bytes--;
    for (size_t i = 0; i < bytes; i++) {
        const int value = base64_value(text->text[i]);
        if (value < 0) return SIZE_MAX;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 == 0) continue;
        out[count++] = (char)(bits >> (6 - 2 * (i % 4)) & 0xFF);
    }
    return count;
}

static locus_status read_precompiled(locus_tokenizer *t, const json_value *value, normalizer *step,
                                     locus_error *error)
{
    const json_value *text = NULL;
    LOCUS_TRY(
        locus_tree_string(value, "normalizer: Precompiled", "precompiled_charsmap", &text, error));
    if (text == NULL || t->map.units != NULL)
        return unsupported(value, "normalizer: Precompiled", "precompiled_charsmap", error);
    char *blob = locus_allocate(t->allocator, text->bytes, 1);
    if (blob == NULL) return locus_text_no_memory(error);
    const size_t bytes = decode_base64(text, blob);
    locus_status status = LOCUS_OK;
    if (bytes == SIZE_MAX)
        status = locus_fail(error, LOCUS_ERR_FORMAT,
                            "normalizer: precompiled_charsmap: found text that is not base64");
    else
        status = locus_charsmap_open(&t->map, blob, bytes, &t->arena, error);
    locus_release(t->allocator, blob);
    step->kind = NORMALIZE_CHARSMAP;
    step->map = &t->map;
    return status;
}

static locus_status read_simple(const json_value *type, normalizer *step, int *known)
{
    static const struct {
        const char *name;
        normalizer_kind kind;
        unicode_form form;
    } steps[] = {{"NFC", NORMALIZE_UNICODE, UNICODE_NFC},
                 {"NFD", NORMALIZE_UNICODE, UNICODE_NFD},
                 {"NFKC", NORMALIZE_UNICODE, UNICODE_NFKC},
                 {"NFKD", NORMALIZE_UNICODE, UNICODE_NFKD},
                 {"Lowercase", NORMALIZE_LOWER, UNICODE_NFC},
                 {"StripAccents", NORMALIZE_STRIP_ACCENTS, UNICODE_NFC}};
    *known = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (!locus_tree_is_text(type, steps[i].name)) continue;
        step->kind = steps[i].kind;
        step->form = steps[i].form;
        *known = 1;
    }
    return LOCUS_OK;
}

static locus_status read_prepend(locus_tokenizer *t, const json_value *value, normalizer *step,
                                 locus_error *error)
{
    const json_value *text = NULL;
    step->kind = NORMALIZE_PREPEND;
    LOCUS_TRY(locus_tree_string(value, "normalizer: Prepend", "prepend", &text, error));
    if (text == NULL) return unsupported(value, "normalizer: Prepend", "prepend", error);
    return locus_read_keep_value(t, text, &step->content, error);
}

locus_status locus_read_json_normalizer(locus_tokenizer *t, const json_value *value,
                                        locus_error *error)
{
    const json_value *type = locus_tree_get(value, "type");
    int known = 0;
    if (value == NULL || value->kind == LOCUS_JSON_NULL) return LOCUS_OK;
    if (locus_tree_is_text(type, "Sequence"))
        return read_sequence(t, value, "normalizers", locus_read_json_normalizer, "normalizer",
                             error);
    if (t->normalizer_count == TEXT_MAX_STEPS) return too_many("normalizer", error);
    normalizer *step = t->normalizers + t->normalizer_count++;
    LOCUS_TRY(read_simple(type, step, &known));
    if (known) return LOCUS_OK;
    if (locus_tree_is_text(type, "BertNormalizer")) return read_bert(value, step, error);
    if (locus_tree_is_text(type, "Replace")) return read_replace(t, value, step, error);
    if (locus_tree_is_text(type, "Precompiled")) return read_precompiled(t, value, step, error);
    if (locus_tree_is_text(type, "Prepend")) return read_prepend(t, value, step, error);
    if (locus_tree_is_text(type, "Strip")) {
        step->kind = NORMALIZE_STRIP;
        LOCUS_TRY(locus_tree_bool(value, "normalizer: Strip", "strip_left", 1, &step->left, error));
        return locus_tree_bool(value, "normalizer: Strip", "strip_right", 1, &step->right, error);
    }
    return unsupported(value, "normalizer", "type", error);
}

/* ---- pre-tokenizers ---- */

static locus_status add_splitter(locus_tokenizer *t, splitter step, locus_error *error)
{
    if (t->splitter_count == TEXT_MAX_STEPS) return too_many("pre_tokenizer", error);
    t->splitters[t->splitter_count++] = step;
    return LOCUS_OK;
}

static locus_status read_behaviour(const json_value *value, split_behaviour *out,
                                   locus_error *error)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const json_value *name = locus_tree_get(value, "behavior");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!locus_tree_is_text(name, names[i])) continue;
        *out = (split_behaviour)i;
        return LOCUS_OK;
    }
    return unsupported(value, "pre_tokenizer", "behavior", error);
}

static locus_status read_metaspace(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    const char *where = "pre_tokenizer: Metaspace";
    splitter step = {.kind = SPLIT_METASPACE, .behaviour = SPLIT_MERGED_WITH_NEXT};
    const json_value *replacement = NULL, *scheme = NULL;
    size_t length = 0;
    int prefix = 1;
    LOCUS_TRY(locus_tree_string(value, where, "replacement", &replacement, error));
    LOCUS_TRY(locus_tree_string(value, where, "prepend_scheme", &scheme, error));
    LOCUS_TRY(locus_tree_bool(value, where, "add_prefix_space", 1, &prefix, error));
    LOCUS_TRY(locus_tree_bool(value, where, "split", 1, &step.split, error));
    step.replacement = TEXT_META_CODE;
    if (replacement != NULL && replacement->bytes > 0)
        step.replacement = utf8_read(replacement->text, &length);
    if (replacement != NULL && replacement->bytes != length)
        return unsupported(value, where, "replacement", error);
    step.scheme = prefix ? PREPEND_ALWAYS : PREPEND_NEVER;
    if (locus_tree_is_text(scheme, "first"))
        step.scheme = PREPEND_FIRST;
    else if (locus_tree_is_text(scheme, "never"))
        step.scheme = PREPEND_NEVER;
    else if (scheme != NULL && !locus_tree_is_text(scheme, "always"))
        return unsupported(value, where, "prepend_scheme", error);
    return add_splitter(t, step, error);
}

static locus_status read_byte_level_step(locus_tokenizer *t, const json_value *value,
                                         locus_error *error)
{
    const char *where = "pre_tokenizer: ByteLevel";
    int prefix = 1, regex = 1;
    LOCUS_TRY(locus_tree_bool(value, where, "add_prefix_space", 1, &prefix, error));
    LOCUS_TRY(locus_tree_bool(value, where, "use_regex", 1, &regex, error));
    if (t->model.kind != MODEL_BPE)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "pre_tokenizer: found ByteLevel with a model that is not BPE, which this "
                          "reader does not support");
    if (prefix)
        LOCUS_TRY(add_splitter(t, (splitter){.kind = SPLIT_BYTE_LEVEL, .prefix = 1}, error));
    if (regex)
        LOCUS_TRY(add_splitter(t,
                               (splitter){.kind = SPLIT_PATTERN,
                                          .match = locus_match_gpt2,
                                          .behaviour = SPLIT_ISOLATED},
                               error));
    return locus_read_byte_level(t, &t->model, error);
}

/* The expressions of published files, as functions. */
static split_matcher known_pattern(const json_value *regex)
{
    static const struct {
        const char *text;
        split_matcher match;
    } patterns[] = {
        {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
         locus_match_gpt2},
        {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
         "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         locus_match_llama3},
        {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
         "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         locus_match_qwen2},
        {" ?[^(\\s|[.,!?\xE2\x80\xA6\xE3\x80\x82\xEF\xBC\x8C\xE3\x80\x81\xE0\xA5\xA4\xDB\x94"
         "\xD8\x8C])]+",
         locus_match_bloom},
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (locus_tree_is_text(regex, patterns[i].text)) return patterns[i].match;
    return NULL;
}

static locus_status read_split(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    const char *where = "pre_tokenizer: Split";
    const json_value *text = pattern_of(value, "String"), *regex = pattern_of(value, "Regex");
    splitter step = {.kind = SPLIT_STRING};
    char found[200];
    LOCUS_TRY(read_behaviour(value, &step.behaviour, error));
    LOCUS_TRY(locus_tree_bool(value, where, "invert", 0, &step.invert, error));
    if (text != NULL && text->bytes > 0) {
        LOCUS_TRY(locus_read_keep_value(t, text, &step.pattern, error));
        return add_splitter(t, step, error);
    }
    step.kind = SPLIT_PATTERN;
    step.match = known_pattern(regex);
    if (step.match != NULL) return add_splitter(t, step, error);
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "%s: pattern: found %s, which is an unsupported pattern", where,
                      locus_tree_describe(found, sizeof found, regex));
}

locus_status locus_read_json_splitter(locus_tokenizer *t, const json_value *value,
                                      locus_error *error)
{
    const json_value *type = locus_tree_get(value, "type");
    splitter step = {.kind = SPLIT_BERT};
    if (value == NULL || value->kind == LOCUS_JSON_NULL) return LOCUS_OK;
    if (locus_tree_is_text(type, "Sequence"))
        return read_sequence(t, value, "pretokenizers", locus_read_json_splitter, "pre_tokenizer",
                             error);
    if (t->model.byte_level)
        return locus_fail(
            error, LOCUS_ERR_FORMAT,
            "pre_tokenizer: found a step after ByteLevel, expected it to be the last");
    if (locus_tree_is_text(type, "BertPreTokenizer")) return add_splitter(t, step, error);
    if (locus_tree_is_text(type, "Metaspace")) return read_metaspace(t, value, error);
    if (locus_tree_is_text(type, "ByteLevel")) return read_byte_level_step(t, value, error);
    if (locus_tree_is_text(type, "Split")) return read_split(t, value, error);
    if (locus_tree_is_text(type, "WhitespaceSplit")) {
        step = (splitter){.kind = SPLIT_SPACE, .behaviour = SPLIT_REMOVED};
        return add_splitter(t, step, error);
    }
    if (locus_tree_is_text(type, "Digits")) {
        LOCUS_TRY(locus_tree_bool(value, "pre_tokenizer: Digits", "individual_digits", 0,
                                  &step.individual, error));
        step.kind = SPLIT_DIGITS;
        step.behaviour = step.individual ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
        return add_splitter(t, step, error);
    }
    if (locus_tree_is_text(type, "Punctuation")) {
        step = (splitter){.kind = SPLIT_PUNCTUATION, .behaviour = SPLIT_ISOLATED};
        if (locus_tree_get(value, "behavior") != NULL)
            LOCUS_TRY(read_behaviour(value, &step.behaviour, error));
        return add_splitter(t, step, error);
    }
    return unsupported(value, "pre_tokenizer", "type", error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The "normalizer" and the "pre_tokenizer" of tokenizer.json. What is not here is refused by its
 * name. */
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

static locus_status read_replace(locus_tokenizer *t, const json_value *value, normalizer *step,
                                 locus_error *error)
{
    const json_value *text = pattern_of(value, "String"), *expression = pattern_of(value, "Regex");
    const json_value *content = NULL;
    LOCUS_TRY(locus_tree_string(value, "normalizer", "content", &content, error));
    if (content == NULL) return unsupported(value, "normalizer: Replace", "content", error);
    LOCUS_TRY(locus_read_keep_value(t, content, &step->content, error));
    if (text != NULL && text->bytes > 0) {
        step->kind = NORMALIZE_REPLACE;
        return locus_read_keep_value(t, text, &step->pattern, error);
    }
    step->kind = NORMALIZE_REGEX;
    if (expression == NULL) return unsupported(value, "normalizer: Replace", "pattern", error);
    return locus_read_regex(t, expression->text, expression->bytes, &step->regex, error);
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
                 {"StripAccents", NORMALIZE_STRIP_ACCENTS, UNICODE_NFC},
                 {"ByteLevel", NORMALIZE_LETTERS, UNICODE_NFC},
                 {"Nmt", NORMALIZE_NMT, UNICODE_NFC}};
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
    int prefix = 1, splits = 1;
    LOCUS_TRY(locus_tree_bool(value, where, "add_prefix_space", 1, &prefix, error));
    LOCUS_TRY(locus_tree_bool(value, where, "use_regex", 1, &splits, error));
    if (prefix) LOCUS_TRY(add_splitter(t, (splitter){.kind = SPLIT_PREFIX}, error));
    if (splits) {
        splitter step = {.kind = SPLIT_REGEX, .behaviour = SPLIT_ISOLATED};
        LOCUS_TRY(locus_read_regex(t, locus_gpt2_expression, strlen(locus_gpt2_expression),
                                   &step.regex, error));
        LOCUS_TRY(add_splitter(t, step, error));
    }
    return add_splitter(t, (splitter){.kind = SPLIT_LETTERS}, error);
}

static locus_status read_split(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    const char *where = "pre_tokenizer: Split";
    const json_value *text = pattern_of(value, "String"), *expression = pattern_of(value, "Regex");
    splitter step = {.kind = SPLIT_STRING};
    LOCUS_TRY(read_behaviour(value, &step.behaviour, error));
    LOCUS_TRY(locus_tree_bool(value, where, "invert", 0, &step.invert, error));
    if (text != NULL && text->bytes > 0) {
        LOCUS_TRY(locus_read_keep_value(t, text, &step.pattern, error));
        return add_splitter(t, step, error);
    }
    step.kind = SPLIT_REGEX;
    if (expression == NULL) return unsupported(value, where, "pattern", error);
    LOCUS_TRY(locus_read_regex(t, expression->text, expression->bytes, &step.regex, error));
    return add_splitter(t, step, error);
}

static locus_status read_delimiter(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    const char *where = "pre_tokenizer: CharDelimiterSplit";
    splitter step = {.kind = SPLIT_STRING, .behaviour = SPLIT_REMOVED};
    const json_value *text = NULL;
    LOCUS_TRY(locus_tree_string(value, where, "delimiter", &text, error));
    if (text == NULL || text->bytes == 0) return unsupported(value, where, "delimiter", error);
    LOCUS_TRY(locus_read_keep_value(t, text, &step.pattern, error));
    return add_splitter(t, step, error);
}

static locus_status read_fixed(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    uint64_t length = 0;
    LOCUS_TRY(locus_tree_unsigned(value, "pre_tokenizer: FixedLength", "length", 5, UINT32_MAX,
                                  &length, error));
    if (length == 0) return unsupported(value, "pre_tokenizer: FixedLength", "length", error);
    return add_splitter(t, (splitter){.kind = SPLIT_FIXED, .length = (uint32_t)length}, error);
}

static locus_status read_digits(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    splitter step = {.kind = SPLIT_DIGITS};
    LOCUS_TRY(locus_tree_bool(value, "pre_tokenizer: Digits", "individual_digits", 0,
                              &step.individual, error));
    step.behaviour = step.individual ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
    return add_splitter(t, step, error);
}

static locus_status read_punctuation(locus_tokenizer *t, const json_value *value,
                                     locus_error *error)
{
    splitter step = {.kind = SPLIT_PUNCTUATION, .behaviour = SPLIT_ISOLATED};
    if (locus_tree_get(value, "behavior") != NULL)
        LOCUS_TRY(read_behaviour(value, &step.behaviour, error));
    return add_splitter(t, step, error);
}

static locus_status read_bert_split(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    (void)value;
    return add_splitter(t, (splitter){.kind = SPLIT_BERT}, error);
}

static locus_status read_space_split(locus_tokenizer *t, const json_value *value,
                                     locus_error *error)
{
    (void)value;
    return add_splitter(t, (splitter){.kind = SPLIT_SPACE, .behaviour = SPLIT_REMOVED}, error);
}

static locus_status read_words(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    (void)value;
    return add_splitter(t, (splitter){.kind = SPLIT_WORDS}, error);
}

locus_status locus_read_json_splitter(locus_tokenizer *t, const json_value *value,
                                      locus_error *error)
{
    static const struct {
        const char *type;
        locus_status (*read)(locus_tokenizer *, const json_value *, locus_error *);
    } kinds[] = {{"BertPreTokenizer", read_bert_split},
                 {"Metaspace", read_metaspace},
                 {"ByteLevel", read_byte_level_step},
                 {"Split", read_split},
                 {"WhitespaceSplit", read_space_split},
                 {"Whitespace", read_words},
                 {"Digits", read_digits},
                 {"Punctuation", read_punctuation},
                 {"CharDelimiterSplit", read_delimiter},
                 {"FixedLength", read_fixed}};
    const json_value *type = locus_tree_get(value, "type");
    if (value == NULL || value->kind == LOCUS_JSON_NULL) return LOCUS_OK;
    if (locus_tree_is_text(type, "Sequence"))
        return read_sequence(t, value, "pretokenizers", locus_read_json_splitter, "pre_tokenizer",
                             error);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (locus_tree_is_text(type, kinds[i].type)) return kinds[i].read(t, value, error);
    return unsupported(value, "pre_tokenizer", "type", error);
}

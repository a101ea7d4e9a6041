/* SPDX-License-Identifier: Apache-2.0 */
/* The "post_processor" and the "decoder" of tokenizer.json. */
#include <string.h>

#include "core/error.h"
#include "text/read.h"

static locus_status unsupported(const json_value *value, const char *where, const char *key,
                                locus_error *error)
{
    char found[100];
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "%s: %s: found %s, which this reader does not support", where, key,
                      locus_tree_describe(found, sizeof found, locus_tree_get(value, key)));
}

/* ---- templates ---- */

static locus_status add_item(text_template *out, template_item item, locus_error *error)
{
    if (out->count == TEXT_MAX_TEMPLATE)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "post_processor: found a template of more than %d items",
                          TEXT_MAX_TEMPLATE);
    out->items[out->count++] = item;
    return LOCUS_OK;
}

/* The ids that a special token of the template stands for. */
static locus_status add_special(const json_value *specials, const json_value *name, uint32_t type,
                                text_template *out, locus_error *error)
{
    char found[100];
    const json_value *ids = NULL;
    if (name != NULL && name->kind == LOCUS_JSON_STRING && specials != NULL &&
        specials->kind == LOCUS_JSON_OBJECT)
        for (const json_value *v = specials->child; v != NULL; v = v->next)
            if (v->key_bytes == name->bytes && memcmp(v->key, name->text, name->bytes) == 0)
                ids = locus_tree_get(v, "ids");
    if (ids == NULL || ids->kind != LOCUS_JSON_ARRAY)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "post_processor: template: found %s, expected one of special_tokens",
                          locus_tree_describe(found, sizeof found, name));
    for (const json_value *v = ids->child; v != NULL; v = v->next) {
        if (v->kind != LOCUS_JSON_INTEGER || v->integer >= LOCUS_TEXT_MAX_VOCABULARY)
            return locus_fail(error, LOCUS_ERR_FORMAT,
                              "post_processor: special_tokens: found %s, expected an id",
                              locus_tree_describe(found, sizeof found, v));
        const template_item item = {.kind = ITEM_TOKEN, .id = (uint32_t)v->integer, .type = type};
        LOCUS_TRY(add_item(out, item, error));
    }
    return LOCUS_OK;
}

static locus_status read_items(const json_value *value, const char *key, text_template *out,
                               locus_error *error)
{
    const json_value *list = locus_tree_get(value, key);
    *out = (text_template){.count = 0};
    if (list == NULL || list->kind != LOCUS_JSON_ARRAY)
        return unsupported(value, "post_processor", key, error);
    for (const json_value *v = list->child; v != NULL; v = v->next) {
        const json_value *special = locus_tree_get(v, "SpecialToken"),
                         *part = locus_tree_get(v, "Sequence");
        const json_value *item = special != NULL ? special : part;
        uint64_t type = 0;
        LOCUS_TRY(locus_tree_unsigned(item, "post_processor", "type_id", 0, 255, &type, error));
        const json_value *name = locus_tree_get(item, "id");
        if (special != NULL) {
            LOCUS_TRY(add_special(locus_tree_get(value, "special_tokens"), name, (uint32_t)type,
                                  out, error));
            continue;
        }
        const int second = locus_tree_is_text(name, "B");
        if (!second && !locus_tree_is_text(name, "A"))
            return unsupported(value, "post_processor", key, error);
        LOCUS_TRY(add_item(
            out, (template_item){.kind = second ? ITEM_SECOND : ITEM_FIRST, .type = (uint32_t)type},
            error));
    }
    return LOCUS_OK;
}

/* ["[SEP]", 102] */
static locus_status read_named_id(const json_value *value, const char *key, uint32_t *id,
                                  locus_error *error)
{
    const json_value *pair = locus_tree_get(value, key);
    const json_value *number = pair != NULL && pair->kind == LOCUS_JSON_ARRAY && pair->count == 2
                                   ? pair->child->next
                                   : NULL;
    if (number == NULL || number->kind != LOCUS_JSON_INTEGER ||
        number->integer >= LOCUS_TEXT_MAX_VOCABULARY)
        return unsupported(value, "post_processor", key, error);
    *id = (uint32_t)number->integer;
    return LOCUS_OK;
}

static void fill(text_template *out, const template_item *items, size_t count)
{
    memcpy(out->items, items, count * sizeof *items);
    out->count = count;
}

/* [CLS] A [SEP], [CLS] A [SEP] B [SEP] */
static locus_status read_bert(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    uint32_t sep = 0, cls = 0;
    LOCUS_TRY(read_named_id(value, "sep", &sep, error));
    LOCUS_TRY(read_named_id(value, "cls", &cls, error));
    const template_item items[] = {{.kind = ITEM_TOKEN, .id = cls},
                                   {.kind = ITEM_FIRST},
                                   {.kind = ITEM_TOKEN, .id = sep},
                                   {.kind = ITEM_SECOND, .type = 1},
                                   {.kind = ITEM_TOKEN, .id = sep, .type = 1}};
    fill(&t->single, items, 3);
    fill(&t->pair, items, 5);
    return LOCUS_OK;
}

static locus_status read_trim(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    LOCUS_TRY(locus_tree_bool(value, "post_processor", "trim_offsets", 1, &t->trim_offsets, error));
    return locus_tree_bool(value, "post_processor", "add_prefix_space", 1, &t->trim_prefix, error);
}

/* <s> A </s>, <s> A </s> </s> B </s> */
static locus_status read_roberta(locus_tokenizer *t, const json_value *value, locus_error *error)
{
    uint32_t sep = 0, cls = 0;
    LOCUS_TRY(read_named_id(value, "sep", &sep, error));
    LOCUS_TRY(read_named_id(value, "cls", &cls, error));
    const template_item items[] = {
        {.kind = ITEM_TOKEN, .id = cls}, {.kind = ITEM_FIRST},  {.kind = ITEM_TOKEN, .id = sep},
        {.kind = ITEM_TOKEN, .id = sep}, {.kind = ITEM_SECOND}, {.kind = ITEM_TOKEN, .id = sep}};
    fill(&t->single, items, 3);
    fill(&t->pair, items, 6);
    return read_trim(t, value, error);
}

locus_status locus_read_json_processor(locus_tokenizer *t, const json_value *value,
                                       locus_error *error)
{
    const json_value *type = locus_tree_get(value, "type"),
                     *list = locus_tree_get(value, "processors");
    if (value == NULL || value->kind == LOCUS_JSON_NULL) return LOCUS_OK;
    if (t->single.count > 1 && !locus_tree_is_text(type, "ByteLevel"))
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "post_processor: found a second template, expected one");
    if (locus_tree_is_text(type, "TemplateProcessing")) {
        LOCUS_TRY(read_items(value, "single", &t->single, error));
        return read_items(value, "pair", &t->pair, error);
    }
    if (locus_tree_is_text(type, "BertProcessing")) return read_bert(t, value, error);
    if (locus_tree_is_text(type, "RobertaProcessing")) return read_roberta(t, value, error);
    if (locus_tree_is_text(type, "ByteLevel")) return read_trim(t, value, error);
    if (locus_tree_is_text(type, "Sequence") && list != NULL && list->kind == LOCUS_JSON_ARRAY) {
        for (const json_value *v = list->child; v != NULL; v = v->next)
            LOCUS_TRY(locus_read_json_processor(t, v, error));
        return LOCUS_OK;
    }
    return unsupported(value, "post_processor", "type", error);
}

/* ---- decoders ---- */

static locus_status read_text(locus_tokenizer *t, const json_value *value, const char *key,
                              const char *preset, text_string *out, locus_error *error)
{
    const json_value *text = NULL;
    LOCUS_TRY(locus_tree_string(value, "decoder", key, &text, error));
    if (text != NULL) return locus_read_keep_value(t, text, out, error);
    *out = (text_string){.text = preset, .bytes = (uint32_t)strlen(preset)};
    return LOCUS_OK;
}

static locus_status read_strip(locus_tokenizer *t, const json_value *value, decoder *step,
                               locus_error *error)
{
    uint64_t start = 0, stop = 0;
    step->kind = DECODE_STRIP;
    LOCUS_TRY(locus_tree_unsigned(value, "decoder: Strip", "start", 0, UINT32_MAX, &start, error));
    LOCUS_TRY(locus_tree_unsigned(value, "decoder: Strip", "stop", 0, UINT32_MAX, &stop, error));
    step->start = (uint32_t)start;
    step->stop = (uint32_t)stop;
    return read_text(t, value, "content", " ", &step->pattern, error);
}

static locus_status read_metaspace(locus_tokenizer *t, const json_value *value, decoder *step,
                                   locus_error *error)
{
    int prefix = 1;
    const json_value *scheme = locus_tree_get(value, "prepend_scheme");
    step->kind = DECODE_METASPACE;
    LOCUS_TRY(locus_tree_bool(value, "decoder", "add_prefix_space", 1, &prefix, error));
    step->scheme = prefix && !locus_tree_is_text(scheme, "never") ? PREPEND_ALWAYS : PREPEND_NEVER;
    return read_text(t, value, "replacement", TEXT_META, &step->pattern, error);
}

static locus_status read_replace(locus_tokenizer *t, const json_value *value, decoder *step,
                                 locus_error *error)
{
    const json_value *pattern = locus_tree_get(locus_tree_get(value, "pattern"), "String");
    const json_value *expression = locus_tree_get(locus_tree_get(value, "pattern"), "Regex");
    if (expression != NULL && expression->kind == LOCUS_JSON_STRING) {
        step->kind = DECODE_REGEX;
        LOCUS_TRY(locus_read_regex(t, expression->text, expression->bytes, &step->regex, error));
        return read_text(t, value, "content", "", &step->content, error);
    }
    step->kind = DECODE_REPLACE;
    if (pattern == NULL || pattern->kind != LOCUS_JSON_STRING || pattern->bytes == 0)
        return unsupported(value, "decoder: Replace", "pattern", error);
    LOCUS_TRY(locus_read_keep_value(t, pattern, &step->pattern, error));
    return read_text(t, value, "content", "", &step->content, error);
}

static locus_status read_ctc(locus_tokenizer *t, const json_value *value, decoder *step,
                             locus_error *error)
{
    step->kind = DECODE_CTC;
    LOCUS_TRY(locus_tree_bool(value, "decoder", "cleanup", 1, &step->cleanup, error));
    LOCUS_TRY(read_text(t, value, "pad_token", "<pad>", &step->pattern, error));
    return read_text(t, value, "word_delimiter_token", "|", &step->content, error);
}

locus_status locus_read_json_decoder(locus_tokenizer *t, const json_value *value,
                                     locus_error *error)
{
    const json_value *type = locus_tree_get(value, "type"),
                     *list = locus_tree_get(value, "decoders");
    if (value == NULL || value->kind == LOCUS_JSON_NULL) return LOCUS_OK;
    if (locus_tree_is_text(type, "Sequence") && list != NULL && list->kind == LOCUS_JSON_ARRAY) {
        for (const json_value *v = list->child; v != NULL; v = v->next)
            LOCUS_TRY(locus_read_json_decoder(t, v, error));
        return LOCUS_OK;
    }
    if (t->decoder_count == TEXT_MAX_STEPS)
        return locus_fail(error, LOCUS_ERR_FORMAT, "decoder: found more than %d steps",
                          TEXT_MAX_STEPS);
    decoder *step = t->decoders + t->decoder_count++;
    if (locus_tree_is_text(type, "WordPiece")) {
        step->kind = DECODE_WORDPIECE;
        LOCUS_TRY(locus_tree_bool(value, "decoder", "cleanup", 1, &step->cleanup, error));
        return read_text(t, value, "prefix", "##", &step->pattern, error);
    }
    if (locus_tree_is_text(type, "Metaspace")) return read_metaspace(t, value, step, error);
    if (locus_tree_is_text(type, "Strip")) return read_strip(t, value, step, error);
    if (locus_tree_is_text(type, "Replace")) return read_replace(t, value, step, error);
    if (locus_tree_is_text(type, "CTC")) return read_ctc(t, value, step, error);
    if (locus_tree_is_text(type, "ByteLevel")) {
        step->kind = DECODE_BYTE_LEVEL;
        return LOCUS_OK;
    }
    if (locus_tree_is_text(type, "ByteFallback")) {
        step->kind = DECODE_BYTE_FALLBACK;
        return LOCUS_OK;
    }
    if (locus_tree_is_text(type, "Fuse")) {
        step->kind = DECODE_FUSE;
        return LOCUS_OK;
    }
    if (locus_tree_is_text(type, "BPEDecoder")) {
        step->kind = DECODE_BPE_SUFFIX;
        return read_text(t, value, "suffix", "</w>", &step->pattern, error);
    }
    return unsupported(value, "decoder", "type", error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the fast classes of transformers (4.57.6) change in a tokenizer.json when they find a
 * configuration beside it: the case of BERT's normalizer, the space in front, added and special
 * tokens, the template. Transformers 5 writes `backend` into the configuration, and its own
 * tokenizer.json has the space and the template already. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/class_rules.h"

static locus_status option(const read_files *f, const char *key, int preset, int *value)
{
    return locus_tree_bool(f->tokenizer_config.root, "tokenizer_config.json", key, preset, value,
                           f->error);
}

/* ---- normalizer, space in front ---- */

static locus_status change_case(const read_files *f, const json_value *root)
{
    normalizer *step = f->t->normalizers;
    if (!locus_tree_is_text(locus_tree_get(locus_tree_get(root, "normalizer"), "type"),
                            "BertNormalizer"))
        return LOCUS_OK;
    LOCUS_TRY(option(f, "do_lower_case", 1, &step->lower));
    LOCUS_TRY(option(f, "tokenize_chinese_chars", 1, &step->chinese));
    return option(f, "strip_accents", step->lower, &step->accents);
}

/* 1: transformers 5 wrote the folder. */
static int is_complete(const read_files *f)
{
    return locus_tree_get(f->tokenizer_config.root, "backend") != NULL;
}

/* ByteLevel as the only step gets the space that the configuration asks for. */
static locus_status change_prefix(const read_files *f, const json_value *root)
{
    locus_tokenizer *t = f->t;
    int prefix = 0;
    if (is_complete(f)) return LOCUS_OK;
    if (!locus_tree_is_text(locus_tree_get(locus_tree_get(root, "pre_tokenizer"), "type"),
                            "ByteLevel"))
        return LOCUS_OK;
    LOCUS_TRY(option(f, "add_prefix_space", 0, &prefix));
    const int there = t->splitter_count > 0 && t->splitters[0].kind == SPLIT_PREFIX;
    if (prefix == there) return LOCUS_OK;
    if (prefix) {
        memmove(t->splitters + 1, t->splitters, t->splitter_count * sizeof *t->splitters);
        t->splitters[0] = (splitter){.kind = SPLIT_PREFIX};
        t->splitter_count++;
    } else {
        t->splitter_count--;
        memmove(t->splitters, t->splitters + 1, t->splitter_count * sizeof *t->splitters);
    }
    return LOCUS_OK;
}

/* ---- added tokens ---- */

static added_token *find_added(const locus_tokenizer *t, const char *text, size_t bytes)
{
    for (size_t i = 0; i < t->added_count; i++)
        if (t->added[i].content.bytes == bytes &&
            memcmp(t->added[i].content.text, text, bytes) == 0)
            return t->added + i;
    return NULL;
}

/* As `tokenizers` adds one: with the id it has, that of the model, or the next. */
static locus_status add(const read_files *f, const char *text, size_t bytes, added_token token)
{
    locus_tokenizer *t = f->t;
    const added_token *known = find_added(t, text, bytes);
    uint32_t id = known != NULL ? known->id : locus_trie_find(&t->model.index, text, bytes);
    if (bytes == 0) return LOCUS_OK;
    if (id == TRIE_NONE) {
        id = (uint32_t)t->model.piece_count;
        for (size_t i = 0; i < t->added_count; i++)
            if (t->added[i].id >= id) id = t->added[i].id + 1;
    }
    token.id = id;
    token.content = locus_read_keep(t, text, bytes, f->error);
    if (token.content.text == NULL) return LOCUS_ERR_MEMORY;
    return locus_read_added(t, token, f->error);
}

static int by_id(const void *a, const void *b)
{
    const json_value *x = *(const json_value *const *)a, *y = *(const json_value *const *)b;
    const unsigned long i = strtoul(x->key, NULL, 10), k = strtoul(y->key, NULL, 10);
    return i < k ? -1 : i > k;
}

static int by_number(const void *a, const void *b)
{
    const json_value *x = *(const json_value *const *)a, *y = *(const json_value *const *)b;
    return x->integer < y->integer ? -1 : x->integer > y->integer;
}

static locus_status sorted_members(const read_files *f, const json_value *object,
                                   int (*order)(const void *, const void *),
                                   const json_value ***list)
{
    size_t count = 0;
    *list = locus_allocate(f->t->allocator, object->count + 1, sizeof **list);
    if (*list == NULL) return locus_text_no_memory(f->error);
    for (const json_value *v = object->child; v != NULL; v = v->next) (*list)[count++] = v;
    qsort(*list, count, sizeof **list, order);
    return LOCUS_OK;
}

/* added_tokens_decoder: what it says of a token holds, its id does not. */
static locus_status add_known(const read_files *f, const json_value *known)
{
    const json_value **list = NULL;
    LOCUS_TRY(locus_read_added_reserve(f->t, known->count, f->error));
    LOCUS_TRY(sorted_members(f, known, by_id, &list));
    locus_status status = LOCUS_OK;
    for (size_t i = 0; i < known->count && status == LOCUS_OK; i++) {
        const json_value *content = NULL;
        added_token token = {.id = 0};
        if (list[i]->kind != LOCUS_JSON_OBJECT || !locus_class_token_text(list[i], &content))
            continue;
        status = locus_read_added_flags(list[i], &token, f->error);
        if (status == LOCUS_OK) status = add(f, content->text, content->bytes, token);
    }
    locus_release(f->t->allocator, list);
    return status;
}

/* added_tokens.json: those whose ids tokenizer.json does not have. */
static locus_status add_listed(const read_files *f, const json_value *listed)
{
    const json_value **list = NULL;
    LOCUS_TRY(locus_read_added_reserve(f->t, listed->count, f->error));
    LOCUS_TRY(sorted_members(f, listed, by_number, &list));
    locus_status status = LOCUS_OK;
    for (size_t i = 0; i < listed->count && status == LOCUS_OK; i++) {
        int there = list[i]->kind != LOCUS_JSON_INTEGER;
        for (size_t k = 0; k < f->t->added_count; k++)
            there = there || f->t->added[k].id == list[i]->integer;
        if (!there)
            status = add(f, list[i]->key, list[i]->key_bytes, (added_token){.normalized = 1});
    }
    locus_release(f->t->allocator, list);
    return status;
}

/* A token that plays a part and is not there yet. */
static locus_status add_special(const read_files *f, const json_value *value, int lstrip)
{
    const json_value *content = NULL;
    added_token token = {.special = 1, .lstrip = (uint8_t)lstrip};
    if (!locus_class_token_text(value, &content)) return LOCUS_OK;
    if (find_added(f->t, content->text, content->bytes) != NULL) return LOCUS_OK;
    if (value->kind == LOCUS_JSON_OBJECT)
        LOCUS_TRY(locus_read_added_flags(value, &token, f->error));
    token.special = 1;
    return add(f, content->text, content->bytes, token);
}

static locus_status add_parts(const read_files *f, const class_rules *rules)
{
    LOCUS_TRY(locus_read_added_reserve(f->t, PART_COUNT, f->error));
    for (size_t i = 0; i < PART_COUNT; i++) {
        const json_value *value = locus_class_part(f, i);
        const char *preset = rules == NULL || value != NULL ? NULL : rules->parts[i];
        const int lstrip = rules != NULL && rules->mask_lstrip && i == PART_MASK;
        if (value != NULL) LOCUS_TRY(add_special(f, value, lstrip));
        if (preset == NULL || find_added(f->t, preset, strlen(preset)) != NULL) continue;
        const added_token token = {.special = 1, .lstrip = (uint8_t)lstrip};
        LOCUS_TRY(add(f, preset, strlen(preset), token));
    }
    return LOCUS_OK;
}

static locus_status add_additional(const read_files *f, int has_known)
{
    static const char key[] = "additional_special_tokens";
    const json_value *list = has_known ? NULL : locus_tree_get(f->special_tokens_map.root, key);
    if (list == NULL) list = locus_tree_get(f->tokenizer_config.root, key);
    if (list == NULL || list->kind != LOCUS_JSON_ARRAY) return LOCUS_OK;
    LOCUS_TRY(locus_read_added_reserve(f->t, list->count, f->error));
    for (const json_value *v = list->child; v != NULL; v = v->next) LOCUS_TRY(add_special(f, v, 0));
    return LOCUS_OK;
}

static locus_status change_added(const read_files *f, const class_rules *rules)
{
    const json_value *known = locus_tree_get(f->tokenizer_config.root, "added_tokens_decoder");
    const json_value *listed = f->added_tokens.root;
    const int has_known = known != NULL && known->kind == LOCUS_JSON_OBJECT;
    if (has_known) LOCUS_TRY(add_known(f, known));
    if (!has_known && listed != NULL && listed->kind == LOCUS_JSON_OBJECT)
        LOCUS_TRY(add_listed(f, listed));
    LOCUS_TRY(add_parts(f, rules));
    return add_additional(f, has_known);
}

/* ---- templates ---- */

/* The id of a special token, by the configuration or the class. */
static locus_status id_of_part(const read_files *f, const class_rules *rules, size_t part,
                               uint32_t *id)
{
    const json_value *value = locus_class_part(f, part), *content = NULL;
    const char *text = rules->parts[part];
    size_t bytes = text == NULL ? 0 : strlen(text);
    if (value != NULL && locus_class_token_text(value, &content)) {
        text = content->text;
        bytes = content->bytes;
    }
    const added_token *known = text == NULL ? NULL : find_added(f->t, text, bytes);
    if (known == NULL)
        return locus_fail(f->error, LOCUS_ERR_FORMAT, "%s_token: found none, expected one for %s",
                          locus_text_part_names[part], rules->name);
    *id = known->id;
    return LOCUS_OK;
}

static void put(text_template *out, uint8_t kind, uint32_t id, uint32_t type)
{
    out->items[out->count++] = (template_item){.kind = kind, .id = id, .type = type};
}

static locus_status change_ends(const read_files *f, const class_rules *rules)
{
    const json_value *config = f->tokenizer_config.root;
    int ends[2] = {!is_complete(f) && strcmp(rules->name, "GPTNeoXTokenizer") != 0, 0};
    uint32_t id[2] = {0, 0};
    if (is_complete(f) && locus_tree_get(config, "add_bos_token") == NULL &&
        locus_tree_get(config, "add_eos_token") == NULL)
        return LOCUS_OK;
    LOCUS_TRY(option(f, "add_bos_token", ends[0], &ends[0]));
    LOCUS_TRY(option(f, "add_eos_token", ends[1], &ends[1]));
    for (size_t i = 0; i < 2; i++)
        if (ends[i]) LOCUS_TRY(id_of_part(f, rules, i == 0 ? PART_BOS : PART_EOS, &id[i]));
    f->t->single = f->t->pair = (text_template){.count = 0};
    for (uint8_t segment = 0; segment < 2; segment++) {
        if (ends[0]) put(&f->t->pair, ITEM_TOKEN, id[0], segment);
        put(&f->t->pair, segment == 0 ? ITEM_FIRST : ITEM_SECOND, 0, segment);
        if (ends[1]) put(&f->t->pair, ITEM_TOKEN, id[1], segment);
        if (segment == 0) f->t->single = f->t->pair;
    }
    return LOCUS_OK;
}

/* MBart: text, end, language. MBart-50, NLLB: language, text, end. */
static locus_status change_language(const read_files *f, const class_rules *rules)
{
    const int nllb = strcmp(rules->name, "NllbTokenizer") == 0;
    const char *name = nllb ? "eng_Latn" : "en_XX";
    const json_value *given = NULL;
    int behind = strcmp(rules->name, "MBartTokenizer") == 0;
    uint32_t end = 0;
    if (nllb) LOCUS_TRY(option(f, "legacy_behaviour", 0, &behind));
    LOCUS_TRY(locus_tree_string(f->tokenizer_config.root, "tokenizer_config.json", "src_lang",
                                &given, f->error));
    if (given != NULL) name = given->text;
    const added_token *language = find_added(f->t, name, strlen(name));
    if (language == NULL)
        return locus_fail(f->error, LOCUS_ERR_FORMAT, "src_lang: found no token for a language");
    LOCUS_TRY(id_of_part(f, rules, PART_EOS, &end));
    for (int pair = 0; pair < 2; pair++) {
        text_template *out = pair ? &f->t->pair : &f->t->single;
        out->count = 0;
        if (!behind) put(out, ITEM_TOKEN, language->id, 0);
        put(out, ITEM_FIRST, 0, 0);
        if (pair) put(out, ITEM_SECOND, 0, 0);
        put(out, ITEM_TOKEN, end, 0);
        if (behind) put(out, ITEM_TOKEN, language->id, 0);
    }
    return LOCUS_OK;
}

/* ---- all ---- */

locus_status locus_read_fast_changes(const read_files *f, const json_value *root)
{
    const json_value *named = NULL;
    const class_rules *rules = locus_class_rules_of(f, &named);
    if (named == NULL) return LOCUS_OK; /* transformers has no class for it, either */
    if (rules != NULL && rules->files == FILES_REFUSED)
        return locus_fail(f->error, LOCUS_ERR_FORMAT,
                          "%s: found a class that does not read tokenizer.json alone, which this "
                          "reader does not support",
                          named->text);
    LOCUS_TRY(change_prefix(f, root));
    LOCUS_TRY(change_added(f, rules));
    if (rules == NULL) return LOCUS_OK;
    switch (rules->change) {
    case CHANGE_CASE: return change_case(f, root);
    case CHANGE_ENDS: return change_ends(f, rules);
    case CHANGE_LANGUAGE: return change_language(f, rules);
    default: return LOCUS_OK;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "text/class_rules.h"

#include <string.h>

#include "core/error.h"

/* clang-format off */
#define BERT_PARTS    {NULL, NULL, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"}
#define DEBERTA_PARTS {"[CLS]", "[SEP]", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"}
#define ROBERTA_PARTS {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"}
#define T5_PARTS      {NULL, "</s>", "<unk>", NULL, "<pad>", NULL, NULL}
static const class_rules classes[] = {
    {"BertTokenizer", FILES_WORDPIECE, BERT_PARTS, "c A s", "c A s B:1 s:1", 0, 1, 0},
    {"ElectraTokenizer", FILES_WORDPIECE, BERT_PARTS, "c A s", "c A s B:1 s:1", 0, 1, 0},
    {"DistilBertTokenizer", FILES_WORDPIECE, BERT_PARTS, "c A s", "c A s B:1 s:1", 0, 0, 0},
    {"MPNetTokenizer", FILES_WORDPIECE,
     {"<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>"}, "c A s", "c A s s B:1 s:1", 1, 0, 0},
    {"RoFormerTokenizer", FILES_REFUSED, BERT_PARTS, "c A s", "c A s B:1 s:1", 0, 1, 0},
    {"GPT2Tokenizer", FILES_BYTE_BPE,
     {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>"}, "A", "A B:1", 0, 0, 0},
    {"RobertaTokenizer", FILES_BYTE_BPE, ROBERTA_PARTS, "c A s", "c A s s B s", 1, 0, 0},
    {"DebertaTokenizer", FILES_BYTE_BPE, DEBERTA_PARTS, "c A s", "c A s B:1 s:1", 1, 1, 0},
    {"BloomTokenizer", FILES_JSON, {NULL}, "A", "A B:1", 0, 0, 0},
    {"GPTNeoXTokenizer", FILES_JSON, {NULL}, "A", "A B:1", 0, 0, 0},
    {"T5Tokenizer", FILES_SENTENCEPIECE, T5_PARTS, "A e!", "A e! B e!", 0, 0, 0},
    {"ByT5Tokenizer", FILES_BYTES, T5_PARTS, "A e!", "A e! B e!", 0, 0, 1},
    {"AlbertTokenizer", FILES_SENTENCEPIECE,
     {"[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"}, "c A s", "c A s B:1 s:1", 1, 1, 0},
    {"XLNetTokenizer", FILES_SENTENCEPIECE,
     {"<s>", "</s>", "<unk>", "<sep>", "<pad>", "<cls>", "<mask>"}, "A s c:2", "A s B:1 s:1 c:2", 1, 1, 0},
    {"DebertaV2Tokenizer", FILES_SENTENCEPIECE, DEBERTA_PARTS, "c A s", "c A s B:1 s:1", 0, 1, 0},
    {"XLMRobertaTokenizer", FILES_SENTENCEPIECE, ROBERTA_PARTS, "c A s", "c A s s B s", 1, 0, 0},
    {"LlamaTokenizer", FILES_SENTENCEPIECE, {"<s>", "</s>", "<unk>"}, "b A", "b A b B", 0, 0, 0},
    {"MarianTokenizer", FILES_MARIAN, T5_PARTS, "A e", "A B e", 0, 0, 0},
};

static const struct {
    const char *model_type, *class;
} families[] = {
    {"bert", "BertTokenizer"}, {"electra", "ElectraTokenizer"}, {"distilbert", "DistilBertTokenizer"},
    {"mpnet", "MPNetTokenizer"}, {"roformer", "RoFormerTokenizer"}, {"gpt2", "GPT2Tokenizer"},
    {"opt", "GPT2Tokenizer"}, {"roberta", "RobertaTokenizer"}, {"deberta", "DebertaTokenizer"},
    {"bloom", "BloomTokenizer"}, {"mpt", "GPTNeoXTokenizer"}, {"t5", "T5Tokenizer"},
    {"mt5", "T5Tokenizer"}, {"umt5", "T5Tokenizer"}, {"albert", "AlbertTokenizer"},
    {"xlnet", "XLNetTokenizer"}, {"deberta-v2", "DebertaV2Tokenizer"},
    {"xlm-roberta", "XLMRobertaTokenizer"}, {"llama", "LlamaTokenizer"}, {"marian", "MarianTokenizer"},
};
/* clang-format on */

static int same(const char *name, const char *text, size_t bytes)
{
    return strlen(name) == bytes && memcmp(name, text, bytes) == 0;
}

const class_rules *locus_class_rules_find(const char *name, size_t bytes)
{
    if (bytes > 4 && memcmp(name + bytes - 4, "Fast", 4) == 0) bytes -= 4;
    if (same("MT5Tokenizer", name, bytes)) return locus_class_rules_find("T5Tokenizer", 11);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (same(classes[i].name, name, bytes)) return classes + i;
    return NULL;
}

const class_rules *locus_class_rules_of_model(const char *model_type, size_t bytes)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (same(families[i].model_type, model_type, bytes))
            return locus_class_rules_find(families[i].class, strlen(families[i].class));
    return NULL;
}

const class_rules *locus_class_rules_of(const read_files *f, const json_value **named)
{
    const json_value *class = locus_tree_get(f->tokenizer_config.root, "tokenizer_class");
    const json_value *family = locus_tree_get(f->config.root, "model_type");
    const int generic = locus_tree_is_text(class, "PreTrainedTokenizerFast") ||
                        locus_tree_is_text(class, "PreTrainedTokenizer");
    *named = class != NULL && !generic ? class : family;
    if (class != NULL && class->kind == LOCUS_JSON_STRING && !generic)
        return locus_class_rules_find(class->text, class->bytes);
    if (family != NULL && family->kind == LOCUS_JSON_STRING)
        return locus_class_rules_of_model(family->text, family->bytes);
    return NULL;
}

/* ---- templates ---- */

static size_t part_of(char letter)
{
    for (size_t i = 0; i < PART_COUNT; i++)
        if (locus_text_part_names[i][0] == letter) return i;
    return PART_COUNT;
}

locus_status locus_class_template(const locus_tokenizer *t, const char *text, text_template *out,
                                  locus_error *error)
{
    *out = (text_template){.count = 0};
    for (; *text != '\0'; text++) {
        if (*text == ' ') continue;
        template_item item = {.kind = *text == 'A' ? ITEM_FIRST : ITEM_SECOND};
        if (*text != 'A' && *text != 'B') {
            const size_t part = part_of(*text);
            if (part == PART_COUNT || t->part[part] == TEXT_NO_ID)
                return locus_fail(error, LOCUS_ERR_FORMAT,
                                  "special tokens: found no %s token, expected one",
                                  part == PART_COUNT ? "such" : locus_text_part_names[part]);
            item = (template_item){.kind = ITEM_TOKEN, .id = t->part[part]};
        }
        if (text[1] == '!') item.unless_last = 1, text++;
        if (text[1] == ':') item.type = (uint32_t)(text[2] - '0'), text += 2;
        out->items[out->count++] = item;
    }
    return LOCUS_OK;
}

/* ---- special and added tokens ---- */

/* The value of "mask_token" and the like; the special tokens map goes first, unless the
 * configuration lists added tokens itself. */
static const json_value *part_value(const read_files *f, size_t part)
{
    char key[16];
    const size_t bytes = strlen(locus_text_part_names[part]);
    memcpy(key, locus_text_part_names[part], bytes);
    memcpy(key + bytes, "_token", 7);
    const int listed = locus_tree_get(f->tokenizer_config.root, "added_tokens_decoder") != NULL;
    const json_value *mapped = listed ? NULL : locus_tree_get(f->special_tokens_map.root, key);
    return mapped != NULL ? mapped : locus_tree_get(f->tokenizer_config.root, key);
}

/* A token that is written as a string or as {"content": ...}; 0: it is neither. */
static int token_text(const json_value *value, const json_value **content)
{
    *content = value != NULL && value->kind == LOCUS_JSON_OBJECT ? locus_tree_get(value, "content")
                                                                 : value;
    return *content != NULL && (*content)->kind == LOCUS_JSON_STRING && (*content)->bytes > 0;
}

typedef struct adder {
    const read_files *f;
    const class_rules *rules;
    uint32_t (*find)(const locus_tokenizer *t, const char *text, size_t bytes);
    uint32_t next; /* free id */
} adder;

static uint32_t find_added(const locus_tokenizer *t, const char *text, size_t bytes)
{
    for (size_t i = 0; i < t->added_count; i++)
        if (t->added[i].content.bytes == bytes &&
            memcmp(t->added[i].content.text, text, bytes) == 0)
            return t->added[i].id;
    return TEXT_NO_ID;
}

static locus_status add(adder *a, const char *text, size_t bytes, uint32_t id, added_token flags)
{
    locus_tokenizer *t = a->f->t;
    flags.content = locus_read_keep(t, text, bytes, a->f->error);
    if (flags.content.text == NULL) return LOCUS_ERR_MEMORY;
    flags.id = id;
    flags.normalized = 0; /* classes look for all of them in the text as it is */
    if (id >= a->next) a->next = id + 1;
    return locus_read_added(t, flags, a->f->error);
}

/* The id of a token of the class, a new one if it is not in the vocabulary. */
static locus_status add_token(adder *a, const char *text, size_t bytes, added_token flags,
                              uint32_t *id)
{
    *id = find_added(a->f->t, text, bytes);
    if (*id != TEXT_NO_ID) return LOCUS_OK;
    *id = a->find(a->f->t, text, bytes);
    if (*id == TEXT_NO_ID) *id = a->next;
    return add(a, text, bytes, *id, flags);
}

static locus_status add_part(adder *a, size_t part)
{
    const json_value *value = part_value(a->f, part), *content = NULL;
    const char *preset = a->rules->parts[part];
    added_token flags = {.special = 1,
                         .lstrip = (uint8_t)(part == PART_MASK && a->rules->mask_lstrip)};
    if (a->rules->strips) flags.lstrip = flags.rstrip = 1;
    if (value != NULL && value->kind == LOCUS_JSON_NULL) return LOCUS_OK;
    if (value == NULL && preset == NULL) return LOCUS_OK;
    if (value == NULL) return add_token(a, preset, strlen(preset), flags, &a->f->t->part[part]);
    if (!token_text(value, &content))
        return locus_fail(a->f->error, LOCUS_ERR_FORMAT,
                          "%s_token: found something else than a token",
                          locus_text_part_names[part]);
    if (value->kind == LOCUS_JSON_OBJECT)
        LOCUS_TRY(locus_read_added_flags(value, &flags, a->f->error));
    flags.special = 1;
    return add_token(a, content->text, content->bytes, flags, &a->f->t->part[part]);
}

/* {"128000": {"content": "[MASK]", ...}} */
static locus_status add_decoder(adder *a, const json_value *list)
{
    for (const json_value *v = list->child; v != NULL; v = v->next) {
        const json_value *content = NULL;
        added_token flags = {.id = 0};
        uint64_t id = 0;
        for (size_t i = 0; i < v->key_bytes && i < 9; i++)
            id = v->key[i] >= '0' && v->key[i] <= '9' ? 10 * id + (uint64_t)(v->key[i] - '0')
                                                      : LOCUS_TEXT_MAX_VOCABULARY;
        if (id >= LOCUS_TEXT_MAX_VOCABULARY || !token_text(v, &content) ||
            v->kind != LOCUS_JSON_OBJECT)
            return locus_fail(a->f->error, LOCUS_ERR_FORMAT,
                              "added_tokens_decoder: found \"%.20s\", expected an id and a token",
                              v->key);
        LOCUS_TRY(locus_read_added_flags(v, &flags, a->f->error));
        LOCUS_TRY(add(a, content->text, content->bytes, (uint32_t)id, flags));
    }
    return LOCUS_OK;
}

/* added_tokens.json: {"[MASK]": 128000} */
static locus_status add_listed(adder *a, const json_value *list)
{
    for (const json_value *v = list->child; v != NULL; v = v->next) {
        if (v->kind != LOCUS_JSON_INTEGER || v->integer >= LOCUS_TEXT_MAX_VOCABULARY ||
            v->key_bytes == 0)
            return locus_fail(a->f->error, LOCUS_ERR_FORMAT,
                              "added_tokens.json: found \"%.60s\", expected a token and its id",
                              v->key);
        LOCUS_TRY(add(a, v->key, v->key_bytes, (uint32_t)v->integer, (added_token){.special = 0}));
    }
    return LOCUS_OK;
}

static locus_status add_additional(adder *a)
{
    const json_value *list =
        locus_tree_get(a->f->special_tokens_map.root, "additional_special_tokens");
    if (list == NULL)
        list = locus_tree_get(a->f->tokenizer_config.root, "additional_special_tokens");
    if (list == NULL && strcmp(a->rules->name, "XLNetTokenizer") == 0) {
        uint32_t id = 0;
        LOCUS_TRY(locus_read_added_reserve(a->f->t, 2, a->f->error));
        LOCUS_TRY(add_token(a, "<eop>", 5, (added_token){.special = 1}, &id));
        return add_token(a, "<eod>", 5, (added_token){.special = 1}, &id);
    }
    if (list == NULL || list->kind != LOCUS_JSON_ARRAY) return LOCUS_OK;
    LOCUS_TRY(locus_read_added_reserve(a->f->t, list->count, a->f->error));
    for (const json_value *v = list->child; v != NULL; v = v->next) {
        const json_value *content = NULL;
        added_token flags = {.special = 1};
        uint32_t id = 0;
        if (!token_text(v, &content)) continue;
        if (v->kind == LOCUS_JSON_OBJECT) LOCUS_TRY(locus_read_added_flags(v, &flags, a->f->error));
        flags.special = 1;
        LOCUS_TRY(add_token(a, content->text, content->bytes, flags, &id));
    }
    return LOCUS_OK;
}

locus_status
locus_class_added(const read_files *f, const class_rules *rules,
                  uint32_t (*find)(const locus_tokenizer *t, const char *text, size_t bytes),
                  size_t vocabulary)
{
    adder a = {.f = f, .rules = rules, .find = find, .next = (uint32_t)vocabulary};
    const json_value *known = locus_tree_get(f->tokenizer_config.root, "added_tokens_decoder");
    const json_value *listed = f->added_tokens.root;
    for (size_t i = 0; i < f->t->added_count; i++)
        if (f->t->added[i].id >= a.next) a.next = f->t->added[i].id + 1;
    const int has_known = known != NULL && known->kind == LOCUS_JSON_OBJECT;
    const int has_list = !has_known && listed != NULL && listed->kind == LOCUS_JSON_OBJECT;
    LOCUS_TRY(locus_read_added_reserve(
        f->t, PART_COUNT + (has_known ? known->count : 0) + (has_list ? listed->count : 0),
        f->error));
    if (has_known) LOCUS_TRY(add_decoder(&a, known));
    if (has_list) LOCUS_TRY(add_listed(&a, listed));
    for (size_t i = 0; i < PART_COUNT; i++) LOCUS_TRY(add_part(&a, i));
    return add_additional(&a);
}

/* ---- after tokenizer.json ---- */

/* Names that published vocabularies use for a part. */
static const char *const usual_names[PART_COUNT][3] = {
    [PART_BOS] = {"<s>", "<|begin_of_text|>", NULL}, [PART_EOS] = {"</s>", "<|endoftext|>", NULL},
    [PART_UNK] = {"[UNK]", "<unk>", NULL},           [PART_SEP] = {"[SEP]", "</s>", NULL},
    [PART_PAD] = {"[PAD]", "<pad>", NULL},           [PART_CLS] = {"[CLS]", "<s>", NULL},
    [PART_MASK] = {"[MASK]", "<mask>", NULL},
};

static uint32_t find_part(const read_files *f, size_t part)
{
    const json_value *value = part_value(f, part), *content = NULL;
    if (value != NULL) {
        if (!token_text(value, &content)) return TEXT_NO_ID;
        return locus_trie_find(&f->t->token_index, content->text, content->bytes);
    }
    for (size_t i = 0; usual_names[part][i] != NULL; i++) {
        const char *name = usual_names[part][i];
        const uint32_t id = locus_trie_find(&f->t->token_index, name, strlen(name));
        if (id != TRIE_NONE) return id;
    }
    return TEXT_NO_ID;
}

locus_status locus_read_parts(const read_files *f)
{
    locus_tokenizer *t = f->t;
    const json_value *named = NULL;
    const class_rules *rules = locus_class_rules_of(f, &named);
    for (size_t i = 0; i < PART_COUNT; i++) t->part[i] = find_part(f, i);
    if (rules != NULL) {
        t->has_types = rules->has_types;
    } else {
        for (size_t i = 0; i < t->pair.count; i++)
            if (t->pair.items[i].type != 0) t->has_types = 1;
    }
    return locus_tree_bool(f->tokenizer_config.root, "tokenizer_config.json",
                           "clean_up_tokenization_spaces", 0, &t->clean_up_spaces, f->error);
}

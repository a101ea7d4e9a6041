/* SPDX-License-Identifier: Apache-2.0 */
#include "text/class_rules.h"

#include <string.h>

#include "core/error.h"
#include "io/tensorfile.h"

/* clang-format off */
#define BERT_PARTS    {NULL, NULL, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"}
#define DEBERTA_PARTS {"[CLS]", "[SEP]", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"}
#define ROBERTA_PARTS {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"}
#define T5_PARTS      {NULL, "</s>", "<unk>", NULL, "<pad>", NULL, NULL}
static const class_rules classes[] = {
    {"BertTokenizer", FILES_WORDPIECE, BERT_PARTS, "c A s", "c A s B:1 s:1", 0, 1, 0, CHANGE_CASE},
    {"ElectraTokenizer", FILES_WORDPIECE, BERT_PARTS, "c A s", "c A s B:1 s:1", 0, 1, 0, CHANGE_CASE},
    {"DistilBertTokenizer", FILES_WORDPIECE, BERT_PARTS, "c A s", "c A s B:1 s:1", 0, 0, 0, CHANGE_CASE},
    {"MPNetTokenizer", FILES_WORDPIECE,
     {"<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>"}, "c A s", "c A s s B:1 s:1", 1, 0, 0, CHANGE_CASE},
    {"RoFormerTokenizer", FILES_REFUSED, BERT_PARTS, "c A s", "c A s B:1 s:1", 0, 1, 0, 0},
    {"FunnelTokenizer", FILES_JSON, {NULL}, "A", "A B:1", 0, 1, 0, CHANGE_CASE},
    {"SplinterTokenizer", FILES_JSON, {NULL}, "A", "A B:1", 0, 1, 0, CHANGE_CASE},
    {"GPT2Tokenizer", FILES_BYTE_BPE,
     {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>"}, "A", "A B:1", 0, 0, 0, 0},
    {"Qwen2Tokenizer", FILES_BYTE_BPE,
     {NULL, "<|endoftext|>", "<|endoftext|>", NULL, "<|endoftext|>"}, "A", "A B", 0, 0, 0, 0},
    {"RobertaTokenizer", FILES_BYTE_BPE, ROBERTA_PARTS, "c A s", "c A s s B s", 1, 0, 0, 0},
    {"DebertaTokenizer", FILES_BYTE_BPE, DEBERTA_PARTS, "c A s", "c A s B:1 s:1", 1, 1, 0, 0},
    {"GPTNeoXTokenizer", FILES_JSON,
     {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>"}, "A", "A B:1", 0, 0, 0, CHANGE_ENDS},
    {"T5Tokenizer", FILES_SENTENCEPIECE, T5_PARTS, "A e!", "A e! B e!", 0, 0, 0, 0},
    {"ByT5Tokenizer", FILES_BYTES, T5_PARTS, "A e!", "A e! B e!", 0, 0, 1, 0},
    {"AlbertTokenizer", FILES_SENTENCEPIECE,
     {"[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"}, "c A s", "c A s B:1 s:1", 1, 1, 0, 0},
    {"XLNetTokenizer", FILES_SENTENCEPIECE,
     {"<s>", "</s>", "<unk>", "<sep>", "<pad>", "<cls>", "<mask>"}, "A s c:2", "A s B:1 s:1 c:2", 1, 1, 0, 0},
    {"DebertaV2Tokenizer", FILES_SENTENCEPIECE, DEBERTA_PARTS, "c A s", "c A s B:1 s:1", 0, 1, 0, 0},
    {"XLMRobertaTokenizer", FILES_SENTENCEPIECE, ROBERTA_PARTS, "c A s", "c A s s B s", 1, 0, 0, 0},
    {"LlamaTokenizer", FILES_SENTENCEPIECE, {"<s>", "</s>", "<unk>"}, "b A", "b A b B", 0, 0, 0, CHANGE_ENDS},
    {"CodeLlamaTokenizer", FILES_JSON, {"<s>", "</s>", "<unk>"}, "A", "A B:1", 0, 0, 0, CHANGE_ENDS},
    {"GemmaTokenizer", FILES_JSON, {"<bos>", "<eos>", "<unk>", NULL, "<pad>"}, "A", "A B:1", 0, 0, 0, CHANGE_ENDS},
    {"CohereTokenizer", FILES_JSON, {NULL}, "A", "A B:1", 0, 0, 0, CHANGE_ENDS},
    {"MarianTokenizer", FILES_MARIAN, T5_PARTS, "A e", "A B e", 0, 0, 0, 0},
    {"MBartTokenizer", FILES_JSON, ROBERTA_PARTS, "A", "A B", 1, 0, 0, CHANGE_LANGUAGE},
    {"MBart50Tokenizer", FILES_JSON, {NULL, "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"},
     "A", "A B", 1, 0, 0, CHANGE_LANGUAGE},
    {"NllbTokenizer", FILES_JSON, ROBERTA_PARTS, "A", "A B", 1, 0, 0, CHANGE_LANGUAGE},
};

/* Classes that are the same, and the families whose class it is where a folder names none
 * (transformers 4.57.6). */
static const struct {
    const char *class, *aliases, *families;
} names[] = {
    {"BertTokenizer",
     "ConvBertTokenizer DPRContextEncoderTokenizer DPRQuestionEncoderTokenizer DPRReaderTokenizer LayoutLMTokenizer "
     "LxmertTokenizer MobileBertTokenizer RealmTokenizer RetriBertTokenizer SqueezeBertTokenizer",
     "bert align bark blip bros chinese_clip convbert dpr ernie git grounding-dino layoutlm lxmert megatron-bert "
     "mm-grounding-dino mobilebert nezha qdqbert realm retribert squeezebert tvp vilt visual_bert"},
    {"ElectraTokenizer", "", "electra"},
    {"DistilBertTokenizer", "", "distilbert"},
    {"MPNetTokenizer", "", "mpnet"},
    {"RoFormerTokenizer", "", "roformer"},
    {"FunnelTokenizer", "", "funnel"},
    {"SplinterTokenizer", "", "splinter"},
    {"GPT2Tokenizer", "CodeGenTokenizer",
     "gpt2 opt blip-2 codegen dbrx emu3 exaone4 flex_olmo gpt_bigcode gpt_neo gptj granite granitemoe instructblip "
     "minimax olmo3 phi starcoder2"},
    {"Qwen2Tokenizer", "",
     "qwen2 colqwen2 internvl qwen2_5_omni qwen2_5_vl qwen2_audio qwen2_moe qwen2_vl qwen3 qwen3_moe qwen3_next qwen3_vl"},
    {"RobertaTokenizer", "BartTokenizer LEDTokenizer LongformerTokenizer MvpTokenizer",
     "roberta bart bridgetower clap data2vec-text ibert led longformer mega mra mvp roberta-prelayernorm"},
    {"DebertaTokenizer", "", "deberta"},
    {"GPTNeoXTokenizer", "", "mpt falcon_mamba gpt_neox mamba mamba2 olmo olmo2 olmoe rwkv stablelm xlstm"},
    {"T5Tokenizer", "MT5Tokenizer",
     "t5 mt5 umt5 longt5 musicgen musicgen_melody pix2struct switch_transformers"},
    {"ByT5Tokenizer", "", "byt5"},
    {"AlbertTokenizer", "", "albert nystromformer yoso"},
    {"XLNetTokenizer", "", "xlnet"},
    {"DebertaV2Tokenizer", "", "deberta-v2"},
    {"XLMRobertaTokenizer", "", "xlm-roberta kosmos-2 metaclip_2 xlm-roberta-xl xmod"},
    {"CodeLlamaTokenizer", "", "code_llama"},
    {"LlamaTokenizer", "",
     "llama arcee aria chameleon deepseek_v2 deepseek_v3 diffllama ernie4_5 idefics idefics2 idefics3 jamba "
     "janus jetmoe llama4 llava mistral mistral3 mixtral mllama paligemma persimmon phi3 phimoe vipllava zamba zamba2"},
    {"GemmaTokenizer", "", "gemma gemma2 gemma3 gemma3_text gemma3n recurrent_gemma shieldgemma2 siglip2 t5gemma"},
    {"CohereTokenizer", "", "cohere cohere2 aya_vision"},
    {"MarianTokenizer", "", "marian"},
    {"MBartTokenizer", "", "mbart"},
    {"MBart50Tokenizer", "", "mbart50"},
    {"NllbTokenizer", "", "nllb nllb-moe"},
};

/* Classes that read a tokenizer.json as it is, and have rules of their own where there is none. */
static const char json_classes[] =
    "BarthezTokenizer BigBirdTokenizer BlenderbotTokenizer BloomTokenizer CamembertTokenizer CLIPTokenizer "
    "FNetTokenizer HerbertTokenizer OpenAIGPTTokenizer PegasusTokenizer ReformerTokenizer RemBertTokenizer "
    "WhisperTokenizer XGLMTokenizer";
static const char json_families[] =
    "barthez big_bird bigbird_pegasus bitnet blenderbot bloom blt camembert clip clipseg csm falcon fnet glm glm4 "
    "glm4_moe gpt_oss groupvit helium herbert modernbert moonshine moshi nemotron oneformer openai-gpt owlvit "
    "owlv2 pegasus pegasus_x pixtral reformer rembert smollm3 voxtral whisper xglm";

/* Classes that never read a tokenizer.json, or need what is no text (boxes), or another program. */
static const char other_classes[] =
    "BartphoTokenizer BertGenerationTokenizer BertJapaneseTokenizer BertweetTokenizer BioGptTokenizer "
    "BlenderbotSmallTokenizer CTRLTokenizer CanineTokenizer CharacterBertTokenizer ClvpTokenizer CpmAntTokenizer "
    "CpmTokenizer DiaTokenizer ErnieMTokenizer EsmTokenizer FSMTTokenizer FlaubertTokenizer GPTNeoXJapaneseTokenizer "
    "GPTSanJapaneseTokenizer GPTSw3Tokenizer JukeboxTokenizer LayoutLMv2Tokenizer LayoutLMv3Tokenizer "
    "LayoutXLMTokenizer LukeTokenizer M2M100Tokenizer MLukeTokenizer MarkupLMTokenizer MecabTokenizer "
    "MgpstrTokenizer MyT5Tokenizer PLBartTokenizer ParakeetCTCTokenizer PerceiverTokenizer PhobertTokenizer "
    "ProphetNetTokenizer RagTokenizer RoCBertTokenizer SeamlessM4TTokenizer SiglipTokenizer "
    "Speech2Text2Tokenizer Speech2TextTokenizer SpeechT5Tokenizer TapasTokenizer TapexTokenizer TransfoXLTokenizer "
    "UdopTokenizer VitsTokenizer Wav2Vec2CTCTokenizer Wav2Vec2PhonemeCTCTokenizer XLMProphetNetTokenizer "
    "XLMTokenizer";
static const char other_families[] =
    "bartpho bert-generation bert-japanese bertweet biogpt blenderbot-small canine clvp cpm cpmant ctrl dia ernie_m "
    "esm flaubert fsmt gpt-sw3 gpt_neox_japanese gptsan-japanese layoutlmv2 layoutlmv3 layoutxlm lilt luke m2m_100 "
    "mgp-str mluke myt5 parakeet perceiver phobert plbart prophetnet rag roc_bert seamless_m4t "
    "seamless_m4t_v2 siglip speech_to_text speecht5 tapas tapex transfo-xl udop vits wav2vec2 hubert xlm "
    "xlm-prophetnet";
/* clang-format on */

static const class_rules json_rules = {.name = "tokenizer.json", .files = FILES_JSON};
static const class_rules other_rules = {.name = "", .files = FILES_REFUSED};

static int same(const char *name, const char *text, size_t bytes)
{
    return strlen(name) == bytes && memcmp(name, text, bytes) == 0;
}

/* Is it one of the words? */
static int listed(const char *words, const char *text, size_t bytes)
{
    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        if (length == bytes && memcmp(words, text, bytes) == 0) return 1;
        words += length + (words[length] == ' ');
    }
    return 0;
}

const class_rules *locus_class_rules_find(const char *name, size_t bytes)
{
    if (bytes > 4 && memcmp(name + bytes - 4, "Fast", 4) == 0) bytes -= 4;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (same(classes[i].name, name, bytes)) return classes + i;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (listed(names[i].aliases, name, bytes))
            return locus_class_rules_find(names[i].class, strlen(names[i].class));
    if (listed(json_classes, name, bytes)) return &json_rules;
    return listed(other_classes, name, bytes) ? &other_rules : NULL;
}

const class_rules *locus_class_rules_of_model(const char *model_type, size_t bytes)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (listed(names[i].families, model_type, bytes))
            return locus_class_rules_find(names[i].class, strlen(names[i].class));
    if (listed(json_families, model_type, bytes)) return &json_rules;
    return listed(other_families, model_type, bytes) ? &other_rules : NULL;
}

/* A family whose own class reads SentencePiece, and a vocab.txt alone (ALBERT's Chinese and chemical
 * checkpoints): their authors open it as BERT's. */
static const class_rules *rules_of_family(const read_files *f, const json_value *family)
{
    const class_rules *rules = locus_class_rules_of_model(family->text, family->bytes);
    const int other = rules != NULL && rules->files == FILES_SENTENCEPIECE &&
                      locus_read_find_spm(f) == NULL && locus_read_exists(f, "vocab.txt");
    return other ? locus_class_rules_find("BertTokenizer", 13) : rules;
}

/* "RobertaForMaskedLM", "BertModel", "GPT2LMHeadModel": the class of the name in front. */
static const class_rules *rules_of_architecture(const json_value *value)
{
    static const char *const tails[] = {"For", "Model", "LMHead", "MT", "PreTrained"};
    char name[100];
    for (size_t i = 1; i < value->bytes && i < 80; i++) {
        for (size_t k = 0; k < sizeof tails / sizeof *tails; k++) {
            if (value->bytes - i < strlen(tails[k]) ||
                memcmp(value->text + i, tails[k], strlen(tails[k])) != 0)
                continue;
            memcpy(name, value->text, i);
            memcpy(name + i, "Tokenizer", 9);
            return locus_class_rules_find(name, i + 9);
        }
    }
    return NULL;
}

int locus_class_is_generic(const json_value *named)
{
    return locus_tree_is_text(named, "PreTrainedTokenizerFast") ||
           locus_tree_is_text(named, "PreTrainedTokenizer") ||
           locus_tree_is_text(named, "TokenizersBackend");
}

static int is_text(const json_value *value)
{
    return value != NULL && value->kind == LOCUS_JSON_STRING && value->bytes > 0;
}

const class_rules *locus_class_rules_of(const read_files *f, const json_value **named)
{
    const json_value *class = locus_tree_get(f->tokenizer_config.root, "tokenizer_class");
    if (!is_text(class)) class = locus_tree_get(f->config.root, "tokenizer_class");
    const json_value *family = locus_tree_get(f->config.root, "model_type");
    const json_value *list = locus_tree_get(f->config.root, "architectures");
    const json_value *first = list != NULL && list->kind == LOCUS_JSON_ARRAY ? list->child : NULL;
    *named = is_text(class) ? class : is_text(family) ? family : is_text(first) ? first : NULL;
    if (*named == NULL || locus_class_is_generic(*named)) return NULL;
    if (*named == class) return locus_class_rules_find(class->text, class->bytes);
    if (*named == family) return rules_of_family(f, family);
    return rules_of_architecture(first);
}

locus_status locus_class_refuse(const read_files *f, const json_value *named, const char *why)
{
    char found[100];
    (void)locus_fail(f->error, LOCUS_ERR_FORMAT, "found the tokenizer class or family %s, %s",
                     locus_tree_describe(found, sizeof found, named), why);
    return locus_file_fail_in(f->error, LOCUS_ERR_FORMAT, f->folder);
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
const json_value *locus_class_part(const read_files *f, size_t part)
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
int locus_class_token_text(const json_value *value, const json_value **content)
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
    if (a->rules->files != FILES_WORDPIECE && a->rules->files != FILES_BYTE_BPE)
        flags.normalized = 0; /* slow classes look for all of them in the text as it is */
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
    const json_value *value = locus_class_part(a->f, part), *content = NULL;
    const char *preset = a->rules->parts[part];
    added_token flags = {.special = 1,
                         .lstrip = (uint8_t)(part == PART_MASK && a->rules->mask_lstrip)};
    if (a->rules->strips) flags.lstrip = flags.rstrip = 1;
    if (value != NULL && value->kind == LOCUS_JSON_NULL) return LOCUS_OK;
    if (value == NULL && preset == NULL) return LOCUS_OK;
    if (value == NULL) return add_token(a, preset, strlen(preset), flags, &a->f->t->part[part]);
    if (!locus_class_token_text(value, &content))
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
        if (id >= LOCUS_TEXT_MAX_VOCABULARY || !locus_class_token_text(v, &content) ||
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
        LOCUS_TRY(
            add(a, v->key, v->key_bytes, (uint32_t)v->integer, (added_token){.normalized = 1}));
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
        if (!locus_class_token_text(v, &content)) continue;
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
    const json_value *value = locus_class_part(f, part), *content = NULL;
    if (value != NULL) {
        if (!locus_class_token_text(value, &content)) return TEXT_NO_ID;
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
